"""`plan`: the effect of a re-key on a table's items, and whether to do it at all.

It tries the transform on a sample, and changes nothing. First it asks whether an index suffices.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.schema import KEY_INDEX, KeySpace
from keyhop.dynamodb.tables import Table, look_up
from keyhop.dynamodb.values import Item, Key, to_json
from keyhop.rekey.digest import key_digest
from keyhop.rekey.life_cycle.create import shown_keys
from keyhop.rekey.life_cycle.features import ClientOf, gather
from keyhop.rekey.life_cycle.likeness import Likeness
from keyhop.rekey.plan.judgement import (
    Hot,
    Question,
    costs,
    hot_keys,
    index_costs,
    index_question,
    notes_on,
    obstacles,
)
from keyhop.rekey.plan.reading import (
    DEFAULT_SAMPLE,
    Readers,
    draw,
    everything,
    readers_of,
    tally,
    write_rate,
)
from keyhop.rekey.plan.trial import Collisions, Trial, estimated
from keyhop.rekey.template.functions import tried
from keyhop.rekey.transform import KeyNames, Transform
from keyhop.scan.reader import PageReader
from keyhop.scan.statistics import proportion_limits
from keyhop.template import Unmappable
from keyhop.wording import counted, duration

DEFAULT_READ_UNITS = 200.0


@dataclass(frozen=True, slots=True)
class RekeyPlan:
    """A plan of a re-key to the keys of the destination. `repr` shows no keys.

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
    hot: Sequence[Hot] = field(repr=False)
    too_large: int
    not_back: int
    indexes: Mapping[str, tuple[float, float]]
    readers: Readers
    costs: Mapping[str, Any]
    likeness: Likeness
    blocks: Sequence[str] = ()
    notes: Sequence[str] = ()
    examples: Sequence[tuple[Item, Item]] = field(default=(), repr=False)

    def to_json(self, show_keys: bool = False) -> dict[str, Any]:
        """Return the plan, as `keyhop rekey plan --format typed-json` prints it.

        Hot keys are left out. The keys of the examples are digests, unless `show_keys` is true.
        """
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
            "examples": [
                {"before": before, "after": after}
                for before, after in self._example_keys(show_keys)
            ],
        }

    def to_text(self, show_keys: bool = False) -> str:
        """Return the plan for a person. The examples' keys are digests, unless `show_keys`."""
        examples: Iterator[str] = iter(())
        if self.examples and show_keys:
            examples = iter(["", "Items before and after:", *example_lines(self)])
        elif self.examples:
            keys = self._example_keys(show_keys)
            head = "Items before and after, by digests of their keys (--show-keys full shows them):"
            examples = iter(["", head, *(f"  {before} -> {after}" for before, after in keys)])
        return "\n".join([*lines(self), *examples])

    def _example_keys(self, show_keys: bool) -> Iterator[tuple[Any, Any]]:
        spaces = KeyNames.of_schema(self.source_keys), KeyNames.of_schema(self.keys)
        for items in self.examples:
            before, after = (names.of(item) for names, item in zip(spaces, items, strict=True))
            if show_keys:
                yield to_json(before), to_json(after)
            else:
                yield key_digest(before).hex()[:12], key_digest(after).hex()[:12]


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
    chance: random.Random = field(default_factory=random.Random)

    def plan(self) -> RekeyPlan:
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
        # The number that DynamoDB reports may be six hours old.
        count = items if is_whole else max(int(table.description.get("ItemCount", 0)), items)
        size = max(int(table.description.get("TableSizeBytes", 0)), trial.bytes_before)
        bad = sum(unmappable.values())
        share = bad / items if items else 0.0
        # Items of a collection are alike, so each collection counts once.
        looks = trial.collections
        limits = (share, share) if is_whole else proportion_limits(share * looks, looks)
        readers = readers_of(self.client_of, table.stream) if table.stream else Readers()
        live = write_rate(self.client_of, table)
        blocks = [row.refusal for row in alike.refused]
        blocks += obstacles(table, trial, bad, collisions.pairs, self.is_sharded)
        blocks += tried(self.transform, sample.items)
        prices = self.connection.prices
        return RekeyPlan(
            source=table.bare_name,
            destination=self.destination,
            question=index_question(trial, index_costs(trial, count, size, prices), table),
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
            costs=costs(trial, count, size, prices, live),
            likeness=alike,
            blocks=blocks,
            notes=notes_on(table, features, trial, readers, sample.is_random),
            examples=tuple(trial.examples),
        )

    def _reader(self, table: Table, max_units: float | None) -> PageReader:
        source = replace(table.source(), whole=True)
        budget = Budget(max_rate=self.max_read_rate, max_units=max_units)
        return PageReader(self.connection, source, budget, patience=self.connection.patience)

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


def lines(plan: RekeyPlan) -> list[str]:
    """Return a plan as lines, without the examples, which hold values of users (example_lines)."""
    return [*_question(plan), "", *_table(_what(plan)), "", *_costs(plan), *_ends(plan)]


def example_lines(plan: RekeyPlan) -> list[str]:
    """Return the keys of items before and after, and the names of the attributes that change."""
    lines_shown = []
    for before, after in plan.examples:
        lines_shown.append(f"  {_shown_key(before, plan.source_keys)}")
        lines_shown.append(f"    -> {_shown_key(after, plan.keys)}{_changes(before, after, plan)}")
    return lines_shown


def _question(plan: RekeyPlan) -> Iterator[str]:
    question = plan.question
    fill, million, month = (
        f"${question.costs[name]:,.2f}"
        for name in ("dollars", "dollars_a_million", "dollars_a_month")
    )
    moves = plan.costs["backfill"]["dollars"]
    yield question.asks
    costs = f"{fill} to fill, {million} a million changes, {month} a month"
    yield f"  an index: {costs}; {question.needs}"
    if question.update:
        yield f"    {question.command}"
    if max(len(question.partition), len(question.sort)) > 1:
        yield f"    {question.limits}"
    yield f"  a re-key: ${moves:,.2f} to fill, and what is below"
    if question.collection_share >= 0.05:
        yield (
            f"  {question.collection_share:.0%} of the sample is under one partition key: an index "
            "would not cool its writes"
        )


def _what(plan: RekeyPlan) -> Sequence[tuple[str, str]]:
    low, high = plan.share_limits
    extent = "all" if plan.is_whole else "a sample"
    rows = [
        ("from", f"{plan.source}: {shown_keys(plan.source_keys)}"),
        ("to", f"{plan.destination}: {shown_keys(plan.keys)}"),
        ("items", f"{plan.items:,}, {counted(plan.size_bytes, 'byte')}"),
        ("read", f"{extent}: {counted(plan.sampled, 'item')}, {plan.read_units:,.1f} read units"),
        ("class", _class(plan)),
        ("left out", f"{counted(plan.left_out, 'item')}, as the template says"),
        ("cannot be mapped", f"{plan.share:.2%} ({low:.2%} to {high:.2%})"),
    ]
    rows += [("", f"{counted(n, 'item')}: {why}") for why, n in plan.unmappable.items()]
    rows.append(("collisions", _collisions(plan)))
    if plan.hot:
        first, *cooler = plan.hot
        more = f"; {counted(len(cooler), 'other key')} as hot or less" if cooler else ""
        rows.append(
            (
                "hot new key",
                f"{first.share:.0%} of items get one partition key: it throttles from "
                f"{first.most_units:,.0f} writes a second of the table on; shard:{first.shards} "
                f"in its template spreads it{more}",
            )
        )
    for name, (before, after) in plan.indexes.items():
        rows.append((f"index {name}", f"has {before:.0%} of items, would have {after:.0%}"))
    names = plan.readers.during_cutover
    rows.append(("read the stream", f"{len(names)} in a cutover: {', '.join(names)}"))
    return rows


def _class(plan: RekeyPlan) -> str:
    if plan.kind == "bijective":
        return "bijective: the old key can be derived from the new key, so no two items can collide"
    names = ", ".join(plan.owner_attributes)
    return f"recoverable: the old key can be derived from the new key and {names}"


def _collisions(plan: RekeyPlan) -> str:
    collisions = plan.collisions
    if collisions.how == "none":
        return "not possible"
    pairs = counted(collisions.pairs, "pair")
    if collisions.how == "counted":
        return f"{pairs} of items would get the same key"
    if collisions.at_most is None:
        return "unknown"
    return f"about {pairs}, at most {collisions.at_most:,.0f}; --full counts them"


def _costs(plan: RekeyPlan) -> list[str]:
    costs = plan.costs
    fill, live, export = costs["backfill"], costs["live"], costs["export_import"]
    day = live["dollars_a_day"]
    return _table(
        [
            (
                "backfill",
                f"${fill['dollars']:,.2f} (of indexes ${fill['of_indexes']:,.2f}), "
                f"{duration(fill['seconds'])} at {fill['write_rate']:,.0f} writes a second",
            ),
            ("verify", f"${costs['verify']['dollars']:,.2f} each time"),
            (
                "live changes",
                f"${live['dollars_a_million']:,.2f} a million"
                + ("" if day is None else f"; ${day:,.2f} a day at the current rate of writes"),
            ),
            (
                "storage",
                f"${costs['storage']['dollars_a_month']:,.2f} a month, while both tables exist",
            ),
            ("instead", f"${export['dollars']:,.2f} ({export['prices']}): {export['says']}"),
            ("or instead", str(costs["bulk_put"]["says"])),
            ("prices", str(costs["prices"])),
        ]
    )


def _ends(plan: RekeyPlan) -> Iterator[str]:
    if plan.notes:
        yield ""
        yield "Please note:"
        yield from (f"  {note}" for note in plan.notes)
    if plan.blocks:
        yield ""
        yield "Problems that prevent the re-key:"
        yield from (f"  {block}" for block in plan.blocks)


def _table(rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max(len(name) for name, _ in rows)
    return [f"  {name.ljust(width)}  {text}" for name, text in rows]


def _shown_key(item: Item, keys: KeySpace) -> str:
    return ", ".join(f"{name}={_value(item.get(name))}" for name in keys.types)


def _value(typed: Mapping[str, Any] | None) -> str:
    """Return a value as printable text, as it comes from other people."""
    if typed is None:
        return "-"
    content = next(iter(typed.values()))
    return "".join(c if c.isprintable() else "?" for c in str(content))


def _changes(before: Item, after: Item, plan: RekeyPlan) -> str:
    new = sorted(name for name in after if name not in before and name not in plan.keys.types)
    removed = sorted(name for name in before if name not in after)
    changes = [f"with {', '.join(new)}"] if new else []
    changes += [f"without {', '.join(removed)}"] if removed else []
    return f" ({'; '.join(changes)})" if changes else ""
