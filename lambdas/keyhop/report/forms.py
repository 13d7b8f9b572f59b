"""What the text of a key is like: a type tag, a date, a number at its end. Pure.

Only such forms are kept of a key, never the key. A tag is a word before a delimiter, as ORDER in
ORDER#17, with two digits at most: more are a value. Whether it is a type, and no name that happens
to stand there, is seen from many keys.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.values import TypedValue, text_of

_TAG = re.compile(
    r"([^\W\d_](?:[^\W\d]|[.-]){0,31}?[0-9]{0,2})(?:::|[#|:/~$=])|([^\W\d_]{2,16})_(?=[^_])"
)
_YEAR, _MONTH, _DAY = r"(?P<year>19[7-9]\d|20\d\d)", r"(?P<month>{})", r"(?P<day>{})"
_TWO_DIGITS = _MONTH.format(r"0[1-9]|1[0-2]"), _DAY.format(r"0[1-9]|[12]\d|3[01]")
_MONTH, _DAY = _MONTH.format(r"0?[1-9]|1[0-2]"), _DAY.format(r"0?[1-9]|[12]\d|3[01]")
_DATES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_YEAR}(?:(?P<mark>[-/._]?){_TWO_DIGITS[0]}(?:(?P=mark){_TWO_DIGITS[1]}"
        r"(?:[T ]?(?:[01]\d|2[0-3])(?::?[0-5]\d)?(?:Z|[+-]\d\d:?\d\d)?)?)?)?",
        rf"{_YEAR}-?(?:W(?P<week>[0-5]\d)|Q(?P<quarter>[1-4]))",
        rf"{_DAY}(?P<mark>[-/.]){_MONTH}(?P=mark){_YEAR}",
        rf"{_MONTH}/{_DAY}/{_YEAR}",
        rf"{_YEAR}[年년] ?{_MONTH}[月월](?: ?{_DAY}[日일])?",
    )
)
"""Year first, weeks and quarters, day first, month first, in Chinese, Japanese or Korean."""
_UUID = re.compile(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
_NUMBER = re.compile(r"(?:^|[^\dA-Za-z.]|^[A-Za-z]+|[#|:/~$=_-][A-Za-z]+)(\d{1,18})$")
_NUMBER_FIRST = re.compile(r"(\d{1,18})[#|:/~$=_-]\D*$")
_NUMBERED = re.compile(r"(?:[^\W\d_]{1,16}[ ._-]?)?(\d+)")

KEPT_DIGITS = 6
"""Of a number in a key: enough for how dense numbers are, too few for a telephone's."""


def tag_of(text: str) -> str:
    """The word before the first delimiter; "" for none."""
    found = _TAG.match(text)
    return (found[1] or found[2] or "") if found else ""


def prefix_of(text: str) -> str:
    """Return the tag together with its delimiter, such as `ORDER#`.

    It is "" if there is no tag, and if another delimiter follows: ORDER_LINE_17 is no order.
    """
    found = _TAG.match(text)
    return found[0] if found and re.search(pattern_of(found[0]), text) else ""


def pattern_of(prefix: str) -> str:
    """Return a regular expression for the keys whose prefix (see `prefix_of`) this is."""
    delimiters = "#|:/~$=_" if prefix.endswith("_") else "#|:/~$="
    literal = re.sub(r"[.|$]", r"\\\g<0>", prefix)
    return f"^{literal}[^{delimiters}]*$"


def rest_of(text: str) -> str:
    """What follows the tag, or all of it."""
    found = _TAG.match(text)
    return text[found.end() :] if found else text


def dates_of(value: TypedValue) -> list[dict[str, int]]:
    """What date a key is, if it is nothing else after its tag: year, and month, day, week or
    quarter, as far as they are told. None where it is no date; several where month and day might
    be either.
    """
    if "B" in value:
        return []
    text = text_of(value)
    if "N" in value and len(text) not in (6, 8, 10):
        return []
    found = [pattern.fullmatch(rest_of(text)) for pattern in _DATES]
    return [
        {name: int(digits) for name, digits in one.groupdict().items() if name != "mark" and digits}
        for one in found
        if one
    ]


@dataclass(frozen=True, slots=True)
class KeyForm:
    """The form of a partition key, which does not contain the key itself.

    Attributes:
        tag: The type tag, such as `ORDER`; "" if there is none.
        dated: Whether the key is only a date, apart from its tag.
        number: The number at the end of the key, or at its beginning if that is the only one,
            rounded to KEPT_DIGITS; None if there is none.
        prefix: The tag together with its delimiter, such as `ORDER#`; "" if there is no tag, or
            if another delimiter follows.
    """

    tag: str = ""
    dated: bool = False
    number: float | None = None
    prefix: str = ""

    @classmethod
    def of(cls, value: TypedValue) -> "KeyForm":
        if "B" in value:
            return cls()
        content, dated = text_of(value), bool(dates_of(value))
        if "N" in value:
            is_whole = content.isdecimal() and len(content) <= 18
            return cls("", dated, rounded(content) if is_whole else None)
        found = None
        if not dated and not _UUID.fullmatch(rest_of(content)):
            found = _NUMBER.search(content) or _NUMBER_FIRST.match(content)
        number = rounded(found[1]) if found else None
        return cls(tag_of(content), dated, number, prefix_of(content))

    def to_json(self) -> dict[str, Any]:
        """What there is of it."""
        state: dict[str, Any] = {"tag": self.tag} if self.tag else {}
        if self.dated:
            state["dated"] = True
        if self.number is not None:
            state["number"] = self.number
        if self.prefix:
            state["prefix"] = self.prefix
        return state

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> "KeyForm":
        return cls(**state)


def rounded(digits: str) -> float:
    """To KEPT_DIGITS."""
    return float(f"{int(digits):.{KEPT_DIGITS - 1}e}")


def width_of(value: TypedValue) -> int:
    """Digits of a sort key that is a number as text, after its tag or a word, as v12; below 0 if it
    is padded with zeros, 0 if it is none.
    """
    if "S" not in value:
        return 0
    found = _NUMBERED.fullmatch(rest_of(value["S"]))
    if not found:
        return 0
    digits = found[1]
    return -len(digits) if int(digits[0]) == 0 and len(digits) > 1 else len(digits)
