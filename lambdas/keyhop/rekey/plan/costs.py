"""The costs of a re-key, from a trial on a sample: reads and writes on demand. Pure.

The estimates of the runs themselves include the other costs on AWS (Lambda, Step Functions, S3),
which are a few hundredths of these.
"""

from typing import Any

from keyhop.dynamodb.units import BLOCK_BYTES, DEFAULT_WRITE_RATE, DOLLARS_PER_GB_MONTH, Prices
from keyhop.rekey.plan.trial import Trial

GIGABYTE = 1e9
MILLION = 1_000_000

EXPORT_DOLLARS_PER_GB, IMPORT_DOLLARS_PER_GB = 0.10, 0.15
"""The prices of ExportTableToPointInTime and ImportTable, from memory: check AWS's price page."""

EXPORT_SAYS = (
    "export to S3, transform the data there with your own code, and import it into a new table: "
    "this needs point-in-time recovery, creates no local indexes, silently keeps only the last "
    "of two items with the same key, and leaves out what is written in the meantime; Keyhop does "
    "not do it"
)


BULK_PUT_SAYS = (
    "a bulk put from S3 into the new table, after the same export and transformation: the table "
    "may have local indexes and a stream, and an item whose condition fails is not written, and is "
    "reported; at least 1,024 writes a second, not into a global table, and the same gap for what "
    "is written in the meantime; Keyhop does not do it, and does not know its price"
)


def costs(
    trial: Trial,
    items: float,
    table_bytes: float,
    prices: Prices,
    write_rate: float = DEFAULT_WRITE_RATE,
    live_rate: float | None = None,
) -> dict[str, Any]:
    """Return the costs of a re-key in dollars and seconds, as plain JSON. `write_rate` is in write
    units a second of the backfill, and `live_rate` in changes a second, if the rate is available.
    """
    mapped = trial.mapped / trial.items if trial.items else 1.0
    put = (trial.write_units + trial.index_units) / trial.mapped if trial.mapped else 1.0
    growth = trial.bytes_after / trial.bytes_before if trial.bytes_before else 1.0
    puts = items * mapped * put
    # A Scan, and a second look at the same pages, which is strongly consistent.
    reads = 1.5 * table_bytes / BLOCK_BYTES
    copy_bytes = table_bytes * growth
    compared = (table_bytes + copy_bytes) / BLOCK_BYTES
    million = prices.dollars(MILLION, MILLION * put)
    gigabytes = table_bytes / GIGABYTE
    return {
        "backfill": {
            "read_units": round(reads, 1),
            "write_units": round(puts, 1),
            "dollars": round(prices.dollars(reads, puts), 6),
            "of_indexes": round(prices.dollars(0.0, items * mapped * _of_indexes(trial)), 6),
            "seconds": round(puts / write_rate, 1),
            "write_rate": write_rate,
        },
        "verify": {"read_units": round(compared, 1), "dollars": round(prices.dollars(compared), 6)},
        "live": {
            "dollars_a_million": round(million, 6),
            "dollars_a_day": None
            if live_rate is None
            else round(live_rate * 86_400 * million / MILLION, 6),
            "write_units_a_second": live_rate,
        },
        "storage": {"dollars_a_month": round(copy_bytes / GIGABYTE * DOLLARS_PER_GB_MONTH, 6)},
        "export_import": {
            "dollars": round(gigabytes * (EXPORT_DOLLARS_PER_GB + IMPORT_DOLLARS_PER_GB), 6),
            "says": EXPORT_SAYS,
            "prices": "from memory, check them",
        },
        "bulk_put": {"dollars": None, "says": BULK_PUT_SAYS},
        "prices": prices.on_demand,
    }


def index_costs(trial: Trial, items: float, table_bytes: float, prices: Prices) -> dict[str, Any]:
    """Return the costs of a global index with the new key and all attributes instead."""
    put = trial.write_units / trial.mapped if trial.mapped else 1.0
    return {
        "dollars": round(prices.dollars(0.0, items * put), 6),
        "dollars_a_million": round(prices.dollars(0.0, MILLION * put), 6),
        "dollars_a_month": round(table_bytes / GIGABYTE * DOLLARS_PER_GB_MONTH, 6),
    }


def _of_indexes(trial: Trial) -> float:
    """Return the units that an item needs for its indexes."""
    return trial.index_units / trial.mapped if trial.mapped else 0.0
