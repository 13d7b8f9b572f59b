"""The CDK context, field by field: each value is checked, and a wrong one is told in one sentence.

The context comes from cdk.json and from `-c name=value`. The command line knows only strings, so a
list may be written with commas, and a number or a truth value as text. Nothing imports the CDK.
"""

import difflib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

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

_NAMES_OF_THE_CDK = ("@", "cdk-", "acknowledged-issue-numbers")


class ConfigError(Exception):
    """A context field that is not as it must be; the message is one sentence for the user."""


class Fields:
    """The context, one field at a time; remembers which have been asked for.

    Each method raises ConfigError for a value that is not as it must be.
    """

    def __init__(self, context: Mapping[str, Any]) -> None:
        self._context = context
        self._known: list[str] = []

    def get(self, name: str, default: Any = None) -> Any:
        """The value as it was given; an empty text is none."""
        if name not in self._known:
            self._known.append(name)
        value = self._context.get(name)
        # `-c alarmEmail=` takes away what cdk.json says.
        return default if value is None or value == "" else value

    def text(self, name: str, default: str, pattern: re.Pattern[str], allowed: str) -> str:
        """A text of the pattern, which `allowed` says in words."""
        value = self.get(name, default)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise wrong(name, value, allowed)
        return value

    def choice(self, name: str, default: str, among: Mapping[str, str] | tuple[str, ...]) -> str:
        """One of several texts."""
        value = self.get(name, default)
        if not isinstance(value, str) or value not in among:
            raise wrong(name, value, f"one of {', '.join(among)}")
        return value

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """A whole number within bounds."""
        value = self.get(name, default)
        number = whole(value)
        if number is None or not least <= number <= most:
            raise wrong(name, value, f"a whole number from {least} to {most}")
        return number

    def log_retention(self, name: str, default: int) -> int:
        """Days for which CloudWatch can keep a log."""
        value = self.get(name, default)
        number = whole(value)
        if number not in LOG_RETENTION_DAYS:
            days = ", ".join(map(str, LOG_RETENTION_DAYS))
            raise wrong(name, value, f"one of the days that CloudWatch has: {days}")
        return number

    def truth(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self.get(name, default)
        if isinstance(value, bool):
            return value
        if value in ("true", "false"):
            return bool(value == "true")
        raise wrong(name, value, "true or false")

    def loopback(self, name: str) -> str:
        """An address of this machine."""
        value = self.get(name)
        found = _LOOPBACK.fullmatch(value) if isinstance(value, str) else None
        if found is None or not 0 < int(found["port"]) < 65536:
            raise wrong(
                name,
                value,
                "an address of this machine, as http://127.0.0.1:8000 (it is for the laptop only)",
            )
        return str(value).rstrip("/")

    def schedule(self, name: str, default: str) -> str | None:
        """A schedule as EventBridge writes it; None: never."""
        value = self.get(name, default)
        if value == NEVER:
            return None
        if isinstance(value, str) and (_RATE.fullmatch(value) or _CRON.fullmatch(value)):
            return value
        raise wrong(
            name,
            value,
            "a schedule of EventBridge, as rate(7 days), rate(1 hour) or cron(0 3 ? * SUN *), or "
            f"{NEVER}",
        )

    def optional(self, name: str, read: Callable[[str], T]) -> T | None:
        """What `read` makes of a field that is there."""
        return None if self.get(name) is None else read(name)

    def refuse_the_rest(self) -> None:
        """Refuse fields that nobody has asked for."""
        for name in self._context:
            if name in self._known or ":" in name or name.startswith(_NAMES_OF_THE_CDK):
                continue
            raise ConfigError(f"The context field {name} is not known; {hint(name, self._known)}")


def wrong(name: str, value: Any, allowed: str) -> ConfigError:
    """The sentence for a field."""
    return ConfigError(f"The context field {name} is {_told(value)}; it must be {allowed}.")


def wrong_in(name: str, table: str, field: str, value: Any, allowed: str) -> ConfigError:
    """The sentence for a field of one table's entry."""
    return ConfigError(
        f"The context field {name} has, for the table {table}, a {field} that is "
        f"{_told(value)}; it must be {allowed}."
    )


def hint(name: str, known: Sequence[str]) -> str:
    """What may have been meant by a name that is not known."""
    close = difflib.get_close_matches(name, known, 1)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}."


def whole(value: Any) -> int | None:
    """A whole number, also if it is written as text; None: it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        return int(value)
    return value if isinstance(value, int) else None


def from_json(text: str) -> Any:
    """What the text is as JSON; the text itself, if it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _told(value: Any) -> str:
    return "missing" if value is None else json.dumps(value, ensure_ascii=False, default=str)
