"""The Transform that a template's rules come to. Pure.

Both directions prove themselves on each item: what does not come back equal is Unmappable. So the
items that have a form on the other side and those forms are one to one, whatever a rule says.
"""

from collections.abc import Callable, Sequence

from keyhop.dynamodb.values import Item, Key, same
from keyhop.rekey.template.rule import Rule
from keyhop.rekey.transform import KeyNames, Kind, Transform, Unmappable


class Rules(Transform):
    """otherwise: what becomes of an item that no rule is for. reverse_attributes: attributes of a
    source item, beside its key, from which its place is told.
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
        there = self._there(item)
        if there is not None:
            back = self._here(there)
            if back != item:
                check_equal(item, back, "would not come back as they are: keep them")
        return there

    def back(self, item: Item) -> Item | None:
        here = self._here(item)
        if here is not None:
            again = self._there(here)
            if again != item:
                check_equal(item, again, "are not as the template makes them")
        return here

    def owner_of(self, item: Item) -> Key | None:
        """By its key and owner_attributes alone, whatever else has been changed in it."""
        try:
            for rule in self._rules:
                owner = rule.owner(item)
                if owner is not None:
                    return owner
        except Unmappable:
            return None
        return self.source.of(item) if self._otherwise == "copy" else None

    def place_told(self, item: Item) -> Key | None:
        """Where a source item lies, by its key and the reverse's owner_attributes alone."""
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
                return rule.there(item, scope)
        if self._otherwise == "refuse":
            raise Unmappable("no rule of the template is for it")
        return item if self._otherwise == "copy" else None

    def _here(self, item: Item) -> Item | None:
        for rule in self._rules:
            here = rule.here(item)
            if here is not None:
                return here
        if self._otherwise == "refuse":
            raise Unmappable("no rule of the template makes such an item")
        return item if self._otherwise == "copy" else None


class Reversed(Transform):
    """The other direction of a transform. place_told: its place, of an item of that one's source,
    from its key and owner_attributes alone.
    """

    def __init__(
        self,
        of: Transform,
        owner_attributes: Sequence[str],
        place_told: Callable[[Item], Key | None],
    ) -> None:
        self.source, self.destination = of.destination, of.source
        self.owner_attributes = owner_attributes
        self.kind: Kind = "recoverable" if owner_attributes else "bijective"
        self._of, self._place_told = of, place_told

    def forward(self, item: Item) -> Item | None:
        return self._of.back(item)

    def back(self, item: Item) -> Item | None:
        return self._of.forward(item)

    def owner_of(self, item: Item) -> Key | None:
        return self._place_told(item)

    @property
    def reverse(self) -> Transform:
        return self._of


def check_equal(one: Item, other: Item | None, trouble: str) -> None:
    """Raises Unmappable with the names of the attributes that differ."""
    other = other or {}
    names = [*one, *(name for name in other if name not in one)]
    differ = [n for n in names if n not in one or n not in other or not same(one[n], other[n])]
    if differ:
        raise Unmappable(f"the attributes {', '.join(map(repr, sorted(differ)))} {trouble}")
