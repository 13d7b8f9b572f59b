"""Many puts at once: batches where no look is needed, and single writes for the rest."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.values import TypedValue, canonical
from keyhop.errors import GaveUp, KeyhopError
from keyhop.sharding.io.items import ItemKey, key_of, physical_key, typed_item
from keyhop.sharding.io.writer import Writer
from keyhop.sharding.store.metadata import KeyMetadata
from keyhop.sharding.store.requests import Overtaken, is_ambiguous

MOST_ITEMS = 25
"""Of one BatchWriteItem (AWS documentation); of 400 KB each they are within its 16 MB."""

Item = Mapping[str, Any]


@dataclass(slots=True)
class BatchResult:
    """What became of the items. failed: (place among the items, item, error) of each other one.

    An item whose key comes again later shares the fate of the later one, which takes its place.
    """

    written: int = 0
    failed: list[tuple[int, Item, Exception]] = field(default_factory=list)


@dataclass(slots=True)
class _Put:
    """An item, with those before it that had the same key."""

    items: list[tuple[int, Item]]
    typed: dict[str, Any]
    key: ItemKey


@dataclass(slots=True)
class _Batch:
    """What goes into one request: puts by physical key, and what is known of their logical keys."""

    puts: dict[Any, _Put] = field(default_factory=dict)
    known: list[tuple[TypedValue, KeyMetadata]] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)


class _Unanswered(Exception):
    """It is not known what was written, and the metadata has expired."""


@dataclass(slots=True)
class BatchWriter:
    """Puts the items of one call. put_alone: puts one item, with a look if need be."""

    writer: Writer
    put_alone: Callable[[Item], object]
    result: BatchResult = field(default_factory=BatchResult)

    def write(self, items: Iterable[Item]) -> BatchResult:
        """Put the items; see ShardedTable.batch_write."""
        puts: dict[Any, _Put] = {}
        for place, item in enumerate(items):
            try:
                typed = typed_item(item)
                key = key_of(self.writer.schema, typed)
            except (KeyhopError, TypeError, ValueError, ArithmeticError) as error:
                self.result.failed.append((place, item, error))
                continue
            name = canonical(key.logical), canonical(key.sort)
            before = puts.pop(name).items if name in puts else []
            if len(puts) == MOST_ITEMS:
                self._write(list(puts.values()))
                puts = {}
            puts[name] = _Put([*before, (place, item)], typed, key)
        self._write(list(puts.values()))
        self.result.failed.sort(key=lambda failure: failure[0])
        return self.result

    def _write(self, puts: list[_Put]) -> None:
        """One batch; then one by one what it has left over, and what must be looked for first."""
        batch, alone = _Batch(), []
        for put in puts:
            try:
                is_added = self._add(batch, put)
            except (KeyhopError, ClientError, BotoCoreError) as error:
                self._fail(put, error)
                continue
            if not is_added:
                alone.append(put)
        left = list(batch.puts.values())
        if len(left) > 1:
            try:
                left = self._send(batch)
            except (KeyhopError, ClientError, BotoCoreError) as error:
                # Nobody knows what was written. Another shard would make two of one.
                for put in left:
                    self._fail(put, error)
                left, batch = [], _Batch()
        for put, (logical, known) in zip(batch.puts.values(), batch.known, strict=True):
            if put not in left:
                self._note(put, logical, known)
        for put in [*alone, *left]:
            try:
                self.put_alone(put.items[-1][1])
                self.result.written += len(put.items)
            except (KeyhopError, ClientError, BotoCoreError) as error:
                self._fail(put, error)

    def _add(self, batch: _Batch, put: _Put) -> bool:
        """Whether it could be added: not if the item must be looked for first."""
        logical = put.key.logical
        known = self.writer.metadata.of(logical, register=True)
        known = self.writer.throttle_tracker.pass_on(logical, known)
        shard = self.writer.only_candidate(put.key, known)
        if shard is None:
            return False
        physical = physical_key(self.writer.schema, put.key, shard)
        batch.requests.append({"PutRequest": {"Item": {**put.typed, **physical}}})
        batch.puts[self._name(physical)] = put
        batch.known.append((logical, known))
        return True

    def _send(self, batch: _Batch) -> list[_Put]:
        """Send one batch, until the metadata expires; returns what it has certainly not written.

        Raises what boto3's client raises if it is not known what was written.
        """
        requests, table = self.writer.requests, self.writer.table
        expires = min(known.expires for _, known in batch.known)
        unanswered: list[Exception] = []

        def attempt() -> list[_Put]:
            if requests.clock.monotonic() >= expires:
                if unanswered:
                    raise _Unanswered
                return list(batch.puts.values())
            try:
                answer = requests.once("batch_write_item", RequestItems={table: batch.requests})
            except (ClientError, BotoCoreError) as error:
                if is_ambiguous(error):
                    unanswered.append(error)
                if unanswered:
                    raise
                # Throttled, or one item is at fault: alone, each gets its own reason.
                return list(batch.puts.values())
            left = answer.get("UnprocessedItems", {}).get(table, ())
            if left and unanswered:
                raise Overtaken  # what is left over now may have been written before
            return [batch.puts[self._name(request["PutRequest"]["Item"])] for request in left]

        try:
            left = requests.patiently(attempt)
        except (_Unanswered, Overtaken):
            raise unanswered[-1] from None
        in_time = min(known.effective_until for _, known in batch.known)
        if requests.clock.monotonic() > in_time and not all(
            self.writer.metadata.of(logical, fresh=True).version == known.version
            for logical, known in batch.known
        ):
            raise GaveUp(
                "The answer to a batch came so late that its shards may have been emptied before: "
                "look whether the items are there."
            )
        return left

    def _note(self, put: _Put, logical: TypedValue, known: KeyMetadata) -> None:
        """Shrinking goes by what is written, growth by what was accepted at the first attempt."""
        self.result.written += len(put.items)
        self.writer.throttle_tracker.accepted(logical)
        if known.shards.number > 1:
            self.writer.metadata.traffic.wrote(logical, 1.0)

    def _fail(self, put: _Put, error: Exception) -> None:
        self.result.failed += [(place, item, error) for place, item in put.items]

    def _name(self, item: Item) -> Any:
        """A physical key by its value: the service may write a number in another form."""
        schema = self.writer.schema
        return canonical(item[schema.partition.name]), canonical(item[schema.sort.name])
