"""Reads and conditional writes of single items for `each`, and the search for witnesses.

No other module of `each` writes to a user's table. All reads are strongly consistent.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.refusals import CHECK_FAILED, cancellations
from keyhop.dynamodb.requester import ItemCalls, Written, units_of
from keyhop.dynamodb.units import write_units
from keyhop.dynamodb.values import Item, Key, TypedValue, has_values, same_item, same_value, size_of
from keyhop.each.effect import Work
from keyhop.each.protocol import Answer

_PARTITION = "#kh_p"
_ABSENT = f"attribute_not_exists({_PARTITION})"
_THERE = f"attribute_exists({_PARTITION})"
WRITE_UNITS_OF_A_READ_UNIT = 4.0
"""The maximum write units for an item that takes one strongly consistent read unit (4 KB), without
a transaction.
"""

LOOK_ON_ITEMS = 3
"""The page size of a search after its first item, as our item and a sentinel may precede a witness.
"""


class Writer(ItemCalls):
    """Reads and writes items of one table, for any number of threads.

    A started row is finished even if the run should stop, unless it would have to wait.
    """

    def __init__(self, work: Work, budget: Budget) -> None:
        super().__init__(
            work.connection,
            work.source.name,
            writes=budget,
            patience=work.patience,
            stop=work.stop,
            usage=work.usage,
        )
        space = work.source.space
        (self._partition,) = space.names
        self._sort = None if space.sort is None else space.sort.name
        self._sentinel = work.sentinel
        self._names = {_PARTITION: self._partition}
        self._seen_units = 1.0
        self._small_witness_units = WRITE_UNITS_OF_A_READ_UNIT
        keys = [self._partition, *([self._sort] if self._sort else [])]
        names = dict.fromkeys([*keys, *(work.sentinel or ())])
        self._shown = {f"#k{number}": name for number, name in enumerate(names)}
        self._key_names = keys

    def pause(self, seconds: float) -> None:
        """Wait before a call, but only if the wait is not zero; see the class."""
        if seconds > 0:
            super().pause(seconds)

    def key_of(self, item: Item) -> dict[str, TypedValue]:
        return {name: item[name] for name in self._key_names}

    def put(self, item: Item) -> tuple[Answer, bool]:
        """Put an item if no item has its key.

        Return the answer, and whether an existing item may have been put by this call.
        """
        written = self._one("put_item", size_of(item), Item=item, ConditionExpression=_ABSENT)
        if written.refused is None:
            return Answer.FREE, False
        # Deleted between refusal and answer, or a local database does not return the item.
        return self._found(item, written.old) or Answer.OTHER, written.unsure

    def put_over(self, item: Item) -> Answer:
        """Put an item if an item with its key exists."""
        written = self._one("put_item", size_of(item), Item=item, ConditionExpression=_THERE)
        return Answer.FREE if written.refused is None else Answer.LOST

    def put_checked(
        self, item: Item, witness: Key, witness_units: float, overwrite: bool
    ) -> Answer:
        """Put an item in a transaction that checks that the witness exists.

        Args:
            item: The item to put.
            witness: The key of another item of the collection.
            witness_units: The maximum write units of checking the witness, as `look` returns them.
            overwrite: Whether to replace an existing item with the same key.
        """
        check: dict[str, Any] = {
            "TableName": self._table,
            "Key": witness,
            "ConditionExpression": _THERE,
            "ExpressionAttributeNames": self._names,
        }
        put: dict[str, Any] = {"TableName": self._table, "Item": item}
        if not overwrite:
            put |= {
                "ConditionExpression": _ABSENT,
                "ExpressionAttributeNames": self._names,
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        is_small = witness_units <= WRITE_UNITS_OF_A_READ_UNIT
        checked = self._small_witness_units if is_small else witness_units
        item_units = write_units(size_of(item))
        units = 2 * (item_units + checked)
        written = self._write(
            "transact_write_items",
            units,
            units,
            TransactItems=[{"ConditionCheck": check}, {"Put": put}],
            ClientRequestToken=uuid.uuid4().hex,  # boto3 repeats the request with the same token
        )
        if written.refused is None:
            if is_small:  # the next witness is probably as large
                measured = max(1.0, written.units / 2 - item_units)
                self._small_witness_units = min(measured, WRITE_UNITS_OF_A_READ_UNIT)
            return Answer.FREE
        if cancellations(written.refused)[1:] != [CHECK_FAILED]:
            return Answer.LOST
        reasons = written.refused.response["CancellationReasons"]
        return self._found(item, reasons[1].get("Item")) or Answer.OTHER

    def take_back(self, item: Item) -> Written:
        """Delete an item if each attribute is as it was put.

        Conditions cannot exclude additional attributes, so an attribute that a user has added is
        deleted too.
        """
        attributes = [name for name in item if name not in self._key_names]
        names = {f"#a{number}": name for number, name in enumerate(attributes)}
        values = {f":a{number}": item[name] for number, name in enumerate(attributes)}
        tests = [f"#a{number} = :a{number}" for number in range(len(attributes))]
        return self._one(
            "delete_item",
            size_of(item),
            Key=self.key_of(item),
            ConditionExpression=" AND ".join([_THERE, *tests]),
            names=names,
            **({"ExpressionAttributeValues": values} if values else {}),
        )

    def delete(self, key: Key) -> Written:
        """Delete an item if it exists."""
        return self._one("delete_item", 0, Key=key, ConditionExpression=_THERE)

    def update(
        self, key: Key, expression: str, names: Mapping[str, str], values: Mapping[str, TypedValue]
    ) -> Written:
        """Update an item if it exists."""
        return self._one(
            "update_item",
            0,
            Key=key,
            UpdateExpression=expression,
            ConditionExpression=_THERE,
            names=names,
            **({"ExpressionAttributeValues": values} if values else {}),
        )

    def look(self, item: Item) -> tuple[Answer, Key, float]:
        """Look for a witness: an item with another key that is not a sentinel.

        The search starts at the end, because sentinels, and most items that `each` puts, sort
        first.

        Returns:
            The answer, the witness's key, and the maximum write units of checking it
            without a transaction, estimated from the read units.
        """
        assert self._sort is not None
        parameters: dict[str, Any] = {
            "KeyConditionExpression": "#k0 = :p",
            "ExpressionAttributeValues": {":p": item[self._partition]},
            "ProjectionExpression": ", ".join(self._shown),
            "ExpressionAttributeNames": self._shown,
            "Select": "SPECIFIC_ATTRIBUTES",  # required by the IAM policy
            "ScanIndexForward": False,
            "Limit": 1,
        }
        result = Answer.FREE
        while True:
            answer = self._read("query", **parameters)
            for candidate in answer["Items"]:
                if same_value(candidate[self._sort], item[self._sort]):
                    result = Answer.ALONE
                elif not self._is_sentinel(candidate):
                    units = WRITE_UNITS_OF_A_READ_UNIT * max(1.0, units_of(answer))
                    return Answer.WITNESS, self.key_of(candidate), units
            if "LastEvaluatedKey" not in answer:
                return result, {}, 0.0
            parameters["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
            parameters["Limit"] = LOOK_ON_ITEMS

    def read(self, item: Item) -> Answer:
        """Read the item with this key, and compare it."""
        answer = self._read("get_item", Key=self.key_of(item))
        return self._found(item, answer.get("Item")) or Answer.FREE

    def read_many(self, keys: Sequence[Key], full: bool) -> list[Item]:
        """Return the items that exist; only their keys, unless `full` is set."""
        names = {f"#k{number}": name for number, name in enumerate(self._key_names)}
        projection = {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names}
        return self._read_batch(keys, {} if full else projection)

    def _one(
        self, operation: str, item_bytes: float, names: Mapping[str, str] = {}, **parameters: Any
    ) -> Written:
        """Write one item. item_bytes: 0 to assume the units of the last write."""
        written = self._write(
            operation,
            write_units(item_bytes) if item_bytes else self._seen_units,
            TableName=self._table,
            ExpressionAttributeNames={**self._names, **names},
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
            **parameters,
        )
        if written.refused is None:
            self._seen_units = written.units
        return written

    def _is_sentinel(self, item: Item) -> bool:
        return self._sentinel is not None and has_values(item, self._sentinel)

    def _found(self, item: Item, existing: Item | None) -> Answer | None:
        if existing is None:
            return None
        return Answer.EQUAL if same_item(item, existing) else Answer.OTHER
