"""Strong reads and conditional writes of single items, above all of Keyhop's own tables.

A condition (`When`) has the attributes of the existing item that a write depends on, each with the
value that it must have, or None if the item must not have it. An item always has its key. So
`{"pk": None}` means that no item exists, and the value of the key itself means that one exists.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from keyhop.dynamodb.requester import ItemCalls, Written
from keyhop.dynamodb.units import write_units
from keyhop.dynamodb.values import Item, Key, TypedValue, size_of

When = Mapping[str, TypedValue | None]


class OwnTable(ItemCalls):
    """A table whose items Keyhop writes, for any number of threads; the arguments of ItemCalls."""

    def get(self, key: Key) -> Item | None:
        """Return the item with this primary key; None if there is none."""
        item: Item | None = self._read("get_item", Key=key).get("Item")
        return item

    def query(
        self, partition: Key, maximum: int | None = None, after: Key | None = None
    ) -> Iterator[Item]:
        """Yield the first `maximum` items with a partition key, after the primary key `after`."""
        ((name, value),) = partition.items()
        condition = {
            "KeyConditionExpression": "#p = :p",
            "ExpressionAttributeNames": {"#p": name},
            "ExpressionAttributeValues": {":p": value},
        }
        start = {} if after is None else {"ExclusiveStartKey": after}
        remaining = maximum
        while remaining is None or remaining > 0:
            limit = {} if remaining is None else {"Limit": remaining}
            page = self._read("query", **condition, **limit, **start)
            yield from page["Items"]
            remaining = None if remaining is None else remaining - len(page["Items"])
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def put_if(self, item: Item, when: When) -> Written:
        """Put an item if the condition holds; an empty condition always does."""
        units = write_units(size_of(item))
        return self._write("put_item", units, TableName=self._table, Item=item, **expressions(when))

    def update_if(self, key: Key, values: Key, when: When) -> Written:
        """Set these attributes of an item if the condition holds."""
        conditional = expressions(when, values)
        return self._write("update_item", 1.0, TableName=self._table, Key=key, **conditional)

    def delete_if(self, key: Key, when: When) -> Written:
        """Delete an item if the condition holds; an empty condition always does."""
        conditional = expressions(when)
        return self._write("delete_item", 1.0, TableName=self._table, Key=key, **conditional)


def expressions(when: When, values: Key | None = None) -> dict[str, Any]:
    """Return the parameters of a write with a condition, or of a part of a transaction, which sets
    these values if it is an update.
    """
    names: dict[str, str] = {}
    content: dict[str, TypedValue] = {}
    clauses, assignments = [], []
    for number, (name, value) in enumerate(when.items()):
        names[f"#if{number}"] = name
        if value is None:
            clauses.append(f"attribute_not_exists(#if{number})")
        else:
            content[f":if{number}"] = value
            clauses.append(f"#if{number} = :if{number}")
    for number, (name, value) in enumerate((values or {}).items()):
        names[f"#set{number}"], content[f":set{number}"] = name, value
        assignments.append(f"#set{number} = :set{number}")
    parameters: dict[str, Any] = {}
    if clauses:
        parameters["ConditionExpression"] = " AND ".join(clauses)
        parameters["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    if assignments:
        parameters["UpdateExpression"] = f"SET {', '.join(assignments)}"
    if names:
        parameters["ExpressionAttributeNames"] = names
    return parameters | ({"ExpressionAttributeValues": content} if content else {})
