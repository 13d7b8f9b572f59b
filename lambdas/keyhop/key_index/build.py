"""Before and after a build: places for sentinels that items of users have taken."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from keyhop.enumerate.pages import PageReader
from keyhop.errors import CannotStart
from keyhop.key_index.collections import Collections
from keyhop.keyspace import Key, to_json
from keyhop.units import UNITS_PER_BLOCK

SAMPLE_ITEMS = 10
ELSEWHERE = "choose another place for sentinels (--sentinel, or sentinelSortKey in the context)"


def check_places_are_free(reader: PageReader, collections: Collections) -> None:
    """Raises CannotStart if a user's item has a sentinel's key, in one of a few collections."""
    page = reader.read(0, 1, None, SAMPLE_ITEMS, UNITS_PER_BLOCK)
    taken = first_taken(collections, page.keys)
    if taken is not None:
        place = json.dumps(collections.sentinel.to_json()["place"])
        raise CannotStart(
            f"An item of yours has the sort key {place}, where the sentinel of its collection "
            f"would go: {ELSEWHERE}. Its partition key: {json.dumps(to_json(taken))}."
        )


def first_taken(collections: Collections, partitions: Sequence[Key]) -> Key | None:
    """The first of them where a user's item has the sentinel's key."""
    return next((key for key in partitions if collections.is_occupied(key)), None)


def check_all_were_free(report: Mapping[str, Any]) -> None:
    """After a walk: raises CannotStart if a collection could not get its sentinel."""
    if report["occupied"]:
        raise CannotStart(
            f"{report['occupied']:,} collections have an item of yours where their sentinel would "
            f"go, so the index is not whole: remove it, and {ELSEWHERE}."
        )
