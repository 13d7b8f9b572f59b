"""Texts with fields: parse one, render it from an item, take a value apart into its fields. Pure.

    text = { literal | "{" path [":" S|N|B] { "|" filter [":" argument] } [ "?" default ] "}" }

`{{` and `}}` mean one brace each; a field may also begin with `${`. A path is the name of an
attribute or of a variable, and leads into maps and lists: `address.city`, `lines[0].sku`. Spaces
around a path, a type, a filter and a default are ignored.

A text that is only one field has the field's type; any other is of type S. A field in a text is
never empty, and does not contain the separator after it, so there is only one way to take it apart.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.values import KeyType, TypedValue
from keyhop.rekey.template.filters import NUMBER_RUNS, Filter, filter_of, integer_text
from keyhop.rekey.template.looks import ANY, DIGITS, Look, Run, literal
from keyhop.rekey.transform import Unmappable

_PATH = re.compile(r"[^.\[\]]+(?:\.[^.\[\]]+|\[[0-9]+\])*")
_STEP = re.compile(r"\[([0-9]+)\]|[^.\[\]]+")
_TYPED = re.compile(r"(.+?)\s*:\s*([A-Z]\w*)", re.DOTALL)
_TYPES: dict[str, KeyType] = {"S": "S", "N": "N", "B": "B"}


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
    typed = _TYPED.fullmatch(path)
    if typed:
        path = typed[1]
        if typed[2] not in _TYPES:
            raise ValueError(f"{typed[2]!r} is no type of a key: {{{inside}}} takes S, N or B")
    if not _PATH.fullmatch(path):
        raise ValueError(f"{{{inside}}} does not begin with the name of an attribute")
    steps = [int(s[1]) if s[1] else s[0] for s in _STEP.finditer(path)]
    if any(isinstance(step, str) and step != step.strip() for step in steps):
        raise ValueError(f"{{{inside}}} has a space beside a '.' or a '[': write it without")
    return Field(
        tuple(steps),
        _TYPES[typed[2]] if typed else None,
        tuple((n.strip(), a.strip()) for n, _, a in (f.partition(":") for f in filters)),
        default.strip() if asks else None,
    )


Scope = Mapping[str, TypedValue]
"""An item's attributes, overridden by the variables that `match` has bound."""
Types = Mapping[str, KeyType]
"""The types of variables and source keys by name; another attribute may have any type."""
Undone = Callable[[Any], TypedValue] | None


@dataclass(frozen=True, slots=True)
class CompiledField:
    """A field that is ready for use; its functions raise Unmappable.

    `bound_type` is the type of the value without filters, and `type` with them; None for any.
    `text` and `value` return it with filters. `undo` returns the original value of a text within a
    text, or of the typed value of a field that is alone; it is None if the original is lost.
    """

    field: Field
    bound_type: KeyType | None
    type: KeyType | None
    looks: tuple[Run, ...]
    text: Callable[[Scope], str]
    value: Callable[[Scope], TypedValue]
    undo: Undone

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole value of an attribute or a variable, and has no default."""
        return len(self.field.path) == 1 and not self.field.filters and self.field.default is None


@dataclass(frozen=True, slots=True)
class Chain:
    """A field and its filters, with the types of the value before and after them; None for any."""

    field: Field
    of_type: KeyType | None
    filters: Sequence[Filter]
    type: KeyType | None

    @classmethod
    def of(cls, field: Field, types: Types, default_type: KeyType | None) -> "Chain":
        """Return the chain of a field, which has `default_type` if it does not specify a type."""
        known_type = types.get(field.name) if len(field.path) == 1 else None
        if field.name in types and len(field.path) > 1:
            raise ValueError(
                f"{{{field.shown}}} steps into a key or a variable, which has no parts"
            )
        if known_type and field.type not in (None, known_type):
            raise ValueError(f"{field.shown!r} is of type {known_type}, and not {field.type}")
        of_type = type_ = field.type or known_type
        filters = [filter_of(name, argument) for name, argument in field.filters]
        for (name, _), filter_ in zip(field.filters, filters, strict=True):
            if type_ is not None and type_ not in filter_.takes:
                raise ValueError(f"the filter {name} of {field.shown!r} cannot take type {type_}")
            type_ = filter_.gives
        if not filters and of_type is None:
            of_type = type_ = default_type
        return cls(field, of_type, filters, type_)

    @property
    def is_text(self) -> bool:
        """Return whether it is a text of one field: filters make a text, or it has a default."""
        return self.type == "S" and bool(self.filters or self.field.default is not None)

    def looks(self) -> tuple[Run, ...]:
        """Return the form of the text that it becomes."""
        if self.filters:
            return self.filters[-1].looks
        return NUMBER_RUNS if self.type == "N" else (ANY,)

    def value_maker(self) -> Callable[[Scope], TypedValue | None]:
        """Return a function for the value with filters; it returns None without a value."""
        label, type_, look = self.field.shown, self.of_type, _looked_up(self.field.path)
        applied = [filter_.apply for filter_ in self.filters]
        takes = type_ or (self.filters[0].takes if self.filters else "")

        def make(scope: Scope) -> TypedValue | None:
            value = look(scope)
            if value is None:
                return None
            if takes and next(iter(value)) not in takes:
                raise Unmappable(f"{label!r} is of type {next(iter(value))}, and not {takes}")
            try:
                for apply in applied:
                    value = apply(value)
            except Unmappable as error:
                raise Unmappable(f"{label!r} {error}") from None
            return value

        return make if takes else look

    def undone(self, of_text: bool) -> Undone:
        """Return the inverse of the filters; `of_text` says whether the field is part of a text."""
        before: KeyType = self.of_type or "S"
        types: list[KeyType] = [before, *(filter_.gives for filter_ in self.filters)]
        if any(filter_.undo is None for filter_ in self.filters) or (of_text and types[-1] == "B"):
            return None
        last = types[-1]
        if not self.filters:
            return (lambda text: {last: text}) if of_text else (lambda value: value)
        steps = [(o.undo, t) for o, t in zip(self.filters, types, strict=False) if o.undo]

        def undo(result: Any) -> TypedValue:
            value: TypedValue = {last: result} if of_text else result
            for step, type_ in reversed(steps):
                value = step(value, type_)
            return value

        return undo

    def compiled(self, after: str | Field | None, separator: str, undo: Undone) -> CompiledField:
        """Return the field ready for use; `after` is the part that follows it in a text."""
        label, default, make = self.field.shown, self.field.default, self.value_maker()
        runs = self.looks()
        if isinstance(after, Field) and not all(run.is_fixed for run in runs):
            raise ValueError(
                f"{{{label}}} and {{{after.shown}}} touch: put a separator between them, or give "
                "the first a fixed width, as |pad:4"
            )
        stop = after if isinstance(after, str) and not all(run.is_fixed for run in runs) else ""
        if stop and runs[-1].chars == DIGITS and stop[0] in DIGITS:
            raise ValueError(f"the separator after {{{label}}} begins with a digit")
        if default is not None:
            self._check_default(runs, stop, separator)
        if any(run.others for run in runs):
            runs = (without(separator, stop),)
        type_: KeyType = self.type or "S"
        missing = f"{label!r} is missing, and has no default"

        def value(scope: Scope) -> TypedValue:
            filtered = make(scope)
            if filtered is not None:
                return filtered
            if default is None:
                raise Unmappable(missing)
            return {type_: default}

        def text(scope: Scope) -> str:
            typed = value(scope)
            content = typed.get("S") or _text_of(typed, label)
            # With a separator of several characters, its first one may end the value.
            if stop and (content + stop).find(stop) != len(content):
                raise Unmappable(f"{label!r} contains its separator")
            if separator and separator in content:
                raise Unmappable(f"{label!r} contains the separator")
            return content

        made_of = self.of_type, self.type
        is_plain = not self.filters and self.of_type in (None, "S") and len(self.field.path) == 1
        fast = _plain(self.field.name, {stop, separator} - {""}, text) if is_plain else text
        return CompiledField(self.field, *made_of, runs, fast, value, undo)

    def _check_default(self, runs: Sequence[Run], stop: str, separator: str) -> None:
        default, label = self.field.default or "", self.field.shown
        if stop and (default + stop).find(stop) != len(default):
            raise ValueError(f"the default of {{{label}}} contains its separator")
        if separator and separator in default:
            raise ValueError(f"the default of {{{label}}} contains the separator")
        if self.type == "B" or not re.fullmatch(expression(runs, None), default, re.DOTALL):
            raise ValueError(f"the default of {{{label}}} is nothing that its filters could make")


def expression(runs: Sequence[Run], after: str | Field | None) -> str:
    """Return the regular expression of a field in a text; `after` is the part that follows it."""
    if runs == NUMBER_RUNS:
        return "0|-?[1-9][0-9]*"
    if isinstance(after, str) and len(after) > 1 and any(run.others for run in runs):
        (run,) = runs
        character = Run(run.chars, 1, 1, run.others)
        return f"(?:(?!{re.escape(after)}){character.expression})+"
    return "".join(run.expression for run in runs)


def without(*stops: str) -> Run:
    """Return a run of any text without these; a stop of several characters is ignored."""
    return Run(frozenset(stop for stop in stops if len(stop) == 1), 1, None, others=True)


def _plain(name: str, stops: set[str], slow: Callable[[Scope], str]) -> Callable[[Scope], str]:
    """Return a faster function than `slow` with the same results."""
    first, second = (*stops, "", "")[:2]
    if any(len(stop) > 1 for stop in stops):
        return slow

    def text(scope: Scope) -> str:
        value = scope.get(name)
        content = None if value is None else value.get("S")
        if content and not (first and first in content) and not (second and second in content):
            return str(content)
        return slow(scope)

    return text


def _text_of(value: TypedValue, label: str) -> str:
    if "S" in value:
        raise Unmappable(f"{label!r} is empty")
    if "N" not in value:
        raise Unmappable(f"{label!r} is of type {next(iter(value))}: it is no text")
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
    """A compiled text; `split` returns the parts of its fields, or None for another form."""

    fields: Sequence[CompiledField]
    look: Look
    render: Callable[[Scope], TypedValue]
    split: Callable[[TypedValue], Sequence[Any] | None]


def compiled(text: str, types: Types, key_type: KeyType | None, separator: str = "") -> Compiled:
    """Compile a text whose value must be of type `key_type` (None for any), or raise ValueError."""
    parts = parsed(text)
    if len(parts) == 1 and isinstance(parts[0], Field):
        alone = Chain.of(parts[0], types, key_type)
        if not alone.is_text:
            return _whole(alone, key_type)
    if key_type not in (None, "S"):
        raise ValueError(f"it makes a text, and the key is of type {key_type}")
    if not parts:
        raise ValueError("it is empty")
    return _joined(parts, types, key_type, separator if len(parts) > 1 else "")


def whole(name: str, type_: KeyType) -> Compiled:
    """Return a text that is an attribute as a whole, whatever its name."""
    return _whole(Chain.of(Field((name,)), {}, type_), type_)


def _whole(chain: Chain, key_type: KeyType | None) -> Compiled:
    if key_type is not None and chain.type != key_type:
        raise ValueError(
            f"{{{chain.field.shown}}} is of type {chain.type}, and the key of type {key_type}: "
            f"{_MENDS.get((chain.type, key_type), 'take another attribute')}"
        )
    type_, field = chain.type, chain.compiled(None, "", chain.undone(of_text=False))

    def split(value: TypedValue) -> Sequence[Any] | None:
        return (value,) if type_ is None or type_ in value else None

    runs = field.looks if type_ == "S" else None
    return Compiled([field], Look(type_, runs), field.value, split)


def _joined(
    parts: Sequence[str | Field], types: Types, key_type: KeyType | None, separator: str
) -> Compiled:
    fields: list[CompiledField] = []
    makers: list[Callable[[Scope], str]] = []
    runs: list[Run] = []
    form = look = ""
    for part, after in zip(parts, [*parts[1:], None], strict=True):
        if isinstance(part, str):
            form += part.replace("%", "%%")
            runs += literal(part)
            look += re.escape(part)
            continue
        chain = Chain.of(part, types, key_type if len(parts) == 1 else None)
        if chain.type == "B":
            raise ValueError(f"{{{part.shown}}} is of type B: it stands alone, or is hashed")
        field = chain.compiled(after, separator, chain.undone(of_text=True))
        fields.append(field)
        makers.append(field.text)
        form += "%s"
        runs += field.looks
        look += f"({expression(field.looks, after)})"
    matched = re.compile(look, re.DOTALL).fullmatch

    def render(scope: Scope) -> TypedValue:
        return {"S": form % tuple([make(scope) for make in makers])}

    def split(value: TypedValue) -> Sequence[Any] | None:
        text = value.get("S")
        match = None if text is None else matched(text)
        return None if match is None else match.groups()

    if not fields:
        constant = {"S": form % ()}
        return Compiled((), Look("S", tuple(runs)), lambda _scope: constant, split)
    return Compiled(fields, Look("S", tuple(runs)), render, split)
