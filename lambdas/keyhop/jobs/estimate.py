"""Predictions of the cost of a run by a sample, and the report of dryRun.

The first look of a run (lifecycle.py) predicts the cost of most tables. Only if that prediction, or
the reported size, allows that the run costs more than its limit, `predicted_units` reads a separate
sample, as an estimate does.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from keyhop import __version__
from keyhop.dynamodb.tables import Source
from keyhop.dynamodb.units import BLOCK_BYTES, PAGE_BYTES, UNITS_PER_BLOCK, Prices
from keyhop.jobs.journal import RunPlan, Totals
from keyhop.jobs.layout import (
    DEFAULT_UNITS,
    REQUEST_SECONDS,
    Layout,
    Method,
    ReadingSpeed,
    Wishes,
    layout_for_scan,
    layout_for_skip,
)
from keyhop.jobs.price import Cost, index_cost, price, published_cost, scan_cost, skip_cost
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader
from keyhop.scan.sampling import Opening, Survey
from keyhop.scan.statistics import (
    Findings,
    Forecast,
    Interval,
    findings_of,
    findings_of_parts,
    rough_interval,
    rough_keys,
)

ROW_BYTES = 100.0
"""The assumed size of a row of an index, until the service has counted the rows (six hours)."""

MORE_THAN_A_SCAN = 1.1
"""The maximum that a skip-scan reads, as a multiple of a full scan (docs/reference/limits.md)."""

SEGMENTS_TO_GO_BY = 10
"""The finished segments that predict the cost of the remaining ones, within SPREAD."""

SPREAD = 1.5

Enough = Callable[[Interval], bool]
"""Returns whether an interval of read units proves that a run is within its limit."""

PredictUnits = Callable[[Enough], Interval]
"""Returns the read units of a run, as exactly as its argument needs them."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate of a run, for the user to read.

    Attributes:
        costs: The cost of each method. "published" is there for comparison only.
        sampled: False if the allowance was too small for a sample, so that the numbers are based on
            what the service reports.
    """

    table: str
    index: str | None
    method: Method
    reason: str
    findings: Findings
    layout: Layout
    costs: dict[str, Cost]
    spent_units: float
    spent_requests: int
    sampled: bool
    prices: Prices

    def to_json(self) -> dict[str, Any]:
        keys = self.findings.keys
        return {
            "table": self.table,
            "index": self.index,
            "method": self.method,
            "reason": self.reason,
            "segments": self.layout.segments,
            "workers": self.layout.threads,
            "keys": {
                "estimate": round(keys.mean),
                "low": round(keys.low),
                "high": _finite(keys.high, 0),
                "exact": self.findings.exact,
                "sampled": self.sampled,
            },
            "methods": {name: _cost_json(cost, self.prices) for name, cost in self.costs.items()},
            "spent": {
                "read_units": round(self.spent_units, 3),
                "requests": self.spent_requests,
                **price(self.spent_units, self.prices),
            },
            "software_version": __version__,
        }


def estimate(
    reader: PageReader,
    method: Method,
    reason: str,
    wishes: Wishes,
    allowance: float = DEFAULT_UNITS,
) -> Estimate:
    """Sample the table for at most `allowance` read units, and estimate the cost of a run."""
    source = reader.source
    ledger = Ledger.for_table(source.mean_item_bytes)
    chance = random.Random()
    survey = Survey(reader, ledger, allowance, chance)
    opening = survey.open(cautious=True)
    whole_table = opening.position is None
    sampled: Findings | None = None
    mean = ledger.size.mean
    if not whole_table:
        looks = survey.look_around()
        samples = survey.sample(rough_keys(looks, source.item_count))
        mean = ledger.size.mean
        if samples and not survey.unfinished:
            sampled = findings_of(samples, mean, reader.latency, chance)
        else:
            # The segments were larger than expected, and the allowance sufficed for the small ones
            # only. The unfinished ones hold at least what the sample has read of them.
            parts = [*looks, *samples, *survey.unfinished]
            rough = rough_interval(parts, rough_keys(parts, source.item_count), len(opening.keys))
            sampled = findings_of_parts(parts, rough, mean, reader.latency, chance)
    findings = sampled or _without_sample(reader, opening, mean)
    latency = findings.latency or REQUEST_SECONDS
    scan_layout = layout_for_scan(
        source.size_bytes or None, wishes, ReadingSpeed(latency, PAGE_BYTES)
    )
    layout = scan_layout
    costs = {}
    if source.space.sort is not None:
        skip_layout = Layout(1, 1)
        if not whole_table:
            skip_layout = layout_for_skip(
                findings.keys.mean, findings.skip, wishes, ReadingSpeed(latency)
            )
        costs["skip"] = skip_cost(findings, skip_layout, wishes.max_rate)
        if method == "skip":
            layout = skip_layout
    costs["scan"] = scan_cost(findings, source.size_bytes, scan_layout, wishes.max_rate)
    if source.space.sort is not None:
        costs["published"] = published_cost(findings, wishes.max_rate)
    return Estimate(
        table=source.name,
        index=source.index,
        method=method,
        reason=reason,
        findings=findings,
        layout=layout,
        costs=costs,
        spent_units=reader.usage.read_units,
        spent_requests=reader.usage.requests,
        sampled=whole_table or sampled is not None,
        prices=reader.connection.prices,
    )


def by_index(table_estimate: Estimate, index: Source, reason: str, wishes: Wishes) -> Estimate:
    """Return the same estimate for a run that reads an index that lists the keys."""
    findings = table_estimate.findings
    row_bytes = index.mean_item_bytes or ROW_BYTES
    layout = layout_for_scan(findings.keys.mean * row_bytes, wishes)
    costs = dict(table_estimate.costs)
    compared = {name: costs.pop(name) for name in ("published",) if name in costs}
    costs["index"] = index_cost(findings, row_bytes, layout, wishes.max_rate)
    costs |= compared
    return replace(table_estimate, method="index", reason=reason, layout=layout, costs=costs)


def _without_sample(reader: PageReader, opening: Opening, mean: float) -> Findings:
    """Return the findings of an opening, which may have read the whole table.

    If it has not, the reported number of items limits the number of keys.
    """
    count, is_whole = len(opening.keys), opening.position is None
    per_key = UNITS_PER_BLOCK * max(1.0, mean / BLOCK_BYTES)
    if is_whole:
        usage, divisor = reader.usage, max(1, count)
        keys = Interval(count, count, count)
        skip = Forecast(usage.read_units / divisor, usage.requests / divisor)
    else:
        items = reader.source.item_count
        maximum = float(items) if items > count else math.inf
        keys = Interval(count if math.isinf(maximum) else maximum, count, maximum)
        skip = Forecast(per_key, 1.0)
    return Findings(keys, skip, per_key, mean, reader.latency, exact=is_whole)


def _cost_json(cost: Cost, prices: Prices) -> dict[str, Any]:
    return {
        "read_units": {
            "estimate": round(cost.units.mean, 1),
            "low": round(cost.units.low, 1),
            "high": _finite(cost.units.high, 1),
        },
        "dollars": round(prices.dollars(cost.units.mean), 9),
        "requests": round(cost.requests),
        "seconds": round(cost.seconds, 1),
        "at_least": cost.at_least,
    }


def _finite(number: float, digits: int) -> float | None:
    """Return None for infinity, which JSON cannot represent. It means no upper limit."""
    if math.isinf(number):
        return None
    return round(number, digits) if digits else round(number)


def predicted_units(
    reader: PageReader,
    method: Method,
    wishes: Wishes,
    predicted: Interval | None,
    share: float,
    is_enough: Enough,
    limit: int | None = None,
) -> Interval:
    """Return the read units that `share` of a run will cost, and its check as a whole.

    Args:
        predicted: The read units of the whole run, by its first look or by its progress so far.
        is_enough: Returns whether an interval is exact enough, so that no sample is necessary.
        limit: The number of keys after which the run ends, which `predicted` respects.
            A sample says anew which share of the keys that is.
    """
    predicted = predicted or _most_by_size(reader, wishes)
    if predicted is not None:
        whole = _with_check(reader, wishes, predicted, share)
        if predicted.low == predicted.high or is_enough(whole):
            return whole
    estimated = estimate(reader, method, "", wishes)
    units = estimated.costs.get(method, estimated.costs["scan"]).units
    if limit:
        share *= min(1.0, limit / max(1.0, estimated.findings.keys.mean))
    return _with_check(reader, wishes, units, share)


def of_the_rest(plan: RunPlan, totals: Totals) -> tuple[Interval | None, float]:
    """Predict the cost of an unfinished run from its finished segments.

    Returns:
        The read units of the whole run (None if too few segments are finished), and the share of
        the run that remains.
    """
    share = 1.0 - totals.ended / plan.segments
    if plan.counts_writes:
        return Interval(0.0, 0.0, 0.0), share
    if totals.ended < SEGMENTS_TO_GO_BY:
        return None, share
    each = (totals.usage.read_units - plan.planning.read_units) / totals.ended
    units = each * plan.segments
    return Interval(units, units / SPREAD, units * SPREAD), share


def _most_by_size(reader: PageReader, wishes: Wishes) -> Interval | None:
    """Return the maximum for the size that the service reports, or None if it reports none."""
    size = reader.source.size_bytes
    if not size:
        return None
    ends = UNITS_PER_BLOCK * (wishes.segments or 0)
    full_scan = _units_of_full_scan(size)
    return Interval(full_scan, 0.0, MORE_THAN_A_SCAN * full_scan + ends)


def _units_of_full_scan(size: float) -> float:
    return UNITS_PER_BLOCK * size / BLOCK_BYTES


def _with_check(reader: PageReader, wishes: Wishes, units: Interval, share: float) -> Interval:
    """Add the check, which reads its share of the table, and may search missing keys by hops."""
    checked = wishes.verify_share or 0.0
    full_scan = checked * _units_of_full_scan(reader.source.size_bytes)
    run = units.scaled(share + checked)
    return Interval(run.mean + full_scan, run.low + full_scan, run.high + full_scan)
