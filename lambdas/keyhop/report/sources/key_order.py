"""Keys against time: their order, the number in them, whether they are today. Pure."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from keyhop.dynamodb.values import TypedValue, canonical
from keyhop.report.forms import dates_of

ZONES = (timedelta(hours=-12), timedelta(), timedelta(hours=14))
_NUMBER = re.compile(r"([0-9]{1,18})$")
_NO_NUMBER = re.compile(
    r"(^|\D)(19|20)\d\d([-/.](0[1-9]|1[0-2])([-/.]\d\d)?|(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01]))"
    r"([T ].*)?$"
)
"""A date: with separators, or of eight digits that are one. It counts days, and nobody's ids."""


def order_of(value: TypedValue) -> Any:
    """To compare sort keys as the service does: texts by their UTF-8 bytes."""
    type_, content = canonical(value)
    if type_ == "N":
        return Decimal(str(content))
    return content.encode() if isinstance(content, str) else content


def number_of(value: TypedValue) -> int | None:
    """The number that a key is, or ends with; a date is none."""
    ((type_, content),) = value.items()
    if type_ == "B" or _NO_NUMBER.search(content) or dates_of(value):
        return None
    found = _NUMBER.search(content)
    return int(found[1]) if found else None


def is_today(value: TypedValue, at: float) -> bool:
    """Whether a key, after a type tag, is a moment's date somewhere on earth: its year, month,
    week, quarter, day or hour.
    """
    now = datetime.fromtimestamp(at, UTC)
    return any(_is_of(date, now + zone) for date in dates_of(value) for zone in ZONES)


def _is_of(date: Mapping[str, int], moment: datetime) -> bool:
    week = moment.isocalendar()
    told = {
        "year": week.year if "week" in date else moment.year,
        "quarter": (moment.month + 2) // 3,
        "month": moment.month,
        "week": week.week,
        "day": moment.day,
    }
    return all(told[name] == number for name, number in date.items())
