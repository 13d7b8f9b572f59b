"""Prove by markers that the worker has processed all writes to the serving table.

A *marker* is an item with a random key that is put into that table and deleted at once. Its record
is in a shard of the table's stream, after all earlier writes of that shard (A4: within a shard the
order of publication is that of the commits). The worker has one batch of a shard at a time, and
records a marker when its batch has finished. So once each open shard has returned a marker that was
put after the last write, nothing remains. Stream positions would not prove that: a shard without
new records looks the same as a shard with a record that is not published yet.

The shard of a key's records is determined before writes are frozen, and does not change: records of
one item come in order, so in one shard and, when that is closed, in one of its children (AWS
documentation, "How DynamoDB Streams works"). A closed shard is processed before its children.
"""

import random
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from keyhop.clock import Clock
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.own_table import OwnTable
from keyhop.dynamodb.refusals import error_code
from keyhop.dynamodb.schema import KeyAttribute, KeySpace, keyspace_of
from keyhop.dynamodb.values import Key, TypedValue, canonical, from_json, to_json
from keyhop.errors import AwsRefused, CannotStart, GaveUp
from keyhop.rekey.control import Side
from keyhop.rekey.side.layout import MARKER_ATTRIBUTE, MARKER_KEYS
from keyhop.rekey.side.table import SideTable
from keyhop.wording import counted

KEY_PREFIX = "keyhop-rekey-marker-"
RANDOM_BYTES = 16
NUMBER_DIGITS = 37


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard of a stream; `parent` is empty if it has no parent, or the parent is trimmed."""

    id: str
    parent: str = ""
    is_open: bool = True

    @classmethod
    def of(cls, description: Mapping[str, Any]) -> "Shard":
        """Return the shard of a description by DescribeStream."""
        is_open = "EndingSequenceNumber" not in description.get("SequenceNumberRange", {})
        return cls(description["ShardId"], description.get("ParentShardId", ""), is_open)


def keys_by_open_shard(
    shards: Sequence[Shard], keys_by_shard: Mapping[str, Key]
) -> dict[str, Key | None]:
    """Return a key whose records come to each open shard; None for a shard without such a key.

    `keys_by_shard` has keys by the shard in which a record was seen. An only child has its parent's
    keys; for two children it is unclear which one has them.
    """
    parents = {shard.id: shard.parent for shard in shards}
    children = Counter(shard.parent for shard in shards)

    def key_of(shard: str) -> Key | None:
        while shard not in keys_by_shard:
            parent = parents.get(shard, "")
            if not parent or children[parent] > 1:
                return None
            shard = parent
        return keys_by_shard[shard]

    return {shard.id: key_of(shard.id) for shard in shards if shard.is_open}


def uncovered(shards: Sequence[Shard], marked: Collection[str]) -> list[str]:
    """Return the open shards that had no marker, if one was put for each shard of `marked`."""
    keys = keys_by_open_shard(shards, {shard: {} for shard in marked})
    return [shard for shard, key in keys.items() if key is None]


def random_key(space: KeySpace, chance: random.Random, partition: Key | None = None) -> Key:
    """Return a random primary key, with the given partition key if the table has a sort key."""
    values = {attribute.name: _random_value(attribute, chance) for attribute in space.attributes}
    return {**values, **(partition or {})}


def _random_value(attribute: KeyAttribute, chance: random.Random) -> TypedValue:
    content = chance.randbytes(RANDOM_BYTES)
    if attribute.type == "N":
        return {"N": str(-chance.randrange(10 ** (NUMBER_DIGITS - 1), 10**NUMBER_DIGITS))}
    if attribute.type == "B":
        return {"B": KEY_PREFIX.encode() + content}
    return {"S": KEY_PREFIX + content.hex()}


TRIMMED = "TrimmedDataAccessException"
TOO_MANY_READERS = "LimitExceededException"
"""DynamoDB Streams throttles with this error if more than two processes read a shard at once."""


THREADS = 16
MOST_MARKERS = 3_000
"""The most markers that are written to find a key of each shard. For shards of equal width, this
finds keys of 300 shards, for 9,000 write units.
"""

LOOKS = 8
LOOK_SECONDS = 0.25
PAGES = 4
LATE_SECONDS = 10.0
"""The time after which a request of a process that was killed can no longer take effect."""

REHEARSAL_SECONDS = 20.0


class Markers(OwnTable):
    """The markers of one table of a pair. `streams` is boto3's client `dynamodbstreams`, and the
    remaining arguments are those of ItemCalls.
    """

    def __init__(
        self,
        connection: Connection,
        table: str,
        which: Side,
        side: SideTable,
        streams: Any,
        clock: Clock,
        *,
        chance: random.Random | None = None,
        pool: Callable[[int], Executor] = ThreadPoolExecutor,
        **more: Any,
    ) -> None:
        super().__init__(connection, table, slows=False, **more)
        self._streams = replace(
            self._requester,
            client=streams,
            service="DynamoDB Streams",
            throttling_codes=frozenset({TOO_MANY_READERS}),
        )
        self._described: dict[str, Any] = {}
        self._which = which
        self._side = side
        self._time = clock
        self._pool = pool
        self._chance = chance or random.SystemRandom()
        self._known: dict[str, Key] = {}

    # --- before writes are frozen ---

    def prepare(self) -> tuple[int, float]:
        """Find a key of each open shard, and check that the worker answers a marker in each. Raise
        CannotStart if a shard has no known key, or GaveUp if the worker takes too long.

        Return the number of open shards, and the seconds until all have returned a marker.
        """
        self.sweep()
        self.locate()
        began = self._time.monotonic()
        markers = self.mark()
        while unseen := self.unseen(markers):
            if self._time.monotonic() - began > REHEARSAL_SECONDS:
                raise GaveUp(
                    f"Of {counted(len(markers), 'marker')}, one in each shard of the stream of "
                    f"{self._table!r}, {unseen} were not worked within {REHEARSAL_SECONDS:g} "
                    "seconds: is its function running, and is its failure queue empty?"
                )
            self._time.sleep(LOOK_SECONDS)
        seconds = self._time.monotonic() - began
        self.forget(markers)
        return len(markers), seconds

    def locate(self) -> None:
        """Find a key of each open shard that has none yet, or raise CannotStart."""
        self._known = self._recorded_keys()
        written, hints = 0, False
        while missing := self._missing():
            if written >= MOST_MARKERS:
                raise CannotStart(
                    f"The stream of {self._table!r} has {counted(len(missing), 'shard')} in which "
                    f"no marker of {written} has appeared, so it is not known when they are "
                    "drained: they are narrow. Try again after some hours, when shards have "
                    "changed."
                )
            places = {shard: self._iterator(shard, "LATEST") for shard in missing}
            keys = self._hinted(missing) if hints else []
            # The wide shards are found soon; for the few remaining ones any key is as good.
            count = min(400, written or max(8, 4 * len(missing)))
            keys += [random_key(self._space, self._chance) for _ in range(count)]
            written += len(keys)
            markers = self._write_all(keys)
            self._look_for(keys, places)
            self.forget(markers)
            hints = True
        keys_by_shard = {shard: to_json(key) for shard, key in self._known.items()}
        self._side.tell(f"{MARKER_KEYS} {self._which}", keys_by_shard)

    def sweep(self) -> None:
        """Delete the markers of an attempt that was killed."""
        for marker, details in self._side.markers().items():
            if details.get("table") != self._table:
                continue
            if self._time.time() - details["at"] < LATE_SECONDS:
                continue
            self._delete_item(from_json(details["key"]), marker)
            self._side.drop_marker(marker)

    # --- while they are ---

    def mark(self) -> Sequence[str]:
        """Put a marker into each open shard, or raise CannotStart if one has no key."""
        self._known = self._known or self._recorded_keys()
        keys = keys_by_open_shard(self.shards(), self._known)
        if lacking := [shard for shard, key in keys.items() if key is None]:
            raise CannotStart(_SPLIT.format(len(lacking)))
        return self._write_all([key for key in keys.values() if key is not None])

    def unseen(self, markers: Sequence[str]) -> int:
        """Return the number of markers whose batch has not finished yet."""
        markers_by_name = self._side.markers()
        return sum("seen" not in markers_by_name.get(marker, {}) for marker in markers)

    def check_shards(self) -> None:
        """Raise CannotStart if a shard that is open now has not had a marker."""
        if lacking := uncovered(self.shards(), self._known):
            raise CannotStart(_SPLIT.format(len(lacking)))

    def forget(self, markers: Iterable[str]) -> None:
        """Delete the records of markers that are no longer needed."""
        self._each(self._side.drop_marker, markers)

    # --- requests ---

    def _recorded_keys(self) -> dict[str, Key]:
        figure = self._side.told(f"{MARKER_KEYS} {self._which}") or {}
        return {shard: from_json(key) for shard, key in figure.items()}

    def _missing(self) -> list[str]:
        keys = keys_by_open_shard(self.shards(), self._known)
        return [shard for shard, key in keys.items() if key is None]

    def _write_all(self, keys: Sequence[Key]) -> list[str]:
        return list(self._each(self._one, keys))

    def _one(self, key: Key) -> str:
        """Record a marker, in case this process is killed; then put it and delete it."""
        marker = uuid.UUID(bytes=self._chance.randbytes(16)).hex
        details = {"table": self._table, "key": to_json(key), "at": self._time.time()}
        self._side.put_marker(marker, details)
        self._put_item(key, marker)
        self._delete_item(key, marker)
        return marker

    def _put_item(self, key: Key, marker: str) -> None:
        """Put a marker, possibly over one of an earlier drain whose put came after its delete, as
        all drains use the same key for a shard.
        """
        written = self._write(
            "put_item",
            1.0,
            TableName=self._table,
            Item={**key, MARKER_ATTRIBUTE: {"S": marker}},
            ConditionExpression="attribute_not_exists(#p) OR attribute_exists(#m)",
            ExpressionAttributeNames={"#p": next(iter(key)), "#m": MARKER_ATTRIBUTE},
        )
        assert written.refused is None, "a random key is there already"

    def _delete_item(self, key: Key, marker: str) -> None:
        self.delete_if(key, {MARKER_ATTRIBUTE: {"S": marker}})

    def _each(self, act: Callable[[Any], Any], arguments: Iterable[Any]) -> list[Any]:
        with self._pool(THREADS) as pool:
            return list(pool.map(act, arguments))

    # --- the stream ---

    @property
    def stream(self) -> str:
        """Return the ARN of the stream, or raise CannotStart if the table has none."""
        arn = self._table_described.get("LatestStreamArn")
        if not arn:
            raise CannotStart(f"Table {self._table!r} has no stream: start turns it on.")
        return str(arn)

    @property
    def _space(self) -> KeySpace:
        return keyspace_of(self._table_described)

    @property
    def _table_described(self) -> Mapping[str, Any]:
        if not self._described:
            self._described = self._requester.call("describe_table", TableName=self._table)["Table"]
        return self._described

    def shards(self) -> list[Shard]:
        """Return all shards that the stream still has."""
        shards: list[Shard] = []
        start: dict[str, Any] = {}
        while True:
            description = self._ask("describe_stream", StreamArn=self.stream, **start)[
                "StreamDescription"
            ]
            shards += map(Shard.of, description["Shards"])
            if "LastEvaluatedShardId" not in description:
                return shards
            start = {"ExclusiveStartShardId": description["LastEvaluatedShardId"]}

    def _records(self, shard: str, place: str) -> Any:
        try:
            return self._ask("get_records", ShardIterator=place)
        except AwsRefused as error:
            if error_code(error.__cause__ or error) != TRIMMED:
                raise
            # The record of the iterator is gone; DynamoDB Local says so in an empty shard as well.
            place = self._iterator(shard, "TRIM_HORIZON")
            return self._ask("get_records", ShardIterator=place)

    def _iterator(self, shard: str, kind: str) -> str:
        answer = self._ask(
            "get_shard_iterator", StreamArn=self.stream, ShardId=shard, ShardIteratorType=kind
        )
        return str(answer["ShardIterator"])

    def _ask(self, operation: str, **parameters: Any) -> Any:
        return self._streams.call(operation, **parameters)

    def _look_for(self, keys: Sequence[Key], places: dict[str, str]) -> None:
        """Record which of the keys appear in which of these shards."""
        keys_by_content = {_frozen(key): key for key in keys}
        for _ in range(LOOKS):
            self._time.sleep(LOOK_SECONDS)
            for shard, place in list(places.items()):
                page = self._records(shard, place)
                for record in page["Records"]:
                    key = keys_by_content.get(_frozen(record["dynamodb"]["Keys"]))
                    if key is not None:
                        self._known[shard] = key
                if shard in self._known or not page.get("NextShardIterator"):
                    del places[shard]
                else:
                    places[shard] = page["NextShardIterator"]
            if not places:
                return

    def _hinted(self, shards: Sequence[str]) -> list[Key]:
        """Return keys beside those of records in these shards; none without a sort key."""
        space = self._space
        if space.sort is None:
            return []
        keys = []
        for shard in shards:
            place = self._iterator(shard, "TRIM_HORIZON")
            for _ in range(PAGES):
                page = self._ask("get_records", ShardIterator=place, Limit=10)
                for record in page["Records"][:2]:
                    partition = space.partition_of(record["dynamodb"]["Keys"])
                    keys.append(random_key(space, self._chance, partition))
                place = page.get("NextShardIterator")
                if page["Records"] or not place:
                    break
        return keys


_SPLIT = (
    "{} shards of the stream were made by a split of other shards, so it is not known when they "
    "are drained: start again."
)


def _frozen(key: Key) -> frozenset[Any]:
    return frozenset((name, canonical(value)) for name, value in key.items())
