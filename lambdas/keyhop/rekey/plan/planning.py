"""`plan`: the effect of a re-key on a table's items, and whether to do it at all.

It tries the transform on a sample, and changes nothing. First it asks whether an index suffices.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.schema import KEY_INDEX, KeySpace, has_key_index
from keyhop.dynamodb.tables import Table, look_up
from keyhop.dynamodb.units import DEFAULT_WRITE_RATE
from keyhop.dynamodb.values import Item, Key
from keyhop.rekey.life_cycle.features import ClientOf, gather
from keyhop.rekey.life_cycle.likeness import Likeness
from keyhop.rekey.plan.collisions import tally
from keyhop.rekey.plan.costs import costs, index_costs
from keyhop.rekey.plan.judgement import Facts, Hot, Question, hot_keys, index_question, judged
from keyhop.rekey.plan.readers import Readers, readers_of, write_rate
from keyhop.rekey.plan.sample import DEFAULT_SAMPLE, draw, everything
from keyhop.rekey.plan.trial import Collisions, Trial, estimated
from keyhop.rekey.template.functions import tried
from keyhop.rekey.transform import Transform, Unmappable
from keyhop.scan.reader import PageReader
from keyhop.scan.statistics import proportion_limits

DEFAULT_READ_UNITS = 200.0


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan of a re-key to the keys of the destination.

    `question` is whether an index would suffice; the user should consider it first. Unmappable
    items of the sample are by reason, and their share has 95 % limits. `indexes` has, by name, the
    shares of items before and after. `blocks` are reasons not to proceed; `notes` are to check.
    """

    source: str
    destination: str
    question: Question
    source_keys: KeySpace
    keys: KeySpace
    kind: str
    owner_attributes: Sequence[str]
    items: int
    size_bytes: int
    sampled: int
    is_whole: bool
    read_units: float
    left_out: int
    unmappable: Mapping[str, int]
    share: float
    share_limits: tuple[float, float]
    collisions: Collisions
    hot: Sequence[Hot]
    too_large: int
    not_back: int
    indexes: Mapping[str, tuple[float, float]]
    readers: Readers
    costs: Mapping[str, Any]
    likeness: Likeness
    blocks: Sequence[str] = ()
    notes: Sequence[str] = ()
    examples: Sequence[tuple[Item, Item]] = field(default_factory=tuple)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON, without examples and hot keys, which hold users' values."""
        return {
            "source": self.source,
            "destination": self.destination,
            "question": self.question.to_json(),
            "keys": {"source": _keys_json(self.source_keys), "destination": _keys_json(self.keys)},
            "class": self.kind,
            "owner_attributes": list(self.owner_attributes),
            "items": self.items,
            "bytes": self.size_bytes,
            "sample": {
                "items": self.sampled,
                "whole": self.is_whole,
                "read_units": self.read_units,
                "left_out": self.left_out,
                "too_large": self.too_large,
                "not_back": self.not_back,
            },
            "unmappable": {
                "reasons": dict(self.unmappable),
                "share": self.share,
                "from": self.share_limits[0],
                "to": self.share_limits[1],
            },
            "collisions": {
                "how": self.collisions.how,
                "pairs": self.collisions.pairs,
                "at_most": self.collisions.at_most,
            },
            "hot": [key.to_json() for key in self.hot],
            "indexes": {n: {"before": b, "after": a} for n, (b, a) in self.indexes.items()},
            "readers": self.readers.to_json(),
            "costs": dict(self.costs),
            "likeness": [row.to_json() for row in self.likeness.rows],
            "blocks": list(self.blocks),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Planning:
    """The settings of `plan`, with the keys of the destination. `ours` identifies sentinels in the
    source, `is_sharded` means a sharded table of Keyhop, and `accepted` is as in likeness.ACCEPTS.
    `full` reads the whole table to count all collisions and unmappable items.
    """

    connection: Connection
    source: str
    destination: str
    keys: KeySpace
    transform: Transform
    client_of: ClientOf | None = None
    ours: Key | None = None
    is_sharded: bool = False
    accepted: Sequence[str] = ()
    sample: int = DEFAULT_SAMPLE
    max_read_units: float = DEFAULT_READ_UNITS
    max_read_rate: float | None = None
    full: bool = False
    backfill_rate: float = DEFAULT_WRITE_RATE
    chance: random.Random = field(default_factory=random.Random)

    def plan(self) -> Plan:
        """Make the plan. Raise TableNotFound, NotPermitted, BudgetSpent and other errors."""
        table = look_up(self.connection, self.source)
        features = gather(self.connection, table, self.client_of)
        alike = Likeness(features, self.destination, self.keys, self.accepted)
        reader = self._reader(table, self.max_read_units)
        sample = draw(reader, self.sample, self.chance)
        trial = Trial(self.transform, self._indexes(table), self.ours).add(sample.items)
        unmappable, items = dict(trial.unmappable), trial.items
        collisions = estimated(trial, sample.share)
        if self.full and not sample.is_whole:
            full = self._reader(table, None)
            unmappable, items, collisions = self._counted(full)
            reader.usage.count(read_units=full.usage.read_units)
        is_whole = sample.is_whole or self.full
        count = items if is_whole else max(table_items(table), items)
        size = max(int(table.description.get("TableSizeBytes", 0)), trial.bytes_before)
        bad = sum(unmappable.values())
        share = bad / items if items else 0.0
        # Items of a collection are alike, so each collection counts once.
        looks = trial.collections
        limits = (share, share) if is_whole else proportion_limits(share * looks, looks)
        readers = readers_of(self.client_of, table.stream) if table.stream else Readers()
        live = write_rate(self.client_of, table)
        facts = Facts(
            table=table,
            features=features,
            trial=trial,
            readers=readers,
            refused=[row.refusal for row in alike.refused],
            unmappable=bad,
            collisions=collisions.pairs,
            is_sharded=self.is_sharded,
            has_key_index=has_key_index(table.description),
            is_random=sample.is_random,
        )
        blocks, notes = judged(facts)
        blocks += tried(self.transform, sample.items)
        prices = self.connection.prices
        return Plan(
            source=table.bare_name,
            destination=self.destination,
            question=index_question(trial, table, index_costs(trial, count, size, prices)),
            source_keys=table.space,
            keys=self.keys,
            kind=self.transform.kind,
            owner_attributes=tuple(self.transform.owner_attributes),
            items=count,
            size_bytes=size,
            sampled=trial.items,
            is_whole=is_whole,
            read_units=reader.usage.read_units,
            left_out=trial.left_out,
            unmappable=unmappable,
            share=share,
            share_limits=limits,
            collisions=collisions,
            hot=hot_keys(trial),
            too_large=trial.too_large,
            not_back=trial.not_back,
            indexes=_shares(trial),
            readers=readers,
            costs=costs(trial, count, size, prices, self.backfill_rate, live),
            likeness=alike,
            blocks=blocks,
            notes=notes,
            examples=tuple(trial.examples),
        )

    def _reader(self, table: Table, max_units: float | None) -> PageReader:
        source = replace(table.source(), whole=True)
        budget = Budget(max_rate=self.max_read_rate, max_units=max_units)
        return PageReader(self.connection, source, budget)

    def _indexes(self, table: Table) -> dict[str, list[str]]:
        entries = table.description.get("GlobalSecondaryIndexes", ())
        return {
            entry["IndexName"]: [key["AttributeName"] for key in entry["KeySchema"]]
            for entry in entries
            if entry["IndexName"] != KEY_INDEX
        }

    def _counted(self, reader: PageReader) -> tuple[dict[str, int], int, Collisions]:
        """Return unmappable items by reason, the number of all items, and the collisions."""
        reasons: dict[str, int] = {}
        items = 0
        with tally() as places:
            for item in everything(reader, self.ours):
                items += 1
                try:
                    place = self.transform.place_of(item)
                except Unmappable as error:
                    reasons[str(error)] = reasons.get(str(error), 0) + 1
                    continue
                if place is not None:
                    places.add(place)
            pairs = places.pairs()
        return reasons, items, Collisions("counted", pairs, pairs)


def table_items(table: Table) -> int:
    """Return the number of items that DynamoDB reports, which may be six hours old."""
    return int(table.description.get("ItemCount", 0))


def _shares(trial: Trial) -> dict[str, tuple[float, float]]:
    return {
        name: (
            trial.before[name] / max(1, trial.items),
            trial.entered[name] / max(1, trial.mapped),
        )
        for name in trial.indexes
    }


def _keys_json(keys: KeySpace) -> dict[str, Any]:
    (partition,) = keys.partition
    sort = keys.sort and {"name": keys.sort.name, "type": keys.sort.type}
    return {"partition": {"name": partition.name, "type": partition.type}, "sort": sort}
