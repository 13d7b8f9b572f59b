"""The table's side of a key index: what DescribeTable tells, checks, and UpdateTable.

`step_towards_built` and `step_towards_removed` each do the one thing that can be done next, and say
whether to wait for it. So a state machine, or a loop, may call them again at any time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.requester import error_code
from keyhop.dynamodb.tables import BUSY, Table, look_up, request
from keyhop.errors import CannotStart, IndexNotFound
from keyhop.key_index.sentinel import INDEX, MARKER

MOST_INDEXES = 20
"""Global indexes of a table, by default (AWS documentation)."""


@dataclass(frozen=True, slots=True)
class Step:
    """done: nothing is left to do. says: what is under way, for a person."""

    done: bool
    says: str


def table_with_index(connection: Connection, name: str) -> Table:
    """The table; raises TableNotFound and others, and CannotStart if another index is so called."""
    table = look_up(connection, name)
    index = table.index(INDEX)
    if index is not None:
        _check_shape(index, table)
    return table


def status_of(table: Table) -> str | None:
    """The key index's status; None if there is none."""
    index = table.index(INDEX)
    return None if index is None else str(index["IndexStatus"])


def is_ready(table: Table) -> bool:
    """Whether the key index can be read."""
    index = table.index(INDEX)
    return index is not None and index["IndexStatus"] == "ACTIVE" and not index.get("Backfilling")


def shape_of(table: Table) -> dict[str, Any]:
    """What a removed index must have left as it was."""
    return {"indexes": sorted(table.global_indexes), "stream_view": table.stream_view}


def check_can_have_one(table: Table) -> None:
    """Raises CannotStart if the table can have no key index."""
    indexes = len(table.global_indexes)
    if table.index(INDEX) is None and indexes >= MOST_INDEXES:
        raise CannotStart(
            f"Table {table.bare_name!r} has {indexes} global indexes already, and DynamoDB allows "
            f"{MOST_INDEXES}: delete one, or have the quota raised."
        )
    if table.status not in ("ACTIVE", "UPDATING"):
        raise CannotStart(f"Table {table.bare_name!r} is {table.status}: wait until it is ACTIVE.")


def check_has_one(table: Table) -> None:
    """Raises IndexNotFound or CannotStart if there is no key index to read."""
    name = table.bare_name
    if table.index(INDEX) is None:
        raise IndexNotFound(
            f"Table {name!r} has no key index: build one (keyhop index build {name})."
        )
    if not is_ready(table):
        raise CannotStart(
            f"The key index of {name!r} is being built ({status_of(table)}): wait until it is "
            f"ACTIVE."
        )


def step_towards_built(connection: Connection, name: str, with_stream: bool) -> tuple[Table, Step]:
    """Turn the stream on (if wanted), then add the index, then wait until it is ACTIVE."""
    table = table_with_index(connection, name)
    check_can_have_one(table)
    if table.status != "ACTIVE":
        return table, Step(False, f"waiting for {table.bare_name}, which is {table.status}")
    if with_stream and table.stream is None:
        stream = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
        _update(connection, name, StreamSpecification=stream)
        return table, Step(False, "turning the stream on")
    if table.index(INDEX) is None:
        _update(connection, name, **_addition(table))
        return table, Step(False, "adding the index")
    if not is_ready(table):
        return table, Step(False, f"waiting for the index, which is {status_of(table)}")
    return table, Step(True, "the index is ACTIVE")


def step_towards_removed(
    connection: Connection, name: str, with_stream: bool
) -> tuple[Table, Step]:
    """Delete the index, then turn the stream off (if wanted)."""
    table = table_with_index(connection, name)
    if table.status != "ACTIVE":
        return table, Step(False, f"waiting for {table.bare_name}, which is {table.status}")
    if status_of(table) == "DELETING":
        return table, Step(False, "waiting for the index to go")
    if table.index(INDEX) is not None:
        deletion = {"Delete": {"IndexName": INDEX}}
        _update(connection, name, GlobalSecondaryIndexUpdates=[deletion])
        return table, Step(False, "deleting the index")
    if with_stream and table.stream is not None:
        _update(connection, name, StreamSpecification={"StreamEnabled": False})
        return table, Step(False, "turning the stream off")
    return table, Step(True, "the index is gone")


def _addition(table: Table) -> dict[str, Any]:
    (partition,) = table.space.partition
    throughput = {}
    if table.throughput is not None:
        throughput = {"ProvisionedThroughput": table.throughput}
    index = {
        "IndexName": INDEX,
        "KeySchema": [
            {"AttributeName": partition.name, "KeyType": "HASH"},
            {"AttributeName": MARKER, "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
        **throughput,
    }
    return {
        "AttributeDefinitions": [
            {"AttributeName": partition.name, "AttributeType": partition.type},
            {"AttributeName": MARKER, "AttributeType": "N"},
        ],
        "GlobalSecondaryIndexUpdates": [{"Create": index}],
    }


def _check_shape(index: Mapping[str, Any], table: Table) -> None:
    keys = [(entry["AttributeName"], entry["KeyType"]) for entry in index["KeySchema"]]
    if keys != [(table.space.partition[0].name, "HASH"), (MARKER, "RANGE")]:
        raise CannotStart(
            f"Table {table.bare_name!r} has an index {INDEX!r} of another shape, which is not "
            f"Keyhop's: delete it first."
        )


def _update(connection: Connection, name: str, **changes: Any) -> None:
    try:
        request(connection, name, "update_table", **changes)
    except ClientError as error:
        if error_code(error) != BUSY:
            raise
        # Somebody was quicker: the next step sees what came of it.
