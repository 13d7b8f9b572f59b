"""The table's side of a key index: the fields of DescribeTable, checks, and UpdateTable.

`step_towards_built` and `step_towards_removed` do one thing, the next one, and return for what to
wait. So a state machine, or a loop, may call them again at any time.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.schema import has_key_index, indexes_of
from keyhop.dynamodb.tables import Table, look_up, request, update
from keyhop.dynamodb.units import MOST_INDEXES, SENTINEL_WRITE_UNITS
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key
from keyhop.errors import CannotStart, IndexNotFound
from keyhop.key_index.registry import Entry
from keyhop.key_index.sentinel import INDEX, MARKER, Sentinel
from keyhop.wording import counted

LEAST_VIEW = "KEYS_ONLY"
"""The content of records that the keeper needs: they hold no more data of users, and batches are
large."""

VIEWS = (LEAST_VIEW, "NEW_AND_OLD_IMAGES")
"""The contents of records that a stream can have which Keyhop turns on. Other readers may need
images."""


def table_with_index(connection: Connection, name: str) -> Table:
    """Look a table up, and check its index (`check_shape`)."""
    table = look_up(connection, name)
    check_shape(table)
    return table


def status_of(table: Table) -> str | None:
    """Return the status of the key index; None if there is none."""
    index = table.index(INDEX)
    return None if index is None else str(index["IndexStatus"])


def is_ready(table: Table) -> bool:
    """Return whether the key index can be read."""
    index = table.index(INDEX)
    return index is not None and index["IndexStatus"] == "ACTIVE" and not index.get("Backfilling")


def shape_of(table: Table) -> dict[str, Any]:
    """Return the properties of a table that the removal of an index must restore."""
    return {"indexes": sorted(table.global_indexes), "stream_view": table.stream_view}


def indexes_entered(table: Table) -> tuple[list[str], list[str]]:
    """Return the user's indexes that sentinels enter, because they have all of the key attributes.

    The second list has those among them in which all sentinels have the same partition key.
    """
    partition = set(table.space.names)
    sort = table.space.sort
    has = partition | {MARKER} | ({sort.name} if sort else set())
    entered: list[str] = []
    hot: list[str] = []
    for index in indexes_of(table.description):
        keys = {entry["AttributeName"]: entry["KeyType"] for entry in index["KeySchema"]}
        if index["IndexName"] == INDEX or not has.issuperset(keys):
            continue
        entered.append(index["IndexName"])
        if partition.isdisjoint(name for name, kind in keys.items() if kind == "HASH"):
            hot.append(index["IndexName"])
    return entered, hot


def sentinel_write_units(table: Table) -> float:
    """Return the write units of a sentinel, which enters the table and some of its indexes."""
    return SENTINEL_WRITE_UNITS + len(indexes_entered(table)[0])


def check_region(table: Table, region: str | None, is_known: bool) -> None:
    """Raise CannotStart if another region than `region` may keep the sentinels of a global table.

    If the index `is_known`, it was built from here.
    """
    replicas = [replica.get("RegionName", "?") for replica in table.description.get("Replicas", ())]
    table_region = table.arn.split(":")[3] if table.arn.count(":") > 3 else ""
    if not replicas or is_known or (region is not None and region == table_region):
        return
    which = "none was named" if region is None else f"{region} was named"
    raise CannotStart(
        f"Table {table.bare_name!r} is a global table, with replicas in {', '.join(replicas)}: "
        "one region puts and deletes its sentinels, which the others get by replication. This is "
        f"{table_region}, and {which}: start BuildKeyIndex in one region only, and give that "
        "region in the field region of its input."
    )


def check_can_have_one(table: Table) -> None:
    """Raise CannotStart if the table can have no key index."""
    indexes = len(table.global_indexes)
    if table.index(INDEX) is None and indexes >= MOST_INDEXES:
        raise CannotStart(
            f"Table {table.bare_name!r} has {indexes} global indexes already, and DynamoDB allows "
            f"{MOST_INDEXES}: delete one, or request a higher quota."
        )
    table.check_is_ready("ACTIVE", "UPDATING")


def check_has_one(table: Table) -> None:
    """Raise IndexNotFound or CannotStart if the table has no readable key index."""
    name = table.bare_name
    check_shape(table)
    if table.index(INDEX) is None:
        raise IndexNotFound(f"Table {name!r} has no key index: build one first.")
    if not is_ready(table):
        raise CannotStart(
            f"The key index of {name!r} is being built ({status_of(table)}): wait until it is "
            f"ACTIVE."
        )


@dataclass(frozen=True, slots=True)
class Sentinels:
    """The sentinels of a table.

    Attributes:
        item: The place and the marker of a sentinel. An item of a user that has only one of them is
            not a sentinel.
        are_known: Whether a record or an index shows that there are sentinels. Otherwise some may
            remain from an earlier index.
    """

    item: Key
    are_known: bool


SentinelsOf = Callable[[Table], Sentinels | None]
"""Returns the sentinels of a table, or None if it can have none."""


def sentinels_of(
    table: Table, entry: Entry | None = None, place: str | None = None
) -> Sentinels | None:
    """Return the sentinels of a table, or None if it can have none.

    Args:
        entry: The entry of the table in the registry, which says where the sentinels are.
        place: The sort key of the sentinels if the entry does not say it; None for the least one.
    """
    if entry is not None and entry.place is not None:
        return Sentinels(entry.place.item_of({}), are_known=True)
    if is_anothers(table):
        return None
    try:
        item = Sentinel.of(table.space, place).item_of({})
    except CannotStart:
        return None
    return Sentinels(item, are_known=table.index(INDEX) is not None)


def check_stream_view(table: Table, view: str | None) -> None:
    """Raise CannotStart if the stream is on and its records hold something else than `view`."""
    if view is not None and table.stream_view not in (None, view):
        raise CannotStart(
            f"The stream of table {table.bare_name!r} is on, with {table.stream_view}, which "
            f"DynamoDB cannot change. Let its readers come to its end, turn it off, and start "
            f"BuildKeyIndex again, which turns it on with {view} and verifies the index, because "
            f"no keeper has seen the writes between."
        )


def step_towards_built(
    connection: Connection,
    name: str,
    with_stream: bool,
    view: str | None = None,
    throughput: Mapping[str, int] | None = None,
) -> tuple[Table, str | None]:
    """Turn the stream on (if wanted), then add the index, then wait until it is ACTIVE.

    Args:
        view: What the records of the stream will contain; None for the keys alone.
        throughput: The capacity of the index; None for a table on demand.

    Returns:
        The table as it was, and what to wait for; None if the index is ACTIVE.
    """
    table = table_with_index(connection, name)
    check_can_have_one(table)
    if table.status != "ACTIVE":
        return table, f"waiting for {table.bare_name}, which is {table.status}"
    if with_stream and table.stream is None:
        stream = {"StreamEnabled": True, "StreamViewType": view or LEAST_VIEW}
        update(connection, name, StreamSpecification=stream)
        return table, "turning the stream on"
    if table.index(INDEX) is None:
        return table, _index_step(
            connection, table, "adding the index", **_addition(table, throughput)
        )
    if not is_ready(table):
        return table, f"waiting for the index, which is {status_of(table)}"
    return table, None


def step_towards_removed(
    connection: Connection, name: str, with_stream: bool
) -> tuple[Table, str | None]:
    """Delete the index, then turn the stream off (if wanted); return as `step_towards_built`."""
    table = table_with_index(connection, name)
    if table.status != "ACTIVE":
        return table, f"waiting for {table.bare_name}, which is {table.status}"
    if status_of(table) == "DELETING":
        return table, "waiting for the index to go"
    if table.index(INDEX) is not None:
        changes = {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": INDEX}}]}
        return table, _index_step(connection, table, "deleting the index", **changes)
    if with_stream and table.stream is not None:
        update(connection, name, StreamSpecification={"StreamEnabled": False})
        return table, "turning the stream off"
    return table, None


def _addition(table: Table, throughput: Mapping[str, int] | None) -> dict[str, Any]:
    (partition,) = table.space.partition
    capacity = {} if throughput is None else {"ProvisionedThroughput": dict(throughput)}
    index = {
        "IndexName": INDEX,
        "KeySchema": [
            {"AttributeName": partition.name, "KeyType": "HASH"},
            {"AttributeName": MARKER, "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
        **capacity,
    }
    return {
        "AttributeDefinitions": [
            {"AttributeName": partition.name, "AttributeType": partition.type},
            {"AttributeName": MARKER, "AttributeType": "N"},
        ],
        "GlobalSecondaryIndexUpdates": [{"Create": index}],
    }


def is_anothers(table: Table) -> bool:
    """Return whether an index that is not Keyhop's has the name of the key index."""
    return table.index(INDEX) is not None and not has_key_index(table.description)


def check_shape(table: Table) -> None:
    """Raise CannotStart if another index has the name of the key index."""
    if is_anothers(table):
        raise CannotStart(
            f"Table {table.bare_name!r} has an index {INDEX!r} of another shape, which is not "
            f"Keyhop's: delete it first."
        )


def _index_step(connection: Connection, table: Table, says: str, **changes: Any) -> str:
    """Add or delete the index, unless another one is being added or deleted; return the wait."""
    for index in table.description.get("GlobalSecondaryIndexes", ()):
        name, status = index["IndexName"], index.get("IndexStatus")
        if name != INDEX and status in ("CREATING", "DELETING"):
            return f"waiting for the index {name}, which is {status}"
    update(connection, table.name, **changes)
    return says


SAMPLE_ITEMS = 100
"""The items that are read first, because a few often show an obstacle without a walk."""

ELSEWHERE = "choose another place for sentinels (sentinel=, or sentinelSortKey in the context)"


def check_items(connection: Connection, table: str, sentinel: Sentinel) -> None:
    """Raise CannotStart if one of some items is in the way of a key index.

    It has an attribute with the name of the marker. Such an item would be in the index, and where
    the attribute is not a number, DynamoDB would reject the user's writes. The first walk finds the
    items that have the key of a sentinel.
    """
    for item in _sample(connection, table, sentinel):
        if MARKER in item and not sentinel.is_one(item):
            raise CannotStart(
                f"Your items have an attribute {MARKER!r}, which marks sentinels: a key index "
                "would contain these items too, so this table cannot have one."
            )


def check_place(
    connection: Connection, table: Table, sentinel: Sentinel, recorded: Sentinel | None
) -> None:
    """Raise CannotStart if the key index was built with another sort key for its sentinels.

    Without a record of them, look at some rows of the index.
    """
    if recorded is not None:
        is_another = recorded != sentinel
    elif is_ready(table):
        rows = _sample(connection, table.name, sentinel, IndexName=INDEX)
        is_another = bool(rows) and not any(sentinel.is_at_place(row) for row in rows)
    else:
        return
    if is_another:
        raise CannotStart(
            f"The key index of {table.bare_name!r} has no sentinels with the sort key "
            f"{_shown(sentinel)}, but rows with other ones: it was built with another sort key; "
            f"give that one (sentinel=, or sentinelSortKey in the context)."
        )


def check_all_are_free(usage: Usage, sentinel: Sentinel, named_in: str | None) -> None:
    """Raise CannotStart if the walk before a build has found items in the way of the index.

    It has read the place of the sentinel and the first items of each collection. `named_in` is a
    file that names up to 1,000 of the items that it found, if it is kept.
    """
    names = "" if named_in is None else f" Up to 1,000 of them are named in {named_in}."
    occupied, marked = int(usage.counters["occupied"]), int(usage.counters["marked"])
    if occupied:
        raise CannotStart(
            f"{counted(occupied, 'collection has', 'collections have')} an item of yours with the "
            f"sort key {_shown(sentinel)}, in the place of their sentinel: {ELSEWHERE}. Nothing "
            f"was added to the table.{names}"
        )
    if marked:
        raise CannotStart(
            f"{counted(marked, 'collection has', 'collections have')} an item of yours with an "
            f"attribute {MARKER!r}, which marks sentinels: a number would bring it into the key "
            "index, and with another type DynamoDB would refuse your writes. So this table "
            f"cannot have a key index. Nothing was added to it.{names}"
        )


def check_all_were_free(report: Mapping[str, Any]) -> None:
    """Raise CannotStart if a collection could not get its sentinel in a walk."""
    if report["occupied"]:
        raise CannotStart(
            f"{counted(report['occupied'], 'collection has', 'collections have')} an item of "
            "yours in the place of the sentinel, so the index is incomplete: remove it, and "
            f"{ELSEWHERE}."
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
