"""The settings of a deployment: one frozen dataclass, whose fields are those of keyhop.json.

`Config` has the tables, what each may be used for and what its keys are, how its hot keys are
spread over shards, and the pairs of tables that may be re-keyed. A wrong value is a `ConfigError`
that names the field, what it is and what is allowed; config_values.py has what single values must
be. What can be known to be wrong before anything is deployed is refused here: the library refuses
the same, but only at the first write.
"""

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

from keyhop.checks import InvalidInput, Must, Truth, Wrong, camel, names_of, one_of, text
from keyhop.dynamodb.units import ARE, are_prices
from keyhop.each.allowed import Allowed
from keyhop.errors import CannotStart
from keyhop.jobs.request import TABLE_NAME, RunInput
from keyhop.keys.request import KeysInput
from keyhop.rekey.allowed import Allowed as AllowedRekey
from keyhop.rekey.allowed import code_digest
from keyhop.rekey.pair import SIDE_SUFFIX
from keyhop.report.request import ReportInput
from keyhop.sharding.key.names import MOST_SHARDS, Names, metadata_of
from keyhop.sharding.key.shards import ATTRIBUTES
from keyhop.wording import counted

from .config_values import (
    ConfigError,
    Loopback,
    RetentionDays,
    Schedule,
    TruthOrText,
    as_json,
    choice,
    from_json,
    is_dollars,
    shape_of,
    whole,
    wrong,
    wrong_in,
)
from .paths import IS_INSTALLED, ROOT

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
    """The sharding of the hot keys of one table, with the names of the context."""

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
    """The initial shard counts of new keys that are known to become hot, by key, or by prefix with
    a * at its end."""

    def for_functions(self) -> dict[str, Any]:
        """Return the settings that the functions get. They find the partition key in the table's
        schema.
        """
        _, _, *rest = fields(self)
        told = {camel(field.name): getattr(self, field.name) for field in rest}
        return {name: value for name, value in told.items() if value != {}}


def sharding_of(table: str, is_arn: bool, has_index: bool, value: Any) -> Sharding | None:
    """Return the sharding of a table from its entry; raise ConfigError if it is wrong."""
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


MOST_TOLD = 3200
"""The maximum number of bytes for tables in the environment of a function; FinishRun gets the most.
An environment holds 4,096 bytes in total, as limits.py counts them, and the other variables need
the rest."""
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
    """The reports on the keys of one table.

    Attributes:
        schedule: When they are made, as EventBridge writes it; None if a person starts them.
        given: Further fields of the input of ReportKeys.
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
    """Return the entries, which may be a list, a text with commas, or a text with JSON; none for
    anything else.
    """
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
    """Return each sharded table with the name of its metadata table.

    Raises:
        ConfigError: Names clash, or there are more tables than fit into the environment of the
            functions.
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
    _check_input(table, "runInput", further, "EnumerateKeys", KeysInput)
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
    shape: type[RunInput],
) -> None:
    """Raise ConfigError if these are not further fields of an input of the state machine."""
    if own := sorted({*given} & {"table", "resume", "scheduled"}):
        raise wrong_in(table.given, field, given, f"without {own[0]}")
    try:
        shape.parse({**given, "table": table.given})
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
    _check_input(table, "report", given, "ReportKeys", ReportInput)
    return replace(reports, given=given)


def _default_metadata(table: str, stack_name: str) -> str:
    metadata = metadata_of(table, stack_name)
    if len(metadata) > MOST_NAME:
        raise ConfigError(
            f"The context field tables has, for the table {table}, no sharding.metadata, and the "
            f"default, {metadata}, is too long; give a name of at most {MOST_NAME} characters."
        )
    return metadata


PAIRS = (
    'a list of pairs of tables, as [{"source": "Orders", "destination": "OrdersByTenant"}], each '
    "table in one of them"
)
MOST_CODE = 100_000
"""Characters: the plan, with the text of the functions, is one item of at most 400 KB."""

_IS_NAME = text(TABLE_NAME)
_A_NAME = "the name of a table (3 to 255 of a-z A-Z 0-9 _ . -) in the stack's account and region"


def _has_room(value: Any) -> bool:
    return _IS_NAME(value) and len(value + SIDE_SUFFIX) <= MOST_NAME


@dataclass(frozen=True)
class Given:
    """A pair as the context has it. transform: a file of Python functions, beside keyhop.json; its
    text as it is at synth is the only one that runs in the deployment.

    source_kms_key, destination_kms_key: as kmsKey of the field tables, whose entries count as well.
    """

    source: Annotated[str, Must(_IS_NAME, _A_NAME)]
    destination: Annotated[
        str, Must(_has_room, f"{_A_NAME}, with room for {SIDE_SUFFIX} at its end")
    ]
    transform: Annotated[str | None, Must(text(), "the name of a Python file")] = None
    source_kms_key: KmsKey = None
    destination_kms_key: KmsKey = None


@dataclass(frozen=True)
class Rekeyed:
    """A pair of tables. code: the digest of the functions that may run for it; empty: none may."""

    source: Table
    destination: Table
    code: str = ""

    @property
    def side(self) -> Table:
        """The side table, which `keyhop rekey create` makes."""
        return Table(self.destination.name + SIDE_SUFFIX)

    @property
    def both(self) -> tuple[Table, Table]:
        return self.source, self.destination

    @property
    def names(self) -> tuple[str, str]:
        return self.source.name, self.destination.name

    @property
    def label(self) -> str:
        """For the ids of constructs."""
        return self.destination.label

    def allowed(self) -> AllowedRekey:
        """What the functions are told."""
        return AllowedRekey(self.source.name, self.destination.name, self.code)


def rekeyed_of(value: Any) -> tuple[Rekeyed, ...]:
    """The field rekey, which may have pairs of constructs; raises ConfigError."""
    given = value if isinstance(value, list | tuple) else listed(value)
    pairs = tuple(one if isinstance(one, Rekeyed) else _pair(one) for one in given)
    names = [table.name for pair in pairs for table in (*pair.both, pair.side)]
    if len(set(names)) < len(names):
        raise wrong("rekey", [list(pair.names) for pair in pairs], PAIRS)
    return pairs


def are_pairs(value: Any) -> bool:
    """Whether they are objects in a list, which may be written as JSON."""
    found = value if isinstance(value, list | tuple) else listed(value)
    return bool(found) and all(isinstance(one, Mapping | Rekeyed) for one in found)


def with_tables(pairs: Sequence[Rekeyed], tables: Sequence[Table]) -> tuple[Rekeyed, ...]:
    """Return the pairs with the settings of their tables.

    Raises:
        ConfigError: A setting is wrong, or there are more pairs than fit into the environment of
            the functions.
    """
    known = {table.name: table for table in tables}
    complete = tuple(
        replace(
            pair,
            source=_like(pair.source, known.get(pair.source.name)),
            destination=_unsharded(_like(pair.destination, known.get(pair.destination.name))),
        )
        for pair in pairs
    )
    taken = told_bytes(tables)
    fit = sum(taken + _told(complete[: n + 1]) <= MOST_TOLD for n in range(len(complete)))
    if fit < len(complete):
        raise ConfigError(
            f"The context field rekey has {counted(len(complete), 'pair')}, of which {fit} "
            f"fit beside the "
            "tables of this stack, as the functions are told of them in an environment of 4 KB. "
            "Deploy a second stack (stackName) for the others."
        )
    return complete


def which_pairs(pairs: Sequence[Rekeyed]) -> dict[str, str]:
    """The environment's pairs."""
    return {"KEYHOP_REKEY": json.dumps([pair.allowed().to_json() for pair in pairs])}


def _told(pairs: Sequence[Rekeyed]) -> int:
    return len(json.dumps(which_pairs(pairs)).encode())


def _like(table: Table, known: Table | None) -> Table:
    if known is None:
        return table
    return replace(table, kms_key=table.kms_key or known.kms_key, sharding=known.sharding)


def _unsharded(destination: Table) -> Table:
    if destination.sharding:
        raise ConfigError(
            f"The context field rekey has a destination, {destination.name}, that is sharded (its "
            "entry in the field tables): a template gives each item its one place, and would not "
            "follow shards that writers add and drain. Take one of the two away."
        )
    return destination


def _pair(entry: Any) -> Rekeyed:
    def refused(name: str, value: Any, allowed: str) -> ConfigError:
        return wrong(f"rekey, in {json.dumps(entry, default=str)}, its {name}", value, allowed)

    given = {name: value for name, value in entry.items() if value is not None}
    read = shape_of(
        Given,
        {"source": None, "destination": None, **given},
        names_of(Given),
        "The context field rekey has a pair with the field {}, which",
        refused,
    )
    code = "" if read.transform is None else code_digest(_text_of(read.transform))
    return Rekeyed(
        Table(read.source, kms_key=read.source_kms_key),
        Table(read.destination, kms_key=read.destination_kms_key),
        code,
    )


def _text_of(name: str) -> str:
    """The file's text; raises ConfigError for what could not run."""
    folder = Path() if IS_INSTALLED else ROOT
    whose = f"The context field rekey names the transform {name}, which"
    try:
        found = (folder / name).read_text(encoding="utf-8")
        ast.parse(found)
    except FileNotFoundError:
        raise ConfigError(f"{whose} is not there; it is looked for beside keyhop.json.") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{whose} cannot be read as a text: {error}.") from None
    except SyntaxError as error:
        raise ConfigError(f"{whose} is no Python: {error.msg} in line {error.lineno}.") from None
    if len(found) > MOST_CODE:
        raise ConfigError(f"{whose} has {len(found):,} characters; at most {MOST_CODE:,} fit.")
    return found


__all__ = ["Config", "ConfigError"]

ARCHITECTURES = {"arm64": "arm64", "x86_64": "x86_64", "x86-64": "x86_64"}

_STACK_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,47}")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_EMAIL = re.compile(r"[^@\s,]+@[^@\s,]+\.[^@\s,]+")
_NAMES_OF_THE_CDK = ("@", "cdk-", "acknowledged-issue-numbers")


def _attributes(value: Any) -> Any:
    return from_json(value) if isinstance(value, str) else value


def _are_attributes_of_tables(value: Any) -> bool:
    found = _attributes(value)
    return isinstance(found, Mapping) and all(map(are_attributes, found.values()))


@dataclass(frozen=True)
class Config:
    """One deployment."""

    tables: Annotated[
        tuple[Table, ...], Must(lambda value: bool(listed(value)), ALLOWED, tables_of)
    ]
    key_attributes: Annotated[
        Mapping[str, list[str]], Must(_are_attributes_of_tables, ATTRIBUTES_BY_TABLE, _attributes)
    ] = field(default_factory=dict, compare=False)
    """As given; the tables have them as well."""
    stack_name: Annotated[
        str, Must(text(_STACK_NAME), "1 to 48 letters, digits and hyphens, with a letter first")
    ] = "Keyhop"
    architecture: Annotated[
        str, Must(one_of(*ARCHITECTURES), f"one of {', '.join(ARCHITECTURES)}", ARCHITECTURES.get)
    ] = "arm64"
    """As CloudFormation writes it: arm64 or x86_64."""
    results_retention_days: Annotated[int, whole(7, 3650)] = 90
    """The results of a run are also deleted while it is running: the longest estimated run takes
    113 hours."""
    keep_results: TruthOrText = True
    """Whether the bucket stays when the stack is destroyed."""
    results_bucket: Annotated[
        str | None,
        Must(
            text(_BUCKET),
            "the name of a bucket (3 to 63 of a-z 0-9 . -) that an earlier deployment has left",
        ),
    ] = None
    """With all that is on record there; None for one of the stack's own."""
    log_level: Annotated[str, choice("INFO", "WARNING", "ERROR")] = "INFO"
    log_retention_days: RetentionDays = 30
    worker_memory_mb: Annotated[int, whole(512, 10240)] = 1769
    """Of the functions that read tables; so are the next two."""
    worker_timeout_seconds: Annotated[int, whole(30, 900)] = 900
    reserved_concurrency: Annotated[int | None, whole(1, 1000)] = None
    keeper_concurrency: Annotated[int | None, whole(1, 1000)] = None
    """Reserved for KeepIndex: so many at once, of all tables."""
    alarm_email: Annotated[str | None, Must(text(_EMAIL), "one e-mail address")] = None
    max_cost: Annotated[float, Must(is_dollars, "a number of dollars, at least 0.01", float)] = 10.0
    """Of a run, build, audit or removal whose input does not say."""
    prices: Annotated[str | None, Must(are_prices, ARE, as_json)] = None
    """As JSON: what units cost where the tables are, if that is not the list price known here."""
    dynamodb_endpoint: Loopback = None
    """Only on a laptop: where DynamoDB is."""
    audit_schedule: Schedule = "rate(7 days)"
    """When key indexes are audited, as EventBridge writes it; None for no schedule."""
    shrink_schedule: Schedule = "rate(1 day)"
    """When keys with more shards than necessary are looked for, as EventBridge writes it; None for
    no schedule."""
    start_drains: TruthOrText = False
    """Whether such shards are drained then, and not only proposed."""
    rekey: Annotated[tuple[Rekeyed, ...], Must(are_pairs, PAIRS, rekeyed_of)] = ()
    """Pairs of tables of which one may be re-keyed as the other; they need not be in tables."""
    verify_schedule: Schedule = "rate(1 day)"
    """When pairs are compared, until their cutover; None: when somebody starts that."""
    replicate_concurrency: Annotated[int | None, whole(1, 1000)] = None
    """Reserved for Replicate: so many at once, of all pairs."""

    @property
    def key_index_tables(self) -> tuple[Table, ...]:
        """The tables that may have a key index."""
        return tuple(table for table in self.tables if table.key_index)

    @property
    def sharded_tables(self) -> tuple[Table, ...]:
        """The tables whose hot keys are spread over shards."""
        return tuple(table for table in self.tables if table.sharding is not None)

    @property
    def each_tables(self) -> tuple[Table, ...]:
        """The tables for whose keys ForEachKey may do something."""
        return tuple(table for table in self.tables if table.each is not None)

    @property
    def report_tables(self) -> tuple[Table, ...]:
        """The tables whose keys may be reported on."""
        return tuple(table for table in self.tables if table.report is not None)

    @property
    def all_tables(self) -> tuple[Table, ...]:
        """Return the tables that are listed, and those of pairs."""
        return (*self.tables, *(table for pair in self.rekey for table in pair.both))

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> "Config":
        """Read all fields; raises ConfigError for one that is wrong."""
        known = names_of(cls)
        # `-c alarmEmail=` takes away what keyhop.json says.
        given = {
            name: value
            for name, value in context.items()
            if not _is_of_the_cdk(name) and not (name in known and value in (None, ""))
        }
        config = shape_of(cls, {"tables": None, **given}, known, "The context field {}", wrong)
        for name in config.key_attributes:
            if name not in (table.given for table in config.tables):
                allowed = f"{ATTRIBUTES_BY_TABLE}, and {name} is not one of them"
                raise wrong("keyAttributes", given["keyAttributes"], allowed)
        named = with_key_attributes(config.tables, config.key_attributes)
        tables = with_metadata_tables(named, config.stack_name)
        return replace(config, tables=tables, rekey=with_tables(config.rekey, tables))


def _is_of_the_cdk(name: str) -> bool:
    return ":" in name or name.startswith(_NAMES_OF_THE_CDK)
