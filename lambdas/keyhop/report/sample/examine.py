"""The reads of one drawn segment, and its row: collections, lengths and places. Pure (see asks.py).

A walk through a segment hops as skip-scans do (scan/skip_scan.py), with whole items. A segment is
drawn without regard to its content, so each collection has an equal chance at any length. The
length of a collection is estimated without reading it: statistics/window.py decides what to read
next, and evaluates it.

A constraint item, such as unique#email#x@example.org, names its primary's key in one of its
attributes: by a value with a type tag, or in an attribute whose name means a reference. If the
primary does not exist, it may have been deleted without its constraint, which then blocks the value
forever. Many applications name constraints after the value, such as EMAIL#x@example.org. These are
recognised by their primary, which has the value in an attribute.
"""

import math
import random
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.units import BLOCK_BYTES, UNITS_PER_BLOCK
from keyhop.dynamodb.values import Item, Key, TypedValue, has_values, size_of
from keyhop.report.estimate import Estimate
from keyhop.report.forms import KeyForm, is_ahead, is_bucket, rest_of, tag_of
from keyhop.report.sample.asks import Ask, Asks
from keyhop.report.sample.rows import (
    DAY_SECONDS,
    CollectionRow,
    DrawRow,
    Looking,
    Observation,
    SegmentRow,
)
from keyhop.report.statistics.sort_key import SortKey, moment_of
from keyhop.report.statistics.window import LengthProber
from keyhop.scan.page_size import FILL
from keyhop.scan.skip_scan import BEGINNING, Page, Position, advance, collapse

PROBE_UNITS = 4.0
"""The read units of one length of many: its error matters less than how lengths differ. They are
for three windows; with two, a Gini coefficient of many lengths is often too far off."""

THROUGH_UNITS = 6.0
"""The read units of a collection with sort keys that are not numbers: they read 48 KB, and most
collections are shorter."""

ITEMS_OF_A_PAGE = 400
"""The maximum number of items of a page where every item is read: large pages waste less of their
last block."""

DRAW_PAGES = 3
"""The maximum number of pages of a segment of an index, which should hold one."""

MOST_PER_BLOCK = 100
"""The maximum number of items of a window: more hardly improve a length, and take longer."""

PLACE_BITS = 12
TAGS = frozenset({"unique", "uniq", "unq", "uq", "uniqueness", "constraint"})
_TAG_WORDS = re.compile(r"[^\W\d_a-z]+(?![a-z])|[^\W\d_]?[^\W\d_A-Z]+")
_USUAL_DELIMITERS = "#|:/~$=_"
_TYPE = re.compile(r"_*(entity[_-]?)?(type|kind)_*", re.IGNORECASE)
_ID = re.compile(r"[_-]?(id|key|ref)$", re.IGNORECASE)
_REFERS = re.compile(r"(owner|primary|parent|ref|target|entity|belongs)([_-]?\w*)?", re.IGNORECASE)
MOST_BESIDE = 3
"""The maximum number of attributes beside keys of an item that only reserves a value."""
MOST_CHECKED = 250
"""The segments of a table that is read whole whose items may be looked for: of about 2,000 keys."""
MOST_LOOKED_FOR = 3
"""The maximum number of primaries to look up for one item, at half a unit each."""

Weighted = tuple[Item, float]
"""An item, and the number of items of its collection that it represents."""


@dataclass(frozen=True, slots=True)
class Examination:
    """The settings by which the segments of one table are read.

    Attributes:
        segments: The number of segments of the table.
        looking: The settings of observations.
        ours: The attributes that identify items of Keyhop.
        seed: The seed of random places.
        observed_share: The share of the segments whose items are observed.
        through: Whether every item is read.
    """

    space: KeySpace
    segments: int
    looking: Looking
    ours: tuple[Key, ...] = ()
    seed: str = ""
    observed_share: float = 1.0
    through: bool = False

    def segment(self, number: int, probed: bool) -> Asks[SegmentRow]:
        """Read a segment of the table.

        Args:
            number: The number of the segment.
            probed: Whether collections with unread items are probed for their lengths.
        """
        hop = self.space.sort is not None and not self.through
        collections = yield from walk(self.space, number, self.segments, self.ours, hop)
        rows: list[CollectionRow] = []
        is_checked = random.Random(f"{self.seed} {number} refers").random() < self.checked
        is_observed = (
            probed and random.Random(f"{self.seed} {number}").random() < self.observed_share
        )
        for collection in collections:
            length = None
            is_whole, weighted = not collection.cut, [(item, 1.0) for item in collection.items]
            # If only an item of Keyhop was read, the key may not exist.
            if collection.cut and (probed or not collection.items):
                units = PROBE_UNITS if probed else 0.0
                chance = random.Random(f"{self.seed} {number} {len(rows)}")
                mean = statistics.fmean(map(size_of, collection.items or [{}]))
                length, weighted = yield from probe(
                    self.space,
                    collection.key,
                    mean,
                    self.ours,
                    units,
                    chance,
                    THROUGH_UNITS,
                    collection.items,
                )
                is_whole = length.level == 1.0
            if not weighted:
                continue
            row = self._row(collection.key, is_whole, length, weighted, is_observed)
            if probed:
                row = replace(row, orphan=(yield from self._orphan(collection, is_checked)))
            rows.append(row)
        return SegmentRow(number, probed, tuple(rows))

    @property
    def checked(self) -> float:
        """Return the share of the segments whose items may be constraints without such a name."""
        return MOST_CHECKED / self.segments if self.through else 1.0

    def _orphan(self, collection: "Seen", is_checked: bool) -> Asks[bool | None]:
        """Return whether a constraint has no primary; None for other collections."""
        sort = self.space.sort.name if self.space.sort else ""
        if is_constraint(collection.key, collection.items, sort):
            orphan = yield from is_orphan(self.space, collection.key, collection.items)
            return orphan
        if is_checked and not collection.cut and len(collection.items) == 1:
            item = collection.items[0]
            keys = {name for names, _ in self.looking.indexes.values() for name in names}
            attributes = item.keys() - keys - {*self.space.names}
            if self.looking.ttl not in item and len(attributes) <= MOST_BESIDE:
                orphan = yield from is_reserved(self.space, collection.key, item)
                return orphan
        return None

    def _row(
        self,
        key: Key,
        is_whole: bool,
        length: Estimate | None,
        weighted: Sequence[Weighted],
        is_observed: bool,
    ) -> CollectionRow:
        observations: tuple[Observation, ...] = ()
        if is_observed:
            observations = tuple(
                Observation.of(item, self.looking, weight) for item, weight in weighted
            )
        return CollectionRow(
            key=self.looking.shower.shown(key),
            form=self._form(min(key), key[min(key)]),
            items=len(weighted),
            whole=is_whole,
            length=None if is_whole else length,
            observations=observations,
            times=self._times(weighted),
        )

    def _form(self, name: str, value: TypedValue) -> KeyForm:
        """Return the form of a key. A future date is not a time of writing, so not a date."""
        form = KeyForm.of(value)
        if is_bucket(name, value, self.looking.now):
            return replace(form, dated=True, number=None)
        if form.dated and is_ahead(value, self.looking.now):
            return replace(form, dated=False)
        return form

    def _times(self, weighted: Sequence[Weighted]) -> tuple[float, float] | None:
        """Return CollectionRow.times."""
        if (sort := self.space.sort) is None:
            return None
        moments = [moment_of(sort_key(item[sort.name])) for item, _ in weighted]
        times = [moment for moment in moments if moment is not None]
        if 2 * len(times) <= len(moments):
            return None
        now = self.looking.now
        return round((now - min(times)) / DAY_SECONDS, 1), round(
            (now - max(times)) / DAY_SECONDS, 1
        )

    def draw(self, index: str, number: int, segments: int, names: Sequence[str]) -> Asks[DrawRow]:
        """Read a segment of an index.

        Args:
            index: The name of the index.
            number: The number of the segment.
            segments: The number of segments of the index.
            names: The attributes of its partition key.
        """
        show = self.looking.shower.shown
        items, is_whole = yield from self._read(index, number, segments)
        keys = Counter(show(self.space.partition_of(item)) for item in items)
        entries = Counter(show({name: item[name] for name in names}) for item in items)
        return DrawRow(index, number, segments, is_whole, dict(keys), dict(entries))

    def entries(self, index: str, number: int, segments: int) -> Asks[Sequence[Item]]:
        """Read the entries of an index's segment that `draw` reads."""
        items, _ = yield from self._read(index, number, segments)
        return items

    def _read(self, index: str, number: int, segments: int) -> Asks[tuple[list[Item], bool]]:
        """Read entries of an index's segment, and return whether those are all."""
        items: list[Item] = []
        start: Key | None = None
        for _ in range(DRAW_PAGES):
            answer = yield Ask.scan(number, segments, start, index)
            items += [item for item in answer.items if not is_ours(item, self.ours)]
            start = answer.next
            if start is None:
                return items, True
        return items, False


@dataclass(slots=True)
class Seen:
    """A collection, with the items that were read from its beginning.

    Attributes:
        key: The partition key.
        items: The items in order, without items of Keyhop.
        cut: Whether there may be more.
    """

    key: Key
    items: list[Item] = field(default_factory=list)
    cut: bool = False


def walk(
    space: KeySpace, segment: int, segments: int, ours: Sequence[Key] = (), hop: bool = True
) -> Asks[list[Seen]]:
    """Return each collection of a segment.

    Args:
        space: The keys of the table.
        segment: The number of the segment.
        segments: The number of segments of the table.
        ours: The attributes that identify items of Keyhop.
        hop: Whether to skip the rest of a collection; otherwise each item is read.
    """
    collections: list[Seen] = []
    position: Position | None = BEGINNING
    while position is not None:
        limit = None if hop else ITEMS_OF_A_PAGE
        answer = yield Ask.scan(segment, segments, position.start, limit=limit)
        keys, runs = collapse(answer.items, space.names)
        page = Page(keys, runs, answer.next, answer.units, answer.items)
        step = advance(space, position, page, hop)
        first = 0
        for key, run in zip(keys, runs, strict=True):
            if not collections or collections[-1].key != key:
                collections.append(Seen(key))
            read = answer.items[first : first + run]
            collections[-1].items += [item for item in read if not is_ours(item, ours)]
            collections[-1].cut = False
            first += run
        position = step.position
        if hop and collections and position is not None and position.last == collections[-1].key:
            collections[-1].cut = True
    return collections


def is_ours(item: Item, ours: Sequence[Key]) -> bool:
    """Return whether an item belongs to Keyhop.

    Args:
        item: The item.
        ours: The attributes that identify items of Keyhop.
    """
    return any(has_values(item, attributes) for attributes in ours)


def probe(
    space: KeySpace,
    key: Key,
    mean: float,
    ours: Sequence[Key],
    units: float,
    chance: random.Random,
    through: float = 0.0,
    head: Sequence[Item] = (),
) -> Asks[tuple[Estimate, list[Weighted]]]:
    """Estimate the length of a collection of a table with a sort key.

    If every item was read, the length is exact.

    Args:
        space: The keys of the table.
        key: The partition key.
        mean: The approximate bytes of an item.
        ours: The attributes that identify items of Keyhop.
        units: The approximate read units to use.
        chance: The random numbers.
        through: The read units to read it from its beginning, perhaps to its end, if its sort keys
            are not numbers.
        head: Items from its beginning that were read, if it has more.

    Returns:
        The length, and the items that were read.
    """
    assert space.sort is not None
    sort = space.sort
    per_block = min(MOST_PER_BLOCK, max(1, int(FILL * BLOCK_BYTES / max(1.0, mean))))
    items_by_key = {sort_key(item[sort.name]): item for item in head}
    prober = LengthProber(chance, per_block, units, [*items_by_key])
    while (ask := prober.next()) is not None:
        at = None if ask.start is None else _value(ask.start, sort.type)
        answer = yield Ask.query(key, sort.name, at, ask.forward, ask.limit, beyond=not ask.forward)
        keys = [sort_key(item[sort.name]) for item in answer.items]
        items_by_key.update(zip(keys, answer.items, strict=True))
        prober.take(keys, answer.units)
    length = prober.estimate()
    weights = prober.weights()
    if math.isinf(length.high) and through * BLOCK_BYTES > mean * per_block:
        limit = max(per_block, int(through / UNITS_PER_BLOCK * BLOCK_BYTES / max(1.0, mean)))
        answer = yield Ask.query(key, limit=limit)
        read = {sort_key(item[sort.name]): item for item in answer.items}
        items_by_key.update(read)
        if answer.next is None:
            length = Estimate.exactly(float(len(read)), len(read), "read through")
        else:
            length = Estimate.at_least(float(len(items_by_key)), len(items_by_key), length.method)
        weights = [(at, 1.0) for at in items_by_key]
    ours_by_key = {at for at, item in items_by_key.items() if is_ours(item, ours)}
    if length.level == 1.0:
        length = Estimate.exactly(
            length.value - len(ours_by_key), length.n - len(ours_by_key), length.method
        )
    weighted = [(items_by_key[at], weight) for at, weight in weights if at not in ours_by_key]
    return length, weighted


def mean_bytes_of(weighted: Sequence[Weighted]) -> float:
    """Return the mean size of an item; 0 without items."""
    total = sum(weight for _, weight in weighted)
    return sum(weight * size_of(item) for item, weight in weighted) / total if total else 0.0


def place(space: KeySpace, key: Key, bits: int = PLACE_BITS) -> Asks[float]:
    """Return the hash place of a partition key in [0, 1), to `bits` bits.

    Segment s of T holds the hashes from s/T to (s+1)/T, and a Scan refuses an ExclusiveStartKey of
    another segment. So each answer halves the interval. Each segment that does not refuse the key
    costs half a unit.
    """
    start = key if space.sort is None else space.hop_from(key)
    segment = 0
    for known_bits in range(bits):
        segment *= 2
        answer = yield Ask.scan(segment, 2 << known_bits, start, limit=1, may_be_refused=True)
        segment += answer.refused
    return (segment + 0.5) / (1 << bits)


def sort_key(value: TypedValue) -> SortKey:
    """Return a sort key as the statistics need it.

    Binary keys are given by their hexadecimal digits, which have the same order.
    """
    if "N" in value:
        number = Decimal(value["N"])
        return int(number) if number == number.to_integral_value() else number
    return str(value["S"]) if "S" in value else bytes(value["B"]).hex()


def _value(key: SortKey, type_: str) -> TypedValue:
    if type_ == "N":
        return {"N": str(key)}
    if type_ == "S":
        return {"S": str(key)}
    text = str(key)
    return {"B": bytes.fromhex(text[: len(text) // 2 * 2])}


def is_constraint(key: Key, items: Sequence[Item] = (), sort: str = "") -> bool:
    """Return whether a collection is a constraint.

    The type tag of its key shows it, or its first item does: in its sort key, or in an attribute
    that names the type.

    Args:
        key: The partition key.
        items: Its first items.
        sort: The name of the sort key.
    """
    tags = [tag_of(value["S"]) for value in key.values() if "S" in value]
    if any(word.lower() in TAGS for tag in tags for word in _TAG_WORDS.findall(tag)):
        return True
    return any(
        value.get("S", "").lower() in TAGS
        for item in items[:1]
        for name, value in item.items()
        if name == sort or _TYPE.fullmatch(name)
    )


def is_orphan(space: KeySpace, key: Key, items: Sequence[Item]) -> Asks[bool | None]:
    """Return whether none of the primaries that a constraint names exists.

    None if the constraint names no primary.
    """
    (partition,) = space.partition
    constraint = key[partition.name].get("S", "")
    named = list(
        dict.fromkeys(
            value["S"]
            for item in items[:1]
            for name, value in item.items()
            if "S" in value and _may_name_a_key(name, value["S"], space, constraint)
        )
    )[:MOST_LOOKED_FOR]
    named = named or _by_id(items[:1], space, constraint)
    if partition.type != "S" or not named:
        return None
    for value in named:
        answer = yield Ask.query({partition.name: {"S": value}}, limit=1)
        if answer.items:
            return False
    return True


def is_reserved(space: KeySpace, key: Key, item: Item) -> Asks[bool | None]:
    """Return whether the primary of an item that may reserve a value does not exist.

    An item such as EMAIL#a@b.c, which has little but a reference to USER#17, reserves the value
    if the user has it in an attribute. The result is None for other items. An item whose primary
    does not exist may be an ordinary reference: see sample/gather.py.
    """
    (partition,) = space.partition
    constraint = key[partition.name].get("S", "")
    value = rest_of(constraint)
    if not tag_of(constraint) or not value:
        return None
    primaries = [
        primary
        for name, typed in sorted(item.items())
        if name not in space.names
        and (primary := _primary_of(name, typed.get("S", ""), constraint))
    ][:MOST_LOOKED_FOR]
    is_there = False
    for primary in dict.fromkeys(primaries):
        answer = yield Ask.query({partition.name: {"S": primary}})
        if any(value in _texts(primary_item) for primary_item in answer.items):
            return False
        is_there |= bool(answer.items)
    return None if is_there or not primaries else True


def _texts(item: Item) -> set[str]:
    """Return the texts and numbers of an item, and the texts behind tags."""
    texts = {typed.get("S") or typed.get("N") or "" for typed in item.values()}
    return texts | {rest_of(text) for text in texts}


def _primary_of(name: str, value: str, constraint: str) -> str:
    """Return the key that an attribute refers to, or "" if it does not look like a reference.

    A value has the type tag, or the name has the kind: `shopId` of a key `slug:x` is `shop:ID`.
    """
    if not value or value == constraint or len(value.encode()) > 2_048:
        return ""
    if _looks_like_a_key(value, constraint):
        return value if tag_of(value) != tag_of(constraint) else ""
    kind = _ID.sub("", name)
    if not kind or kind == name:
        return ""
    tag = tag_of(constraint)
    kind = (
        kind.upper()
        if tag.isupper()
        else kind.lower()
        if tag.islower()
        else kind[0].upper() + kind[1:]
    )
    return _head(constraint).replace(tag, kind) + value


def _by_id(items: Sequence[Item], space: KeySpace, constraint: str) -> list[str]:
    """Return the keys that an id in a constraint may mean, such as USER#17 for a userId of 17."""
    for item in items:
        for name, value in sorted(item.items()):
            kind, text = _ID.sub("", name), value.get("S", "")
            if text and kind not in ("", name) and name not in space.names:
                kinds = (kind.upper(), kind.lower(), kind[0].upper() + kind[1:])
                delimiter = _head(constraint)[-1:]
                return list(dict.fromkeys([*(f"{each}{delimiter}{text}" for each in kinds), text]))
    return []


def _head(text: str) -> str:
    """Return the tag of a text with its delimiter."""
    return text[: len(text) - len(rest_of(text))]


def _looks_like_a_key(value: str, constraint: str) -> bool:
    """Return whether a value has a tag with a usual delimiter, or with that of another key."""
    delimiter = _head(value)[-1:]
    return bool(delimiter) and (
        delimiter in _USUAL_DELIMITERS or delimiter == _head(constraint)[-1:]
    )


def _may_name_a_key(name: str, value: str, space: KeySpace, constraint: str) -> bool:
    keys = {*space.names, space.sort.name if space.sort else ""}
    if name in keys or not value or len(value.encode()) > 2_048:
        return False
    is_key = _looks_like_a_key(value, constraint) and tag_of(value).lower() not in TAGS
    return is_key or bool(_REFERS.fullmatch(name))
