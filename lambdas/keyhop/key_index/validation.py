"""Before and after a build: what of the users' items stands in its way."""

import json
from collections.abc import Mapping
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Table, request
from keyhop.dynamodb.usage import Usage
from keyhop.errors import CannotStart
from keyhop.key_index.index import is_ready
from keyhop.key_index.sentinel import INDEX, MARKER, Sentinel
from keyhop.wording import counted

SAMPLE_ITEMS = 100
"""Looked at before anything else: where most of the users' items have it, no walk is needed."""

ELSEWHERE = "choose another place for sentinels (--sentinel, or sentinelSortKey in the context)"


def check_items(connection: Connection, table: str, sentinel: Sentinel) -> None:
    """Look at some items of a table that has no key index yet; raises CannotStart.

    An item with a sentinel's key is in its way. An attribute of the marker's name would be in the
    index; and where it is no number, DynamoDB would refuse the user's writes once there is one.
    """
    for item in _sample(connection, table, sentinel):
        if sentinel.is_at_place(item) and not sentinel.is_one(item):
            raise CannotStart(
                f"An item of yours has the sort key {_shown(sentinel)}, where the sentinel of its "
                f"collection would go: {ELSEWHERE}."
            )
        if MARKER in item and not sentinel.is_one(item):
            raise CannotStart(
                f"Items of yours have an attribute {MARKER!r}, which marks sentinels: a key index "
                f"would hold them too, so this table cannot have one."
            )


def check_place(
    connection: Connection, table: Table, sentinel: Sentinel, known: Sentinel | None
) -> None:
    """Raises CannotStart if the key index was built with another sort key for its sentinels.

    known: the sentinels of the record; without one, some rows of the index are looked at.
    """
    if known is not None:
        is_another = known != sentinel
    elif is_ready(table):
        rows = _sample(connection, table.name, sentinel, IndexName=INDEX)
        is_another = bool(rows) and not any(sentinel.is_at_place(row) for row in rows)
    else:
        return
    if is_another:
        raise CannotStart(
            f"The key index of {table.bare_name!r} has no sentinels with the sort key "
            f"{_shown(sentinel)}, but rows with other ones: it was built with another sort key; "
            f"give that one (--sentinel, or sentinelSortKey in the context)."
        )


def check_all_are_free(usage: Usage, sentinel: Sentinel, named_in: str | None) -> None:
    """After the walk before a build; raises CannotStart for what stands in the index's way.

    Of each collection that walk has seen the sentinel's place, and its first items besides; what
    comes later in it, it has not. named_in: where up to 1,000 of them are named, if that lasts.
    """
    names = "" if named_in is None else f" Up to 1,000 of them are named in {named_in}."
    occupied, marked = int(usage.counters["occupied"]), int(usage.counters["marked"])
    if occupied:
        raise CannotStart(
            f"{counted(occupied, 'collection has', 'collections have')} an item of yours with the "
            f"sort key {_shown(sentinel)}, where their sentinel would go: {ELSEWHERE}. Nothing "
            f"was added to the table.{names}"
        )
    if marked:
        raise CannotStart(
            f"{counted(marked, 'collection has', 'collections have')} an item of yours with an "
            f"attribute {MARKER!r}, which marks sentinels: a number would bring it into the key "
            f"index, and of anything else DynamoDB would refuse your writes. So this table cannot "
            f"have one. Nothing was added to it.{names}"
        )


def check_all_were_free(report: Mapping[str, Any]) -> None:
    """After a walk: raises CannotStart if a collection could not get its sentinel."""
    if report["occupied"]:
        raise CannotStart(
            f"{counted(report['occupied'], 'collection has', 'collections have')} an item of yours "
            f"where the sentinel would go, so the index is not whole: remove it, and {ELSEWHERE}."
        )


def _sample(
    connection: Connection, table: str, sentinel: Sentinel, **more: Any
) -> list[Mapping[str, Any]]:
    names = {"#s": sentinel.sort.name, "#m": MARKER}
    page = request(
        connection,
        table,
        "scan",
        Limit=SAMPLE_ITEMS,
        Select="SPECIFIC_ATTRIBUTES",
        ProjectionExpression=", ".join(names),
        ExpressionAttributeNames=names,
        **more,
    )
    return list(page["Items"])


def _shown(sentinel: Sentinel) -> str:
    return json.dumps(sentinel.to_json()["place"])
