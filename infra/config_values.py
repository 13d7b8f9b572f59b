"""The constraints on values of the context, and the messages for wrong values.

The settings come from keyhop.json and from `-c name=value`. The command line has only strings, so a
number or a truth value may be written as text. Nothing here imports the CDK.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

from keyhop.checks import (
    MOST_NUMBER,
    Must,
    Unreadable,
    hint,
    is_number,
    names_of,
    one_of,
    structured,
    text,
)
from keyhop.dynamodb.units import LEAST_COST

T = TypeVar("T")

LOG_RETENTION_DAYS = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731),
    *(1096, 1827, 2192, 2557, 2922, 3288, 3653),
)
"""The only retentions that CloudWatch Logs has."""

NEVER = "never"

_LOOPBACK = re.compile(r"http://(127\.0\.0\.1|localhost|\[::1\]):(?P<port>[0-9]{1,5})/?")
RATE = re.compile(r"rate\((1 (minute|hour|day)|([2-9]|[1-9][0-9]{1,5}) (minutes|hours|days))\)")
CRON = re.compile(
    r"cron\([0-9*,/-]+ [0-9*,/-]+ "
    r"(\? [0-9A-Z*,/-]+ [0-9A-Z*,/#-]+|[0-9LW*,/-]+ [0-9A-Z*,/-]+ \?) [0-9*,/-]+\)"
)
"""Minutes, hours, day of the month, month, day of the week, year; one of the days must be `?`."""


class ConfigError(Exception):
    """A context field is wrong; the message is one sentence for the user."""


def whole(low: int, high: int) -> Must:
    """Require a whole number within bounds, which may be written as text."""
    return Must(
        lambda value: low <= _whole(value) <= high, f"a whole number from {low} to {high}", _whole
    )


def choice(*choices: str) -> Must:
    """Require one of several texts."""
    return Must(one_of(*choices), f"one of {', '.join(choices)}")


def _whole(value: Any) -> int:
    """Return a value as a whole number, or -1, which is below all bounds, if it is not one."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return -1
    return int(value) if float(value).is_integer() else -1


def _is_loopback(value: Any) -> bool:
    match = _LOOPBACK.fullmatch(value) if isinstance(value, str) else None
    return match is not None and 0 < int(match["port"]) < 65536


TruthOrText = Annotated[
    bool,
    Must(
        lambda value: isinstance(value, bool) or value in ("true", "false"),
        "true or false",
        lambda value: value in (True, "true"),
    ),
]
RetentionDays = Annotated[
    int,
    Must(
        lambda value: _whole(value) in LOG_RETENTION_DAYS,
        f"one of the days that CloudWatch has: {', '.join(map(str, LOG_RETENTION_DAYS))}",
        _whole,
    ),
]
Loopback = Annotated[
    str | None,
    Must(
        _is_loopback,
        "an address of this machine, as http://127.0.0.1:8000 (it is for the laptop only)",
        lambda value: value.rstrip("/"),
    ),
]
Schedule = Annotated[
    str | None,
    Must(
        text(RATE, CRON, re.compile(NEVER)),
        "a schedule of EventBridge, as rate(7 days), rate(1 hour) or cron(0 3 ? * SUN *), or "
        f"{NEVER}",
        lambda value: None if value == NEVER else value,
    ),
]


def shape_of(
    shape: type[T],
    values: Mapping[str, Any],
    unknown: str,
    wrong: Callable[[str, Any, str], ConfigError],
    field_names: tuple[str, ...] = (),
) -> T:
    """Read an object into a dataclass; raise ConfigError for the first wrong field.

    Args:
        unknown: The beginning of the message for an unknown field, with {} for its name.
        wrong: Returns the error for a field's name, its value and the allowed values.
        field_names: The names of the fields, if they are not those of the dataclass.
    """
    field_names = field_names or names_of(shape)
    try:
        return structured(shape, values)
    except Unreadable as error:
        unreadable = error
    for name in unreadable.unknown:
        suggestion = hint(name, field_names) or f"known are {', '.join(field_names)}."
        raise ConfigError(f"{unknown.format(name)} is not known; {suggestion}")
    name, refused = next(iter(unreadable.wrong.items()))
    raise wrong(name, refused.value, refused.must.be)


def wrong(name: str, value: Any, allowed: str) -> ConfigError:
    """Return the error for a field."""
    return ConfigError(f"The context field {name} is {_shown(value)}; it must be {allowed}.")


def wrong_in(table: str, field: str, value: Any, allowed: str) -> ConfigError:
    """Return the error for a field in the entry of one table."""
    return ConfigError(
        f"The context field tables has, for the table {table}, a {field} that is "
        f"{_shown(value)}; it must be {allowed}."
    )


def from_json(value: str) -> Any:
    """Parse a text as JSON; return the text itself if it is not JSON."""
    try:
        return json.loads(value)
    except ValueError:
        return value


def is_dollars(value: Any) -> bool:
    """Return whether a value is a valid cost limit, also if it is written as text."""
    amount = from_json(value) if isinstance(value, str) else value
    return is_number(amount) and LEAST_COST <= amount <= MOST_NUMBER


def as_json(value: Any) -> str:
    """Return a value as JSON. A text is JSON already."""
    return value if isinstance(value, str) else json.dumps(value)


def _shown(value: Any) -> str:
    return "missing" if value is None else json.dumps(value, ensure_ascii=False, default=str)
