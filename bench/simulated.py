"""Keyhop, the published way and a full scan in the simulator, against the best that is possible.

`python -m bench.simulated` renews this part of docs/benchmark.json, and the report.
"""

import random
from collections.abc import Callable
from typing import Any

from bench.report import plot, read_results, say, write_report
from testing.simulator import (
    FullScanPolicy,
    LedgerPolicy,
    Policy,
    PublishedPolicy,
    Table,
    best_online,
    optimum,
    simulate,
)
from testing.tables import TABLES

SEED = 7
SIMULATED: dict[str, int] = {
    "1x150": 12_000,
    "10x500": 6_000,
    "10x500-wavering": 6_000,
    "1000x500": 2_000,
    "zipf": 10_000,
    "bimodal": 10_000,
    "mixed": 6_000,
    "alternating": 6_000,
    "audit": 6_000,
    "singles-10%": 6_000,
    "log-normal": 6_000,
    "3x100K": 2_000,
}
OPTIMUM_KEYS = 3_000
"""The optimum takes time that grows with the square of the keys of singles."""
IN_ORDER = ("alternating",)
"""Tables whose collections are not in random order, so `best_online` says nothing about them."""


def simulated_tables() -> list[dict[str, Any]]:
    """Return a row for each table."""
    return [_simulated(name, keys) for name, keys in SIMULATED.items()]


def _simulated(name: str, keys: int) -> dict[str, Any]:
    say(f"simulating {name}")
    spec = TABLES[name]
    table = Table(spec.make(random.Random(SEED), keys))
    fewer = min(keys, round(keys * OPTIMUM_KEYS / table.keys))
    collections = spec.make(random.Random(SEED), fewer)
    small = Table(collections)
    best, smallest = optimum(small), optimum(small, price=lambda spent: spent.blocks)
    policies: dict[str, Callable[[Table], Policy]] = {
        "published, serial": lambda t: PublishedPolicy(),
        "full scan": lambda t: FullScanPolicy(),
        "keyhop": lambda t: LedgerPolicy(t.mean_item_bytes),
    }
    rows = {}
    for way, policy in policies.items():
        spent, of_small = simulate(table, policy(table)), simulate(small, policy(small))
        rows[way] = {
            "requests": spent.requests,
            "units": spent.units,
            "units_per_key": spent.units / table.keys,
            "against_optimum": of_small.cost / best.cost,
            "against_least_units": of_small.units / smallest.units,
        }
    return {
        "table": name,
        "keys": table.keys,
        "optimum_units_per_key": best.units / small.keys,
        "optimum_requests_per_key": best.requests / small.keys,
        "best_online": None if name in IN_ORDER else best_online(collections).cost / best.cost,
        "least_units_per_key": smallest.units / small.keys,
        "ways": rows,
    }


if __name__ == "__main__":
    results = read_results() | {"simulated": simulated_tables()}
    write_report(results)
    plot(results)
