"""How hot keys of a table are spread over shards: the field sharding of an entry in tables.

What can be known to be wrong before anything is deployed is refused here: the library refuses the
same (lambdas/keyhop/sharding/names.py), but only at the first write.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from infra.config_fields import ConfigError, hint, whole, wrong_in

TABLE_NAME = re.compile(r"[a-zA-Z0-9_.-]{3,255}")
MOST_NAME = 255
PLACEMENTS = ("calculated", "random")
HASHES = ("jump", "modulo")
MOST_SHARDS = 1000
"""The library's limit for one key."""
DEFAULT_MOST_SHARDS = 64

METADATA_ATTRIBUTES = (
    *("number_of_shards", "last_updated", "shard_history", "writable", "readable", "phase"),
    *("placed_by", "settle_seconds", "placement", "shards_before", "of_table", "called_off"),
    *("traffic", "shards_added"),
)
"""What a metadata item has beside its key, which is named like the table's own partition key."""

_FIELDS = (
    *("partitionKey", "partitionKeyType", "metadata", "placement", "hash"),
    *("appendOnly", "separator", "mostShards"),
)
_SEPARATOR = re.compile(r"[!-/:-~]{1,16}")


@dataclass(frozen=True)
class Sharding:
    """How one table is sharded."""

    partition_key: str
    """The attribute that is the table's partition key, and its metadata table's as well."""
    partition_key_type: str
    """S or B."""
    metadata: str
    """The name of the metadata table; empty until the stack's name is known."""
    placement: str
    hash: str
    append_only: bool
    separator: str
    most_shards: int
    """Of one key."""


def sharding_of(name: str, table: str, value: Any) -> Sharding:
    """What the entry of `table` in the context field `name` says; raises ConfigError."""
    if not isinstance(value, Mapping):
        raise wrong_in(name, table, "sharding", value, 'an object, as {"partitionKey": "path"}')
    for field in value:
        if field not in _FIELDS:
            raise ConfigError(
                f"The context field {name} has, for the table {table}, a sharding with the field "
                f"{field}, which is not known; {hint(field, _FIELDS)}"
            )
    told = _Told(name, table, value)
    return Sharding(
        partition_key=told.partition_key(),
        partition_key_type=told.partition_key_type(),
        metadata=told.metadata(),
        placement=told.choice("placement", PLACEMENTS),
        hash=told.choice("hash", HASHES),
        append_only=told.truth("appendOnly", False),
        separator=told.separator(),
        most_shards=told.most_shards(),
    )


def named_metadata(sharding: Sharding, table: str, stack_name: str) -> Sharding:
    """With the default name of the metadata table, if none was given; raises ConfigError."""
    if sharding.metadata:
        return sharding
    metadata = f"{stack_name}-shards-{table}"
    if len(metadata) > MOST_NAME:
        raise ConfigError(
            f"The context field tables has, for the table {table}, no sharding.metadata, and the "
            f"default, {metadata}, is too long; give a name of at most {MOST_NAME} characters."
        )
    return replace(sharding, metadata=metadata)


def travels(sharded: Mapping[str, Sharding]) -> dict[str, dict[str, Any]]:
    """What the functions are told (KEYHOP_SHARDING), by the tables as the context names them."""
    return {
        given: {
            "metadata": sharding.metadata,
            "placement": sharding.placement,
            "hash": sharding.hash,
            "appendOnly": sharding.append_only,
            "separator": sharding.separator,
            "mostShards": sharding.most_shards,
        }
        for given, sharding in sharded.items()
    }


@dataclass(frozen=True)
class _Told:
    """The fields of one table's sharding."""

    name: str
    table: str
    fields: Mapping[str, Any]

    def partition_key(self) -> str:
        value = self.fields.get("partitionKey")
        if not isinstance(value, str) or not 1 <= len(value.encode()) <= MOST_NAME:
            raise self._wrong("partitionKey", value, "the attribute of the table's partition key")
        if value in METADATA_ATTRIBUTES:
            free = "another attribute, as the metadata items use that one themselves"
            raise self._wrong("partitionKey", value, free)
        return value

    def partition_key_type(self) -> str:
        value = self.fields.get("partitionKeyType", "S")
        if value == "N":
            suffix = "S or B: a number cannot carry the suffix of a shard"
            raise self._wrong("partitionKeyType", value, suffix)
        return self.choice("partitionKeyType", ("S", "B"))

    def metadata(self) -> str:
        value = self.fields.get("metadata", "")
        if not isinstance(value, str) or (value and not TABLE_NAME.fullmatch(value)):
            allowed = "the name of a table (3 to 255 of a-z A-Z 0-9 _ . -) that the stack makes"
            raise self._wrong("metadata", value, allowed)
        return value

    def separator(self) -> str:
        value = self.fields.get("separator", "_")
        if not isinstance(value, str) or not _SEPARATOR.fullmatch(value):
            allowed = "1 to 16 printable ASCII characters, with no digits and no spaces"
            raise self._wrong("separator", value, allowed)
        return value

    def most_shards(self) -> int:
        value = self.fields.get("mostShards", DEFAULT_MOST_SHARDS)
        number = whole(value)
        if number is None or not 1 <= number <= MOST_SHARDS:
            raise self._wrong("mostShards", value, f"a whole number from 1 to {MOST_SHARDS}")
        return number

    def choice(self, field: str, among: tuple[str, ...]) -> str:
        """One of several texts; the first is the default."""
        value = self.fields.get(field, among[0])
        if value not in among:
            raise self._wrong(field, value, f"one of {', '.join(among)}")
        return str(value)

    def truth(self, field: str, default: bool) -> bool:
        value = self.fields.get(field, default)
        if not isinstance(value, bool):
            raise self._wrong(field, value, "true or false")
        return value

    def _wrong(self, field: str, value: Any, allowed: str) -> ConfigError:
        return wrong_in(self.name, self.table, f"sharding.{field}", value, allowed)
