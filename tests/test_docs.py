"""How the generated pages are made from docstrings."""

import pytest

from docs import api_pages

SOURCE = '''"""Weighs things.

    >>> weigh("a")  # doctest: +SKIP
"""

LIMIT = 3
"""Most kilograms."""

HIDDEN = 4


class Scale:
    """A scale.

    Args:
        name: What it is called,
            in one word.
    """

    def __init__(self, name: str):
        self.name = name

    @property
    def ready(self) -> bool:
        """Whether it can weigh."""
        return True

    def _tare(self) -> None:
        """Set to zero."""


class Reading:
    """What a scale says."""

    kg: float = 0.0
    """Kilograms."""
    steady: bool = True


def weigh(
    thing: str,  # type: ignore
) -> Reading:
    """Weigh a thing.

    Raises:
        ValueError: If it is too heavy.
    """


def undocumented() -> None:
    pass
'''

PAGE = """# Scales

Made from the docstrings by `make docs`. [All pages](index.md)

## pkg.scales

[Source](../../pkg/scales.py)

Weighs things.

```
>>> weigh("a")
```

### LIMIT

```py
LIMIT = 3
```

Most kilograms.

### Scale

```py
Scale(name: str)
```

A scale.

**Args**

- `name`: What it is called, in one word.

#### Scale.ready

```py
@property
def ready(self) -> bool
```

Whether it can weigh.

### Reading

```py
class Reading
```

What a scale says.

- `kg: float = 0.0`: Kilograms.
- `steady: bool = True`

### weigh

```py
def weigh(
    thing: str,
) -> Reading
```

Weigh a thing.

**Raises**

- `ValueError`: If it is too heavy.
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "scales.py").write_text(SOURCE)
    (tmp_path / "pkg" / "__init__.py").write_text(
        'from pkg.scales import LIMIT, weigh\n\n__all__ = ["LIMIT"]\n'
    )
    monkeypatch.setattr(api_pages, "ROOT", tmp_path)

    def page(entry):
        monkeypatch.setattr(api_pages, "PAGES", {"scales": ("Scales", (entry,))})
        return api_pages.pages()["scales.md"]

    return page


def test_a_page_shows_what_has_a_docstring_and_is_public(package):
    assert package("pkg.scales") == PAGE


def test_a_name_of_all_is_shown_where_it_is_defined(package):
    page = package("pkg")
    assert "### LIMIT\n\n```py\nLIMIT = 3\n```\n\nMost kilograms.\n" in page
    assert "### weigh" not in page


def test_chosen_names_are_shown_in_their_order(package):
    page = package("pkg.scales: weigh, LIMIT")
    assert [line for line in page.splitlines() if line.startswith("### ")] == ["### weigh", "### LIMIT"]


def test_a_chosen_name_that_does_not_exist_is_an_error(package):
    with pytest.raises(ValueError, match=r"pkg\.scales has no weight"):
        package("pkg.scales: weight")
