"""The results of an action of the life cycle, from the files of its walks and further reads."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from keyhop import __version__
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.units import BLOCK_BYTES, PARTITION_WRITE_UNITS, UNITS_PER_BLOCK, US_EAST_1
from keyhop.dynamodb.values import canonical, from_json
from keyhop.errors import CannotStart
from keyhop.jobs.estimate import estimate
from keyhop.jobs.journal import Journal, usage_of
from keyhop.jobs.layout import Wishes
from keyhop.jobs.task import Examples, noted_examples
from keyhop.key_index.index import indexes_entered, sentinel_write_units, status_of
from keyhop.key_index.keeper import Collections
from keyhop.key_index.provisioned import Scaling, capacity_of, capacity_plan
from keyhop.key_index.request import Order
from keyhop.key_index.sentinel import INDEX, Sentinel
from keyhop.key_index.task import MOST_NAMED, Kind
from keyhop.key_index.trust import Evidence, why_not
from keyhop.scan.reader import PageReader
from keyhop.wording import counted

ROWS_AT_ONCE = 50
EXAMPLES = 10
"""The maximum number of keys of each kind that a report names."""

DRIFT = ("missing", "surplus", "occupied")
"""The kinds of drift: a collection without its sentinel, a sentinel without a collection, and a
user's item in the place of a sentinel."""

ROW_UNITS = 0.02
"""The read units of a row of the index, which has about 150 bytes."""

LOOK_UNITS = 1.0
"""The read units of a strongly consistent look at two items with at most 4 KB together."""


def manifest_of(journal: Journal) -> Mapping[str, Any]:
    """Return the manifest of a walk's run; raise CannotStart if the run is not finished."""
    manifest = journal.manifest()
    if manifest is None:
        raise CannotStart("The run of the walk is not finished: start again.")
    return manifest


def report_of(kind: Kind, order: Order, journal: Journal) -> dict[str, Any]:
    """Return the report of a walk, from its run. `repaired` is a part of `drift`."""
    manifest, plan = manifest_of(journal), journal.plan()
    prices = US_EAST_1 if plan is None else plan.prices
    usage = usage_of(manifest)
    counters = usage.counters
    missing, surplus, occupied = (int(counters[name]) for name in DRIFT)
    drift = missing + surplus + occupied if kind == "verify" else occupied
    repairs = kind == "verify" and order.repair
    return {
        "kind": kind,
        "collections": int(counters["collections"]),
        "drift": drift,
        "missing": missing,
        "surplus": surplus,
        "occupied": occupied,
        "late": int(counters["late"]),
        "repaired": missing + surplus if repairs else 0,
        "put": int(counters["put"]),
        "deleted": int(counters["deleted"]),
        "requests": usage.requests,
        "strong_reads": int(counters["strong_reads"]),
        "read_units": round(usage.read_units, 3),
        "write_units": round(usage.write_units, 3),
        "dollars": round(prices.dollars(usage.read_units, usage.write_units), 9),
        "price": prices.on_demand,
        "seconds": round(manifest["seconds"], 3),
        "ended": manifest["ended"],
        "examples": {kind: keys[:EXAMPLES] for kind, keys in noted_examples(journal).items()},
        "software_version": __version__,
    }


def action_estimate(
    reader: PageReader, table: Table, order: Order, scaling: Scaling
) -> dict[str, Any]:
    """Estimate the cost of an action from a sample.

    A build without an index yet walks to look, then to put sentinels, and a third time for its
    verification. The verification reads the sentinel and one more item of each collection. A
    removal reads the rows of the index. The writes of a verification are not included, because
    nobody knows in advance what it will repair. `reader` reads the table as a walk does.
    """
    estimated = estimate(reader, "skip", "it walks by hops", Wishes())
    all_keys, whole_walk = estimated.findings.keys, estimated.costs["skip"].units
    has_index = table.index(INDEX) is not None
    entered, hot = indexes_entered(table)
    units_per_key = sentinel_write_units(table)
    prices = reader.connection.prices
    item_blocks = (table.source().mean_item_bytes or 0.0) / BLOCK_BYTES
    second_item, look = UNITS_PER_BLOCK * item_blocks, max(LOOK_UNITS, 2 * item_blocks)

    def units(keys: float, walk: float) -> tuple[float, float]:
        if order.action == "verify":
            return walk + second_item * keys, 0.0
        writes = units_per_key * keys
        if order.action == "build":
            return (2 if has_index else 3) * walk + (look + second_item) * keys, writes
        return ROW_UNITS * keys if has_index else walk + look * keys, writes

    reads, writes = units(all_keys.mean, whole_walk.mean)
    low = prices.dollars(*units(all_keys.low, whole_walk.low))
    high = prices.dollars(*units(all_keys.high, whole_walk.high))
    outcome = {
        "table": order.table,
        "keys": estimated.to_json()["keys"],
        "write_units": round(writes, 1),
        "write_units_per_key": units_per_key,
        "enters": entered,
        "hot": hot,
        "read_units": round(reads, 1),
        "dollars": round(prices.dollars(reads, writes), 9),
        "dollars_low": round(low, 9),
        "dollars_high": None if math.isinf(high) else round(high, 9),
        "price": prices.on_demand,
    }
    if order.action == "build":
        seconds = round(round(writes, 1) / (order.max_write_rate or math.inf), 1)
        capacity = capacity_of(table, order.max_write_rate, scaling)
        outcome |= {"secondsOfWriting": seconds, "capacity": capacity_plan(capacity, seconds)}
    return {**outcome, "spent": {"read_units": estimated.spent_units}}


def remaining(
    connection: Connection, table: Table, sentinel: Sentinel, drift: int, named: Examples
) -> int:
    """Return how much of the drift that a verification found remains, by strongly consistent reads.

    If there was more drift than is read again, or not all of it is known by name, all of it counts.
    """
    name = sentinel.partition.name
    keys = {}
    for key in map(from_json, chain(*named.values())):
        keys[canonical(key[name])] = key
    if drift > MOST_NAMED or len(keys) < drift:
        return drift
    source = table.source()
    collections = Collections(connection, table.name, sentinel, item_bytes=source.mean_item_bytes)
    return sum(collections.wrong(key) is not None for key in keys.values())


def has_rows(reader: PageReader) -> bool:
    """Return whether the index has a row that counts; read up to the first one, or to the end."""
    start = None
    while True:
        page = reader.read(0, 1, start, ROWS_AT_ONCE, UNITS_PER_BLOCK)
        if page.keys:
            return True
        start = page.next
        if start is None:
            return False


def with_earlier_round(report: dict[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the report of a walk with the sums over its earlier rounds."""
    if before is None:
        return report
    sums = ("deleted", "collections", "requests", "strong_reads")
    figures = ("read_units", "write_units", "dollars", "seconds")
    return {**report, **{name: round(before[name] + report[name], 9) for name in sums + figures}}


def estimate_facts(estimate: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the facts about the cost of an action, for the question whether to do it."""
    keys, high = estimate["keys"], estimate["dollars_high"]
    yield "keys", f"about {keys['estimate']:,} ({keys['low']:,} to {keys['high'] or '?'})"
    each = f"{estimate['write_units_per_key']:g} WRU for each sentinel"
    written = f"about {estimate['write_units']:,.0f} WRU, {each}"
    yield "writes", written if estimate["write_units"] else f"{each} that is repaired"
    yield "reads", f"about {estimate['read_units']:,.0f} RRU"
    maximum = "with no upper limit that is known" if high is None else f"at most ${high:,.4f}"
    yield "cost", f"about ${estimate['dollars']:,.4f}, {maximum} ({estimate['price']})"
    if estimate.get("capacity"):
        yield "capacity", capacity_text(estimate["capacity"]).strip()
    if estimate["hot"]:
        yield "hot", hot_text(estimate["hot"])


def estimate_text(table: str, action: str, estimate: Mapping[str, Any]) -> str:
    """Return the cost of an action as text."""
    keys = estimate["keys"]
    reads = f"read {estimate['read_units']:,.0f} RRU"
    costs = f"${estimate['dollars']:,.4f} ({estimate['price']})"
    written = f"write {estimate['write_units']:,.0f} WRU"
    expected = {
        "build": (
            f"a build would {written} and {reads}, its verification included: {costs}, and write "
            f"for {estimate.get('secondsOfWriting', 0):,.0f} s"
        ),
        "verify": f"a verification would {reads}: {costs}, and write its repairs",
        "remove": f"a removal would {written} and {reads}: {costs}",
    }
    text = (
        f"{table}: about {counted(keys['estimate'], 'key')} "
        f"({keys['low']:,} to {keys['high'] or '?'}); {expected[action]}. Looked at for "
        f"{estimate['spent']['read_units']:g} RRU."
    )
    if estimate.get("capacity"):
        text += capacity_text(estimate["capacity"])
    if estimate["enters"]:
        text += (
            f" A sentinel costs {estimate['write_units_per_key']:g} WRU, as it enters the table's "
            f"own indexes too: {', '.join(estimate['enters'])}."
        )
    if estimate["hot"]:
        text += f" {hot_text(estimate['hot'])}"
    return text


def hot_text(hot: Sequence[str]) -> str:
    """Warn about indexes in which all sentinels have the same partition key."""
    return (
        f"In {', '.join(hot)} all sentinels have one partition key, which takes "
        f"{PARTITION_WRITE_UNITS:,} write units a second at most; a write for which it has no room "
        "is throttled: limit the write rate of the build to much less. Another sort key for "
        "sentinels keeps them off a key of yours there."
    )


def capacity_text(plan: Mapping[str, Any]) -> str:
    """Return the capacity of a plan as text."""
    building, steady = plan["building"], plan["kept"]
    units = f"{steady['write']:,} and {steady['read']:,}"
    text = (
        f" The table has provisioned capacity, so the index gets its own: {building['write']:,} "
        f"WCU and {building['read']:,} RCU while it is built "
        f"(${plan['dollars_while_building']:,.4f} for the writing), then {units}: "
        f"${plan['dollars_a_month']:,.2f} a month ({plan['price']})."
    )
    if plan["scaled"]:
        return f"{text} From there it scales as the table does, up to the table's most."
    missing = "no auto scaling" if plan["scaled"] is False else "no auto scaling that can be seen"
    return (
        f"{text} The table has {missing}: raise the capacity of the index if collections come and "
        f"go faster than {steady['write']:,} a second, or to read it faster."
    )


def report_text(table: str, report: Mapping[str, Any]) -> str:
    """Return a report as text. It names the examples, which are keys."""
    lines = [_headline(table, report)]
    if report["occupied"]:
        lines.append(
            f"  occupied  {counted(report['occupied'], 'collection has', 'collections have')} an "
            "item of yours at the sentinel's sort key: build with another one"
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


def status_report(table: Table, evidence: Evidence, place: str) -> tuple[dict[str, Any], str]:
    """Return the state of a table's key index, as a report and as text.

    `place` is the address of its record and its lease.
    """
    why, last, lease = why_not(evidence), evidence.entry.verification, evidence.entry.lease
    index = table.index(INDEX)
    rows = 0 if index is None else int(index.get("ItemCount", 0))
    keepers = None if evidence.keepers is None else [keeper.function for keeper in evidence.keepers]
    report = {
        "table": table.bare_name,
        "index": status_of(table),
        "rows_reported": rows,
        "stream": table.stream,
        "keepers": keepers,
        "lag_seconds": evidence.lag_seconds,
        "failures": evidence.failures,
        "record": place,
        "lease": None if lease is None else lease.to_json(),
        "verification": last,
        "auto_uses_it": why is None,
        "why_not": why,
    }
    some = _rows_text(rows, last) if index else ""
    follows = "not to be seen from here" if keepers is None else ", ".join(keepers) or "none"
    verified = "never, by the record here"
    if last is not None:
        verified = (
            f"{last['ended']}: {counted(last['collections'], 'collection')}, missing "
            f"{last['missing']:,}, surplus {last['surplus']:,}, occupied {last['occupied']:,}"
        )
    lease_text = "free"
    if lease is not None:
        lease_text = f"{lease.action}, by {lease.holder} since {lease.since}"
    lines = (
        table.bare_name,
        f"  index     {INDEX}: {status_of(table) or 'there is none'}{some}",
        f"  stream    {f'on, {table.stream_view}' if table.stream else 'off'}",
        f"  keeper    {follows}",
        f"  verified  {verified}",
        f"  lease     {lease_text}",
        f"  record    {place}",
        f"  auto      {'reads it' if why is None else f'does not read it: {why}'}",
    )
    return report, "\n".join(lines)


def _rows_text(rows: int, last: Mapping[str, Any] | None) -> str:
    """Return how many sentinels an index has, by the latest count."""
    if last is not None and not last.get("remaining", last["drift"]):
        return f", {counted(last['collections'], 'sentinel')} at the last verification"
    return f", {counted(rows, 'row')} by a count of the service that is up to six hours old"
