"""DynamoDB's items, in memory: each request in the pieces that the service makes atomic.

A write and a transaction are one piece; each key of a batch is a piece of its own, as a batch is
neither a transaction nor a snapshot. Single pages are one piece. Always strongly consistent.
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from testing.simulation.expressions import holds, matches, order_of, updated

CONDITION_FAILED = "ConditionalCheckFailedException"
HOT = [{"reason": "TableWriteKeyRangeThroughputExceeded", "resource": "arn:aws:dynamodb:::table"}]

Item = dict[str, Any]
Piece = Callable[[], None]
"""Does its part, and adds to the answer."""


def failure(code: str, status: int = 400, **more: Any) -> ClientError:
    """An error response."""
    error = {"Error": {"Code": code, "Message": code}}
    return ClientError({**error, "ResponseMetadata": {"HTTPStatusCode": status}, **more}, "")


@dataclass
class Table:
    """keys: the names of its partition key and its sort key. items: by partition, then sort key.
    shards: of its stream, as what has changed: when, the item as it was, and as it is; none: it
    has no stream. now: tells the moment.
    """

    keys: tuple[str, ...]
    items: dict[Any, dict[Any, Item]] = field(default_factory=dict)
    shards: list[list[tuple[float, Item | None, Item | None]]] = field(default_factory=list)
    now: Callable[[], float] = lambda: 0.0

    def at(self, key: Mapping[str, Any]) -> Item | None:
        return self.items.get(self._partition(key), {}).get(self._sort(key))

    def put(self, item: Mapping[str, Any]) -> None:
        self._changed(self.at(item), dict(item))
        self.items.setdefault(self._partition(item), {})[self._sort(item)] = dict(item)

    def delete(self, key: Mapping[str, Any]) -> None:
        self._changed(self.at(key), None)
        self.items.get(self._partition(key), {}).pop(self._sort(key), None)

    def key_of(self, item: Mapping[str, Any]) -> Item:
        return {name: item[name] for name in self.keys}

    def partition(self, value: Mapping[str, Any]) -> list[Item]:
        """In the order of the sort key."""
        items = self.items.get(order_of(value), {})
        return [items[sort] for sort in sorted(items)]

    def _changed(self, old: Item | None, new: Item | None) -> None:
        there = old or new
        if self.shards and old != new and there is not None:
            hashed = zlib.crc32(repr(self._partition(there)).encode())
            self.shards[hashed % len(self.shards)].append((self.now(), old, new))

    def _partition(self, item: Mapping[str, Any]) -> Any:
        return order_of(item[self.keys[0]])

    def _sort(self, item: Mapping[str, Any]) -> Any:
        return order_of(item[self.keys[1]]) if len(self.keys) > 1 else None


@dataclass
class Service:
    """page_items: that a page holds at most, as if they were large."""

    tables: dict[str, Table]
    page_items: int = 1_000
    _tokens: set[str] = field(default_factory=set)

    def pieces(self, operation: str, request: Mapping[str, Any], answer: Item) -> list[Piece]:
        """What the request does, in pieces that may happen in any order. They raise ClientError."""
        match operation:
            case "batch_get_item":
                answer |= {"Responses": {}, "UnprocessedKeys": {}}
                ((name, of),) = request["RequestItems"].items()
                found = answer["Responses"][name] = []
                return [lambda key=key: self._get_one(name, key, found) for key in of["Keys"]]
            case "batch_write_item":
                answer |= {"UnprocessedItems": {}, "ConsumedCapacity": []}
                ((name, writes),) = request["RequestItems"].items()
                return [lambda write=write: self._write_one(name, write) for write in writes]
        return [lambda: answer.update(self._atomic(operation, request))]

    def _atomic(self, operation: str, request: Mapping[str, Any]) -> Item:
        match operation:
            case "describe_table":
                return self._described(request["TableName"])
            case "get_item":
                found = self.tables[request["TableName"]].at(request["Key"])
                return {"Item": dict(found)} if found is not None else {}
            case "query":
                return self._query(request)
            case "scan":  # of metadata, whose first page is small
                partitions = self.tables[request["TableName"]].items.values()
                items = [dict(item) for partition in partitions for item in partition.values()]
                return {"Items": items[: request.get("Limit")]}
            case "transact_write_items":
                return self._transact(request)
        return self._write(operation, request)

    def _get_one(self, name: str, key: Item, found: list[Item]) -> None:
        item = self.tables[name].at(key)
        if item is not None:
            found.append(dict(item))

    def _write_one(self, name: str, write: Mapping[str, Any]) -> None:
        if "PutRequest" in write:
            self.tables[name].put(write["PutRequest"]["Item"])
        else:
            self.tables[name].delete(write["DeleteRequest"]["Key"])

    def _write(self, operation: str, request: Mapping[str, Any]) -> Item:
        table = self.tables[request["TableName"]]
        key = table.key_of(request.get("Item") or request["Key"])
        old = table.at(key)
        if not holds(request, old):
            shown = request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
            raise failure(CONDITION_FAILED, **({"Item": dict(old)} if shown and old else {}))
        new = self._done(operation, request, table, key, old)
        answer: Item = {"ConsumedCapacity": {"CapacityUnits": 1.0}}
        match request.get("ReturnValues"):
            case "ALL_OLD" if old is not None:
                answer["Attributes"] = dict(old)
            case "ALL_NEW":
                answer["Attributes"] = dict(new)
            case "UPDATED_NEW":
                before = old or key
                changed = {n: v for n, v in new.items() if before.get(n) != v}
                answer["Attributes"] = changed
        return answer

    def _done(
        self, operation: str, request: Mapping[str, Any], table: Table, key: Item, old: Item | None
    ) -> Item:
        new: Item = {}
        match operation:
            case "put_item":
                new = dict(request["Item"])
            case "update_item":
                new = updated(request, old if old is not None else key)
        if operation == "delete_item":
            table.delete(key)
        else:
            table.put(new)
        return new

    def _transact(self, request: Mapping[str, Any]) -> Item:
        token = request.get("ClientRequestToken")
        answer: Item = {"ConsumedCapacity": [{"CapacityUnits": 4.0}]}
        if token in self._tokens:
            return answer
        reasons, parts = [], []
        for item in request["TransactItems"]:
            ((kind, part),) = item.items()
            table = self.tables[part["TableName"]]
            key = table.key_of(part.get("Item") or part["Key"])
            old = table.at(key)
            parts.append((kind, part, table, key, old))
            reasons.append({"Code": "None"})
            if not holds(part, old):
                reasons[-1] = {"Code": "ConditionalCheckFailed"}
                if old and part.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD":
                    reasons[-1]["Item"] = dict(old)
        if any(reason["Code"] != "None" for reason in reasons):
            raise failure("TransactionCanceledException", CancellationReasons=reasons)
        for kind, part, table, key, old in parts:
            if kind != "ConditionCheck":
                self._done(f"{kind.lower()}_item", part, table, key, old)
        if token is not None:
            self._tokens.add(token)
        return answer

    def _query(self, request: Mapping[str, Any]) -> Item:
        table = self.tables[request["TableName"]]
        values = request["ExpressionAttributeValues"]
        condition = request["KeyConditionExpression"]
        partition = values[condition.split()[2]]
        items = table.partition(partition)
        if " AND " in condition:
            items = [item for item in items if matches(condition, request, item)]
        backwards = not request.get("ScanIndexForward", True)
        if backwards:
            items.reverse()
        after = request.get("ExclusiveStartKey")
        if after is not None:
            name = table.keys[1]
            last = order_of(after[name])
            items = [
                item
                for item in items
                if (order_of(item[name]) < last if backwards else order_of(item[name]) > last)
            ]
        most = min(request.get("Limit", self.page_items), self.page_items)
        page = [dict(item) for item in items[:most]]
        answer: Item = {"Items": page, "Count": len(page), "ScannedCount": len(page)}
        if len(page) == most:
            answer["LastEvaluatedKey"] = table.key_of(page[-1])
        return answer

    def _described(self, name: str) -> Item:
        keys = self.tables[name].keys
        stream = {"LatestStreamArn": name} if self.tables[name].shards else {}
        kinds = ("HASH", "RANGE")
        return {
            "Table": {
                "TableName": name,
                **stream,
                "KeySchema": [
                    {"AttributeName": key, "KeyType": kind}
                    for key, kind in zip(keys, kinds, strict=False)
                ],
                "AttributeDefinitions": [
                    {"AttributeName": key, "AttributeType": "S"} for key in keys
                ],
            }
        }
