"""Format a plan for people. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.values import Item
from keyhop.rekey.life_cycle.create import shown_keys
from keyhop.rekey.plan.planning import Plan
from keyhop.wording import counted, duration

_Shown = Sequence[tuple[str, str]]


def lines(plan: Plan) -> list[str]:
    """Return all lines but the examples, which hold values of users (example_lines)."""
    return [*_question(plan), "", *_table(_what(plan)), "", *_costs(plan), *_ends(plan)]


def example_lines(plan: Plan) -> list[str]:
    """Return the keys of items before and after, and the names of the attributes that change."""
    lines_shown = []
    for before, after in plan.examples:
        lines_shown.append(f"  {_shown_key(before, plan.source_keys)}")
        lines_shown.append(f"    -> {_shown_key(after, plan.keys)}{_changes(before, after, plan)}")
    return lines_shown


def _question(plan: Plan) -> Iterator[str]:
    question = plan.question
    fill, million, month = (
        f"${question.costs[name]:,.2f}"
        for name in ("dollars", "dollars_a_million", "dollars_a_month")
    )
    moves = plan.costs["backfill"]["dollars"]
    yield question.asks
    costs = f"{fill} to fill, {million} a million changes, {month} a month"
    yield f"  an index: {costs}; {question.needs}"
    yield f"  a re-key: ${moves:,.2f} to fill, and what is below"
    if question.collection_share >= 0.05:
        yield (
            f"  {question.collection_share:.0%} of the sample is under one partition key: an index "
            "would not cool its writes"
        )


def _what(plan: Plan) -> _Shown:
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


def _class(plan: Plan) -> str:
    if plan.kind == "bijective":
        return "bijective: the old key can be derived from the new key, so no two items can collide"
    names = ", ".join(plan.owner_attributes)
    return f"recoverable: the old key can be derived from the new key and {names}"


def _collisions(plan: Plan) -> str:
    collisions = plan.collisions
    if collisions.how == "none":
        return "not possible"
    pairs = counted(collisions.pairs, "pair")
    if collisions.how == "counted":
        return f"{pairs} of items would get the same key"
    if collisions.at_most is None:
        return "unknown"
    return f"about {pairs}, at most {collisions.at_most:,.0f}; --full counts them"


def _costs(plan: Plan) -> list[str]:
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


def _ends(plan: Plan) -> Iterator[str]:
    if plan.notes:
        yield ""
        yield "Please note:"
        yield from (f"  {note}" for note in plan.notes)
    if plan.blocks:
        yield ""
        yield "Problems that prevent the re-key:"
        yield from (f"  {block}" for block in plan.blocks)


def _table(rows: _Shown) -> list[str]:
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


def _changes(before: Item, after: Item, plan: Plan) -> str:
    new = sorted(name for name in after if name not in before and name not in plan.keys.types)
    removed = sorted(name for name in before if name not in after)
    changes = [f"with {', '.join(new)}"] if new else []
    changes += [f"without {', '.join(removed)}"] if removed else []
    return f" ({'; '.join(changes)})" if changes else ""
