"""The table's side of a key index: what DescribeTable tells, checks, and UpdateTable.

`step_towards_built` and `step_towards_removed` each do the one thing that can be done next, and say
whether to wait for it. So a state machine, or a loop, may call them again at any time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from keyhop.dynamodb.client import DynamoDB, Endpoint, explained, is_transient
from keyhop.dynamodb.schema import KeySpace, table_keyspace
from keyhop.errors import CannotStart, IndexNotFound
from keyhop.key_index.sentinel import INDEX, MARKER

MOST_INDEXES = 20
"""Global indexes of a table, by default (AWS documentation)."""

ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class TableState:
    """What of a table matters to a key index. identity: as in enumerate/table.py.

    index: the key index's status, None if there is none. backfilling: it is still being filled.
    stream: the ARN of the stream that is on, else None. throughput: of a provisioned table.
    """

    name: str
    identity: str
    status: str
    space: KeySpace
    indexes: tuple[str, ...]
    index: str | None
    backfilling: bool
    index_rows: int
    stream: str | None
    stream_view: str | None
    throughput: Mapping[str, int] | None
    items: int

    @property
    def is_index_ready(self) -> bool:
        """Whether the key index can be read."""
        return self.index == "ACTIVE" and not self.backfilling

    def shape(self) -> dict[str, Any]:
        """What a removed index must have left as it was."""
        return {"indexes": sorted(self.indexes), "stream_view": self.stream_view}


@dataclass(frozen=True, slots=True)
class Step:
    """done: nothing is left to do. says: what is under way, for a person."""

    done: bool
    says: str


def look_up(client: DynamoDB, endpoint: Endpoint, table: str) -> TableState:
    """The table's state; raises TableNotFound and its kin, and CannotStart for a misused name."""
    return state_of(call(client, endpoint, table, "describe_table", TableName=table)["Table"])


def state_of(description: Mapping[str, Any]) -> TableState:
    """From DescribeTable's `Table`; raises CannotStart if another index has our name."""
    indexes = description.get("GlobalSecondaryIndexes", ())
    index = next((entry for entry in indexes if entry["IndexName"] == INDEX), None)
    space = table_keyspace(description)
    if index is not None:
        _check_shape(index, space, description["TableName"])
    stream = description.get("StreamSpecification") or {}
    is_on = bool(stream.get("StreamEnabled"))
    billing = description.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED")
    given = description.get("ProvisionedThroughput", {})
    created = description.get("CreationDateTime")
    identity = description.get("TableId") or str(created and created.timestamp())
    return TableState(
        name=description["TableName"],
        identity=f"{description.get('TableArn', '')}#{identity}",
        status=description.get("TableStatus", "ACTIVE"),
        space=space,
        indexes=tuple(entry["IndexName"] for entry in indexes),
        index=index["IndexStatus"] if index else None,
        backfilling=bool(index and index.get("Backfilling")),
        index_rows=int(index.get("ItemCount", 0)) if index else 0,
        stream=description.get("LatestStreamArn") if is_on else None,
        stream_view=stream.get("StreamViewType") if is_on else None,
        throughput=(
            None
            if billing == "PAY_PER_REQUEST"
            else {
                "ReadCapacityUnits": max(1, given.get("ReadCapacityUnits", 1)),
                "WriteCapacityUnits": max(1, given.get("WriteCapacityUnits", 1)),
            }
        ),
        items=int(description.get("ItemCount", 0)),
    )


def check_can_have_one(state: TableState) -> None:
    """Raises CannotStart if the table can have no key index."""
    if state.index is None and len(state.indexes) >= MOST_INDEXES:
        raise CannotStart(
            f"Table {state.name!r} has {len(state.indexes)} global indexes already, and DynamoDB "
            f"allows {MOST_INDEXES}: delete one, or have the quota raised."
        )
    if state.status not in ("ACTIVE", "UPDATING"):
        raise CannotStart(f"Table {state.name!r} is {state.status}: wait until it is ACTIVE.")


def check_has_one(state: TableState) -> None:
    """Raises IndexNotFound or CannotStart if there is no key index to read."""
    if state.index is None:
        raise IndexNotFound(
            f"Table {state.name!r} has no key index: build one (keyhop index build {state.name})."
        )
    if not state.is_index_ready:
        raise CannotStart(
            f"The key index of {state.name!r} is being built ({state.index}): wait until it is "
            f"ACTIVE."
        )


def step_towards_built(
    client: DynamoDB, endpoint: Endpoint, table: str, with_stream: bool
) -> tuple[TableState, Step]:
    """Turn the stream on (if wanted), then add the index, then wait until it is ACTIVE."""
    state = look_up(client, endpoint, table)
    check_can_have_one(state)
    if state.status != "ACTIVE":
        return state, Step(False, f"waiting for {state.name}, which is {state.status}")
    if with_stream and state.stream is None:
        stream = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
        _update(client, endpoint, table, StreamSpecification=stream)
        return state, Step(False, "turning the stream on")
    if state.index is None:
        _update(client, endpoint, table, **_addition(state))
        return state, Step(False, "adding the index")
    if not state.is_index_ready:
        return state, Step(False, f"waiting for the index, which is {state.index}")
    return state, Step(True, "the index is ACTIVE")


def step_towards_removed(
    client: DynamoDB, endpoint: Endpoint, table: str, with_stream: bool
) -> tuple[TableState, Step]:
    """Delete the index, then turn the stream off (if wanted)."""
    state = look_up(client, endpoint, table)
    if state.status != "ACTIVE":
        return state, Step(False, f"waiting for {state.name}, which is {state.status}")
    if state.index == "DELETING":
        return state, Step(False, "waiting for the index to go")
    if state.index is not None:
        deletion = {"Delete": {"IndexName": INDEX}}
        _update(client, endpoint, table, GlobalSecondaryIndexUpdates=[deletion])
        return state, Step(False, "deleting the index")
    if with_stream and state.stream is not None:
        _update(client, endpoint, table, StreamSpecification={"StreamEnabled": False})
        return state, Step(False, "turning the stream off")
    return state, Step(True, "the index is gone")


def _addition(state: TableState) -> dict[str, Any]:
    (partition,) = state.space.partition
    throughput = {} if state.throughput is None else {"ProvisionedThroughput": state.throughput}
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


def _check_shape(index: Mapping[str, Any], space: KeySpace, table: str) -> None:
    keys = [(entry["AttributeName"], entry["KeyType"]) for entry in index["KeySchema"]]
    if keys != [(space.partition[0].name, "HASH"), (MARKER, "RANGE")]:
        raise CannotStart(
            f"Table {table!r} has an index {INDEX!r} of another shape, which is not Keyhop's: "
            f"delete it first."
        )


def _update(client: DynamoDB, endpoint: Endpoint, table: str, **changes: Any) -> None:
    try:
        call(client, endpoint, table, "update_table", TableName=table, **changes)
    except ClientError as busy:  # somebody was quicker: the next step sees what came of it
        if busy.response.get("Error", {}).get("Code") != "ResourceInUseException":
            raise explained(busy, endpoint, table) from busy


def call(
    client: DynamoDB, endpoint: Endpoint, table: str, operation: str, **parameters: Any
) -> dict[str, Any]:
    """One request about a table as a whole; raises what `explained` makes of a refusal.

    ResourceInUseException is left as it is.
    """
    retrying = Retrying(
        retry=retry_if_exception(is_transient),
        wait=wait_random_exponential(0.1, 5.0),
        stop=stop_after_attempt(ATTEMPTS),
        reraise=True,
    )
    try:
        if operation == "describe_table":
            return retrying(client.describe_table, **parameters)
        return retrying(client.call, operation, **parameters)
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") == "ResourceInUseException":
            raise
        raise explained(error, endpoint, table) from error
    except BotoCoreError as error:
        raise explained(error, endpoint, table) from error
