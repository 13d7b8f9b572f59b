"""One rule of a template: which items it is for, what it makes of them, and how that is undone.

What travels: all attributes but the source's key and what the rule sets. Pure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.values import Item, Key, TypedValue
from keyhop.rekey.template.field import Scope
from keyhop.rekey.template.text import Compiled
from keyhop.rekey.transform import KeyNames, Unmappable, check_key


@dataclass(frozen=True, slots=True)
class Step:
    """A look at an attribute of a destination item, which finds names of the source again.

    finds: the field's place among those of the attribute, the name, and what makes the value.
    is_sign: without it an item is none that the rule makes.
    """

    attribute: str
    split: Callable[[TypedValue], Sequence[Any] | None]
    finds: Sequence[tuple[int, str, Callable[[Any], TypedValue]]]
    is_sign: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """match: of the source's key always, and of other attributes. sets: of the destination's key
    always. keep: names in the source, and in the destination.

    owner_steps: those that the source's key is found by; steps: the others. refill: attributes of
    the source that are rendered from what the steps find; of these `keys` are its key.
    """

    name: str
    source: KeyNames
    destination: KeyNames
    match: Mapping[str, Compiled]
    sets: Mapping[str, Compiled]
    keep: Mapping[str, str]
    owner_steps: Sequence[Step]
    steps: Sequence[Step]
    refill: Mapping[str, Callable[[Scope], TypedValue]]
    dropped: frozenset[str]
    """Attributes of a destination item that do not travel back as they are."""

    def bind(self, item: Item) -> Scope | None:
        """The item and its variables; None if the rule is not for it."""
        bound: dict[str, TypedValue] = {}
        for name, one in self.match.items():
            value = item.get(name)
            parts = None if value is None else one.split(value)
            if parts is None:
                return None
            for field, part in zip(one.fields, parts, strict=True):
                assert field.undo is not None  # looked at when the rule was read
                found = field.undo(part)
                if bound.setdefault(field.field.name, found) != found:
                    return None
        return {**item, **bound}

    def there(self, item: Item, scope: Scope) -> dict[str, TypedValue]:
        """The destination item. Raises Unmappable."""
        try:
            made = {name: one.render(scope) for name, one in self.sets.items()}
            check_key(self.destination, made)
        except Unmappable as error:
            raise Unmappable(f"rule {self.name!r}: {error}") from None
        there = dict(item)
        for name in self.source.all:
            del there[name]
        for name, kept in self.keep.items():
            if name in item:
                there[kept] = item[name]
        there.update(made)
        return there

    def place(self, scope: Scope) -> Key:
        """The destination's key alone. Raises Unmappable."""
        return {name: self.sets[name].render(scope) for name in self.destination.all}

    def here(self, item: Item) -> dict[str, TypedValue] | None:
        """The source item of one that the rule has made; None if it has not. Raises Unmappable."""
        found = self._found(item, self.owner_steps)
        if found is None:
            return None
        if self.steps:
            found.update(self._found(item, self.steps) or {})
        here = dict(item)
        for name in self.dropped:
            here.pop(name, None)
        self._unkeep(item, here)
        for name, render in self.refill.items():
            here[name] = render(found)
        return here

    def owner(self, item: Item) -> Key | None:
        """The source's key alone; None if the rule has not made the item. Raises Unmappable."""
        found = self._found(item, self.owner_steps)
        if found is None:
            return None
        here: dict[str, TypedValue] = {}
        self._unkeep(item, here)
        for name in self.source.all:
            if name in self.refill:
                here[name] = self.refill[name](found)
        return self.source.of(here)

    def _found(self, item: Item, steps: Sequence[Step]) -> dict[str, TypedValue] | None:
        found: dict[str, TypedValue] = {}
        for step in steps:
            value = item.get(step.attribute)
            parts = None if value is None else step.split(value)
            if parts is None:
                if step.is_sign:
                    return None
                raise Unmappable(
                    f"rule {self.name!r}: {step.attribute!r} is not as the rule sets it"
                )
            for place, name, undo in step.finds:
                found[name] = undo(parts[place])
        return found

    def _unkeep(self, item: Item, here: dict[str, TypedValue]) -> None:
        for name, kept in self.keep.items():
            if kept in item:
                here[name] = item[kept]
            elif name in self.source.all and name not in self.refill:
                raise Unmappable(f"rule {self.name!r}: {kept!r} is missing, which keeps {name!r}")
