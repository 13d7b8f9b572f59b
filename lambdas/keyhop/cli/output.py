"""The result of a command on standard output, and the --summary file of `keyhop keys`.

A result is text for a person, JSON or CSV for a program, in the same form for all commands:

json        one document, with two spaces a level; values of keys plain: {"pk": "a"}
typed-json  the same; values of keys as DynamoDB has them: {"pk": {"S": "a"}}
csv         a header, and a row for each record; a nested value has a separate column (keys.low),
            a list is JSON in one column

Keys themselves come a page at a time, one a line in each format (jobs.formats).
"""

import json
import os
import re
import sys
import textwrap
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import click

from keyhop.dynamodb.values import plain
from keyhop.errors import CannotStart
from keyhop.jobs.formats import csv_row, json_text

Record = Mapping[str, Any]
UNLIMITED_WIDTH = 10_000


def put_out(
    format_: str | None,
    report: Record | Sequence[Record],
    text: Callable[[], str],
    rows: Sequence[Record] | None = None,
) -> None:
    """Print a result on standard output.

    Args:
        report: The result; keys in it are typed, as DynamoDB has them.
        text: Returns the text for a person; called only for that format.
        rows: The records of csv, if they are not the report itself.
    """
    if is_text(format_):
        print(encodable(folded(text(), width_of(sys.stdout))))
        return
    if format_ == "csv":
        records = [report] if isinstance(report, Mapping) else report
        content = csv_text(records if rows is None else rows)
    else:
        content = (
            json_text(report if format_ == "typed-json" else unwrapped(report), indent=2) + "\n"
        )
    click.echo(content.encode(), nl=False)  # UTF-8, whatever the terminal's encoding


def is_text(format_: str | None) -> bool:
    """Return whether the result is for a person."""
    return format_ in (None, "text")


def columns(rows: Sequence[Sequence[str]], *, leftmost: int | None = None) -> Iterator[str]:
    """Return rows as lines of columns: the first `leftmost` columns to the left, all by default."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if leftmost is None or place < leftmost else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def width_of(stream: IO[str]) -> int:
    """Return the columns of a terminal; for anything else, more than any line has."""
    if not stream.isatty():
        return UNLIMITED_WIDTH
    with suppress(OSError, ValueError):
        return int(os.environ.get("COLUMNS") or os.get_terminal_size(stream.fileno()).columns)
    return 80


def folded(text: str, width: int) -> str:
    """Fold longer lines; they continue below the start of their second column, or of their text."""
    return "\n".join(
        line if len(line) <= width else _folded(line, width) for line in text.split("\n")
    )


def _folded(line: str, width: int) -> str:
    indented = re.match(r"  +\S+ {2,}|  +\S+ +(?=\S)|\s*", line)
    margin = " " * min(len(indented[0]) if indented else 0, width // 2)
    return textwrap.fill(
        line, width, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False
    )


def encodable(text: str) -> str:
    """Return text that standard output can show, whatever its encoding."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def printable(text: str) -> str:
    """Return text of unknown origin on one line, without control characters."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def unwrapped(report: Any) -> Any:
    """Return a report with plain values in place of typed ones."""
    if isinstance(report, list | tuple):
        return [unwrapped(value) for value in report]
    if not isinstance(report, Mapping):
        return report
    if _is_typed(report):
        return plain(report)
    return {name: unwrapped(value) for name, value in report.items()}


def _is_typed(value: Mapping[str, Any]) -> bool:
    """Return whether this is {"S": "a"}; an attribute may be named S, too: {"S": {"S": "a"}}."""
    return len(value) == 1 and any(isinstance(value.get(type_), str | bytes) for type_ in "SNB")


def csv_text(records: Sequence[Record]) -> str:
    """Return records with a header: the columns of all records, in order of appearance."""
    flat = [dict(_flat(unwrapped(record))) for record in records]
    names = list(dict.fromkeys(name for record in flat for name in record))
    rows = [[record.get(name, "") for name in names] for record in flat]
    return "".join(map(csv_row, [names, *rows])) if names else ""


def _flat(record: Record, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        elif isinstance(value, list | bool):
            yield f"{before}{name}", json_text(value)
        else:
            yield f"{before}{name}", "" if value is None else value


def check_summary_path(path: str | None) -> None:
    """Raise CannotStart if the --summary file could not be written."""
    if not path:
        return
    folder = Path(path).resolve().parent
    if Path(path).is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise CannotStart(
            f"--summary {path} cannot be written: choose a file in a directory of yours."
        )


def write_summary(path: str | None, summary: Mapping[str, Any]) -> None:
    """Write the --summary file, if there is one: a file atomically, a pipe directly."""
    if not path:
        return
    text = json.dumps(summary, indent=2, ensure_ascii=False) + "\n"
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        target.write_text(text, encoding="utf-8")
        return
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    with temporary.open("x", encoding="utf-8") as file:
        file.write(text)
    temporary.replace(target)
