"""A text with fields, compiled: from the attributes of an item to a value, and from that value to
what the fields held. Pure.

A text of one field alone has the field's type; any other is of type S. In a text a field is never
empty, and does not contain what separates it from the next: so there is one way to take it apart.
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
    """split: what each field became, in their order; None if the value does not look so."""

    fields: Sequence[CompiledField]
    look: Look
    render: Callable[[Scope], TypedValue]
    split: Callable[[TypedValue], Sequence[Any] | None]


def compiled(text: str, types: Types, wanted: KeyType | None, separator: str = "") -> Compiled:
    """wanted: the type that the value must have; None for any. Raises ValueError."""
    parts = parsed(text)
    if len(parts) == 1 and isinstance(parts[0], Field):
        alone = Chain.of(parts[0], types, wanted)
        if not alone.is_text:
            return _whole(alone, wanted)
    if wanted not in (None, "S"):
        raise ValueError(f"it makes a text, and the key is of type {wanted}")
    if not parts:
        raise ValueError("it is empty")
    return _joined(parts, types, wanted, separator if len(parts) > 1 else "")


def whole(name: str, type_: KeyType) -> Compiled:
    """An attribute as it is, whatever its name."""
    return _whole(Chain.of(Field((name,)), {}, type_), type_)


def _whole(chain: Chain, wanted: KeyType | None) -> Compiled:
    if wanted is not None and chain.type != wanted:
        raise ValueError(
            f"{{{chain.field.shown}}} is of type {chain.type}, and the key of type {wanted}: "
            f"{_MENDS.get((chain.type, wanted), 'take another attribute')}"
        )
    type_, field = chain.type, chain.compiled(None, "", chain.undone(of_text=False))

    def split(value: TypedValue) -> Sequence[Any] | None:
        return (value,) if type_ is None or type_ in value else None

    runs = field.looks if type_ == "S" else None
    return Compiled([field], Look(type_, runs), field.value, split)


def _joined(
    parts: Sequence[str | Field], types: Types, wanted: KeyType | None, separator: str
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
        chain = Chain.of(part, types, wanted if len(parts) == 1 else None)
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
        found = None if text is None else matched(text)
        return None if found is None else found.groups()

    if not fields:
        constant = {"S": form % ()}
        return Compiled((), Look("S", tuple(runs)), lambda _scope: constant, split)
    return Compiled(fields, Look("S", tuple(runs)), render, split)
