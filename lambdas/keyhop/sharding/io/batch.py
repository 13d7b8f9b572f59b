"""Many puts and deletes: one read for all items that need one, a batch, the rest one by one."""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.requester import units_of
from keyhop.dynamodb.values import canonical
from keyhop.errors import KeyhopError
from keyhop.sharding.io.items import (
    check_is_no_counter,
    find_all,
    key_of,
    key_only,
    typed_item,
)
from keyhop.sharding.io.writer import Writer
from keyhop.sharding.key.schema import ItemKey
from keyhop.sharding.store.metadata import KeyMetadata
from keyhop.sharding.store.requests import Overtaken, is_ambiguous, may_succeed_later

MOST_ITEMS = 25
"""The maximum of one BatchWriteItem (AWS documentation); 25 items of 400 KB are within 16 MB."""

_ERRORS = (KeyhopError, ClientError, BotoCoreError)
Item = Mapping[str, Any]


@dataclass(slots=True)
class BatchResult:
    """The result of a batch, with the position, item and error of each failed item. If several have
    the same key, only the last one is written, and all have its result.
    """

    written: int = 0
    failed: list[tuple[int, Item, Exception]] = field(default_factory=list)


@dataclass(slots=True)
class _Put:
    """An item, or a key to delete, with the items before it that have the same key, the metadata in
    use, and its share of the batch's write units.
    """

    items: list[tuple[int, Item]]
    typed: dict[str, Any]
    key: ItemKey
    is_delete: bool
    record: KeyMetadata = field(init=False)
    units: float = 1.0

    @property
    def request(self) -> dict[str, Any]:
        if self.is_delete:
            return {"DeleteRequest": {"Key": self.typed}}
        return {"PutRequest": {"Item": self.typed}}


_Batch = dict[Hashable, _Put]
"""The writes of one request, by physical key."""


class _Unanswered(Exception):
    """The metadata has expired, and it is not known which items were written."""


@dataclass(slots=True)
class BatchWriter:
    """The writes of one call. put_alone, delete_alone: write one item, with a read if needed."""

    writer: Writer
    put_alone: Callable[[Item], object]
    delete_alone: Callable[[Item], object]
    result: BatchResult = field(default_factory=BatchResult)

    def write(self, items: Iterable[Item], deletes: Collection[int] = ()) -> BatchResult:
        """Put the items; see ShardedTable.batch_write. deletes: places of keys to delete."""
        puts: dict[Any, _Put] = {}
        for place, item in enumerate(items):
            try:
                typed = typed_item(item)
                key = key_of(self.writer.schema, typed)
                if place not in deletes:
                    check_is_no_counter(self.writer.schema, key)
            except (KeyhopError, TypeError, ValueError, ArithmeticError) as error:
                self.result.failed.append((place, item, error))
                continue
            name = canonical(key.logical), canonical(key.sort)
            before = puts.pop(name).items if name in puts else []
            if len(puts) == MOST_ITEMS:
                self._write(puts.values())
                puts = {}
            puts[name] = _Put([*before, (place, item)], typed, key, place in deletes)
        self._write(puts.values())
        self.result.failed.sort(key=lambda failure: failure[0])
        return self.result

    def _write(self, puts: Iterable[_Put]) -> None:
        """Write one batch, then one by one the items that it could not process."""
        schema, unplaced = self.writer.schema, list[tuple[_Put, tuple[int, ...]]]()
        batch, alone = _Batch(), []
        for put in puts:
            try:
                put.record = self.writer.record_of(put.key.logical)
                where = self.writer.candidates(put.key, put.record, not put.is_delete)
            except _ERRORS as error:
                self._fail(put, error)
                continue
            if len(where) == 1:
                put.typed |= schema.physical(put.key, where[0])
                batch[self._name(put.typed)] = put
            else:
                unplaced.append((put, where))
        for put, shard in self._new(unplaced):
            if shard is None:
                alone.append(put)
            else:
                put.typed |= schema.physical(put.key, shard)
                batch[self._name(put.typed)] = put
        remaining = [*batch.values()]
        if len(remaining) > 1:
            try:
                remaining = self._send(batch)
            except _ERRORS as error:
                # It is not known which items were written. Writing again could create a copy.
                for put in remaining:
                    self._fail(put, error)
                remaining, batch = [], {}
        for put in [put for put in batch.values() if put not in remaining]:
            try:
                if not self.writer.stands(put.key, self._physical(put), put.record):
                    remaining.append(put)
                    continue
            except _ERRORS as error:
                self._fail(put, error)
                continue
            self.result.written += len(put.items)
            self.writer.written(put.key.logical, put.record, put.units, first=True)
        for put in [*alone, *remaining]:
            try:
                write_alone = self.delete_alone if put.is_delete else self.put_alone
                write_alone(put.items[-1][1])
                self.result.written += len(put.items)
            except _ERRORS as error:
                self._fail(put, error)

    def _new(
        self, unplaced: Sequence[tuple[_Put, tuple[int, ...]]]
    ) -> Iterator[tuple[_Put, int | None]]:
        """Yield the shard of each item that does not exist yet; None for others. One request
        reads them. If it fails because of an item, each is written alone.
        """
        writer = self.writer
        writer.requests.usage.count(looks=len(unplaced))
        places = [(put.key, where) for put, where in unplaced]
        how = {"ConsistentRead": True, **key_only(writer.schema)}
        try:
            results = find_all(writer.requests, writer.schema, places, how)
        except _ERRORS as error:
            for put, _ in unplaced:
                if may_succeed_later(error):  # but retries have not helped
                    self._fail(put, error)
                else:
                    yield put, None
            return
        for (put, _), copies in zip(unplaced, results, strict=True):
            yield put, None if copies else writer.shard_of_new(put.key, put.record)

    def _send(self, batch: _Batch) -> list[_Put]:
        """Send one batch until the metadata expires; return items that were certainly not written.
        Raise the error of boto3's client if it is not known which items were written.
        """
        requests = self.writer.requests
        table = self.writer.schema.table
        items = {table: [put.request for put in batch.values()]}
        expires = min(put.record.expires for put in batch.values())
        unanswered: list[Exception] = []

        def attempt() -> list[_Put]:
            if requests.clock.monotonic() >= expires:
                if unanswered:
                    raise _Unanswered
                return [*batch.values()]
            try:
                answer = requests.once("batch_write_item", RequestItems=items)
            except (ClientError, BotoCoreError) as error:
                if is_ambiguous(error):
                    unanswered.append(error)
                if unanswered:
                    raise
                # Throttled, or one item is invalid: written alone, each item gets its own reason.
                return [*batch.values()]
            unprocessed = answer.get("UnprocessedItems", {}).get(table, ())
            if unprocessed and unanswered:
                raise Overtaken  # an earlier attempt may have written these
            for put in batch.values():
                put.units = units_of(answer) / max(1, len(batch) - len(unprocessed))
            contents = (content for request in unprocessed for content in request.values())
            return [
                batch[self._name(content.get("Item") or content["Key"])] for content in contents
            ]

        try:
            return requests.patiently(attempt)
        except (_Unanswered, Overtaken):
            raise unanswered[-1] from None

    def _fail(self, put: _Put, error: Exception) -> None:
        self.result.failed += [(place, item, error) for place, item in put.items]

    def _physical(self, put: _Put) -> dict[str, Any]:
        schema = self.writer.schema
        return {name: put.typed[name] for name in (schema.partition.name, schema.sort.name)}

    def _name(self, item: Item) -> Hashable:
        return self.writer.schema.name_of(item)
