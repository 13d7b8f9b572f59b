"""Single items of users' collections: conditional writes, and looks for witnesses.

The only place from which `each` writes to a user's table. All reads are strongly consistent.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from keyhop.dynamodb.item_calls import ItemCalls, Written, write_units
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.refusals import CHECK_FAILED, cancellations
from keyhop.dynamodb.requester import units_of
from keyhop.dynamodb.values import Item, Key, TypedValue, has_values, same_item, same_value, size_of
from keyhop.each.effect import Work
from keyhop.each.protocol import Answer

_PARTITION = "#kh_p"
_ABSENT = f"attribute_not_exists({_PARTITION})"
_THERE = f"attribute_exists({_PARTITION})"
WRITE_UNITS_OF_A_READ_UNIT = 4.0
"""Of an item that was read with so many strongly consistent read units (4 KB each), a write of a
transaction counts up to so many KB."""

LOOK_ON_ITEMS = 3
"""After the first item of a look was no witness: ours and a sentinel may still come before one."""


class Writer(ItemCalls):
    """Of one table; for any number of threads.

    A row that was begun is ended, also if the run is to stop; unless it has to wait.
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
        wanted = dict.fromkeys([*keys, *(work.sentinel or ())])
        self._shown = {f"#k{number}": name for number, name in enumerate(wanted)}
        self._key_names = keys

    def pause(self, seconds: float) -> None:
        """Wait before a call; see the class."""
        if seconds > 0:
            super().pause(seconds)

    def key_of(self, item: Item) -> dict[str, TypedValue]:
        return {name: item[name] for name in self._key_names}

    def put(self, item: Item) -> tuple[Answer, bool]:
        """Put it if nothing has its key; and whether what is found may be of this very call."""
        written = self._one("put_item", size_of(item), Item=item, ConditionExpression=_ABSENT)
        if written.refused is None:
            return Answer.FREE, False
        # It was deleted between refusal and answer, or a local database does not tell.
        return self._found(item, written.old) or Answer.OTHER, written.unsure

    def put_over(self, item: Item) -> Answer:
        """Put it where something has its key."""
        written = self._one("put_item", size_of(item), Item=item, ConditionExpression=_THERE)
        return Answer.FREE if written.refused is None else Answer.LOST

    def put_checked(
        self, item: Item, witness: Key, witness_units: float, overwrite: bool
    ) -> Answer:
        """Put it in a transaction with a check of the witness.

        Args:
            item: What is put.
            witness: The key of another item of the collection.
            witness_units: The most write units that checking it costs, by `look`.
            overwrite: Whether the item is put also where something has its key.
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
        own = write_units(size_of(item))
        units = 2 * (own + checked)
        written = self._write(
            "transact_write_items",
            units,
            units,
            TransactItems=[{"ConditionCheck": check}, {"Put": put}],
            ClientRequestToken=uuid.uuid4().hex,  # repeated after a lost answer, it is the same one
        )
        if written.refused is None:
            if is_small:  # as large as the next one, probably
                seen = max(1.0, written.units / 2 - own)
                self._small_witness_units = min(seen, WRITE_UNITS_OF_A_READ_UNIT)
            return Answer.FREE
        if cancellations(written.refused)[1:] != [CHECK_FAILED]:
            return Answer.LOST
        reasons = written.refused.response["CancellationReasons"]
        return self._found(item, reasons[1].get("Item")) or Answer.OTHER

    def take_back(self, item: Item) -> Written:
        """Delete it if each attribute is as it was put.

        An attribute that a user adds no condition can ask for: it goes with the item.
        """
        others = [name for name in item if name not in self._key_names]
        names = {f"#a{number}": name for number, name in enumerate(others)}
        values = {f":a{number}": item[name] for number, name in enumerate(others)}
        tests = [f"#a{number} = :a{number}" for number in range(len(others))]
        return self._one(
            "delete_item",
            size_of(item),
            Key=self.key_of(item),
            ConditionExpression=" AND ".join([_THERE, *tests]),
            names=names,
            **({"ExpressionAttributeValues": values} if values else {}),
        )

    def delete(self, key: Key) -> Written:
        """Delete an item if it is there."""
        return self._one("delete_item", 0, Key=key, ConditionExpression=_THERE)

    def update(
        self, key: Key, expression: str, names: Mapping[str, str], values: Mapping[str, TypedValue]
    ) -> Written:
        """Update an item if it is there."""
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
        """Look for a witness: an item that is no sentinel, and has another key.

        Returns:
            What was found, the witness's key, and the most write units that a check of it costs
            (without a transaction), by what reading it has cost.

        From the end: sentinels sort first, and most that is put into all collections does.
        """
        assert self._sort is not None
        parameters: dict[str, Any] = {
            "KeyConditionExpression": "#k0 = :p",
            "ExpressionAttributeValues": {":p": item[self._partition]},
            "ProjectionExpression": ", ".join(self._shown),
            "ExpressionAttributeNames": self._shown,
            "Select": "SPECIFIC_ATTRIBUTES",  # as IAM demands it
            "ScanIndexForward": False,
            "Limit": 1,
        }
        found = Answer.FREE
        while True:
            answer = self._read("query", **parameters)
            for other in answer["Items"]:
                if same_value(other[self._sort], item[self._sort]):
                    found = Answer.ALONE
                elif not self._is_sentinel(other):
                    units = WRITE_UNITS_OF_A_READ_UNIT * max(1.0, units_of(answer))
                    return Answer.WITNESS, self.key_of(other), units
            if "LastEvaluatedKey" not in answer:
                return found, {}, 0.0
            parameters["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
            parameters["Limit"] = LOOK_ON_ITEMS

    def read(self, item: Item) -> Answer:
        """What has its key."""
        answer = self._read("get_item", Key=self.key_of(item))
        return self._found(item, answer.get("Item")) or Answer.FREE

    def read_many(self, keys: Sequence[Key], whole: bool) -> list[Item]:
        """Those that are there; else than whole, their keys."""
        names = {f"#k{number}": name for number, name in enumerate(self._key_names)}
        projection = {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names}
        return self._read_batch(keys, {} if whole else projection)

    def _one(
        self, operation: str, item_bytes: float, names: Mapping[str, str] = {}, **parameters: Any
    ) -> Written:
        """A write of one item. item_bytes: 0 for as much as the last one has cost."""
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

    def _found(self, item: Item, there: Item | None) -> Answer | None:
        if there is None:
            return None
        return Answer.EQUAL if same_item(item, there) else Answer.OTHER
