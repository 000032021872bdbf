"""The pages of docs/api/, from the signatures and docstrings in the sources; nothing is imported.

    python -m docs.generate

A module shows the names that `PAGES` gives it, or those of its `__all__`, or its public ones. What has no
docstring is left out. A new module needs a line in `PAGES`; the adapters are found by themselves.
"""

import ast
import itertools
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "arl_gym": ("The package", ("arl_gym", "arl_gym.make: tools_of, find_spec")),
    "environments": (
        "Environments",
        (
            "arl_gym.core",
            "arl_gym.checker: check_text_env, conformance, Report, Finding",
            "arl_gym.tools",
            "arl_gym.errors",
            "arl_gym.rng",
            "arl_gym.envs.alfworld.env",
            "arl_gym.envs.sokoban.env",
            "arl_gym.envs.tirmath.env",
            "arl_gym.envs.webshop.env",
        ),
    ),
    "parts": (
        "Parts of environments",
        (
            "arl_gym.envs.sokoban.levels: load_levels",
            "arl_gym.envs.sokoban.solver: Solution, solve",
            "arl_gym.envs.tirmath.grading",
            "arl_gym.envs.tirmath.sandbox",
        ),
    ),
    "vector": ("Vector environments", ("arl_gym.vector", "arl_gym.envs.sokoban.batch")),
    "wrappers": ("Wrappers", ("arl_gym.wrappers",)),
    "adapters": (
        "Adapters to other libraries",
        tuple(f"arl_gym.adapters.{p.stem}" for p in sorted((ROOT / "arl_gym" / "adapters").glob("[!_]*.py"))),
    ),
    "agents": (
        "Agents without torch",
        (
            "arl_gym.agents.types",
            "arl_gym.agents.rollout",
            "arl_gym.agents.evaluate",
            "arl_gym.agents.policies",
            "arl_gym.agents.endpoint: EndpointPolicy",
            "arl_gym.agents.records: write_trajectories, read_trajectories",
            "arl_gym.agents.collection",
        ),
    ),
    "settings": ("Settings of a run", ("arl_gym.train.config",)),
    "train": (
        "The trainer",
        (
            "arl_gym.train.trainer: train, export",
            "arl_gym.train.bc: clone_run, CloneResult, clone",
            "arl_gym.train.methods",
            "arl_gym.train.checks: check_config",
            "arl_gym.train.filtering",
            "arl_gym.train.advantages",
            "arl_gym.train.loss",
            "arl_gym.train.metrics",
            "arl_gym.train.alarms",
            "arl_gym.train.repetition",
            "arl_gym.train.stability",
            "arl_gym.train.memory",
            "arl_gym.train.sweep",
            "arl_gym.train.jobs: Outcome, run_all",
        ),
    ),
}
"""Of every page: its title and its modules, with the names to show where not all public ones are meant."""

_SECTIONS = ("Args", "Attributes", "Returns", "Yields", "Raises", "References", "Note", "Example")
_MADE = "Made from the docstrings by `make docs`"
_WRAPPED = "; see the wrapped env"
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def pages() -> dict[str, str]:
    """Return the text of every page of docs/api/ by its file name."""
    shown = {name: page for name, page in PAGES.items() if page[1]}
    lines = [f"- [{title}]({name}.md): {_names(modules)}" for name, (title, modules) in shown.items()]
    index = "\n".join(["# API", "", f"{_MADE}. [Documentation](../index.md)", "", *lines])
    return {"index.md": index + "\n"} | {f"{name}.md": _page(*page) for name, page in shown.items()}


def _names(modules: tuple[str, ...]) -> str:
    return ", ".join(f"`{module.partition(': ')[0]}`" for module in modules)


def _page(title: str, modules: tuple[str, ...]) -> str:
    parts = [f"# {title}", f"{_MADE}. [All pages](index.md)"]
    for entry in modules:
        module, _, names = entry.partition(": ")
        parts += _module(module, names.split(", ") if names else [])
    return "\n\n".join(parts) + "\n"


def _module(name: str, chosen: list[str]) -> Iterator[str]:
    source = _Source(_file(name))
    yield f"## {name}"
    yield f"[Source](../../{source.path.relative_to(ROOT).as_posix()})"
    yield from _prose(ast.get_docstring(source.tree))
    for public in chosen or _public_names(source):
        if public not in source.names:
            raise ValueError(f"{name} has no {public}: see PAGES in {__file__}")
        yield from _name(source, public)


class _Source:
    """A module's text and tree."""

    def __init__(self, path: Path):
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        self.definitions = {n.name: n for n in self.tree.body if isinstance(n, _Definition)}
        self.documented = dict(_attributes(self.tree.body))
        imports = [n for n in ast.walk(self.tree) if isinstance(n, ast.ImportFrom)]
        self.imports = {alias.name: n.module or "" for n in imports for alias in n.names}
        self.names = {*self.definitions, *self.imports, *map(_target, self.tree.body)}

    def segment(self, node: ast.AST) -> str:
        """Return the text of a node, as far to the left as it goes."""
        return textwrap.dedent(ast.get_source_segment(self.text, node, padded=True) or "").strip()


def _file(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _attributes(body: list[ast.stmt]) -> Iterator[tuple[str, tuple[ast.stmt, str]]]:
    """Yield every assignment that a string follows: name, (assignment, that string)."""
    for node, after in itertools.pairwise(body):
        if not _target(node) or not isinstance(after, ast.Expr):
            continue
        if isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            yield _target(node), (node, after.value.value)


def _target(node: ast.stmt) -> str:
    """Return the name that a statement assigns to, or an empty text."""
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    return target.id if isinstance(target, ast.Name) else ""


def _public_names(source: _Source) -> list[str]:
    for node in source.tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    in_order = sorted(
        [(d.lineno, name) for name, d in source.definitions.items()]
        + [(node.lineno, name) for name, (node, _) in source.documented.items()]
    )
    return [name for _, name in in_order if not name.startswith("_")]


def _name(source: _Source, name: str) -> Iterator[str]:
    """Yield the parts that show a name of a module, following the import of one that is defined elsewhere."""
    if name in source.imports and name not in {*source.definitions, *source.documented}:
        yield from _name(_Source(_file(source.imports[name])), name)
    if name in source.documented:
        node, text = source.documented[name]
        yield f"### {name}"
        yield _code(source.segment(node)) if node.end_lineno == node.lineno else f"`{name}`"
        yield from _prose(text)
    definition = source.definitions.get(name)
    if definition is not None and ast.get_docstring(definition):
        yield f"### {name}"
        yield from _definition(source, definition)


def _definition(source: _Source, node: _Definition) -> Iterator[str]:
    if not isinstance(node, ast.ClassDef):
        yield _code(_signature(source, node))
        yield from _prose(ast.get_docstring(node))
        return
    yield _code(_constructor(source, node))
    text = ast.get_docstring(node) or ""
    if "\n## " in text:  # the card of an environment
        text = f"{text.splitlines()[0]}\n\nIts card is on the page of [environments](../environments.md)."
    yield from _prose(text)
    fields = list(_fields(source, node))
    if fields:
        yield "\n".join(fields)
    for method in node.body:
        if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = ast.get_docstring(method) or _WRAPPED
        # What a subclass has to write is public, whatever its name.
        private = method.name.startswith("_") and "abstractmethod" not in _decorators(method)
        if not private and _WRAPPED not in text and "overload" not in _decorators(method):
            yield f"#### {node.name}.{method.name}"
            yield _code(_signature(source, method))
            yield from _prose(text)


def _decorators(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    return [d.id for d in node.decorator_list if isinstance(d, ast.Name)]


def _fields(source: _Source, node: ast.ClassDef) -> Iterator[str]:
    """Yield a line for every documented attribute, and for the others where they are the constructor."""
    documented = dict(_attributes(node.body))
    made_of_fields = not any(isinstance(n, ast.FunctionDef) and n.name == "__init__" for n in node.body)
    for field in node.body:
        name = _target(field)
        if name in documented:
            what = ": " + " ".join(documented[name][1].split())
        elif made_of_fields and isinstance(field, ast.AnnAssign) and not name.startswith("_"):
            what = ""
        else:
            continue
        yield f"- `{' '.join(source.segment(field).split())}`{what}"


def _constructor(source: _Source, node: ast.ClassDef) -> str:
    """Return how an instance is made: the class's `__init__`, or the first line of the class."""
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            made = _signature(source, method).removesuffix(" -> None")
            return re.sub(r"^def __init__\(\s*self(,\s*)?", _opening(node.name, made), made, count=1)
    bases = ", ".join(map(ast.unparse, node.bases))
    return f"class {node.name}({bases})" if bases else f"class {node.name}"


def _opening(name: str, signature: str) -> str:
    return f"{name}(\n    " if "\n" in signature else f"{name}("


def _signature(source: _Source, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return what stands before the body, as the source lays it out."""
    lines = source.text.splitlines()[node.lineno - 1 : node.body[0].lineno - 1]
    text = re.sub(r":\s*(#.*)?$", "", textwrap.dedent("\n".join(lines)).strip())
    return "@property\n" + text if "property" in _decorators(node) else text


def _code(text: str) -> str:
    # "py", since blocks of "python" are run by the tests.
    return f"```py\n{re.sub(r'  # (type: ignore|noqa).*', '', text)}\n```"


def _prose(docstring: str | None) -> Iterator[str]:
    """Yield the parts of a docstring: paragraphs as they are, sections as lists, sessions as blocks."""
    # A paragraph ends where a line that is not indented follows a blank one: sections stay whole.
    for paragraph in re.split(r"\n\n+(?! )", re.sub(r"  # doctest: .*", "", docstring or "")):
        head, _, rest = paragraph.partition("\n")
        if head.endswith(":") and head.removesuffix(":") in _SECTIONS:
            yield f"**{head.removesuffix(':')}**"
            yield _section(textwrap.dedent(rest))
        elif head.startswith(">>>"):
            yield f"```\n{paragraph}\n```"  # "pycon" would be formatted by ruff, unlike the source
        elif paragraph:
            yield paragraph


def _section(text: str) -> str:
    """Return "name: what" entries as a list, and any other text as it is."""
    entries = re.split(r"\n(?=\S)", text.strip())
    if not all(re.match(r"\*{0,2}[\w.]+(, [\w.]+)*( \(.*?\))?: ", entry) for entry in entries):
        return text.strip()
    listed = []
    for entry in entries:
        name, _, what = entry.partition(": ")
        listed.append(f"- `{name}`: {' '.join(what.split())}")
    return "\n".join(listed)
