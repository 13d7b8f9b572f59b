"""The Transform of a template's rules. Pure.

Both directions are checked on each item, which is Unmappable if it is not equal after the way back.
So the mappable items of one side and their forms on the other are one to one, whatever a rule says.
"""

from collections.abc import Callable, Sequence

from keyhop.dynamodb.values import Item, Key, same
from keyhop.rekey.template.rule import Rule
from keyhop.rekey.transform import KeyNames, Kind, Transform, Unmappable


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
