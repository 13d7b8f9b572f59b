"""`make report-demo`: reports on the same real data under three keys.

The flights of New York City are in DynamoDB Local by aircraft, by route and by date. Most are
loaded first. Then more of them arrive for a minute with the date of today, which is a single key in
the table by date. The pages of the reports show that, and remain in out/report.
"""

import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from local.cloud import console, exit_with
from testing.databases import Database, load
from testing.flights import BY_AIRCRAFT, BY_ROUTE, PARTITION_KEYS, flights
from testing.servers import ROOT, child, dynamodb_local

ITEMS = 12_000
TODAYS = 3_000
SECONDS = 60.0
"""The time in which the flights of today arrive: a column of the key map is a minute."""

BY_DATE = "FlightsByDate"
KEYS = {
    BY_DATE: "date",
    BY_AIRCRAFT: PARTITION_KEYS[BY_AIRCRAFT],
    BY_ROUTE: PARTITION_KEYS[BY_ROUTE],
}
STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
BY_CARRIER = {
    "AttributeDefinitions": [{"AttributeName": "carrier", "AttributeType": "S"}],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-carrier",
            "KeySchema": [{"AttributeName": "carrier", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
}
PAGES = ROOT / "out" / "report"


def main() -> int:
    """Load the data, make the reports, and return an exit status."""
    began = time.monotonic()
    with dynamodb_local() as url:
        database = Database("dynamodb_local", url)
        for table, key in KEYS.items():
            database.create(table, (key, "S"), ("departure", "S"), **BY_CARRIER)
            load(database.client, dated(islice(flights(), ITEMS)), table)
            database.client.update_table(TableName=table, StreamSpecification=STREAM)
            console.print(
                f"Loaded {ITEMS:,} flights into {table}, partition key {key} "
                f"({time.monotonic() - began:.0f} s)."
            )
        console.print(f"{TODAYS:,} flights more come in, as today's, for {SECONDS:.0f} seconds ...")
        fly(database)
        statuses = [report(url, table) for table in KEYS]
    console.print(f"\nThe pages are in {PAGES.relative_to(ROOT)}: open one in a browser.")
    return max(statuses)


def fly(database: Database) -> None:
    """Put today's flights into all three tables, evenly over the time."""
    today = datetime.now(UTC).date().isoformat()
    began = time.monotonic()
    for number, item in enumerate(dated(islice(flights(), ITEMS, ITEMS + TODAYS))):
        departure = today + item["departure"]["S"][10:]
        new = {**item, "date": {"S": today}, "departure": {"S": f"{departure}.{number}"}}
        for table in KEYS:
            database.client.put_item(TableName=table, Item=new)
        time.sleep(max(0.0, began + SECONDS * number / TODAYS - time.monotonic()))


def dated(items: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the items with the date in a separate attribute."""
    for item in items:
        yield {**item, "date": {"S": item["departure"]["S"][:10]}}


def report(url: str, table: str) -> int:
    """Run `keyhop report` as a user would, and return its exit status."""
    words = ["report", table, "--stream", "15m", "--show-keys", "full", "-o", f"out/report/{table}"]
    console.print(f"\n$ keyhop {' '.join(words)}", markup=False)
    command = [sys.executable, "-m", "keyhop", *words, "--quiet", "--endpoint-url", url]
    with child(command, ROOT, None, None) as running:
        status = running.wait()
    if status == 0:
        findings = json.loads((PAGES / table / "report.json").read_bytes())["findings"]
        assert findings, "a report has findings"
    return status


if __name__ == "__main__":
    exit_with(main)
