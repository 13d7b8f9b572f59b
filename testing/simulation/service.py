"""DynamoDB in memory, which executes each request in the pieces that the service makes atomic.

A write, a transaction and a page are one piece. Each key of a batch is a separate piece, because a
batch is neither a transaction nor a snapshot. Reads are always strongly consistent.

tests/integration/test_simulated_service.py compares it with DynamoDB Local. Other operations and
parameters raise NotSimulated, as do other forms of expressions (testing/simulation/expressions.py),
and UPDATED_OLD and UPDATED_NEW with a nested path. It never throttles and never leaves anything
unprocessed; testing/simulation/network.py does that.

It is stricter than the local databases: segments are equal ranges of the hash space, and a start
key of another segment is refused.
"""

import math
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from botocore.exceptions import ClientError
from keyhop.dynamodb.values import size_of

from testing.simulation.expressions import Expressions
from testing.simulation.tables import HASHES, Table, View, hash_of
from testing.simulation.values import Invalid, NotSimulated, Value, copy_of, order_of, stored_item

CONDITION_FAILED = "ConditionalCheckFailedException"
CONDITION_FAILED_MESSAGE = "The conditional request failed"
HOT = [{"reason": "TableWriteKeyRangeThroughputExceeded", "resource": "arn:aws:dynamodb:::table"}]

PAGE_BYTES = 1 << 20
MOST_IN_TRANSACTION = 100
MOST_BATCH_WRITES, MOST_BATCH_KEYS = 25, 100
MOST_SEGMENTS = 1_000_000

Item = dict[str, Any]
Piece = Callable[[], None]
"""A function that executes a part of a request, and extends the answer."""

_CAPACITY = {"ReturnConsumedCapacity"}
_NAMES = {"ExpressionAttributeNames"}
_CONDITION = {"ConditionExpression", *_NAMES, "ExpressionAttributeValues"}
_SHOWN = {"ReturnValuesOnConditionCheckFailure"}
_WRITE = {"TableName", "ReturnValues", *_SHOWN, *_CONDITION, *_CAPACITY}
_PAGE = {
    *("TableName", "IndexName", "Select", "Limit", "ExclusiveStartKey", "ConsistentRead"),
    *("ProjectionExpression", *_NAMES, *_CAPACITY),
}
_READ_OF_KEYS = {"ConsistentRead", "ProjectionExpression", *_NAMES}
_PARAMETERS: dict[str, set[str]] = {
    "describe_table": {"TableName"},
    "describe_time_to_live": {"TableName"},
    "delete_table": {"TableName"},
    "list_tables": {"ExclusiveStartTableName", "Limit"},
    "get_item": {"TableName", "Key", *_READ_OF_KEYS, *_CAPACITY},
    "put_item": {"Item", *_WRITE},
    "update_item": {"Key", "UpdateExpression", *_WRITE},
    "delete_item": {"Key", *_WRITE},
    "query": {
        *("KeyConditionExpression", "ExpressionAttributeValues", "ScanIndexForward"),
        *_PAGE,
    },
    "scan": {"Segment", "TotalSegments", *_PAGE},
    "batch_get_item": {"RequestItems", *_CAPACITY},
    "batch_write_item": {"RequestItems", *_CAPACITY},
    "transact_write_items": {"TransactItems", "ClientRequestToken", *_CAPACITY},
    "Keys": {"Keys", *_READ_OF_KEYS},
    "Put": {"TableName", "Item", *_SHOWN, *_CONDITION},
    "Update": {"TableName", "Key", "UpdateExpression", *_SHOWN, *_CONDITION},
    "Delete": {"TableName", "Key", *_SHOWN, *_CONDITION},
    "ConditionCheck": {"TableName", "Key", *_SHOWN, *_CONDITION},
}
"""The allowed parameters of operations, of parts of a transaction, and of a table's part ("Keys")
of a BatchGetItem."""

_RETURNS = {
    "put_item": {"NONE", "ALL_OLD"},
    "delete_item": {"NONE", "ALL_OLD"},
    "update_item": {"NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"},
}


def failure(code: str, message: str | None = None, status: int = 400, **more: Any) -> ClientError:
    """Return an error response as an exception; `more` has further fields of its body."""
    error = {"Error": {"Code": code, "Message": code if message is None else message}}
    return ClientError({**error, "ResponseMetadata": {"HTTPStatusCode": status}, **more}, "")


def _invalid(error: Invalid) -> ClientError:
    return failure("ValidationException", str(error))


@dataclass
class _Write:
    """A write that was checked without the item in the table.

    Attributes:
        kind: Put, Update, Delete or ConditionCheck.
        item: The item that a Put stores.
    """

    kind: str
    request: Mapping[str, Any]
    name: str
    table: Table
    key: Item
    item: Item | None
    expressions: Expressions

    def refused(self) -> Item | None:
        """Return None if the condition holds, else the item's part of the error response."""
        old = self.table.base.at(self.key)
        if self.expressions.hold(old):
            return None
        returns_item = self.request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
        return {"Item": copy_of(old)} if returns_item and old is not None else {}

    def new(self) -> Item | None:
        """Return the item that the write leaves, without storing it. Raise Invalid."""
        if self.kind in ("Put", "Delete"):
            return self.item
        old = self.table.base.at(self.key)
        if self.kind == "ConditionCheck":
            return old
        new = self.expressions.updated(self.key if old is None else old)
        self.table.check(new)
        return new

    def units(self, new: Item | None) -> float:
        """Return the write units, for which the larger one of the old and the new item counts."""
        sizes = (size_of(item) for item in (self.table.base.at(self.key), new) if item is not None)
        return float(max(1, math.ceil(max(sizes, default=0) / 1_024)))


@dataclass
class Service:
    """The service with its tables.

    Attributes:
        tables: The tables by their names.
        page_items: The maximum number of items in a page, as if they were large.
        has_empty_page: Returns whether a Scan with these parameters gets a page without items,
            which the service may return at any time.
    """

    tables: dict[str, Table]
    page_items: int = sys.maxsize
    has_empty_page: Callable[[Mapping[str, Any]], bool] = lambda request: False
    _tokens: dict[str, Any] = field(default_factory=dict)
    """The completed transactions by their tokens."""

    def answer(self, operation: str, request: Mapping[str, Any]) -> Item:
        """Answer a request, whose pieces follow each other directly. Raise ClientError."""
        answer: Item = {}
        for piece in self.pieces(operation, request, answer):
            piece()
        return answer

    def pieces(self, operation: str, request: Mapping[str, Any], answer: Item) -> list[Piece]:
        """Return the pieces of a request, which may happen in any order.

        A piece raises ClientError for an error response. A refused request is one piece.
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
                case "create_table":
                    name = request["TableName"]
                    self.tables[name] = Table(request)
                    return {"TableDescription": self.tables[name].describe(name)}
                case "list_tables":
                    return self._list(request)
                case "describe_table":
                    name = request["TableName"]
                    return {"Table": self._table(name).describe(name)}
                case "delete_table":
                    name = request["TableName"]
                    described = self._table(name).describe(name)
                    del self.tables[name]
                    return {"TableDescription": described}
                case "describe_time_to_live":
                    self._table(request["TableName"])
                    return {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}
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
            raise failure("ResourceNotFoundException", "Requested resource not found")
        return self.tables[name]

    def _list(self, request: Mapping[str, Any]) -> Item:
        after = request.get("ExclusiveStartTableName", "")
        names = sorted(name for name in self.tables if name > after)
        page = names[: request.get("Limit", 100)]
        more = {"LastEvaluatedTableName": page[-1]} if len(page) < len(names) else {}
        return {"TableNames": page, **more}

    # --- reads of keys ---

    def _get(self, request: Mapping[str, Any]) -> Item:
        table = self._table(request["TableName"])
        expressions = Expressions(request, table.keys)
        key = stored_item(request["Key"])
        table.base.check_key(key)
        item = table.base.at(key)
        answer = {} if item is None else {"Item": expressions.projected(item)}
        return answer | _capacity(request, _read_units(request, size_of(item or {})))

    def _batch_get(self, request: Mapping[str, Any], answer: Item) -> list[Piece]:
        answer |= {"Responses": {}, "UnprocessedKeys": {}}
        if sum(len(part["Keys"]) for part in request["RequestItems"].values()) > MOST_BATCH_KEYS:
            raise Invalid("Too many items requested for the BatchGetItem call")
        pieces: list[Piece] = []
        for name, part in request["RequestItems"].items():
            table = self._table(name)
            expressions = Expressions(part, table.keys)
            keys = [stored_item(key) for key in part["Keys"]]
            _check_distinct(table, keys)
            items = answer["Responses"][name] = []
            add = _summed_capacity(request, answer, name)

            def get(
                key: Item,
                table: Table = table,
                part: Mapping[str, Any] = part,
                expressions: Expressions = expressions,
                items: list[Item] = items,
                add: Callable[[float], None] = add,
            ) -> None:
                item = table.base.at(key)
                add(_read_units(part, size_of(item or {})))
                if item is not None:
                    items.append(expressions.projected(item))

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
            writes = [
                self._checked(kind.removesuffix("Request"), {**part, "TableName": name})
                for change in changes
                for kind, part in change.items()
            ]
            _check_distinct(self._table(name), [write.key for write in writes])
            _check_units(request, self._table(name))

            def do(write: _Write, add: Callable[[float], None] = add) -> None:
                add(write.units(write.item))
                write.table.store(write.key, write.item)

            pieces += [partial(do, write) for write in writes]
        return pieces

    def _checked(self, kind: str, request: Mapping[str, Any]) -> _Write:
        """Check everything in a write that does not depend on the item. Raise Invalid."""
        name = request["TableName"]
        table = self._table(name)
        # DynamoDB Local checks no path of a ConditionCheck, and index keys only where it writes.
        scalars = () if kind == "ConditionCheck" else table.all_keys
        expressions = Expressions(request, table.keys, scalars)
        if kind == "Put":
            item = stored_item(request["Item"])
            table.check(item)
            return _Write(kind, request, name, table, table.base.key_of(item), item, expressions)
        key = stored_item(request["Key"])
        table.base.check_key(key)
        return _Write(kind, request, name, table, key, None, expressions)

    def _write(self, operation: str, request: Mapping[str, Any]) -> Item:
        returns = request.get("ReturnValues", "NONE")
        if returns not in _RETURNS[operation]:
            raise Invalid("Return values set to invalid value")
        write = self._checked(operation.removesuffix("_item").capitalize(), request)
        _check_units(request, write.table)
        paths = write.expressions.updated_paths
        if returns.startswith("UPDATED") and (not paths or any(len(path) > 1 for path in paths)):
            raise NotSimulated(f"{returns} without an update, or with a nested path")
        refused = write.refused()
        if refused is not None:
            raise failure(CONDITION_FAILED, CONDITION_FAILED_MESSAGE, **refused)
        old, new = write.table.base.at(write.key), write.new()
        answer = _capacity(request, write.units(new))
        write.table.store(write.key, new)
        image = old if returns.endswith("OLD") else new
        if returns.startswith("UPDATED"):
            updated = {name for (name,) in paths}
            image = {name: value for name, value in (image or {}).items() if name in updated}
        if returns != "NONE" and image:
            answer["Attributes"] = copy_of(image)
        return answer

    def _transact(self, request: Mapping[str, Any]) -> Item:
        items = request["TransactItems"]
        if not 1 <= len(items) <= MOST_IN_TRANSACTION:
            raise Invalid("A transaction has 1 to 100 items")
        writes = [self._checked(kind, part) for item in items for kind, part in item.items()]
        for write in writes:
            _check_units(request, write.table)
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
            write.table.store(write.key, new)
        if token is not None:
            self._tokens[token] = items
        return _group_capacity(request, writes, units, "WriteCapacityUnits")

    # --- pages ---

    def _query(self, request: Mapping[str, Any]) -> Item:
        """Read a page of a collection, in the order of its sort key or against it."""
        view, expressions = self._read(request)
        conditions = expressions.key_conditions()
        low, high = _range(view, conditions)
        begin, end = bisect_left(view.places, low), bisect_left(view.places, high)
        forward = request.get("ScanIndexForward", True)

        def is_end(key: Mapping[str, Any]) -> bool:
            """Return whether no other key can come after this one."""
            if view.tie or not view.ranges:
                return not view.tie
            operator, values = conditions.get(view.ranges[0], ("", []))
            ends = {("<=", True): 0, (">=", False): 0, ("BETWEEN", True): 1, ("BETWEEN", False): 0}
            end = ends.get((operator, forward))
            return end is not None and bool(key[view.ranges[0]] == values[end])

        start = self._start(view, request)
        if start is not None:
            place = view.place(start)
            # The service also refuses the end of a range, after which no item can follow
            # (aws-sdk-ruby, issue 2456), and does not return it as a LastEvaluatedKey.
            if not low <= place < high or (view.ranges and is_end(start)):
                raise Invalid("The provided starting key is outside query boundaries")
            if forward:
                begin = bisect_right(view.places, place)
            else:
                end = bisect_left(view.places, place)
        order = range(begin, end) if forward else range(end - 1, begin - 1, -1)
        return self._page(view, request, expressions, order, is_end)

    def _scan(self, request: Mapping[str, Any]) -> Item:
        """Read a page of a segment."""
        view, expressions = self._read(request)
        low, high = _segment(request)
        begin, end = bisect_left(view.places, (low,)), bisect_left(view.places, (high,))
        start = self._start(view, request)
        if start is not None:
            place = view.place(start)
            if not low <= place[0] < high:
                raise Invalid("The provided starting key is not in this segment")
            begin = bisect_right(view.places, place)
        last = None
        if begin < end and self.has_empty_page(request):
            last = _just_before(view, begin, start)
        page = self._page(view, request, expressions, range(begin, begin if last else end))
        return page | ({"LastEvaluatedKey": last} if last else {})

    def _read(self, request: Mapping[str, Any]) -> tuple[View, Expressions]:
        """Return the table or the index of a Query or a Scan, and its expressions."""
        table = self._table(request["TableName"])
        name = request.get("IndexName")
        if name is not None and name not in table.indexes:
            raise Invalid(f"The table does not have the specified index: {name}")
        view = table.indexes[name] if name else table.base
        expressions = Expressions(request, table.keys)
        if view.is_global and request.get("ConsistentRead"):
            raise Invalid("Consistent reads are not supported on global secondary indexes")
        if view.projected is not None and (
            request.get("Select") == "ALL_ATTRIBUTES"
            or not view.projected.issuperset(expressions.projected_names or ())
        ):
            raise NotSimulated("attributes that an index does not have")
        return view, expressions

    def _start(self, view: View, request: Mapping[str, Any]) -> Item | None:
        if "ExclusiveStartKey" not in request:
            return None
        start = stored_item(request["ExclusiveStartKey"])
        view.check_key(start)
        return start

    def _page(
        self,
        view: View,
        request: Mapping[str, Any],
        expressions: Expressions,
        order: Sequence[int],
        is_end: Callable[[Item], bool] = lambda item: False,
    ) -> Item:
        """Return a page with the first items in this order.

        Args:
            order: Indexes into the places of the view.
            is_end: Returns whether no other item can follow an item.
        """
        limit = request.get("Limit", self.page_items)
        if limit < 1:
            raise Invalid("Limit must be greater than or equal to 1")
        select = request.get("Select")
        if select is not None and (select == "SPECIFIC_ATTRIBUTES") != (
            "ProjectionExpression" in request
        ):
            raise Invalid(f"Select {select} does not go with the ProjectionExpression")
        page: list[Item] = []
        size, more = 0, {}
        for at in order:
            page.append(view.items[view.places[at]])
            size += size_of(page[-1])
            is_full = size >= PAGE_BYTES and at != order[-1]
            if is_full or len(page) >= min(limit, self.page_items):
                if not is_end(page[-1]):
                    more = {"LastEvaluatedKey": copy_of(view.key_of(page[-1]))}
                break
        answer: Item = {"Count": len(page), "ScannedCount": len(page)}
        if select != "COUNT":
            answer["Items"] = [expressions.projected(item) for item in page]
        return answer | more | _capacity(request, _read_units(request, size))


class _Last:
    """A value that sorts after everything else."""

    def __lt__(self, value: Any) -> bool:
        return False

    def __gt__(self, value: Any) -> bool:
        return True


_LAST = _Last()


def _range(view: View, conditions: Mapping[str, tuple[str, list[Value]]]) -> tuple[Any, Any]:
    """Return the first place of a Query, and the end of its range. Raise Invalid."""
    for name, (_, values) in conditions.items():
        if name not in view.schema:
            raise Invalid(f"Query condition on {name}, which is no key attribute")
        for value in values:
            view.check_key_value(name, value)
    if any(conditions.get(name, ("",))[0] != "=" for name in view.hashes):
        raise Invalid("Query condition missed key schema element, or is not supported")
    partition = tuple(order_of(conditions[name][1][0]) for name in view.hashes)
    equal: tuple[Any, ...] = ()
    low: tuple[Any, ...] = ()
    high: tuple[Any, ...] = (_LAST,)
    for name, before in zip(view.ranges, (None, *view.ranges), strict=False):
        if name not in conditions:
            continue
        if before and conditions.get(before, ("",))[0] != "=":
            raise Invalid(f"Query condition on {name} without one on {before}")
        operator, values = conditions[name]
        bounds = [order_of(value) for value in values]
        if operator in ("=", ">=", ">", "BETWEEN"):
            low = (*equal, bounds[0], *([_LAST] if operator == ">" else []))
        if operator in ("=", "<=", "<", "BETWEEN"):
            high = (*equal, bounds[-1], *([] if operator == "<" else [_LAST]))
        equal = (*equal, bounds[0])
    return (hash_of(partition), partition, low), (hash_of(partition), partition, high)


def _segment(request: Mapping[str, Any]) -> tuple[int, int]:
    """Return the begin and the end of a Scan in the hash space. Raise Invalid."""
    if ("Segment" in request) != ("TotalSegments" in request):
        raise Invalid("Segment and TotalSegments go together")
    segment, total = request.get("Segment", 0), request.get("TotalSegments", 1)
    if not 1 <= total <= MOST_SEGMENTS or not 0 <= segment < total:
        raise Invalid("Segment must be less than TotalSegments, which is 1 to 1000000")
    return -(-HASHES * segment // total), -(-HASHES * (segment + 1) // total)


def _just_before(view: View, at: int, start: Item | None) -> Item | None:
    """Return a key between the items read so far and the next one; None if there is none."""
    if not view.ranges or view.tie:
        return start
    key, name = view.key_of(view.items[view.places[at]]), view.ranges[0]
    lowest = {"S": "\x00", "N": "-" + "9" * 38 + "E+87", "B": b"\x00"}[view.types[name]]
    key[name] = {view.types[name]: lowest}
    return key if view.place(key) < view.places[at] else start


def _check_parameters(operation: str, request: Mapping[str, Any]) -> None:
    """Raise NotSimulated if any part of a request is not simulated."""
    if operation == "create_table":
        return
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
        for keys in request["RequestItems"].values():
            _check_parameters("Keys", keys)


def _check_units(request: Mapping[str, Any], table: Table) -> None:
    if table.indexes and request.get("ReturnConsumedCapacity", "NONE") != "NONE":
        raise NotSimulated("the units of a write to a table with indexes")


def _check_distinct(table: Table, keys: list[Item]) -> None:
    if not keys:
        raise Invalid("The list of keys or writes of a table is empty")
    for key in keys:
        table.base.check_key(key)
    if len({repr(sorted(key.items())) for key in keys}) < len(keys):
        raise Invalid("Provided list of item keys contains duplicates")


def _checked_result(write: _Write) -> tuple[Item, Item | None]:
    """Return a part's cancellation reason, and the item that it leaves if it leaves one."""
    refused = write.refused()
    if refused is not None:
        message = {"Code": "ConditionalCheckFailed", "Message": CONDITION_FAILED_MESSAGE}
        return {**message, **refused}, None
    try:
        return {"Code": "None"}, write.new()
    except Invalid as error:
        return {"Code": "ValidationError", "Message": str(error)}, None


def _read_units(request: Mapping[str, Any], size: int) -> float:
    """Return the read units of a request for so many bytes; the minimum is that of 4 KB."""
    blocks = max(1, math.ceil(size / 4_096))
    return blocks * (1.0 if request.get("ConsistentRead") else 0.5)


def _capacity(request: Mapping[str, Any], units: float) -> Item:
    if request.get("ReturnConsumedCapacity") != "TOTAL":
        return {}
    return {"ConsumedCapacity": {"TableName": request["TableName"], "CapacityUnits": units}}


def _summed_capacity(
    request: Mapping[str, Any], answer: Item, name: str
) -> Callable[[float], None]:
    """Return a function that adds units to those of a table in the answer to a batch."""
    if request.get("ReturnConsumedCapacity") != "TOTAL":
        return lambda units: None
    capacity = {"TableName": name, "CapacityUnits": 0.0}
    answer.setdefault("ConsumedCapacity", []).append(capacity)

    def add(units: float) -> None:
        capacity["CapacityUnits"] += units  # type: ignore[operator]

    return add


def _group_capacity(
    request: Mapping[str, Any], writes: list[_Write], units: list[float], kind: str
) -> Item:
    """Return the units of a transaction, of each table."""
    if request.get("ReturnConsumedCapacity") != "TOTAL":
        return {}
    names = list(dict.fromkeys(write.name for write in writes))
    sums = {
        name: sum(each for each, write in zip(units, writes, strict=True) if write.name == name)
        for name in names
    }
    capacities = [
        {"TableName": name, "CapacityUnits": sums[name], kind: sums[name]} for name in names
    ]
    return {"ConsumedCapacity": capacities}


def _raise(error: ClientError) -> None:
    raise error
