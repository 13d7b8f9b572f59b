"""`plan`: the effect of a re-key on a table's items, and whether to do it at all.

It tries the transform on a sample, and changes nothing. First it asks whether an index suffices.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.schema import KEY_INDEX, KeySpace
from keyhop.dynamodb.tables import look_up
from keyhop.dynamodb.values import Item, Key, to_json
from keyhop.rekey.life_cycle.create import shown_keys
from keyhop.rekey.life_cycle.features import ClientOf, gather
from keyhop.rekey.life_cycle.likeness import Likeness
from keyhop.rekey.plan.reading import (
    DEFAULT_SAMPLE,
    OURS,
    Readers,
    draw,
    everything,
    readers_of,
    tally,
    write_rate,
)
from keyhop.rekey.plan.trial import (
    Question,
    Trial,
    costs,
    estimated,
    hot_keys,
    index_question,
    notes_on,
    obstacles,
)
from keyhop.rekey.template.functions import tried
from keyhop.rekey.transform import KeyNames, Transform, key_digest
from keyhop.scan.reader import PageReader
from keyhop.scan.statistics import proportion_limits
from keyhop.template import Unmappable
from keyhop.wording import counted, duration

DEFAULT_READ_UNITS = 200.0


@dataclass(frozen=True, slots=True)
class RekeyPlan:
    """A plan of a re-key to the keys of the destination. `repr` shows no keys.

    Attributes:
        blocks: The problems that prevent the re-key.
        question: Whether an index would suffice; the user should consider it first.
        spaces: The keys of the source and of the destination.
        examples: Items before and after.
        content: Everything else, as `to_json` returns it.
    """

    blocks: Sequence[str]
    question: Question = field(repr=False)
    spaces: tuple[KeySpace, KeySpace] = field(repr=False)
    examples: Sequence[tuple[Item, Item]] = field(repr=False)
    content: Mapping[str, Any] = field(repr=False)

    def to_json(self, show_keys: bool = False) -> dict[str, Any]:
        """Return the plan, as `keyhop rekey plan --format typed-json` prints it.

        Hot keys are left out. The keys of the examples are digests, unless `show_keys` is true.
        """
        examples = [
            {"before": before, "after": after} for before, after in self._example_keys(show_keys)
        ]
        return {**self.content, "blocks": list(self.blocks), "examples": examples}

    def to_text(self, show_keys: bool = False) -> str:
        """Return the plan for a person. The examples' keys are digests, unless `show_keys`."""
        text = [*_question(self), "", *_table(_what(self)), "", *_costs(self.content["costs"])]
        text += _listed("Please note:", self.content["notes"])
        text += _listed("Problems that prevent the re-key:", self.blocks)
        if show_keys:
            return "\n".join([*text, *_listed("Items before and after:", self._whole_examples())])
        head = "Items before and after, by digests of their keys (show_keys shows them):"
        digests = [f"{before} -> {after}" for before, after in self._example_keys(False)]
        return "\n".join([*text, *_listed(head, digests)])

    def _example_keys(self, show_keys: bool) -> Iterator[tuple[Any, Any]]:
        old, new = map(KeyNames.of_schema, self.spaces)
        for before, after in self.examples:
            keys = old.of(before), new.of(after)
            if show_keys:
                yield to_json(keys[0]), to_json(keys[1])
            else:
                yield key_digest(keys[0]).hex()[:12], key_digest(keys[1]).hex()[:12]

    def _whole_examples(self) -> Iterator[str]:
        """Yield keys of items before and after, and the names of the attributes that change."""
        old, new = self.spaces
        for before, after in self.examples:
            added = sorted(name for name in after if name not in before and name not in new.types)
            removed = sorted(name for name in before if name not in after)
            changes = [f"with {', '.join(added)}"] if added else []
            changes += [f"without {', '.join(removed)}"] if removed else []
            yield _shown_key(before, old)
            yield f"  -> {_shown_key(after, new)}" + (f" ({'; '.join(changes)})" if changes else "")


def make_plan(
    connection: Connection,
    source: str,
    destination: str,
    keys: KeySpace,
    transform: Transform,
    *,
    client_of: ClientOf | None = None,
    ours: Key | None = None,
    is_sharded: bool = False,
    accepted: Sequence[str] = (),
    sample: int = DEFAULT_SAMPLE,
    max_read_units: float = DEFAULT_READ_UNITS,
    max_read_rate: float | None = None,
    full: bool = False,
    chance: random.Random | None = None,
) -> RekeyPlan:
    """Make the plan of a re-key to `keys`.

    Args:
        ours: The attributes that identify sentinels in the source.
        is_sharded: Whether the source is a sharded table of Keyhop.
        accepted: The losses that the user accepts (likeness.ACCEPTS).
        full: Whether to read the whole table, to count all collisions and unmappable items.

    Raises:
        TableNotFound, NotPermitted, BudgetSpent: See keyhop.errors, also for others.
    """

    def reader_of(max_units: float | None) -> PageReader:
        budget = Budget(max_rate=max_read_rate, max_units=max_units)
        items_of = replace(table.source(), whole=True)
        return PageReader(connection, items_of, budget, patience=connection.patience)

    table = look_up(connection, source)
    features = gather(connection, table, client_of)
    alike = Likeness(features, destination, keys, accepted)
    reader = reader_of(max_read_units)
    sampled_items, sampled_share, is_random = draw(reader, sample, chance or random.Random())
    indexes = {
        entry["IndexName"]: [key["AttributeName"] for key in entry["KeySchema"]]
        for entry in table.description.get("GlobalSecondaryIndexes", ())
        if entry["IndexName"] != KEY_INDEX
    }
    for entry in alike.request.get("LocalSecondaryIndexes", ()):  # under another partition key
        indexes[entry["IndexName"]] = [entry["KeySchema"][1]["AttributeName"]]
    trial = Trial(transform, indexes, ours).add(sampled_items)
    unmappable, items = dict(trial.unmappable), trial.items
    collisions = estimated(trial, sampled_share)
    is_whole = sampled_share == 1.0
    if full and not is_whole:
        is_whole = True
        full_reader = reader_of(None)
        unmappable, items, collisions = _counted(full_reader, transform, ours)
        reader.usage.count(read_units=full_reader.usage.read_units)
    # The number that DynamoDB reports may be six hours old.
    count = items if is_whole else max(int(table.description.get("ItemCount", 0)), items)
    size = max(int(table.description.get("TableSizeBytes", 0)), trial.bytes_before)
    bad = sum(unmappable.values())
    share = bad / items if items else 0.0
    # Items of a collection are alike, so each collection counts once.
    looks = trial.collections
    low, high = (share, share) if is_whole else proportion_limits(share * looks, looks)
    readers = readers_of(client_of, table.stream) if table.stream else Readers()
    prices = connection.prices
    live_rate = write_rate(client_of, table)
    question = index_question(trial, table, count, size, prices)
    blocks = [row.refusal for row in alike.refused]
    blocks += obstacles(table, trial, bad, collisions["pairs"], is_sharded)
    blocks += tried(transform, sampled_items)
    content = {
        "source": table.bare_name,
        "destination": destination,
        "question": question.to_json(),
        "keys": {"source": _keys_json(table.space), "destination": _keys_json(keys)},
        "class": transform.kind,
        "owner_attributes": list(transform.owner_attributes),
        "items": count,
        "bytes": size,
        "sample": {
            "items": trial.items,
            "whole": is_whole,
            "read_units": reader.usage.read_units,
            "left_out": trial.left_out,
            "too_large": trial.too_large,
            "not_back": trial.not_back,
        },
        "unmappable": {"reasons": unmappable, "share": share, "from": low, "to": high},
        "collisions": collisions,
        "hot": hot_keys(trial),
        "indexes": {
            name: {
                "before": trial.before[name] / max(1, trial.items),
                "after": trial.entered[name] / max(1, trial.mapped),
            }
            for name in indexes
        },
        "readers": readers.to_json(),
        "costs": costs(trial, count, size, prices, live_rate, table.throughput),
        "likeness": [row.to_json() for row in alike.rows],
        "blocks": blocks,
        "notes": notes_on(table, features, trial, readers, is_random),
    }
    return RekeyPlan(blocks, question, (table.space, keys), trial.examples, content)


def _counted(
    reader: PageReader, transform: Transform, ours: Key | None
) -> tuple[dict[str, int], int, dict[str, Any]]:
    """Return unmappable items by reason, the number of all items, and the collisions."""
    reasons: Counter[str] = Counter()
    items = 0
    with tally() as places:
        for item in everything(reader, ours):
            items += 1
            try:
                place = transform.place_of(item)
            except Unmappable as error:
                reasons[str(error)] += 1
                continue
            if place is not None:
                places.add(place)
        pairs = places.pairs()
    return dict(reasons), items, {"how": "counted", "pairs": pairs, "at_most": pairs}


def _keys_json(keys: KeySpace) -> dict[str, Any]:
    (partition,) = keys.partition
    sort = keys.sort and {"name": keys.sort.name, "type": keys.sort.type}
    return {"partition": {"name": partition.name, "type": partition.type}, "sort": sort}


def _question(plan: RekeyPlan) -> Iterator[str]:
    question = plan.question
    yield question.asks
    costs = ""
    if question.costs:
        fill, million, month = (f"${dollars:,.2f}" for dollars in question.costs.values())
        costs = f"{fill} to fill, {million} a million changes of its items, {month} a month; "
    yield f"  an index: {costs}{question.needs}"
    if question.update:
        yield f"    {question.command}"
    for note in question.notes:
        yield f"    {note}"
    moves = plan.content["costs"]["backfill"]["dollars"]
    yield f"  a re-key: ${moves:,.2f} to fill, and the costs below"
    if question.collection_share >= 0.05:
        yield (
            f"  {question.collection_share:.0%} of the sample is under one partition key: an index "
            "would not cool its writes"
        )


def _what(plan: RekeyPlan) -> Iterator[tuple[str, str]]:
    content, (old, new) = plan.content, map(shown_keys, plan.spaces)
    sample, unmappable = content["sample"], content["unmappable"]
    yield "from", f"{content['source']}: {old}"
    yield "to", f"{content['destination']}: {new}"
    yield "items", f"{content['items']:,}, {counted(content['bytes'], 'byte')}"
    extent = "all" if sample["whole"] else "a sample"
    units = f"{sample['read_units']:,.1f} read units"
    yield "read", f"{extent}: {counted(sample['items'], 'item')}, {units}"
    yield "class", _class(content)
    yield "left out", f"{counted(sample['left_out'], 'item')}, as the template says"
    limits = f"{unmappable['from']:.2%} to {unmappable['to']:.2%}"
    yield "cannot be mapped", f"{unmappable['share']:.2%} ({limits})"
    for why, count in unmappable["reasons"].items():
        yield "", f"{counted(count, 'item')}: {why}"
    yield "collisions", _collisions(**content["collisions"])
    if content["hot"]:
        first, *cooler = content["hot"]
        more = f"; {counted(len(cooler), 'other key')} as hot or less" if cooler else ""
        yield (
            "hot new key",
            f"{first['share']:.0%} of items get one partition key: it throttles from "
            f"{counted(round(first['most_write_units']), 'write')} a second of the table on; "
            f"shard:{first['shards']} in its template spreads it{more}",
        )
    for name, of_index in content["indexes"].items():
        says = f"has {of_index['before']:.0%} of items, would have {of_index['after']:.0%}"
        yield f"index {name}", says
    names = (*content["readers"]["functions"], *content["readers"]["pipes"], *OURS)
    yield "read the stream", f"{len(names)} in a cutover: {', '.join(names)}"


def _class(content: Mapping[str, Any]) -> str:
    if content["class"] == "bijective":
        return "bijective: the old key can be derived from the new key, so no two items can collide"
    names = ", ".join(content["owner_attributes"])
    return f"recoverable: the old key can be derived from the new key and {names}"


def _collisions(how: str, pairs: float, at_most: float | None) -> str:
    if how == "none":
        return "not possible"
    if how == "counted":
        return f"{counted(pairs, 'pair')} of items would get the same key"
    if at_most is None:
        return "unknown"
    return f"about {counted(pairs, 'pair')}, at most {at_most:,.0f}; a full plan counts them"


def _costs(costs: Mapping[str, Any]) -> list[str]:
    fill, live, export = costs["backfill"], costs["live"], costs["export_import"]
    day = live["dollars_a_day"]
    rows = {
        "backfill": f"${fill['dollars']:,.2f} (of indexes ${fill['of_indexes']:,.2f}), "
        f"{duration(fill['seconds'])} at {fill['write_rate']:,.0f} writes a second",
        "verify": f"${costs['verify']['dollars']:,.2f} each time",
        "live changes": f"${live['dollars_a_million']:,.2f} a million"
        + ("" if day is None else f"; ${day:,.2f} a day at the current rate of writes"),
        "storage": f"${costs['storage']['dollars_a_month']:,.2f} a month, while both tables exist",
        "instead": f"${export['dollars']:,.2f} ({export['prices']}): {export['says']}",
        "or instead": str(costs["bulk_put"]["says"]),
        "prices": str(costs["prices"]),
    }
    return _table(rows.items())


def _listed(head: str, texts: Iterable[str]) -> list[str]:
    """Return a heading and the texts below it; nothing without texts."""
    lines = [f"  {text}" for text in texts]
    return ["", head, *lines] if lines else []


def _table(rows: Iterable[tuple[str, str]]) -> list[str]:
    rows = list(rows)
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
