"""The form of a key's text (tag, date, number at its end), and how reports write keys. Pure.

Only such forms of a key are kept, never the key. A tag is a word before a delimiter, as ORDER in
ORDER#17. It has at most two digits, as more digits are a value. Many keys together show whether it
is a type, or just a name at this place.

A report writes keys as digests by default. A digest is keyed by the table's identity. So a key has
the same digest in each report of the table, which makes reports comparable, and another digest in
another table. A reader who knows the identity and guesses a key can see whether it exists. Digests
of short keys cannot hide that.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal

from keyhop.dynamodb.values import Key, TypedValue, distinct_bytes, plain, text_of

_DELIMITERS = "#|:/~$="
_TAG = re.compile(
    rf"(?:arn:aws:|urn:)?[$@#_/]*([^\W\d_](?:[^\W\d]|[.-]){{0,31}}?[0-9]{{0,2}})(?:::|[{_DELIMITERS}^!;>*%&+])"
    r"|([^\W\d_]{2,16})_{1,2}(?=[^_])|([^\W\d_]{2,16})[-. ](?=[^#|:/~$=_.@ -]*\d)(?!.*@)"
)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_YEAR, _MONTH, _DAY = r"(?P<year>19[7-9]\d|20\d\d)", r"(?P<month>{})", r"(?P<day>{})"
_TWO_DIGITS = _MONTH.format(r"0[1-9]|1[0-2]"), _DAY.format(r"0[1-9]|[12]\d|3[01]")
_NAMED = rf"(?P<named>{'|'.join(_MONTHS)})[a-z]{{0,6}}"
_PART = r"(?:[Ww](?P<week>[0-5]\d)|[Qq](?P<quarter>[1-4])|[Hh](?P<half>[12]))"
_MONTH, _DAY = _MONTH.format(r"0?[1-9]|1[0-2]"), _DAY.format(r"0?[1-9]|[12]\d|3[01]")
_MARK = r"(?P<mark>[-/._#:| ]?)"
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE | re.ASCII)
    for pattern in (
        rf"{_YEAR}(?:{_MARK}{_TWO_DIGITS[0]}(?:(?P=mark){_TWO_DIGITS[1]}"
        r"(?:[T ]?(?:[01]\d|2[0-3])(?::?[0-5]\d(?::?00(?:\.0+)?)?)?(?:Z|[+-]\d\d:?\d\d)?)?)?)?",
        rf"(?:FY)?{_YEAR}[-#]?{_PART}",
        rf"{_PART}[-#/ ]?(?:FY)?{_YEAR}",
        rf"{_DAY}(?P<mark>[-/.]){_MONTH}(?P=mark){_YEAR}",
        rf"{_MONTH}/{_DAY}/{_YEAR}",
        rf"(?:{_DAY}{_MARK})?{_NAMED}[-/._#:| ]?{_YEAR}",
        rf"{_YEAR}{_MARK}{_NAMED}(?:(?P=mark){_DAY})?",
        rf"y(?:ear)?={_YEAR}/m(?:onth)?={_MONTH}(?:/d(?:ay)?={_DAY})?(?:/h(?:our)?=\d\d?)?",
        rf"{_YEAR}[年년] ?{_MONTH}[月월](?: ?{_DAY}[日일])?",
    )
)
"""Year first; weeks, quarters and halves; day first, month first, names of months, folders
of a partitioned data set, and Chinese, Japanese or Korean."""
_LABEL = re.compile(
    r"^[^\W\d_]*(?:date|day|week|month|quarter|year|hour|bucket|period)[_=#:|-]", re.IGNORECASE
)
"""A word that only names the date behind it, as in outbox#date_2026-11-28."""
_HAS_YEAR = re.compile(r"19[7-9]\d|20\d\d")
_CLOCK = re.compile(r"(?<!\d)(?:[01]\d|2[0-3]):[0-5]\d(?!\d)[:.,\d]*")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
_NUMBER = re.compile(r"(?:^|[^\dA-Za-z.]|^[A-Za-z]+|[#|:/~$=_-][A-Za-z]+)(\d{1,18})$")
_OF_A_YEAR = re.compile(r"(?:^|\D)((?:19|20)\d\d)[#|:/~$=_.-]\d{4,18}$")
"""A number that starts again each year. A shorter one may be a month, a week or a day."""
_NUMBER_FIRST = re.compile(r"(\d{1,18})[#|:/~$=_-]\D*$")
_MARKS = re.compile(r"([#|:/~$=_ .,^!;>*%&+@-]+)")
_NUMBERED = re.compile(r"([^\W\d_]{0,16})(\d*)")
_WORD = re.compile(r"[^\W\d_](?:[^\W\d]|-){1,31}")
MOST_PLACES = 4
"""The maximum number of numbers in a key whose widths are kept."""

HOUR = 3600
DAY = 24 * HOUR
_BUCKETS = {"minute": 60, "hour": HOUR, "day": DAY, "date": DAY, "week": 7 * DAY}
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""The words of a name in snake case, kebab case or camel case."""
OLDEST_BUCKET = 3_650 * DAY
"""Numbers of hours or days since 1970 are times if they are at most ten years old."""
MOST_BUCKET_DIGITS = 12
EPOCHS = range(10**9, 4 * 10**9)
"""Numbers of seconds that are probably times, from 2001 to 2096."""

KEPT_DIGITS = 6
"""The digits of a number that are kept: enough for its density, too few for a telephone number."""


def tag_of(text: str) -> str:
    """Return the word before the first delimiter; "" if there is none, or if the text is a date.

    A hyphen, a dot or a blank is a delimiter only before a part with digits, as in USER-17: it also
    joins words.
    """
    match = _tag_in(text)
    return (match[1] or match[2] or match[3] or "") if match else ""


def _tag_in(text: str) -> re.Match[str] | None:
    match = _TAG.match(text)
    is_other = match is not None and (_UUID.fullmatch(text) or _matches(text))
    return None if is_other else match


def kind_in(text: str) -> str:
    """Return the tag of a sort key; a key that is only a word, such as PROFILE, is a tag."""
    return text if _WORD.fullmatch(text) else tag_of(text)


def prefix_of(text: str) -> str:
    """Return the tag together with its delimiter, such as `ORDER#`.

    The result is "" without a tag, if another delimiter follows, as ORDER_LINE_17 is not an order,
    and after an unusual delimiter, as a hyphen.
    """
    match = _tag_in(text)
    if match is None or match[0][-1] not in f"{_DELIMITERS}_":
        return ""
    return match[0] if re.search(pattern_of(match[0]), text) else ""


def pattern_of(prefix: str) -> str:
    """Return a regular expression for the keys that have a prefix (see `prefix_of`)."""
    delimiters = f"{_DELIMITERS}_" if prefix.endswith("_") else _DELIMITERS
    literal = re.sub(r"[.|$]", r"\\\g<0>", prefix)
    return f"^{literal}[^{delimiters}]*$"


def rest_of(text: str) -> str:
    """Return the text after the tag, or the whole text without one."""
    match = _tag_in(text)
    return text[match.end() :] if match else text


def dates_of(value: TypedValue) -> list[dict[str, int]]:
    """Return the dates that a key can be, if it has nothing else after its tag.

    Each has the year, and the month, day, week or quarter if the key contains them. There are
    several where month and day are ambiguous, and none if the key is not a date.
    """
    if "B" in value:
        return []
    text = text_of(value)
    if "N" in value and len(text) not in (6, 8, 10, 12):
        return []
    rest = rest_of(text)
    if "S" in value and is_full_hour(rest):
        day = datetime.fromtimestamp(int(rest[:10]), UTC)
        return [{"year": day.year, "month": day.month, "day": day.day}]
    return _matches(rest) or _matches(_LABEL.sub("", rest))


def _matches(text: str) -> list[dict[str, int]]:
    """Return the dates that a whole text can be."""
    if not _HAS_YEAR.search(text):
        return []
    return [
        {
            name.replace("named", "month"): _number_of(digits)
            for name, digits in match.groupdict().items()
            if name not in ("mark", "half") and digits
        }
        for pattern in _DATES
        if (match := pattern.fullmatch(text))
    ]


def _number_of(text: str) -> int:
    """Return digits as a number, or the number of a month."""
    return int(text) if text.isdecimal() else 1 + _MONTHS.index(text.lower())


def is_bucket(name: str, value: TypedValue, now: float) -> bool:
    """Return whether a key is the number of hours, days or the like since 1970.

    The tag of the key or the name of its attribute has the unit, as hourBucket or DAY#20414.
    """
    if "B" in value:
        return False
    text = text_of(value)
    number = rest_of(text)
    if not number.isdecimal() or len(number) > MOST_BUCKET_DIGITS:
        return False
    words = {word.lower().removesuffix("s") for word in _WORDS.findall(tag_of(text) or name)}
    return any(
        unit in words and -seconds <= now - int(number) * seconds <= OLDEST_BUCKET
        for unit, seconds in _BUCKETS.items()
    )


def is_ahead(value: TypedValue, now: float) -> bool:
    """Return whether every date that a key can be begins more than a day after `now`."""
    latest = datetime.fromtimestamp(now + 24 * HOUR, UTC)
    text = text_of(value)
    if "N" in value and is_full_hour(text):
        return int(text[:10]) > latest.timestamp()
    dates = dates_of(value)
    return bool(dates) and all(
        _first_day(date) > (latest.year, latest.month, latest.day) for date in dates
    )


def _first_day(date: Mapping[str, int]) -> tuple[int, int, int]:
    """Return the first day of a date, which may lack the day or have a week or a quarter."""
    month = date.get("month") or 3 * date.get("quarter", 1) - 2
    if week := date.get("week", 0):
        day = datetime.fromordinal(datetime(date["year"], 1, 1).toordinal() + 7 * (week - 1))
        return day.year, day.month, day.day
    return date["year"], month, date.get("day", 1)


@dataclass(frozen=True, slots=True)
class KeyForm:
    """The form of a partition key, which does not contain the key itself.

    Attributes:
        tag: The type tag, such as `ORDER`; "" if there is none.
        dated: Whether the key is only a date, apart from its tag.
        number: The number at the end of the key, or at its beginning if that is the only one,
            rounded to KEPT_DIGITS; None if there is none.
        year: The year before that number, if it starts again each year, as in ORD-2026-000123.
        prefix: The tag together with its delimiter, such as `ORDER#`; "" if there is no tag, or
            if another delimiter follows.
    """

    tag: str = ""
    dated: bool = False
    number: float | None = None
    prefix: str = ""
    year: int = 0

    @classmethod
    def of(cls, value: TypedValue) -> "KeyForm":
        if "B" in value:
            return cls()
        content, dated = text_of(value), bool(dates_of(value))
        if "N" in value:
            is_whole = content.isdecimal() and len(content) <= 18
            return cls("", dated or is_full_hour(content), rounded(content) if is_whole else None)
        match = None
        if not dated and not _UUID.fullmatch(rest_of(content)):
            match = _NUMBER.search(content) or _NUMBER_FIRST.match(content)
        number = rounded(match[1]) if match else None
        year = _OF_A_YEAR.search(content) if match else None
        return cls(tag_of(content), dated, number, prefix_of(content), int(year[1]) if year else 0)


def rounded(digits: str) -> float:
    """Round a number to KEPT_DIGITS."""
    return float(f"{int(digits):.{KEPT_DIGITS - 1}e}")


def is_full_hour(text: str) -> bool:
    """Return whether a number is an hour or a day, in seconds or milliseconds since 1970."""
    if not text.isdecimal() or len(text) not in (10, 13):
        return False
    seconds, rest = divmod(int(text), 1 if len(text) == 10 else 1000)
    return not rest and seconds in EPOCHS and seconds % HOUR == 0


def widths_of(text: str) -> list[tuple[str, int]]:
    """Return the numbers that a text consists of, as place and number of digits.

    The place is the text before the number, with a 9 for each earlier number. A number that is
    padded with zeros has negative digits. The numbers end with the first part between two marks
    that is neither a word nor a number, such as an id, or after a time of day, as what follows
    orders items of one moment only. The places of a decimal do not count.
    """
    if (clock := _CLOCK.search(text)) is not None:
        text = text[: clock.end()]
    parts = _MARKS.split(text)
    place, widths = "", []
    for at in range(0, len(parts), 2):
        match = _NUMBERED.fullmatch(parts[at])
        if not match or _UUID.fullmatch(parts[at]):
            break
        word, digits = match.groups()
        if digits and not (_is_fraction(parts, at) and not word):
            padded = len(digits) > 1 and int(digits[0]) == 0
            widths.append((place + word, -len(digits) if padded else len(digits)))
        place += word + ("9" if digits else "") + "".join(parts[at + 1 : at + 2])
    return widths[:MOST_PLACES]


def _is_fraction(parts: list[str], at: int) -> bool:
    """Return whether a part has the places of a decimal, which two dots, as in 1.4.12, are not."""
    if at == 0 or parts[at - 1] != "." or not parts[at - 2].isdecimal():
        return False
    return "." not in (parts[at - 3 : at - 2] if at > 2 else []) + parts[at + 1 : at + 2]


ShowKeys = Literal["digest", "prefix", "full"]
SHOW_KEYS: tuple[ShowKeys, ...] = ("digest", "prefix", "full")

DIGEST_BYTES = 6
"""There are 2 ** 48 digests, so of a million keys hardly two share one."""

PREFIX = 4
"""The characters of a key without a type tag that a prefix shows."""


@lru_cache(maxsize=4_096)
def _digest(identity: str, values: bytes) -> str:
    secret = hashlib.sha256(identity.encode()).digest()
    return hashlib.blake2b(values, digest_size=DIGEST_BYTES, key=secret).hexdigest()


@dataclass(frozen=True, slots=True)
class Shower:
    """Writes the keys of one table, and of its indexes.

    Attributes:
        identity: See Table.identity.
        how: The form of the keys.
    """

    identity: str
    how: ShowKeys = "digest"

    def digest(self, key: Key) -> str:
        """Return a digest of the values in the order of their names; equal numbers are equal."""
        return _digest(self.identity, b"".join(distinct_bytes(key[name]) for name in sorted(key)))

    def shown(self, key: Key) -> str:
        """Return a key in the form that the report may show."""
        if self.how == "digest":
            return self.digest(key)
        if self.how == "full":
            return " ".join(str(plain(key[name])) for name in sorted(key))
        return f"{self._prefix(key)}…{self.digest(key)}"

    def _prefix(self, key: Key) -> str:
        value = key[min(key)]
        text = bytes(value["B"]).hex() if "B" in value else text_of(value)
        tag = tag_of(text) if "S" in value else ""
        return text[: len(tag) + 1] if tag else text[:PREFIX]
