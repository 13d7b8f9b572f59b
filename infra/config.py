"""The settings of a deployment: one frozen dataclass, whose fields are those of keyhop.json.

`settings_of` reads the file and the context of the CDK, which takes precedence. `Config` has the
tables, with their keys, their sharding and their permitted uses, and the pairs of tables that may
be re-keyed. A wrong value raises a `ConfigError` that names the field, its value and the allowed
values; config_values.py has the constraints on single values. Everything that can be checked before
deployment is checked here. The library makes the same checks, but only at the first write.
"""

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

from keyhop.checks import Must, Truth, Wrong, camel, check_characters, names_of, one_of, text
from keyhop.dynamodb.endpoint import TABLE_ARN
from keyhop.dynamodb.units import ARE, are_prices
from keyhop.each.allowed import Allowed
from keyhop.errors import CannotStart, InvalidInput
from keyhop.jobs.request import TABLE_NAME, RunInput
from keyhop.keys.request import KeysInput
from keyhop.rekey.pair import SIDE_SUFFIX, code_digest
from keyhop.rekey.pair import Allowed as AllowedRekey
from keyhop.report.request import ReportInput
from keyhop.sharding.key.schema import Names, metadata_of
from keyhop.sharding.key.shards import ATTRIBUTES, MOST_SHARDS
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

FILE = "keyhop.json"
EXAMPLE = "keyhop.example.json"
NAMING = "settings"
"""The context field that names another file; if it is empty, no file is read."""

MOST_NAME = 255


def _is_key_name(value: Any) -> bool:
    return isinstance(value, str) and 1 <= len(value.encode()) <= MOST_NAME


def _check_not_reserved(value: str) -> str:
    if value in ATTRIBUTES:
        free = "another attribute, as the metadata items use that one themselves"
        raise Wrong(Must(_is_key_name, free), value)
    return value


def _check_not_number(value: str) -> str:
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


_COUNT = whole(1, MOST_SHARDS)


def _are_counts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_COUNT.check, value.values()))


@dataclass(frozen=True)
class Sharding:
    """The sharding of the hot keys of one table. Its fields are named as in the context."""

    partition_key: Annotated[
        str, Must(_is_key_name, "the attribute of the table's partition key", _check_not_reserved)
    ]
    """The partition key attribute of the table and of its metadata table."""
    partition_key_type: Annotated[
        str, Must(one_of("S", "B", "N"), "one of S, B", _check_not_number)
    ] = "S"
    metadata: Annotated[
        str,
        Must(
            text(TABLE_NAME, re.compile("")),
            "the name of a table (3 to 255 of a-z A-Z 0-9 _ . -) that the stack makes",
        ),
    ] = ""
    """The name of the metadata table; empty until the stack has a name."""
    placement: Annotated[str, choice("calculated", "random")] = "calculated"
    hash: Annotated[str, choice("jump", "modulo")] = "jump"
    append_only: Truth = False
    separator: Annotated[
        str, Must(_is_separator, "1 to 16 printable ASCII characters, with no digits and no spaces")
    ] = "_"
    most_shards: Annotated[int, whole(1, MOST_SHARDS)] = 64
    """The maximum number of shards of one key."""
    start_shards: Annotated[
        Mapping[str, int],
        Must(
            _are_counts,
            f'an object with counts of 1 to {MOST_SHARDS}, as {{"/logs/*": 8}}',
            lambda value: {key: _COUNT.read(count) for key, count in value.items()},
        ),
    ] = field(default_factory=dict, hash=False)
    """The initial shard counts of keys that will be hot, by key, or by prefix with a final *."""

    def for_functions(self) -> dict[str, Any]:
        """Return the settings for functions, which read the partition key from the schema."""
        _, _, *rest = fields(self)
        settings = {camel(field.name): getattr(self, field.name) for field in rest}
        return {name: value for name, value in settings.items() if value != {}}


def sharding_of(table: str, is_arn: bool, has_index: bool, value: Any) -> Sharding | None:
    """Return the sharding of a table from its entry; raise ConfigError if it is wrong."""
    if value is None:
        return None
    if is_arn:
        by_name = "left out for a table given by its ARN: give its name; it must be in the stack's "
        raise wrong_in(table, "sharding", value, f"{by_name}account and region")
    if has_index:
        without_index = "left out with keyIndex, as sentinels would be read and moved like items"
        raise wrong_in(table, "sharding", value, without_index)
    if not isinstance(value, Mapping):
        raise wrong_in(table, "sharding", value, 'an object, as {"partitionKey": "path"}')
    return shape_of(
        Sharding,
        {"partitionKey": None, **value},
        f"The context field tables has, for the table {table}, a sharding with the field {{}}"
        ", which",
        lambda field, value, allowed: wrong_in(table, f"sharding.{field}", value, allowed),
    )


TABLES_BYTES = 3200
"""The maximum number of bytes for tables in an environment, of which FinishRun's is the largest.
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
    reference = value.strip() if isinstance(value, str) else ""
    return bool(TABLE_ARN.fullmatch(reference) or TABLE_NAME.fullmatch(reference))


def are_attributes(value: Any) -> bool:
    """Return whether the value is a list of names."""
    is_list = isinstance(value, list | tuple) and bool(value)
    return is_list and all(isinstance(name, str) and name for name in value)


@dataclass(frozen=True)
class Table:
    """A table that the deployment may read."""

    given: Annotated[str, Must(_is_table, ALLOWED, str.strip)]
    """The name or the ARN of the table, as the context has it."""
    key_index: Truth = False
    """True for a key index: a sentinel in each item collection, maintained by a function."""
    sentinel_sort_key: Annotated[str | None, Must(text(), "a text, not empty")] = None
    """The sort key of the sentinels, as text; None for the least possible one."""
    key_attributes: Annotated[
        tuple[str, ...],
        Must(are_attributes, 'a list of attributes, as ["customer", "order"]', tuple),
    ] = ()
    """The attributes that a Scan may request; empty for no restriction by name."""
    kms_key: KmsKey = None
    """The customer managed key that encrypts the table; None for a key of AWS."""
    run_schedule: Schedule = None
    """The schedule of lists of its keys, as EventBridge writes it; None for no schedule."""
    run_input: Annotated[
        Mapping[str, Any],
        Must(lambda value: isinstance(value, Mapping), 'an object, as {"maxReadRate": 500}', dict),
    ] = field(default_factory=dict, hash=False)
    """Further fields of the input of EnumerateKeys for these runs."""
    sharding: Sharding | None = None
    """None if the table is not sharded."""
    each: Allowed | None = None
    """The actions of ForEachKey that are allowed for its keys; None for no actions."""
    report: Reports | None = None
    """The reports of ReportKeys on the table; None for no reports."""

    @property
    def label(self) -> str:
        """Return the table's label in construct ids and messages."""
        return self.given

    @property
    def name(self) -> str:
        """Return the name without account and region."""
        return self.given.rpartition("/")[2]

    @property
    def arn(self) -> str | None:
        """Return the ARN if the context has one."""
        return self.given if self.given != self.name else None


_TABLE_FIELDS = ("table", *names_of(Table)[1:])


def tables_of(value: Any) -> tuple[Table, ...]:
    """Read the field tables, in which metadata tables may lack names; may raise ConfigError."""
    tables: list[Table] = []
    for entry in listed(value):
        table = _table(entry)
        if table.given in (previous.given for previous in tables):
            raise wrong("tables", value, f"{ALLOWED}, each of them once")
        tables.append(table)
    return tuple(tables)


def listed(value: Any) -> list[str | Mapping[str, Any]]:
    """Return the entries of a list, a text with commas, or a text with JSON; otherwise none."""
    if isinstance(value, str):
        value = from_json(value) if value.lstrip().startswith("[") else value.split(",")
    is_list = isinstance(value, list | tuple)
    return list(value) if is_list and all(isinstance(e, str | Mapping) for e in value) else []


def with_key_attributes(
    tables: Sequence[Table], attributes: Mapping[str, list[str]]
) -> list[Table]:
    """Add the attributes of the field keyAttributes; raise ConfigError for duplicates."""
    for table in tables:
        if table.key_attributes and table.given in attributes:
            raise ConfigError(
                f"The context field keyAttributes names {table.given}, whose entry in tables has "
                "keyAttributes as well; remove one of the two."
            )
    return [
        replace(table, key_attributes=tuple(attributes.get(table.given, table.key_attributes)))
        for table in tables
    ]


def with_metadata_tables(tables: Sequence[Table], stack_name: str) -> tuple[Table, ...]:
    """Return each sharded table with the name of its metadata table.

    Raise ConfigError if names clash, or if the tables do not fit into the functions' environment.
    """
    complete: list[Table] = []
    owners = {table.name: f"the table {table.label} of this field" for table in tables}
    for table in tables:
        if table.sharding:
            metadata = table.sharding.metadata or _default_metadata(table.label, stack_name)
            if metadata in owners:
                free = f"the name of no other table, and this is that of {owners[metadata]}"
                raise wrong_in(table.label, "sharding.metadata", metadata, free)
            maximum, start_shards = table.sharding.most_shards, table.sharding.start_shards
            if any(count > maximum for count in start_shards.values()):
                at_most = f"at most {maximum} for each key, its mostShards"
                raise wrong_in(table.label, "sharding.startShards", start_shards, at_most)
            owners[metadata] = f"the metadata table of {table.label}"
            table = replace(table, sharding=replace(table.sharding, metadata=metadata))
        complete.append(table)
    fit = sum(
        environment_bytes(complete[: number + 1]) <= TABLES_BYTES for number in range(len(complete))
    )
    if fit < len(complete):
        raise ConfigError(
            f"The context field tables has {counted(len(complete), 'table')}, of which {fit} fit "
            "into one stack, because their names are in the functions' environment of 4 KB. Deploy "
            "a second stack (stackName) for the others."
        )
    return tuple(complete)


def which_tables(tables: Sequence[Table]) -> dict[str, str]:
    """Return the environment variable with the tables, as the context names them."""
    return {"KEYHOP_TABLES": json.dumps([table.given for table in tables])}


def which_key_indexes(tables: Sequence[Table]) -> dict[str, str]:
    """Return the environment variable with the sentinels' sort key of each key index."""
    places = {table.given: table.sentinel_sort_key for table in tables if table.key_index}
    return {"KEYHOP_KEY_INDEXES": json.dumps(places)} if places else {}


def which_sharding(tables: Sequence[Table]) -> dict[str, str]:
    """Return the environment variable with the sharding of each sharded table."""
    sharded = {table.given: table.sharding.for_functions() for table in tables if table.sharding}
    return {"KEYHOP_SHARDING": json.dumps(sharded)} if sharded else {}


def which_each(tables: Sequence[Table]) -> dict[str, str]:
    """Return the environment variable with the actions allowed for each key, by table."""
    allowed = {table.given: table.each.to_json() for table in tables if table.each}
    return {"KEYHOP_EACH": json.dumps(allowed)} if allowed else {}


def environment_bytes(tables: Sequence[Table]) -> int:
    """Return the larger size of tables in FinishRun's and PlanRun's environment, with escapes."""
    both = {**which_tables(tables), **which_key_indexes(tables)}
    extras = (which_sharding(tables), which_each(tables))
    return max(len(json.dumps({**both, **extra}).encode()) for extra in extras)


def _table(entry: str | Mapping[str, Any]) -> Table:
    named = {"table": entry} if isinstance(entry, str) else entry
    values = {name: value for name, value in named.items() if value is not None}
    sharding, each = values.pop("sharding", None), values.pop("each", None)
    report = values.pop("report", None)
    values["given"] = name = values.pop("table", None)

    def refused(field: str, value: Any, allowed: str) -> ConfigError:
        in_list = field == "given"
        return wrong("tables", entry, ALLOWED) if in_list else wrong_in(name, field, value, allowed)

    table = shape_of(
        Table,
        values,
        "The context field tables has a table with the field {}, which",
        refused,
        _TABLE_FIELDS,
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
    table: Table, field: str, values: Mapping[str, Any], machine: str, shape: type[RunInput]
) -> None:
    """Raise ConfigError if `values` has wrong fields for an input of the state machine."""
    if reserved := sorted({*values} & {"table", "resume", "scheduled"}):
        raise wrong_in(table.given, field, values, f"without {reserved[0]}")
    try:
        shape.parse({**values, "table": table.given})
    except InvalidInput as error:
        like = f"further fields of an input of {machine}"
        raise wrong_in(table.given, field, values, f"{like} ({error})") from error


def _each(table: Table, value: Any) -> Allowed | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise wrong_in(table.given, "each", value, 'an object, as {"put": true}')
    allowed = shape_of(
        Allowed,
        value,
        f"The context field tables has, for the table {table.given}, an each with the field {{}}"
        ", which",
        lambda field, value, must: wrong_in(table.given, f"each.{field}", value, must),
    )
    if allowed.is_nothing:
        an_action = (
            "with something that may be done: put, update, delete, functions, queues or machines"
        )
        raise wrong_in(table.given, "each", value, an_action)
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
    inputs = {name: entry for name, entry in value.items() if entry is not None}
    named = {"schedule": inputs.pop("schedule")} if "schedule" in inputs else {}
    reports = shape_of(
        Reports,
        named,
        "{}",
        lambda field, value, must: wrong_in(table.given, f"report.{field}", value, must),
    )
    if inputs and reports.schedule is None:
        when = "an object with a schedule: an execution that somebody starts has its own input"
        raise wrong_in(table.given, "report", value, when)
    _check_input(table, "report", inputs, "ReportKeys", ReportInput)
    return replace(reports, given=inputs)


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
"""The maximum characters of the functions: they are in the plan, an item of at most 400 KB."""

_IS_NAME = text(TABLE_NAME)
_A_NAME = "the name of a table (3 to 255 of a-z A-Z 0-9 _ . -) in the stack's account and region"


def _has_room(value: Any) -> bool:
    return _IS_NAME(value) and len(value + SIDE_SUFFIX) <= MOST_NAME


@dataclass(frozen=True)
class PairEntry:
    """A pair in the context.

    Attributes:
        transform: A file of Python functions beside keyhop.json. Only its text at synth runs in
            the deployment.
        source_kms_key, destination_kms_key: The same as kmsKey of the field tables, whose entries
            are used as well.
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
    """A pair of tables. `code` is the digest of the functions that may run for it, or empty."""

    source: Table
    destination: Table
    code: str = ""

    @property
    def side(self) -> Table:
        """Return the side table, which `keyhop rekey create` creates."""
        return Table(self.destination.name + SIDE_SUFFIX)

    @property
    def both(self) -> tuple[Table, Table]:
        return self.source, self.destination

    @property
    def names(self) -> tuple[str, str]:
        return self.source.name, self.destination.name

    @property
    def label(self) -> str:
        """Return the pair's label in construct ids."""
        return self.destination.label

    def allowed(self) -> AllowedRekey:
        """Return the settings of the pair for functions."""
        return AllowedRekey(self.source.name, self.destination.name, self.code)


def rekeyed_of(value: Any) -> tuple[Rekeyed, ...]:
    """Read the field rekey, which may have pairs of constructs; may raise ConfigError."""
    entries = value if isinstance(value, list | tuple) else listed(value)
    pairs = tuple(entry if isinstance(entry, Rekeyed) else _pair(entry) for entry in entries)
    names = [table.name for pair in pairs for table in (*pair.both, pair.side)]
    if len(set(names)) < len(names):
        raise wrong("rekey", [list(pair.names) for pair in pairs], PAIRS)
    return pairs


def are_pairs(value: Any) -> bool:
    """Return whether the value is a list of objects, also if it is written as JSON."""
    entries = value if isinstance(value, list | tuple) else listed(value)
    return bool(entries) and all(isinstance(entry, Mapping | Rekeyed) for entry in entries)


def with_tables(pairs: Sequence[Rekeyed], tables: Sequence[Table]) -> tuple[Rekeyed, ...]:
    """Return the pairs with the settings of their tables.

    Raise ConfigError if a setting is wrong, or if the pairs do not fit into the functions'
    environment.
    """
    by_name = {table.name: table for table in tables}
    complete = tuple(
        replace(
            pair,
            source=_like(pair.source, by_name.get(pair.source.name)),
            destination=_unsharded(_like(pair.destination, by_name.get(pair.destination.name))),
        )
        for pair in pairs
    )
    table_bytes = environment_bytes(tables)
    fit = sum(
        table_bytes + len(json.dumps(which_pairs(complete[: n + 1])).encode()) <= TABLES_BYTES
        for n in range(len(complete))
    )
    if fit < len(complete):
        raise ConfigError(
            f"The context field rekey has {counted(len(complete), 'pair')}, of which {fit} fit "
            "beside the tables of this stack, because all names are in the functions' environment "
            "of 4 KB. Deploy a second stack (stackName) for the others."
        )
    return complete


def which_pairs(pairs: Sequence[Rekeyed]) -> dict[str, str]:
    """Return the environment variable with the pairs."""
    return {"KEYHOP_REKEY": json.dumps([pair.allowed().to_json() for pair in pairs])}


def _like(table: Table, listed_table: Table | None) -> Table:
    if listed_table is None:
        return table
    return replace(
        table, kms_key=table.kms_key or listed_table.kms_key, sharding=listed_table.sharding
    )


def _unsharded(destination: Table) -> Table:
    if destination.sharding:
        raise ConfigError(
            f"The context field rekey has a destination, {destination.name}, that is sharded (its "
            "entry in the field tables): a template gives each item its one place, and would not "
            "follow shards that writers add and drain. Remove one of the two."
        )
    return destination


def _pair(entry: Any) -> Rekeyed:
    def refused(name: str, value: Any, allowed: str) -> ConfigError:
        return wrong(f"rekey, in {json.dumps(entry, default=str)}, its {name}", value, allowed)

    values = {name: value for name, value in entry.items() if value is not None}
    read = shape_of(
        PairEntry,
        {"source": None, "destination": None, **values},
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
    """Return the text of a file; raise ConfigError if it cannot run."""
    folder = Path() if IS_INSTALLED else ROOT
    subject = f"The context field rekey names the transform {name}, which"
    try:
        code = (folder / name).read_text(encoding="utf-8")
        ast.parse(code)
    except FileNotFoundError:
        raise ConfigError(f"{subject} does not exist in the folder of keyhop.json.") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{subject} cannot be read as a text: {error}.") from None
    except SyntaxError as error:
        fault = f"{error.msg} in line {error.lineno}"
        raise ConfigError(f"{subject} is not valid Python: {fault}.") from None
    if len(code) > MOST_CODE:
        raise ConfigError(f"{subject} has {len(code):,} characters; at most {MOST_CODE:,} fit.")
    return code


ARCHITECTURES = {"arm64": "arm64", "x86_64": "x86_64", "x86-64": "x86_64"}

_STACK_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,47}")
BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
EMAIL = re.compile(r"[^@\s,]+@[^@\s,]+\.[^@\s,]+")
_NAMES_OF_THE_CDK = ("@", "cdk-", "acknowledged-issue-numbers")


def _attributes(value: Any) -> Any:
    return from_json(value) if isinstance(value, str) else value


def _are_attributes_of_tables(value: Any) -> bool:
    attributes = _attributes(value)
    return isinstance(attributes, Mapping) and all(map(are_attributes, attributes.values()))


@dataclass(frozen=True)
class Config:
    """The settings of one deployment."""

    tables: Annotated[
        tuple[Table, ...], Must(lambda value: bool(listed(value)), ALLOWED, tables_of)
    ]
    key_attributes: Annotated[
        Mapping[str, list[str]], Must(_are_attributes_of_tables, ATTRIBUTES_BY_TABLE, _attributes)
    ] = field(default_factory=dict, compare=False)
    """The field as the context has it; the tables contain its attributes as well."""
    stack_name: Annotated[
        str, Must(text(_STACK_NAME), "1 to 48 letters, digits and hyphens, with a letter first")
    ] = "Keyhop"
    architecture: Annotated[
        str, Must(one_of(*ARCHITECTURES), f"one of {', '.join(ARCHITECTURES)}", ARCHITECTURES.get)
    ] = "arm64"
    """The architecture of the functions, as CloudFormation writes it: arm64 or x86_64."""
    results_retention_days: Annotated[int, whole(7, 3650)] = 90
    """A run's results are deleted even while it runs: the longest estimated run takes 113 hours."""
    keep_results: TruthOrText = True
    """True if the bucket stays when the stack is destroyed."""
    results_bucket: Annotated[
        str | None,
        Must(
            text(BUCKET),
            "the name of a bucket (3 to 63 of a-z 0-9 . -) that an earlier deployment has left",
        ),
    ] = None
    """An existing bucket, whose records are used; None if the stack creates one."""
    log_level: Annotated[str, choice("INFO", "WARNING", "ERROR")] = "INFO"
    log_retention_days: RetentionDays = 30
    worker_memory_mb: Annotated[int, whole(512, 10240)] = 1769
    """This and the next two fields are for the functions that read tables."""
    worker_timeout_seconds: Annotated[int, whole(30, 900)] = 900
    reserved_concurrency: Annotated[int | None, whole(1, 1000)] = None
    keeper_concurrency: Annotated[int | None, whole(1, 1000)] = None
    """The reserved concurrency of KeepIndex, for all tables together."""
    alarm_email: Annotated[str | None, Must(text(EMAIL), "one e-mail address")] = None
    max_cost: Annotated[float, Must(is_dollars, "a number of dollars, at least 0.01", float)] = 10.0
    """The limit in dollars of a run, build, verification or removal whose input has none."""
    prices: Annotated[str | None, Must(are_prices, ARE, as_json)] = None
    """JSON with the prices of units in the tables' region; None for list prices."""
    dynamodb_endpoint: Loopback = None
    """The address of DynamoDB, on a laptop only."""
    verify_index_schedule: Schedule = "rate(7 days)"
    """The schedule of verifications of key indexes, as EventBridge writes it; None for none."""
    shrink_schedule: Schedule = "rate(1 day)"
    """The schedule of searches for surplus shards, as EventBridge writes it; None for none."""
    start_drains: TruthOrText = False
    """True if such shards are drained then; otherwise drains are only proposed."""
    rekey: Annotated[tuple[Rekeyed, ...], Must(are_pairs, PAIRS, rekeyed_of)] = ()
    """The pairs of tables that may be re-keyed; they need not be in the field tables."""
    verify_schedule: Schedule = "rate(1 day)"
    """The schedule of comparisons of pairs until their cutover; None for no schedule."""
    replicate_concurrency: Annotated[int | None, whole(1, 1000)] = None
    """The reserved concurrency of Replicate, for all pairs together."""

    @property
    def key_index_tables(self) -> tuple[Table, ...]:
        return tuple(table for table in self.tables if table.key_index)

    @property
    def sharded_tables(self) -> tuple[Table, ...]:
        return tuple(table for table in self.tables if table.sharding is not None)

    @property
    def each_tables(self) -> tuple[Table, ...]:
        return tuple(table for table in self.tables if table.each is not None)

    @property
    def report_tables(self) -> tuple[Table, ...]:
        return tuple(table for table in self.tables if table.report is not None)

    @property
    def all_tables(self) -> tuple[Table, ...]:
        """Return the listed tables and the tables of pairs."""
        return (*self.tables, *(table for pair in self.rekey for table in pair.both))

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> "Config":
        """Read all fields; raise ConfigError for one that is wrong."""
        field_names = names_of(cls)
        # `-c alarmEmail=` removes the value from keyhop.json.
        values = {
            name: value
            for name, value in context.items()
            if not (":" in name or name.startswith(_NAMES_OF_THE_CDK))
            and not (name in field_names and value in (None, ""))
        }
        config = shape_of(cls, {"tables": None, **values}, "The context field {}", wrong)
        for name in config.key_attributes:
            if name not in (table.given for table in config.tables):
                allowed = f"{ATTRIBUTES_BY_TABLE}, and {name} is not one of them"
                raise wrong("keyAttributes", values["keyAttributes"], allowed)
        named = with_key_attributes(config.tables, config.key_attributes)
        tables = with_metadata_tables(named, config.stack_name)
        return replace(config, tables=tables, rekey=with_tables(config.rekey, tables))


def settings_of(context: Mapping[str, Any], folder: Path = ROOT) -> dict[str, Any]:
    """Return the settings by name. The context overrides the file. May raise ConfigError.

    The tables have no default: otherwise a `cdk deploy` that somebody runs without them would
    change a deployment with other tables to the default.
    """
    overrides = {name: value for name, value in context.items() if name != NAMING}
    name = context.get(NAMING, FILE)
    in_file = _read(folder / name, is_asked_for=NAMING in context) if name else {}
    settings = {**in_file, **overrides}
    if not settings.get("tables"):
        raise ConfigError(
            f"The settings name no tables: copy {EXAMPLE} to {FILE} and write them there, or give "
            "them by -c tables=Orders."
        )
    return settings


def _read(path: Path, is_asked_for: bool) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        check_characters(content)
    except FileNotFoundError:
        if not is_asked_for:
            return {}
        raise ConfigError(f"There is no file {path.name}, which {NAMING} names.") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path.name} cannot be read as JSON: {error}.") from None
    if not isinstance(content, dict):
        raise ConfigError(f'{path.name} must be an object, as {{"tables": ["Orders"]}}.')
    return content
