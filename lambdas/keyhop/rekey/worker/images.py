"""Convert stream records and items to the protocol's terms: images, places, source keys. Pure.

A *frozen key* represents a key in comparisons: equal keys have the same frozen key.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keyhop.dynamodb.schema import MARKER
from keyhop.dynamodb.values import Item, Key, canonical, from_json, same_item, size_of, with_bytes
from keyhop.errors import CannotStart
from keyhop.rekey.side.layout import MARKER_ATTRIBUTE
from keyhop.rekey.transform import KeyNames, Transform, check_key
from keyhop.template import Unmappable

SETTINGS: Mapping[str, Any] = {
    # Both are made at `start`, when the destination's stream is empty and the source's has a day.
    "StartingPosition": "TRIM_HORIZON",
    # This is a second's work of a core, so a worker that is behind catches up with few records of
    # batches and few reads of the control item, and it sees a marker after a second. It is 15 s
    # while the other table takes only 33 writes a second; a batch has 45 s, so it ends in time.
    "BatchSize": 500,
    "MaximumBatchingWindowInSeconds": 0,
    # A shard's records come from one partition, which takes 1,000 writes a second, and one function
    # can do as much. With several at once, a retry might begin with another record than the batch
    # that was killed, and would not find its record (protocol.py).
    "ParallelizationFactor": 1,
    # Half a batch also begins with another record, and so does one that is done in part.
    "BisectBatchOnFunctionError": False,
    "FunctionResponseTypes": [],
    # The worker itself gives up an item that kills it repeatedly (Replicator.work). Other errors,
    # such as a table that refuses writes, are temporary, and then no item may have been given up.
    "MaximumRetryAttempts": -1,
    "MaximumRecordAgeInSeconds": -1,
}
"""The settings of the event source mappings by which the worker follows a stream."""

FrozenKey = tuple[tuple[str, str, str | bytes], ...]
MARK = {"N": "1"}
VIEW = "NEW_AND_OLD_IMAGES"
Record = Mapping[str, Any]
Values = Mapping[str, Any]
"""Attributes that identify an item's owner; None for a missing attribute."""


def frozen(key: Key) -> FrozenKey:
    """Return a key's attributes in the order of their names, as keys from JSON have it."""
    return tuple((name, *canonical(key[name])) for name in sorted(key))


def thawed(key: Any) -> dict[str, Any]:
    """Return the key of a frozen key, as requests need it."""
    return {name: {type_: content} for name, type_, content in key}


class Image:
    """An item of the table that is replicated, mapped on first use. Images are equal if the items
    are: numbers by value, sets in any order.
    """

    __slots__ = ("_mapped", "_transform", "item")

    def __init__(self, item: Item, transform: Transform) -> None:
        self.item = item
        self._transform = transform
        self._mapped: tuple[Item | None, str] | None = None

    @property
    def there(self) -> Item | None:
        """Return the item for the other table; None if it is unmappable or excluded."""
        return self._mapping()[0]

    @property
    def why_unmappable(self) -> str:
        """Return why the item cannot be mapped; empty if it can, or is excluded on purpose."""
        return self._mapping()[1]

    @property
    def place(self) -> FrozenKey | None:
        mapped = self.there
        return None if mapped is None else frozen(self._transform.destination.of(mapped))

    @property
    def owner_values(self) -> Values | None:
        """Return the attributes that identify its owner in the other table."""
        mapped = self.there
        return None if mapped is None else owner_values(mapped, self._transform)

    @property
    def bytes(self) -> int:
        return size_of(self.item)

    def _mapping(self) -> tuple[Item | None, str]:
        if self._mapped is None:
            try:
                mapped = self._transform.forward(self.item)
                if mapped is not None:
                    check_key(self._transform.destination, mapped)
                self._mapped = mapped, ""
            except Unmappable as error:
                self._mapped = None, str(error)
            except Exception as error:  # a user's function; its message may hold values
                self._mapped = None, f"the template's function raised {type(error).__name__}"
        return self._mapped

    def __eq__(self, another: object) -> bool:
        return isinstance(another, Image) and same_item(self.item, another.item)

    def __hash__(self) -> int:
        return hash(frozen(self._transform.source.of(self.item)))


def owner_values(item: Item, transform: Transform) -> Values:
    """Return the attributes of an item in the other table that identify its owner."""
    return {name: item.get(name) for name in transform.owner_attributes}


def place_of(image: Any) -> FrozenKey | None:
    """Return the place of an image, as the protocol requires it."""
    return None if image is None else image.place


@dataclass(slots=True)
class Change:
    """The changes of one source key in a batch of records: the places of its images in the other
    table, with their owner attributes, and the newest image, or None if the item was removed. It
    was written at `newest`, in seconds since 1970. `unmapped` says that any image cannot be mapped.
    """

    source: FrozenKey
    places: dict[FrozenKey, Values] = field(default_factory=dict)
    image: Image | None = None
    newest: float = 0.0
    unmapped: bool = False

    @property
    def bytes(self) -> int:
        return 0 if self.image is None else self.image.bytes


def by_key(records: Iterable[Mapping[str, Any]], names: KeyNames) -> list[list[Record]]:
    """Return records as Lambda delivers them, grouped by key, in their order."""
    groups: dict[FrozenKey, list[Record]] = {}
    for record in records:
        groups.setdefault(key_in(record, names), []).append(record)
    return list(groups.values())


def key_in(record: Record, names: KeyNames) -> FrozenKey:
    """Return the primary key of a record."""
    key = from_json(record["dynamodb"]["Keys"])
    return frozen({name: key[name] for name in names.all})


def is_sentinel(item: Item, names: KeyNames) -> bool:
    """Return whether an item is a sentinel of a key index: it has its key and the marker only."""
    return item.get(MARKER) == MARK and len(item) == len(names.all) + 1


def is_marker(item: Item, names: KeyNames) -> bool:
    """Return whether an item is a marker of a drain: it has its key and the marker only."""
    return "S" in item.get(MARKER_ATTRIBUTE, {}) and len(item) == len(names.all) + 1


def changes_of(
    records: Iterable[Record], transform: Transform
) -> tuple[list[Change], dict[str, str]]:
    """Return the changes in records that Lambda delivers in the order of each key, without
    sentinels of a key index, and the markers, with the ids of their records. Raise CannotStart if
    the records have no images.
    """
    changes: dict[FrozenKey, Change] = {}
    markers: dict[str, str] = {}
    for record in records:
        content = record["dynamodb"]
        images = [with_bytes(content[name]) for name in ("OldImage", "NewImage") if name in content]
        if not images and content.get("StreamViewType") == VIEW:
            continue  # DynamoDB Local also reports a delete of no item
        if not images:
            raise CannotStart(
                "The stream's records contain no images: its view type must be NEW_AND_OLD_IMAGES."
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
            change.image = image if image.item is images[-1] and "NewImage" in content else None
        change.newest = float(content.get("ApproximateCreationDateTime", 0.0))
    return list(changes.values()), markers


def newest_of(records: Sequence[Record]) -> float:
    """Return when the newest record was written, in seconds since 1970; 0 if no record says so."""
    times = (record["dynamodb"].get("ApproximateCreationDateTime", 0.0) for record in records)
    return max(map(float, times), default=0.0)
