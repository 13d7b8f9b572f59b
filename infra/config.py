"""The deployment's settings: one frozen dataclass, whose fields are those of keyhop.json.

A wrong value is a `ConfigError` that names the field, what it is and what is allowed. What values
must be is in config_values.py and, for tables, in config_tables.py and config_rekey.py.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from keyhop.checks import Must, names_of, one_of, text
from keyhop.dynamodb.prices import ARE, are_prices

from .config_rekey import PAIRS, Rekeyed, are_pairs, rekeyed_of, with_tables
from .config_tables import (
    ALLOWED,
    ATTRIBUTES_BY_TABLE,
    Table,
    are_attributes,
    listed,
    tables_of,
    with_key_attributes,
    with_metadata_tables,
)
from .config_values import (
    ConfigError,
    Loopback,
    RetentionDays,
    Schedule,
    Truth,
    as_json,
    choice,
    from_json,
    is_dollars,
    shape_of,
    whole,
    wrong,
)

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
    """Also of a run that is at work: the longest that was reckoned takes 113 hours."""
    keep_results: Truth = True
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
    """When key indexes are audited, as EventBridge writes it; None: never by themselves."""
    shrink_schedule: Schedule = "rate(1 day)"
    """When it is asked which keys have more shards than they need; None: never by itself."""
    start_drains: Truth = False
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
        """Those that are listed, and those of pairs."""
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
