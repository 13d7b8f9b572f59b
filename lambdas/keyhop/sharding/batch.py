"""Many puts at once: batches where no look is needed, and single writes for the rest."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.values import TypedValue
from keyhop.errors import GaveUp, KeyhopError
from keyhop.sharding.calls import Again, is_ambiguous
from keyhop.sharding.items import ItemKey, key_of, physical_key, typed_item
from keyhop.sharding.metadata import Known
from keyhop.sharding.placement import canonical

if TYPE_CHECKING:
    from keyhop.sharding.table import ShardedTable

MOST_ITEMS = 25
"""Of one BatchWriteItem (AWS documentation); of 400 KB each they are within its 16 MB."""


@dataclass(slots=True)
class BatchResult:
    """What became of the items. failed: (place among the items, item, error) of each other one.

    An item whose key comes again later shares the fate of the later one, which takes its place.
    """

    written: int = 0
    failed: list[tuple[int, Mapping[str, Any], Exception]] = field(default_factory=list)


@dataclass(slots=True)
class _One:
    """An item, with those before it that had the same key."""

    items: list[tuple[int, Mapping[str, Any]]]
    typed: dict[str, Any]
    key: ItemKey


@dataclass(slots=True)
class _Batch:
    """What goes into one request. sent: by its physical key; held: what is known of each key.

    expires: when the metadata by which it was made expires; effective_until: by when it has taken
    effect.
    """

    puts: list[dict[str, Any]] = field(default_factory=list)
    sent: dict[Any, _One] = field(default_factory=dict)
    held: list[tuple[TypedValue, Known]] = field(default_factory=list)
    expires: float = math.inf
    effective_until: float = math.inf


def write_batch(table: "ShardedTable", items: Iterable[Mapping[str, Any]]) -> BatchResult:
    """Put the items; see ShardedTable.batch_write."""
    result = BatchResult()
    batch: dict[Any, _One] = {}
    for place, given in enumerate(items):
        try:
            typed = typed_item(given)
            key = key_of(table.schema, typed)
        except (KeyhopError, TypeError, ValueError, ArithmeticError) as error:
            result.failed.append((place, given, error))
            continue
        name = canonical(key.logical), canonical(key.sort)
        before = batch.pop(name).items if name in batch else []
        if len(batch) == MOST_ITEMS:
            _write(table, list(batch.values()), result)
            batch = {}
        batch[name] = _One([*before, (place, given)], typed, key)
    _write(table, list(batch.values()), result)
    result.failed.sort(key=lambda failure: failure[0])
    return result


def _write(table: "ShardedTable", ones: list[_One], result: BatchResult) -> None:
    """One batch; then one by one what it has left over, and what must be looked for first."""
    batch = _Batch()
    single: list[_One] = []
    for one in ones:
        try:
            known = table.metadata.of(one.key.logical, register=True)
            known = table.writer.thermometer.pass_on(one.key.logical, known)
            shard = table.writer.only_candidate(one.key, known)
        except (KeyhopError, ClientError, BotoCoreError) as error:
            _failed(result, one, error)
            continue
        if shard is None:
            single.append(one)
            continue
        physical = physical_key(table.schema, one.key, shard)
        batch.puts.append({"PutRequest": {"Item": {**one.typed, **physical}}})
        batch.sent[_name(table, physical)] = one
        batch.held.append((one.key.logical, known))
        batch.expires = min(batch.expires, known.expires)
        batch.effective_until = min(batch.effective_until, known.effective_until)
    left = list(batch.sent.values())
    if len(batch.puts) > 1:
        try:
            left = _send(table, batch)
        except (KeyhopError, ClientError, BotoCoreError) as error:
            # Without an answer nobody knows what was written. Another shard would make two of one.
            for one in left:
                _failed(result, one, error)
            left, batch.sent = [], {}
    written = [one for one in batch.sent.values() if one not in left]
    _note(table, batch, written)
    result.written += sum(len(one.items) for one in written)
    for one in [*single, *left]:
        try:
            table.put_item(Item=one.items[-1][1])
            result.written += len(one.items)
        except (KeyhopError, ClientError, BotoCoreError) as error:
            _failed(result, one, error)


def _send(table: "ShardedTable", batch: _Batch) -> list[_One]:
    """Send one batch, until the metadata expires; returns what it has certainly not written.

    Raises what boto3's client raises if it is not known what was written.
    """
    clock = table.calls.clock
    unanswered: list[Exception] = []

    def attempt() -> list[_One]:
        if clock.monotonic() >= batch.expires:
            if unanswered:
                raise _Unanswered
            return list(batch.sent.values())
        try:
            answer = table.calls.once("batch_write_item", RequestItems={table.name: batch.puts})
        except (ClientError, BotoCoreError) as error:
            if is_ambiguous(error):
                unanswered.append(error)
            if unanswered:
                raise
            # Throttled, or one item is at fault: alone, each is told why.
            return list(batch.sent.values())
        left = answer.get("UnprocessedItems", {}).get(table.name, ())
        if left and unanswered:
            raise Again  # what is left over now may have been written before
        return [batch.sent[_name(table, request["PutRequest"]["Item"])] for request in left]

    try:
        left = table.calls.patiently(attempt)
    except (_Unanswered, Again):
        raise unanswered[-1] from None
    if clock.monotonic() > batch.effective_until and not all(
        table.metadata.of(logical, fresh=True).version == known.version
        for logical, known in batch.held
    ):
        raise GaveUp(
            "The answer to a batch came so late that its shards may have been emptied before: look "
            "whether the items are there."
        )
    return left


class _Unanswered(Exception):
    """It is not known what was written, and the metadata has expired."""


def _note(table: "ShardedTable", batch: _Batch, written: list[_One]) -> None:
    """Shrinking goes by what is written, growth by what was accepted at the first attempt."""
    keys = Counter(canonical(one.key.logical) for one in written)
    known = {canonical(logical): (logical, known) for logical, known in batch.held}
    for name, items in keys.items():
        logical, one = known[name]
        for _ in range(items):
            table.writer.thermometer.accepted(logical)
        if one.shards.number > 1:
            table.metadata.traffic.wrote(logical, float(items))


def _failed(result: BatchResult, one: _One, error: Exception) -> None:
    result.failed += [(place, given, error) for place, given in one.items]


def _name(table: "ShardedTable", item: Mapping[str, TypedValue]) -> Any:
    """A physical key by its value: the service may write a number otherwise than it was sent."""
    schema = table.schema
    return canonical(item[schema.partition.name]), canonical(item[schema.sort.name])
