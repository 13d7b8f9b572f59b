"""What a run would cost, told before it is made: a sample, and what each method makes of it."""

import math
import random
from dataclasses import dataclass, replace
from typing import Any

from keyhop import __version__
from keyhop.dynamodb.capacity import BLOCK_BYTES, PAGE_BYTES, UNITS_PER_BLOCK
from keyhop.dynamodb.prices import Prices
from keyhop.dynamodb.tables import Source
from keyhop.jobs.layout import (
    DEFAULT_UNITS,
    REQUEST_SECONDS,
    Cost,
    Layout,
    Method,
    Pace,
    Wishes,
    index_cost,
    layout_for_scan,
    layout_for_skip,
    published_cost,
    scan_cost,
    skip_cost,
)
from keyhop.jobs.model import price
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
"""Of a row of an index whose rows the service has not counted yet; it does so every six hours."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A plan for the user to read. costs: by method; `published` is for comparison only.

    sampled: False if the allowance was too small for a sample, and the numbers are the reported
    ones.
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
        """As plain JSON."""
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
    """Sample the table for at most `allowance` read units, and reckon what a run would cost."""
    source = reader.source
    ledger = Ledger.for_table(source.mean_item_bytes)
    chance = random.Random()
    survey = Survey(reader, ledger, allowance, chance)
    opening = survey.open(cautious=True)
    whole = opening.position is None
    found: Findings | None = None
    mean = ledger.size.mean
    if not whole:
        looks = survey.look_around()
        samples = survey.sample(rough_keys(looks, source.item_count))
        mean = ledger.size.mean
        if samples and not survey.unfinished:
            found = findings_of(samples, mean, reader.latency, chance)
        else:
            # Segments were larger than thought, and those that the allowance saw to their end are
            # the small ones: the others hold at least what was seen of them.
            seen = [*looks, *samples, *survey.unfinished]
            rough = rough_interval(seen, rough_keys(seen, source.item_count), len(opening.keys))
            found = findings_of_parts(seen, rough, mean, reader.latency, chance)
    findings = _exact(opening, reader, mean) if whole else found or _reported(reader, opening, mean)
    latency = findings.latency or REQUEST_SECONDS
    scan_layout = layout_for_scan(source.size_bytes or None, wishes, Pace(latency, PAGE_BYTES))
    layout = scan_layout
    costs = {}
    if source.space.sort is not None:
        skip_layout = Layout(1, 1)
        if not whole:
            skip_layout = layout_for_skip(findings.keys.mean, findings.skip, wishes, Pace(latency))
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
        sampled=whole or found is not None,
        prices=reader.connection.prices,
    )


def by_index(found: Estimate, index: Source, reason: str, wishes: Wishes) -> Estimate:
    """The same plan, where an index that lists the keys is read in place of the table."""
    row_bytes = index.mean_item_bytes or ROW_BYTES
    layout = layout_for_scan(found.findings.keys.mean * row_bytes, wishes)
    costs = dict(found.costs)
    compared = {name: costs.pop(name) for name in ("published",) if name in costs}
    costs["index"] = index_cost(found.findings, row_bytes, layout, wishes.max_rate)
    return replace(found, method="index", reason=reason, layout=layout, costs={**costs, **compared})


def _exact(opening: Opening, reader: PageReader, mean: float) -> Findings:
    """The opening has read the whole table."""
    keys = len(opening.keys)
    return Findings(
        keys=Interval(keys, keys, keys),
        skip=Forecast(reader.usage.read_units / max(1, keys), reader.usage.requests / max(1, keys)),
        published_units_per_key=UNITS_PER_BLOCK * max(1.0, mean / BLOCK_BYTES),
        item_bytes=mean,
        latency=reader.latency,
        exact=True,
    )


def _reported(reader: PageReader, opening: Opening, mean: float) -> Findings:
    """No segment could be sampled: as many keys as the table is said to have items, at most."""
    found = len(opening.keys)
    most = float(reader.source.item_count) if reader.source.item_count > found else math.inf
    per_key = UNITS_PER_BLOCK * max(1.0, mean / BLOCK_BYTES)
    return Findings(
        keys=Interval(found if math.isinf(most) else most, found, most),
        skip=Forecast(per_key, 1.0),
        published_units_per_key=per_key,
        item_bytes=mean,
        latency=reader.latency,
    )


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
    """For JSON, which has no infinity: None where there is no upper limit."""
    if math.isinf(number):
        return None
    return round(number, digits) if digits else round(number)
