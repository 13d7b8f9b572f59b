"""What values of the context must be, and the sentences for those that are not.

The settings come from keyhop.json and from `-c name=value`. The command line knows only strings, so
a number or a truth value may be written as text. Nothing here imports the CDK.
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
_RATE = re.compile(r"rate\((1 (minute|hour|day)|([2-9]|[1-9][0-9]{1,5}) (minutes|hours|days))\)")
_CRON = re.compile(
    r"cron\([0-9*,/-]+ [0-9*,/-]+ "
    r"(\? [0-9A-Z*,/-]+ [0-9A-Z*,/#-]+|[0-9LW*,/-]+ [0-9A-Z*,/-]+ \?) [0-9*,/-]+\)"
)
"""Minutes, hours, day of the month, month, day of the week, year; one of the days must be `?`."""


class ConfigError(Exception):
    """A context field that is not as it must be; the message is one sentence for the user."""


def whole(low: int, high: int) -> Must:
    """A whole number within bounds, also if it is written as text."""
    return Must(
        lambda value: low <= _whole(value) <= high, f"a whole number from {low} to {high}", _whole
    )


def choice(*choices: str) -> Must:
    """One of several texts."""
    return Must(one_of(*choices), f"one of {', '.join(choices)}")


def _whole(value: Any) -> int:
    """A number that is less than any that is allowed, if it is no whole one."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return -1
    return int(value) if float(value).is_integer() else -1


def _is_loopback(value: Any) -> bool:
    found = _LOOPBACK.fullmatch(value) if isinstance(value, str) else None
    return found is not None and 0 < int(found["port"]) < 65536


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
        text(_RATE, _CRON, re.compile(NEVER)),
        "a schedule of EventBridge, as rate(7 days), rate(1 hour) or cron(0 3 ? * SUN *), or "
        f"{NEVER}",
        lambda value: None if value == NEVER else value,
    ),
]


def shape_of(
    shape: type[T],
    given: Mapping[str, Any],
    known: tuple[str, ...],
    unknown: str,
    wrong: Callable[[str, Any, str], ConfigError],
) -> T:
    """The shape in an object; raises ConfigError for what is wrong first.

    known: the names of its fields. unknown: the beginning of the sentence for another one.
    """
    try:
        return structured(shape, given)
    except Unreadable as error:
        found = error
    for name in found.unknown:
        meant = hint(name, known) or f"known are {', '.join(known)}."
        raise ConfigError(f"{unknown.format(name)} is not known; {meant}")
    name, refused = next(iter(found.wrong.items()))
    raise wrong(name, refused.value, refused.must.be)


def wrong(name: str, value: Any, allowed: str) -> ConfigError:
    """The sentence for a field."""
    return ConfigError(f"The context field {name} is {_shown(value)}; it must be {allowed}.")


def wrong_in(table: str, field: str, value: Any, allowed: str) -> ConfigError:
    """The sentence for a field of one table's entry."""
    return ConfigError(
        f"The context field tables has, for the table {table}, a {field} that is "
        f"{_shown(value)}; it must be {allowed}."
    )


def from_json(value: str) -> Any:
    """What the text is as JSON; the text itself, if it is none."""
    try:
        return json.loads(value)
    except ValueError:
        return value


def is_dollars(value: Any) -> bool:
    """A sum that something may cost, also if it is written as text."""
    found = from_json(value) if isinstance(value, str) else value
    return is_number(found) and LEAST_COST <= found <= MOST_NUMBER


def as_json(value: Any) -> str:
    """A value as JSON, which a text is already."""
    return value if isinstance(value, str) else json.dumps(value)


def _shown(value: Any) -> str:
    return "missing" if value is None else json.dumps(value, ensure_ascii=False, default=str)
