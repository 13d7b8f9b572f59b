"""The pages of the documentation: messages name them docs/..., `keyhop help` prints them."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from keyhop.errors import CannotStart
from keyhop.wording import aligned

_PACKAGE = Path(__file__).parents[1]
_INSTALLED = _PACKAGE / "docs"
FOLDER = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parents[1] / "docs"
"""The pages in the installed package, or in the checkout."""


def show(name: str) -> None:
    """Print a page, or for "docs" the list of pages. A terminal shows the page formatted.

    Raises:
        CannotStart: There is no such page.
    """
    pages = {f"docs/{path.relative_to(FOLDER).as_posix()}": path for path in FOLDER.rglob("*.md")}
    name = name.partition("#")[0].rstrip("/")
    if name == "docs":
        click.echo("\n".join(_titles(pages)))
    elif name not in pages:
        raise CannotStart(f"There is no page {name!r}. `keyhop help docs` lists the pages.")
    else:
        _print(pages[name].read_text(encoding="utf-8"))


def _titles(pages: dict[str, Path]) -> Iterator[str]:
    def title_of(path: Path) -> str:
        return path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")

    return aligned((name, title_of(path)) for name, path in sorted(pages.items()))


def _print(page: str) -> None:
    if not sys.stdout.isatty():
        click.echo(page.encode(), nl=False)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(page))
