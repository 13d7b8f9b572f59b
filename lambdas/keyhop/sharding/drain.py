"""A drain: items are moved out of the last shards of a key, then readers stop reading these.

Each step reads the progress from the metadata, and performs the next action (protocol.py). So a
step can be killed at any point, repeated, or run by two processes at once.
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
from keyhop.sharding.key.policy import Pace
from keyhop.sharding.key.schema import ItemKey
from keyhop.sharding.key.shards import DRAINING, Phase, Shards
from keyhop.sharding.store.metadata import KeyMetadata, MetadataChanged
from keyhop.sharding.store.requests import Overtaken, is_throttled
from keyhop.sharding.table import ShardedTable

MOVERS = 8
"""Moves in parallel; each costs four write units for each KB of the item (policy.py)."""
PAGE_ITEMS = 100


class Next(StrEnum):
    """The next action of a drain."""

    WAIT = "wait"
    AGAIN = "again"
    DONE = "done"
    CALLED_OFF = "called off"


@dataclass(frozen=True, slots=True)
class DrainStep:
    """The result of one step, which has moved so many items. Wait `seconds` before the next one,
    and pass it `begun`, so that a drain that somebody cancels is not started again automatically.
    """

    action: Next
    shards: Shards
    seconds: float = 0.0
    moved: int = 0
    begun: bool = False


class Drain:
    """Drains keys of one table. threads: creates a thread pool with a size and a name."""

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
        """Take one step towards `shards` shards; move items for about `seconds` at most.

        `begun` is from the previous step, and `seen` has its `last_updated` and the seconds waited
        since then, if another process took it. Raises CannotStart for an invalid count.
        """
        logical = typed(key)
        if shards < 1:
            raise CannotStart(f"A key has at least 1 shard; {shards} is not possible.")
        record = self._metadata.of(logical, fresh=True)
        if not record.registered:
            raise CannotStart("This key has no shard metadata: it was never written to.")
        if seen is not None and seen[0] == record.shards.last_updated:
            record = self._metadata.seen_elsewhere(logical, record, seen[1])
        try:
            step = self._next(logical, record, shards, seconds, begun)
        except MetadataChanged as lost:
            step = DrainStep(Next.AGAIN, lost.current.shards)
        return replace(step, begun=begun or step.shards.phase in DRAINING)

    def call_off(self, key: Any) -> DrainStep:
        """Stop a drain and use all shards again; items that were moved remain where they are."""
        logical = typed(key)
        record = self._metadata.of(logical, fresh=True)
        if record.shards.phase not in DRAINING:
            return DrainStep(Next.DONE, record.shards)
        now, wait = self._requests.clock.time(), self._metadata.unsettled(record)
        try:
            if wait <= 0:
                after = record.shards.reopened(now)
                return DrainStep(Next.DONE, self._metadata.change(logical, record, after).shards)
            if record.shards.called_off:
                return DrainStep(Next.WAIT, record.shards, seconds=wait)
            # Marked as cancelled, so that a process that drains it takes no further step.
            after = record.shards.to_be_called_off(now)
            record = self._metadata.change(logical, record, after)
            return DrainStep(Next.WAIT, record.shards, seconds=record.shards.settle)
        except MetadataChanged as lost:
            return DrainStep(Next.AGAIN, lost.current.shards)

    def _next(
        self,
        logical: TypedValue,
        record: KeyMetadata,
        shards: int,
        seconds: float,
        was_started: bool,
    ) -> DrainStep:
        phase, move_count = record.shards.phase, 0
        if phase is Phase.STEADY and record.shards.number <= shards:
            return DrainStep(Next.DONE, record.shards)
        grew = record.shards.number > record.shards.before  # a finished drain has lowered it
        if phase is Phase.STEADY and was_started and grew:
            return DrainStep(Next.CALLED_OFF, record.shards)
        wait = self._metadata.unsettled(record)
        if wait > 0 and (phase is not Phase.MOVING or record.shards.called_off):
            return DrainStep(Next.WAIT, record.shards, seconds=wait)
        now = self._requests.clock.time()
        if record.shards.called_off and phase in DRAINING:
            after = record.shards.reopened(now)
        elif phase is Phase.STEADY:
            after = record.shards.shrunk(shards, now)
        elif phase is Phase.MOVING:
            move_count = self._move(logical, record, seconds)
            record = self._metadata.of(logical)
            if record.shards.phase is not Phase.MOVING or not self._is_empty(
                logical, record.shards
            ):
                return DrainStep(Next.AGAIN, record.shards, moved=move_count)
            wait = self._metadata.unsettled(record)
            if wait > 0:
                return DrainStep(Next.WAIT, record.shards, seconds=wait, moved=move_count)
            after = record.shards.advanced(now)
        elif phase is Phase.MOVED and not self._is_empty(logical, record.shards):
            after = record.shards.fenced_again(now)
        else:
            after = record.shards.advanced(now)
        record = self._metadata.change(logical, record, after)
        if record.shards.phase is Phase.STEADY and record.shards.number <= shards:
            return DrainStep(Next.DONE, record.shards, moved=move_count)
        return DrainStep(Next.WAIT, record.shards, seconds=record.shards.settle, moved=move_count)

    def _move(self, logical: TypedValue, record: KeyMetadata, seconds: float) -> int:
        """Move items until the shards are empty, the time is over, or the phase has ended."""
        clock = self._requests.clock
        ends = clock.monotonic() + seconds
        version = record.version
        pace = Pace(record.shards.writable)
        move_count = 0
        with self._threads(MOVERS, "keyhop-move") as threads:
            for shard in protocol.drained(record.shards):
                after: TypedValue | None = None
                while clock.monotonic() < ends:
                    record = self._metadata.of(logical)
                    if record.version != version:
                        return move_count
                    answer = self._page(logical, shard, after, PAGE_ITEMS)
                    jobs = [
                        threads.submit(self._move_one, logical, shard, item, version, pace, ends)
                        for item in answer["Items"]
                    ]
                    move_count += sum([job.result() for job in jobs])
                    last = answer.get("LastEvaluatedKey")
                    if last is None:
                        break
                    after = last[self._schema.sort.name]
        return move_count

    def _move_one(
        self,
        logical: TypedValue,
        shard: int,
        item: Mapping[str, TypedValue],
        version: str,
        pace: Pace,
        ends: float,
    ) -> bool:
        """Move one item, unless it has changed since it was read; then a later page has it."""
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
            record, now = self._metadata.of(logical), clock.monotonic()
            if record.version != version or now >= min(record.expires, ends):
                raise MetadataExpired
            home = protocol.home(record.shards, place)
            parts = [(home, put, absent(schema)), delete]
            if is_counter(schema, item):  # its target shard may already have a part
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
                    # Both were appended with one key. Queries return the lower shard's copy, so it
                    # is kept.
                    self._delete_copy(key, home, delete)
                    return True
                if CHECK_FAILED in codes:
                    return False  # changed, deleted or moved since it was read
                raise
            with self._pacing:
                pace.note_moved(units)
            self._requests.usage.count(moves=1)
            return True

        try:
            return self._requests.patiently(attempt)
        except (MetadataExpired, Overtaken):
            return False

    def _delete_copy(self, key: ItemKey, remaining: int, delete: Part) -> None:
        try:
            self._writer.together(key, [(remaining, CHECK, exists(self._schema)), delete])
        except ClientError as error:
            if not cancellations(error):
                raise

    def _page(
        self, logical: TypedValue, shard: int, after: TypedValue | None, limit: int
    ) -> dict[str, Any]:
        query = Query(logical, consistent=True)
        request = self._reader.request(query, shard, after)
        return self._requests.call("query", Limit=limit, **request)

    def _is_empty(self, logical: TypedValue, shards: Shards) -> bool:
        return not any(
            self._page(logical, shard, None, 1)["Items"] for shard in protocol.drained(shards)
        )
