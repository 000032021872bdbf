"""What the web pages are made of beside their contents: the files that lie beside this module."""

from importlib.resources import files


def style(page: str) -> str:
    """Return the styles of a page, "report" or "viewer", after those that all pages share."""
    return part("page.css") + part(f"{page}.css")


def part(name: str) -> str:
    """Return the text of a file beside this module, such as "viewer.js"."""
    return files("arl_gym.train").joinpath(name).read_text(encoding="utf-8")
