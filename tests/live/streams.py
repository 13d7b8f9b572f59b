"""What a re-key relies on of a table's stream: what a record's delivery says of the table."""

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.live.fixtures import Fixture
from tests.live.report import Report, expect

ROUNDS = 10
KEYS = 20
ARRIVE_SECONDS = 60.0
"""For the records of a round; a second is usual."""

PAUSE_SECONDS = 0.25
"""Between two reads of a shard: five a second are allowed."""


class Followed:
    """A table whose stream is on, and its records from now on; streams: its stream's client."""

    def __init__(self, client: Any, streams: Any, table: Fixture) -> None:
        self.client = client
        self.table = table
        self.streams = streams
        self.stream = client.describe_table(TableName=table.name)["Table"]["LatestStreamArn"]
        self._iterators: dict[str, str | None] = {}
        self.find_shards("LATEST")

    def find_shards(self, since: str) -> None:
        """Those that are new are read from `since` on."""
        more: dict[str, Any] = {}
        while True:
            told = self.streams.describe_stream(StreamArn=self.stream, **more)
            for shard in told["StreamDescription"]["Shards"]:
                name = shard["ShardId"]
                if name not in self._iterators:
                    self._iterators[name] = self.streams.get_shard_iterator(
                        StreamArn=self.stream, ShardId=name, ShardIteratorType=since
                    )["ShardIterator"]
            if "LastEvaluatedShardId" not in told["StreamDescription"]:
                return
            more["ExclusiveStartShardId"] = told["StreamDescription"]["LastEvaluatedShardId"]

    def records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The shard and the image of each record that has come, once through all shards."""
        for name, at in self._iterators.items():
            if at is not None:
                told = self.streams.get_records(ShardIterator=at)
                self._iterators[name] = told.get("NextShardIterator")
                for record in told["Records"]:
                    if "NewImage" in record["dynamodb"]:
                        yield name, record["dynamodb"]["NewImage"]

    def look(self, image: dict[str, Any]) -> int:
        """What number a strong read of the item has now."""
        key = {name: image[name] for name in ("pk", "sk")}
        found = self.client.get_item(TableName=self.table.name, Key=key, ConsistentRead=True)
        return int(found["Item"]["n"]["N"])


def check_streams(
    client: Any, streams: Any, table: Fixture, report: Report, pause: float = PAUSE_SECONDS
) -> None:
    """Of a table with pk and sk, both S, whose items have no `n`: as it was, afterwards."""
    seen: list[tuple[str, int, int]] = []

    def look() -> str:
        return looks(Followed(client, streams, table), seen, pause)

    report.check("stream-looks", look, table.name)
    report.check("stream-order", lambda: order(seen), table.name)


def looks(followed: Followed, seen: list[tuple[str, int, int]], pause: float) -> str:
    """seen: takes up the shard of each record, its number, and what was read at its arrival."""
    keys = [{"pk": {"S": f"streamed {n}"}, "sk": {"S": "a"}} for n in range(KEYS)]
    try:
        for round_ in range(ROUNDS):
            for number, key in enumerate(keys, round_ * KEYS):
                item = {**key, "n": {"N": str(number)}}
                followed.client.put_item(TableName=followed.table.name, Item=item)
            _arrive(followed, seen, (round_ + 1) * KEYS, pause)
    finally:
        for key in keys:
            followed.client.delete_item(TableName=followed.table.name, Key=key)
    stale = [number for _, number, read in seen if read < number]
    expect(not stale, f"{len(stale)} of {len(seen)} strong reads were older than the record")
    return f"{len(seen)} records"


def _arrive(followed: Followed, seen: list[tuple[str, int, int]], count: int, pause: float) -> None:
    deadline = time.monotonic() + ARRIVE_SECONDS
    while len({number for _, number, _ in seen}) < count:
        expect(time.monotonic() < deadline, f"{len(seen)} of {count} records have come")
        for shard, image in followed.records():
            if "n" in image:
                seen.append((shard, int(image["n"]["N"]), followed.look(image)))
        time.sleep(pause)
        followed.find_shards("TRIM_HORIZON")


def order(seen: list[tuple[str, int, int]]) -> str:
    """Each write was sent when the one before had been answered."""
    expect(seen, "no records have come")
    last: dict[str, int] = {}
    late = Counter[str]()
    for shard, number, _ in seen:
        late[shard] += number < last.get(shard, -1)
        last[shard] = max(number, last.get(shard, -1))
    expect(not late.total(), f"{late.total()} records came after later ones of their shard")
    return f"{len(last)} shards"
