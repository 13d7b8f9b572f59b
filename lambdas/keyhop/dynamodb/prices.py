"""What DynamoDB's units cost on demand, where a table is. Pure.

AWS's list price, of tables of class Standard. Only regions whose price is known to be that of
us-east-1 are named as theirs: for others, GovCloud and China among them, dollars are those of
us-east-1, and say so, unless the user gives prices of their own.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from keyhop.dynamodb.capacity import (
    DOLLARS_PER_READ_UNIT,
    DOLLARS_PER_WRITE_UNIT,
    PRICE_DATE,
    PRICE_REGION,
)
from keyhop.errors import CannotStart

AS_US_EAST_1 = ("us-east-1", "us-east-2", "us-west-2")
PER = 1_000_000
LEAST_COST = 0.01
"""Dollars: a limit that is less would forbid everything."""

VARIABLE = "KEYHOP_PRICES"
"""Of the environment: the user's own prices, in the command and in a deployment's functions."""

LIKE = '{"reads": 0.125, "writes": 0.625}'
ARE = f"dollars for a million read units and a million write units, as {LIKE}"


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars of a read unit and of a write unit. whose: of what region, as of when."""

    read_unit: float = DOLLARS_PER_READ_UNIT
    write_unit: float = DOLLARS_PER_WRITE_UNIT
    whose: str = f"{PRICE_REGION}, {PRICE_DATE}"

    @classmethod
    def of(cls, region: str | None, own: str | None = None) -> Self:
        """Those of a region, or `own`, which is JSON; raises CannotStart if it is not as LIKE."""
        if own:
            if not are_prices(own):
                raise CannotStart(f"{VARIABLE} is {own[:100]!r}; it must be {ARE}.")
            given = json.loads(own)
            return cls(given["reads"] / PER, given["writes"] / PER, "at your own prices")
        if region in AS_US_EAST_1:
            return cls(whose=f"{region}, {PRICE_DATE}")
        if region is None:
            return cls()
        return cls(whose=f"{PRICE_REGION}, {PRICE_DATE}, as those of {region} are not known here")

    def dollars(self, read_units: float, write_units: float = 0.0) -> float:
        return read_units * self.read_unit + write_units * self.write_unit

    def units_for(self, dollars: float) -> float:
        """Read units that so many dollars pay for."""
        return dollars / self.read_unit if self.read_unit else math.inf

    @property
    def on_demand(self) -> str:
        """What stands beside the dollars."""
        return f"on demand, {self.whose}"


US_EAST_1 = Prices()


def are_prices(given: str | Mapping[str, Any]) -> bool:
    """Whether these are prices of one's own, as JSON or as what that says."""
    try:
        found = json.loads(given) if isinstance(given, str) else given
        return set(found) == {"reads", "writes"} and all(
            isinstance(price, int | float) and not isinstance(price, bool) and price >= 0
            for price in found.values()
        )
    except (ValueError, TypeError, AttributeError):
        return False
