"""The Python files below a directory, as the code reader takes them."""

import os
import tokenize
from collections.abc import Iterator
from pathlib import Path

from keyhop.errors import CannotStart
from keyhop.report.facts import CodeFacts
from keyhop.report.sources.code import MOST_BYTES, read_code

MOST_FILES = 5_000

OF_OTHERS = frozenset({"venv", "node_modules", "site-packages", "__pycache__"})
"""Folders that hold no code of the user's; hidden ones neither."""
_OF_A_VENV = "pyvenv.cfg"


def read_directory(path: Path) -> CodeFacts:
    """Of a directory, or of one file. Nothing is run, and no link is followed out of it.

    Raises CannotStart if there is none, or if it has too many files.
    """
    if path.is_file():
        return read_code([(_name(Path(path.name)), _text(path))])
    if not path.is_dir():
        raise CannotStart(f"There is no directory {str(path)!r}: --code names that of your code.")
    files = sorted(_files(path))
    if len(files) > MOST_FILES:
        raise CannotStart(
            f"{str(path)!r} has {len(files):,} Python files; name a folder of at most "
            f"{MOST_FILES:,} for --code."
        )
    return read_code((_name(file.relative_to(path)), _text(file)) for file in files)


def _name(path: Path) -> str:
    """Return a file's name as text: bytes in it that are no UTF-8 are written as escapes."""
    return str(path).encode(errors="surrogateescape").decode(errors="backslashreplace")


def _files(path: Path) -> Iterator[Path]:
    top = path.resolve()
    for folder, folders, names in os.walk(path):
        here = Path(folder)
        folders[:] = [
            one
            for one in folders
            if not one.startswith(".")
            and one not in OF_OTHERS
            and not (here / one / _OF_A_VENV).exists()
        ]
        for name in names:
            if name.endswith(".py"):
                file = here / name
                if not file.is_symlink() or file.resolve().is_relative_to(top):
                    yield file


def _text(file: Path) -> str | None:
    """None if it cannot be read as the text of a Python file."""
    try:
        if not file.is_file() or file.stat().st_size > MOST_BYTES:
            return None
        with tokenize.open(file) as opened:
            return opened.read()
    except (OSError, SyntaxError, ValueError):
        return None
