"""The context's tables: what each may be used for, and what is told of its keys."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from infra.config_fields import ConfigError, Fields, from_json, hint, wrong, wrong_in
from infra.config_sharding import TABLE_NAME, Sharding, named_metadata, sharding_of, travels

MAX_TABLES_TEXT = 3000
"""The allow-list travels in the functions' environment, which holds 4 KB in all; so do, beside it,
the tables that have a key index, with the sort keys of their sentinels."""

_TABLE_ARN = re.compile(
    r"arn:aws[a-z-]*:dynamodb:[a-z0-9-]+:[0-9]{12}:table/(?P<name>[a-zA-Z0-9_.-]{3,255})"
)
_TABLE_FIELDS = ("table", "keyIndex", "sentinelSortKey", "keyAttributes", "sharding")
_TABLES = "tables"
_KEY_ATTRIBUTES = "keyAttributes"
_ALLOWED = (
    "a list of one or more tables, each by its name (3 to 255 of a-z A-Z 0-9 _ . -) "
    "or by its ARN (arn:aws:dynamodb:REGION:ACCOUNT:table/NAME), or as an object with it, "
    'as {"table": "Orders", "keyIndex": true}'
)


@dataclass(frozen=True)
class Table:
    """A table that the deployment may read."""

    given: str
    """As the context has it: a name, or an ARN."""
    name: str
    key_attributes: tuple[str, ...] = ()
    """The attributes that a Scan may ask for; empty: not restricted by name."""
    key_index: bool = False
    """Whether it may have a key index: a sentinel in each item collection, kept by a function."""
    sentinel_sort_key: str | None = None
    """The sentinels' sort key, as text; None: the least one that there is."""
    sharding: Sharding | None = None
    """How hot keys of it are spread over shards; None: not at all."""

    @property
    def arn(self) -> str | None:
        """The ARN, if that is what the context has."""
        return self.given if self.given != self.name else None


def tables_of(fields: Fields) -> tuple[Table, ...]:
    """The fields tables and keyAttributes; metadata tables may have no names yet."""
    value = fields.get(_TABLES)
    listed = _list(value)
    if not listed:
        raise wrong(_TABLES, value, _ALLOWED)
    tables: list[Table] = []
    for entry in listed:
        table = _table(entry)
        if table.given in (one.given for one in tables):
            raise wrong(_TABLES, value, f"{_ALLOWED}, each of them once")
        tables.append(table)
    if _length_in_environment(tables) > MAX_TABLES_TEXT:
        raise ConfigError(
            f"The context field {_TABLES} is too long with its {len(tables)} tables: it must be "
            f"at most {MAX_TABLES_TEXT} characters of JSON, where a table with keyIndex counts "
            "twice. Deploy a second stack (stackName) for the others."
        )
    return _with_key_attributes(fields, tables)


def with_metadata_tables(tables: Sequence[Table], stack_name: str) -> tuple[Table, ...]:
    """Each sharded table with the name of its metadata table; raises ConfigError for a clash."""
    complete: list[Table] = []
    taken = {table.name: f"the table {table.given} of this field" for table in tables}
    for table in tables:
        if table.sharding is not None:
            sharding = named_metadata(table.sharding, table.name, stack_name)
            if sharding.metadata in taken:
                free = f"a name of its own: that is {taken[sharding.metadata]}"
                raise wrong_in(_TABLES, table.given, "sharding.metadata", sharding.metadata, free)
            taken[sharding.metadata] = f"the metadata table of {table.given}"
            table = replace(table, sharding=sharding)
        complete.append(table)
    sharded = {table.given: table.sharding for table in complete if table.sharding is not None}
    told = json.dumps(list(sharded)) + json.dumps(travels(sharded))
    if len(told) > MAX_TABLES_TEXT:
        raise ConfigError(
            f"The context field {_TABLES} is too long with its {len(sharded)} sharded tables: what "
            f"the functions are told of them must be at most {MAX_TABLES_TEXT} characters of JSON, "
            f"and it is {len(told)}. Deploy a second stack (stackName) for the others."
        )
    return tuple(complete)


def _table(entry: str | Mapping[str, Any]) -> Table:
    told = {"table": entry} if isinstance(entry, str) else entry
    for field in told:
        if field not in _TABLE_FIELDS:
            raise ConfigError(
                f"The context field {_TABLES} has a table with the field {field}, which is not "
                f"known; {hint(field, _TABLE_FIELDS)}"
            )
    given = told.get("table")
    if not isinstance(given, str):
        raise wrong(_TABLES, entry, _ALLOWED)
    given = given.strip()
    arn = _TABLE_ARN.fullmatch(given)
    if not arn and not TABLE_NAME.fullmatch(given):
        raise wrong(_TABLES, entry, _ALLOWED)
    key_index = told.get("keyIndex", False)
    if not isinstance(key_index, bool):
        raise wrong_in(_TABLES, given, "keyIndex", key_index, "true or false")
    place = told.get("sentinelSortKey")
    if place is not None and (not isinstance(place, str) or not place):
        raise wrong_in(_TABLES, given, "sentinelSortKey", place, "a text, not empty")
    if place is not None and not key_index:
        raise wrong_in(_TABLES, given, "sentinelSortKey", place, "left out without keyIndex")
    attributes = told.get("keyAttributes")
    if attributes is not None and not _are_attributes(attributes):
        listed = 'a list of attributes, as ["customer", "order"]'
        raise wrong_in(_TABLES, given, "keyAttributes", attributes, listed)
    name = arn["name"] if arn else given
    return Table(
        given, name, tuple(attributes or ()), key_index, place, _sharding(told, given, key_index)
    )


def _sharding(told: Mapping[str, Any], given: str, key_index: bool) -> Sharding | None:
    value = told.get("sharding")
    if value is None:
        return None
    if not TABLE_NAME.fullmatch(given):
        here = "left out for a table given by its ARN: give its name; it must be in the stack's "
        raise wrong_in(_TABLES, given, "sharding", value, f"{here}account and region")
    if key_index:
        alone = "left out with keyIndex, as sentinels would be read and moved like items"
        raise wrong_in(_TABLES, given, "sharding", value, alone)
    return sharding_of(_TABLES, given, value)


def _with_key_attributes(fields: Fields, tables: list[Table]) -> tuple[Table, ...]:
    found = _key_attributes(fields, [table.given for table in tables])
    for table in tables:
        if table.key_attributes and table.given in found:
            raise ConfigError(
                f"The context field {_KEY_ATTRIBUTES} names {table.given}, whose entry in tables "
                "has keyAttributes as well; take one of them away."
            )
    return tuple(
        replace(table, key_attributes=found.get(table.given, table.key_attributes))
        for table in tables
    )


def _key_attributes(fields: Fields, tables: list[str]) -> dict[str, tuple[str, ...]]:
    allowed = (
        'an object with, for tables of the field tables, a list of attributes, as {"Orders": '
        '["customer", "order"]}'
    )
    value = fields.get(_KEY_ATTRIBUTES)
    if value is None:
        return {}
    read = from_json(value) if isinstance(value, str) else value
    if not isinstance(read, Mapping):
        raise wrong(_KEY_ATTRIBUTES, value, allowed)
    for table, attributes in read.items():
        if table not in tables:
            raise wrong(_KEY_ATTRIBUTES, value, f"{allowed}, and {table} is not one of them")
        if not _are_attributes(attributes):
            raise wrong(_KEY_ATTRIBUTES, value, allowed)
    return {table: tuple(attributes) for table, attributes in read.items()}


def _list(value: Any) -> list[str | Mapping[str, Any]]:
    told = value
    if isinstance(told, str):
        told = from_json(told) if told.lstrip().startswith("[") else told.split(",")
    if not isinstance(told, list | tuple):
        raise wrong(_TABLES, told, _ALLOWED)
    if not all(isinstance(entry, str | Mapping) for entry in told):
        raise wrong(_TABLES, told, _ALLOWED)
    return list(told)


def _length_in_environment(tables: list[Table]) -> int:
    """Of KEYHOP_TABLES and KEYHOP_KEY_INDEXES together (infra/functions.py)."""
    names = json.dumps([table.given for table in tables])
    places = {table.given: table.sentinel_sort_key for table in tables if table.key_index}
    return len(names) + (len(json.dumps(places)) if places else 0)


def _are_attributes(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and bool(value)
        and all(isinstance(attribute, str) and attribute for attribute in value)
    )
