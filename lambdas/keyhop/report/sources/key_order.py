"""Keys against time: their order, the number in them, whether they are today. Pure."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from keyhop.dynamodb.values import TypedValue, canonical

ZONES = (timedelta(hours=-12), timedelta(), timedelta(hours=14))
_NUMBER = re.compile(r"([0-9]{1,18})$")
_DELIMITER = re.compile(r"[#|:~$=]")
_DATE = re.compile(r"\d{4}[-/.]?\d\d([-/.]?\d\d)?")
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
    if type_ == "B" or _NO_NUMBER.search(content):
        return None
    found = _NUMBER.search(content)
    return int(found[1]) if found else None


def is_today(value: TypedValue, at: float) -> bool:
    """Whether a key, after a type tag, is a moment's date, somewhere on earth, or its month."""
    ((type_, content),) = value.items()
    if type_ == "B":
        return False
    rest = _DELIMITER.split(content)[-1]
    if not _DATE.fullmatch(rest):
        return False
    digits = re.sub(r"\D", "", rest)
    moment = datetime.fromtimestamp(at, UTC)
    days = {(moment + zone).strftime("%Y%m%d") for zone in ZONES}
    return digits in days or digits in {day[:6] for day in days}
