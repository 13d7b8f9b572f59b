"""The result of a command: text for a person, JSON or CSV for a program; alike for all commands.

json        one document, with two spaces a level; values of keys plain: {"pk": "a"}
typed-json  the same; values of keys as DynamoDB has them: {"pk": {"S": "a"}}
csv         a header, and a row for each record; what is nested has a column of its own (keys.low),
            a list is JSON in one column

Keys themselves come a page at a time, one a line in each format (jobs.formats).
"""

import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

import click

from keyhop.dynamodb.values import plain
from keyhop.jobs.formats import csv_row, json_text

Record = Mapping[str, Any]
UNLIMITED_WIDTH = 10_000


def put_out(
    format_: str | None,
    report: Record | Sequence[Record],
    text: Callable[[], str],
    rows: Sequence[Record] | None = None,
) -> None:
    """Print a result on standard output; text: made only if it is asked for.

    report: keys in it are typed, as DynamoDB has them. rows: the records of csv, if they are not
    the report itself.
    """
    if is_text(format_):
        print(encodable(folded(text(), width_of(sys.stdout))))
        return
    if format_ == "csv":
        one = [report] if isinstance(report, Mapping) else report
        content = csv_text(one if rows is None else rows)
    else:
        content = (
            json_text(report if format_ == "typed-json" else unwrapped(report), indent=2) + "\n"
        )
    click.echo(content.encode(), nl=False)  # UTF-8, whatever the terminal's encoding


def is_text(format_: str | None) -> bool:
    """Whether the result is for a person."""
    return format_ in (None, "text")


def width_of(stream: IO[str]) -> int:
    """The columns of a terminal; of anything else, more than any line has."""
    if not stream.isatty():
        return UNLIMITED_WIDTH
    with suppress(OSError, ValueError):
        return int(os.environ.get("COLUMNS") or os.get_terminal_size(stream.fileno()).columns)
    return 80


def folded(text: str, width: int) -> str:
    """Lines that are longer go on below where their second column begins, or their text."""
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
    """Text as standard output can show it, whatever its encoding."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def unwrapped(report: Any) -> Any:
    """A report with plain values in place of typed ones."""
    if isinstance(report, list | tuple):
        return [unwrapped(value) for value in report]
    if not isinstance(report, Mapping):
        return report
    if _is_typed(report):
        return plain(report)
    return {name: unwrapped(value) for name, value in report.items()}


def _is_typed(value: Mapping[str, Any]) -> bool:
    """Whether this is {"S": "a"}; an attribute may be named S too: {"S": {"S": "a"}}."""
    return len(value) == 1 and any(isinstance(value.get(type_), str | bytes) for type_ in "SNB")


def csv_text(records: Sequence[Record]) -> str:
    """Records with a header: the columns of all of them, in the order in which they come."""
    flat = [dict(_flat(unwrapped(record))) for record in records]
    columns = list(dict.fromkeys(name for record in flat for name in record))
    rows = [[record.get(name, "") for name in columns] for record in flat]
    return "".join(map(csv_row, [columns, *rows])) if columns else ""


def _flat(record: Record, before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        elif isinstance(value, list | bool):
            yield f"{before}{name}", json_text(value)
        else:
            yield f"{before}{name}", "" if value is None else value
