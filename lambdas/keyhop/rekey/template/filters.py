"""The filters of a field: their results, their types, and their inverses. Pure.

A value that a filter cannot handle raises Unmappable, with a text that continues "it ...".
"""

import hashlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from operator import attrgetter

from keyhop.checks import hint
from keyhop.dynamodb.values import KeyType, TypedValue, canonical, distinct_bytes, is_number
from keyhop.rekey.template.looks import ANY, DIGITS, Run, literal
from keyhop.rekey.transform import Unmappable

INTEGER = re.compile(r"0|-?[1-9][0-9]*")
NUMBER_RUNS = (Run(frozenset("-"), 0, 1), Run(DIGITS, 1, None))
_HEX = frozenset("0123456789abcdef")
_CODES: dict[str, tuple[int, Callable[[datetime], int]]] = {
    "Y": (4, attrgetter("year")),
    "m": (2, attrgetter("month")),
    "d": (2, attrgetter("day")),
    "H": (2, attrgetter("hour")),
    "M": (2, attrgetter("minute")),
    "S": (2, attrgetter("second")),
    "j": (3, lambda moment: moment.timetuple().tm_yday),
    "G": (4, lambda moment: moment.isocalendar().year),
    "V": (2, lambda moment: moment.isocalendar().week),
    "u": (1, lambda moment: moment.isoweekday()),
}
"""The codes of strftime with a fixed number of digits: how many, and from which part of the date.
strftime itself takes three times as long, and its years before 1000 differ between systems.
"""
_HASHES = {"md5": 32, "sha256": 64}
MOST_WIDTH = 2048

Undo = Callable[[TypedValue, KeyType], TypedValue]
"""Return the original value, of this type."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter: the types that it takes and gives, its text's form, and its inverse, if any."""

    takes: str
    gives: KeyType
    apply: Callable[[TypedValue], TypedValue]
    looks: tuple[Run, ...] = (ANY,)
    undo: Undo | None = None


def filter_of(name: str, argument: str) -> Filter:
    """Return the filter with this name and argument, or raise ValueError."""
    if name in _PLAIN:
        if argument:
            raise ValueError(f"the filter {name} takes no argument")
        return _PLAIN[name]
    if name in _WITH_NUMBER:
        if not (argument.isascii() and argument.isdigit() and 0 < int(argument) <= 10**9):
            raise ValueError(f"the filter {name} takes a whole number above 0, as {name}:16")
        return _WITH_NUMBER[name](int(argument))
    if name == "date":
        return _date(argument)
    if name == "hash":
        return _hash(argument)
    names = [*_PLAIN, *_WITH_NUMBER, "date", "hash"]
    suggestion = hint(name, names) or f"there are {', '.join(sorted(names))}"
    raise ValueError(f"there is no filter {name!r}; {suggestion}")


def integer_text(number: str) -> str:
    """Return a whole number in its only form; raise Unmappable for other numbers."""
    if INTEGER.fullmatch(number):
        return number
    value = Decimal(number)
    if value != int(value):
        raise Unmappable("is no whole number, and becomes a text")
    return str(int(value))


def _digits(value: TypedValue) -> str:
    """Return the digits of a number, or of a text, that is whole and not negative."""
    if "N" in value:
        text = integer_text(value["N"])
        if text[0] == "-":
            raise Unmappable("is negative")
        return text
    text = str(value["S"])
    if not (text.isascii() and text.isdigit()):
        raise Unmappable("is no whole number")
    return text


def _upper(value: TypedValue) -> TypedValue:
    return {"S": value["S"].upper()}


def _lower(value: TypedValue) -> TypedValue:
    return {"S": value["S"].lower()}


def _str(value: TypedValue) -> TypedValue:
    return {"S": integer_text(value["N"])}


def _num(value: TypedValue) -> TypedValue:
    text = value["S"]
    if not is_number(text):
        raise Unmappable("is no number that DynamoDB keeps")
    if INTEGER.fullmatch(text):
        return {"N": text}
    return {"N": str(canonical({"N": text})[1])}


def _undo_str(value: TypedValue, _type: KeyType) -> TypedValue:
    return {"N": value["S"]}


def _undo_num(value: TypedValue, _type: KeyType) -> TypedValue:
    return {"S": integer_text(value["N"])}


def _undo_pad(value: TypedValue, type_: KeyType) -> TypedValue:
    return {type_: value["S"].lstrip("0") or "0"}


def _pad(width: int) -> Filter:
    if width > MOST_WIDTH:
        raise ValueError(f"the filter pad takes {MOST_WIDTH} at most")

    def apply(value: TypedValue) -> TypedValue:
        text = _digits(value)
        if len(text) > width:
            raise Unmappable(f"has more than the {width} digits of its pad")
        return {"S": text.zfill(width)}

    return Filter("SN", "S", apply, (Run(DIGITS, width, width),), _undo_pad)


def _first(count: int) -> Filter:
    return Filter("S", "S", lambda value: {"S": value["S"][:count]})


def _mod(by: int) -> Filter:
    def apply(value: TypedValue) -> TypedValue:
        text = integer_text(value["N"]) if "N" in value else _digits(value)
        return {"N": str(int(text) % by)}

    return Filter("SN", "N", apply, (Run(DIGITS, 1, None),))


def _shard(count: int) -> Filter:
    def apply(value: TypedValue) -> TypedValue:
        digest = hashlib.sha256(distinct_bytes(value)).digest()
        return {"N": str(int.from_bytes(digest[:8]) % count)}

    return Filter("SNB", "N", apply, (Run(DIGITS, 1, None),))


def _hash(name: str) -> Filter:
    if name not in _HASHES:
        raise ValueError("the filter hash takes md5 or sha256, as hash:sha256")

    def apply(value: TypedValue) -> TypedValue:
        if "N" in value:
            content = str(canonical(value)[1]).encode()
        else:
            content = value["S"].encode() if "S" in value else bytes(value["B"])
        return {"S": hashlib.new(name, content, usedforsecurity=False).hexdigest()}

    return Filter("SNB", "S", apply, (Run(_HEX, _HASHES[name], _HASHES[name]),))


def _date(argument: str) -> Filter:
    """Return a filter for an ISO 8601 text (UTC without a zone), or for a number since 1970."""
    form, divisor = argument, 1
    for unit, factor in ((":ms", 1000), (":s", 1)):
        if argument.endswith(unit):
            form, divisor = argument.removesuffix(unit), factor
            break

    def apply(value: TypedValue) -> TypedValue:
        try:
            if "N" in value:
                seconds = math.floor(Decimal(value["N"])) // divisor  # also before 1970
                moment = datetime.fromtimestamp(seconds, UTC)
            else:
                moment = datetime.fromisoformat(value["S"])
                moment = moment.astimezone(UTC) if moment.tzinfo not in (None, UTC) else moment
        except (ValueError, OverflowError, OSError, ArithmeticError) as error:
            raise Unmappable("is no date") from error
        return {"S": written % tuple([part(moment) for part in parts])}

    written, parts, runs = _form_of_date(form)
    return Filter("SN", "S", apply, tuple(runs))


def _form_of_date(form: str) -> tuple[str, Sequence[Callable[[datetime], int]], Sequence[Run]]:
    written, parts, runs = "", [], list[Run]()
    for code, text in re.findall(r"%(.?)|([^%]+)", form, re.DOTALL):
        if text or code == "%":
            written += text or "%%"
            runs += literal(text or code)
        elif code in _CODES:
            width, part = _CODES[code]
            written += f"%0{width}d"
            parts.append(part)
            runs.append(Run(DIGITS, width, width))
        else:
            codes = " ".join(f"%{name}" for name in _CODES)
            raise ValueError(f"the filter date has no %{code}; it has {codes} and %%")
    if not parts:
        raise ValueError("the filter date takes a form such as date:%Y-%m")
    return written, parts, runs


_PLAIN = {
    "upper": Filter("S", "S", _upper),
    "lower": Filter("S", "S", _lower),
    "str": Filter("N", "S", _str, NUMBER_RUNS, _undo_str),
    "num": Filter("S", "N", _num, NUMBER_RUNS, _undo_num),
}
_WITH_NUMBER = {"pad": _pad, "first": _first, "mod": _mod, "shard": _shard}
