"""DynamoDB's items, in memory: each request in the pieces that the service makes atomic.

A write and a transaction are one piece; each key of a batch is a piece of its own, as a batch is
neither a transaction nor a snapshot. Single pages are one piece. Always strongly consistent.

tests/integration/test_simulated_service.py compares it with DynamoDB Local. What it does not
simulate raises NotSimulated: other operations and parameters, other forms of expressions
(testing/simulation/expressions.py), what UPDATED_OLD and UPDATED_NEW show of a nested path, and
pages of more than 1 MB. It never throttles and never leaves anything unprocessed: that is for
testing/simulation/network.py.
"""

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from botocore.exceptions import ClientError
from keyhop.dynamodb.values import MOST_ITEM_BYTES, size_of

from testing.simulation.expressions import Expressions, meets
from testing.simulation.values import (
    Invalid,
    NotSimulated,
    Value,
    copy_of,
    order_of,
    stored_item,
)

CONDITION_FAILED = "ConditionalCheckFailedException"
CONDITION_FAILED_MESSAGE = "The conditional request failed"
HOT = [{"reason": "TableWriteKeyRangeThroughputExceeded", "resource": "arn:aws:dynamodb:::table"}]

PAGE_BYTES = 1 << 20
MOST_IN_TRANSACTION = 100
MOST_BATCH_WRITES, MOST_BATCH_KEYS = 25, 100

Item = dict[str, Any]
Piece = Callable[[], None]
"""Does its part, and adds to the answer."""

_CAPACITY = {"ReturnConsumedCapacity"}
_NAMES = {"ExpressionAttributeNames"}
_CONDITION = {"ConditionExpression", *_NAMES, "ExpressionAttributeValues"}
_SHOWN = {"ReturnValuesOnConditionCheckFailure"}
_WRITE = {"TableName", "ReturnValues", *_SHOWN, *_CONDITION, *_CAPACITY}
_PAGE = {
    *("TableName", "Select", "Limit", "ExclusiveStartKey", "ConsistentRead"),
    *("ProjectionExpression", *_NAMES, *_CAPACITY),
}
_READ_OF_KEYS = {"ConsistentRead", "ProjectionExpression", *_NAMES}
_PARAMETERS: dict[str, set[str]] = {
    "describe_table": {"TableName"},
    "get_item": {"TableName", "Key", *_READ_OF_KEYS, *_CAPACITY},
    "put_item": {"Item", *_WRITE},
    "update_item": {"Key", "UpdateExpression", *_WRITE},
    "delete_item": {"Key", *_WRITE},
    "query": {
        *("KeyConditionExpression", "ExpressionAttributeValues", "ScanIndexForward"),
        *_PAGE,
    },
    "scan": _PAGE,
    "batch_get_item": {"RequestItems", *_CAPACITY},
    "batch_write_item": {"RequestItems", *_CAPACITY},
    "transact_write_items": {"TransactItems", "ClientRequestToken", *_CAPACITY},
    "Keys": {"Keys", *_READ_OF_KEYS},
    "Put": {"TableName", "Item", *_SHOWN, *_CONDITION},
    "Update": {"TableName", "Key", "UpdateExpression", *_SHOWN, *_CONDITION},
    "Delete": {"TableName", "Key", *_SHOWN, *_CONDITION},
    "ConditionCheck": {"TableName", "Key", *_SHOWN, *_CONDITION},
}
"""The parameters that each operation, each part of a transaction, and the keys of a table in a
BatchGetItem may have."""

_RETURNS = {
    "put_item": {"NONE", "ALL_OLD"},
    "delete_item": {"NONE", "ALL_OLD"},
    "update_item": {"NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"},
}


def failure(code: str, status: int = 400, message: str | None = None, **more: Any) -> ClientError:
    """Return an error response as an exception."""
    error = {"Error": {"Code": code, "Message": code if message is None else message}}
    return ClientError({**error, "ResponseMetadata": {"HTTPStatusCode": status}, **more}, "")


def _invalid(error: Invalid) -> ClientError:
    return failure("ValidationException", message=str(error))


@dataclass
class Table:
    """keys: the names of its partition key and its sort key. types: theirs; strings by default.
    items: by partition, then sort key. shards: of its stream, as what has changed: when, the item
    as it was, and as it is; none: it has no stream. now: tells the moment.
    """

    keys: tuple[str, ...]
    items: dict[Any, dict[Any, Item]] = field(default_factory=dict)
    shards: list[list[tuple[float, Item | None, Item | None]]] = field(default_factory=list)
    now: Callable[[], float] = lambda: 0.0
    types: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.types = self.types or ("S",) * len(self.keys)

    def at(self, key: Mapping[str, Any]) -> Item | None:
        return self.items.get(self._partition(key), {}).get(self._sort(key))

    def put(self, item: Mapping[str, Any]) -> None:
        """Store an item. Raise Invalid if it cannot be one of this table."""
        new = stored_item(item)
        self.check_key({name: new[name] for name in self.keys if name in new})
        if size_of(new) > MOST_ITEM_BYTES:
            raise Invalid("Item size has exceeded the maximum allowed size")
        self._changed(self.at(new), new)
        self.items.setdefault(self._partition(new), {})[self._sort(new)] = new

    def delete(self, key: Mapping[str, Any]) -> None:
        self._changed(self.at(key), None)
        self.items.get(self._partition(key), {}).pop(self._sort(key), None)

    def key_of(self, item: Mapping[str, Any]) -> Item:
        return {name: item[name] for name in self.keys}

    def partition(self, value: Mapping[str, Any]) -> list[Item]:
        """In the order of the sort key."""
        items = self.items.get(order_of(value), {})
        return [items[sort] for sort in sorted(items)]

    def check_key(self, key: Mapping[str, Any]) -> None:
        """Raise Invalid for what is no key of this table."""
        if key.keys() != set(self.keys):
            raise Invalid("The provided key element does not match the schema")
        for name, value in key.items():
            self.check_key_value(name, value)

    def check_key_value(self, name: str, value: Value) -> None:
        """Raise Invalid for what cannot be the value of a key attribute."""
        type_ = self.types[self.keys.index(name)]
        if value.keys() != {type_}:
            raise Invalid(f"Type mismatch for key {name}")
        if not value[type_]:
            raise Invalid(f"The value of a key attribute must not be empty. Key: {name}")
        most = 2_048 if name == self.keys[0] else 1_024
        if type_ != "N" and size_of({"": value}) > most:
            raise Invalid(f"The value of a key attribute has more than {most} bytes. Key: {name}")

    def _changed(self, old: Item | None, new: Item | None) -> None:
        there = old or new
        if self.shards and old != new and there is not None:
            shard = self.hash_of(there) % len(self.shards)
            self.shards[shard].append((self.now(), old, new))

    def order_of(self, item: Mapping[str, Any]) -> Any:
        """Return what an item is sorted by in its collection."""
        return self._sort(item) if len(self.keys) > 1 else ()

    def hash_of(self, item: Mapping[str, Any]) -> int:
        """Return a hash of an item's partition key."""
        return zlib.crc32(repr(self._partition(item)).encode())

    def _partition(self, item: Mapping[str, Any]) -> Any:
        return order_of(item[self.keys[0]])

    def _sort(self, item: Mapping[str, Any]) -> Any:
        return order_of(item[self.keys[1]]) if len(self.keys) > 1 else None


@dataclass
class _Write:
    """One write, checked but for the item that it finds.

    kind: Put, Update, Delete or ConditionCheck.
    """

    kind: str
    request: Mapping[str, Any]
    name: str
    table: Table
    key: Item
    expressions: Expressions

    def refused(self) -> Item | None:
        """Return None if the condition holds, else what the error response tells of the item."""
        old = self.table.at(self.key)
        if self.expressions.hold(old):
            return None
        shown = self.request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
        return {"Item": copy_of(old)} if shown and old is not None else {}

    def new(self) -> Item:
        """Return the item that a Put or an Update leaves, without storing it. Raise Invalid."""
        if self.kind == "Put":
            return stored_item(self.request["Item"])
        old = self.table.at(self.key)
        new = self.expressions.updated(self.key if old is None else old)
        if size_of(new) > MOST_ITEM_BYTES:
            raise Invalid("Item size to update has exceeded the maximum allowed size")
        return new

    def units(self, new: Item | None) -> float:
        """Return the write units, for which the larger one of the old and the new item counts."""
        sizes = (size_of(item) for item in (self.table.at(self.key), new) if item is not None)
        return float(max(1, math.ceil(max(sizes, default=0) / 1_024)))

    def do(self, new: Item | None) -> None:
        """Store the new item, or delete the old one."""
        if self.kind in ("Put", "Update"):
            assert new is not None
            self.table.put(new)
        elif self.kind == "Delete":
            self.table.delete(self.key)


@dataclass
class Service:
    """page_items: that a page holds at most, as if they were large."""

    tables: dict[str, Table]
    page_items: int = 1_000
    _tokens: dict[str, Any] = field(default_factory=dict)
    """The transactions that were done, by their tokens."""

    def pieces(self, operation: str, request: Mapping[str, Any], answer: Item) -> list[Piece]:
        """Return what the request does, in pieces that may happen in any order.

        A piece raises ClientError for an error response. A request that the service refuses whole
        is one piece.
        """
        try:
            _check_parameters(operation, request)
            if operation == "batch_get_item":
                return self._batch_get(request, answer)
            if operation == "batch_write_item":
                return self._batch_write(request, answer)
        except Invalid as error:
            return [partial(_raise, _invalid(error))]
        except ClientError as error:
            return [partial(_raise, error)]
        return [lambda: answer.update(self._atomic(operation, request))]

    def _atomic(self, operation: str, request: Mapping[str, Any]) -> Item:
        try:
            match operation:
                case "describe_table":
                    return self._described(request["TableName"])
                case "get_item":
                    return self._get(request)
                case "query":
                    return self._query(request)
                case "scan":
                    return self._scan(request)
                case "transact_write_items":
                    return self._transact(request)
            return self._write(operation, request)
        except Invalid as error:
            raise _invalid(error) from error

    def _table(self, name: str) -> Table:
        if name not in self.tables:
            raise failure("ResourceNotFoundException", message="Requested resource not found")
        return self.tables[name]

    # --- reads of keys ---

    def _get(self, request: Mapping[str, Any]) -> Item:
        table = self._table(request["TableName"])
        expressions = Expressions(request, table.keys)
        key = stored_item(request["Key"])
        table.check_key(key)
        item = table.at(key)
        found = {} if item is None else {"Item": expressions.projected(item)}
        return found | _capacity(request, _read_units(request, [item] if item else []))

    def _batch_get(self, request: Mapping[str, Any], answer: Item) -> list[Piece]:
        answer |= {"Responses": {}, "UnprocessedKeys": {}}
        if sum(len(wanted["Keys"]) for wanted in request["RequestItems"].values()) > (
            MOST_BATCH_KEYS
        ):
            raise Invalid("Too many items requested for the BatchGetItem call")
        pieces: list[Piece] = []
        for name, wanted in request["RequestItems"].items():
            table = self._table(name)
            expressions = Expressions(wanted, table.keys)
            keys = [stored_item(key) for key in wanted["Keys"]]
            _check_distinct(table, keys)
            found = answer["Responses"][name] = []
            add = _summed_capacity(request, answer, name)

            def get(
                key: Item,
                table: Table = table,
                wanted: Mapping[str, Any] = wanted,
                expressions: Expressions = expressions,
                found: list[Item] = found,
                add: Callable[[float], None] = add,
            ) -> None:
                item = table.at(key)
                add(_read_units(wanted, [item] if item else []))
                if item is not None:
                    found.append(expressions.projected(item))

            pieces += [partial(get, key) for key in keys]
        return pieces

    # --- writes ---

    def _batch_write(self, request: Mapping[str, Any], answer: Item) -> list[Piece]:
        answer |= {"UnprocessedItems": {}}
        if sum(map(len, request["RequestItems"].values())) > MOST_BATCH_WRITES:
            raise Invalid("Too many items requested for the BatchWriteItem call")
        pieces: list[Piece] = []
        for name, changes in request["RequestItems"].items():
            add = _summed_capacity(request, answer, name)
            writes = [self._batch_part(name, change) for change in changes]
            _check_distinct(self._table(name), [write.key for write in writes])

            def do(write: _Write, add: Callable[[float], None] = add) -> None:
                new = write.new() if write.kind == "Put" else None
                add(write.units(new))
                write.do(new)

            pieces += [partial(do, write) for write in writes]
        return pieces

    def _batch_part(self, name: str, change: Mapping[str, Any]) -> _Write:
        ((kind, part),) = change.items()
        write = self._checked(kind.removesuffix("Request"), {**part, "TableName": name})
        if write.kind == "Put" and size_of(write.new()) > MOST_ITEM_BYTES:
            raise Invalid("Item size has exceeded the maximum allowed size")
        return write

    def _checked(self, kind: str, request: Mapping[str, Any]) -> _Write:
        """Check all of a write that does not depend on the item that it finds. Raise Invalid."""
        name = request["TableName"]
        table = self._table(name)
        expressions = Expressions(request, table.keys)
        item = stored_item(request["Item"] if kind == "Put" else request["Key"])
        key = {name: item[name] for name in table.keys if name in item} if kind == "Put" else item
        table.check_key(key)
        return _Write(kind, request, name, table, key, expressions)

    def _write(self, operation: str, request: Mapping[str, Any]) -> Item:
        returns = request.get("ReturnValues", "NONE")
        if returns not in _RETURNS[operation]:
            raise Invalid("Return values set to invalid value")
        write = self._checked(operation.removesuffix("_item").capitalize(), request)
        paths = write.expressions.updated_paths
        if returns.startswith("UPDATED") and (not paths or any(len(path) > 1 for path in paths)):
            raise NotSimulated(f"{returns} without an update, or with a nested path")
        refused = write.refused()
        if refused is not None:
            raise failure(CONDITION_FAILED, message=CONDITION_FAILED_MESSAGE, **refused)
        old = write.table.at(write.key)
        new = None if write.kind == "Delete" else write.new()
        answer = _capacity(request, write.units(new))
        write.do(new)
        shown = old if returns.endswith("OLD") else new
        if returns.startswith("UPDATED"):
            updated = {name for (name,) in paths}
            shown = {name: value for name, value in (shown or {}).items() if name in updated}
        if returns != "NONE" and shown:
            answer["Attributes"] = copy_of(shown)
        return answer

    def _transact(self, request: Mapping[str, Any]) -> Item:
        items = request["TransactItems"]
        if not 1 <= len(items) <= MOST_IN_TRANSACTION:
            raise Invalid("A transaction has 1 to 100 items")
        writes = [self._checked(kind, part) for item in items for kind, part in item.items()]
        if len({(write.name, repr(sorted(write.key.items()))) for write in writes}) < len(writes):
            raise Invalid("Transaction request cannot include multiple operations on one item")
        token = request.get("ClientRequestToken")
        if token in self._tokens:
            if self._tokens[token] != items:
                raise failure("IdempotentParameterMismatchException")
            return _group_capacity(request, writes, [1.0] * len(writes), "ReadCapacityUnits")
        results = [_checked_result(write) for write in writes]
        reasons = [reason for reason, _ in results]
        codes = [reason["Code"] for reason in reasons]
        if set(codes) != {"None"}:
            raise failure(
                "TransactionCanceledException",
                message="Transaction cancelled, please refer cancellation reasons for specific "
                f"reasons [{', '.join(codes)}]",
                CancellationReasons=reasons,
            )
        units = [2 * write.units(new) for write, (_, new) in zip(writes, results, strict=True)]
        for write, (_, new) in zip(writes, results, strict=True):
            write.do(new)
        if token is not None:
            self._tokens[token] = items
        return _group_capacity(request, writes, units, "WriteCapacityUnits")

    # --- pages ---

    def _query(self, request: Mapping[str, Any]) -> Item:
        table = self._table(request["TableName"])
        expressions = Expressions(request, table.keys)
        conditions = expressions.key_conditions()
        if table.keys[0] not in conditions or not conditions.keys() <= set(table.keys):
            raise Invalid("Query condition missed key schema element")
        for name, (_, values) in conditions.items():
            for value in values:
                table.check_key_value(name, value)
        operator, (value, *_) = conditions[table.keys[0]]
        if operator != "=":
            raise Invalid("Query key condition not supported")
        forward = request.get("ScanIndexForward", True)

        def is_in_range(key: Mapping[str, Any]) -> bool:
            return all(meets(key[name], *condition) for name, condition in conditions.items())

        def is_end(key: Mapping[str, Any]) -> bool:
            """Return whether no other key can come after this one."""
            if len(table.keys) == 1:
                return True
            operator, values = conditions.get(table.keys[1], ("", []))
            ends = {("<=", True): 0, (">=", False): 0, ("BETWEEN", True): 1, ("BETWEEN", False): 0}
            end = ends.get((operator, forward))
            return end is not None and bool(key[table.keys[1]] == values[end])

        items = [item for item in table.partition(value) if is_in_range(item)]
        items = items if forward else items[::-1]
        start = self._start(table, request)
        if start is not None:
            # The service refuses the end of a range, too, after which there is nothing
            # (aws-sdk-ruby, issue 2456), and does not give it as a LastEvaluatedKey.
            if not is_in_range(start) or (len(table.keys) > 1 and is_end(start)):
                raise Invalid("The provided starting key is outside query boundaries")
            last = table.order_of(start)
            items = [
                item
                for item in items
                if (table.order_of(item) > last if forward else table.order_of(item) < last)
            ]
        return self._page(table, request, expressions, items, is_end)

    def _scan(self, request: Mapping[str, Any]) -> Item:
        """Read a page of all items, by a hash of their partition keys."""
        table = self._table(request["TableName"])
        expressions = Expressions(request, table.keys)

        def place(item: Mapping[str, Any]) -> Any:
            return table.hash_of(item), order_of(item[table.keys[0]]), table.order_of(item)

        items = [item for partition in table.items.values() for item in partition.values()]
        start = self._start(table, request)
        if start is not None:
            items = [item for item in items if place(item) > place(start)]
        return self._page(table, request, expressions, sorted(items, key=place))

    def _start(self, table: Table, request: Mapping[str, Any]) -> Item | None:
        if "ExclusiveStartKey" not in request:
            return None
        start = stored_item(request["ExclusiveStartKey"])
        table.check_key(start)
        return start

    def _page(
        self,
        table: Table,
        request: Mapping[str, Any],
        expressions: Expressions,
        items: list[Item],
        is_end: Callable[[Item], bool] = lambda item: False,
    ) -> Item:
        """Answer with the first of these items. is_end: whether nothing can come after an item."""
        if request.get("Limit", 1) < 1:
            raise Invalid("Limit must be greater than or equal to 1")
        select = request.get("Select")
        if select is not None and (select == "SPECIFIC_ATTRIBUTES") != (
            "ProjectionExpression" in request
        ):
            raise Invalid(f"Select {select} does not go with the ProjectionExpression")
        most = min(request.get("Limit", self.page_items), self.page_items)
        page = items[:most]
        if sum(map(size_of, page)) > PAGE_BYTES:
            raise NotSimulated("a page of more than 1 MB; use page_items")
        answer: Item = {"Count": len(page), "ScannedCount": len(page)}
        if select != "COUNT":
            answer["Items"] = [expressions.projected(item) for item in page]
        if len(page) == most and not is_end(page[-1]):
            answer["LastEvaluatedKey"] = copy_of(table.key_of(page[-1]))
        return answer | _capacity(request, _read_units(request, page))

    def _described(self, name: str) -> Item:
        table = self._table(name)
        stream = {"LatestStreamArn": name} if table.shards else {}
        kinds = ("HASH", "RANGE")
        return {
            "Table": {
                "TableName": name,
                "TableStatus": "ACTIVE",
                **stream,
                "KeySchema": [
                    {"AttributeName": key, "KeyType": kind}
                    for key, kind in zip(table.keys, kinds, strict=False)
                ],
                "AttributeDefinitions": [
                    {"AttributeName": key, "AttributeType": type_}
                    for key, type_ in zip(table.keys, table.types, strict=True)
                ],
            }
        }


def _check_parameters(operation: str, request: Mapping[str, Any]) -> None:
    """Raise NotSimulated for what is not simulated, in all parts of a request."""
    if operation not in _PARAMETERS:
        raise NotSimulated(operation)
    if more := request.keys() - _PARAMETERS[operation]:
        raise NotSimulated(f"{operation} with {sorted(more)}")
    if request.get("ReturnConsumedCapacity", "NONE") not in ("NONE", "TOTAL"):
        raise NotSimulated("consumed capacity by index")
    if operation == "transact_write_items":
        for item in request["TransactItems"]:
            ((kind, part),) = item.items()
            _check_parameters(kind, part)
    if operation == "batch_get_item":
        for wanted in request["RequestItems"].values():
            _check_parameters("Keys", wanted)


def _check_distinct(table: Table, keys: list[Item]) -> None:
    if not keys:
        raise Invalid("The list of keys or writes of a table is empty")
    for key in keys:
        table.check_key(key)
    if len({repr(sorted(key.items())) for key in keys}) < len(keys):
        raise Invalid("Provided list of item keys contains duplicates")


def _checked_result(write: _Write) -> tuple[Item, Item | None]:
    """Return a part's cancellation reason, and the item that it leaves if it leaves one."""
    refused = write.refused()
    if refused is not None:
        message = {"Code": "ConditionalCheckFailed", "Message": CONDITION_FAILED_MESSAGE}
        return {**message, **refused}, None
    if write.kind not in ("Put", "Update"):
        return {"Code": "None"}, None
    try:
        return {"Code": "None"}, write.new()
    except Invalid as error:
        return {"Code": "ValidationError", "Message": str(error)}, None


def _read_units(request: Mapping[str, Any], items: list[Item]) -> float:
    """Return the read units of one request, which are at least those of 4 KB."""
    blocks = max(1, math.ceil(sum(map(size_of, items)) / 4_096))
    return blocks * (1.0 if request.get("ConsistentRead") else 0.5)


def _capacity(request: Mapping[str, Any], units: float) -> Item:
    if request.get("ReturnConsumedCapacity") != "TOTAL":
        return {}
    return {"ConsumedCapacity": {"TableName": request["TableName"], "CapacityUnits": units}}


def _summed_capacity(
    request: Mapping[str, Any], answer: Item, name: str
) -> Callable[[float], None]:
    """Return what adds units to those of a table in the answer to a batch."""
    if request.get("ReturnConsumedCapacity") != "TOTAL":
        return lambda units: None
    told = {"TableName": name, "CapacityUnits": 0.0}
    answer.setdefault("ConsumedCapacity", []).append(told)

    def add(units: float) -> None:
        told["CapacityUnits"] += units  # type: ignore[operator]

    return add


def _group_capacity(
    request: Mapping[str, Any], writes: list[_Write], units: list[float], kind: str
) -> Item:
    """Return the units of a transaction, of each table."""
    if request.get("ReturnConsumedCapacity") != "TOTAL":
        return {}
    names = list(dict.fromkeys(write.name for write in writes))
    sums = {
        name: sum(one for one, write in zip(units, writes, strict=True) if write.name == name)
        for name in names
    }
    told = [{"TableName": name, "CapacityUnits": sums[name], kind: sums[name]} for name in names]
    return {"ConsumedCapacity": told}


def _raise(error: ClientError) -> None:
    raise error
