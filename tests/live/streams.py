"""Checks of a table's stream: what a re-key concludes about the table from a record's arrival."""

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.live.fixtures import Fixture
from tests.live.report import Report, expect

ROUNDS = 10
KEYS = 20
ARRIVE_SECONDS = 60.0
"""The limit for the records of a round; a second is usual."""

PAUSE_SECONDS = 0.25
"""The pause between two reads of a shard; five reads a second are allowed."""

Arrival = tuple[str, int, int]
"""The shard of a record, its number, and the number that a read showed at its arrival."""


class Followed:
    """A table with a stream, and the stream's records from now on. `streams` is its client."""

    def __init__(self, client: Any, streams: Any, table: Fixture) -> None:
        self.client = client
        self.table = table
        self.streams = streams
        self.stream = client.describe_table(TableName=table.name)["Table"]["LatestStreamArn"]
        self._iterators: dict[str, str | None] = {}
        self.find_shards("LATEST")

    def find_shards(self, since: str) -> None:
        """Find new shards, and read them from `since` on, which is a ShardIteratorType."""
        more: dict[str, Any] = {}
        while True:
            page = self.streams.describe_stream(StreamArn=self.stream, **more)["StreamDescription"]
            for shard in page["Shards"]:
                name = shard["ShardId"]
                if name not in self._iterators:
                    self._iterators[name] = self.streams.get_shard_iterator(
                        StreamArn=self.stream, ShardId=name, ShardIteratorType=since
                    )["ShardIterator"]
            if "LastEvaluatedShardId" not in page:
                return
            more["ExclusiveStartShardId"] = page["LastEvaluatedShardId"]

    def records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Read all shards once; yield the shard and the image of each new record."""
        for name, iterator in self._iterators.items():
            if iterator is not None:
                page = self.streams.get_records(ShardIterator=iterator)
                self._iterators[name] = page.get("NextShardIterator")
                for record in page["Records"]:
                    if "NewImage" in record["dynamodb"]:
                        yield name, record["dynamodb"]["NewImage"]

    def read_number(self, image: dict[str, Any]) -> int:
        """Return the number that a strongly consistent read of the item shows."""
        key = {name: image[name] for name in ("pk", "sk")}
        response = self.client.get_item(TableName=self.table.name, Key=key, ConsistentRead=True)
        return int(response["Item"]["n"]["N"])


def check_streams(
    client: Any, streams: Any, table: Fixture, report: Report, pause: float = PAUSE_SECONDS
) -> None:
    """Make the checks on a table with pk and sk, both S, and no `n`; leave the table as it was."""
    arrivals: list[Arrival] = []

    def read() -> str:
        return compare_reads(Followed(client, streams, table), arrivals, pause)

    report.check("stream-looks", read, table.name)
    report.check("stream-order", lambda: order(arrivals), table.name)


def compare_reads(followed: Followed, arrivals: list[Arrival], pause: float) -> str:
    """Write items, read each one when its record arrives, and append this to `arrivals`."""
    keys = [{"pk": {"S": f"streamed {n}"}, "sk": {"S": "a"}} for n in range(KEYS)]
    try:
        for round_ in range(ROUNDS):
            for number, key in enumerate(keys, round_ * KEYS):
                item = {**key, "n": {"N": str(number)}}
                followed.client.put_item(TableName=followed.table.name, Item=item)
            _await_records(followed, arrivals, (round_ + 1) * KEYS, pause)
    finally:
        for key in keys:
            followed.client.delete_item(TableName=followed.table.name, Key=key)
    stale = [number for _, number, read in arrivals if read < number]
    expect(not stale, f"{len(stale)} of {len(arrivals)} strong reads were older than the record")
    return f"{len(arrivals)} records"


def _await_records(followed: Followed, arrivals: list[Arrival], count: int, pause: float) -> None:
    deadline = time.monotonic() + ARRIVE_SECONDS
    while len({number for _, number, _ in arrivals}) < count:
        expect(time.monotonic() < deadline, f"{len(arrivals)} of {count} records have come")
        for shard, image in followed.records():
            if "n" in image:
                arrivals.append((shard, int(image["n"]["N"]), followed.read_number(image)))
        time.sleep(pause)
        followed.find_shards("TRIM_HORIZON")


def order(arrivals: list[Arrival]) -> str:
    """Check that records arrive in order: each write was sent after the answer to the previous."""
    expect(arrivals, "no records have come")
    last: dict[str, int] = {}
    late = Counter[str]()
    for shard, number, _ in arrivals:
        late[shard] += number < last.get(shard, -1)
        last[shard] = max(number, last.get(shard, -1))
    expect(not late.total(), f"{late.total()} records came after later ones of their shard")
    return f"{len(last)} shards"
