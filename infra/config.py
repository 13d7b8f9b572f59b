"""The deployment's settings: frozen dataclasses, made from the CDK context.

The context comes from cdk.json and from `-c name=value`. The command line knows only strings, so a
list may be written with commas, and a number or a truth value as text. A wrong value is a
`ConfigError` that names the field, what it is and what is allowed. Nothing here imports the CDK.
"""

import difflib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

T = TypeVar("T")

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
LOG_RETENTION_DAYS = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731),
    *(1096, 1827, 2192, 2557, 2922, 3288, 3653),
)
"""The only retentions that CloudWatch Logs has."""

ARCHITECTURES = {"arm64": "arm64", "x86_64": "x86_64", "x86-64": "x86_64"}
MAX_TABLES_TEXT = 3000
"""The allow-list travels in the functions' environment, which holds 4 KB in all; so do, beside it,
the tables that have a key index, with the sort keys of their sentinels."""

NEVER = "never"

_TABLE_NAME = re.compile(r"[a-zA-Z0-9_.-]{3,255}")
_TABLE_ARN = re.compile(
    r"arn:aws[a-z-]*:dynamodb:[a-z0-9-]+:[0-9]{12}:table/(?P<name>[a-zA-Z0-9_.-]{3,255})"
)
_STACK_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,47}")
_EMAIL = re.compile(r"[^@\s,]+@[^@\s,]+\.[^@\s,]+")
_LOOPBACK = re.compile(r"http://(127\.0\.0\.1|localhost|\[::1\]):(?P<port>[0-9]{1,5})/?")
_RATE = re.compile(r"rate\((1 (minute|hour|day)|([2-9]|[1-9][0-9]{1,5}) (minutes|hours|days))\)")
_CRON = re.compile(
    r"cron\([0-9*,/-]+ [0-9*,/-]+ "
    r"(\? [0-9A-Z*,/-]+ [0-9A-Z*,/#-]+|[0-9LW*,/-]+ [0-9A-Z*,/-]+ \?) [0-9*,/-]+\)"
)
"""Minutes, hours, day of the month, month, day of the week, year; one of the days must be `?`."""

_TABLE_FIELDS = ("table", "keyIndex", "sentinelSortKey", "keyAttributes")
_NAMES_OF_THE_CDK = ("@", "cdk-", "acknowledged-issue-numbers")


class ConfigError(Exception):
    """A context field that is not as it must be; the message is one sentence for the user."""


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

    @property
    def arn(self) -> str | None:
        """The ARN, if that is what the context has."""
        return self.given if self.given != self.name else None


@dataclass(frozen=True)
class Results:
    """What becomes of the results."""

    retention_days: int
    keep: bool
    """Whether the bucket stays when the stack is destroyed."""


@dataclass(frozen=True)
class Logs:
    """How much is logged, and for how long it is kept."""

    level: str
    retention_days: int


@dataclass(frozen=True)
class Worker:
    """The function that reads the table."""

    memory_mb: int
    timeout_seconds: int
    reserved_concurrency: int | None


@dataclass(frozen=True)
class Config:
    """One deployment."""

    stack_name: str
    tables: tuple[Table, ...]
    architecture: str
    """As CloudFormation writes it: arm64 or x86_64."""
    results: Results
    logs: Logs
    worker: Worker
    alarm_email: str | None
    dynamodb_endpoint: str | None
    """Only on a laptop: where DynamoDB is."""
    audit_schedule: str | None
    """When key indexes are audited, as EventBridge writes it; None: never by themselves."""

    @property
    def key_index_tables(self) -> tuple[Table, ...]:
        """The tables that may have a key index."""
        return tuple(table for table in self.tables if table.key_index)

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> "Config":
        """Read all fields; raises ConfigError at the first that is wrong."""
        fields = _Fields(context)
        tables = fields.tables()
        config = cls(
            stack_name=fields.text(
                "stackName",
                "Keyhop",
                _STACK_NAME,
                "1 to 48 letters, digits and hyphens, with a letter first",
            ),
            tables=tables,
            architecture=ARCHITECTURES[fields.choice("architecture", "arm64", ARCHITECTURES)],
            results=Results(
                retention_days=fields.number("resultsRetentionDays", 90, 1, 3650),
                keep=fields.truth("keepResults", True),
            ),
            logs=Logs(
                level=fields.choice("logLevel", "INFO", LOG_LEVELS),
                retention_days=fields.log_retention("logRetentionDays", 30),
            ),
            worker=Worker(
                memory_mb=fields.number("workerMemoryMb", 1769, 512, 10240),
                timeout_seconds=fields.number("workerTimeoutSeconds", 900, 30, 900),
                reserved_concurrency=fields.optional(
                    "reservedConcurrency", lambda name: fields.number(name, 1, 1, 1000)
                ),
            ),
            alarm_email=fields.optional(
                "alarmEmail", lambda name: fields.text(name, "", _EMAIL, "one e-mail address")
            ),
            dynamodb_endpoint=fields.optional("dynamodbEndpoint", fields.loopback),
            audit_schedule=fields.schedule("auditSchedule", "rate(7 days)"),
        )
        fields.refuse_the_rest()
        return config


class _Fields:
    """The context, one field at a time; remembers which have been asked for."""

    def __init__(self, context: Mapping[str, Any]) -> None:
        self._context = context
        self._known: list[str] = []

    def tables(self) -> tuple[Table, ...]:
        name = "tables"
        allowed = (
            "a list of one or more tables, each by its name (3 to 255 of a-z A-Z 0-9 _ . -) "
            "or by its ARN (arn:aws:dynamodb:REGION:ACCOUNT:table/NAME), or as an object with it, "
            'as {"table": "Orders", "keyIndex": true}'
        )
        value = self._get(name)
        listed = self._list(name, value, allowed)
        if not listed:
            raise self._wrong(name, value, allowed)
        tables: list[Table] = []
        for entry in listed:
            table = self._table(name, entry, allowed)
            if table.given in (one.given for one in tables):
                raise self._wrong(name, value, f"{allowed}, each of them once")
            tables.append(table)
        if _length_in_environment(tables) > MAX_TABLES_TEXT:
            raise ConfigError(
                f"The context field {name} is too long with its {len(tables)} tables: it must be "
                f"at most {MAX_TABLES_TEXT} characters of JSON, where a table with keyIndex counts "
                "twice. Deploy a second stack (stackName) for the others."
            )
        return self._with_key_attributes(tables)

    def _table(self, name: str, entry: str | Mapping[str, Any], allowed: str) -> Table:
        told = {"table": entry} if isinstance(entry, str) else entry
        for field in told:
            if field not in _TABLE_FIELDS:
                raise ConfigError(
                    f"The context field {name} has a table with the field {field}, which is not "
                    f"known; {_hint(field, _TABLE_FIELDS)}"
                )
        given = told.get("table")
        if not isinstance(given, str):
            raise self._wrong(name, entry, allowed)
        given = given.strip()
        arn = _TABLE_ARN.fullmatch(given)
        if not arn and not _TABLE_NAME.fullmatch(given):
            raise self._wrong(name, entry, allowed)
        key_index = told.get("keyIndex", False)
        if not isinstance(key_index, bool):
            raise self._wrong_in(name, given, "keyIndex", key_index, "true or false")
        place = told.get("sentinelSortKey")
        if place is not None and (not isinstance(place, str) or not place):
            raise self._wrong_in(name, given, "sentinelSortKey", place, "a text, not empty")
        if place is not None and not key_index:
            raise self._wrong_in(name, given, "sentinelSortKey", place, "left out without keyIndex")
        attributes = told.get("keyAttributes")
        if attributes is not None and not _are_attributes(attributes):
            listed = 'a list of attributes, as ["customer", "order"]'
            raise self._wrong_in(name, given, "keyAttributes", attributes, listed)
        named = arn["name"] if arn else given
        return Table(given, named, tuple(attributes or ()), key_index, place)

    def _with_key_attributes(self, tables: list[Table]) -> tuple[Table, ...]:
        found = self._key_attributes([table.given for table in tables])
        for table in tables:
            if table.key_attributes and table.given in found:
                raise ConfigError(
                    f"The context field keyAttributes names {table.given}, whose entry in tables "
                    "has keyAttributes as well; take one of them away."
                )
        return tuple(
            replace(table, key_attributes=found.get(table.given, table.key_attributes))
            for table in tables
        )

    def _key_attributes(self, tables: list[str]) -> dict[str, tuple[str, ...]]:
        name = "keyAttributes"
        allowed = (
            'an object with, for tables of the field tables, a list of attributes, as {"Orders": '
            '["customer", "order"]}'
        )
        value = self._get(name)
        if value is None:
            return {}
        read = _from_json(value) if isinstance(value, str) else value
        if not isinstance(read, Mapping):
            raise self._wrong(name, value, allowed)
        for table, attributes in read.items():
            if table not in tables:
                raise self._wrong(name, value, f"{allowed}, and {table} is not one of them")
            if not _are_attributes(attributes):
                raise self._wrong(name, value, allowed)
        return {table: tuple(attributes) for table, attributes in read.items()}

    def text(self, name: str, default: str, pattern: re.Pattern[str], allowed: str) -> str:
        value = self._get(name, default)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise self._wrong(name, value, allowed)
        return value

    def choice(self, name: str, default: str, among: Mapping[str, str] | tuple[str, ...]) -> str:
        value = self._get(name, default)
        if not isinstance(value, str) or value not in among:
            raise self._wrong(name, value, f"one of {', '.join(among)}")
        return value

    def number(self, name: str, default: int, least: int, most: int) -> int:
        value = self._get(name, default)
        number = _whole(value)
        if number is None or not least <= number <= most:
            raise self._wrong(name, value, f"a whole number from {least} to {most}")
        return number

    def log_retention(self, name: str, default: int) -> int:
        value = self._get(name, default)
        number = _whole(value)
        if number not in LOG_RETENTION_DAYS:
            days = ", ".join(map(str, LOG_RETENTION_DAYS))
            raise self._wrong(name, value, f"one of the days that CloudWatch has: {days}")
        return number

    def truth(self, name: str, default: bool) -> bool:
        value = self._get(name, default)
        if isinstance(value, bool):
            return value
        if value in ("true", "false"):
            return bool(value == "true")
        raise self._wrong(name, value, "true or false")

    def loopback(self, name: str) -> str:
        value = self._get(name)
        found = _LOOPBACK.fullmatch(value) if isinstance(value, str) else None
        if found is None or not 0 < int(found["port"]) < 65536:
            raise self._wrong(
                name,
                value,
                "an address of this machine, as http://127.0.0.1:8000 (it is for the laptop only)",
            )
        return str(value).rstrip("/")

    def schedule(self, name: str, default: str) -> str | None:
        value = self._get(name, default)
        if value == NEVER:
            return None
        if isinstance(value, str) and (_RATE.fullmatch(value) or _CRON.fullmatch(value)):
            return value
        raise self._wrong(
            name,
            value,
            "a schedule of EventBridge, as rate(7 days), rate(1 hour) or cron(0 3 ? * SUN *), or "
            f"{NEVER}",
        )

    def optional(self, name: str, read: Callable[[str], T]) -> T | None:
        return None if self._get(name) is None else read(name)

    def refuse_the_rest(self) -> None:
        for name in self._context:
            if name in self._known or ":" in name or name.startswith(_NAMES_OF_THE_CDK):
                continue
            raise ConfigError(f"The context field {name} is not known; {_hint(name, self._known)}")

    def _get(self, name: str, default: Any = None) -> Any:
        if name not in self._known:
            self._known.append(name)
        value = self._context.get(name)
        # `-c alarmEmail=` takes away what cdk.json says.
        return default if value is None or value == "" else value

    def _list(self, name: str, value: Any, allowed: str) -> list[str | Mapping[str, Any]]:
        if isinstance(value, str):
            value = _from_json(value) if value.lstrip().startswith("[") else value.split(",")
        if not isinstance(value, list | tuple):
            raise self._wrong(name, value, allowed)
        if not all(isinstance(entry, str | Mapping) for entry in value):
            raise self._wrong(name, value, allowed)
        return list(value)

    @staticmethod
    def _wrong(name: str, value: Any, allowed: str) -> ConfigError:
        return ConfigError(f"The context field {name} is {_told(value)}; it must be {allowed}.")

    @staticmethod
    def _wrong_in(name: str, table: str, field: str, value: Any, allowed: str) -> ConfigError:
        return ConfigError(
            f"The context field {name} has, for the table {table}, a {field} that is "
            f"{_told(value)}; it must be {allowed}."
        )


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


def _hint(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}."


def _told(value: Any) -> str:
    return "missing" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        return int(value)
    return value if isinstance(value, int) else None


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
