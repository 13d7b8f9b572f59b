"""Many puts and deletes at once: one look for all that need one, a batch, the rest one by one."""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.requester import units_of
from keyhop.dynamodb.values import canonical
from keyhop.errors import KeyhopError
from keyhop.sharding.io.items import find_all, key_of, key_only, typed_item
from keyhop.sharding.io.writer import Writer
from keyhop.sharding.key.schema import ItemKey
from keyhop.sharding.store.metadata import KeyMetadata
from keyhop.sharding.store.requests import Overtaken, is_ambiguous, may_succeed_later

MOST_ITEMS = 25
"""Of one BatchWriteItem (AWS documentation); of 400 KB each they are within its 16 MB."""

_ERRORS = (KeyhopError, ClientError, BotoCoreError)
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
    """An item, or a key to delete, with those before it that had the same key.

    known: the metadata it goes by. units: its share of the write units of its batch.
    """

    items: list[tuple[int, Item]]
    typed: dict[str, Any]
    key: ItemKey
    is_delete: bool
    known: KeyMetadata = field(init=False)
    units: float = 1.0

    @property
    def request(self) -> dict[str, Any]:
        if self.is_delete:
            return {"DeleteRequest": {"Key": self.typed}}
        return {"PutRequest": {"Item": self.typed}}


_Batch = dict[Hashable, _Put]
"""What goes into one request, by physical key."""


class _Unanswered(Exception):
    """It is not known what was written, and the metadata has expired."""


@dataclass(slots=True)
class BatchWriter:
    """The writes of one call. put_alone, delete_alone: write one item, with a look if need be."""

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
        """One batch; then one by one what it has left over, and what it cannot do."""
        schema, looked = self.writer.schema, list[tuple[_Put, tuple[int, ...]]]()
        batch, alone = _Batch(), []
        for put in puts:
            try:
                put.known = self.writer.known(put.key.logical)
                where = self.writer.candidates(put.key, put.known, not put.is_delete)
            except _ERRORS as error:
                self._fail(put, error)
                continue
            if len(where) == 1:
                put.typed |= schema.physical(put.key, where[0])
                batch[self._name(put.typed)] = put
            else:
                looked.append((put, where))
        for put, shard in self._new(looked):
            if shard is None:
                alone.append(put)
            else:
                put.typed |= schema.physical(put.key, shard)
                batch[self._name(put.typed)] = put
        left = [*batch.values()]
        if len(left) > 1:
            try:
                left = self._send(batch)
            except _ERRORS as error:
                # Nobody knows what was written. Another shard would make two of one.
                for put in left:
                    self._fail(put, error)
                left, batch = [], {}
        for put in [put for put in batch.values() if put not in left]:
            try:
                if not self.writer.stands(put.key, self._physical(put), put.known):
                    left.append(put)
                    continue
            except _ERRORS as error:
                self._fail(put, error)
                continue
            self.result.written += len(put.items)
            self.writer.written(put.key.logical, put.known, put.units, first=True)
        for put in [*alone, *left]:
            try:
                write_alone = self.delete_alone if put.is_delete else self.put_alone
                write_alone(put.items[-1][1])
                self.result.written += len(put.items)
            except _ERRORS as error:
                self._fail(put, error)

    def _new(
        self, looked: Sequence[tuple[_Put, tuple[int, ...]]]
    ) -> Iterator[tuple[_Put, int | None]]:
        """To which shard each goes whose item is nowhere yet; None for others.

        By one look for all; if one of them is at fault, each is looked for by itself.
        """
        writer = self.writer
        writer.requests.usage.count(looks=len(looked))
        wanted = [(put.key, where) for put, where in looked]
        how = {"ConsistentRead": True, **key_only(writer.schema)}
        try:
            found = find_all(writer.requests, writer.schema, wanted, how)
        except _ERRORS as error:
            for put, _ in looked:
                if may_succeed_later(error):  # but has not, for as long as anybody waits
                    self._fail(put, error)
                else:
                    yield put, None
            return
        for (put, _), copies in zip(looked, found, strict=True):
            yield put, None if copies else writer.shard_of_new(put.key, put.known)

    def _send(self, batch: _Batch) -> list[_Put]:
        """Send one batch, until the metadata expires; returns what it has certainly not written.

        Raises what boto3's client raises if it is not known what was written.
        """
        requests = self.writer.requests
        table = self.writer.schema.table
        items = {table: [put.request for put in batch.values()]}
        expires = min(put.known.expires for put in batch.values())
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
                # Throttled, or one item is at fault: alone, each gets its own reason.
                return [*batch.values()]
            left = answer.get("UnprocessedItems", {}).get(table, ())
            if left and unanswered:
                raise Overtaken  # what is left over now may have been written before
            for put in batch.values():
                put.units = units_of(answer) / max(1, len(batch) - len(left))
            contents = (one for request in left for one in request.values())
            return [batch[self._name(one.get("Item") or one["Key"])] for one in contents]

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
