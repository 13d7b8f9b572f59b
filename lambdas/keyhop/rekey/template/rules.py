"""The Transform of a template's rules. Pure.

Both directions are checked on each item, which is Unmappable if it is not equal after the way back.
So the mappable items of one side and their forms on the other are one to one, whatever a rule says.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from keyhop.dynamodb.values import Item, Key, TypedValue, same
from keyhop.rekey.template.text import Compiled, Scope
from keyhop.rekey.transform import KeyNames, Kind, Transform, Unmappable, check_key


@dataclass(frozen=True, slots=True)
class Step:
    """A search in an attribute of a destination item for names of the source, each with its
    position and the function that makes its value. A sign shows whether the rule has made the item.
    """

    attribute: str
    split: Callable[[TypedValue], Sequence[Any] | None]
    finds: Sequence[tuple[int, str, Callable[[Any], TypedValue]]]
    is_sign: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a template, with the steps that find the source's key, and the other steps.

    The destination item has all attributes of the source item but its key and those that are set.

    Attributes:
        match: The texts of the source's key, and of other attributes; `sets`: of the destination.
        keep: The names in the destination by the names in the source.
        refill: Attributes of the source that are rendered from the values of the steps.
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
    """Attributes of a destination item that the source item does not have unchanged."""

    def bind(self, item: Item) -> Scope | None:
        """Return the item and its variables; None if the rule does not match it."""
        bound: dict[str, TypedValue] = {}
        for name, text in self.match.items():
            value = item.get(name)
            parts = None if value is None else text.split(value)
            if parts is None:
                return None
            for field, part in zip(text.fields, parts, strict=True):
                assert field.undo is not None  # checked when the rule was loaded
                original = field.undo(part)
                if bound.setdefault(field.field.name, original) != original:
                    return None
        return {**item, **bound}

    @property
    def key_attributes(self) -> Mapping[str, Sequence[str]] | None:
        """See Transform. A constant in the new key is left out."""
        variables = {
            part.field.name
            for name, text in self.match.items()
            for part in text.fields
            if (len(text.fields), part.field.name) != (1, name) or not part.is_whole
        }
        parts = {name: self.sets[name].fields for name in self.destination.all}
        for part in chain.from_iterable(parts.values()):
            if not part.is_whole or part.field.name in variables:
                return None
        return {name: [part.field.name for part in fields] for name, fields in parts.items()}

    def to_destination(self, item: Item, scope: Scope) -> dict[str, TypedValue]:
        """Return the destination item, or raise Unmappable."""
        try:
            set_attributes = {name: text.render(scope) for name, text in self.sets.items()}
            check_key(self.destination, set_attributes)
        except Unmappable as error:
            raise Unmappable(f"rule {self.name!r}: {error}") from None
        mapped = dict(item)
        for name in self.source.all:
            del mapped[name]
        for name, kept_name in self.keep.items():
            if name in item:
                mapped[kept_name] = item[name]
        mapped.update(set_attributes)
        return mapped

    def place(self, scope: Scope) -> Key:
        """Return only the destination's key, or raise Unmappable."""
        return {name: self.sets[name].render(scope) for name in self.destination.all}

    def to_source(self, item: Item) -> dict[str, TypedValue] | None:
        """Return the source item of an item that the rule has made, or None for another item. Raise
        Unmappable if an attribute is missing or has another form.
        """
        values = self._found(item, self.owner_steps)
        if values is None:
            return None
        if self.steps:
            values.update(self._found(item, self.steps) or {})
        source_item = dict(item)
        for name in self.dropped:
            source_item.pop(name, None)
        self._unkeep(item, source_item)
        for name, render in self.refill.items():
            source_item[name] = render(values)
        return source_item

    def owner(self, item: Item) -> Key | None:
        """Return only the source's key; None if the rule has not made the item."""
        values = self._found(item, self.owner_steps)
        if values is None:
            return None
        source_key: dict[str, TypedValue] = {}
        self._unkeep(item, source_key)
        for name in self.source.all:
            if name in self.refill:
                source_key[name] = self.refill[name](values)
        return self.source.of(source_key)

    def _found(self, item: Item, steps: Sequence[Step]) -> dict[str, TypedValue] | None:
        values: dict[str, TypedValue] = {}
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
                values[name] = undo(parts[place])
        return values

    def _unkeep(self, item: Item, restored: dict[str, TypedValue]) -> None:
        for name, kept_name in self.keep.items():
            if kept_name in item:
                restored[name] = item[kept_name]
            elif name in self.source.all and name not in self.refill:
                raise Unmappable(
                    f"rule {self.name!r}: {kept_name!r} is missing, which keeps {name!r}"
                )


class Rules(Transform):
    """A transform by rules; `otherwise` says what happens to an item that no rule matches, and
    `reverse_attributes` identify, beside its key, a source item's place.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        otherwise: str,
        source: KeyNames,
        destination: KeyNames,
        owner_attributes: Sequence[str],
        reverse_attributes: Sequence[str],
    ) -> None:
        self.source, self.destination = source, destination
        self.owner_attributes = owner_attributes
        self.kind: Kind = "recoverable" if owner_attributes else "bijective"
        self._rules = rules
        self._otherwise = otherwise
        self._reverse = Reversed(self, reverse_attributes, self.place_told)

    @property
    def reverse(self) -> Transform:
        return self._reverse

    @property
    def key_attributes(self) -> Mapping[str, Sequence[str]] | None:
        first, *others = self._rules
        is_one_form = all(
            rule.key_attributes == first.key_attributes
            and all(rule.sets[n].look == first.sets[n].look for n in self.destination.all)
            for rule in others
        )
        return first.key_attributes if is_one_form and self._otherwise != "copy" else None

    def forward(self, item: Item) -> Item | None:
        mapped = self._there(item)
        if mapped is not None:
            back = self._here(mapped)
            if back != item:
                check_equal(item, back, "would not come back as they are: keep them")
        return mapped

    def back(self, item: Item) -> Item | None:
        returned = self._here(item)
        if returned is not None:
            mapped = self._there(returned)
            if mapped != item:
                check_equal(item, mapped, "are not as the template makes them")
        return returned

    def owner_of(self, item: Item) -> Key | None:
        """Return the owner by the key and owner_attributes, whatever else has changed."""
        try:
            for rule in self._rules:
                owner = rule.owner(item)
                if owner is not None:
                    return owner
        except Unmappable:
            return None
        return self.source.of(item) if self._otherwise == "copy" else None

    def place_told(self, item: Item) -> Key | None:
        """Return the place of a source item by its key and the reverse's owner_attributes alone."""
        try:
            for rule in self._rules:
                scope = rule.bind(item)
                if scope is not None:
                    return rule.place(scope)
        except Unmappable:
            return None
        return self.destination.of(item) if self._otherwise == "copy" else None

    def _there(self, item: Item) -> Item | None:
        for rule in self._rules:
            scope = rule.bind(item)
            if scope is not None:
                return rule.to_destination(item, scope)
        if self._otherwise == "refuse":
            raise Unmappable("no rule of the template is for it")
        return item if self._otherwise == "copy" else None

    def _here(self, item: Item) -> Item | None:
        for rule in self._rules:
            source_item = rule.to_source(item)
            if source_item is not None:
                return source_item
        if self._otherwise == "refuse":
            raise Unmappable("no rule of the template makes such an item")
        return item if self._otherwise == "copy" else None


class Reversed(Transform):
    """The other direction of a transform. `owner_attributes` identify the owner, beside its key;
    `place_told` returns the place of an item from its key and them alone.
    """

    def __init__(
        self,
        transform: Transform,
        owner_attributes: Sequence[str],
        place_told: Callable[[Item], Key | None],
    ) -> None:
        self.source, self.destination = transform.destination, transform.source
        self.owner_attributes = owner_attributes
        self.kind: Kind = "recoverable" if owner_attributes else "bijective"
        self._of, self._place_told = transform, place_told

    def forward(self, item: Item) -> Item | None:
        return self._of.back(item)

    def back(self, item: Item) -> Item | None:
        return self._of.forward(item)

    def owner_of(self, item: Item) -> Key | None:
        return self._place_told(item)

    @property
    def reverse(self) -> Transform:
        return self._of


def check_equal(item: Item, expected: Item | None, trouble: str) -> None:
    """Raise Unmappable with the names of the attributes that differ."""
    expected = expected or {}
    names = [*item, *(name for name in expected if name not in item)]
    differ = [
        n for n in names if n not in item or n not in expected or not same(item[n], expected[n])
    ]
    if differ:
        raise Unmappable(f"the attributes {', '.join(map(repr, sorted(differ)))} {trouble}")
