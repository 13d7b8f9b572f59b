"""Judge the figures of a plan: obstacles, points to check, and whether an index suffices. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.units import PARTITION_WRITE_UNITS
from keyhop.errors import CannotStart
from keyhop.rekey.life_cycle.create import check_stream_view
from keyhop.rekey.life_cycle.features import Features
from keyhop.rekey.plan.readers import MOST_READERS, Readers
from keyhop.rekey.plan.trial import Trial
from keyhop.wording import counted

HOT_SHARE = 0.05
HOT_ITEMS = 20
WANTED_UNITS = 40_000
"""The write units a second of a table by its default quota (AWS documentation)."""


@dataclass(frozen=True, slots=True)
class Question:
    """The question whether a global index would suffice, which needs the `missing` attributes of
    the new key. `collection_share` is the largest share of the sample under one partition key of
    the source. Costs are in dollars: to fill the index, for a million changes, and for a month.
    """

    missing: Sequence[str]
    collection_share: float
    costs: Mapping[str, float]

    @property
    def asks(self) -> str:
        return (
            "Would a global index do? If reads by the new key may be eventually consistent, no "
            "write has to be conditional on it, and writes do not throttle under one old key, an "
            "index with these keys serves them, and nothing is moved."
        )

    @property
    def needs(self) -> str:
        """Return what the index needs, besides its cost."""
        if not self.missing:
            return "all items have the new key's attributes: UpdateTable makes it"
        names = ", ".join(self.missing)
        return f"{names} must first be written to the items, or have another name"

    def to_json(self) -> dict[str, Any]:
        return {
            "asks": self.asks,
            "needs": self.needs,
            "missing": list(self.missing),
            "largest_collection_share": self.collection_share,
            "costs": dict(self.costs),
        }


@dataclass(frozen=True, slots=True)
class Hot:
    """A new partition key with a large share of the sample, and the n of the filter shard:n that
    spreads it. Its canonical value belongs to a user.
    """

    value: tuple[str, str | bytes]
    share: float
    shards: int

    @property
    def most_units(self) -> float:
        """Return the write units a second of the whole table at which this key throttles."""
        return PARTITION_WRITE_UNITS / self.share

    def to_json(self) -> dict[str, Any]:
        """Return the key as JSON, without its value."""
        return {"share": self.share, "shards": self.shards, "most_write_units": self.most_units}


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts for judging a plan; `collisions` counts pairs of items that map to one place."""

    table: Table
    features: Features
    trial: Trial
    readers: Readers
    refused: Sequence[str]
    unmappable: int
    collisions: float
    is_sharded: bool
    has_key_index: bool
    is_random: bool


def index_question(trial: Trial, table: Table, costs: Mapping[str, float]) -> Question:
    """Return the question whether an index would suffice."""
    names = trial.transform.destination.all
    missing = [name for name in names if trial.not_there[name] or not trial.mapped]
    largest = max(trial.source_counts.values(), default=0)
    return Question(missing, largest / max(1, trial.items), costs)


def hot_keys(trial: Trial) -> list[Hot]:
    """Return the new partition keys with a large share, the hottest first."""
    hot = []
    for (value,), count in trial.new_collections.most_common(10):
        share = count / max(1, trial.mapped)
        if share >= HOT_SHARE and count >= HOT_ITEMS:
            shards = max(2, math.ceil(share * WANTED_UNITS / PARTITION_WRITE_UNITS))
            hot.append(Hot(value, share, shards))
    return hot


def judged(facts: Facts) -> tuple[list[str], list[str]]:
    """Return the obstacles to a re-key, and notes on what to check."""
    blocks, notes = list(facts.refused), []
    table, trial = facts.table, facts.trial
    if facts.unmappable:
        blocks.append(
            f"{counted(facts.unmappable, 'item')} cannot be mapped: mend them, or the template"
        )
    if facts.collisions:
        blocks.append(
            f"about {counted(facts.collisions, 'pair')} of items want the same place: add to the "
            "new key what tells them apart"
        )
    if trial.not_back:
        blocks.append(
            f"{counted(trial.not_back, 'item')} of the sample would not come back as they were: "
            "the way back needs what the template drops (keep)"
        )
    if trial.too_large:
        blocks.append(f"{counted(trial.too_large, 'item')} would have more than 400 KB")
    if facts.is_sharded:
        blocks.append(
            "the table is sharded: bring each key back to one shard first, or let the template's "
            "match take the suffix apart (--accept shards of start)"
        )
    try:
        check_stream_view(table)
    except CannotStart as error:
        blocks.append(str(error))
    if table.stream is None:
        notes.append("the stream is off: create turns it on, and cancel or complete off again")
    if facts.readers.are_too_many:
        notes.append(
            f"during a cutover {len(facts.readers.during_cutover)} processes read each shard of "
            f"the stream, and DynamoDB may throttle more than {MOST_READERS}: the cutover waits "
            "and asks again, and the others may fall behind for some seconds"
        )
    notes += [f"readers of the stream cannot all be seen: {why}" for why in facts.readers.unseen]
    if facts.features.kinesis:
        notes.append("a Kinesis data stream gets the changes of the source: see create --dry-run")
    if facts.features.ttl is not None:
        notes.append(
            f"items expire by {facts.features.ttl}: on the new table after the cutover only"
        )
    if facts.has_key_index:
        notes.append("the source has a key index: its sentinels are not copied")
    notes += _of_indexes(trial)
    if not facts.is_random:
        notes.append(
            "the table does not say yet how many items it has: the sample is its beginning"
        )
    return blocks, notes


def _of_indexes(trial: Trial) -> list[str]:
    return [
        f"index {name} has {trial.before[name]} items of the sample, and would have "
        f"{trial.entered[name]}"
        for name in trial.indexes
        if trial.before[name] != trial.entered[name] and trial.mapped == trial.items
    ]
