"""Writes everything in the documentation that is made from the sources.

    python -m docs.generate

A test compares what is committed with what `files` gives.
"""

from pathlib import Path

from docs import api_pages, cards

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "api"


def files() -> dict[Path, str]:
    """Return the text of every generated file, and of the README with its table."""
    readme = ROOT / "README.md"
    return {
        readme: cards.render(readme.read_text(encoding="utf-8")),
        ROOT / "docs" / "environments.md": cards.page(),
        **{FOLDER / name: text for name, text in api_pages.pages().items()},
    }


if __name__ == "__main__":
    made = files()
    FOLDER.mkdir(exist_ok=True)
    for stray in set(FOLDER.glob("*.md")) - set(made):
        stray.unlink()
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
