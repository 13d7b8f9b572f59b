"""A drain: items are moved off the last shards of a key, then readers stop reading these.

Each step asks the metadata where the drain stands, and does what comes next (protocol.py); so it
can be killed anywhere, repeated, and done by two at once.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from keyhop.dynamodb.values import TypedValue
from keyhop.errors import CannotStart
from keyhop.sharding import counts, protocol
from keyhop.sharding.calls import Again, cancellations
from keyhop.sharding.items import FENCE, ItemKey, physical_key, typed
from keyhop.sharding.metadata import Known, Lost
from keyhop.sharding.parts import Stale
from keyhop.sharding.shards import DRAINING, Phase, Shards

if TYPE_CHECKING:
    from keyhop.sharding.table import ShardedTable

MOVERS = 8
"""Moves at the same moment; each costs four write units for each KB of the item."""
PAGE_ITEMS = 100

_REFUSED = "ConditionalCheckFailed"


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

    def __init__(self, table: "ShardedTable") -> None:
        self._table = table

    def step(
        self, key: Any, shards: int, seconds: float = 600.0, *, begun: bool = False
    ) -> DrainStep:
        """One step towards `shards` shards; moves items for at most about `seconds`.

        begun: what the step before it has told. Raises CannotStart for a count that is not
        possible.
        """
        told = self._step(key, shards, seconds, begun)
        return replace(told, begun=begun or told.phase in DRAINING)

    def _step(self, key: Any, shards: int, seconds: float, begun: bool) -> DrainStep:
        logical = typed(key)
        if shards < 1:
            raise CannotStart(f"A key has at least 1 shard; {shards} is not possible.")
        metadata = self._table.metadata
        known = metadata.of(logical, fresh=True)
        if not known.registered:
            raise CannotStart("There is no shard metadata of this key: it was never written to.")
        left = known.shards.settle - metadata.known_for(known)
        if known.shards.phase is Phase.STEADY and known.shards.number <= shards:
            return _told(Next.DONE, known)
        grew = known.shards.number > known.shards.before  # a drain that is done has lowered it
        if known.shards.phase is Phase.STEADY and begun and grew:
            return _told(Next.CALLED_OFF, known)
        if left > 0 and known.shards.phase is not Phase.MOVING:
            return _told(Next.WAIT, known, seconds=left)
        try:
            return self._go_on(logical, known, shards, seconds)
        except Lost as lost:
            return _told(Next.AGAIN, lost.current)

    def call_off(self, key: Any) -> DrainStep:
        """Stop a drain and use all shards again; items that were moved stay where they are."""
        logical = typed(key)
        known = self._table.metadata.of(logical, fresh=True)
        if known.shards.phase not in DRAINING:
            return _told(Next.DONE, known)
        now = self._table.calls.clock.time()
        left = known.shards.settle - self._table.metadata.known_for(known)
        try:
            if not known.shards.called_off and left > 0:
                # A mark, so that whoever is at it does not take the next step meanwhile.
                after = known.shards.to_be_called_off(now)
                known = self._table.metadata.change(logical, known, after)
                return _told(Next.WAIT, known, seconds=known.shards.settle)
            if left > 0:
                return _told(Next.WAIT, known, seconds=left)
            after = known.shards.reopened(now)
            return _told(Next.DONE, self._table.metadata.change(logical, known, after))
        except Lost as lost:
            return _told(Next.AGAIN, lost.current)

    def _go_on(self, logical: TypedValue, known: Known, shards: int, seconds: float) -> DrainStep:
        now = self._table.calls.clock.time()
        phase = known.shards.phase
        moved = 0
        if phase in DRAINING and known.shards.called_off:
            if self._table.metadata.known_for(known) < known.shards.settle:
                return _told(Next.WAIT, known, seconds=known.shards.settle)
            after = known.shards.reopened(now)
        elif phase is Phase.STEADY:
            after = known.shards.shrunk(shards, now)
        elif phase is Phase.MOVING:
            moved = self._move(logical, known, seconds)
            known = self._table.metadata.of(logical)
            if known.shards.phase is not Phase.MOVING or not self._is_empty(logical, known.shards):
                return _told(Next.AGAIN, known, moved=moved)
            left = known.shards.settle - self._table.metadata.known_for(known)
            if left > 0:
                return _told(Next.WAIT, known, seconds=left, moved=moved)
            after = known.shards.advanced(now)
        elif phase is Phase.MOVED and not self._is_empty(logical, known.shards):
            after = known.shards.fenced_again(now)
        else:
            after = known.shards.advanced(now)
        known = self._table.metadata.change(logical, known, after)
        if known.shards.phase is Phase.STEADY and known.shards.number <= shards:
            return _told(Next.DONE, known, moved=moved)
        return _told(Next.WAIT, known, seconds=known.shards.settle, moved=moved)

    def _move(self, logical: TypedValue, known: Known, seconds: float) -> int:
        """Move items until the shards are empty, the time is over, or the phase has ended."""
        clock = self._table.calls.clock
        ends = clock.monotonic() + seconds
        version = known.version
        moved = 0
        with ThreadPoolExecutor(MOVERS, "keyhop-move") as threads:
            for shard in protocol.drained(known.shards):
                after: TypedValue | None = None
                while clock.monotonic() < ends:
                    known = self._table.metadata.of(logical)
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
        table = self._table
        schema = table.schema
        key = ItemKey(logical, item[schema.sort.name])
        place = table.writer.place_of(key)
        exists = {"#p": schema.partition.name}
        fence: dict[str, Any] = {
            "ConditionExpression": "attribute_exists(#p) AND attribute_not_exists(#f)",
            "ExpressionAttributeNames": {**exists, "#f": FENCE},
        }
        if FENCE in item:
            fence["ConditionExpression"] = "#f = :f"
            fence["ExpressionAttributeNames"] = {"#f": FENCE}
            fence["ExpressionAttributeValues"] = {":f": item[FENCE]}

        def attempt() -> bool:
            known = table.metadata.of(logical)
            if known.version != version or table.calls.clock.monotonic() >= known.expires:
                raise Stale
            target = physical_key(schema, key, protocol.home(known.shards, place))
            whole = {name: value for name, value in item.items() if name != FENCE}
            put = {
                "TableName": table.name,
                "Item": {**whole, **target},
                "ConditionExpression": "attribute_not_exists(#p)",
                "ExpressionAttributeNames": exists,
            }
            source = physical_key(schema, key, shard)
            delete = {"TableName": table.name, "Key": source, **fence}
            try:
                table.calls.once(
                    "transact_write_items", TransactItems=[{"Put": put}, {"Delete": delete}]
                )
            except ClientError as error:
                codes = cancellations(error)
                if "TransactionConflict" in codes:
                    raise Again from error
                if codes[:2] == [_REFUSED, "None"]:
                    # Two were appended under one key: the lower shard's is the one that is told.
                    self._delete_copy(target, delete)
                    return True
                if _REFUSED in codes:
                    return False  # changed, deleted or moved since it was read
                raise
            table.calls.counts.add(counts.MOVES)
            return True

        try:
            return table.calls.patiently(attempt)
        except (Stale, Again):
            return False

    def _delete_copy(self, kept: dict[str, Any], delete: dict[str, Any]) -> None:
        check = {
            "TableName": self._table.name,
            "Key": kept,
            "ConditionExpression": "attribute_exists(#p)",
            "ExpressionAttributeNames": {"#p": self._table.schema.partition.name},
        }
        try:
            self._table.calls.once(
                "transact_write_items",
                TransactItems=[{"ConditionCheck": check}, {"Delete": delete}],
            )
        except ClientError as error:
            if not cancellations(error):
                raise

    def _page(
        self,
        logical: TypedValue,
        shard: int,
        after: TypedValue | None = None,
        most: int = PAGE_ITEMS,
    ) -> dict[str, Any]:
        schema = self._table.schema
        physical = schema.names.physical(logical, shard)
        more: dict[str, Any] = {}
        if after is not None:
            key = {schema.partition.name: physical, schema.sort.name: after}
            more["ExclusiveStartKey"] = key
        return self._table.calls.read(
            "query",
            TableName=self._table.name,
            KeyConditionExpression="#p = :p",
            ExpressionAttributeNames={"#p": schema.partition.name},
            ExpressionAttributeValues={":p": physical},
            ConsistentRead=True,
            Limit=most,
            **more,
        )

    def _is_empty(self, logical: TypedValue, shards: Shards) -> bool:
        return not any(
            self._page(logical, shard, most=1)["Items"] for shard in protocol.drained(shards)
        )


def _told(action: Next, known: Known, seconds: float = 0.0, moved: int = 0) -> DrainStep:
    shards = known.shards
    return DrainStep(action, shards.phase, shards.number, shards.readable, seconds, moved)
