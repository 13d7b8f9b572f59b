"""Large tables, of which a report reads a small sample.

The stand-in generates their items on demand. Each has at least about 20,000 keys and half a
gigabyte, of which 800 read units read 6 MB.
"""

from random import Random
from typing import Any

from testing.report_corpus.case import DAY, Item, Kind, Schema, case
from testing.report_corpus.tables.clean import ONE_ENTITY
from testing.report_corpus.virtual import Collections
from testing.report_corpus.words import day, iso, text

KB = 1024
YEAR = (365 * DAY, 0.0)
BODY = text(Random(7), 220 * KB)
START = 1_600_000_000.0


def plain(key: str, number: int, at: float) -> Item:
    return {"Type": "Event", "body": BODY[:900]}


def two_kinds(typed: bool):
    """Return a function of items: a head and its lines, under tags."""

    def item(key: str, number: int, at: float) -> Item:
        kind = "HEAD" if number == 0 else "LINE"
        row: Item = {"body": BODY[:700]}
        return row | ({"Type": kind.title()} if typed else {})

    return item


def large_share(share: int, size: int):
    """Return a function of items, of which one in `share` has `size` bytes."""

    def item(key: str, number: int, at: float) -> Item:
        is_large = (number + len(key) + int(at)) % share == 0
        return {"Type": "Doc", "body": BODY[: size if is_large else 900]}

    return item


def untagged(key: str, number: int, at: float) -> Item:
    """Return a customer as the first item, and orders as the others."""
    if number == 0:
        return {"name": "Ada", "email": "a@b", "body": BODY[:500]}
    return {"cents": number, "status": "open", "memo": BODY[:700]}


def page(key: str, number: int, at: float) -> Item:
    return {"Type": "Page", "body": BODY[:900]}


def tagged_sort(key: str, number: int, at: float) -> str:
    return "HEAD#" if number == 0 else f"LINE#{iso(at)}"


def large(name: str, kind: Kind, collections: Collections, **more: Any) -> None:
    case(name, kind, Schema(sort="sk"), options={"units": 800}, virtual=collections, **more)


NUMBERS = sorted(f"PAGE#{number}" for number in range(1, 200))

large(
    "half a million invoices by number",
    "planted",
    Collections(40_000, 12, plain, YEAR, key=lambda n, c: f"INV-{n + 1:07}"),
    found=["A1"],
    allowed=ONE_ENTITY,
)
large(
    "polls of ten shards each",
    "clean",
    Collections(40_000, 12, plain, YEAR, key=lambda n, c: f"POLL#{n // 10 * 7919:x}#{n % 10}"),
    allowed=ONE_ENTITY,
    traps={"A1": "ten numbers for all polls"},
)
large(
    "devices by day",
    "clean",
    Collections(
        40_000,
        12,
        plain,
        YEAR,
        key=lambda n, c: f"DEVICE#{n // 40 * 104_729:x}#{day(START + n % 40 * DAY)}",
    ),
    allowed=ONE_ENTITY,
    traps={"A1": "days of a month", "A3": "the day comes after the device"},
)
large(
    "four years of log lines by day",
    "planted",
    Collections(1_400, 900, plain, YEAR, key=lambda n, c: day(START + n * DAY)),
    found=["A3"],
    allowed=ONE_ENTITY,
)
large(
    "heads and lines without a type",
    "planted",
    Collections(40_000, 15, two_kinds(False), YEAR, sort=tagged_sort),
    found=["A18"],
)
large(
    "heads and lines with their type",
    "clean",
    Collections(40_000, 15, two_kinds(True), YEAR, sort=tagged_sort),
)
large(
    "one document in fifty of 150 KB",
    "planted",
    Collections(30_000, 8, large_share(50, 150 * KB), YEAR),
    found=["A13"],
    allowed=ONE_ENTITY,
)
large(
    "one document in ten of 40 KB",
    "decoy",
    Collections(30_000, 8, large_share(10, 40 * KB), YEAR),
    allowed=ONE_ENTITY,
    traps={"A13": "40 KB are below 100"},
)
large(
    "customers and orders in half a gigabyte, without tags",
    "planted",
    Collections(40_000, 15, untagged, YEAR, key=lambda n, c: f"{c:016x}{n:x}"),
    found=["A2"],
    traps={"A1": "the ends of random texts"},
)
large(
    "pages of many books, without zeros",
    "planted",
    Collections(
        9_000, 120, page, YEAR, sort=lambda k, n, at: NUMBERS[n], key=lambda n, c: f"BOOK#{c:016x}"
    ),
    found=["E1"],
    allowed=ONE_ENTITY,
)
