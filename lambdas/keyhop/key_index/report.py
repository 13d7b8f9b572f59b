"""What a walk came to, what a build will cost, how an index stands: as JSON, and in words. Pure."""

from collections.abc import Mapping
from typing import Any

from keyhop import __version__
from keyhop.dynamodb.capacity import (
    ON_DEMAND,
    SENTINEL_WRITE_UNITS,
    read_dollars,
    write_dollars,
)
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.usage import Usage
from keyhop.key_index.belief import why_not
from keyhop.key_index.index import is_ready, status_of
from keyhop.key_index.sentinel import INDEX
from keyhop.key_index.task import Walk

DRIFT = ("missing", "surplus", "occupied")
"""What makes an index untrue: a collection without its sentinel, a sentinel without a collection, a
user's item where a sentinel should be."""

LOOK_UNITS = 1.0
"""Read units of a strongly consistent look, if the two items have 4 KB together at most."""


def walk_report(
    walk: Walk, usage: Usage, seconds: float, ended: str, examples: Mapping[str, list[Any]]
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
        "dollars": round(read_dollars(usage.read_units) + write_dollars(writes), 9),
        "price": ON_DEMAND,
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


def build_cost(keys: float, walk_units: float) -> dict[str, Any]:
    """What a build of `keys` sentinels costs, if one skip-scan of the table takes `walk_units`.

    The audit at its end reads the sentinel and one more item of each collection, at 0.5 read units
    while they have 4 KB together; larger items cost it more.
    """
    reads = 2 * walk_units + LOOK_UNITS * keys
    writes = SENTINEL_WRITE_UNITS * keys
    return {
        "write_units": round(writes, 1),
        "read_units": round(reads, 1),
        "dollars": round(read_dollars(reads) + write_dollars(writes), 9),
        "price": ON_DEMAND,
    }


def estimate_text(table: str, estimate: Mapping[str, Any]) -> str:
    """What a build would cost, for a person."""
    keys = estimate["keys"]
    return (
        f"{table}: about {keys['estimate']:,} keys ({keys['low']:,} to {keys['high'] or '?'}); a "
        f"build would write {estimate['write_units']:,.0f} WRU and read "
        f"{estimate['read_units']:,.0f} RRU, its audit included: ${estimate['dollars']:,.4f} "
        f"({estimate['price']}), and write for {estimate['secondsOfWriting']:,.0f} s. Looked at "
        f"for {estimate['spent']['read_units']:g} RRU."
    )


def report_text(table: str, report: Mapping[str, Any]) -> str:
    """A report for a person; it names the examples, which are keys."""
    lines = [_headline(table, report)]
    if report["occupied"]:
        lines.append(
            f"  occupied  {report['occupied']:,} collections have an item of yours at the "
            f"sentinel's sort key: build with another one (--sentinel)"
        )
    if report["late"]:
        lines.append(f"  late      {report['late']:,}: the keeper was only slow")
    lines += [
        f"  read      {report['read_units']:,.1f} RRU in {report['requests']:,} pages and "
        f"{report['strong_reads']:,} strong reads",
        f"  written   {report['write_units']:,.1f} WRU: {report['put']:,} sentinels put, "
        f"{report['deleted']:,} deleted",
        f"  cost      ${report['dollars']:,.6f} ({report['price']})",
    ]
    for kind, keys in report["examples"].items():
        lines.append(f"  {kind:9} {'; '.join(map(str, keys))}")
    return "\n".join(lines)


def _headline(table: str, report: Mapping[str, Any]) -> str:
    seconds = f"in {report['seconds']:,.1f} s"
    if report["kind"] == "build":
        return f"Built: {report['collections']:,} collections of {table}, {seconds}"
    if report["kind"] == "remove":
        return f"Removed: {report['deleted']:,} sentinels of {table}, {seconds}"
    if not report["drift"]:
        return f"No drift: {report['collections']:,} collections of {table}, {seconds}"
    repaired = f"{report['repaired']:,} repaired" if report["repaired"] else "not repaired"
    return (
        f"Drift: {report['missing']:,} sentinels of {table} missing, {report['surplus']:,} "
        f"surplus ({repaired}), among {report['collections']:,} collections, {seconds}"
    )


def status_report(
    table: Table, audit: Mapping[str, Any] | None, keepers: list[str] | None
) -> tuple[dict[str, Any], str]:
    """The state of a table's key index, and the same for a person.

    audit: the last one on record. keepers: None if they cannot be seen.
    """
    why = why_not(audit) if is_ready(table) else "there is no ACTIVE key index"
    index = table.index(INDEX)
    rows = 0 if index is None else int(index.get("ItemCount", 0))
    report = {
        "table": table.bare_name,
        "index": status_of(table),
        "rows_reported": rows,
        "stream": table.stream,
        "keepers": keepers,
        "audit": audit,
        "auto_uses_it": why is None,
    }
    some = f", {rows:,} rows as of some hours ago" if index else ""
    follows = "not to be seen from here" if keepers is None else ", ".join(keepers) or "none"
    last = "none on record here"
    if audit is not None:
        last = (
            f"{audit['ended']}: {audit['collections']:,} collections, missing "
            f"{audit['missing']:,}, surplus {audit['surplus']:,}, occupied {audit['occupied']:,}"
        )
    lines = (
        table.bare_name,
        f"  index     {INDEX}: {status_of(table) or 'there is none'}{some}",
        f"  stream    {f'on, {table.stream_view}' if table.stream else 'off'}",
        f"  keeper    {follows}",
        f"  audit     {last}",
        f"  auto      {'reads it' if why is None else f'does not read it: {why}'}",
    )
    return report, "\n".join(lines)
