"""What an action of the life cycle learns: from the files of its walks, and by looks of its own."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from keyhop import __version__
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.units import UNITS_PER_BLOCK, US_EAST_1, Prices
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import canonical, from_json
from keyhop.errors import CannotStart
from keyhop.jobs.estimate import estimate
from keyhop.jobs.journal import Journal
from keyhop.jobs.layout import Wishes
from keyhop.jobs.model import usage_of
from keyhop.jobs.task import Examples, noted_examples
from keyhop.key_index.belief import Evidence, why_not
from keyhop.key_index.collections import Collections
from keyhop.key_index.index import Entered, entered_by, status_of
from keyhop.key_index.keeper import wrong
from keyhop.key_index.provisioned import Scaling, capacity_of, capacity_plan
from keyhop.key_index.request import Order
from keyhop.key_index.sentinel import INDEX, Sentinel
from keyhop.key_index.task import MOST_NAMED, Walk
from keyhop.scan.reader import PageReader
from keyhop.scan.statistics import Interval
from keyhop.wording import counted

ROWS_AT_ONCE = 50
EXAMPLES = 10
"""Keys of each kind that a report names."""


def manifest_of(journal: Journal) -> Mapping[str, Any]:
    """Of a walk's run; raises CannotStart if it is not finished."""
    manifest = journal.manifest()
    if manifest is None:
        raise CannotStart("The run of the walk is not finished: start again.")
    return manifest


def report_of(walk: Walk, journal: Journal) -> dict[str, Any]:
    """The report of a walk, from the manifest of its run."""
    manifest, plan = manifest_of(journal), journal.plan()
    return walk_report(
        walk,
        usage_of(manifest),
        manifest["seconds"],
        manifest["ended"],
        {kind: keys[:EXAMPLES] for kind, keys in noted_examples(journal).items()},
        US_EAST_1 if plan is None else plan.prices,
    )


def action_estimate(
    reader: PageReader, table: Table, order: Order, scaling: Scaling
) -> dict[str, Any]:
    """What an action would cost, by a sample; reader: of the table, as a walk reads it.

    What an audit will put right nobody knows before: its writes are not in it.
    """
    found = estimate(reader, "skip", "it walks by hops", Wishes())
    keys, walk = found.findings.keys, found.costs["skip"].units
    has_index = table.index(INDEX) is not None
    entered = entered_by(table)
    cost = action_cost(order.action, keys, walk, entered, has_index, reader.connection.prices)
    told = {"table": order.table, "keys": found.to_json()["keys"], **cost}
    if order.action == "build":
        seconds = round(cost["write_units"] / (order.max_write_rate or math.inf), 1)
        capacity = capacity_of(table, order.max_write_rate, scaling)
        told |= {"secondsOfWriting": seconds, "capacity": capacity_plan(capacity, seconds)}
    return {**told, "spent": {"read_units": found.spent_units}}


def remaining(
    connection: Connection, table: Table, sentinel: Sentinel, drift: int, named: Examples
) -> int:
    """Of what an audit found wrong, how much still is, by strongly consistent reads; all of it
    if more was wrong than is looked at again, or not all of it is known by name.
    """
    name = sentinel.partition.name
    keys = {}
    for key in map(from_json, chain(*named.values())):
        keys[canonical(key[name])] = key
    if drift > MOST_NAMED or len(keys) < drift:
        return drift
    source = table.source()
    collections = Collections(connection, table.name, sentinel, item_bytes=source.mean_item_bytes)
    return sum(wrong(collections, key) is not None for key in keys.values())


def has_rows(reader: PageReader) -> bool:
    """Whether there is a row that counts in the index; reads it to the end, or to the first."""
    start = None
    while True:
        page = reader.read(0, 1, start, ROWS_AT_ONCE, UNITS_PER_BLOCK)
        if page.keys:
            return True
        start = page.next
        if start is None:
            return False


DRIFT = ("missing", "surplus", "occupied")
"""What makes an index untrue: a collection without its sentinel, a sentinel without a collection, a
user's item where a sentinel should be."""

PARTITION_WRITE_UNITS = 1000
"""A second, of one partition of a table or an index (AWS documentation)."""

ROW_UNITS = 0.02
"""Read units of a row of the index, of some 150 bytes."""

LOOK_UNITS = 1.0
"""Read units of a strongly consistent look, if the two items have 4 KB together at most."""


def walk_report(
    walk: Walk,
    usage: Usage,
    seconds: float,
    ended: str,
    examples: Mapping[str, list[Any]],
    prices: Prices,
) -> dict[str, Any]:
    """A walk's report; repaired: what of the drift was put right."""
    found = usage.counters
    missing, surplus, occupied = (int(found[name]) for name in DRIFT)
    drift = missing + surplus + occupied if walk.kind == "audit" else occupied
    repairs = walk.kind == "audit" and walk.repair
    writes = usage.write_units
    return {
        "kind": walk.kind,
        "collections": int(found["collections"]),
        "drift": drift,
        "missing": missing,
        "surplus": surplus,
        "occupied": occupied,
        "late": int(found["late"]),
        "repaired": missing + surplus if repairs else 0,
        "put": int(found["put"]),
        "deleted": int(found["deleted"]),
        "requests": usage.requests,
        "strong_reads": int(found["strong_reads"]),
        "read_units": round(usage.read_units, 3),
        "write_units": round(writes, 3),
        "dollars": round(prices.dollars(usage.read_units, writes), 9),
        "price": prices.on_demand,
        "seconds": round(seconds, 3),
        "ended": ended,
        "examples": dict(examples),
        "software_version": __version__,
    }


def with_earlier_round(report: dict[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    """The report of a walk that took several rounds: what all of them came to."""
    if before is None:
        return report
    sums = ("deleted", "collections", "requests", "strong_reads")
    figures = ("read_units", "write_units", "dollars", "seconds")
    return {**report, **{name: round(before[name] + report[name], 9) for name in sums + figures}}


def action_cost(
    action: str,
    keys: Interval,
    walk: Interval,
    entered: Entered,
    has_index: bool,
    prices: Prices,
) -> dict[str, Any]:
    """What an action over `keys` collections costs, if one skip-scan of the table takes `walk`.

    A build walks to look, where there is no index yet, then to put sentinels, and a third time for
    its audit, which reads the sentinel and one more item of each collection, at 0.5 read units
    while they have 4 KB together; larger ones cost more. A removal reads the rows of the index.
    """

    def units(keys: float, walk: float) -> tuple[float, float]:
        if action == "audit":
            return walk, 0.0
        writes = entered.write_units * keys
        if action == "build":
            return (2 if has_index else 3) * walk + LOOK_UNITS * keys, writes
        return ROW_UNITS * keys if has_index else walk + LOOK_UNITS * keys, writes

    reads, writes = units(keys.mean, walk.mean)
    high = prices.dollars(*units(keys.high, walk.high))
    return {
        "write_units": round(writes, 1),
        "write_units_per_key": entered.write_units,
        "enters": list(entered.indexes),
        "hot": list(entered.hot),
        "read_units": round(reads, 1),
        "dollars": round(prices.dollars(reads, writes), 9),
        "dollars_high": None if math.isinf(high) else round(high, 9),
        "price": prices.on_demand,
    }


def estimate_facts(estimate: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What an action would cost, above the question whether to do it."""
    keys, high = estimate["keys"], estimate["dollars_high"]
    yield "keys", f"about {keys['estimate']:,} ({keys['low']:,} to {keys['high'] or '?'})"
    each = f"{estimate['write_units_per_key']:g} WRU for each sentinel"
    written = f"about {estimate['write_units']:,.0f} WRU, {each}"
    yield "writes", written if estimate["write_units"] else f"{each} that is put right"
    yield "reads", f"about {estimate['read_units']:,.0f} RRU"
    most = "with no upper limit that is known" if high is None else f"at most ${high:,.4f}"
    yield "cost", f"about ${estimate['dollars']:,.4f}, {most} ({estimate['price']})"
    if estimate.get("capacity"):
        yield "capacity", capacity_text(estimate["capacity"]).strip()
    if estimate["hot"]:
        yield "hot", hot_text(estimate["hot"])


def estimate_text(table: str, estimate: Mapping[str, Any]) -> str:
    """What a build would cost, for a person."""
    keys = estimate["keys"]
    told = (
        f"{table}: about {counted(keys['estimate'], 'key')} "
        f"({keys['low']:,} to {keys['high'] or '?'}); a build would write "
        f"{estimate['write_units']:,.0f} WRU and read {estimate['read_units']:,.0f} RRU, its audit "
        f"included: ${estimate['dollars']:,.4f} ({estimate['price']}), and write for "
        f"{estimate['secondsOfWriting']:,.0f} s. Looked at for "
        f"{estimate['spent']['read_units']:g} RRU."
    )
    if estimate["capacity"]:
        told += capacity_text(estimate["capacity"])
    if estimate["enters"]:
        told += (
            f" A sentinel costs {estimate['write_units_per_key']:g} WRU, as it enters the table's "
            f"own indexes too: {', '.join(estimate['enters'])}."
        )
    if estimate["hot"]:
        told += f" {hot_text(estimate['hot'])}"
    return told


def hot_text(hot: Sequence[str]) -> str:
    """What to know of indexes where all sentinels have one partition key."""
    return (
        f"In {', '.join(hot)} all sentinels have one partition key, which takes "
        f"{PARTITION_WRITE_UNITS:,} write units a second at most; a write for which it has no "
        f"room is throttled: hold the build well under that (maxWriteRate, --max-write-rate). "
        f"Another sort key for sentinels (sentinelSortKey, --sentinel) keeps them off a key of "
        f"yours there."
    )


def capacity_text(plan: Mapping[str, Any]) -> str:
    """The capacity of a plan, for a person."""
    building, kept = plan["building"], plan["kept"]
    units = f"{kept['write']:,} and {kept['read']:,}"
    told = (
        f" The table has provisioned capacity, so the index gets its own: {building['write']:,} "
        f"WCU and {building['read']:,} RCU while it is built "
        f"(${plan['dollars_while_building']:,.4f} for the writing), then {units}: "
        f"${plan['dollars_a_month']:,.2f} a month ({plan['price']})."
    )
    if plan["scaled"]:
        return f"{told} From there it scales as the table does, up to the table's most."
    seen = "no auto scaling" if plan["scaled"] is False else "no auto scaling that can be seen"
    return (
        f"{told} The table has {seen}: raise the index's if collections come and go faster than "
        f"{kept['write']:,} a second, or if it is to be read faster."
    )


def report_text(table: str, report: Mapping[str, Any]) -> str:
    """A report for a person; it names the examples, which are keys."""
    lines = [_headline(table, report)]
    if report["occupied"]:
        lines.append(
            f"  occupied  "
            f"{counted(report['occupied'], 'collection has', 'collections have')} an item of yours "
            f"at the sentinel's sort key: build with another one (--sentinel)"
        )
    if report["late"]:
        lines.append(f"  late      {report['late']:,}: the keeper was only slow")
    lines += [
        f"  read      {report['read_units']:,.1f} RRU in {counted(report['requests'], 'page')} and "
        f"{counted(report['strong_reads'], 'strong read')}",
        f"  written   {report['write_units']:,.1f} WRU: {counted(report['put'], 'sentinel')} put, "
        f"{report['deleted']:,} deleted",
        f"  cost      ${report['dollars']:,.6f} ({report['price']})",
    ]
    for kind, keys in report["examples"].items():
        lines.append(f"  {kind:9} {'; '.join(map(str, keys))}")
    return "\n".join(lines)


def _headline(table: str, report: Mapping[str, Any]) -> str:
    seconds = f"in {report['seconds']:,.1f} s"
    if report["kind"] == "build":
        return f"Built: {counted(report['collections'], 'collection')} of {table}, {seconds}"
    if report["kind"] == "remove":
        return f"Removed: {counted(report['deleted'], 'sentinel')} of {table}, {seconds}"
    if not report["drift"]:
        return f"No drift: {counted(report['collections'], 'collection')} of {table}, {seconds}"
    repaired = f"{report['repaired']:,} repaired" if report["repaired"] else "not repaired"
    return (
        f"Drift: {counted(report['missing'], 'sentinel')} of {table} missing, "
        f"{report['surplus']:,} surplus ({repaired}), among "
        f"{counted(report['collections'], 'collection')}, {seconds}"
    )


def status_report(table: Table, seen: Evidence, place: str) -> tuple[dict[str, Any], str]:
    """The state of a table's key index, and the same for a person.

    place: where its record and its lease are.
    """
    why, audit, lease = why_not(seen), seen.entry.audit, seen.entry.lease
    index = table.index(INDEX)
    rows = 0 if index is None else int(index.get("ItemCount", 0))
    keepers = None if seen.keepers is None else [keeper.function for keeper in seen.keepers]
    report = {
        "table": table.bare_name,
        "index": status_of(table),
        "rows_reported": rows,
        "stream": table.stream,
        "keepers": keepers,
        "lag_seconds": seen.lag_seconds,
        "failures": seen.failures,
        "record": place,
        "lease": None if lease is None else lease.to_json(),
        "audit": audit,
        "auto_uses_it": why is None,
        "why_not": why,
    }
    some = _rows_text(rows, audit) if index else ""
    follows = "not to be seen from here" if keepers is None else ", ".join(keepers) or "none"
    last = "none on record here"
    if audit is not None:
        last = (
            f"{audit['ended']}: {counted(audit['collections'], 'collection')}, missing "
            f"{audit['missing']:,}, surplus {audit['surplus']:,}, occupied {audit['occupied']:,}"
        )
    held = "free"
    if lease is not None:
        held = f"{lease.action}, by {lease.holder} since {lease.since}"
    lines = (
        table.bare_name,
        f"  index     {INDEX}: {status_of(table) or 'there is none'}{some}",
        f"  stream    {f'on, {table.stream_view}' if table.stream else 'off'}",
        f"  keeper    {follows}",
        f"  audit     {last}",
        f"  lease     {held}",
        f"  record    {place}",
        f"  auto      {'reads it' if why is None else f'does not read it: {why}'}",
    )
    return report, "\n".join(lines)


def _rows_text(rows: int, audit: Mapping[str, Any] | None) -> str:
    """How many sentinels an index has, by who counted last: DescribeTable's count is up to six
    hours old, and 0 of a new index.
    """
    if audit is not None and not audit.get("remaining", audit["drift"]):
        return f", {counted(audit['collections'], 'sentinel')} at the last audit"
    return f", {counted(rows, 'row')} by a count of the service that is up to six hours old"
