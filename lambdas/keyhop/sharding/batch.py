"""Many puts at once: batches where no look is needed, and single writes for the rest."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.errors import KeyhopError
from keyhop.sharding.calls import Again, is_ambiguous
from keyhop.sharding.items import ItemKey, key_of, physical_key, typed_item

if TYPE_CHECKING:
    from keyhop.sharding.table import ShardedTable

MOST_ITEMS = 25
"""Of one BatchWriteItem, which takes 16 MB besides (AWS documentation)."""
MOST_BYTES = 12 << 20
"""Of one batch; items are measured as they are sent, never less than the service counts."""


@dataclass(slots=True)
class BatchResult:
    """What became of the items. failed: (place among the items, item, error) of each other one."""

    written: int = 0
    failed: list[tuple[int, Mapping[str, Any], Exception]] = field(default_factory=list)


@dataclass(slots=True)
class _One:
    place: int
    given: Mapping[str, Any]
    item: dict[str, Any]
    key: ItemKey
    size: int


def write_batch(table: "ShardedTable", items: Iterable[Mapping[str, Any]]) -> BatchResult:
    """Put the items; see ShardedTable.batch_write."""
    result = BatchResult()
    batch: dict[Any, _One] = {}
    for place, given in enumerate(items):
        try:
            item = typed_item(given)
            key = key_of(table.schema, item)
        except (KeyhopError, TypeError, ValueError) as error:
            result.failed.append((place, given, error))
            continue
        one = _One(place, given, item, key, len(repr(item)))
        name = repr((key.logical, key.sort))
        if name in batch:
            result.written += 1  # a later item of the same key takes its place
            del batch[name]
        if len(batch) == MOST_ITEMS or sum(o.size for o in batch.values()) + one.size > MOST_BYTES:
            _write(table, list(batch.values()), result)
            batch = {}
        batch[name] = one
    _write(table, list(batch.values()), result)
    result.failed.sort(key=lambda failure: failure[0])
    return result


def _write(table: "ShardedTable", batch: list[_One], result: BatchResult) -> None:
    """One batch; then one by one what it has left over, and what must be looked for first."""
    sent: dict[str, _One] = {}
    single: list[_One] = []
    puts: list[dict[str, Any]] = []
    expires = math.inf
    for one in batch:
        try:
            known = table.metadata.of(one.key.logical, register=True)
            shard = table.writer.only_candidate(one.key, known)
        except (KeyhopError, ClientError, BotoCoreError) as error:
            result.failed.append((one.place, one.given, error))
            continue
        if shard is None:
            single.append(one)
            continue
        expires = min(expires, known.expires)
        physical = physical_key(table.schema, one.key, shard)
        sent[repr(physical)] = one
        puts.append({"PutRequest": {"Item": {**one.item, **physical}}})
    left = list(sent.values())
    if len(puts) > 1:
        try:
            left = _send(table, puts, sent, expires)
        except (ClientError, BotoCoreError) as error:
            # Without an answer nobody knows what was written. Another shard would make two of one.
            result.failed += [(one.place, one.given, error) for one in left]
            left, sent = [], {}
    result.written += len(sent) - len(left)
    for one in [*single, *left]:
        try:
            table.put_item(Item=one.given)
            result.written += 1
        except (KeyhopError, ClientError, BotoCoreError) as error:
            result.failed.append((one.place, one.given, error))


def _send(
    table: "ShardedTable", puts: list[dict[str, Any]], sent: Mapping[str, _One], expires: float
) -> list[_One]:
    """Send one batch, until the metadata expires; returns what it has certainly not written.

    Raises what boto3's client raises if it is not known what was written.
    """

    def attempt() -> list[_One]:
        unanswered = bool(failed)
        if table.calls.clock.monotonic() >= expires:
            if unanswered:
                raise _Unanswered(failed[-1])
            return list(sent.values())
        try:
            answer = table.calls.once("batch_write_item", RequestItems={table.name: puts})
        except (ClientError, BotoCoreError) as error:
            if is_ambiguous(error):
                failed.append(error)
                raise
            if unanswered:
                raise
            # Throttled, or one item is at fault: alone, each is told why.
            return list(sent.values())
        left = answer.get("UnprocessedItems", {}).get(table.name, ())
        if left and unanswered:
            raise Again  # what is left over now may have been written before
        return [sent[repr(_key_of(table, request["PutRequest"]["Item"]))] for request in left]

    failed: list[Exception] = []
    try:
        return table.calls.patiently(attempt)
    except _Unanswered as unanswered:
        raise unanswered.error from None
    except Again:
        raise failed[-1] from None


class _Unanswered(Exception):
    def __init__(self, error: Exception) -> None:
        super().__init__("nobody knows what was written")
        self.error = error


def _key_of(table: "ShardedTable", item: Mapping[str, Any]) -> dict[str, Any]:
    names = (table.schema.partition.name, table.schema.sort.name)
    return {name: item[name] for name in names}
