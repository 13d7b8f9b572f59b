"""Real data: the flights that left New York City in 2013, by three keys (local/flights.py)."""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from itertools import islice
from random import Random

from testing.flights import flights
from testing.report_corpus.case import Item, Schema, case
from testing.report_corpus.tables.clean import ONE_ENTITY


@cache
def _rows() -> tuple[Item, ...]:
    """Return one flight in eighty."""
    return tuple(
        {name: _plain(value) for name, value in raw.items()}
        for raw in islice(flights(), 0, None, 80)
    )


def _plain(value: Mapping[str, str]) -> str | Decimal:
    return value["S"] if "S" in value else Decimal(value["N"])


def by(key: str) -> Callable[[Random, float], Iterator[Item]]:
    """Return a function of the flights with one of their attributes, or their day, as the key."""

    def rows(chance: Random, now: float) -> Iterator[Item]:
        for row in _rows():
            if key == "day":
                day, _, rest = row["departure"].partition("T")
                yield row | {"day": day, "departure": f"{rest}#{row['origin']}"}
            else:
                yield row

    return rows


case(
    "flights by aircraft",
    "real",
    Schema("tailnum", "departure"),
    items=by("tailnum"),
    allowed=ONE_ENTITY,
)
case(
    "flights by route", "real", Schema("route", "departure"), items=by("route"), allowed=ONE_ENTITY
)
case(
    "flights by date",
    "real",
    Schema("day", "departure"),
    items=by("day"),
    found=["A3"],
    allowed=ONE_ENTITY,
)
