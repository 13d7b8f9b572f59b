"""What the file of the request sampler says of one table."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from keyhop.checks import check_characters
from keyhop.errors import CannotStart
from keyhop.report.facts import Absent, RequestFacts, RequestShape
from keyhop.report.sampler import COUNTS, VERSION

MARK = '{"keyhop":'
"""A line begins so; a log may have put something before it."""
MOST_NAMED = 5
REMEDY = "--requests FILE, of keyhop.report.sampler in the application that uses this table"

_Key = tuple[str, str, tuple[str, ...], tuple[str, ...]]


def read_requests(path: Path, table: str) -> RequestFacts | Absent:
    """Absent, if the file has nothing of this table. Raises CannotStart."""
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            return requests_of(lines, table, str(path))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CannotStart(f"{str(path)!r} cannot be read: {reason}.") from error


def requests_of(lines: Iterable[str], table: str, name: str) -> RequestFacts | Absent:
    """Of the file's lines. One that is damaged, as the last of a process that was killed, is left
    out. Raises CannotStart if none is the sampler's, or of a newer version.
    """
    shapes: dict[_Key, list[float]] = {}
    followed: dict[str, list[int]] = {}
    tables: set[str] = set()
    began, ended, share, total, found = float("inf"), 0.0, 0.0, 0.0, False
    for line in lines:
        said = _said(line, name)
        if said is None:
            continue
        found = True
        if said.get("full") is True:
            continue
        try:
            read = _shapes(said)
            window = float(said["began"]), float(said["ended"]), float(said["share"])
            pairs = [(str(t), str(i), int(n), int(of)) for t, i, n, of in said["followed"]]
        except (KeyError, TypeError, ValueError):
            continue
        began, ended = min(began, window[0]), max(ended, window[1])
        for owner, key, numbers in read:
            tables.add(owner)
            if owner == table:
                sums = shapes.setdefault(key, [0.0] * len(COUNTS))
                shapes[key] = [one + more for one, more in zip(sums, numbers, strict=True)]
                share, total = share + window[2] * numbers[0], total + numbers[0]
        for owner, index, after, of in pairs:
            if owner == table:
                sums_of = followed.setdefault(index, [0, 0])
                sums_of[0], sums_of[1] = sums_of[0] + after, sums_of[1] + of
    if not found:
        raise CannotStart(f"{name!r} is no file of the request sampler.")
    if not shapes:
        return Absent(_nothing(name, table, tables), REMEDY)
    return RequestFacts(
        seconds=max(0.0, ended - began),
        calls=int(total),
        sampled=share / total if total else 0.0,
        shapes=tuple(_shape(key, shapes[key]) for key in sorted(shapes)),
        followed={index: (after, of) for index, (after, of) in sorted(followed.items())},
    )


def _said(line: str, name: str) -> dict[str, Any] | None:
    """What a line of the sampler says; None of another, or of a damaged one."""
    _, mark, rest = line.partition(MARK)
    if not mark:
        return None
    try:
        said = json.loads(MARK + rest)
        check_characters(said)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or said.get("keyhop") != "requests":
        return None
    version = said.get("version")
    if version != VERSION:
        raise CannotStart(
            f"{name!r} is of version {version!r} of the request sampler; this Keyhop reads "
            f"version {VERSION}."
        )
    return said


def _shapes(said: dict[str, Any]) -> list[tuple[str, _Key, list[float]]]:
    return [
        (
            str(one["table"]),
            (
                str(one["operation"]),
                str(one["index"]),
                tuple(map(str, one["conditions"])),
                tuple(map(str, one["filters"])),
            ),
            [float(one[name]) for name in COUNTS],
        )
        for one in said["shapes"]
    ]


def _shape(key: _Key, numbers: list[float]) -> RequestShape:
    of = dict(zip(COUNTS, numbers, strict=True))
    units = of.pop("units")
    whole: dict[str, Any] = {name: int(number) for name, number in of.items()}
    return RequestShape(*key, units=units, **whole)


def _nothing(name: str, table: str, tables: set[str]) -> str:
    if not tables:
        return f"{name!r} has no requests yet"
    shown = sorted(tables)
    more = f" and {len(shown) - MOST_NAMED:,} more" if len(shown) > MOST_NAMED else ""
    return f"{name!r} has requests to {', '.join(shown[:MOST_NAMED])}{more}, and none to {table}"
