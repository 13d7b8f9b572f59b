"""`--plan` as a table for people."""

import io
import math

from keyhop.cli.progress import duration
from keyhop.dynamodb.capacity import PRICE_DATE, PRICE_REGION, read_dollars
from keyhop.jobs.estimate import Estimate
from keyhop.jobs.layout import Cost

NAMES = {
    "skip": "skip",
    "scan": "scan",
    "published": "Limit=1, serial (for comparison)",
}


def plan_text(estimate: Estimate) -> str:
    """The estimate, as lines for a terminal."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("method")
    for heading in ("RRU", "dollars", "requests", "time"):
        table.add_column(heading, justify="right")
    for name, cost in estimate.costs.items():
        more = ">= " if cost.at_least else ""
        table.add_row(
            NAMES[name] + (" <- auto" if name == estimate.method else ""),
            more + _units(cost),
            f"{more}${read_dollars(cost.units.mean):,.6f}",
            f"{more}{cost.requests:,.0f}",
            more + duration(cost.seconds),
        )
    out = io.StringIO()
    console = Console(file=out, width=110, highlight=False)
    console.print(_headline(estimate))
    console.print()
    console.print(table)
    console.print()
    console.print(
        f"{estimate.method}: {estimate.reason}; "
        f"{estimate.layout.segments:,} segments, {estimate.layout.threads} at once."
    )
    console.print(
        f"This plan read {estimate.spent_units:,.1f} RRU in {estimate.spent_requests:,} requests. "
        f"Prices: on demand, {PRICE_REGION}, {PRICE_DATE}."
    )
    return out.getvalue()


def _headline(estimate: Estimate) -> str:
    keys = estimate.findings.keys
    name = f"{estimate.table}/{estimate.index}" if estimate.index else estimate.table
    if estimate.findings.exact:
        return f"{name} has {keys.mean:,.0f} distinct partition keys (read whole)."
    if not estimate.sampled:
        most = "" if math.isinf(keys.high) else f", at most {keys.high:,.0f} by its item count"
        return (
            f"{name} has at least {keys.low:,.0f} distinct partition keys{most}: the allowance was "
            f"too small for a sample; give more with --max-read-units."
        )
    return (
        f"{name} has about {keys.mean:,.0f} distinct partition keys "
        f"(95 % interval {keys.low:,.0f} to {keys.high:,.0f})."
    )


def _units(cost: Cost) -> str:
    if cost.units.low == cost.units.high:
        return f"{cost.units.mean:,.1f}"
    return f"{cost.units.mean:,.0f} ({cost.units.low:,.0f} to {cost.units.high:,.0f})"
