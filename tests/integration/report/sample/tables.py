"""Items for planted tables, and a function that samples a table."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from keyhop.dynamodb.client import connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.tables import look_up
from keyhop.dynamodb.usage import Usage
from keyhop.report.facts import SampleFacts
from keyhop.report.request import ReportInput
from keyhop.report.sampling import sample

from testing.databases import Database

BEGAN = datetime(2025, 1, 1)
Items = Iterator[dict[str, Any]]


def collections(sizes: Iterable[int], name: str = "USER#{}", filling: int = 200) -> Items:
    """Yield the items of collections of these sizes, with times over one year."""
    for number, size in enumerate(sizes):
        for at in range(size):
            time = BEGAN + timedelta(minutes=at * 525_600 // size, seconds=number % 60)
            yield {
                "pk": {"S": name.format(number)},
                "sk": {"S": f"ORDER#{time.isoformat()}Z"},
                "data": {"S": "x" * filling},
            }


def sampled(
    database: Database,
    table: str,
    units: float | None = None,
    usage: Usage | None = None,
    seed: str | None = None,
    **options: Any,
) -> SampleFacts:
    """Return the facts of a sample that may cost this many read units.

    With a seed, each call draws the same segments, and one thread reads them in order.
    """
    connection = connect(Endpoint(url=database.url))
    request = ReportInput(table=table, max_read_units=units, **options).request(str, {})
    if seed is not None:
        request = replace(request, threads=1, options={**request.options, "seed": seed})
    return sample(connection, look_up(connection, table), request, usage=usage)
