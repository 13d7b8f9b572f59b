"""What a run would cost, told before it is made: a sample, and what each method makes of it."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from keyhop import __version__
from keyhop.dynamodb.capacity import BLOCK_BYTES, UNITS_PER_BLOCK, read_dollars
from keyhop.jobs.layout import (
    DEFAULT_UNITS,
    Cost,
    Layout,
    Method,
    Wishes,
    layout_for_scan,
    layout_for_skip,
    published_cost,
    scan_cost,
    skip_cost,
)
from keyhop.jobs.model import price
from keyhop.scan.cost_simulation import Forecast
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader
from keyhop.scan.sampling import Opening, Survey
from keyhop.scan.statistics import (
    Findings,
    Interval,
    SegmentSample,
    findings_of,
    rough_interval,
    rough_keys,
)


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
            "methods": {name: _cost_json(cost) for name, cost in self.costs.items()},
            "spent": {
                "read_units": round(self.spent_units, 3),
                "requests": self.spent_requests,
                **price(self.spent_units),
            },
            "software_version": __version__,
        }


def estimate(
    reader: PageReader,
    method: Method,
    reason: str,
    wishes: Wishes,
    allowance: float = DEFAULT_UNITS,
    progress: Callable[[int], None] = lambda samples: None,
) -> Estimate:
    """Sample the table for at most `allowance` read units, and reckon what a run would cost."""
    source = reader.source
    ledger = Ledger.for_table(source.mean_item_bytes)
    chance = random.Random()
    survey = Survey(reader, ledger, allowance, chance)
    opening = survey.open(cautious=True)
    whole = opening.position is None
    samples: list[SegmentSample] = []
    by_looks: Interval | None = None
    if not whole:
        looks = survey.look_around()
        rough = rough_keys(looks, source.item_count)
        samples = survey.sample(rough, progress)
        if survey.unfinished:
            # Segments were larger than thought, and those that the allowance saw to their end are
            # the small ones: the others hold at least what was seen of them.
            seen = [*looks, *samples, *survey.unfinished]
            rough = rough_keys(seen, source.item_count)
            by_looks = rough_interval(seen, rough, len(opening.keys))
        if not samples:
            samples = [look for look in looks if look.whole][:1]
            by_looks = by_looks or rough_interval(looks, rough, len(opening.keys))
    mean = ledger.size.mean
    findings = (
        _exact(opening, reader, mean)
        if whole
        else findings_of(samples, mean, reader.latency, chance) or _reported(reader, opening, mean)
    )
    if samples and by_looks is not None:
        findings = replace(findings, keys=by_looks)
    scan_layout = layout_for_scan(source.size_bytes or None, wishes)
    layout = scan_layout
    costs = {}
    if source.space.sort is not None:
        skip_layout = Layout(1, 1)
        if not whole:
            skip_layout = layout_for_skip(findings.keys.mean, findings.skip, wishes)
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
        sampled=whole or bool(samples),
    )


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


def _cost_json(cost: Cost) -> dict[str, Any]:
    return {
        "read_units": {
            "estimate": round(cost.units.mean, 1),
            "low": round(cost.units.low, 1),
            "high": _finite(cost.units.high, 1),
        },
        "dollars": round(read_dollars(cost.units.mean), 9),
        "requests": round(cost.requests),
        "seconds": round(cost.seconds, 1),
        "at_least": cost.at_least,
    }


def _finite(number: float, digits: int) -> float | None:
    """For JSON, which has no infinity: None where there is no upper limit."""
    if math.isinf(number):
        return None
    return round(number, digits) if digits else round(number)
