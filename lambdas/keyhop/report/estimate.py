"""A figure with its interval, as every sample, probe and count of a report gives it. Pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

LEVEL = 0.95

Side = Literal["above", "below", "open"]
"""The side of a threshold on which an interval lies; open if it contains the threshold."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with the interval that contains the true value in `level` of all samples.

    An exact count has low = value = high. The upper end is infinite if only a lower end is known.
    The method is a few words, such as "random segments".
    """

    value: float
    low: float
    high: Annotated[float, "null: at least"]
    n: Annotated[int, "observations"]
    method: str
    level: float = LEVEL

    @classmethod
    def exactly(cls, value: float, n: int, method: str) -> "Estimate":
        return cls(value, value, value, n, method, 1.0)

    @classmethod
    def at_least(cls, value: float, n: int, method: str) -> "Estimate":
        return cls(value, value, math.inf, n, method)

    def against(self, threshold: float) -> Side:
        """Return whether the whole interval is at or above a threshold, or below it."""
        if self.low >= threshold:
            return "above"
        return "below" if self.high < threshold else "open"

    def scaled(self, factor: float) -> "Estimate":
        """Return the estimate multiplied by a factor above 0."""
        return Estimate(
            self.value * factor,
            self.low * factor,
            self.high * factor,
            self.n,
            self.method,
            self.level,
        )

    def to_json(self) -> Mapping[str, Any]:
        """Return the estimate as plain JSON, where an infinite end is null."""
        return {
            "value": self.value,
            "low": self.low,
            "high": None if math.isinf(self.high) else self.high,
            "level": self.level,
            "n": self.n,
            "method": self.method,
        }

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> "Estimate":
        """Reverse `to_json`. Earlier versions wrote an infinite end as "inf"."""
        high = math.inf if state["high"] is None else float(state["high"])
        return cls(state["value"], state["low"], high, state["n"], state["method"], state["level"])
