"""Try a transform on items, and judge the results: obstacles, costs, and whether an index suffices.

The costs are those of reads and writes on demand. The estimates of the runs themselves include the
other costs on AWS (Lambda, Step Functions, S3), which are a few hundredths of these.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from itertools import count as numbers
from shlex import quote
from typing import Any

from keyhop.dynamodb.schema import has_key_index
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.units import (
    BLOCK_BYTES,
    DEFAULT_WRITE_RATE,
    DOLLARS_PER_GB_MONTH,
    DOLLARS_PER_READ_UNIT_HOUR,
    DOLLARS_PER_WRITE_UNIT_HOUR,
    HOURS_OF_A_MONTH,
    MOST_INDEX_KEY_ATTRIBUTES,
    MOST_INDEXES,
    PARTITION_WRITE_UNITS,
    PROVISIONED,
    Prices,
    write_units,
)
from keyhop.dynamodb.values import (
    MOST_ITEM_BYTES,
    Item,
    Key,
    canonical,
    has_values,
    same_item,
    size_of,
)
from keyhop.errors import CannotStart
from keyhop.rekey.life_cycle.create import check_stream_view
from keyhop.rekey.life_cycle.features import Features
from keyhop.rekey.plan.reading import MOST_READERS, Readers
from keyhop.rekey.transform import Transform
from keyhop.template import Unmappable, why_no_key
from keyhop.wording import counted

EXAMPLES = 10
_Frozen = tuple[Any, ...]


@dataclass(slots=True)
class IndexTrial:
    """A sample of the source's items, tried on a global index whose key has these attributes.

    Attributes:
        types: By attribute, the types of its values; "" for a value that no key can have.
        items: The items that have all these attributes, so that they would be in the index.
        unmapped: Those of them that would not be in the new table.
        bytes, write_units: Those of `items`, with all their attributes.
    """

    partition: Sequence[str]
    sort: Sequence[str]
    items: int = 0
    unmapped: int = 0
    bytes: int = 0
    write_units: float = 0.0
    types: dict[str, Counter[str]] = field(init=False)

    def __post_init__(self) -> None:
        self.types = {name: Counter() for name in (*self.partition, *self.sort)}

    def add(self, item: Item, is_mapped: bool) -> None:
        for name, types in self.types.items():
            if name in item:
                is_key = not why_no_key(item[name], name in self.sort)
                types[next(iter(item[name])) if is_key else ""] += 1
        if _has(item, [*self.types]):
            self.items += 1
            self.unmapped += not is_mapped
            self.bytes += size_of(item)
            self.write_units += write_units(size_of(item))

    @property
    def refusing(self) -> list[str]:
        """Return the attributes because of which DynamoDB would refuse writes to some items.

        "All writes to items that violate the new index's key schema will be rejected" (Developer
        Guide, GSI.OnlineOps).
        """
        return [name for name, types in self.types.items() if len(types) > 1 or "" in types]

    @property
    def definitions(self) -> list[dict[str, str]]:
        """Return the AttributeDefinitions of the key, if `refusing` is empty."""
        return [
            {"AttributeName": name, "AttributeType": next(iter(types))}
            for name, types in self.types.items()
        ]

    @property
    def key_schema(self) -> list[dict[str, str]]:
        keys = [{"AttributeName": name, "KeyType": "HASH"} for name in self.partition]
        return keys + [{"AttributeName": name, "KeyType": "RANGE"} for name in self.sort]


@dataclass(slots=True)
class Trial:
    """The results of a transform on a sample of the source, which skips sentinels of a key index.

    Attributes:
        indexes: Keys of the destination's indexes, by name; of a local one its sort key alone.
        unmappable: Unmappable items by the reason, which contains no values.
        not_back: Items that are not equal after the way back.
        write_units: The units to put all items; `index_units` are those of their indexes.
        source_counts: Items by partition key of the source.
        places: By each place, the collections of the items that map to it.
        not_there: By attribute of the destination's key, items that do not already have its value
            under its name.
        same_index: An index with the destination's key.
        composed_index: An index with the attributes that this key is composed of, if it is.
        before: By index, items that are in it in the source; `entered`: in the destination.
    """

    transform: Transform
    indexes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    ours: Key | None = None
    items: int = 0
    left_out: int = 0
    unmappable: Counter[str] = field(default_factory=Counter)
    not_back: int = 0
    too_large: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    write_units: float = 0.0
    index_units: float = 0.0
    source_counts: Counter[_Frozen] = field(default_factory=Counter)
    new_collections: Counter[_Frozen] = field(default_factory=Counter)
    places: dict[_Frozen, list[_Frozen]] = field(default_factory=dict)
    not_there: Counter[str] = field(default_factory=Counter)
    same_index: IndexTrial = field(init=False)
    composed_index: IndexTrial | None = field(init=False)
    before: Counter[str] = field(default_factory=Counter)
    entered: Counter[str] = field(default_factory=Counter)
    firsts: list[tuple[Item, Item]] = field(default_factory=list)
    repeats: list[tuple[Item, Item]] = field(default_factory=list)

    def __post_init__(self) -> None:
        partition, *sort = self.transform.destination.all
        self.same_index = IndexTrial([partition], sort)
        self.composed_index = _composed_index(self.transform.key_attributes, partition, sort)

    def add(self, items: Iterable[Item]) -> "Trial":
        """Try these items too."""
        for item in items:
            self._try(item)
        return self

    @property
    def collections(self) -> int:
        """Return the number of the source's collections in the sample."""
        return len(self.source_counts)

    @property
    def mapped(self) -> int:
        return self.items - self.left_out - sum(self.unmappable.values())

    @property
    def examples(self) -> list[tuple[Item, Item]]:
        """Return items before and after, of as many collections as possible."""
        return [*self.firsts, *self.repeats][:EXAMPLES]

    @property
    def pairs(self) -> tuple[int, int]:
        """Return the pairs that map to one place, within a source collection and between two."""
        within = between = 0
        for wanting in self.places.values():
            same_collection = sum(count * (count - 1) // 2 for count in Counter(wanting).values())
            within += same_collection
            between += len(wanting) * (len(wanting) - 1) // 2 - same_collection
        return within, between

    def _try(self, item: Item) -> None:
        if self.ours is not None and has_values(item, self.ours):
            return
        self.items += 1
        self.bytes_before += size_of(item)
        collection = _frozen([item[self.transform.source.partition]])
        self.source_counts[collection] += 1
        for name, keys in self.indexes.items():
            self.before[name] += _has(item, keys)
        mapped = None
        try:
            mapped = self.transform.forward(item)
            self.left_out += mapped is None
        except Unmappable as error:
            self.unmappable[str(error)] += 1
        for index in (self.same_index, self.composed_index):
            if index is not None:
                index.add(item, mapped is not None)
        if mapped is None:
            return
        self._count(item, mapped)
        examples = self.firsts if self.source_counts[collection] == 1 else self.repeats
        if len(examples) < EXAMPLES:
            examples.append((item, mapped))

    def _count(self, item: Item, mapped: Item) -> None:
        place = self.transform.destination.of(mapped)
        size = size_of(mapped)
        units = write_units(size)
        self.bytes_after += size
        self.write_units += units
        self.too_large += size > MOST_ITEM_BYTES
        self.not_back += not self._comes_back(item, mapped)
        collection = _frozen([item[self.transform.source.partition]])
        self.places.setdefault(_frozen(place.values()), []).append(collection)
        self.new_collections[_frozen([place[self.transform.destination.partition]])] += 1
        for name, value in place.items():
            self.not_there[name] += name not in item or not _equal(item[name], value)
        for name, keys in self.indexes.items():
            if _has(mapped, keys):
                self.entered[name] += 1
                self.index_units += units  # as if it held all attributes: at most that

    def _comes_back(self, item: Item, mapped: Item) -> bool:
        try:
            restored = self.transform.back(mapped)
        except Unmappable:
            return False
        return restored is not None and same_item(restored, item)


def estimated(trial: Trial, share: float) -> dict[str, Any]:
    """Estimate the collisions of all items, from a sample of that share of whole collections.

    Return the `pairs` of items that map to one place, and `how` they were determined: "none" if the
    transform excludes them, or an "estimate", or "counted". `at_most` is the upper limit of an
    estimate (95 %), or None for too small a sample.
    """
    within, between = trial.pairs
    how, pairs, at_most = "none", 0.0, 0.0
    if trial.transform.kind == "bijective":
        pass
    elif share == 1.0:
        how, pairs = "counted", within + between
        at_most = pairs
    elif not trial.items:
        return {"how": "estimate", "pairs": 0.0, "at_most": None}
    else:
        # A pair of one collection is drawn with it; of two collections, both must be drawn.
        how, pairs = "estimate", round(within / share + between / share**2)
        at_most = round(_most(within) / share + _most(between) / share**2)
    return {"how": how, "pairs": pairs, "at_most": at_most}


def _most(count: int) -> float:
    """Return the upper limit for a count with 95 % probability (normal; 3 for none)."""
    return 3.0 if count == 0 else count + 2 * math.sqrt(count) + 2


def _has(item: Item, keys: Sequence[str]) -> bool:
    return all(key in item for key in keys)


def _equal(first: Any, second: Any) -> bool:
    return next(iter(first)) in "SNB" and canonical(first) == canonical(second)


def _frozen(values: Iterable[Any]) -> _Frozen:
    return tuple(canonical(value) for value in values)


HOT_SHARE = 0.05
HOT_ITEMS = 20
WANTED_UNITS = 40_000
"""The write units a second of a table by its default quota (AWS documentation)."""

GIGABYTE = 1e9
MILLION = 1_000_000

EXPORT_DOLLARS_PER_GB, IMPORT_DOLLARS_PER_GB = 0.10, 0.15
"""The prices of ExportTableToPointInTime and ImportTable, from memory: check AWS's price page."""

EXPORT_SAYS = (
    "export to S3, transform the data there with your own code, and import it into a new table: "
    "this needs point-in-time recovery, creates no local indexes, silently keeps only the last "
    "of two items with the same key, and leaves out what is written in the meantime; Keyhop does "
    "not do it"
)

BULK_PUT_SAYS = (
    "a bulk put from S3 into the new table, after the same export and transformation: the table "
    "may have local indexes and a stream, and an item whose condition fails is not written, and is "
    "reported; at least 1,024 writes a second, not into a global table, and the same gap for what "
    "is written in the meantime; Keyhop does not do it, and does not know its price"
)


@dataclass(frozen=True, slots=True)
class Question:
    """The question whether a global index would suffice.

    Attributes:
        missing: The attributes of the new key that the items do not have.
        needs: What the index needs, besides its cost, as a sentence.
        notes: What a person should know of the index, as sentences.
        collection_share: The largest share of the sample under one partition key of the source.
        costs: Dollars to fill the index, for a million changes, and for a month; empty if the table
            has the index already.
        update: The parameters of UpdateTable that make the index; empty without one.
    """

    missing: Sequence[str]
    needs: str
    notes: Sequence[str]
    collection_share: float
    costs: Mapping[str, float]
    update: Mapping[str, Any] = field(default_factory=dict)

    asks = (
        "Would a global index do? If reads by the new key may be eventually consistent, no write "
        "has to be conditional on it, and writes do not throttle under one old key, an index with "
        "these keys serves them, and nothing is moved."
    )

    @property
    def command(self) -> str:
        """Return the command that makes the index."""
        names = ("table-name", "attribute-definitions", "global-secondary-index-updates")
        values = (
            value if isinstance(value, str) else json.dumps(value) for value in self.update.values()
        )
        flags = (f"--{name} {quote(value)}" for name, value in zip(names, values, strict=True))
        return f"aws dynamodb update-table {' '.join(flags)}"

    def to_json(self) -> dict[str, Any]:
        return {
            "asks": self.asks,
            "needs": self.needs,
            "notes": list(self.notes),
            "missing": list(self.missing),
            "largest_collection_share": self.collection_share,
            "costs": dict(self.costs),
            "update_table": dict(self.update) or None,
        }


def index_question(
    trial: Trial, table: Table, items: float, table_bytes: float, prices: Prices
) -> Question:
    """Return the question whether an index would suffice, for a table of so many items and bytes.

    If the items have the new key, the index has the same. If the new key is composed of several
    attributes of the items, the index has these as they are, up to four in each part
    (Developer Guide, GSI.DesignPattern.MultiAttributeKeys).
    """
    names = trial.transform.destination.all
    missing = [name for name in names if trial.not_there[name] or not trial.mapped]
    largest = max(trial.source_counts.values(), default=0) / max(1, trial.items)
    index = trial.composed_index if missing else trial.same_index
    why_not = _why_no_index(trial, index, missing)
    if why_not is not None or index is None:
        costs = _index_costs(trial, None, items, table_bytes, prices, {})
        return Question(missing, why_not or "", (), largest, costs)
    indexes = table.description.get("GlobalSecondaryIndexes", ())
    for entry in indexes:
        if _is_same_key(entry["KeySchema"], index) and entry.get("IndexStatus") != "DELETING":
            needs = f"the index {entry['IndexName']} has this key already"
            projection = entry.get("Projection", {}).get("ProjectionType", "ALL")
            if projection != "ALL":
                needs += f", but not all attributes of the items ({projection})"
            return Question(missing, needs, _index_notes(trial, index, {}), largest, {})
    capacity = _index_capacity(trial, index, table.throughput)
    create: dict[str, Any] = {
        "IndexName": _index_name(table, [*index.types]),
        "KeySchema": index.key_schema,
        "Projection": {"ProjectionType": "ALL"},
    }
    if capacity:
        create["ProvisionedThroughput"] = capacity
    update = {
        "TableName": table.bare_name,
        "AttributeDefinitions": index.definitions,
        "GlobalSecondaryIndexUpdates": [{"Create": create}],
    }
    costs = _index_costs(trial, index, items, table_bytes, prices, capacity)
    needs = f"the items have the attributes of its key ({', '.join(index.types)}): "
    if len(indexes) >= MOST_INDEXES:
        needs += (
            f"but the table has {counted(len(indexes), 'index', 'indexes')}, and {MOST_INDEXES} is "
            "the default quota: "
            "remove one, or ask AWS for more, before UpdateTable makes it"
        )
    else:
        needs += "UpdateTable makes it"
    notes = _index_notes(trial, index, capacity)
    return Question(missing, needs, notes, largest, costs, update)


def _why_no_index(trial: Trial, index: IndexTrial | None, missing: Sequence[str]) -> str | None:
    """Return why no index can have the new key, as a sentence; None if one can."""
    if index is None or not trial.mapped:
        has_other = [name for name in missing if trial.same_index.types[name]]
        is_absent = [name for name in missing if name not in has_other]
        parts = []
        if is_absent:
            names = ", ".join(is_absent)
            parts.append(f"{names} must first be written to the items, or have another name")
        if has_other:
            names = ", ".join(has_other)
            parts.append(f"the items have another value or type in {names}")
        return "; ".join(parts)
    if max(len(index.partition), len(index.sort)) > MOST_INDEX_KEY_ATTRIBUTES:
        return (
            f"the new key is composed of {', '.join(index.types)}, but each part of an index's key "
            f"has at most {MOST_INDEX_KEY_ATTRIBUTES} attributes: the key must first be written to "
            "the items"
        )
    if index.refusing:
        return (
            f"an index would refuse writes to some items: {', '.join(index.refusing)} has values "
            "of several types there, or values that no key can have; change these items first"
        )
    return None


def _composed_index(
    composed: Mapping[str, Sequence[str]] | None, partition: str, sort: Sequence[str]
) -> IndexTrial | None:
    """Return the index whose key has the attributes that a key is composed of, each once."""
    if composed is None or not composed[partition]:
        return None
    first = [*dict.fromkeys(composed[partition])]
    second = dict.fromkeys(name for each in sort for name in composed[each])
    return IndexTrial(first, [name for name in second if name not in first])


def _is_same_key(schema: Sequence[Mapping[str, str]], index: IndexTrial) -> bool:
    """Return whether both keys serve the same queries: all name the whole partition key."""
    parts: dict[str, list[str]] = {"HASH": [], "RANGE": []}
    for entry in schema:
        parts[entry["KeyType"]].append(entry["AttributeName"])
    return sorted(parts["HASH"]) == sorted(index.partition) and parts["RANGE"] == [*index.sort]


def _index_capacity(
    trial: Trial, index: IndexTrial, throughput: Mapping[str, int] | None
) -> dict[str, int]:
    """Return the provisioned capacity of an index; empty for a table on demand.

    An index with less write capacity than the writes that enter it throttles the table's.
    """
    if throughput is None:
        return {}
    writes = throughput["WriteCapacityUnits"] * index.items / max(1, trial.items)
    return {"ReadCapacityUnits": 1, "WriteCapacityUnits": max(1, math.ceil(writes))}


def _index_notes(trial: Trial, index: IndexTrial, capacity: Mapping[str, int]) -> list[str]:
    """Return what a person should know of an index before it is made or used."""
    notes = []
    if max(len(index.partition), len(index.sort)) > 1:
        note = f"a query needs an equality condition on {' and '.join(index.partition)}"
        if index.sort:
            note += f", and takes conditions on {' and '.join(index.sort)} from left to right"
        notes.append(note)
    outside = 1 - index.items / max(1, trial.items)
    notes.append(
        f"an item that lacks {' or '.join(index.types)} is not in the index"
        + (f", as {outside:.1%} of the sample" if outside else "")
        + "; DynamoDB refuses a write that gives one of them another type, no content, or more "
        "bytes than a key may have"
    )
    if index.unmapped:
        notes.append(
            f"{index.unmapped / max(1, trial.items):.1%} of the sample would be in the index, but "
            "not in the new table, because the template leaves them out or cannot map them"
        )
    if hot_keys(trial):
        notes.append(
            "a hot key of an index throttles the writes to the table itself (see the hot new key)"
        )
    if capacity:
        notes.append(
            f"its capacity is its own ({PROVISIONED}): the table's write units by the share of the "
            "items that are in it, and 1 read unit, which you must raise to what your queries read"
        )
    return notes


def _index_name(table: Table, attributes: Sequence[str]) -> str:
    """Return a valid name that no index of the table has."""
    indexes = table.description.get("GlobalSecondaryIndexes", ())
    used_names = {index["IndexName"] for index in indexes}
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", "-".join(("by", *attributes)))[:200]
    names = chain((name,), (f"{name}-{number}" for number in numbers(2)))
    return next(each for each in names if each not in used_names)


def hot_keys(trial: Trial) -> list[dict[str, Any]]:
    """Return the new partition keys with a large share of the sample, the hottest first, without
    their values, which belong to a user.

    `shards` is the n of the filter shard:n that spreads a key, and `most_write_units` the write
    units a second of the whole table at which it throttles.
    """
    hot = []
    for _, count in trial.new_collections.most_common(10):
        share = count / max(1, trial.mapped)
        if share >= HOT_SHARE and count >= HOT_ITEMS:
            shards = max(2, math.ceil(share * WANTED_UNITS / PARTITION_WRITE_UNITS))
            throttled_from = PARTITION_WRITE_UNITS / share
            hot.append({"share": share, "shards": shards, "most_write_units": throttled_from})
    return hot


def obstacles(
    table: Table, trial: Trial, unmappable: int, collisions: float, is_sharded: bool
) -> list[str]:
    """Return the obstacles to a re-key; `collisions` are pairs of items that map to one place."""
    blocks = []
    if unmappable:
        blocks.append(f"{counted(unmappable, 'item')} cannot be mapped: mend them, or the template")
    if collisions:
        blocks.append(
            f"about {counted(collisions, 'pair')} of items want the same place: add to the "
            "new key an attribute in which they differ"
        )
    if trial.not_back:
        blocks.append(
            f"{counted(trial.not_back, 'item')} of the sample would not come back as they were: "
            "the way back needs what the template drops (keep)"
        )
    if trial.too_large:
        blocks.append(f"{counted(trial.too_large, 'item')} would have more than 400 KB")
    if is_sharded:
        blocks.append(
            "the table is sharded: bring each key back to one shard first, or let the template's "
            "match take the suffix apart, and let start accept shards"
        )
    try:
        check_stream_view(table)
    except CannotStart as error:
        blocks.append(str(error))
    return blocks


def notes_on(
    table: Table, features: Features, trial: Trial, readers: Readers, is_random: bool
) -> list[str]:
    """Return what a person should check; `is_random` is as `draw` returns it."""
    notes = []
    if table.stream is None:
        notes.append("the stream is off: create turns it on, and cancel or complete off again")
    if readers.are_too_many:
        notes.append(
            f"during a cutover {len(readers.during_cutover)} processes read each shard of "
            f"the stream, and DynamoDB may throttle more than {MOST_READERS}: the cutover waits "
            "and asks again, and the others may fall behind for some seconds"
        )
    notes += [f"readers of the stream cannot all be seen: {why}" for why in readers.unseen]
    if features.kinesis:
        notes.append(
            "a Kinesis data stream gets the changes of the source: see a dry run of create"
        )
    if features.ttl is not None:
        notes.append(f"items expire by {features.ttl}: on the new table after the cutover only")
    if has_key_index(table.description):
        notes.append("the source has a key index: its sentinels are not copied")
    notes += [
        f"index {name} has {trial.before[name]} items of the sample, and would have "
        f"{trial.entered[name]}"
        for name in trial.indexes
        if trial.before[name] != trial.entered[name] and trial.mapped == trial.items
    ]
    if not is_random:
        notes.append(
            "the table does not say yet how many items it has: the sample is its beginning"
        )
    return notes


def possible_rate(write_rate: float, throughput: Mapping[str, int] | None) -> float:
    """Return the write units a second of a copy into a table with this capacity (see Table)."""
    return min(write_rate, throughput["WriteCapacityUnits"]) if throughput else write_rate


def costs(
    trial: Trial,
    items: float,
    table_bytes: float,
    prices: Prices,
    live_rate: float | None = None,
    throughput: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Return the costs of a re-key in dollars and seconds, as plain JSON; `live_rate` is in
    changes a second, if the rate is available, and `throughput` is the destination's (see Table).
    """
    rate = possible_rate(DEFAULT_WRITE_RATE, throughput)
    mapped = trial.mapped / trial.items if trial.items else 1.0
    put = (trial.write_units + trial.index_units) / trial.mapped if trial.mapped else 1.0
    of_indexes = trial.index_units / trial.mapped if trial.mapped else 0.0
    growth = trial.bytes_after / trial.bytes_before if trial.bytes_before else 1.0
    puts = items * mapped * put
    # A Scan, and a second look at the same pages, which is strongly consistent.
    reads = 1.5 * table_bytes / BLOCK_BYTES
    copy_bytes = table_bytes * growth
    compared = (table_bytes + copy_bytes) / BLOCK_BYTES
    million = prices.dollars(MILLION, MILLION * put)
    gigabytes = table_bytes / GIGABYTE
    return {
        "backfill": {
            "read_units": round(reads, 1),
            "write_units": round(puts, 1),
            "dollars": round(prices.dollars(reads, puts), 6),
            "of_indexes": round(prices.dollars(0.0, items * mapped * of_indexes), 6),
            "seconds": round(puts / rate, 1),
            "write_rate": rate,
        },
        "verify": {"read_units": round(compared, 1), "dollars": round(prices.dollars(compared), 6)},
        "live": {
            "dollars_a_million": round(million, 6),
            "dollars_a_day": None
            if live_rate is None
            else round(live_rate * 86_400 * million / MILLION, 6),
            "write_units_a_second": live_rate,
        },
        "storage": {"dollars_a_month": round(copy_bytes / GIGABYTE * DOLLARS_PER_GB_MONTH, 6)},
        "export_import": {
            "dollars": round(gigabytes * (EXPORT_DOLLARS_PER_GB + IMPORT_DOLLARS_PER_GB), 6),
            "says": EXPORT_SAYS,
            "prices": "from memory, check them",
        },
        "bulk_put": {"dollars": None, "says": BULK_PUT_SAYS},
        "prices": prices.on_demand,
    }


def _index_costs(
    trial: Trial,
    index: IndexTrial | None,
    items: float,
    table_bytes: float,
    prices: Prices,
    capacity: Mapping[str, int],
) -> dict[str, float]:
    """Return the costs of a global index with all attributes; None: one with all mapped items.

    With provisioned capacity, its writes are paid by the hour.
    """
    put = trial.write_units / trial.mapped if trial.mapped else 1.0
    inside = of_bytes = 1.0
    if index is not None:
        put = index.write_units / max(1, index.items)
        inside = index.items / max(1, trial.items)
        of_bytes = index.bytes / max(1, trial.bytes_before)
    month = of_bytes * table_bytes / GIGABYTE * DOLLARS_PER_GB_MONTH
    if capacity:
        put = 0.0
        hour = capacity["ReadCapacityUnits"] * DOLLARS_PER_READ_UNIT_HOUR
        hour += capacity["WriteCapacityUnits"] * DOLLARS_PER_WRITE_UNIT_HOUR
        month += hour * HOURS_OF_A_MONTH
    return {
        "dollars": round(prices.dollars(0.0, items * inside * put), 6),
        "dollars_a_million": round(prices.dollars(0.0, MILLION * put), 6),
        "dollars_a_month": round(month, 6),
    }
