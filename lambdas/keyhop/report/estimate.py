"""A figure with its interval: what every sample, probe and count of a report comes to. Pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

LEVEL = 0.95

Side = Literal["above", "below", "open"]
"""Where a threshold leaves an interval; open: inside it."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """value, with the interval [low, high] that holds the truth in `level` of all samples.

    n: observations it rests upon. method: how it was made, in a few words, as "random segments".
    high may be infinite: "at least". An exact count has low = value = high.
    """

    value: float
    low: float
    high: float
    n: int
    method: str
    level: float = LEVEL

    @classmethod
    def exactly(cls, value: float, n: int, method: str) -> "Estimate":
        return cls(value, value, value, n, method, 1.0)

    @classmethod
    def at_least(cls, value: float, n: int, method: str) -> "Estimate":
        return cls(value, value, math.inf, n, method)

    def against(self, threshold: float) -> Side:
        """Whether the whole interval is at or above a threshold, or below it."""
        if self.low >= threshold:
            return "above"
        return "below" if self.high < threshold else "open"

    def scaled(self, factor: float) -> "Estimate":
        """The same of another unit; factor > 0."""
        return Estimate(
            self.value * factor,
            self.low * factor,
            self.high * factor,
            self.n,
            self.method,
            self.level,
        )

    def to_json(self) -> Mapping[str, Any]:
        """An infinite end is null: JSON has none."""
        return {
            "value": self.value,
            "low": self.low,
            "high": None if math.isinf(self.high) else self.high,
            "level": self.level,
            "n": self.n,
            "method": self.method,
        }
