"""What the demo's ways to the same keys cost in all, and what they would cost at another size."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from keyhop.dynamodb.units import BLOCK_BYTES, UNITS_PER_BLOCK, US_EAST_1
from keyhop.jobs.layout import (
    CPU_SECONDS,
    CPU_SECONDS_PER_BYTE,
    Layout,
    groups_of_layout,
    layout_for_scan,
    layout_for_skip,
)
from keyhop.jobs.price import FunctionSize, run_cost
from keyhop.jobs.request import Request, wishes_of_fleet
from keyhop.scan.statistics import Forecast
from rich.table import Table

WORKER = FunctionSize(1769, "arm64")
"""As a deployment has it by default."""

WORKER_SECONDS = 840.0
"""The part of an invocation's 15 minutes that a worker uses at most."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to the keys of a table. services: dollars for Lambda, Step Functions and S3."""

    name: str
    keys: int
    requests: int
    units: float
    services: float = 0.0

    @classmethod
    def deployed(cls, name: str, result: Mapping[str, Any]) -> "Way":
        """Return a way from the output of an execution."""
        services = result["cost"]["total"] - result["cost"]["dynamodb"]
        return cls(name, result["keys"], result["requests"], result["read_units"], services)

    @property
    def bytes_read(self) -> float:
        """About, if its pages are large."""
        return self.units / UNITS_PER_BLOCK * BLOCK_BYTES

    @property
    def total(self) -> float:
        return US_EAST_1.dollars(self.units) + self.services


def table_of(ways: Iterable[Way]) -> Table:
    """Return a table for the console."""
    table = Table(box=None, pad_edge=False)
    table.add_column("way")
    for heading in ("requests", "read units", "reads", "Lambda, ...", "total"):
        table.add_column(heading, justify="right")
    for way in ways:
        table.add_row(
            way.name,
            f"{way.requests:,}",
            f"{way.units:,.1f}",
            dollars(US_EAST_1.dollars(way.units)),
            dollars(way.services) if way.services else "-",
            dollars(way.total),
        )
    return table


def dollars(amount: float) -> str:
    """Small amounts to the millionth, others to the cent."""
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.6f}"


def larger(times: int, hopped: Way, scanned: Way) -> Iterator[Way]:
    """Both ways, deployed, for so many times the keys of the same shape: as a plan reckons them."""
    keys = hopped.keys * times
    forecast = Forecast(hopped.units / hopped.keys, hopped.requests / hopped.keys)
    size = scanned.bytes_read * times
    wishes = wishes_of_fleet(Request("", "keys"), int(size), one_worker=False)
    layout = layout_for_skip(keys, forecast, wishes)
    yield _deployed("keyhop", keys, hopped.requests * times, hopped.units * times, 0.0, layout)
    layout = layout_for_scan(size, wishes)
    yield _deployed("full scan", keys, layout.segments, scanned.units * times, size, layout)


def _deployed(
    name: str, keys: int, requests: int, units: float, bytes_read: float, layout: Layout
) -> Way:
    seconds = requests * CPU_SECONDS + bytes_read * CPU_SECONDS_PER_BYTE
    groups, _ = groups_of_layout(layout, one_worker=False)
    invocations = max(groups, ceil(seconds / WORKER_SECONDS))
    cost = run_cost(WORKER, units, seconds, invocations, groups, invocations)
    return Way(name, keys, requests, units, cost["total"] - cost["dynamodb"])
