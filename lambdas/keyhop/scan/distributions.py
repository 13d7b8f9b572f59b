"""Limits of the binomial, and quantiles of Student's t: what intervals are made of. Pure."""

import math

Z = 1.959964
"""Of the normal distribution: 95 % lie within so many standard deviations."""

TAIL = 0.025
"""The share of a distribution that is left out on each side."""


def proportion_limits(count: float, n: float) -> tuple[float, float]:
    """95 % limits of a proportion, by Clopper and Pearson (1934): never too narrow.

    count and n need not be whole, as of an effective sample size (Korn and Graubard 1998).
    """
    if n <= 0:
        return 0.0, 1.0
    count = min(n, max(0.0, count))
    low = 0.0 if count <= 0 else beta_quantile(TAIL, count, n - count + 1)
    high = 1.0 if count >= n else beta_quantile(1 - TAIL, count + 1, n - count)
    return low, high


def rank_limits(n: int, level: float) -> tuple[int, int]:
    """Ranks (1 to n; 0 and n + 1 for "none") of the sorted sample between which a quantile lies,
    with 95 % chance at least.
    """
    low = 0
    while low < n and _binomial_below(low + 1, n, level) <= TAIL:
        low += 1
    high = n + 1
    while high > 1 and 1 - _binomial_below(high - 1, n, level) <= TAIL:
        high -= 1
    return low, high


def t_quantile(freedom: float) -> float:
    """Two-sided 95 % quantile of Student's t, by Cornish and Fisher's expansion; from 3 on good to
    2 %. Infinite without a degree of freedom.
    """
    if freedom < 1:
        return math.inf
    if freedom < 3:
        return (12.706, 4.303)[int(freedom) - 1]
    z = Z
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


def beta_quantile(probability: float, a: float, b: float) -> float:
    """Return the quantile of the beta distribution for a probability, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if beta_below(middle, a, b) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def beta_below(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Lentz)."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_below(1 - x, b, a)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    tiny = 1e-300
    c, d = 1.0, 1 / max(tiny, 1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _not_zero(1 + term * d, tiny)
            c = _not_zero(1 + term / c, tiny)
            result *= c * d
        if abs(c * d - 1) < 1e-12:
            break
    return front * result / a


def _not_zero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny


def _binomial_below(count: int, n: int, level: float) -> float:
    """Chance of fewer than `count` of n."""
    return 0.0 if count <= 0 else 1 - beta_below(level, count, n - count + 1)
