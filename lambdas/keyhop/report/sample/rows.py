"""The rows of a sample in a run's files: digests, derived figures and forms, but no keys. Pure.

A row is for one drawn segment: of the table, with its collections, or of an index, with the table's
keys in its entries. An observation of an item has sizes, names and forms, and never a value. It
represents `weight` items of its collection: 1 if the whole collection was read, and 1 / P of being
drawn in a window of a long one.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keyhop.dynamodb.values import Item, Key, size_of
from keyhop.report.candidates import Candidate
from keyhop.report.estimate import Estimate
from keyhop.report.facts import Shown
from keyhop.report.facts_json import from_json, to_json
from keyhop.report.forms import EPOCHS, KeyForm, Shower, is_ahead, is_bucket, kind_in, widths_of
from keyhop.template import LEAST_MILLISECONDS

ROW = "row"
TYPE_NAMES = frozenset(
    {"type", "entitytype", "itemtype", "recordtype", "objecttype", "doctype", "typename", "entity"}
    | {"kind"}
)
"""Attributes that name an item's type, in lower case without marks."""

DAY_SECONDS = 86_400.0
_CONSTANT = re.compile(r"[^\W\d_]+|[\W_]+")
_WORDS = re.compile(r"(?!.*\d{3})(?=.*[^\W\d_])[\w.:#$/ -]{1,40}")
"""A text that may name a kind of items; an id has more digits or is longer."""
PLACE = "/"
_AT_WORD = re.compile(r"(?=(?<![^\W\d_])[^\W\d_]+$)")
"""The beginning of a word that touches a number."""
_TTL = re.compile(r"_*(ttl|time[_-]?to[_-]?live)_*", re.IGNORECASE)
_EXPIRY = re.compile(
    r"_*((ttl|time[_-]?to[_-]?live|exp|expir(y|es?|ed|ation|ing)|valid[_-]?until|not[_-]?after)"
    r"([_-]?(at|on|time|date|stamp|timestamp|ts|epoch|utc|sec|secs|seconds|unix)){0,2}"
    r"|(delete|purge|remove|evict|discard)[_-]?(at|after|on)|epoch[_-]?ttl)_*",
    re.IGNORECASE,
)
"""The names of times of expiry, which count if time to live is off."""

MOST_NAMES = 100
"""The maximum number of attribute names of an observation."""


@dataclass(frozen=True, slots=True)
class Looking:
    """The settings of observations of a table's items.

    Attributes:
        shower: The writer of keys.
        now: The time in epoch seconds.
        sort: The name of the sort key.
        ttl: The TTL attribute, if there is one.
        indexes: The key attributes of each GSI, the partition's first, and the number in the
            partition key.
        candidates: Keys that the items might have.
    """

    shower: Shower
    now: float
    sort: str | None = None
    ttl: str | None = None
    indexes: Mapping[str, tuple[tuple[str, ...], int]] = field(default_factory=dict)
    candidates: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """The observation of one item.

    Attributes:
        bytes: The size.
        names: The names of its attributes, sorted.
        weight: The number of items that it represents.
        tag: The tag of its sort key (forms.py).
        widths: By GSI, and by "" for the table, the place of each number in the text of its sort
            key, and the number of digits (forms.py). A place is a digest of the text before the
            number, or two if a word touches the number: of the text before the word, and of it.
        dates: The GSIs whose partition key is only a date, each with a digest of the date's tag.
        words: A digest of each value that may name the kind of the item, by attribute.
        ttl: The days since it expired, negative before that, by the TTL attribute, or without it by
            another attribute named TTL; "type" or "ms" for a value that TTL does not use as a
            future time; None without such an attribute.
        entries: The index key, in the form that may be shown, of each GSI that contains the item.
        composed: By GSI and key attribute of it, the other attributes whose values it joins.
        candidates: Digests of the keys that it might have; None where it cannot have one.
    """

    bytes: int
    names: tuple[str, ...]
    weight: float = 1.0
    tag: str = ""
    widths: Mapping[str, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    dates: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    ttl: float | str | None = None
    entries: Mapping[str, str] = field(default_factory=dict)
    composed: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    candidates: tuple[str | None, ...] = ()

    @classmethod
    def of(cls, item: Item, looking: Looking, weight: float = 1.0) -> "Observation":
        sort = item.get(looking.sort, {}) if looking.sort else {}
        return cls(
            bytes=size_of(item),
            names=tuple(sorted(item)[:MOST_NAMES]),
            weight=round(weight, 6),  # in as few digits as matter, as there are thousands
            tag=kind_in(sort["S"]) if "S" in sort else "",
            widths=_widths_of(item, looking),
            dates=_dates_of(item, looking),
            words={
                name: looking.shower.digest({name: value})
                for name, value in item.items()
                if name != looking.sort and _WORDS.fullmatch(value.get("S", ""))
            },
            ttl=_ttl_of(item, looking),
            entries={
                index: looking.shower.shown({name: item[name] for name in names[:partition]})
                for index, (names, partition) in looking.indexes.items()
                if all(name in item for name in names)
            },
            composed=_composed(item, looking),
            candidates=tuple(
                None if key is None else looking.shower.digest({"candidate": {"S": key}})
                for key in (candidate.of(item) for candidate in looking.candidates)
            ),
        )

    def to_row(self) -> tuple[Any, ...]:
        """Return the values of the fields in order: as facts_json.to_json does, but faster."""
        return tuple(getattr(self, name) for name in self.__slots__)

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> "Observation":
        """Reverse `to_row`, with the lists of JSON."""
        size, names, weight, tag, widths, dates, words, ttl, entries, composed, candidates = row
        return cls(
            size,
            tuple(names),
            weight,
            tag,
            {index: tuple(map(tuple, places)) for index, places in widths.items()},
            dates,
            words,
            ttl,
            entries,
            {
                index: {name: tuple(joined) for name, joined in of_index.items()}
                for index, of_index in composed.items()
            },
            tuple(candidates),
        )


def _widths_of(item: Item, looking: Looking) -> dict[str, tuple[tuple[str, int], ...]]:
    sorts = {index: names[count:] for index, (names, count) in looking.indexes.items()}
    sorts[""] = (looking.sort,) if looking.sort else ()
    widths = {}
    for index, names in sorts.items():
        places = tuple(
            (
                PLACE.join(
                    looking.shower.digest({name: {"S": part}}) for part in _AT_WORD.split(place)
                ),
                width,
            )
            for name in names
            for place, width in widths_of(item.get(name, {}).get("S", ""))
        )
        if places:
            widths[index] = places
    return widths


def _dates_of(item: Item, looking: Looking) -> dict[str, str]:
    dates = {}
    for index, (names, count) in looking.indexes.items():
        if count == 1 and names[0] in item:
            value = item[names[0]]
            form = KeyForm.of(value)
            is_date = form.dated and not is_ahead(value, looking.now)
            if is_date or is_bucket(names[0], value, looking.now):
                tag = {names[0]: {"S": form.tag}}
                dates[index] = looking.shower.digest(tag) if form.tag else ""
    return dates


def _composed(item: Item, looking: Looking) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the key attributes that join other attributes, with these, by GSI."""
    keys = {name for names, _ in looking.indexes.values() for name in names}
    names_of: dict[str, str] = {}
    for name in sorted(item.keys() - keys, reverse=True):
        if text := item[name].get("S") or item[name].get("N"):
            names_of[text.casefold()] = name
    joined = {name: _joined(item[name].get("S", ""), names_of) for name in keys & item.keys()}
    return {
        index: names_joined
        for index, (names, _) in looking.indexes.items()
        if (names_joined := {name: joined[name] for name in names if joined.get(name)})
    }


def _joined(text: str, names_of: Mapping[str, str]) -> tuple[str, ...]:
    """Return the attributes whose values a text joins; none unless there are two or more.

    Between the values are separators and constants without digits, such as tags and labels. A value
    may be written in small letters or in capitals, and a number with zeros before it.
    """
    names, rest = [], text.casefold()
    while rest:
        number = rest.lstrip("0")
        values = [value for value in names_of if _begins(rest, value)]
        padded = [value for value in names_of if value.isdecimal() and _begins(number, value)]
        if value := max(values or padded, key=len, default=""):
            names.append(names_of[value])
            rest = (rest if values else number)[len(value) :]
        elif constant := _CONSTANT.match(rest):
            rest = rest[constant.end() :]
        else:
            return ()
    return tuple(names) if len({*names}) > 1 else ()


def _begins(text: str, value: str) -> bool:
    """Return whether a text begins with a whole value, and not with a longer word or number."""
    after = text[len(value) : len(value) + 1]
    return text.startswith(value) and not (value[-1:].isalnum() and after.isalnum())


@dataclass(frozen=True, slots=True)
class CollectionRow:
    """One collection.

    Attributes:
        key: The key in the form that may be shown.
        form: The form of the key.
        items: The number of items that were read from its beginning.
        whole: Whether these are all.
        length: The probed length, if it is not whole.
        observations: The observations of its items.
        orphan: Whether the primary of a constraint is missing; None for another collection, or if
            it is not known.
        times: The days since the oldest and since the newest time in its sort keys; None unless
            most of them have a time.
    """

    key: Shown
    form: KeyForm
    items: int
    whole: bool
    length: Estimate | None = None
    observations: tuple[Observation, ...] = ()
    orphan: bool | None = None
    times: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """A segment of the table, read to its end.

    Attributes:
        number: The number of the segment.
        probed: Whether its collections with unread items were probed for their lengths.
        collections: Its collections.
    """

    number: int
    probed: bool
    collections: tuple[CollectionRow, ...] = ()


@dataclass(frozen=True, slots=True)
class DrawRow:
    """A segment of an index.

    Attributes:
        index: The name of the index.
        number: The number of the segment.
        segments: The number of segments of the index.
        whole: Whether it was read to its end.
        keys: The number of entries by key of the table.
        entries: The number of entries by key of the index.
    """

    index: str
    number: int
    segments: int
    whole: bool
    keys: Mapping[Shown, int] = field(default_factory=dict)
    entries: Mapping[str, int] = field(default_factory=dict)

    @property
    def items(self) -> int:
        """Return the number of entries that were read."""
        return sum(self.keys.values())


Row = SegmentRow | DrawRow


def to_key(row: Row) -> Key:
    """Return a row in the form of a key, as jobs store rows."""
    state = [isinstance(row, SegmentRow), to_json(row, compact=True)]
    return {ROW: {"S": json.dumps(state, separators=(",", ":"), ensure_ascii=False)}}


def is_draw(key: Key) -> bool:
    """Return whether `from_key` returns a DrawRow, which takes much longer for long rows."""
    return str(key[ROW]["S"]).startswith("[false,")


def from_key(key: Key) -> Row:
    """Reverse `to_key`."""
    is_segment, state = json.loads(key[ROW]["S"])
    if is_segment:
        return from_json(SegmentRow, state, compact=True)
    return from_json(DrawRow, state, compact=True)


def is_type_name(name: str) -> bool:
    """Return whether an attribute has a name for an item's type."""
    return name.lower().replace("_", "").replace("-", "").strip("#$@") in TYPE_NAMES


def _ttl_of(item: Item, looking: Looking) -> float | str | None:
    if looking.ttl is None or looking.ttl not in item:
        names = _EXPIRY if looking.ttl is None else _TTL
        times = [value.get("N", "") for name, value in item.items() if names.fullmatch(name)]
        seconds = next((float(time) for time in times if time.isdigit()), 0.0)
        is_time = EPOCHS.start <= seconds < EPOCHS.stop
        return round((looking.now - seconds) / DAY_SECONDS, 1) if is_time else None
    value = item[looking.ttl]
    if "N" not in value:
        return "type"
    seconds = float(value["N"])
    if seconds >= LEAST_MILLISECONDS:
        return "ms"
    return round((looking.now - seconds) / DAY_SECONDS, 1)
