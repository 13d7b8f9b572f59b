"""Templates: texts with fields that make a key of an item, and take a key apart again. Pure.

    template = { literal | "{" path [":" S|N|B] { "|" filter [":" argument] } [ "?" default ] "}" }

`{{` and `}}` mean one brace each; a field may also begin with `${`. A path is the name of an
attribute or of a variable, and leads into maps and lists: `address.city`, `lines[0].sku`. Spaces
around a path, a type, a filter and a default are ignored. Short forms stand for filters:
`{ts:day}` for `{ts|date:%Y-%m-%d}`, `{city:upper}` for `{city|upper}`, and `{hash(id)%4}` for
`{id|shard:4}`.

A template that is only one field has the field's type; any other is of type S. A field in a text is
never empty, and does not contain the separator after it, so there is only one way to take it apart.

The templates of a re-key and the candidate keys of a report are in this language.
"""

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from operator import attrgetter
from typing import Any

from keyhop.checks import hint
from keyhop.dynamodb.values import (
    KeyType,
    TypedValue,
    canonical,
    is_number,
    text_of,
    value_bytes,
)


class Unmappable(ValueError):
    """An item of which no key can be made; the message says why, and holds no value."""


_NOT_KEPT = "is not a number that DynamoDB keeps"
_MOST_KEY_BYTES = {False: 2048, True: 1024}
"""The maximum bytes of a partition key, and of a sort key (AWS documentation)."""


def why_no_key(value: TypedValue | None, is_sort_key: bool = False) -> str:
    """Return why DynamoDB would not accept a value as a key, continuing its name, or ""."""
    maximum = _MOST_KEY_BYTES[is_sort_key]
    text = (value or {}).get("S")
    if text and len(text) * 4 <= maximum:
        return ""
    if value is None or value.keys().isdisjoint(("S", "N", "B")):
        return "is a key, and would be missing"
    if "N" in value:
        return "" if is_number(value["N"]) else _NOT_KEPT
    size = value_bytes(value)
    if not size:
        return "is a key, and would be empty"
    return f"would have {size:,} bytes; the maximum is {maximum:,}" if size > maximum else ""


DIGITS = frozenset("0123456789")


@dataclass(frozen=True, slots=True)
class Run:
    """Characters of a text: `least` to `most` of `chars`, or of all others if `others`."""

    chars: frozenset[str]
    least: int = 1
    most: int | None = 1
    others: bool = False

    @property
    def is_fixed(self) -> bool:
        return self.least == self.most

    @property
    def expression(self) -> str:
        """Return the regular expression (with DOTALL)."""
        listed = "".join(map(re.escape, sorted(self.chars)))
        character = f"[{'^' if self.others else ''}{listed}]" if listed else "."
        if self.is_fixed:
            return character if self.least == 1 else f"{character}{{{self.least}}}"
        return f"{character}{{{self.least},{'' if self.most is None else self.most}}}"

    def meets(self, another: "Run") -> bool:
        """Return whether the two have a character in common."""
        if self.others and another.others:
            return True  # there are more characters than are ever listed
        if self.others:
            return bool(another.chars - self.chars)
        return bool(self.chars - another.chars if another.others else self.chars & another.chars)


ANY = Run(frozenset(), 1, None, others=True)


def literal(text: str) -> list[Run]:
    """Return the runs of exactly this text."""
    return [Run(frozenset(character)) for character in text]


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
_MOST_DIGITS = 4300
"""Python converts no longer text to a whole number."""
LEAST_MILLISECONDS = 10**11
"""Seconds of the year 5138; a larger number is in milliseconds."""

Undo = Callable[[TypedValue, KeyType], TypedValue]
"""Return the original value, of this type."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter: the types that it takes and gives, its text's form, and its inverse, if any."""

    takes: str
    gives: KeyType
    apply: Callable[[TypedValue], TypedValue]
    runs: tuple[Run, ...] = (ANY,)
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
        raise Unmappable("is not a whole number, which a text needs")
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
        raise Unmappable("is not a whole number")
    if len(text) > _MOST_DIGITS:
        raise Unmappable(f"has more than {_MOST_DIGITS:,} digits")
    return text


def _num(value: TypedValue) -> TypedValue:
    text = value["S"]
    if not is_number(text):
        raise Unmappable(_NOT_KEPT)
    if INTEGER.fullmatch(text):
        return {"N": text}
    return {"N": str(canonical({"N": text})[1])}


def _pad(width: int) -> Filter:
    if width > MOST_WIDTH:
        raise ValueError(f"the filter pad takes {MOST_WIDTH} at most")

    def apply(value: TypedValue) -> TypedValue:
        text = _digits(value)
        if len(text) > width:
            raise Unmappable(f"has more than the {width} digits of its pad")
        return {"S": text.zfill(width)}

    def undo(value: TypedValue, type_: KeyType) -> TypedValue:
        return {type_: value["S"].lstrip("0") or "0"}

    return Filter("SN", "S", apply, (Run(DIGITS, width, width),), undo)


def _first(count: int) -> Filter:
    return Filter("S", "S", lambda value: {"S": value["S"][:count]})


def _mod(by: int) -> Filter:
    def apply(value: TypedValue) -> TypedValue:
        text = integer_text(value["N"]) if "N" in value else _digits(value)
        return {"N": str(int(text) % by)}

    return Filter("SN", "N", apply, (Run(DIGITS, 1, None),))


def _hashed(value: TypedValue) -> bytes:
    """Return the content of a value to hash; of a number, its digits without an exponent."""
    return bytes(value["B"]) if "B" in value else text_of(value).encode()


def _shard(count: int) -> Filter:
    def apply(value: TypedValue) -> TypedValue:
        content = _hashed(value)
        content = b"%b%d:%b" % (next(iter(value)).encode(), len(content), content)
        digest = hashlib.sha256(content).digest()
        return {"N": str(int.from_bytes(digest[:8]) % count)}

    return Filter("SNB", "N", apply, (Run(DIGITS, 1, None),))


def _hash(name: str) -> Filter:
    if name not in _HASHES:
        raise ValueError("the filter hash takes md5 or sha256, as hash:sha256")

    def apply(value: TypedValue) -> TypedValue:
        digest = hashlib.new(name, _hashed(value), usedforsecurity=False)
        return {"S": digest.hexdigest()}

    return Filter("SNB", "S", apply, (Run(_HEX, _HASHES[name], _HASHES[name]),))


def _date(argument: str) -> Filter:
    form, divisor = argument, None
    for unit, factor in ((":ms", 1000), (":s", 1)):
        if argument.endswith(unit):
            form, divisor = argument.removesuffix(unit), factor
            break
    written, parts, runs = _form_of_date(form)

    def apply(value: TypedValue) -> TypedValue:
        moment = _moment(value, divisor)
        return {"S": written % tuple([part(moment) for part in parts])}

    return Filter("SN", "S", apply, tuple(runs))


def _moment(value: TypedValue, divisor: int | None) -> datetime:
    """Return the time, in UTC, of an ISO 8601 text (UTC without a zone) or of a number since 1970,
    which may be a text. Without a divisor, its size says whether it counts milliseconds.
    """
    text: str = value.get("N") or value["S"]
    try:
        if "N" in value or (text.isdecimal() and len(text) > len("20261122")):
            number = Decimal(text)
            divisor = divisor or (1000 if abs(number) >= LEAST_MILLISECONDS else 1)
            return datetime.fromtimestamp(math.floor(number) // divisor, UTC)  # also before 1970
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo not in (None, UTC) else moment
    except (ValueError, OverflowError, OSError, ArithmeticError) as error:
        raise Unmappable("is not a date") from error


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
    "upper": Filter("S", "S", lambda value: {"S": value["S"].upper()}),
    "lower": Filter("S", "S", lambda value: {"S": value["S"].lower()}),
    "str": Filter(
        "N",
        "S",
        lambda value: {"S": integer_text(value["N"])},
        NUMBER_RUNS,
        lambda value, _type: {"N": value["S"]},
    ),
    "num": Filter(
        "S", "N", _num, NUMBER_RUNS, lambda value, _type: {"S": integer_text(value["N"])}
    ),
}
_WITH_NUMBER = {"pad": _pad, "first": _first, "mod": _mod, "shard": _shard}


_PATH = re.compile(r"[^.\[\]]+(?:\.[^.\[\]]+|\[[0-9]+\])*")
_STEP = re.compile(r"\[([0-9]+)\]|[^.\[\]]+")
_HASHED = re.compile(r"hash\(\s*([^()]+?)\s*\)\s*%\s*([0-9]+)")
_TYPES: dict[str, KeyType] = {"S": "S", "N": "N", "B": "B"}
_SHORT_FORMS = {
    "year": "date:%Y",
    "month": "date:%Y-%m",
    "day": "date:%Y-%m-%d",
    "hour": "date:%Y-%m-%dT%H",
    "minute": "date:%Y-%m-%dT%H:%M",
    "upper": "upper",
    "lower": "lower",
}
"""The filters of the words that may follow a path and a colon, in the place of a type."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a text, with a text that replaces a missing value. `path` begins with an attribute
    or variable, and filters have arguments, which may be empty.
    """

    path: tuple[str | int, ...]
    type: KeyType | None = None
    filters: tuple[tuple[str, str], ...] = ()
    default: str | None = None

    @property
    def name(self) -> str:
        """Return the name of the attribute or variable."""
        return str(self.path[0])

    @property
    def shown(self) -> str:
        """Return the path as it is written."""
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path[1:])
        return self.name + "".join(steps)


def parsed(text: str) -> list[str | Field]:
    """Return literals (never empty, never adjacent) and fields, in order, or raise ValueError."""
    parts: list[str | Field] = []
    literal, at = "", 0
    while at < len(text):
        if text.startswith(("{{", "}}"), at):
            literal, at = literal + text[at], at + 2
        elif text[at] == "}":
            raise ValueError("a '}' closes nothing; for the character itself write '}}'")
        elif text[at] == "{" or (text.startswith("${", at) and not text.startswith("${{", at)):
            begin = text.index("{", at) + 1
            end = text.find("}", begin)
            if end < 0:
                raise ValueError("a '{' is not closed; for the character itself write '{{'")
            parts += [literal] if literal else []
            parts.append(_field(text[begin:end]))
            literal, at = "", end + 1
        else:
            literal, at = literal + text[at], at + 1
    return parts + ([literal] if literal else [])


def _field(inside: str) -> Field:
    rest, asks, default = inside.partition("?")
    path, *filters = (part.strip() for part in rest.split("|"))
    type_: KeyType | None = None
    if hashed := _HASHED.fullmatch(path):
        path, filters = hashed[1], [f"shard:{hashed[2]}", *filters]
    elif path.startswith("hash("):
        raise ValueError(f"{{{inside}}} is not a hash: write {{hash(id)%4}}")
    elif ":" in path:
        path, word = (part.strip() for part in path.rsplit(":", 1))
        type_ = _TYPES.get(word)
        if type_ is None and word not in _SHORT_FORMS:
            words = ", ".join((*_TYPES, *_SHORT_FORMS))
            raise ValueError(f"{word!r} is not a type of a key: {{{inside}}} takes one of {words}")
        filters = filters if type_ else [_SHORT_FORMS[word], *filters]
    if not _PATH.fullmatch(path):
        raise ValueError(f"{{{inside}}} does not begin with the name of an attribute")
    steps = [int(s[1]) if s[1] else s[0] for s in _STEP.finditer(path)]
    if any(isinstance(step, str) and step != step.strip() for step in steps):
        raise ValueError(f"{{{inside}}} has a space beside a '.' or a '[': write it without")
    return Field(
        tuple(steps),
        type_,
        tuple((n.strip(), a.strip()) for n, _, a in (f.partition(":") for f in filters)),
        default.strip() if asks else None,
    )


Scope = Mapping[str, TypedValue]
"""An item's attributes, overridden by the variables that `match` has bound."""
Types = Mapping[str, KeyType]
"""The types of variables and source keys by name; another attribute may have any type."""


class CompiledField:
    """A field that is ready for use in a template, alone or beside other parts.

    Attributes:
        field: The field as it is written.
        bound_type: The type of the value without filters; None for any.
        type: The type with filters; None for any.
        is_text: Whether it is part of a text, which its filters or a default make of it even alone.
        runs: The form of its text.
        text: Returns its text within a template, or raises Unmappable.
        undo: Returns the original value of a text within a text, or of the typed value of a field
            that is not a text; None if the original is lost.
    """

    def __init__(
        self,
        field: Field,
        types: Types,
        default_type: KeyType | None,
        after: str | Field | None = None,
        separator: str = "",
        is_alone: bool = False,
    ) -> None:
        """Compile a field, or raise ValueError. `default_type` is the type of a field that
        specifies none and has no filter; `after` is the part that follows it in a text.
        """
        self.field = field
        label = field.shown
        known_type = types.get(field.name) if len(field.path) == 1 else None
        if field.name in types and len(field.path) > 1:
            raise ValueError(f"{{{label}}} reads a part of a key or a variable, which has no parts")
        if known_type and field.type not in (None, known_type):
            raise ValueError(f"{label!r} is of type {known_type}, and not {field.type}")
        self.bound_type = field.type or known_type
        self._filters = [filter_of(name, argument) for name, argument in field.filters]
        if not self._filters and self.bound_type is None:
            self.bound_type = default_type
        self.type = self.bound_type
        for (name, _), filter_ in zip(field.filters, self._filters, strict=True):
            if self.type is not None and self.type not in filter_.takes:
                raise ValueError(f"the filter {name} of {label!r} cannot take type {self.type}")
            self.type = filter_.gives
        of_filters = self.type == "S" and bool(self._filters or field.default is not None)
        self.is_text = of_filters or not is_alone
        if self.is_text and self.type == "B":
            raise ValueError(f"{{{label}}} is of type B: it must be the only part, or be hashed")
        self.runs: tuple[Run, ...] = NUMBER_RUNS if self.type == "N" else (ANY,)
        if self._filters:
            self.runs = self._filters[-1].runs
        self._separator, self._stop = separator, self._stop_before(after)
        if field.default is not None:
            self._check_default(field.default)
        if any(run.others for run in self.runs):
            self.runs = (without(separator, self._stop),)
        self._filtered = self._filtered_value()
        self.text: Callable[[Scope], str] = self._checked_text
        if not self._filters and self.bound_type in (None, "S") and len(field.path) == 1:
            self.text = self._fast_text()
        self.undo = self._undone()

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole value of an attribute or a variable, and has no default."""
        return len(self.field.path) == 1 and not self.field.filters and self.field.default is None

    def _undone(self) -> Callable[[Any], TypedValue] | None:
        types: list[KeyType] = [self.bound_type or "S", *(each.gives for each in self._filters)]
        last, is_text, label = types[-1], self.is_text, self.field.shown
        steps = [(each.undo, type_) for each, type_ in zip(self._filters, types, strict=False)]

        def undo(result: Any) -> TypedValue:
            value: TypedValue = {last: result} if is_text else result
            for step, type_ in reversed(steps):
                assert step is not None
                value = step(value, type_)
            if "N" in value and not is_number(value["N"]):
                raise Unmappable(f"{label!r} {_NOT_KEPT}")
            return value

        return None if any(step is None for step, _ in steps) else undo

    def value(self, scope: Scope) -> TypedValue:
        """Return the value with filters, or raise Unmappable."""
        filtered = self._filtered(scope)
        if filtered is not None:
            return filtered
        if self.field.default is None:
            raise Unmappable(f"{self.field.shown!r} is missing, and has no default")
        return {self.type or "S": self.field.default}

    def _stop_before(self, after: str | Field | None) -> str:
        """Return the text after a field that has no fixed width, or ""."""
        if all(run.is_fixed for run in self.runs):
            return ""
        if isinstance(after, Field):
            raise ValueError(
                f"{{{self.field.shown}}} and {{{after.shown}}} touch: put a separator between "
                "them, or give the first a fixed width, as |pad:4"
            )
        if after and self.runs[-1].chars == DIGITS and after[0] in DIGITS:
            raise ValueError(f"the separator after {{{self.field.shown}}} begins with a digit")
        return after or ""

    def _check_default(self, default: str) -> None:
        wrong = self._holds_separator(default)
        if not wrong and (
            self.type == "B" or not re.fullmatch(self.expression, default, re.DOTALL)
        ):
            wrong = "cannot be made by its filters"
        if wrong:
            raise ValueError(f"the default of {{{self.field.shown}}} {wrong}")

    def _holds_separator(self, content: str) -> str:
        # With a separator of several characters, its first one may end the value.
        if self._stop and (content + self._stop).find(self._stop) != len(content):
            return "contains its separator"
        has_separator = self._separator and self._separator in content
        return "contains the separator" if has_separator else ""

    def _filtered_value(self) -> Callable[[Scope], TypedValue | None]:
        """Return a function for the value with filters; it returns None without a value."""
        label, look = self.field.shown, _looked_up(self.field.path)
        applied = [filter_.apply for filter_ in self._filters]
        takes = self.bound_type or (self._filters[0].takes if self._filters else "")

        def filtered(scope: Scope) -> TypedValue | None:
            value = look(scope)
            if value is None:
                return None
            if next(iter(value)) not in takes:
                raise Unmappable(f"{label!r} is of type {next(iter(value))}, and not {takes}")
            try:
                for apply in applied:
                    value = apply(value)
            except Unmappable as error:
                raise Unmappable(f"{label!r} {error}") from None
            return value

        return filtered if takes else look

    def _checked_text(self, scope: Scope) -> str:
        typed = self.value(scope)
        label = self.field.shown
        content: str = typed.get("S") or _text_of(typed, label)
        if wrong := self._holds_separator(content):
            raise Unmappable(f"{label!r} {wrong}")
        return content

    def _fast_text(self) -> Callable[[Scope], str]:
        """Return a faster function than `_checked_text`, with the same results."""
        name, slow = self.field.name, self._checked_text
        stops = {self._stop, self._separator} - {""}
        if any(len(stop) > 1 for stop in stops):
            return slow
        first, second = (*stops, "", "")[:2]

        def text(scope: Scope) -> str:
            value = scope.get(name)
            content = None if value is None else value.get("S")
            if content and not (first and first in content) and not (second and second in content):
                return str(content)
            return slow(scope)

        return text

    @property
    def expression(self) -> str:
        """The regular expression of its text (with DOTALL)."""
        if self.runs == NUMBER_RUNS:
            return "0|-?[1-9][0-9]*"
        if len(self._stop) > 1 and any(run.others for run in self.runs):
            (run,) = self.runs
            character = Run(run.chars, 1, 1, run.others)
            return f"(?:(?!{re.escape(self._stop)}){character.expression})+"
        return "".join(run.expression for run in self.runs)


def without(*stops: str) -> Run:
    """Return a run of any text without these; a stop of several characters is ignored."""
    return Run(frozenset(stop for stop in stops if len(stop) == 1), 1, None, others=True)


def _text_of(value: TypedValue, label: str) -> str:
    if "S" in value:
        raise Unmappable(f"{label!r} is empty")
    if "N" not in value:
        raise Unmappable(f"{label!r} is of type {next(iter(value))} and not a text")
    try:
        return integer_text(value["N"])
    except Unmappable as error:
        raise Unmappable(f"{label!r} {error}") from None


def _looked_up(path: Sequence[str | int]) -> Callable[[Scope], TypedValue | None]:
    name, *steps = path
    if not steps:
        return lambda scope: scope.get(str(name))

    def look(scope: Scope) -> TypedValue | None:
        value = scope.get(str(name))
        for step in steps:
            if value is None:
                return None
            if isinstance(step, str):
                value = value["M"].get(step) if "M" in value else None
            else:
                value = value["L"][step] if step < len(value.get("L", ())) else None
        return value

    return look


_MENDS: dict[tuple[KeyType | None, KeyType], str] = {
    ("N", "S"): "write |str",
    ("S", "N"): "write |num",
}


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled template, or a constant.

    Attributes:
        fields: Its fields, in order.
        render: Returns the value that it makes, or raises Unmappable.
        split: Returns the parts of its fields in a value, or None for another form.
        type: The type of its value; None for any.
        runs: The form of a text; None for any text.
        constant: The content of a value that is not a text.
    """

    fields: Sequence[CompiledField]
    render: Callable[[Scope], TypedValue]
    split: Callable[[TypedValue], Sequence[Any] | None]
    type: str | None
    runs: tuple[Run, ...] | None = None
    constant: Any = None


def compiled(
    text: str, types: Types, key_type: KeyType | None = None, separator: str = ""
) -> Compiled:
    """Compile a template whose value must be of type `key_type` (None for any), or raise
    ValueError with the part of a sentence.
    """
    parts = parsed(text)
    if len(parts) == 1 and isinstance(parts[0], Field):
        alone = CompiledField(parts[0], types, key_type, is_alone=True)
        if not alone.is_text:
            return _whole(alone, key_type)
    if key_type not in (None, "S"):
        raise ValueError(f"it makes a text, and the key is of type {key_type}")
    if not parts:
        raise ValueError("it is empty")
    return _joined(parts, types, key_type, separator if len(parts) > 1 else "")


def whole(name: str, type_: KeyType) -> Compiled:
    """Return a template that is an attribute as a whole, whatever its name."""
    return _whole(CompiledField(Field((name,)), {}, type_, is_alone=True), type_)


def _whole(field: CompiledField, key_type: KeyType | None) -> Compiled:
    type_ = field.type
    if key_type is not None and type_ != key_type:
        raise ValueError(
            f"{{{field.field.shown}}} is of type {type_}, and the key of type {key_type}: "
            f"{_MENDS.get((type_, key_type), 'take another attribute')}"
        )

    def split(value: TypedValue) -> Sequence[Any] | None:
        return (value,) if type_ is None or type_ in value else None

    return Compiled([field], field.value, split, type_, field.runs if type_ == "S" else None)


def _joined(
    parts: Sequence[str | Field], types: Types, key_type: KeyType | None, separator: str
) -> Compiled:
    fields: list[CompiledField] = []
    runs: list[Run] = []
    form = expression = ""
    for part, after in zip(parts, [*parts[1:], None], strict=True):
        if isinstance(part, str):
            form += part.replace("%", "%%")
            runs += literal(part)
            expression += re.escape(part)
            continue
        field = CompiledField(part, types, key_type if len(parts) == 1 else None, after, separator)
        fields.append(field)
        form += "%s"
        runs += field.runs
        expression += f"({field.expression})"
    matched = re.compile(expression, re.DOTALL).fullmatch
    makers = [field.text for field in fields]

    def render(scope: Scope) -> TypedValue:
        return {"S": form % tuple([make(scope) for make in makers])}

    def split(value: TypedValue) -> Sequence[Any] | None:
        text = value.get("S")
        match = None if text is None else matched(text)
        return None if match is None else match.groups()

    if not fields:
        constant = {"S": form % ()}
        return Compiled((), lambda _scope: constant, split, "S", tuple(runs))
    return Compiled(fields, render, split, "S", tuple(runs))
