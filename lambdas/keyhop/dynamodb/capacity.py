"""Read and write units, and what they cost.

Rules (AWS documentation, "Read/write capacity"): an eventually consistent Scan or Query request
costs 0.5 read units (RRU) for each started 4 KB of the items that it *reads*, at least 0.5; filters
and projections change nothing. A page ends at 1 MB.
"""

import math

BLOCK_BYTES = 4096
"""Size of one block: what half a read unit pays for."""

PAGE_BYTES = 1 << 20
"""Most bytes that one Scan page reads."""

UNITS_PER_BLOCK = 0.5
"""Read units of one block, eventually consistent."""

PRICE_DATE = "2026-08"
PRICE_REGION = "us-east-1"
ON_DEMAND = f"on demand, {PRICE_REGION}, {PRICE_DATE}"
DOLLARS_PER_READ_UNIT = 0.125 / 1_000_000
"""On-demand price of one read request unit in PRICE_REGION on PRICE_DATE."""
DOLLARS_PER_WRITE_UNIT = 0.625 / 1_000_000
"""The same of one write request unit."""

SENTINEL_WRITE_UNITS = 2.0
"""Of putting or deleting a sentinel: one for the table, one for the key index."""


def blocks_of(byte_count: float) -> int:
    """Blocks that a request which reads `byte_count` bytes is charged for; at least one."""
    return max(1, math.ceil(byte_count / BLOCK_BYTES))


def read_dollars(read_units: float) -> float:
    """On-demand price of `read_units` in US dollars (PRICE_REGION, PRICE_DATE)."""
    return read_units * DOLLARS_PER_READ_UNIT


def write_dollars(write_units: float) -> float:
    """On-demand price of `write_units` in US dollars (PRICE_REGION, PRICE_DATE)."""
    return write_units * DOLLARS_PER_WRITE_UNIT
