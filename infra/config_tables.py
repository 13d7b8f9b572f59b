"""The context's tables: what each may be used for, what its keys are, how it is sharded.

What can be known to be wrong before anything is deployed is refused here: the library refuses the
same, but only at the first write.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

from keyhop.checks import Must, Wrong, camel, names_of, one_of, text
from keyhop.errors import CannotStart
from keyhop.sharding.key.names import MOST_SHARDS, Names
from keyhop.sharding.key.shards import ATTRIBUTES

from infra.config_values import (
    ConfigError,
    choice,
    from_json,
    shape_of,
    whole,
    wrong,
    wrong_in,
)

MAX_TABLES_TEXT = 3000
"""The allow-list travels in the functions' environment, which holds 4 KB in all; so do, beside it,
the tables that have a key index, with the sort keys of their sentinels."""
MOST_ENVIRONMENT = 3600
"""FinishRun is told of all tables and of the sharded ones; the other variables need the rest."""
MOST_NAME = 255
ALLOWED = (
    "a list of one or more tables, each by its name (3 to 255 of a-z A-Z 0-9 _ . -) "
    "or by its ARN (arn:aws:dynamodb:REGION:ACCOUNT:table/NAME), or as an object with it, "
    'as {"table": "Orders", "keyIndex": true}'
)
ATTRIBUTES_BY_TABLE = (
    'an object with, for tables of the field tables, a list of attributes, as {"Orders": '
    '["customer", "order"]}'
)

_TABLE_NAME = re.compile(r"[a-zA-Z0-9_.-]{3,255}")
_TABLE_ARN = re.compile(
    r"arn:aws[a-z-]*:dynamodb:[a-z0-9-]+:[0-9]{12}:table/(?P<name>[a-zA-Z0-9_.-]{3,255})"
)
_REALLY_TRUE_OR_FALSE = Must(lambda value: isinstance(value, bool), "true or false")


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


@dataclass(frozen=True)
class Sharding:
    """How hot keys of one table are spread over shards; with the names of the context."""

    partition_key: Annotated[
        str,
        Must(_is_key_name, "the attribute of the table's partition key", _not_of_metadata),
    ]
    """The attribute that is the table's partition key, and its metadata table's as well."""
    partition_key_type: Annotated[
        str, Must(one_of("S", "B", "N"), "one of S, B", _not_a_number)
    ] = "S"
    metadata: Annotated[
        str,
        Must(
            text(_TABLE_NAME, re.compile("")),
            "the name of a table (3 to 255 of a-z A-Z 0-9 _ . -) that the stack makes",
        ),
    ] = ""
    """The name of the metadata table; empty until the stack's name is known."""
    placement: Annotated[str, choice("calculated", "random")] = "calculated"
    hash: Annotated[str, choice("jump", "modulo")] = "jump"
    append_only: Annotated[bool, _REALLY_TRUE_OR_FALSE] = False
    separator: Annotated[
        str,
        Must(_is_separator, "1 to 16 printable ASCII characters, with no digits and no spaces"),
    ] = "_"
    most_shards: Annotated[int, whole(1, MOST_SHARDS)] = 64
    """Of one key."""

    def for_functions(self) -> dict[str, Any]:
        """What the functions are told; they see the partition key in the table's schema."""
        _, _, *rest = fields(self)
        return {camel(field.name): getattr(self, field.name) for field in rest}


def _is_table(value: Any) -> bool:
    given = value.strip() if isinstance(value, str) else ""
    return bool(_TABLE_ARN.fullmatch(given) or _TABLE_NAME.fullmatch(given))


def are_attributes(value: Any) -> bool:
    """Whether it is a list of names."""
    is_list = isinstance(value, list | tuple) and bool(value)
    return is_list and all(isinstance(name, str) and name for name in value)


@dataclass(frozen=True)
class Table:
    """A table that the deployment may read."""

    given: Annotated[str, Must(_is_table, ALLOWED, str.strip)]
    """As the context has it: a name, or an ARN."""
    key_index: Annotated[bool, _REALLY_TRUE_OR_FALSE] = False
    """Whether it may have a key index: a sentinel in each item collection, kept by a function."""
    sentinel_sort_key: Annotated[str | None, Must(text(), "a text, not empty")] = None
    """The sentinels' sort key, as text; None: the least one that there is."""
    key_attributes: Annotated[
        tuple[str, ...],
        Must(are_attributes, 'a list of attributes, as ["customer", "order"]', tuple),
    ] = ()
    """The attributes that a Scan may ask for; empty: not restricted by name."""
    sharding: Sharding | None = None
    """None: not at all."""

    @property
    def name(self) -> str:
        """Without account and region."""
        return self.given.rpartition("/")[2]

    @property
    def arn(self) -> str | None:
        """The ARN, if that is what the context has."""
        return self.given if self.given != self.name else None


_TABLE_FIELDS = ("table", *names_of(Table)[1:])


def tables_of(value: Any) -> tuple[Table, ...]:
    """The field tables; metadata tables may have no names yet. Raises ConfigError."""
    tables: list[Table] = []
    for entry in listed(value):
        table = _table(entry)
        if table.given in (one.given for one in tables):
            raise wrong("tables", value, f"{ALLOWED}, each of them once")
        tables.append(table)
    if _length_in_environment(tables) > MAX_TABLES_TEXT:
        raise ConfigError(
            f"The context field tables is too long with its {len(tables)} tables: it must be "
            f"at most {MAX_TABLES_TEXT} characters of JSON, where a table with keyIndex counts "
            "twice. Deploy a second stack (stackName) for the others."
        )
    return tuple(tables)


def listed(value: Any) -> list[str | Mapping[str, Any]]:
    """The entries, which may be a text with commas, or one of JSON; none, if it is no list."""
    if isinstance(value, str):
        value = from_json(value) if value.lstrip().startswith("[") else value.split(",")
    is_list = isinstance(value, list | tuple)
    return list(value) if is_list and all(isinstance(e, str | Mapping) for e in value) else []


def with_key_attributes(
    tables: Sequence[Table], attributes: Mapping[str, list[str]]
) -> list[Table]:
    """The tables with what another field says of them; raises ConfigError for two answers."""
    for table in tables:
        if table.key_attributes and table.given in attributes:
            raise ConfigError(
                f"The context field keyAttributes names {table.given}, whose entry in tables "
                "has keyAttributes as well; take one of them away."
            )
    return [
        replace(table, key_attributes=tuple(attributes.get(table.given, table.key_attributes)))
        for table in tables
    ]


def with_metadata_tables(tables: Sequence[Table], stack_name: str) -> tuple[Table, ...]:
    """Each sharded table with the name of its metadata table; raises ConfigError for a clash."""
    complete: list[Table] = []
    taken = {table.name: f"the table {table.given} of this field" for table in tables}
    for table in tables:
        if table.sharding is not None:
            sharding = _named_metadata(table.sharding, table.name, stack_name)
            if sharding.metadata in taken:
                free = f"a name of its own: that is {taken[sharding.metadata]}"
                raise wrong_in(table.given, "sharding.metadata", sharding.metadata, free)
            taken[sharding.metadata] = f"the metadata table of {table.given}"
            table = replace(table, sharding=sharding)
        complete.append(table)
    sharded = sharding_by_table(complete)
    length = len(json.dumps(list(sharded))) + len(json.dumps(sharded))
    if length > MAX_TABLES_TEXT:
        raise ConfigError(
            f"The context field tables is too long with its {len(sharded)} sharded tables: what "
            f"the functions are told of them must be at most {MAX_TABLES_TEXT} characters of JSON, "
            f"and it is {length}. Deploy a second stack (stackName) for the others."
        )
    length = _length_in_environment(complete) + (len(json.dumps(sharded)) if sharded else 0)
    if length > MOST_ENVIRONMENT:
        raise ConfigError(
            f"The context field tables is too long with its {len(complete)} tables, of which "
            f"{len(sharded)} are sharded: what FinishRun is told of them must be at most "
            f"{MOST_ENVIRONMENT} characters of JSON, and it is {length}. Deploy a second stack "
            "(stackName) for the others."
        )
    return tuple(complete)


def sharding_by_table(tables: Sequence[Table]) -> dict[str, dict[str, Any]]:
    """What the functions are told (KEYHOP_SHARDING), by the tables as the context names them."""
    return {one.given: one.sharding.for_functions() for one in tables if one.sharding is not None}


def _table(entry: str | Mapping[str, Any]) -> Table:
    named = {"table": entry} if isinstance(entry, str) else entry
    given = {name: value for name, value in named.items() if value is not None}
    sharding = given.pop("sharding", None)
    given["given"] = name = given.pop("table", None)

    def refused(field: str, value: Any, allowed: str) -> ConfigError:
        in_list = field == "given"
        return wrong("tables", entry, ALLOWED) if in_list else wrong_in(name, field, value, allowed)

    table = shape_of(
        Table,
        given,
        _TABLE_FIELDS,
        "The context field tables has a table with the field {}, which",
        refused,
    )
    if table.sentinel_sort_key is not None and not table.key_index:
        place = table.sentinel_sort_key
        raise wrong_in(table.given, "sentinelSortKey", place, "left out without keyIndex")
    return replace(table, sharding=_sharding(table, sharding))


def _sharding(table: Table, value: Any) -> Sharding | None:
    if value is None:
        return None
    if table.arn:
        here = "left out for a table given by its ARN: give its name; it must be in the stack's "
        raise wrong_in(table.given, "sharding", value, f"{here}account and region")
    if table.key_index:
        alone = "left out with keyIndex, as sentinels would be read and moved like items"
        raise wrong_in(table.given, "sharding", value, alone)
    if not isinstance(value, Mapping):
        raise wrong_in(table.given, "sharding", value, 'an object, as {"partitionKey": "path"}')
    return shape_of(
        Sharding,
        {"partitionKey": None, **value},
        names_of(Sharding),
        f"The context field tables has, for the table {table.given}, a sharding with the field {{}}"
        ", which",
        lambda field, value, allowed: wrong_in(table.given, f"sharding.{field}", value, allowed),
    )


def _named_metadata(sharding: Sharding, table: str, stack_name: str) -> Sharding:
    """With the default name of the metadata table, if none was given."""
    if sharding.metadata:
        return sharding
    metadata = f"{stack_name}-shards-{table}"
    if len(metadata) > MOST_NAME:
        raise ConfigError(
            f"The context field tables has, for the table {table}, no sharding.metadata, and the "
            f"default, {metadata}, is too long; give a name of at most {MOST_NAME} characters."
        )
    return replace(sharding, metadata=metadata)


def _length_in_environment(tables: Sequence[Table]) -> int:
    """Of KEYHOP_TABLES and KEYHOP_KEY_INDEXES together (infra/functions.py)."""
    names = json.dumps([table.given for table in tables])
    places = {table.given: table.sentinel_sort_key for table in tables if table.key_index}
    return len(names) + (len(json.dumps(places)) if places else 0)
