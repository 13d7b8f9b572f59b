"""A drain: items are moved off the last shards of a key, then readers stop reading these.

Each step reads in the metadata where the drain stands, and does what comes next (protocol.py); so
it can be killed anywhere, repeated, and done by two at once.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from botocore.exceptions import ClientError

from keyhop.dynamodb.values import TypedValue
from keyhop.errors import CannotStart
from keyhop.sharding.io.items import FENCE, Clause, ItemKey, physical_key, typed
from keyhop.sharding.io.query import MetadataExpired, Query, ShardCursor
from keyhop.sharding.io.writer import CHECK_FAILED
from keyhop.sharding.key import protocol
from keyhop.sharding.key.shards import DRAINING, Phase, Shards
from keyhop.sharding.store.metadata import KeyMetadata, Metadata, MetadataChanged
from keyhop.sharding.store.requests import Overtaken, Requests, cancellations
from keyhop.sharding.table import ShardedTable

MOVERS = 8
"""Moves at the same moment; each costs four write units for each KB of the item."""
PAGE_ITEMS = 100


class Next(StrEnum):
    """What a drain needs next."""

    WAIT = "wait"
    AGAIN = "again"
    DONE = "done"
    CALLED_OFF = "called off"


@dataclass(frozen=True, slots=True)
class DrainStep:
    """What one step has done, and what follows. seconds: how long to wait before the next.

    number, readable, phase: of the metadata, after it. moved: items that it has moved. begun: to
    be handed to the next step; so a drain that somebody calls off is not begun anew by itself.
    """

    action: Next
    phase: Phase
    number: int
    readable: int
    seconds: float = 0.0
    moved: int = 0
    begun: bool = False


class Drain:
    """Drains of the keys of one table."""

    def __init__(self, table: ShardedTable) -> None:
        self._table = table

    def step(
        self, key: Any, shards: int, seconds: float = 600.0, *, begun: bool = False
    ) -> DrainStep:
        """One step towards `shards` shards; moves items for at most about `seconds`.

        begun: of the step before it. Raises CannotStart for a count that is not
        possible.
        """
        step = self._step(key, shards, seconds, begun)
        return replace(step, begun=begun or step.phase in DRAINING)

    def call_off(self, key: Any) -> DrainStep:
        """Stop a drain and use all shards again; items that were moved stay where they are."""
        logical = typed(key)
        known = self._metadata.of(logical, fresh=True)
        if known.shards.phase not in DRAINING:
            return _step(Next.DONE, known)
        now, left = self._requests.clock.time(), self._seconds_left(known)
        try:
            if left <= 0:
                after = known.shards.reopened(now)
                return _step(Next.DONE, self._metadata.change(logical, known, after))
            if known.shards.called_off:
                return _step(Next.WAIT, known, seconds=left)
            # A mark, so that whoever is at it does not take the next step meanwhile.
            after = known.shards.to_be_called_off(now)
            known = self._metadata.change(logical, known, after)
            return _step(Next.WAIT, known, seconds=known.shards.settle)
        except MetadataChanged as lost:
            return _step(Next.AGAIN, lost.current)

    def _step(self, key: Any, shards: int, seconds: float, begun: bool) -> DrainStep:
        logical = typed(key)
        if shards < 1:
            raise CannotStart(f"A key has at least 1 shard; {shards} is not possible.")
        known = self._metadata.of(logical, fresh=True)
        if not known.registered:
            raise CannotStart("There is no shard metadata of this key: it was never written to.")
        phase = known.shards.phase
        if phase is Phase.STEADY and known.shards.number <= shards:
            return _step(Next.DONE, known)
        grew = known.shards.number > known.shards.before  # a drain that is done has lowered it
        if phase is Phase.STEADY and begun and grew:
            return _step(Next.CALLED_OFF, known)
        left = self._seconds_left(known)
        if left > 0 and phase is not Phase.MOVING:
            return _step(Next.WAIT, known, seconds=left)
        try:
            return self._go_on(logical, known, shards, seconds)
        except MetadataChanged as lost:
            return _step(Next.AGAIN, lost.current)

    def _go_on(
        self, logical: TypedValue, known: KeyMetadata, shards: int, seconds: float
    ) -> DrainStep:
        now = self._requests.clock.time()
        phase = known.shards.phase
        moved = 0
        if phase in DRAINING and known.shards.called_off:
            if self._seconds_left(known) > 0:
                return _step(Next.WAIT, known, seconds=known.shards.settle)
            after = known.shards.reopened(now)
        elif phase is Phase.STEADY:
            after = known.shards.shrunk(shards, now)
        elif phase is Phase.MOVING:
            moved = self._move(logical, known, seconds)
            known = self._metadata.of(logical)
            if known.shards.phase is not Phase.MOVING or not self._is_empty(logical, known.shards):
                return _step(Next.AGAIN, known, moved=moved)
            left = self._seconds_left(known)
            if left > 0:
                return _step(Next.WAIT, known, seconds=left, moved=moved)
            after = known.shards.advanced(now)
        elif phase is Phase.MOVED and not self._is_empty(logical, known.shards):
            after = known.shards.fenced_again(now)
        else:
            after = known.shards.advanced(now)
        known = self._metadata.change(logical, known, after)
        if known.shards.phase is Phase.STEADY and known.shards.number <= shards:
            return _step(Next.DONE, known, moved=moved)
        return _step(Next.WAIT, known, seconds=known.shards.settle, moved=moved)

    @property
    def _requests(self) -> Requests:
        return self._table.requests

    @property
    def _metadata(self) -> Metadata:
        return self._table.metadata

    def _seconds_left(self, known: KeyMetadata) -> float:
        """Until the metadata has been seen unchanged for long enough to be changed."""
        return known.shards.settle - self._metadata.known_for(known)

    def _move(self, logical: TypedValue, known: KeyMetadata, seconds: float) -> int:
        """Move items until the shards are empty, the time is over, or the phase has ended."""
        clock = self._requests.clock
        ends = clock.monotonic() + seconds
        version = known.version
        moved = 0
        with ThreadPoolExecutor(MOVERS, "keyhop-move") as threads:
            for shard in protocol.drained(known.shards):
                after: TypedValue | None = None
                while clock.monotonic() < ends:
                    known = self._metadata.of(logical)
                    if known.version != version:
                        return moved
                    answer = self._page(logical, shard, after)
                    jobs = [
                        threads.submit(self._move_one, logical, shard, item, version)
                        for item in answer["Items"]
                    ]
                    moved += sum([job.result() for job in jobs])
                    last = answer.get("LastEvaluatedKey")
                    if last is None:
                        break
                    after = last[self._table.schema.sort.name]
        return moved

    def _move_one(
        self, logical: TypedValue, shard: int, item: Mapping[str, TypedValue], version: str
    ) -> bool:
        """Move one item, if it still is as it was read; one that is not will be met again."""
        schema, table = self._table.schema, self._table.name
        key = ItemKey(logical, item[schema.sort.name])
        place = self._table.writer.place_of(key)
        unchanged = schema.exists.and_(Clause("attribute_not_exists(#f)", {"#f": FENCE}))
        if FENCE in item:
            unchanged = Clause("#f = :f", {"#f": FENCE}, {":f": item[FENCE]})
        source = physical_key(schema, key, shard)
        delete = {"Delete": {"TableName": table, "Key": source, **unchanged.parameters()}}
        content = {name: value for name, value in item.items() if name != FENCE}

        def attempt() -> bool:
            known = self._metadata.of(logical)
            if known.version != version or self._requests.clock.monotonic() >= known.expires:
                raise MetadataExpired
            target = physical_key(schema, key, protocol.home(known.shards, place))
            put = {"TableName": table, "Item": {**content, **target}, **schema.absent.parameters()}
            try:
                self._transact({"Put": put}, delete)
            except ClientError as error:
                codes = cancellations(error)
                if "TransactionConflict" in codes:
                    raise Overtaken from error
                if codes[:2] == [CHECK_FAILED, "None"]:
                    # Two were appended under one key: the lower shard's is the one that is shown.
                    self._delete_copy(target, delete)
                    return True
                if CHECK_FAILED in codes:
                    return False  # changed, deleted or moved since it was read
                raise
            self._requests.usage.count(moves=1)
            return True

        try:
            return self._requests.patiently(attempt)
        except (MetadataExpired, Overtaken):
            return False

    def _delete_copy(self, kept: dict[str, Any], delete: dict[str, Any]) -> None:
        try:
            self._transact(self._table.schema.exists.checked(self._table.name, kept), delete)
        except ClientError as error:
            if not cancellations(error):
                raise

    def _transact(self, *items: dict[str, Any]) -> None:
        self._requests.once("transact_write_items", TransactItems=list(items))

    def _page(
        self,
        logical: TypedValue,
        shard: int,
        after: TypedValue | None = None,
        most: int = PAGE_ITEMS,
    ) -> dict[str, Any]:
        query = Query(logical, consistent=True)
        request = self._table.reader.request(query, ShardCursor(shard, after))
        return self._requests.call("query", Limit=most, **request)

    def _is_empty(self, logical: TypedValue, shards: Shards) -> bool:
        return not any(
            self._page(logical, shard, most=1)["Items"] for shard in protocol.drained(shards)
        )


def _step(action: Next, known: KeyMetadata, seconds: float = 0.0, moved: int = 0) -> DrainStep:
    shards = known.shards
    return DrainStep(action, shards.phase, shards.number, shards.readable, seconds, moved)
