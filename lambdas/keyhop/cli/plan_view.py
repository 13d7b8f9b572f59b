"""`--plan` as a table for people."""

import math
from collections.abc import Iterator

from keyhop.cli.progress import duration
from keyhop.dynamodb.capacity import PRICE_DATE, PRICE_REGION, read_dollars
from keyhop.jobs.estimate import Estimate

HEADINGS = ("method", "RRU", "dollars", "requests", "time")
NAMES = {"published": "Limit=1, serial (for comparison)"}


def plan_text(estimate: Estimate) -> str:
    """The estimate, as lines for a terminal."""
    rows = [HEADINGS, *_rows(estimate)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [_headline(estimate), ""]
    for name, *cells in rows:
        figures = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        lines.append("  ".join((name.ljust(widths[0]), *figures)))
    lines += [
        "",
        f"{estimate.method}: {estimate.reason}; {estimate.layout.segments:,} segments, "
        f"{estimate.layout.threads} at once.",
        f"This plan read {estimate.spent_units:,.1f} RRU in {estimate.spent_requests:,} requests. "
        f"Prices: on demand, {PRICE_REGION}, {PRICE_DATE}.",
    ]
    return "\n".join(lines)


def _rows(estimate: Estimate) -> Iterator[tuple[str, ...]]:
    for name, cost in estimate.costs.items():
        units, more = cost.units, ">= " if cost.at_least else ""
        spread = f"{units.mean:,.0f} ({units.low:,.0f} to {units.high:,.0f})"
        yield (
            NAMES.get(name, name) + (" <- auto" if name == estimate.method else ""),
            more + (f"{units.mean:,.1f}" if units.low == units.high else spread),
            f"{more}${read_dollars(units.mean):,.6f}",
            f"{more}{cost.requests:,.0f}",
            more + duration(cost.seconds),
        )


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
