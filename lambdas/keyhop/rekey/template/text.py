"""Compile a text with fields: render it from an item, and take a value apart into its fields. Pure.

A text that is only one field has the field's type; any other is of type S. A field in a text is
never empty, and does not contain the separator after it, so there is only one way to take it apart.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.values import KeyType, TypedValue
from keyhop.rekey.template.field import Chain, CompiledField, Scope, Types, expression
from keyhop.rekey.template.looks import Look, Run, literal
from keyhop.rekey.template.syntax import Field, parsed

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
