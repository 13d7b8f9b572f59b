"""The notation of candidate keys: `PK=DEVICE#{deviceId}#{ts:day}#{hash(id)%4}`. Pure.

    candidate = "PK=" template [ " SK=" template ]
    template  = { literal | "{" path [ ":" word ] { "|" filter } [ "?" default ] "}" }
    word      = S | N | B | year | month | day | hour | minute | upper | lower
    filter    = upper | lower | first:n | pad:n | shard:n | date:format

"{{" and "}}" are braces; `{hash(id)%4}` is `{id|shard:4}`, `{ts:day}` is `{ts|date:%Y-%m-%d}`. An
item cannot have the key if it lacks an attribute, or if a value cannot be part of a text.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from keyhop.dynamodb.values import Item, TypedValue, distinct_bytes, text_of
from keyhop.errors import CannotStart

MOST_TEXT = 1_000
MOST_SHARDS = 1_000
MOST_KEY_BYTES = 2048
LEAST_MILLISECONDS = 1e11
"""Seconds of the year 5138; a larger number is in milliseconds."""

DATES = {
    "year": "%Y",
    "month": "%Y-%m",
    "day": "%Y-%m-%d",
    "hour": "%Y-%m-%dT%H",
    "minute": "%Y-%m-%dT%H:%M",
}
TYPES = ("S", "N", "B")
CASES: Mapping[str, Callable[[str], str]] = {"upper": str.upper, "lower": str.lower}
NUMBERED = {"first": 100, "pad": 100, "shard": MOST_SHARDS}
"""Filters with a number, and its maximum."""

OF_VALUES = ("date", "shard")
"""Filters that take a typed value; the others take text."""
_WORDS = (*TYPES, *DATES, *CASES)

Kind = Literal["whole", "date", "shard"]

_FORM = re.compile(r"\s*PK\s*=\s*(?P<pk>.*?)(?:[\s,;]+SK\s*=\s*(?P<sk>.*?))?\s*", re.DOTALL)
_PIECE = re.compile(r"\{\{|\}\}|\$?\{(?P<field>[^{}]*)\}|[{}]")
_HASH = re.compile(r"hash\(\s*(?P<path>[^()]+?)\s*\)\s*%\s*(?P<n>\d+)")
_FIELD = re.compile(
    r"(?P<path>[^:|?]+)(?::(?P<word>[^:|?]*))?(?P<filters>(?:\|[^|?]*)*)(?:\?(?P<default>.*))?"
)
_FORMAT = re.compile(r"(?:%[YmdHMS]|[-_:T./])+")


@dataclass(frozen=True, slots=True)
class Field:
    """One {...} of a template.

    Attributes:
        path: The attribute, or a dotted path into a map.
        kind: Whether it is the attribute's whole value, a time bucket of it, or a shard.
        steps: The functions from a typed value to text, or to None.
        default: The text of items that lack the attribute.
        shards: The number of shards.
    """

    path: str
    kind: Kind
    steps: tuple[Callable[[Any], Any], ...]
    default: str | None = None
    shards: int = 1

    @property
    def attribute(self) -> str:
        """Return the name of the item's attribute, as requests contain it."""
        return self.path.partition(".")[0]

    def of(self, item: Item) -> str | None:
        value: Any = _found(item, self.path)
        for step in self.steps:
            if value is None:
                break
            value = step(value)
        return self.default if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Template:
    """The texts and fields of one key attribute."""

    parts: tuple[str | Field, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(part for part in self.parts if isinstance(part, Field))

    def of(self, item: Item) -> str | None:
        """Return the key that an item would have; None if it cannot have one."""
        texts = [part if isinstance(part, str) else part.of(item) for part in self.parts]
        key = "".join(text for text in texts if text is not None)
        fits = None not in texts and 0 < len(key.encode(errors="replace")) <= MOST_KEY_BYTES
        return key if fits else None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate key.

    Attributes:
        text: The key as the user wrote it.
        partition: The template of the partition key.
        sort: The template of the sort key, if there is one.
    """

    text: str
    partition: Template
    sort: Template | None = None

    def of(self, item: Item) -> str | None:
        """Return the partition key that an item would have; None if it cannot have the key."""
        if self.sort is not None and self.sort.of(item) is None:
            return None
        return self.partition.of(item)


def candidate(text: str) -> Candidate:
    """Parse a candidate key.

    Raises:
        CannotStart: It is not valid. The message is one sentence.
    """
    if len(text) > MOST_TEXT:
        raise CannotStart(f"A candidate key has {MOST_TEXT:,} characters at most.")
    form = _FORM.fullmatch(text)
    if form is None:
        raise _wrong(text, "must begin with PK=, as PK=DEVICE#{deviceId}#{ts:day}")
    partition = _template(text, form["pk"])
    if not partition.fields:
        raise _wrong(text, "names no attribute: all items would have one key")
    return Candidate(text, partition, None if form["sk"] is None else _template(text, form["sk"]))


def why_wrong(text: str) -> str:
    """Return the mistake in a candidate, without a full stop, or ""."""
    try:
        candidate(text)
    except CannotStart as error:
        return str(error).removesuffix(".")
    return ""


def _wrong(text: str, what: str) -> CannotStart:
    return CannotStart(f"The candidate {text!r} {what}.")


def _template(template: str, text: str) -> Template:
    parts: list[str | Field] = []
    at = 0
    for piece in _PIECE.finditer(text):
        parts.append(text[at : piece.start()])
        at = piece.end()
        if piece["field"] is not None:
            parts.append(_field(template, piece["field"].strip()))
        elif piece[0] in ("{{", "}}"):
            parts.append(piece[0][0])
        else:
            missing = "}" if piece[0] == "{" else "{"
            raise _wrong(template, f"has a {piece[0]} without its {missing}")
    parts.append(text[at:])
    return Template(tuple(part for part in parts if part != ""))


def _field(template: str, text: str) -> Field:
    if hashed := _HASH.fullmatch(text):
        text = f"{hashed['path']}|shard:{hashed['n']}"
    elif "(" in text:
        raise _wrong(template, f"has {{{text}}}; a hash is written {{hash(id)%4}}")
    form = _FIELD.fullmatch(text)
    if form is None or not form["path"].strip():
        raise _wrong(template, "has {} without the name of an attribute")
    path = form["path"].strip()
    if any(step != step.strip() for step in path.split(".")):
        raise _wrong(template, f"has a space beside the '.' of {path!r}; write it without")
    steps: list[Callable[[Any], Any]] = []
    filters = [filter_text.strip() for filter_text in form["filters"].split("|")[1:]]
    word = (form["word"] or "").strip()
    if word in TYPES:
        steps.append(lambda value: value if word in value else None)
    elif word in DATES or word in CASES:
        filters.insert(0, f"date:{DATES[word]}" if word in DATES else word)
    elif form["word"] is not None:
        raise _wrong(template, f"has {word!r} after a colon; there are {_list(_WORDS)}")
    kind: Kind = "whole"
    shards = 1
    if filters[:1] == [] or filters[0].partition(":")[0] not in OF_VALUES:
        steps.append(_text)
    for at, filter_text in enumerate(filters):
        name, _, argument = filter_text.partition(":")
        if at and name in OF_VALUES:
            raise _wrong(template, f"has {name} after another filter; it must be the first")
        steps.append(_step(template, name, argument))
        if name == "date":
            kind = "date"
        elif name == "shard":
            kind, shards = "shard", int(argument)
    default = form["default"]
    default = None if default is None else default.strip()
    return Field(path, kind, tuple(steps), default, shards)


def _list(words: Iterable[str]) -> str:
    return ", ".join(words)


def _step(template: str, name: str, argument: str) -> Callable[[Any], Any]:
    if name in CASES and not argument:
        return CASES[name]
    if name == "date":
        if not _FORMAT.fullmatch(argument):
            raise _wrong(template, f"has the date format {argument!r}; as %Y-%m-%d it may be")
        return lambda value: _date(value, argument)
    if name in NUMBERED:
        if not argument.isdecimal() or not 1 <= int(argument) <= NUMBERED[name]:
            raise _wrong(
                template, f"has {name}:{argument}; its number must be 1 to {NUMBERED[name]:,}"
            )
        number = int(argument)
        if name == "shard":
            return lambda value: _shard(value, number)
        if name == "first":
            return lambda text: text[:number]
        return lambda text: text.zfill(number)
    raise _wrong(
        template, f"has the filter {name!r}; there are {_list((*CASES, *NUMBERED, 'date'))}"
    )


def _found(item: Item, path: str) -> TypedValue | None:
    """Return an attribute, or the value under the names of a dotted path in a map."""
    if path in item:
        return item[path]
    name, dot, rest = path.partition(".")
    inner = item.get(name, {})
    return _found(inner["M"], rest) if dot and "M" in inner else None


def _text(value: TypedValue) -> str | None:
    return text_of(value) if value.keys() & {"S", "N", "B"} else None


def _shard(value: TypedValue, shards: int) -> str | None:
    if not value.keys() & {"S", "N", "B"}:
        return None
    digest = hashlib.sha256(distinct_bytes(value)).digest()
    return str(int.from_bytes(digest[:8]) % shards)


def _date(value: TypedValue, format_: str) -> str | None:
    """Format seconds or milliseconds since 1970, or a text in ISO 8601, in UTC."""
    moment = moment_of(value)
    return None if moment is None else moment.strftime(format_)


def moment_of(value: TypedValue) -> datetime | None:
    """Return the time that a value represents; None if it represents none."""
    text = str(value.get("S", value.get("N", "")))
    try:
        if "N" in value or (text.isdecimal() and len(text) > len("20261122")):
            seconds = float(text)
            return datetime.fromtimestamp(
                seconds / 1_000 if seconds >= LEAST_MILLISECONDS else seconds, UTC
            )
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None
