"""Item collections whose sort keys are times of several densities, with length estimates."""

import math
import random
from functools import cache

from keyhop.report.estimate import Estimate

from testing.report_population import Collection, probe

SPAN = 10**15


def _bursts() -> list[float]:
    chance = random.Random(3)
    return [chance.lognormvariate(0, 1) for _ in range(24 * 365)]


DENSITIES = {
    "Poisson times": [1.0],
    "growth of 64 times": [64 ** (at / 1_000) for at in range(1_000)],
    "diurnal": [max(0.02, 1 + math.cos(2 * math.pi * at / 24)) for at in range(24 * 365)],
    "bursty (hourly lognormal, sigma 1)": _bursts(),
    "two eras": [1.0] * 300 + [0.0] * 650 + [20.0] * 50,
}


@cache
def times(density: str, items: int) -> tuple[int, ...]:
    """Return ascending, distinct times."""
    chance = random.Random(3)
    cells = DENSITIES[density]
    width = SPAN // len(cells)
    chosen = chance.choices(range(len(cells)), weights=cells, k=items)
    return tuple(sorted({cell * width + chance.randrange(width) for cell in chosen}))


def ratios(density: str, budget: float, runs: int, items: int = 100_000) -> list[Estimate]:
    """Return estimates of the length, scaled so that the truth is 1."""
    keys = times(density, items)
    collection = Collection(keys)
    return [
        probe(collection, random.Random(run), budget).estimate().scaled(1 / len(keys))
        for run in range(runs)
    ]
