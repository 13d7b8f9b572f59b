"""Read and write units, and what they cost.

Rules (AWS documentation, "Read/write capacity"): an eventually consistent Scan or Query request
costs 0.5 read units (RRU) for each started 4 KB of the items that it *reads*, at least 0.5; filters
and projections change nothing. A page ends at 1 MB.
"""

import math

BLOCK_BYTES = 4096
UNITS_PER_BLOCK = 0.5
"""Read units of one block, eventually consistent."""

PAGE_BYTES = 1 << 20
"""Most bytes that one Scan page reads."""

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
"""Of storage, class Standard, in PRICE_REGION (AWS's price page of DynamoDB: "$0.25 per GB-month").
The first 25 GB of an account are free, which is not counted: they may be used elsewhere."""

SENTINEL_WRITE_UNITS = 2.0
"""Of putting or deleting a sentinel: one for the table, one for the key index. Each index of
the user's that it enters costs one more (key_index/index.py)."""


def blocks_of(byte_count: float) -> int:
    """Blocks that a request which reads `byte_count` bytes is charged for; at least one."""
    return max(1, math.ceil(byte_count / BLOCK_BYTES))


def read_dollars(read_units: float) -> float:
    """On demand, in PRICE_REGION on PRICE_DATE."""
    return read_units * DOLLARS_PER_READ_UNIT


def write_dollars(write_units: float) -> float:
    """On demand, in PRICE_REGION on PRICE_DATE."""
    return write_units * DOLLARS_PER_WRITE_UNIT


DEFAULT_WRITE_RATE = 1000.0
"""Write units a second of jobs that write, if nobody says otherwise: what one partition serves; of
sentinels, which cost two, 500."""
