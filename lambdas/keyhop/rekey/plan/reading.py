"""Read what a plan needs: a sample of the table, all items, the stream's readers, the write rate.

A sample consists of whole segments at random, so that all items are equally likely. A segment holds
whole item collections, whose items are alike. So the precision of a share depends on the number of
collections in the sample, not on the number of items.
"""

import hashlib
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.units import BLOCK_BYTES, FULL_PAGE_UNITS, UNITS_PER_BLOCK
from keyhop.dynamodb.values import Item, Key, distinct_bytes, has_values
from keyhop.errors import BudgetSpent
from keyhop.rekey.life_cycle.features import ClientOf
from keyhop.scan.reader import PageReader
from keyhop.scan.segments import MOST_SEGMENTS
from keyhop.streams.event_source import function_name

SEGMENTS = 64
"""The segments that are drawn: enough to show half of the spread between collections."""

PAGE_ITEMS = 500
PAGES_OF_A_SEGMENT = 4
"""The limit for a segment, as one collection may have a million items and fill the whole sample."""

DEFAULT_SAMPLE = 2_000
"""The number of items of a sample by default."""

HELD = 10_000
"""The hashes that are written together."""

MOST_READERS = 2
"""Readers of a shard at a time, beyond which DynamoDB Streams may throttle (AWS documentation)."""

OURS = ("Replicate", "CutOver")
"""Functions that a re-key adds to the readers of the stream. CutOver reads it for some seconds,
before it freezes writes, to find a key of each shard.
"""

DAY = timedelta(days=1)


def draw(
    reader: PageReader, count_wanted: int, chance: random.Random
) -> tuple[list[Item], float, bool]:
    """Draw about so many whole items, fewer if the budget is spent.

    Return the items, their approximate share of the table's items (1 for all items), and whether
    they are a fair sample: that of a table that reports no number of items yet, for six hours after
    its creation, is its beginning.
    """
    count = reader.source.item_count
    if count <= 2 * count_wanted:
        items, is_whole = _segment(reader, 0, 1, count_wanted * 2)
        share = 1.0 if is_whole else min(0.99, len(items) / max(count, len(items) + 1))
        return items, share, is_whole
    segments = min(MOST_SEGMENTS, max(SEGMENTS, round(count * SEGMENTS / count_wanted)))
    drawn_items: list[Item] = []
    read = 0
    for segment in chance.sample(range(segments), SEGMENTS):
        try:
            items, _ = _segment(reader, segment, segments, PAGES_OF_A_SEGMENT * PAGE_ITEMS)
        except BudgetSpent:
            break
        drawn_items += items
        read += 1
    return drawn_items, min(0.99, read / segments), True


def everything(reader: PageReader, ours: Key | None = None) -> Iterator[Item]:
    """Yield each item of the table but sentinels, once; pass on what the reader raises."""
    start = None
    while True:
        page = reader.read(0, 1, start, None, FULL_PAGE_UNITS)
        yield from (item for item in page.items if ours is None or not has_values(item, ours))
        if page.next is None:
            return
        start = page.next


def _segment(
    reader: PageReader, segment: int, segments: int, maximum: int
) -> tuple[list[Item], bool]:
    """Return a segment's items, and whether they are complete."""
    items: list[Item] = []
    start = None
    size = reader.source.mean_item_bytes or BLOCK_BYTES
    while True:
        limit = min(PAGE_ITEMS, maximum - len(items))
        units = min(FULL_PAGE_UNITS, UNITS_PER_BLOCK * (1 + limit * size / BLOCK_BYTES))
        try:
            page = reader.read(segment, segments, start, limit, units)
        except BudgetSpent:
            if not items:
                raise
            return items, False
        items += page.items
        if page.next is None:
            return items, True
        if len(items) >= maximum:
            return items, False
        start = page.next


class Tally:
    """Counts pairs of equal places by hashes, in a database on disk. Three items at one place are
    three pairs. A false pair occurs in one of 3,000 tables of 100 M items.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._held: list[tuple[int]] = []
        database.execute("CREATE TABLE places (hash INTEGER)")

    def add(self, place: Key) -> None:
        """Add a place, with its attributes in the order of the key."""
        digest = hashlib.sha256(b"".join(map(distinct_bytes, place.values()))).digest()
        self._held.append((int.from_bytes(digest[:8], signed=True),))
        if len(self._held) >= HELD:
            self._write()

    def pairs(self) -> int:
        """Return the number of pairs."""
        self._write()
        groups = self._database.execute(
            "SELECT COUNT(*) FROM places GROUP BY hash HAVING COUNT(*) > 1"
        )
        return sum(count * (count - 1) // 2 for (count,) in groups)

    def _write(self) -> None:
        self._database.executemany("INSERT INTO places VALUES (?)", self._held)
        self._held = []


@contextmanager
def tally() -> Iterator[Tally]:
    """Make a Tally whose files are removed afterwards."""
    with (
        TemporaryDirectory(prefix="keyhop-") as folder,
        closing(sqlite3.connect(Path(folder) / "places")) as database,
    ):
        # Nobody needs the file after a crash, and the sort must not fill the memory.
        for setting in ("journal_mode = OFF", "synchronous = OFF", "temp_store = FILE"):
            database.execute(f"PRAGMA {setting}")
        yield Tally(database)


@dataclass(frozen=True, slots=True)
class Readers:
    """The detected functions and EventBridge pipes that read a stream before a re-key, and why
    others are not. Programs that read it themselves (Kinesis Client Library) can never be detected.
    """

    functions: tuple[str, ...] = ()
    pipes: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()

    @property
    def during_cutover(self) -> tuple[str, ...]:
        """Return the names of all readers while CutOver reads the stream too."""
        return self.functions + self.pipes + OURS

    @property
    def are_too_many(self) -> bool:
        """Return whether DynamoDB may throttle some of them during a cutover."""
        return len(self.during_cutover) > MOST_READERS

    def to_json(self) -> dict[str, Any]:
        """Return the readers that were detected, and their number during a cutover."""
        return {**asdict(self), "during_cutover": len(self.during_cutover)}


def readers_of(client_of: ClientOf | None, stream: str) -> Readers:
    """Return the readers of a stream that is enabled."""
    if client_of is None:
        return Readers(unseen=("this database has no other services beside it",))
    functions: set[str] = set()
    pipes: set[str] = set()
    unseen = []
    try:
        pages = client_of("lambda").get_paginator("list_event_source_mappings")
        for mapping in pages.paginate(EventSourceArn=stream).search("EventSourceMappings[]"):
            functions.add(function_name(mapping["FunctionArn"]))
    except (BotoCoreError, ClientError) as error:
        unseen.append(f"functions: {type(error).__name__}")
    try:
        pages_of_pipes = (
            client_of("pipes").get_paginator("list_pipes").paginate(SourcePrefix=stream)
        )
        pipes = {pipe["Name"] for pipe in pages_of_pipes.search("Pipes[]")}
    except (BotoCoreError, ClientError) as error:
        unseen.append(f"EventBridge pipes: {type(error).__name__}")
    return Readers(tuple(sorted(functions)), tuple(sorted(pipes)), tuple(unseen))


def write_rate(client_of: ClientOf | None, table: Table) -> float | None:
    """Return the write units a second over the last day; None if they are not accessible."""
    if client_of is None:
        return None
    now = datetime.now(UTC)
    try:
        answer = client_of("cloudwatch").get_metric_statistics(
            Namespace="AWS/DynamoDB",
            MetricName="ConsumedWriteCapacityUnits",
            Dimensions=[{"Name": "TableName", "Value": table.bare_name}],
            StartTime=now - DAY,
            EndTime=now,
            Period=3600,
            Statistics=["Sum"],
        )
    except (BotoCoreError, ClientError):
        return None
    return float(sum(datapoint["Sum"] for datapoint in answer["Datapoints"])) / DAY.total_seconds()
