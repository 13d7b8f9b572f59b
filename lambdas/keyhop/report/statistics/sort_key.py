"""Sort keys as numbers: the position of an item in its collection, and the key at a position.

A sort key of type S is read as tag, core, separator and tail: ORDER# 2026-11-22T10:00:00Z # a81f.
The core is a time, an integer, a ULID, a KSUID, a UUID of version 7 or another hexadecimal number;
the tail decides among equal cores. All keys of one form have cores of one shape, so that the order
of their numbers is the order in which the service keeps them. Other keys, as paths, have no number.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Literal

SortKey = str | int | Decimal

Kind = Literal["number", "time", "integer", "ulid", "ksuid", "uuid7", "hex"]

FINE = 1 << 48
"""The parts into which a tail, or a fraction, divides the step between two cores."""

TAIL_CHARACTERS = 12

NUMBER_DIGITS, NUMBER_PLACES = 38, 9
"""DynamoDB accepts this many digits in a number; this many places are fine enough for a start."""
_FLOOR = Context(NUMBER_DIGITS, ROUND_FLOOR)

UPPER = "A"
"""The end of the shape of hexadecimal numbers in capitals."""

_KINDS: tuple[tuple[Kind, str], ...] = (
    (
        "time",
        r"(?a:\d{4}-\d\d-\d\d(?:[T ]\d\d(?::?\d\d(?::?\d\d(?:[.,]\d{1,9})?)?)?)?"
        r"(?:Z|[+-]\d\d:?\d\d)?|\d{8}T\d{6}Z?)",
    ),
    ("uuid7", r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"),
    ("hex", r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    ("ulid", r"[0-7][0-9A-HJKMNP-TV-Z]{25}"),
    ("ksuid", r"[0-9A-Za-z]{27}"),
    ("integer", r"[0-9]{1,38}"),
    ("hex", r"[0-9a-f]{8,64}|[0-9A-F]{8,64}"),
)
_TAG = r"(?P<tag>(?:[^\W\d][\w.\-]{0,40}[#|:/~$=^!;>*%&+]){0,2}(?:[^\W\d_]{1,16}[_\-])?)"
_SHAPES = tuple(
    (
        kind,
        re.compile(
            rf"{_TAG}(?P<core>{core})(?P<separator>(?![0-9A-Za-z])[^0-9A-Za-z]*)(?P<tail>.*)",
            re.DOTALL,
        ),
    )
    for kind, core in _KINDS
)
_DIGITS: dict[Kind, str] = {
    "integer": "0123456789",
    "ulid": "0123456789ABCDEFGHJKMNPQRSTVWXYZ",
    "ksuid": "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    "hex": "0123456789abcdef",
    "uuid7": "0123456789abcdef",
}
_EPOCH = datetime(1, 1, 1)
_SECONDS_TO_1970 = 62_135_596_800
_FIRST_KSUID = 1_400_000_000
_TIMES = range(10**9, 4 * 10**9)
"""Seconds since 1970 that are probably times, from 2001 to 2096."""
_ZONE = re.compile(r"(?:Z|(?<=\d\d:\d\d)[+-]\d\d:?\d\d|(?<=\d)[+-]\d\d:\d\d)$")


@dataclass(frozen=True, slots=True)
class Parsed:
    """The parts of a key, and the shape of its core: a time has 9 for each digit."""

    kind: Kind
    tag: str
    core: str
    separator: str
    tail: str
    shape: str


@lru_cache(maxsize=4_096)
def parse(key: SortKey, kind: Kind | None = None) -> Parsed | None:
    """Return the parts of a key, as `kind` if given; None if no number can be read from it."""
    if not isinstance(key, str):
        return Parsed("number", "", str(key), "", "", "")
    for of_kind, pattern in _SHAPES:
        match = pattern.fullmatch(key) if kind in (None, of_kind) else None
        if match is None:
            continue
        tag, core, separator, tail = match.group("tag", "core", "separator", "tail")
        parsed = Parsed(of_kind, tag, core, separator, tail, _shape(of_kind, core))
        if of_kind != "time" or _since(core, parsed.shape) is not None:
            return parsed
    return None


def tag_of(key: SortKey) -> str | None:
    """Return the type tag with its separator, as ORDER#; None if the key cannot be parsed."""
    parsed = parse(key)
    return parsed.tag if parsed else None


def moment_of(key: SortKey) -> float | None:
    """Return the seconds since 1970 of the time in a sort key; None if it has none."""
    parsed = parse(key)
    if parsed is None:
        return None
    kind, core, moment = parsed.kind, parsed.core, -1.0
    if kind == "time":
        moment = (_since(core, parsed.shape) or 0) / 10**9 - _SECONDS_TO_1970
    elif kind in ("ulid", "uuid7"):
        length = 10 if kind == "ulid" else 12
        moment = _whole(_DIGITS[kind], _undashed(kind, core)[:length]) / 1000
    elif kind == "ksuid":
        moment = float((_whole(_DIGITS[kind], core) >> 128) + _FIRST_KSUID)
    elif kind in ("number", "integer") and core.isdecimal() and len(core) in (10, 13, 16, 19):
        moment = int(core) / 10 ** (len(core) - 10)
    return moment if int(moment) in _TIMES else None


@dataclass(frozen=True, slots=True)
class Form:
    """The form of keys with one tag.

    Attributes:
        alphabet: The characters of the tails that were read, in order.
    """

    kind: Kind
    tag: str
    shape: str
    separator: str
    alphabet: str

    def number(self, key: SortKey) -> int | None:
        """Return the number of a key; None for a key of another form.

        It grows strictly with the keys, except for tails that differ after 12 characters, or in
        characters outside the alphabet.
        """
        if self.kind == "number":
            return None if isinstance(key, str) else int(_FLOOR.multiply(Decimal(key), FINE))
        parsed = parse(key, self.kind)
        if parsed is None or parsed.tag != self.tag:
            return None
        if parsed.shape.rstrip(UPPER) != self.shape.rstrip(UPPER):
            return None
        core, step = _core_number(self.kind, parsed.core, self.shape)
        return core * FINE + step * self._fraction(parsed.tail)

    def key(self, number: int) -> SortKey:
        """Return a key to start a Query at, with this number or the next lower possible one."""
        if self.kind == "number":
            exact = _FLOOR.divide(Decimal(number), FINE)
            if exact.adjusted() < NUMBER_DIGITS - NUMBER_PLACES:
                exact = exact.quantize(Decimal(1).scaleb(-NUMBER_PLACES), context=_FLOOR)
            return exact.normalize(_FLOOR)
        number = max(0, number)
        core, remainder, step = _core_text(self.kind, number // FINE, self.shape)
        fraction = (remainder * FINE + number % FINE) // step
        return self.tag + core + self.separator + self._tail(fraction)

    def _fraction(self, tail: str) -> int:
        """Return the position of a tail among FINE parts; 0 without a tail."""
        base, fraction, part = len(self.alphabet) + 1, 0, FINE
        for character in tail[:TAIL_CHARACTERS]:
            at = bisect_right(self.alphabet, character)
            fraction += part * at // base
            part //= base
        return min(FINE - 1, fraction)

    def _tail(self, fraction: int) -> str:
        base, part, tail = len(self.alphabet) + 1, FINE, ""
        while self.alphabet and part >= base and len(tail) < TAIL_CHARACTERS:
            at = min(base - 1, fraction * base // part)
            if at == 0:
                break
            tail += self.alphabet[at - 1]
            fraction -= part * at // base
            part //= base
        return tail


def form_of(keys: Sequence[SortKey]) -> Form | None:
    """Return the form that all of these keys (of one tag, in order) have.

    The result is None if there is none, or if their numbers are in another order.
    """
    kinds: tuple[Kind, ...] = ("number", *dict(_KINDS))
    return next((form for kind in kinds if (form := _form_as(kind, keys)) is not None), None)


def _form_as(kind: Kind, keys: Sequence[SortKey]) -> Form | None:
    parts = [part for key in keys if (part := parse(key, kind)) and part.kind == kind]
    if not parts or len(parts) < len(keys):
        return None
    longest = max(parts, key=lambda part: part.shape)
    tails = {character for part in parts for character in part.tail[:TAIL_CHARACTERS]}
    form = Form(kind, longest.tag, longest.shape, longest.separator, "".join(sorted(tails)))
    numbers = [number for key in keys if (number := form.number(key)) is not None]
    if len(numbers) < len(keys) or any(a >= b for a, b in pairwise(numbers)):
        return None
    return form


def _shape(kind: Kind, core: str) -> str:
    if kind == "time":
        zone = _zone_of(core)
        return re.sub(r"\d", "9", core[: len(core) - len(zone)]) + zone
    dashes = "-" if "-" in core else ""
    return f"{len(core)}{dashes}{UPPER if kind == 'hex' and core != core.lower() else ''}"


def _core_number(kind: Kind, core: str, shape: str) -> tuple[int, int]:
    """Return the core as a number, and the step between two cores."""
    if kind == "time":
        return _since(core, shape) or 0, _step(shape)
    number = _whole(_DIGITS[kind], _undashed(kind, core))
    return (_without_version(number) if kind == "uuid7" else number), 1


def _core_text(kind: Kind, number: int, shape: str) -> tuple[str, int, int]:
    """Return the core, the remainder of the number, and the step between two cores."""
    if kind == "time":
        return _time_text(number, shape)
    digits, width = _DIGITS[kind], int(re.match(r"\d+", shape)[0])  # type: ignore[index]
    if kind == "uuid7":
        return _dashed(_written(digits, _with_version(number), 32)), 0, 1
    if "-" in shape:
        return _dashed(_written(digits, number, 32)), 0, 1
    text = _written(digits, number, width)
    return (text.upper() if shape.endswith(UPPER) else text), 0, 1


def _undashed(kind: Kind, core: str) -> str:
    text = core.replace("-", "") if "-" in core else core
    return text.lower() if kind in ("hex", "uuid7") else text


def _dashed(text: str) -> str:
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _without_version(number: int) -> int:
    """Return the 122 bits of a UUID that vary, without version (from bit 76) and variant (62)."""
    return (number >> 80) << 74 | (number >> 64 & 0xFFF) << 62 | number & (1 << 62) - 1


def _with_version(number: int) -> int:
    number = min(number, (1 << 122) - 1)
    time, middle, end = number >> 74, number >> 62 & 0xFFF, number & (1 << 62) - 1
    return time << 80 | 7 << 76 | middle << 64 | 2 << 62 | end


def _whole(digits: str, text: str) -> int:
    number = 0
    for character in text:
        number = number * len(digits) + digits.index(character)
    return number


def _written(digits: str, number: int, width: int) -> str:
    number = min(number, len(digits) ** width - 1)
    text = ""
    for _ in range(width):
        number, at = divmod(number, len(digits))
        text = digits[at] + text
    return text


def _zone_of(time: str) -> str:
    match = _ZONE.search(time)
    return match[0] if match else ""


@lru_cache(maxsize=4_096)
def _since(core: str, shape: str) -> int | None:
    """Return the nanoseconds since the year 1, in local time; None without a date."""
    zone = _zone_of(shape)
    digits = re.sub(r"\D", "", core[: len(core) - len(zone)])
    fields = (digits[:4], digits[4:6], digits[6:8], digits[8:10], digits[10:12], digits[12:14])
    year, month, day, hour, minute, second = (int(field or 0) for field in fields)
    try:
        at = datetime(year, month, day, hour, minute, second)
    except ValueError:
        return None
    since = at - _EPOCH
    seconds = since.days * 86_400 + since.seconds
    return seconds * 10**9 + int(digits[14:].ljust(9, "0"))


@lru_cache(maxsize=64)
def _step(shape: str) -> int:
    """Return the nanoseconds of the last digit."""
    bare = shape[: len(shape) - len(_zone_of(shape))]
    digits = bare.count("9")
    steps = {8: 86_400 * 10**9, 10: 3_600 * 10**9, 12: 60 * 10**9}
    return steps.get(digits) or int(10 ** (23 - digits))


def _time_text(number: int, shape: str) -> tuple[str, int, int]:
    step, zone = _step(shape), _zone_of(shape)
    remainder = number % step
    seconds, fraction = divmod(number - remainder, 10**9)
    try:
        at = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        at = datetime.max
    text = f"{at:%Y%m%d%H%M%S}".rjust(14, "0") + f"{fraction:09d}"
    digits = iter(text)
    bare = shape[: len(shape) - len(zone)]
    core = "".join(next(digits) if character == "9" else character for character in bare)
    return core + zone, remainder, step
