"""Read units, write units, the limits of the service, and the prices of units in a region. Pure.

Rules (AWS documentation, "Read/write capacity"): an eventually consistent Scan or Query request
costs 0.5 read units (RRU) for each started 4 KB of the items that it *reads*, at least 0.5. Filters
and projections change nothing. A page ends at 1 MB.

Prices are the list prices of AWS for tables of class Standard. The regions in AS_US_EAST_1 have the
prices of us-east-1. For all others, including GovCloud and China, dollars are those of us-east-1,
which is stated, unless the user gives other prices.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from keyhop.errors import CannotStart

BLOCK_BYTES = 4096
UNITS_PER_BLOCK = 0.5
"""The read units of one block, eventually consistent."""

PAGE_BYTES = 1 << 20
"""The maximum number of bytes that one page of a Scan reads."""

FULL_PAGE_UNITS = UNITS_PER_BLOCK * PAGE_BYTES / BLOCK_BYTES

PRICE_DATE = "2026-08"
PRICE_REGION = "us-east-1"
ON_DEMAND = f"on demand, {PRICE_REGION}, {PRICE_DATE}"
DOLLARS_PER_READ_UNIT = 0.125 / 1_000_000
DOLLARS_PER_WRITE_UNIT = 0.625 / 1_000_000

PROVISIONED = f"provisioned, {PRICE_REGION}, {PRICE_DATE}"
DOLLARS_PER_READ_UNIT_HOUR = 0.00013
DOLLARS_PER_WRITE_UNIT_HOUR = 0.00065
HOURS_OF_A_MONTH = 730

DOLLARS_PER_GB_MONTH = 0.25
"""The price of storage, class Standard, in PRICE_REGION (AWS's price page of DynamoDB: "$0.25 per
GB-month"). The first 25 GB of an account are free, but other tables may use them."""

SENTINEL_WRITE_UNITS = 2.0
"""The write units for a sentinel that is put or deleted: one for the table, one for the key index.
Each index of the user that it enters costs one more (key_index/index.py)."""


def blocks_of(byte_count: float) -> int:
    """Return the blocks that reading `byte_count` bytes is charged for; at least one."""
    return max(1, math.ceil(byte_count / BLOCK_BYTES))


WRITE_UNIT_BYTES = 1024
PARTITION_WRITE_UNITS = 1000
"""The maximum a second of one partition of a table or an index (AWS documentation)."""

COLLECTION_BYTES = 10 * 2**30
"""The maximum of an item collection in a table with LSIs, LSIs included (AWS documentation)."""

MOST_KEYS_AT_ONCE = 100
"""The maximum keys of one BatchGetItem (AWS documentation)."""

MOST_INDEXES = 20
"""The default quota of global indexes of a table (AWS documentation)."""

MOST_INDEX_KEY_ATTRIBUTES = 4
"""The maximum attributes of the partition key, and of the sort key, of a global index."""

MOST_SORT_KEY_BYTES = 1024
"""The maximum bytes of a sort key (AWS documentation)."""


def write_units(item_bytes: float) -> float:
    """Return the write units of writing an item of this size into a table without indexes."""
    return float(max(1, math.ceil(item_bytes / WRITE_UNIT_BYTES)))


DEFAULT_WRITE_RATE = 1000.0
"""The default write units a second of jobs that write, which one partition serves: for sentinels,
which cost two, 500 a second."""


AS_US_EAST_1 = ("us-east-1", "us-east-2", "us-west-2")
PER = 1_000_000
LEAST_COST = 0.01
"""The least limit in dollars: a smaller one would forbid everything."""

VARIABLE = "KEYHOP_PRICES"
"""The environment variable with the user's prices, for the command and a deployment's functions."""

LIKE = '{"reads": 0.125, "writes": 0.625}'
ARE = f"dollars for a million read units and a million write units, as {LIKE}"


@dataclass(frozen=True, slots=True)
class Prices:
    """The dollars of a read unit and of a write unit; `whose` names their region and date."""

    read_unit: float = DOLLARS_PER_READ_UNIT
    write_unit: float = DOLLARS_PER_WRITE_UNIT
    whose: str = f"{PRICE_REGION}, {PRICE_DATE}"

    @classmethod
    def of(cls, region: str | None, configured: str | None = None) -> Self:
        """Return the prices of a region, or those `configured` as JSON; raise CannotStart."""
        if configured:
            if not are_prices(configured):
                raise CannotStart(f"{VARIABLE} is {configured[:100]!r}; it must be {ARE}.")
            parsed = json.loads(configured)
            return cls(parsed["reads"] / PER, parsed["writes"] / PER, "at your own prices")
        if region in AS_US_EAST_1:
            return cls(whose=f"{region}, {PRICE_DATE}")
        if region is None:
            return cls()
        return cls(whose=f"{PRICE_REGION}, {PRICE_DATE}, as those of {region} are not known here")

    def dollars(self, read_units: float, write_units: float = 0.0) -> float:
        return read_units * self.read_unit + write_units * self.write_unit

    def units_for(self, dollars: float) -> float:
        """Return the read units that these dollars pay for."""
        return dollars / self.read_unit if self.read_unit else math.inf

    @property
    def on_demand(self) -> str:
        """Return the text that is shown beside the dollars."""
        return f"on demand, {self.whose}"


US_EAST_1 = Prices()


def are_prices(text: str | Mapping[str, Any]) -> bool:
    """Return whether these are prices, as JSON text or as its content."""
    try:
        prices = json.loads(text) if isinstance(text, str) else text
        return set(prices) == {"reads", "writes"} and all(
            isinstance(price, int | float) and not isinstance(price, bool) and price >= 0
            for price in prices.values()
        )
    except (ValueError, TypeError, AttributeError):
        return False
