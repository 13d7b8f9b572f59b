"""A strict stand-in for DynamoDB: what no local database does.

Only what Keyhop uses, but that as the service documents it: segments are equal ranges of a hash of
the partition key, start keys are validated (a foreign segment's is refused), an empty read costs
0.5 read units, a page ends at 1 MB, an index has its own hash order. No I/O here.
"""

import base64
import hashlib
import math
import re
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

HASHES = 1 << 128
PAGE_BYTES = 1 << 20
MOST_SEGMENTS = 1_000_000


class Refused(Exception):
    """An error response: HTTP status, error code, message, and further top-level fields."""

    def __init__(self, code: str, message: str, status: int = 400, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": message}
        self.body.update(more)


def invalid(message: str) -> Refused:
    return Refused("ValidationException", message)


def order_of(value: Mapping[str, Any]) -> Any:
    """What a typed value sorts by: strings by UTF-8, numbers by value, binary by unsigned bytes."""
    ((type_, content),) = value.items()
    return _ORDER[type_](content)


def _binary(text: str) -> bytes:
    return base64.b64decode(text)


_ORDER = {"S": str.encode, "N": Decimal, "B": _binary}


def hash_of(values: tuple[Any, ...]) -> int:
    """Place of a partition key (its values' orders) in the hash space."""
    return int.from_bytes(hashlib.md5(repr(values).encode()).digest(), "big")


def size_of(item: Mapping[str, Any]) -> int:
    """Bytes of an item by the documented rules, as far as keys and simple attributes go."""
    total = 0
    for name, value in item.items():
        ((type_, content),) = value.items()
        total += len(name.encode())
        if type_ == "S":
            total += len(content.encode())
        elif type_ == "N":
            total += (len(content.strip("-").replace(".", "")) + 1) // 2 + 1
        elif type_ == "B":
            total += len(_binary(content))
        else:
            total += len(repr(content))
    return total


@dataclass(frozen=True)
class Schema:
    """Key schema of a table or an index."""

    hashes: tuple[str, ...]
    ranges: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.hashes + self.ranges


def schema_of(entries: list[Mapping[str, str]]) -> Schema:
    return Schema(
        tuple(e["AttributeName"] for e in entries if e["KeyType"] == "HASH"),
        tuple(e["AttributeName"] for e in entries if e["KeyType"] == "RANGE"),
    )


@dataclass
class View:
    """A table or an index in scan order: by hash, then partition key, then sort key."""

    schema: Schema
    types: Mapping[str, str]
    tie: tuple[str, ...] = ()
    places: list[Any] = field(default_factory=list)
    items: dict[Any, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def key_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.schema.names + self.tie))

    def place(self, key: Mapping[str, Any]) -> Any:
        partition = tuple(order_of(key[name]) for name in self.schema.hashes)
        rest = tuple(order_of(key[name]) for name in self.schema.ranges + self.tie)
        return (hash_of(partition), partition, rest)

    def holds(self, item: Mapping[str, Any]) -> bool:
        return all(name in item and self.types[name] in item[name] for name in self.schema.names)

    def put(self, item: Mapping[str, Any]) -> None:
        place = self.place(item)
        if place not in self.items:
            insort(self.places, place)
        self.items[place] = item

    def put_all(self, items: Iterator[Mapping[str, Any]]) -> None:
        """Many at once, sorted once."""
        self.items.update((self.place(item), item) for item in items)
        self.places = sorted(self.items)

    def remove(self, item: Mapping[str, Any]) -> None:
        place = self.place(item)
        if self.items.pop(place, None) is not None:
            del self.places[bisect_left(self.places, place)]


class Table:
    """One table with its indexes."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self.request = request
        self.created = time.time()
        types = {d["AttributeName"]: d["AttributeType"] for d in request["AttributeDefinitions"]}
        self.base = View(schema_of(request["KeySchema"]), types)
        self.indexes = {
            index["IndexName"]: View(schema_of(index["KeySchema"]), types, self.base.schema.names)
            for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes")
            for index in request.get(kind, ())
        }
        self.reported: tuple[int, int] | None = None
        """What DescribeTable says of count and size; None: the truth."""

    def describe(self) -> dict[str, Any]:
        count, size = self.reported or (
            len(self.base.places),
            sum(map(size_of, self.base.items.values())),
        )
        name = self.request["TableName"]
        description = {
            "TableName": name,
            "TableStatus": "ACTIVE",
            "KeySchema": self.request["KeySchema"],
            "AttributeDefinitions": self.request["AttributeDefinitions"],
            "CreationDateTime": self.created,
            "TableArn": f"arn:aws:dynamodb:us-east-1:123456789012:table/{name}",
            "TableId": f"{int(self.created * 1e6):032x}",
            "ItemCount": count,
            "TableSizeBytes": size,
        }
        for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
            if kind in self.request:
                description[kind] = [
                    {
                        "IndexName": index["IndexName"],
                        "KeySchema": index["KeySchema"],
                        "Projection": index["Projection"],
                        "IndexStatus": "ACTIVE",
                        "ItemCount": len(self.indexes[index["IndexName"]].places),
                        "IndexSizeBytes": 0,
                    }
                    for index in self.request[kind]
                ]
        return description

    def put(self, item: Mapping[str, Any]) -> None:
        self._validate_key(self.base, {n: item[n] for n in self.base.key_names if n in item})
        self.delete(item)
        self.base.put(item)
        for view in self.indexes.values():
            if view.holds(item):
                view.put(item)

    def delete(self, key: Mapping[str, Any]) -> None:
        old = self.base.items.get(self.base.place(key))
        if old is not None:
            self.base.remove(old)
            for view in self.indexes.values():
                if view.holds(old):
                    view.remove(old)

    def scan(self, request: Mapping[str, Any], empty_page: bool = False) -> dict[str, Any]:
        """One page; `empty_page`: as the service may do at any time, one without items."""
        view = self._view(request)
        low, high = self._segment(request)
        limit = request.get("Limit")
        if limit is not None and limit < 1:
            raise invalid("Limit must be greater than or equal to 1")
        begin = bisect_left(view.places, (low,))
        end = bisect_left(view.places, (high,))
        start = request.get("ExclusiveStartKey")
        if start is not None:
            self._validate_key(view, start)
            place = view.place(start)
            if not low <= place[0] < high:
                raise invalid("The provided starting key is invalid: it is not in this segment")
            begin = max(begin, bisect_right(view.places, place))
        before = self._just_before(view, begin, start) if empty_page and begin < end else None
        if before is not None:
            return self._page(request, view, [], before, 0)
        taken: list[Mapping[str, Any]] = []
        read = 0
        at = begin
        while at < end and (limit is None or len(taken) < limit) and read < PAGE_BYTES:
            item = view.items[view.places[at]]
            taken.append(item)
            read += size_of(item)
            at += 1
        full = (limit is not None and len(taken) == limit) or read >= PAGE_BYTES
        last = {n: taken[-1][n] for n in view.key_names} if taken and full else None
        return self._page(request, view, taken, last, read)

    def query(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """One page of a collection, in the order of its sort key or against it."""
        view = self._view(request)
        low, high = _range(request, view)
        begin, end = bisect_left(view.places, low), bisect_left(view.places, high)
        forward = request.get("ScanIndexForward", True)
        start = request.get("ExclusiveStartKey")
        if start is not None:
            self._validate_key(view, start)
            if forward:
                begin = max(begin, bisect_right(view.places, view.place(start)))
            else:
                end = min(end, bisect_left(view.places, view.place(start)))
        limit = request.get("Limit", end - begin + 1)
        taken: list[Mapping[str, Any]] = []
        read = 0
        order = range(begin, end) if forward else range(end - 1, begin - 1, -1)
        for at in order:
            taken.append(view.items[view.places[at]])
            read += size_of(taken[-1])
            if len(taken) == limit or read >= PAGE_BYTES:
                break
        full = len(taken) == limit or read >= PAGE_BYTES
        last = {n: taken[-1][n] for n in view.key_names} if taken and full else None
        return self._page(request, view, taken, last, read)

    def _page(
        self,
        request: Mapping[str, Any],
        view: View,
        taken: list[Mapping[str, Any]],
        last: Mapping[str, Any] | None,
        read: int,
    ) -> dict[str, Any]:
        units = max(1, math.ceil(read / 4096)) * (1.0 if request.get("ConsistentRead") else 0.5)
        wanted = _projected(request)
        page: dict[str, Any] = {
            "Items": [
                {n: v for n, v in item.items() if wanted is None or n in wanted} for item in taken
            ],
            "Count": len(taken),
            "ScannedCount": len(taken),
        }
        if last is not None:
            page["LastEvaluatedKey"] = last
        if request.get("ReturnConsumedCapacity") in ("TOTAL", "INDEXES"):
            page["ConsumedCapacity"] = {"TableName": request["TableName"], "CapacityUnits": units}
        return page

    def _just_before(
        self, view: View, at: int, start: Mapping[str, Any] | None
    ) -> Mapping[str, Any] | None:
        """A key before the item at `at`, after everything read so far; None if there is none."""
        item = view.items[view.places[at]]
        key = {n: item[n] for n in view.key_names}
        if not self.base.schema.ranges or view is not self.base:
            return start
        name = self.base.schema.ranges[0]
        least = {"S": "\x00", "N": "-" + "9" * 38 + "E+87", "B": "AA=="}[view.types[name]]
        key[name] = {view.types[name]: least}
        return key if view.place(key) < view.places[at] else start

    def _view(self, request: Mapping[str, Any]) -> View:
        name = request.get("IndexName")
        if name is None:
            return self.base
        if name not in self.indexes:
            raise invalid(f"The table does not have the specified index: {name}")
        return self.indexes[name]

    def _segment(self, request: Mapping[str, Any]) -> tuple[int, int]:
        if ("Segment" in request) != ("TotalSegments" in request):
            raise invalid("Segment and TotalSegments go together")
        segment, total = request.get("Segment", 0), request.get("TotalSegments", 1)
        if not 1 <= total <= MOST_SEGMENTS or not 0 <= segment < total:
            raise invalid("Segment must be less than TotalSegments, which is 1 to 1000000")
        return -(-HASHES * segment // total), -(-HASHES * (segment + 1) // total)

    def _validate_key(self, view: View, key: Mapping[str, Any]) -> None:
        if set(key) != set(view.key_names):
            raise invalid("The provided key element does not match the schema")
        for name, value in key.items():
            ((type_, content),) = value.items()
            if type_ != view.types[name]:
                raise invalid(f"Type mismatch for key {name}")
            hash_key = name in view.schema.hashes
            if type_ == "N":
                digits = Decimal(content).normalize().as_tuple().digits
                if len(digits) > 38 or Decimal(content).adjusted() > 125:
                    raise invalid("Attempting to store more than 38 significant digits")
            else:
                length = len(content.encode() if type_ == "S" else _binary(content))
                if not 1 <= length <= (2048 if hash_key else 1024):
                    raise invalid(f"Size of {'hash' if hash_key else 'range'} key is out of bounds")


class _Last:
    """After all else."""

    def __lt__(self, other: Any) -> bool:
        return False

    def __gt__(self, other: Any) -> bool:
        return True


LAST = _Last()


def _range(request: Mapping[str, Any], view: View) -> tuple[Any, Any]:
    """From where to where a Query goes: `#k = :k`, and one comparison of the sort key."""
    names = request.get("ExpressionAttributeNames", {})
    values = request["ExpressionAttributeValues"]
    partition: dict[str, Any] = {}
    low: tuple[Any, ...] = ()
    high: tuple[Any, ...] = (LAST,)
    for clause in re.split(r"\s+AND\s+", request["KeyConditionExpression"]):
        name, operator, value = clause.split()
        name = names.get(name, name)
        if name in view.schema.hashes and operator == "=":
            partition[name] = values[value]
            continue
        if name not in view.schema.ranges:
            raise invalid(f"Query condition missed key schema element: {clause}")
        bound = order_of(values[value])
        if operator in (">=", ">", "="):
            low = (bound, LAST) if operator == ">" else (bound,)
        if operator in ("<=", "<", "="):
            high = (bound,) if operator == "<" else (bound, LAST)
    if set(partition) != set(view.schema.hashes):
        raise invalid("Query condition missed key schema element")
    orders = tuple(order_of(partition[name]) for name in view.schema.hashes)
    return (hash_of(orders), orders, low), (hash_of(orders), orders, high)


def _projected(request: Mapping[str, Any]) -> set[str] | None:
    expression = request.get("ProjectionExpression")
    if expression is None:
        return None
    if request.get("Select", "SPECIFIC_ATTRIBUTES") != "SPECIFIC_ATTRIBUTES":
        raise invalid("Select does not go with a ProjectionExpression")
    names = request.get("ExpressionAttributeNames", {})
    wanted = {names.get(part.strip(), part.strip()) for part in expression.split(",")}
    unused = set(names) - {part.strip() for part in expression.split(",")}
    if unused:
        raise invalid(f"Value provided in ExpressionAttributeNames unused: {sorted(unused)}")
    return wanted


class Service:
    """All tables; answers requests by operation name."""

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}

    def answer(self, operation: str, request: Mapping[str, Any], empty: bool = False) -> Any:
        """The response body; raises Refused."""
        if operation == "CreateTable":
            self.tables[request["TableName"]] = Table(request)
            return {"TableDescription": self.tables[request["TableName"]].describe()}
        if operation == "ListTables":
            after = request.get("ExclusiveStartTableName", "")
            names = sorted(name for name in self.tables if name > after)
            page = names[: request.get("Limit", 100)]
            more = {"LastEvaluatedTableName": page[-1]} if len(page) < len(names) else {}
            return {"TableNames": page, **more}
        if operation == "BatchWriteItem":
            for name, writes in request["RequestItems"].items():
                for write in writes:
                    if "PutRequest" in write:
                        self._table(name).put(write["PutRequest"]["Item"])
                    else:
                        self._table(name).delete(write["DeleteRequest"]["Key"])
            return {"UnprocessedItems": {}}
        table = self._table(request["TableName"])
        if operation == "DescribeTable":
            return {"Table": table.describe()}
        if operation == "DeleteTable":
            del self.tables[request["TableName"]]
            return {"TableDescription": table.describe()}
        if operation == "PutItem":
            table.put(request["Item"])
            return {}
        if operation == "DeleteItem":
            table.delete(request["Key"])
            return {}
        if operation == "Scan":
            return table.scan(request, empty)
        if operation == "Query":
            return table.query(request)
        if operation == "DescribeTimeToLive":
            return {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}
        raise Refused("UnknownOperationException", operation)

    def _table(self, name: str) -> Table:
        if name not in self.tables:
            raise Refused("ResourceNotFoundException", "Requested resource not found")
        return self.tables[name]
