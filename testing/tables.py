"""The tables that policies are compared on."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

LARGEST_ITEM = 400 * 1024
Collections = list[list[int]]


@dataclass(frozen=True, slots=True)
class Spec:
    """A kind of table, and what Keyhop may cost on one of 1,500 keys. title: the items of a key.

    surprise_blocks: more than the published way that items of surprising size may cost.
    """

    title: str
    make: Callable[[Random, int], Collections]
    most_units_per_key: float
    most_against_optimum: float
    surprise_blocks: float = 0.0


def _uniform(count: int, size: int) -> Callable[[Random, int], Collections]:
    return lambda chance, keys: [[size] * count for _ in range(keys)]


def _wavering(count: int, size: int, share: float) -> Callable[[Random, int], Collections]:
    return lambda chance, keys: [
        [max(20, round(size * chance.gauss(1, share))) for _ in range(count)] for _ in range(keys)
    ]


def _zipf(chance: Random, keys: int) -> Collections:
    return [[400] * min(20_000, int(chance.paretovariate(0.6))) for _ in range(keys)]


def _bimodal(chance: Random, keys: int) -> Collections:
    return [[300] * (10_000 if chance.random() < 0.1 else 1) for _ in range(keys // 5)]


def _bimodal_small(chance: Random, keys: int) -> Collections:
    return [[300] * (200 if chance.random() < 0.1 else 1) for _ in range(keys)]


def _alternating(chance: Random, keys: int) -> Collections:
    return [[400] * (1 if number % 2 else 200) for number in range(keys)]


def _mixed(
    count: int, small: int, large: int, share: float
) -> Callable[[Random, int], Collections]:
    return lambda chance, keys: [
        [large if chance.random() < share else small for _ in range(count)] for _ in range(keys)
    ]


def _log_normal(chance: Random, keys: int) -> Collections:
    return [[min(LARGEST_ITEM, max(20, int(math.exp(chance.gauss(6, 1.2)))))] for _ in range(keys)]


def _audit(chance: Random, keys: int) -> Collections:
    return [
        [chance.randint(100, 300)] * max(1, int(chance.expovariate(1 / 15))) for _ in range(keys)
    ]


def _trap(chance: Random, keys: int) -> Collections:
    return [[120, LARGEST_ITEM] for _ in range(keys // 4)]


TABLES: dict[str, Spec] = {
    "ten": Spec("10 items", lambda chance, keys: [[200]] * 10, 0.051, 1.01),
    "1x150": Spec("1 item of 150 B", _uniform(1, 150), 0.0195, 1.06),
    "10x500": Spec("10 items of 500 B", _uniform(10, 500), 0.503, 1.01),
    "10x500-wavering": Spec("10 items of some 500 B", _wavering(10, 500, 0.1), 0.504, 1.02),
    "1000x500": Spec("1,000 items of 500 B", _uniform(1_000, 500), 0.505, 1.01),
    "zipf": Spec("1 to 20,000 items of 400 B, mostly few", _zipf, 0.19, 1.12),
    "bimodal": Spec("1 item of 300 B, 10,000 of one key in 10", _bimodal, 0.08, 1.15),
    "bimodal-small": Spec("1 item of 300 B, 200 of one key in 10", _bimodal_small, 0.075, 1.1),
    "3x100K": Spec("3 items of 100 KB", _uniform(3, 102_400), 12.52, 1.005),
    "alternating": Spec("1 and 200 items of 400 B, by turns", _alternating, 0.255, 1.015),
    "mixed": Spec(
        "5 items of 200 B, one in 12 of 60 KB", _mixed(5, 200, 61_440, 0.08), 1.09, 1.49, 120
    ),
    "audit": Spec("some 15 items of 100 to 300 B", _audit, 0.3, 1.48),
    "singles-1%": Spec(
        "1 item of 120 B, one in 100 of 20 KB", _mixed(1, 120, 20_480, 0.01), 0.05, 1.05
    ),
    "singles-10%": Spec(
        "1 item of 120 B, one in 10 of 20 KB", _mixed(1, 120, 20_480, 0.1), 0.275, 1.03
    ),
    "log-normal": Spec("1 item of 20 B to 400 KB, mostly 400 B", _log_normal, 0.107, 1.04),
    "1x4200": Spec("1 item of 4.1 KB", _uniform(1, 4_200), 0.522, 1.025),
    "trap": Spec("120 B, then 400 KB", _trap, 0.65, 1.23, 210),
}
