"""The requests to one table, from the file of the request sampler."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from keyhop.checks import check_characters
from keyhop.errors import CannotStart
from keyhop.report.facts import Absent, RequestFacts, RequestShape
from keyhop.report.sampler import COUNTS, VERSION

MARK = '{"keyhop":'
"""The beginning of a line; a log may have written something before it."""
MOST_NAMED = 5
REMEDY = "--requests FILE, of keyhop.report.sampler in the application that uses this table"

_Key = tuple[str, str, tuple[str, ...], tuple[str, ...]]


def read_requests(path: Path, table: str) -> RequestFacts | Absent:
    """Return the requests to a table; Absent if the file has none.

    Raises:
        CannotStart: The file cannot be read, or is not the sampler's.
    """
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            return requests_of(lines, table, str(path))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CannotStart(f"{str(path)!r} cannot be read: {reason}.") from error


def requests_of(lines: Iterable[str], table: str, name: str) -> RequestFacts | Absent:
    """Return the requests to a table in the lines of a file.

    Damaged lines are skipped, such as the last line of a killed process.

    Raises:
        CannotStart: No line is the sampler's, or one is of another version.
    """
    shapes: dict[_Key, list[float]] = {}
    followed: dict[str, list[int]] = {}
    tables: set[str] = set()
    began, ended, share, total, is_empty = float("inf"), 0.0, 0.0, 0.0, True
    for line in lines:
        entry = _entry(line, name)
        if entry is None:
            continue
        is_empty = False
        if entry.get("full") is True:
            continue
        try:
            read = _shapes(entry)
            window = _numbers(entry, ("began", "ended", "share"))
            pairs = [(str(t), str(i), int(n), int(reads)) for t, i, n, reads in entry["followed"]]
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        began, ended = min(began, window[0]), max(ended, window[1])
        for owner, key, numbers in read:
            tables.add(owner)
            if owner == table:
                sums = shapes.setdefault(key, [0.0] * len(COUNTS))
                shapes[key] = [sum(pair) for pair in zip(sums, numbers, strict=True)]
                share, total = share + window[2] * numbers[0], total + numbers[0]
        for owner, index, after, reads in pairs:
            if owner == table:
                counts = followed.setdefault(index, [0, 0])
                counts[0], counts[1] = counts[0] + after, counts[1] + reads
    if is_empty:
        raise CannotStart(f"{name!r} is not a file of the request sampler.")
    if not shapes:
        return Absent(_nothing(name, table, tables), REMEDY)
    return RequestFacts(
        seconds=max(0.0, ended - began),
        calls=int(total),
        sampled=share / total if total else 0.0,
        shapes=tuple(_shape(key, shapes[key]) for key in sorted(shapes)),
        followed={index: (after, reads) for index, (after, reads) in sorted(followed.items())},
    )


def _entry(line: str, name: str) -> dict[str, Any] | None:
    """Return the content of a line of the sampler; None for another line, or a damaged one."""
    _, mark, rest = line.partition(MARK)
    if not mark:
        return None
    try:
        entry = json.loads(MARK + rest)
        check_characters(entry)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or entry.get("keyhop") != "requests":
        return None
    version = entry.get("version")
    if version != VERSION:
        raise CannotStart(
            f"{name!r} is of version {version!r} of the request sampler; this Keyhop reads "
            f"version {VERSION}."
        )
    return entry


def _numbers(entry: Mapping[str, Any], names: Sequence[str]) -> list[float]:
    """Return numbers of an entry; raise ValueError if one is negative or not finite."""
    numbers = [float(entry[name]) for name in names]
    if not all(0 <= number < math.inf for number in numbers):
        raise ValueError
    return numbers


def _shapes(entry: dict[str, Any]) -> list[tuple[str, _Key, list[float]]]:
    return [
        (
            str(shape["table"]),
            (
                str(shape["operation"]),
                str(shape["index"]),
                tuple(map(str, shape["conditions"])),
                tuple(map(str, shape["filters"])),
            ),
            _numbers(shape, COUNTS),
        )
        for shape in entry["shapes"]
        if int(float(shape["calls"])) > 0
    ]


def _shape(key: _Key, numbers: list[float]) -> RequestShape:
    figures = dict(zip(COUNTS, numbers, strict=True))
    units = figures.pop("units")
    counts: dict[str, Any] = {name: int(number) for name, number in figures.items()}
    return RequestShape(*key, units=units, **counts)


def _nothing(name: str, table: str, tables: set[str]) -> str:
    if not tables:
        return f"{name!r} has no requests yet"
    names = sorted(tables)
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return f"{name!r} has requests to {', '.join(names[:MOST_NAMED])}{more}, and none to {table}"
