"""What the text of a key is like: a type tag, a date, a number at its end. Pure.

Only such forms are kept of a key, never the key. A tag is a word before a delimiter, as ORDER in
ORDER#17, with two digits at most: more are a value. Whether it is a type, and no name that happens
to stand there, is seen from many keys.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.values import TypedValue, canonical

_TAG = re.compile(
    r"([A-Za-z][A-Za-z_.-]{0,31}?[0-9]{0,2})(?:::|[#|:/~$=])|([A-Za-z]{2,16})_(?=[^_])"
)
_DATE = re.compile(
    r"(19[7-9]\d|20\d\d)"
    r"(?:([-/.]?)(0[1-9]|1[0-2])(?:\2(0[1-9]|[12]\d|3[01])(?:[T ]?([01]\d|2[0-3])(:?[0-5]\d)?Z?)?)?"
    r"|-?W[0-5]\d|-?Q[1-4])"
)
_YEAR = re.compile(r"19[7-9]\d|20\d\d")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
_NUMBER = re.compile(r"(?:^|[^0-9A-Za-z.]|^[A-Za-z]+|[#|:/~$=_-][A-Za-z]+)([0-9]{1,18})$")
_DIGITS = re.compile(r"[0-9]+")
_NUMBERED = re.compile(r"(?:[A-Za-z]{1,16}[ ._-]?)?([0-9]+)")

KEPT_DIGITS = 6
"""Of a number in a key: enough for how dense numbers are, too few for a telephone's."""


def tag_of(text: str) -> str:
    """The word before the first delimiter; "" for none."""
    found = _TAG.match(text)
    return (found[1] or found[2] or "") if found else ""


def rest_of(text: str) -> str:
    """What follows the tag, or all of it."""
    found = _TAG.match(text)
    return text[found.end() :] if found else text


@dataclass(frozen=True, slots=True)
class KeyForm:
    """tag: "" for none. dated: nothing but a date, after its tag. number: at the end, rounded to
    KEPT_DIGITS; None for none.
    """

    tag: str = ""
    dated: bool = False
    number: float | None = None

    @classmethod
    def of(cls, value: TypedValue) -> "KeyForm":
        type_, content = canonical(value)
        if not isinstance(content, str):
            return cls()
        if type_ == "N":
            is_whole = bool(_DIGITS.fullmatch(content)) and len(content) <= 18
            dated = len(content) in (6, 8, 10) and bool(_DATE.fullmatch(content))
            return cls("", dated, rounded(content) if is_whole else None)
        tag, rest = tag_of(content), rest_of(content)
        dated = bool(_DATE.fullmatch(rest) or _YEAR.fullmatch(rest))
        found = None if dated or _UUID.fullmatch(rest) else _NUMBER.search(content)
        return cls(tag, dated, rounded(found[1]) if found else None)

    def to_json(self) -> dict[str, Any]:
        """What there is of it."""
        state: dict[str, Any] = {"tag": self.tag} if self.tag else {}
        if self.dated:
            state["dated"] = True
        if self.number is not None:
            state["number"] = self.number
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
    return -len(digits) if digits.startswith("0") and len(digits) > 1 else len(digits)
