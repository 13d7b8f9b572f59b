"""A re-key without a cloud: two tables, their side table, and their streams, read by the tests."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any

import boto3
from keyhop.dynamodb.client import Connection, connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.values import Key
from keyhop.rekey.control import Control, Direction
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.table import SideTable, table_request
from keyhop.rekey.transform import Transform, key_text
from keyhop.rekey.worker.replicate import Replicator
from keyhop.streams.dead_letters import as_event
from keyhop.template import Unmappable

from testing.databases import BY_DAY, Database
from testing.rekey_owned import Owned
from testing.servers import LOCAL_CREDENTIALS

Record = Mapping[str, Any]


class Moments(Event):
    """A clock that advances only while somebody waits on it; as an event, it is never set."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000.0
        self.waits: list[float] = []
        self.on_wait: Callable[[float], object] = lambda seconds: None

    def wait(self, timeout: float | None = None) -> bool:
        self.on_wait(timeout or 0.0)
        self.waits.append(timeout or 0.0)
        self.now += timeout or 0.0
        return False


@dataclass
class World:
    """A pair in one database, whose stream records have the creation time `epoch`, if it is set."""

    database: Database
    name: str
    transform: Transform = field(default_factory=Owned)
    moments: Moments = field(default_factory=Moments)
    epoch: float | None = None
    positions: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pair = Pair(f"{self.name}-source", f"{self.name}-to", {})
        self.client = self.database.client
        stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
        for table, key in ((self.pair.source, "id"), (self.pair.destination, "pk")):
            index: dict[str, Any] = BY_DAY if key == "pk" else {}
            self.database.create(table, (key, "S"), None, StreamSpecification=stream, **index)
        self.client.create_table(**table_request(self.pair.side))
        self.connection = replace(
            connect(Endpoint(url=self.database.url)), clock=lambda: self.moments.now
        )
        self.side = SideTable(self.connection, self.pair.side, stop=self.moments, now=self.time)
        self.side.swap(None, Control(replicating=True))
        self.streams = boto3.client(
            "dynamodbstreams", endpoint_url=self.database.url, **LOCAL_CREDENTIALS
        )

    def time(self) -> float:
        """Return the creation time of records, in seconds since 1970."""
        return self.moments.now if self.epoch is None else self.epoch

    def replicator(
        self,
        direction: Direction = "forward",
        connection_of: Callable[[str], Connection] | None = None,
        **more: Any,
    ) -> Replicator:
        return Replicator(
            self.pair,
            direction,
            self.transform,
            connection_of or (lambda name: self.connection),
            now=self.time,
            **{"stop": self.moments, **more},
        )

    def put(self, id_: str, to: str | None = None, **more: str) -> None:
        values = {"id": id_, **({} if to is None else {"to": to}), **more}
        item = {name: {"S": value} for name, value in values.items()}
        self.client.put_item(TableName=self.pair.source, Item=item)

    def delete(self, id_: str) -> None:
        self.client.delete_item(TableName=self.pair.source, Key={"id": {"S": id_}})

    def records(self, direction: Direction = "forward") -> list[Record]:
        """Return the stream records that were written since the last call."""
        table = self.pair.source if direction == "forward" else self.pair.destination
        arn = self.client.describe_table(TableName=table)["Table"]["LatestStreamArn"]
        records: list[Record] = []
        described = self.streams.describe_stream(StreamArn=arn)["StreamDescription"]
        for shard in sorted(shard["ShardId"] for shard in described["Shards"]):
            start = {"ShardIteratorType": "TRIM_HORIZON"}
            if last := self.positions.get(shard):
                start = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": last}
            iterator = self.streams.get_shard_iterator(StreamArn=arn, ShardId=shard, **start)
            page = self.streams.get_records(ShardIterator=iterator["ShardIterator"])["Records"]
            for record in page:
                event = as_event(record, arn)
                event["dynamodb"]["ApproximateCreationDateTime"] = self.time()
                records.append(event)
                self.positions[shard] = record["dynamodb"]["SequenceNumber"]
        return records

    def items(self, table: str) -> list[dict[str, Any]]:
        page = self.client.scan(TableName=table, ConsistentRead=True)
        return sorted(page["Items"], key=lambda item: key_text({k: item[k] for k in item}))

    @property
    def expected(self) -> list[dict[str, Any]]:
        """The images of the source's items, which the destination should have."""
        images = (self._image(item) for item in self.items(self.pair.source))
        return sorted((image for image in images if image), key=key_text)

    def _image(self, item: Key) -> Any:
        try:
            return self.transform.forward(item)
        except Unmappable:
            return None

    @property
    def actual(self) -> list[dict[str, Any]]:
        return self.items(self.pair.destination)

    def check(self) -> None:
        """Check that each place has one of its items, and that the others have claims."""
        expected: dict[str, list[dict[str, Any]]] = {}
        for item in self.expected:
            expected.setdefault(item["pk"]["S"], []).append(item)
        actual = {item["pk"]["S"]: item for item in self.actual}
        assert actual.keys() == expected.keys()
        assert all(item in expected[place] for place, item in actual.items())
        contended = {place for place, items in expected.items() if len(items) > 1}
        assert {claim.place["pk"]["S"] for claim in self.side.claims("forward")} == contended


def batches(records: Sequence[Record], size: int) -> Iterator[Sequence[Record]]:
    for start in range(0, len(records), size):
        yield records[start : start + size]
