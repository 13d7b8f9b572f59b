"""How a table's hot keys are spread over shards, as the context says it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from keyhop.checks import Must, Truth, Wrong, camel, names_of, one_of, text
from keyhop.errors import CannotStart
from keyhop.jobs.request import TABLE_NAME
from keyhop.sharding.key.names import MOST_SHARDS, Names
from keyhop.sharding.key.shards import ATTRIBUTES

from .config_values import choice, shape_of, whole, wrong_in

MOST_NAME = 255


def _is_key_name(value: Any) -> bool:
    return isinstance(value, str) and 1 <= len(value.encode()) <= MOST_NAME


def _not_of_metadata(value: str) -> str:
    if value in ATTRIBUTES:
        free = "another attribute, as the metadata items use that one themselves"
        raise Wrong(Must(_is_key_name, free), value)
    return value


def _not_a_number(value: str) -> str:
    if value == "N":
        suffix = "S or B: a number cannot carry the suffix of a shard"
        raise Wrong(Must(one_of("S", "B"), suffix), value)
    return value


def _is_separator(value: Any) -> bool:
    try:
        Names(separator=value)
    except (CannotStart, TypeError):
        return False
    return True


def _are_counts(value: Any) -> bool:
    is_whole = whole(1, MOST_SHARDS).check
    return isinstance(value, Mapping) and all(map(is_whole, value.values()))


@dataclass(frozen=True)
class Sharding:
    """How hot keys of one table are spread over shards; with the names of the context."""

    partition_key: Annotated[
        str, Must(_is_key_name, "the attribute of the table's partition key", _not_of_metadata)
    ]
    """The attribute that is the table's partition key, and its metadata table's as well."""
    partition_key_type: Annotated[
        str, Must(one_of("S", "B", "N"), "one of S, B", _not_a_number)
    ] = "S"
    metadata: Annotated[
        str,
        Must(
            text(TABLE_NAME, re.compile("")),
            "the name of a table (3 to 255 of a-z A-Z 0-9 _ . -) that the stack makes",
        ),
    ] = ""
    """The name of the metadata table; empty until the stack's name is known."""
    placement: Annotated[str, choice("calculated", "random")] = "calculated"
    hash: Annotated[str, choice("jump", "modulo")] = "jump"
    append_only: Truth = False
    separator: Annotated[
        str, Must(_is_separator, "1 to 16 printable ASCII characters, with no digits and no spaces")
    ] = "_"
    most_shards: Annotated[int, whole(1, MOST_SHARDS)] = 64
    """Of one key."""
    start_shards: Annotated[
        Mapping[str, int],
        Must(
            _are_counts, f'an object with counts of 1 to {MOST_SHARDS}, as {{"/logs/*": 8}}', dict
        ),
    ] = field(default_factory=dict, hash=False)
    """Of new keys that are known to become hot, by key, or by prefix with a * at its end."""

    def for_functions(self) -> dict[str, Any]:
        """What the functions are told; they see the partition key in the table's schema."""
        _, _, *rest = fields(self)
        told = {camel(field.name): getattr(self, field.name) for field in rest}
        return {name: value for name, value in told.items() if value != {}}


def sharding_of(table: str, is_arn: bool, has_index: bool, value: Any) -> Sharding | None:
    """What a table's entry has for it; raises ConfigError."""
    if value is None:
        return None
    if is_arn:
        here = "left out for a table given by its ARN: give its name; it must be in the stack's "
        raise wrong_in(table, "sharding", value, f"{here}account and region")
    if has_index:
        alone = "left out with keyIndex, as sentinels would be read and moved like items"
        raise wrong_in(table, "sharding", value, alone)
    if not isinstance(value, Mapping):
        raise wrong_in(table, "sharding", value, 'an object, as {"partitionKey": "path"}')
    return shape_of(
        Sharding,
        {"partitionKey": None, **value},
        names_of(Sharding),
        f"The context field tables has, for the table {table}, a sharding with the field {{}}"
        ", which",
        lambda field, value, allowed: wrong_in(table, f"sharding.{field}", value, allowed),
    )
