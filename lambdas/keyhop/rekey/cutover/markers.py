"""Markers, written into the table that serves and looked for in its stream (drain.py)."""

import random
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from keyhop.clock import Clock
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.values import Key, canonical, from_json, to_json
from keyhop.errors import CannotStart, GaveUp
from keyhop.rekey.control import Side
from keyhop.rekey.cutover.drain import keys_by_open_shard, random_key, uncovered
from keyhop.rekey.cutover.stream import StreamCalls
from keyhop.rekey.side.figures import MARKER_KEYS
from keyhop.rekey.side.layout import MARKER_ATTRIBUTE
from keyhop.rekey.side.table import SideTable
from keyhop.wording import counted

THREADS = 16
MOST_MARKERS = 3_000
"""To find a key of each shard. Of those of equal width, 300 are found so, for 9,000 write units."""

LOOKS = 8
LOOK_SECONDS = 0.25
PAGES = 4
LATE_SECONDS = 10.0
"""After which a request of somebody who is gone takes effect no more."""

REHEARSAL_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """shards: open ones of the stream. seconds: until each had shown a marker."""

    shards: int
    seconds: float


class Markers(StreamCalls):
    """Those of one table of a pair. The others are as of StreamCalls."""

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
        super().__init__(connection, table, streams, slows=False, **more)
        self._which = which
        self._side = side
        self._time = clock
        self._pool = pool
        self._chance = chance or random.SystemRandom()
        self._known: dict[str, Key] = {}

    # --- before writes are frozen ---

    def prepare(self) -> Rehearsal:
        """Find a key of each open shard, and see that the worker answers a marker of each.

        Raises CannotStart for a shard of which no key is found, GaveUp if the worker is too late.
        """
        self.sweep()
        self.locate()
        began = self._time.monotonic()
        markers = self.mark()
        while left := self.unseen(markers):
            if self._time.monotonic() - began > REHEARSAL_SECONDS:
                raise GaveUp(
                    f"Of {counted(len(markers), 'marker')}, one in each shard of the stream of "
                    f"{self._table!r}, {left} were not worked within {REHEARSAL_SECONDS:g} "
                    "seconds: is its function at work, and is its failure queue empty?"
                )
            self._time.sleep(LOOK_SECONDS)
        seconds = self._time.monotonic() - began
        self.forget(markers)
        return Rehearsal(len(markers), seconds)

    def locate(self) -> None:
        """Find a key of each open shard that has none yet; raises CannotStart."""
        self._known = self._told()
        written, hints = 0, False
        while missing := self._missing():
            if written >= MOST_MARKERS:
                raise CannotStart(
                    f"The stream of {self._table!r} has {counted(len(missing), 'shard')} in "
                    f"which no marker "
                    f"of {written} has shown, so nobody can tell when they are drained: they are "
                    "narrow. Try again after some hours, when shards have changed."
                )
            places = {shard: self._iterator(shard, "LATEST") for shard in missing}
            keys = self._hinted(missing) if hints else []
            # The wider ones are found soon; for a few that are left all keys have the same chance.
            count = min(400, written or max(8, 4 * len(missing)))
            keys += [random_key(self._space, self._chance) for _ in range(count)]
            written += len(keys)
            markers = self._write_all(keys)
            self._look_for(keys, places)
            self.forget(markers)
            hints = True
        known = {shard: to_json(key) for shard, key in self._known.items()}
        self._side.tell(f"{MARKER_KEYS} {self._which}", known)

    def sweep(self) -> None:
        """Remove what an attempt has left behind that was killed."""
        for marker, told in self._side.markers().items():
            if told.get("table") != self._table:
                continue
            if self._time.time() - told["at"] < LATE_SECONDS:
                continue
            self._delete_item(from_json(told["key"]), marker)
            self._side.drop_marker(marker)

    # --- while they are ---

    def mark(self) -> Sequence[str]:
        """Put a marker into each open shard; raises CannotStart if one has no key."""
        self._known = self._known or self._told()
        keys = keys_by_open_shard(self.shards(), self._known)
        if lacking := [shard for shard, key in keys.items() if key is None]:
            raise CannotStart(_SPLIT.format(len(lacking)))
        return self._write_all([key for key in keys.values() if key is not None])

    def unseen(self, markers: Sequence[str]) -> int:
        """Of how many the batch is not done yet."""
        told = self._side.markers()
        return sum("seen" not in told.get(marker, {}) for marker in markers)

    def check_shards(self) -> None:
        """Whether there was a marker in each shard that is open now; raises CannotStart."""
        if lacking := uncovered(self.shards(), self._known):
            raise CannotStart(_SPLIT.format(len(lacking)))

    def forget(self, markers: Iterable[str]) -> None:
        """They are not looked for any more."""
        self._each(self._side.drop_marker, markers)

    # --- requests ---

    def _told(self) -> dict[str, Key]:
        told = self._side.told(f"{MARKER_KEYS} {self._which}") or {}
        return {shard: from_json(key) for shard, key in told.items()}

    def _missing(self) -> list[str]:
        keys = keys_by_open_shard(self.shards(), self._known)
        return [shard for shard, key in keys.items() if key is None]

    def _write_all(self, keys: Sequence[Key]) -> list[str]:
        return list(self._each(self._one, keys))

    def _one(self, key: Key) -> str:
        """Noted first, so that a killed one is found; then put, and deleted at once."""
        marker = uuid.UUID(bytes=self._chance.randbytes(16)).hex
        told = {"table": self._table, "key": to_json(key), "at": self._time.time()}
        self._side.put_marker(marker, told)
        self._put_item(key, marker)
        self._delete_item(key, marker)
        return marker

    def _put_item(self, key: Key, marker: str) -> None:
        """In place of a marker of an earlier drain, whose put came after its delete: the key of a
        shard serves all drains.
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
        self._write(
            "delete_item",
            1.0,
            TableName=self._table,
            Key=key,
            ConditionExpression="#m = :marker",
            ExpressionAttributeNames={"#m": MARKER_ATTRIBUTE},
            ExpressionAttributeValues={":marker": {"S": marker}},
        )

    def _each(self, act: Callable[[Any], Any], given: Iterable[Any]) -> list[Any]:
        with self._pool(THREADS) as pool:
            return list(pool.map(act, given))

    # --- the stream ---

    def _look_for(self, keys: Sequence[Key], places: dict[str, str]) -> None:
        """Note which of the keys come in which of these shards."""
        wanted = {_frozen(key): key for key in keys}
        for _ in range(LOOKS):
            self._time.sleep(LOOK_SECONDS)
            for shard, place in list(places.items()):
                told = self._records(shard, place)
                for record in told["Records"]:
                    key = wanted.get(_frozen(record["dynamodb"]["Keys"]))
                    if key is not None:
                        self._known[shard] = key
                if shard in self._known or not told.get("NextShardIterator"):
                    del places[shard]
                else:
                    places[shard] = told["NextShardIterator"]
            if not places:
                return

    def _hinted(self, shards: Sequence[str]) -> list[Key]:
        """Keys beside such as have come in these shards; none in a table without a sort key."""
        space = self._space
        if space.sort is None:
            return []
        found = []
        for shard in shards:
            place = self._iterator(shard, "TRIM_HORIZON")
            for _ in range(PAGES):
                told = self._ask("get_records", ShardIterator=place, Limit=10)
                for record in told["Records"][:2]:
                    partition = space.partition_of(record["dynamodb"]["Keys"])
                    found.append(random_key(space, self._chance, partition))
                place = told.get("NextShardIterator")
                if told["Records"] or not place:
                    break
        return found


_SPLIT = (
    "{} shards of the stream have come of others that were split, so nobody can tell when they are "
    "drained: start again."
)


def _frozen(key: Key) -> frozenset[Any]:
    return frozenset((name, canonical(value)) for name, value in key.items())
