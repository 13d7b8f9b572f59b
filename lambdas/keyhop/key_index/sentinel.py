"""The sentinel: the one marker item of an item collection, and the index that holds only them.

    {partition key, least sort key, "keyhop": 1}

The marker attribute is a number; the key index has the table's partition key as its HASH and the
marker as its RANGE, so items without a marker are not in it. An item of a user is taken for a
sentinel only if it has the sort key and the marker, with exactly this value. Such an item may have
other attributes, too: no condition of DynamoDB can exclude that, and IAM allows reads of the named
attributes only.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

from keyhop.dynamodb.schema import KEY_INDEX, KeyAttribute, KeySpace
from keyhop.dynamodb.schema import MARKER as MARKER
from keyhop.dynamodb.units import MOST_SORT_KEY_BYTES
from keyhop.dynamodb.values import (
    Key,
    KeyType,
    TypedValue,
    canonical,
    from_json,
    is_number,
    same_value,
    to_json,
)
from keyhop.errors import CannotStart

INDEX = KEY_INDEX

LEAST_SORT_KEY: dict[str, TypedValue] = {
    "S": {"S": "!keyhop"},
    "N": {"N": "-9.9999999999999999999999999999999999999E+125"},
    "B": {"B": b"\x00keyhop"},
}
"""The sort key of a sentinel, by type. Those of S and B are not the least possible ones."""

MARK: TypedValue = {"N": "1"}


@dataclass(frozen=True, slots=True)
class Sentinel:
    """The sentinels of one table; `place` is the value of their sort key."""

    partition: KeyAttribute
    sort: KeyAttribute
    place: TypedValue

    @classmethod
    def of(cls, space: KeySpace, place: str | None = None) -> "Sentinel":
        """Return the sentinel for the key space of a table; raise CannotStart if it can have none.

        The `place` is the sort key as text (base64 for type B); None for the usual one.
        """
        (partition,) = space.partition
        if space.sort is None:
            raise CannotStart(
                "A key index needs a table with a sort key: without one each item is a separate "
                "collection, so a sentinel would be a second item, and a plain scan lists the keys."
            )
        if MARKER in (partition.name, space.sort.name):
            raise CannotStart(
                f"A key attribute of the table is called {MARKER!r}, like the attribute that "
                "marks sentinels: this table cannot have a key index."
            )
        if place is None:
            return cls(partition, space.sort, LEAST_SORT_KEY[space.sort.type])
        return cls(partition, space.sort, _value_of(space.sort, place))

    def key_of(self, partition: Key) -> Key:
        return {**partition, self.sort.name: self.place}

    def item_of(self, partition: Key) -> Key:
        return {**self.key_of(partition), MARKER: MARK}

    def is_at_place(self, item: Mapping[str, TypedValue]) -> bool:
        """Return whether an item, or a row of the index, has the sentinel's sort key."""
        return same_value(item[self.sort.name], self.place)

    def is_after(self, item: Mapping[str, TypedValue]) -> bool:
        """Return whether the sentinel's sort key sorts after an item's; strings sort by UTF-8."""
        return bool(_order(item[self.sort.name]) < _order(self.place))

    def is_one(self, item: Mapping[str, TypedValue]) -> bool:
        """Return whether an item is a sentinel: it has both the sort key and the marker."""
        return same_value(item.get(MARKER, {}), MARK) and self.is_at_place(item)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON: `{"partition": {name, type}, "place": {sort key: typed value}}`."""
        partition = {"name": self.partition.name, "type": self.partition.type}
        return {"partition": partition, "place": to_json({self.sort.name: self.place})}

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> "Sentinel":
        ((name, place),) = from_json(state["place"]).items()
        (type_,) = place
        sort = KeyAttribute(name, cast(KeyType, type_))
        return cls(KeyAttribute(**state["partition"]), sort, _in_one_form(place))


def _order(value: TypedValue) -> Any:
    ((type_, content),) = value.items()
    if type_ == "N":
        return Decimal(content)
    return content.encode() if type_ == "S" else content


def _value_of(sort: KeyAttribute, text: str) -> TypedValue:
    try:
        if sort.type == "B":
            base64.b64decode(text, validate=True)
        if sort.type == "N" and not is_number(text):
            raise ValueError
        (value,) = from_json({sort.name: {sort.type: text}}).values()
        (content,) = value.values()
        length = len(content.encode() if sort.type == "S" else content)
    except (ValueError, ArithmeticError) as error:
        raise CannotStart(f"{text!r} is not a sort key of type {sort.type}.") from error
    if not 1 <= length <= MOST_SORT_KEY_BYTES:
        raise CannotStart(f"A sort key has 1 to {MOST_SORT_KEY_BYTES:,} bytes, not {length:,}.")
    return _in_one_form(value)


def _in_one_form(place: TypedValue) -> TypedValue:
    """Return one form of a sort key: the recorded place is compared with the configured one."""
    return {"N": canonical(place)[1]} if "N" in place else place
