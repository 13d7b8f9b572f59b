"""A drain: items are moved off the last shards of a key, then readers stop reading these.

Each step reads in the metadata where the drain stands, and does what comes next (protocol.py); so
it can be killed anywhere, repeated, and done by two at once.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from threading import Lock
from typing import Any

from botocore.exceptions import ClientError

from keyhop.dynamodb.refusals import CHECK_FAILED, cancellations
from keyhop.dynamodb.values import TypedValue
from keyhop.errors import CannotStart
from keyhop.sharding.io.adder import folded
from keyhop.sharding.io.items import FENCE, Clause, absent, exists, typed
from keyhop.sharding.io.reader import MetadataExpired, Query
from keyhop.sharding.io.writer import CHECK, DELETE, Act, Part
from keyhop.sharding.key import protocol
from keyhop.sharding.key.counting import is_counter
from keyhop.sharding.key.pace import Pace
from keyhop.sharding.key.schema import ItemKey
from keyhop.sharding.key.shards import DRAINING, Phase, Shards
from keyhop.sharding.store.metadata import KeyMetadata, MetadataChanged
from keyhop.sharding.store.requests import Overtaken, is_throttled
from keyhop.sharding.table import ShardedTable

MOVERS = 8
"""Moves at the same moment; each costs four write units for each KB of the item (pace.py)."""
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

    shards: the metadata after it. moved: items that it has moved. begun: to be handed to the next
    step; so a drain that somebody calls off is not begun anew by itself.
    """

    action: Next
    shards: Shards
    seconds: float = 0.0
    moved: int = 0
    begun: bool = False


class Drain:
    """Drains of the keys of one table. threads: makes a pool of so many, of that name."""

    def __init__(
        self, table: ShardedTable, threads: Callable[[int, str], Executor] | None = None
    ) -> None:
        self._reader = table.reader
        self._writer = table.writer
        self._metadata = table.metadata
        self._requests = table.requests
        self._schema = table.schema
        self._threads = threads or ThreadPoolExecutor
        self._pacing = Lock()

    def step(
        self,
        key: Any,
        shards: int,
        seconds: float = 600.0,
        *,
        begun: bool = False,
        seen: tuple[int, float] | None = None,
    ) -> DrainStep:
        """One step towards `shards` shards; moves items for at most about `seconds`.

        begun: of the step before it. seen: its metadata's `last_updated`, and the seconds that were
        waited since, if another process has taken it. Raises CannotStart for a count that is not
        possible.
        """
        logical = typed(key)
        if shards < 1:
            raise CannotStart(f"A key has at least 1 shard; {shards} is not possible.")
        known = self._metadata.of(logical, fresh=True)
        if not known.registered:
            raise CannotStart("There is no shard metadata of this key: it was never written to.")
        if seen is not None and seen[0] == known.shards.last_updated:
            known = self._metadata.seen_elsewhere(logical, known, seen[1])
        try:
            step = self._next(logical, known, shards, seconds, begun)
        except MetadataChanged as lost:
            step = DrainStep(Next.AGAIN, lost.current.shards)
        return replace(step, begun=begun or step.shards.phase in DRAINING)

    def call_off(self, key: Any) -> DrainStep:
        """Stop a drain and use all shards again; items that were moved stay where they are."""
        logical = typed(key)
        known = self._metadata.of(logical, fresh=True)
        if known.shards.phase not in DRAINING:
            return DrainStep(Next.DONE, known.shards)
        now, left = self._requests.clock.time(), self._metadata.unsettled(known)
        try:
            if left <= 0:
                after = known.shards.reopened(now)
                return DrainStep(Next.DONE, self._metadata.change(logical, known, after).shards)
            if known.shards.called_off:
                return DrainStep(Next.WAIT, known.shards, seconds=left)
            # A mark, so that whoever is at it does not take the next step meanwhile.
            after = known.shards.to_be_called_off(now)
            known = self._metadata.change(logical, known, after)
            return DrainStep(Next.WAIT, known.shards, seconds=known.shards.settle)
        except MetadataChanged as lost:
            return DrainStep(Next.AGAIN, lost.current.shards)

    def _next(
        self, logical: TypedValue, known: KeyMetadata, shards: int, seconds: float, begun: bool
    ) -> DrainStep:
        phase, moved = known.shards.phase, 0
        if phase is Phase.STEADY and known.shards.number <= shards:
            return DrainStep(Next.DONE, known.shards)
        grew = known.shards.number > known.shards.before  # a drain that is done has lowered it
        if phase is Phase.STEADY and begun and grew:
            return DrainStep(Next.CALLED_OFF, known.shards)
        left = self._metadata.unsettled(known)
        if left > 0 and (phase is not Phase.MOVING or known.shards.called_off):
            return DrainStep(Next.WAIT, known.shards, seconds=left)
        now = self._requests.clock.time()
        if known.shards.called_off and phase in DRAINING:
            after = known.shards.reopened(now)
        elif phase is Phase.STEADY:
            after = known.shards.shrunk(shards, now)
        elif phase is Phase.MOVING:
            moved = self._move(logical, known, seconds)
            known = self._metadata.of(logical)
            if known.shards.phase is not Phase.MOVING or not self._is_empty(logical, known.shards):
                return DrainStep(Next.AGAIN, known.shards, moved=moved)
            left = self._metadata.unsettled(known)
            if left > 0:
                return DrainStep(Next.WAIT, known.shards, seconds=left, moved=moved)
            after = known.shards.advanced(now)
        elif phase is Phase.MOVED and not self._is_empty(logical, known.shards):
            after = known.shards.fenced_again(now)
        else:
            after = known.shards.advanced(now)
        known = self._metadata.change(logical, known, after)
        if known.shards.phase is Phase.STEADY and known.shards.number <= shards:
            return DrainStep(Next.DONE, known.shards, moved=moved)
        return DrainStep(Next.WAIT, known.shards, seconds=known.shards.settle, moved=moved)

    def _move(self, logical: TypedValue, known: KeyMetadata, seconds: float) -> int:
        """Move items until the shards are empty, the time is over, or the phase has ended."""
        clock = self._requests.clock
        ends = clock.monotonic() + seconds
        version = known.version
        pace = Pace(known.shards.writable)
        moved = 0
        with self._threads(MOVERS, "keyhop-move") as threads:
            for shard in protocol.drained(known.shards):
                after: TypedValue | None = None
                while clock.monotonic() < ends:
                    known = self._metadata.of(logical)
                    if known.version != version:
                        return moved
                    answer = self._page(logical, shard, after, PAGE_ITEMS)
                    jobs = [
                        threads.submit(self._move_one, logical, shard, item, version, pace, ends)
                        for item in answer["Items"]
                    ]
                    moved += sum([job.result() for job in jobs])
                    last = answer.get("LastEvaluatedKey")
                    if last is None:
                        break
                    after = last[self._schema.sort.name]
        return moved

    def _move_one(
        self,
        logical: TypedValue,
        shard: int,
        item: Mapping[str, TypedValue],
        version: str,
        pace: Pace,
        ends: float,
    ) -> bool:
        """Move one item, if it still is as it was read; one that is not will be met again."""
        schema = self._schema
        key = ItemKey(logical, item[schema.sort.name])
        place = self._writer.place_of(key)
        unchanged = exists(schema).and_(Clause("attribute_not_exists(#f)", {"#f": FENCE}))
        if FENCE in item:
            unchanged = Clause("#f = :f", {"#f": FENCE}, {":f": item[FENCE]})
        delete = (shard, DELETE, unchanged)
        put = Act("Put", {name: value for name, value in item.items() if name != FENCE})

        clock = self._requests.clock

        def attempt() -> bool:
            with self._pacing:
                wait = pace.turn(clock.monotonic())
            clock.sleep(wait)
            known, now = self._metadata.of(logical), clock.monotonic()
            if known.version != version or now >= min(known.expires, ends):
                raise MetadataExpired
            home = protocol.home(known.shards, place)
            parts = [(home, put, absent(schema)), delete]
            if is_counter(schema, item):  # which may have a part there already
                parts = [*folded(item, shard, home)]
            try:
                units = self._writer.together(key, parts)
            except ClientError as error:
                if is_throttled(error):
                    with self._pacing:
                        pace.throttled(clock.monotonic())
                codes = cancellations(error)
                if "TransactionConflict" in codes:
                    raise Overtaken from error
                if codes[:2] == [CHECK_FAILED, "None"]:
                    # Two were appended under one key: the lower shard's is the one that is shown.
                    self._delete_copy(key, home, delete)
                    return True
                if CHECK_FAILED in codes:
                    return False  # changed, deleted or moved since it was read
                raise
            with self._pacing:
                pace.moved(units)
            self._requests.usage.count(moves=1)
            return True

        try:
            return self._requests.patiently(attempt)
        except (MetadataExpired, Overtaken):
            return False

    def _delete_copy(self, key: ItemKey, kept: int, delete: Part) -> None:
        try:
            self._writer.together(key, [(kept, CHECK, exists(self._schema)), delete])
        except ClientError as error:
            if not cancellations(error):
                raise

    def _page(
        self, logical: TypedValue, shard: int, after: TypedValue | None, most: int
    ) -> dict[str, Any]:
        query = Query(logical, consistent=True)
        request = self._reader.request(query, shard, after)
        return self._requests.call("query", Limit=most, **request)

    def _is_empty(self, logical: TypedValue, shards: Shards) -> bool:
        return not any(
            self._page(logical, shard, None, 1)["Items"] for shard in protocol.drained(shards)
        )
