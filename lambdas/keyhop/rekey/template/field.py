"""A field of a template: what it finds in an item, its filters, and how these are undone. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.values import KeyType, TypedValue
from keyhop.rekey.template.filters import NUMBER_RUNS, Filter, filter_of, integer_text
from keyhop.rekey.template.looks import ANY, DIGITS, Run
from keyhop.rekey.template.syntax import Field
from keyhop.rekey.transform import Unmappable

Scope = Mapping[str, TypedValue]
"""An item's attributes, and over them the variables that `match` has bound."""
Types = Mapping[str, KeyType]
"""Of variables and source keys, by name; an attribute that is not in it may be of any type."""
Undone = Callable[[Any], TypedValue] | None


@dataclass(frozen=True, slots=True)
class CompiledField:
    """text, value: of it, with filters; raise Unmappable. bound_type, type: of the value without
    filters and with them; None for any.

    undo: what the field was made of, from what it became: a text within a text, or a typed value
    of a field that stands alone. None if that is lost.
    """

    field: Field
    bound_type: KeyType | None
    type: KeyType | None
    looks: tuple[Run, ...]
    text: Callable[[Scope], str]
    value: Callable[[Scope], TypedValue]
    undo: Undone


@dataclass(frozen=True, slots=True)
class Chain:
    """A field and its filters. of, type: of the value before and after these; None for any."""

    field: Field
    of_type: KeyType | None
    filters: Sequence[Filter]
    type: KeyType | None

    @classmethod
    def of(cls, field: Field, types: Types, wanted: KeyType | None) -> "Chain":
        """wanted: what it becomes if it does not say so itself."""
        known = types.get(field.name) if len(field.path) == 1 else None
        if field.name in types and len(field.path) > 1:
            raise ValueError(
                f"{{{field.shown}}} steps into a key or a variable, which has no parts"
            )
        if known and field.type not in (None, known):
            raise ValueError(f"{field.shown!r} is of type {known}, and not {field.type}")
        of_type = type_ = field.type or known
        filters = [filter_of(name, argument) for name, argument in field.filters]
        for (name, _), one in zip(field.filters, filters, strict=True):
            if type_ is not None and type_ not in one.takes:
                raise ValueError(f"the filter {name} of {field.shown!r} cannot take type {type_}")
            type_ = one.gives
        if not filters and of_type is None:
            of_type = type_ = wanted
        return cls(field, of_type, filters, type_)

    @property
    def is_text(self) -> bool:
        """Whether it is to be taken as a text of one field: filters make a text, or a default."""
        return self.type == "S" and bool(self.filters or self.field.default is not None)

    def looks(self) -> tuple[Run, ...]:
        """Of the text that it becomes."""
        if self.filters:
            return self.filters[-1].looks
        return NUMBER_RUNS if self.type == "N" else (ANY,)

    def made(self) -> Callable[[Scope], TypedValue | None]:
        """The value with filters; None if it is missing. Raises Unmappable."""
        shown, type_, look = self.field.shown, self.of_type, _looked_up(self.field.path)
        applied = [one.apply for one in self.filters]
        takes = type_ or (self.filters[0].takes if self.filters else "")

        def make(scope: Scope) -> TypedValue | None:
            value = look(scope)
            if value is None:
                return None
            if takes and next(iter(value)) not in takes:
                raise Unmappable(f"{shown!r} is of type {next(iter(value))}, and not {takes}")
            try:
                for apply in applied:
                    value = apply(value)
            except Unmappable as error:
                raise Unmappable(f"{shown!r} {error}") from None
            return value

        return make if takes else look

    def undone(self, of_text: bool) -> Undone:
        """of_text: it stands in a text."""
        before: KeyType = self.of_type or "S"
        types: list[KeyType] = [before, *(one.gives for one in self.filters)]
        if any(one.undo is None for one in self.filters) or (of_text and types[-1] == "B"):
            return None
        last = types[-1]
        if not self.filters:
            return (lambda text: {last: text}) if of_text else (lambda value: value)
        steps = [(o.undo, t) for o, t in zip(self.filters, types, strict=False) if o.undo]

        def undo(given: Any) -> TypedValue:
            value: TypedValue = {last: given} if of_text else given
            for step, type_ in reversed(steps):
                value = step(value, type_)
            return value

        return undo

    def compiled(self, after: str | Field | None, separator: str, undo: Undone) -> CompiledField:
        """after: what follows it in a text."""
        shown, default, make = self.field.shown, self.field.default, self.made()
        runs = self.looks()
        if isinstance(after, Field) and not all(run.is_fixed for run in runs):
            raise ValueError(
                f"{{{shown}}} and {{{after.shown}}} touch: put a separator between them, or give "
                "the first a fixed width, as |pad:4"
            )
        stop = after if isinstance(after, str) and not all(run.is_fixed for run in runs) else ""
        if stop and runs[-1].chars == DIGITS and stop[0] in DIGITS:
            raise ValueError(f"the separator after {{{shown}}} begins with a digit")
        if default is not None:
            self._check_default(runs, stop, separator)
        if any(run.others for run in runs):
            runs = (without(separator, stop),)
        type_: KeyType = self.type or "S"
        missing = f"{shown!r} is missing, and has no default"

        def value(scope: Scope) -> TypedValue:
            made = make(scope)
            if made is not None:
                return made
            if default is None:
                raise Unmappable(missing)
            return {type_: default}

        def text(scope: Scope) -> str:
            made = value(scope)
            found = made.get("S") or _text_of(made, shown)
            # Of a separator of several characters the first may end the value.
            if stop and (found + stop).find(stop) != len(found):
                raise Unmappable(f"{shown!r} contains its separator")
            if separator and separator in found:
                raise Unmappable(f"{shown!r} contains the separator")
            return found

        made_of = self.of_type, self.type
        is_plain = not self.filters and self.of_type in (None, "S") and len(self.field.path) == 1
        fast = _plain(self.field.name, {stop, separator} - {""}, text) if is_plain else text
        return CompiledField(self.field, *made_of, runs, fast, value, undo)

    def _check_default(self, runs: Sequence[Run], stop: str, separator: str) -> None:
        default, shown = self.field.default or "", self.field.shown
        if stop and (default + stop).find(stop) != len(default):
            raise ValueError(f"the default of {{{shown}}} contains its separator")
        if separator and separator in default:
            raise ValueError(f"the default of {{{shown}}} contains the separator")
        if self.type == "B" or not re.fullmatch(expression(runs, None), default, re.DOTALL):
            raise ValueError(f"the default of {{{shown}}} is nothing that its filters could make")


def expression(runs: Sequence[Run], after: str | Field | None) -> str:
    """What of a text the field is, as a regular expression. after: what follows it there."""
    if runs == NUMBER_RUNS:
        return "0|-?[1-9][0-9]*"
    if isinstance(after, str) and len(after) > 1 and any(run.others for run in runs):
        (run,) = runs
        one = Run(run.chars, 1, 1, run.others)
        return f"(?:(?!{re.escape(after)}){one.expression})+"
    return "".join(run.expression for run in runs)


def without(*stops: str) -> Run:
    """Any text without these; of one of several characters nothing is known here."""
    return Run(frozenset(stop for stop in stops if len(stop) == 1), 1, None, others=True)


def _plain(name: str, stops: set[str], slow: Callable[[Scope], str]) -> Callable[[Scope], str]:
    """The same as `slow`, sooner, for a text in which nothing is unusual: most are."""
    first, second = (*stops, "", "")[:2]
    if any(len(stop) > 1 for stop in stops):
        return slow

    def text(scope: Scope) -> str:
        value = scope.get(name)
        found = None if value is None else value.get("S")
        if found and not (first and first in found) and not (second and second in found):
            return str(found)
        return slow(scope)

    return text


def _text_of(value: TypedValue, shown: str) -> str:
    if "S" in value:
        raise Unmappable(f"{shown!r} is empty")
    if "N" not in value:
        raise Unmappable(f"{shown!r} is of type {next(iter(value))}: it is no text")
    try:
        return integer_text(value["N"])
    except Unmappable as error:
        raise Unmappable(f"{shown!r} {error}") from None


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
