"""Build the site of these pages into out/site: `make docs`.

The pages are also read in the repository. So this script copies them and changes the copies: a link
to a file that is not a page becomes the file's name, and the fences of tested shell sessions become
plain ones. The script also makes two pages: the help of each command, and the Python interface from
its docstrings.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import keyhop
from keyhop.cli.main import command

DOCS = Path(__file__).parent
ROOT = DOCS.parent
OUT = ROOT / "out"
PAGES = OUT / "pages"
COPIED = ("*.md", "*.svg", "*.json", "*.css")
PROJECT_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
WIDE: Any = {"terminal_width": 100, "max_content_width": 100}

_FENCE = re.compile(r"^```(\w+) [^\n]+$", re.MULTILINE)
_SEVERAL = re.compile(r"^( +)(?!self|cls)(\w+(?:, \w+)+): ([A-Z].*\n(?:\1 +.*\n)*)", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^()\s#]+)(#[^()\s]*)?\)")


def copy() -> None:
    """Copy the pages, changed for the site, to out/pages."""
    shutil.rmtree(PAGES, ignore_errors=True)
    for pattern in COPIED:
        for source in DOCS.rglob(pattern):
            target = PAGES / source.relative_to(DOCS)
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.suffix == ".md":
                target.write_text(for_site(source.read_text(), source))
            else:
                shutil.copy(source, target)
    for name in PROJECT_PAGES:
        page = ROOT / name
        (PAGES / name.lower()).write_text(for_site(page.read_text(), page))


def for_site(text: str, page: Path) -> str:
    """Return the text of a page of the repository as the site has it."""

    def link(match: re.Match[str]) -> str:
        label, path, anchor = match[1], match[2], match[3] or ""
        if ":" in path:
            return match[0]
        target = (page.parent / path).resolve()
        if target.parent == ROOT and target.name in PROJECT_PAGES:
            target = DOCS / target.name.lower()
        elif target == ROOT / "README.md":
            target = DOCS / "index.md"
        if not target.is_relative_to(DOCS) or target.is_dir():
            return label
        start = DOCS if page.parent == ROOT else page.parent
        return f"[{label}]({os.path.relpath(target, start)}{anchor})"

    return _FENCE.sub(r"```\1", _LINK.sub(link, text))


def copy_code() -> None:
    """Copy the library to out/code, with a line for each argument or attribute in docstrings.

    A docstring may describe several names in one line, which the generator would read as one name.
    """
    shutil.rmtree(OUT / "code", ignore_errors=True)
    for source in (ROOT / "lambdas" / "keyhop").rglob("*.py"):
        target = OUT / "code" / source.relative_to(ROOT / "lambdas")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_SEVERAL.sub(_one_by_one, source.read_text()))


def _one_by_one(match: re.Match[str]) -> str:
    indent, names, text = match.groups()
    return "".join(f"{indent}{name}: {text}" for name in names.split(", "))


def commands() -> str:
    """Return the page of the commands: what each prints with `--help`."""
    lines = ["# Commands", "", "What each command prints with `--help`.", ""]
    for context in _contexts(click.Context(command, info_name="keyhop", **WIDE)):
        help_text = context.get_help()
        lines += [f"## {context.command_path}", "", "```text", help_text, "```", ""]
    return "\n".join(lines)


def _contexts(context: click.Context) -> Iterator[click.Context]:
    """Yield the context of a command, and those of the commands below it."""
    yield context
    if isinstance(context.command, click.Group):
        for name, below in context.command.commands.items():
            if not below.hidden:
                yield from _contexts(click.Context(below, context, name, **WIDE))


def interface() -> str:
    """Return the page of the Python interface: a directive for each public name."""
    lines = [
        "# Python interface",
        "",
        "[From Python](python.md) describes the rules for all calls.",
        "",
    ]
    for name in keyhop.__all__:
        value = getattr(keyhop, name)
        has_arguments = "Args:" in f"{value.__doc__}{getattr(value, '__init__', value).__doc__}"
        option = f"merge_init_into_class: {str(has_arguments).lower()}"
        lines += [f"::: keyhop.{name}", "    options:", f"      {option}", ""]
    return "\n".join(lines)


def main() -> None:
    """Copy the pages, make the others, and run the site generator named by the first argument."""
    copy()
    copy_code()
    (PAGES / "reference" / "commands.md").write_text(commands())
    (PAGES / "reference" / "interface.md").write_text(interface())
    shutil.copy(DOCS / "mkdocs.yml", OUT)  # in out, because Zensical empties the .cache beside it
    zensical = Path(sys.argv[1]).resolve()
    subprocess.run([zensical, "build", "--strict", "--clean"], cwd=OUT, check=True)
    print(f"The site is ready: open {OUT / 'site' / 'index.html'}")


if __name__ == "__main__":
    main()
