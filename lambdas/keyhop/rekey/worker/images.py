"""What stream records, and looks at items, say to the protocol: images, places, source keys. Pure.

A *frozen key* stands for a key where keys are compared: equal keys have the same one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keyhop.dynamodb.schema import MARKER
from keyhop.dynamodb.values import Item, Key, canonical, from_json, same_item, size_of, with_bytes
from keyhop.errors import CannotStart
from keyhop.rekey.side.layout import MARKER_ATTRIBUTE
from keyhop.rekey.transform import KeyNames, Transform, Unmappable, check_key

FrozenKey = tuple[tuple[str, str, str | bytes], ...]
MARK = {"N": "1"}
VIEW = "NEW_AND_OLD_IMAGES"
Record = Mapping[str, Any]
Values = Mapping[str, Any]
"""Attributes by which an item's owner is told; None for one that is not there."""


def frozen(key: Key) -> FrozenKey:
    """A key's attributes, in the order of their names: keys that were JSON come in it, too."""
    return tuple((name, *canonical(key[name])) for name in sorted(key))


def thawed(key: Any) -> dict[str, Any]:
    """The inverse, as requests have it; of a frozen key, also as the protocol has handed it on."""
    return {name: {type_: content} for name, type_, content in key}


class Image:
    """An item of the table that replicates; its form in the other one is made when it is asked for.

    Equal if the items are: numbers by value, sets in any order.
    """

    __slots__ = ("_made", "_there", "_transform", "_why", "item")

    def __init__(self, item: Item, transform: Transform) -> None:
        self.item = item
        self._transform = transform
        self._made = False
        self._there: Item | None = None
        self._why = ""

    @property
    def there(self) -> Item | None:
        """Its form in the other table; None if it has none there."""
        if not self._made:
            self._make()
        return self._there

    @property
    def why_unmappable(self) -> str:
        """Empty for one that has a form there, or is left out on purpose."""
        if not self._made:
            self._make()
        return self._why

    @property
    def place(self) -> FrozenKey | None:
        there = self.there
        return None if there is None else frozen(self._transform.destination.of(there))

    @property
    def owner_values(self) -> Values | None:
        """What tells its owner, where it lies."""
        there = self.there
        return None if there is None else owner_values(there, self._transform)

    @property
    def bytes(self) -> int:
        return size_of(self.item)

    def _make(self) -> None:
        try:
            there = self._transform.forward(self.item)
            if there is not None:
                check_key(self._transform.destination, there)
            self._there = there
        except Unmappable as error:
            self._why = str(error)
        except Exception as error:  # a function of somebody's; its message may hold values
            self._why = f"the template's function raised {type(error).__name__}"
        self._made = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Image) and same_item(self.item, other.item)

    def __hash__(self) -> int:
        return hash(frozen(self._transform.source.of(self.item)))


def owner_values(there: Item, transform: Transform) -> Values:
    """What an item there has in the attributes by which its owner is told."""
    return {name: there.get(name) for name in transform.owner_attributes}


def place_of(image: Any) -> FrozenKey | None:
    """As the protocol asks for it."""
    return None if image is None else image.place


@dataclass(slots=True)
class Change:
    """What the records of one source key in a batch say.

    places: where its images lie in the other table, with what tells the owner there. image: the
    newest, None if the item was removed. newest: when that was written (seconds since 1970).
    unmapped: whether any of the images has no form there.
    """

    source: FrozenKey
    places: dict[FrozenKey, Values] = field(default_factory=dict)
    image: Image | None = None
    newest: float = 0.0
    unmapped: bool = False

    @property
    def bytes(self) -> int:
        return 0 if self.image is None else self.image.bytes


@dataclass(frozen=True, slots=True)
class Told:
    """What a batch tells. markers: those that it brings, with the record's id."""

    changes: list[Change]
    markers: dict[str, str]


def by_key(records: Iterable[Mapping[str, Any]], names: KeyNames) -> list[list[Record]]:
    """Records as Lambda gets them, those of each key together, in the order in which they come."""
    groups: dict[FrozenKey, list[Record]] = {}
    for record in records:
        groups.setdefault(key_in(record, names), []).append(record)
    return list(groups.values())


def key_in(record: Record, names: KeyNames) -> FrozenKey:
    """The primary key that a record is about."""
    key = from_json(record["dynamodb"]["Keys"])
    return frozen({name: key[name] for name in names.all})


def is_sentinel(item: Item, names: KeyNames) -> bool:
    """Whether it is one of a key index: the marker beside its key, and nothing else."""
    return item.get(MARKER) == MARK and len(item) == len(names.all) + 1


def is_marker(item: Item, names: KeyNames) -> bool:
    """Whether it is one of a drain: its key and the marker, and nothing else."""
    return "S" in item.get(MARKER_ATTRIBUTE, {}) and len(item) == len(names.all) + 1


def changes_of(records: Iterable[Record], transform: Transform) -> Told:
    """From records as Lambda gets them; those of one key in the order in which they come.

    Sentinels of a key index are left out. Raises CannotStart for a stream that brings no images.
    """
    changes: dict[FrozenKey, Change] = {}
    markers: dict[str, str] = {}
    for record in records:
        told = record["dynamodb"]
        images = [with_bytes(told[name]) for name in ("OldImage", "NewImage") if name in told]
        if not images and told.get("StreamViewType") == VIEW:
            continue  # nothing was there, and nothing is: DynamoDB Local tells of such deletes
        if not images:
            raise CannotStart(
                "The stream's records hold no images: its view type must be NEW_AND_OLD_IMAGES."
            )
        if all(is_marker(image, transform.source) for image in images):
            markers |= {
                image[MARKER_ATTRIBUTE]["S"]: str(record.get("eventID", "")) for image in images
            }
            continue
        if all(is_sentinel(image, transform.source) for image in images):
            continue
        key = key_in(record, transform.source)
        change = changes.setdefault(key, Change(key))
        change.image = None
        for image in (Image(item, transform) for item in images):
            place = image.place
            if place is not None:
                change.places[place] = image.owner_values or {}
            change.unmapped = change.unmapped or bool(image.why_unmappable)
            change.image = image if image.item is images[-1] and "NewImage" in told else None
        change.newest = float(told.get("ApproximateCreationDateTime", 0.0))
    return Told(list(changes.values()), markers)


def newest_of(records: Sequence[Record]) -> float:
    """When the newest of these was written, seconds since 1970; 0 for none that tells."""
    times = (record["dynamodb"].get("ApproximateCreationDateTime", 0.0) for record in records)
    return max(map(float, times), default=0.0)
