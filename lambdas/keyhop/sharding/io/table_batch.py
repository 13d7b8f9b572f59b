"""Batches with boto3's parameters: `Table.batch_writer`, and the resource's batch_get_item."""

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

from keyhop.dynamodb.units import MOST_KEYS_AT_ONCE
from keyhop.errors import CannotStart
from keyhop.sharding.io.batch import BatchResult
from keyhop.sharding.io.items import logical_item, projected
from keyhop.sharding.io.reader import Reader
from keyhop.sharding.io.table_items import exact_key
from keyhop.sharding.io.words import BatchGot, check_words
from keyhop.wording import counted

MOST_BUFFERED = 25
"""The same number as boto3's batch_writer."""


class TableBatch:
    """A batch writer like boto3's: sends 25 writes at a time, and the remaining ones at the end. Of
    two writes of the same key the later one is kept. Raises the first error.
    """

    def __init__(
        self, write: Callable[[Sequence[Mapping[str, Any]], set[int]], BatchResult]
    ) -> None:
        """Initialize; `write` takes items, and the places of those that are keys to delete."""
        self._write = write
        self._items: list[Mapping[str, Any]] = []
        self._deletes: set[int] = set()

    def put_item(self, Item: Mapping[str, Any]) -> None:
        self._items.append(Item)
        self._flush(MOST_BUFFERED)

    def delete_item(self, Key: Mapping[str, Any]) -> None:
        self._deletes.add(len(self._items))
        self._items.append(Key)
        self._flush(MOST_BUFFERED)

    def __enter__(self) -> "TableBatch":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Send the remaining writes, even after an error, as boto3's batch writer."""
        self._flush(1)

    def _flush(self, minimum: int) -> None:
        if len(self._items) < minimum:
            return
        items, deletes = self._items, self._deletes
        self._items, self._deletes = [], set()
        failed = self._write(items, deletes).failed
        if failed:
            error = failed[0][2]
            error.add_note(f"{len(failed)} of {counted(len(items), 'write')} of a batch failed.")
            raise error


def batch_get(reader: Reader, request_items: Mapping[str, Any]) -> dict[str, Any]:
    """Return Responses; UnprocessedKeys is always empty, because throttled reads are retried."""
    schema = reader.schema
    if list(request_items) != [schema.table]:
        raise CannotStart(f"RequestItems has one table only here: {schema.table}.")
    words = request_items[schema.table]
    check_words(words, BatchGot)
    operation = "BatchGetItem"
    keys = [exact_key(reader.requests, schema, key, operation) for key in words["Keys"]]
    message = None
    if not 1 <= len(keys) <= MOST_KEYS_AT_ONCE:
        message = f"Keys must be 1 to {MOST_KEYS_AT_ONCE}"
    elif len({schema.name_of(schema.physical(key, 1)) for key in keys}) < len(keys):
        message = "Provided list of item keys contains duplicates"
    if message is not None:
        raise reader.requests.refusal("ValidationException", message, operation)
    projection, ours = projected(
        words.get("ProjectionExpression"),
        words.get("ExpressionAttributeNames"),
        [schema.partition.name, schema.sort.name],
    )
    stored_items = reader.find_all(keys, words.get("ConsistentRead", False), projection)
    items = []
    for key, stored in zip(keys, stored_items, strict=True):
        if stored is not None:
            item = logical_item(schema, stored, key.logical)
            items.append({name: value for name, value in item.items() if name not in ours})
    return {"Responses": {schema.table: items}, "UnprocessedKeys": {}}
