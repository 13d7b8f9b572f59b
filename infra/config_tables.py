"""The context's tables: what each may be used for, what its keys are, how it is sharded.

What can be known to be wrong before anything is deployed is refused here: the library refuses the
same, but only at the first write.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from keyhop.checks import InvalidInput, Must, Truth, names_of, text
from keyhop.each.allowed import Allowed
from keyhop.keys.request import parse
from keyhop.report.request import parse as parse_report
from keyhop.sharding.key.names import metadata_of
from keyhop.wording import counted

from .config_sharding import MOST_NAME, Sharding, sharding_of
from .config_values import (
    ConfigError,
    Schedule,
    from_json,
    shape_of,
    wrong,
    wrong_in,
)

MOST_TOLD = 3200
"""Bytes of a function's environment for what it is told of tables; FinishRun is told most. An
environment holds 4,096 in all, as limits.py counts them, and the other variables need the rest."""
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
_KMS_KEY = re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[a-zA-Z0-9-]{1,64}")
KmsKey = Annotated[
    str | None,
    Must(text(_KMS_KEY), "the ARN of a key (arn:aws:kms:REGION:ACCOUNT:key/ID), not its alias"),
]


@dataclass(frozen=True)
class Reports:
    """When the keys of one table are reported on, as EventBridge writes it; None: when somebody
    starts that. given: of such executions, further fields of an input of ReportKeys.
    """

    schedule: Schedule = None
    given: Mapping[str, Any] = field(default_factory=dict, hash=False)


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
    key_index: Truth = False
    """Whether it may have a key index: a sentinel in each item collection, kept by a function."""
    sentinel_sort_key: Annotated[str | None, Must(text(), "a text, not empty")] = None
    """The sentinels' sort key, as text; None: the least one that there is."""
    key_attributes: Annotated[
        tuple[str, ...],
        Must(are_attributes, 'a list of attributes, as ["customer", "order"]', tuple),
    ] = ()
    """The attributes that a Scan may ask for; empty: not restricted by name."""
    kms_key: KmsKey = None
    """The key of one's own by which the table is encrypted; None: one of AWS's."""
    run_schedule: Schedule = None
    """When its keys are listed, as EventBridge writes it; None: when somebody starts that."""
    run_input: Annotated[
        Mapping[str, Any],
        Must(
            lambda value: isinstance(value, Mapping),
            'an object, as {"maxReadRate": 500}',
            dict,
        ),
    ] = field(default_factory=dict, hash=False)
    """Of these runs: further fields of an input of EnumerateKeys."""
    sharding: Sharding | None = None
    """None: not at all."""
    each: Allowed | None = None
    """What ForEachKey may do for each of its keys; None: nothing."""
    report: Reports | None = None
    """Whether ReportKeys may look at it, and when; None: not at all."""

    @property
    def label(self) -> str:
        """For the ids of constructs, and for messages."""
        return self.given

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
    """Each sharded table with the name of its metadata table.

    Raises ConfigError for a clash, and for more tables than the functions can be told of.
    """
    complete: list[Table] = []
    taken = {table.name: f"the table {table.label} of this field" for table in tables}
    for table in tables:
        if table.sharding:
            metadata = table.sharding.metadata or _default_metadata(table.label, stack_name)
            if metadata in taken:
                free = f"a name of its own: that is {taken[metadata]}"
                raise wrong_in(table.label, "sharding.metadata", metadata, free)
            most, started = table.sharding.most_shards, table.sharding.start_shards
            if any(count > most for count in started.values()):
                at_most = f"at most {most} for each key, its mostShards"
                raise wrong_in(table.label, "sharding.startShards", started, at_most)
            taken[metadata] = f"the metadata table of {table.label}"
            table = replace(table, sharding=replace(table.sharding, metadata=metadata))
        complete.append(table)
    fit = sum(told_bytes(complete[: number + 1]) <= MOST_TOLD for number in range(len(complete)))
    if fit < len(complete):
        raise ConfigError(
            f"The context field tables has {counted(len(complete), 'table')}, of which "
            f"{fit} fit into one "
            "stack, as the functions are told of them in an environment of 4 KB. Deploy a second "
            "stack (stackName) for the others."
        )
    return tuple(complete)


def which_tables(tables: Sequence[Table]) -> dict[str, str]:
    """The environment's list of tables, as the context names them."""
    return {"KEYHOP_TABLES": json.dumps([table.given for table in tables])}


def which_key_indexes(tables: Sequence[Table]) -> dict[str, str]:
    """The environment's tables with a key index, and the sort keys of their sentinels."""
    places = {table.given: table.sentinel_sort_key for table in tables if table.key_index}
    return {"KEYHOP_KEY_INDEXES": json.dumps(places)} if places else {}


def which_sharding(tables: Sequence[Table]) -> dict[str, str]:
    """The environment's sharded tables, and how each is sharded."""
    sharded = {one.given: one.sharding.for_functions() for one in tables if one.sharding}
    return {"KEYHOP_SHARDING": json.dumps(sharded)} if sharded else {}


def which_each(tables: Sequence[Table]) -> dict[str, str]:
    """The environment's tables with each, and what may be done."""
    allowed = {one.given: one.each.to_json() for one in tables if one.each}
    return {"KEYHOP_EACH": json.dumps(allowed)} if allowed else {}


def told_bytes(tables: Sequence[Table]) -> int:
    """Bytes that the tables take of an environment, where quotes are escaped: of the larger one of
    FinishRun's and PlanRun's.
    """
    both = {**which_tables(tables), **which_key_indexes(tables)}
    more = (which_sharding(tables), which_each(tables))
    return max(len(json.dumps({**both, **one}).encode()) for one in more)


def _table(entry: str | Mapping[str, Any]) -> Table:
    named = {"table": entry} if isinstance(entry, str) else entry
    given = {name: value for name, value in named.items() if value is not None}
    sharding, each = given.pop("sharding", None), given.pop("each", None)
    report = given.pop("report", None)
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
    further = table.run_input
    if further and table.run_schedule is None:
        raise wrong_in(table.given, "runInput", further, "left out without runSchedule")
    _check_input(table, "runInput", further, "EnumerateKeys", parse)
    return replace(
        table,
        sharding=sharding_of(table.given, table.arn is not None, table.key_index, sharding),
        each=_each(table, each),
        report=_reports(table, report),
    )


def _check_input(
    table: Table,
    field: str,
    given: Mapping[str, Any],
    machine: str,
    parse: Callable[[object], object],
) -> None:
    """Raises ConfigError if these are no further fields of an input of the machine."""
    if own := sorted({*given} & {"table", "resume", "scheduled"}):
        raise wrong_in(table.given, field, given, f"without {own[0]}")
    try:
        parse({**given, "table": table.given})
    except InvalidInput as error:
        like = f"further fields of an input of {machine}"
        raise wrong_in(table.given, field, given, f"{like} ({error})") from error


def _each(table: Table, value: Any) -> Allowed | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise wrong_in(table.given, "each", value, 'an object, as {"put": true}')
    allowed = shape_of(
        Allowed,
        value,
        names_of(Allowed),
        f"The context field tables has, for the table {table.given}, an each with the field {{}}"
        ", which",
        lambda field, value, must: wrong_in(table.given, f"each.{field}", value, must),
    )
    if allowed.is_nothing:
        one = "with something that may be done: put, update, delete, functions, queues or machines"
        raise wrong_in(table.given, "each", value, one)
    if allowed.attributes and not allowed.put:
        raise wrong_in(
            table.given, "each.attributes", list(allowed.attributes), "left out without put"
        )
    return allowed


def _reports(table: Table, value: Any) -> Reports | None:
    if value in (None, False):
        return None
    if value is True:
        return Reports()
    if not isinstance(value, Mapping):
        like = 'true, or an object, as {"schedule": "rate(7 days)", "maxReadUnits": 3000}'
        raise wrong_in(table.given, "report", value, like)
    given = {name: one for name, one in value.items() if one is not None}
    named = {"schedule": given.pop("schedule")} if "schedule" in given else {}
    reports = shape_of(
        Reports,
        named,
        names_of(Reports),
        "{}",
        lambda field, value, must: wrong_in(table.given, f"report.{field}", value, must),
    )
    if given and reports.schedule is None:
        when = "an object with a schedule: an execution that somebody starts has its own input"
        raise wrong_in(table.given, "report", value, when)
    _check_input(table, "report", given, "ReportKeys", parse_report)
    return replace(reports, given=given)


def _default_metadata(table: str, stack_name: str) -> str:
    metadata = metadata_of(table, stack_name)
    if len(metadata) > MOST_NAME:
        raise ConfigError(
            f"The context field tables has, for the table {table}, no sharding.metadata, and the "
            f"default, {metadata}, is too long; give a name of at most {MOST_NAME} characters."
        )
    return metadata
