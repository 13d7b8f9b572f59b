"""What is to be enumerated: a table or an index, as DescribeTable tells it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    stop_after_delay,
    wait_random_exponential,
)

from keyhop.dynamodb.client import DynamoDB, Endpoint, explained, is_transient
from keyhop.dynamodb.schema import KeySpace, index_keyspace, indexes_of, table_keyspace
from keyhop.errors import CannotStart, IndexNotFound
from keyhop.key_index.sentinel import INDEX, Sentinel

READABLE = {"ACTIVE", "UPDATING"}
FIRST_CONTACT_ATTEMPTS = 3
DEFAULT_PATIENCE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Target:
    """A table, or one of its indexes.

    identity: the table's ARN and creation; another table under the same name has another identity.
    item_count, size_bytes: as the service reports them, up to six hours old, 0 on a new table.
    sentinel: what to look for in a page of the table; of an index, the only rows that count.
    has_key_index: whether the table has an index of the key index's name.
    """

    name: str
    index: str | None
    arn: str
    identity: str
    space: KeySpace
    item_count: int
    size_bytes: int
    sentinel: Sentinel | None = None
    has_key_index: bool = False

    @property
    def mean_item_bytes(self) -> float | None:
        """Mean size of an item; None if the service reports no items."""
        return self.size_bytes / self.item_count if self.item_count and self.size_bytes else None

    @property
    def title(self) -> str:
        """For messages: the table, and the index if there is one."""
        return f"{self.name}/{self.index}" if self.index else self.name


def describe(
    client: DynamoDB,
    endpoint: Endpoint,
    table: str,
    index: str | None = None,
    patience: float = DEFAULT_PATIENCE_SECONDS,
) -> Target:
    """Look the table up.

    This is the first contact, so without any answer it is tried a few times only: a wrong endpoint
    should be told at once. Throttling and 5xx are answers: they are borne for `patience` seconds.
    Raises TableNotFound, IndexNotFound, CannotStart, NoCredentials, NotPermitted,
    Unreachable.
    """
    retrying = Retrying(
        retry=retry_if_exception(is_transient),
        wait=wait_random_exponential(0.1, 2.0),
        stop=lambda state: (
            stop_after_delay(patience)(state)
            if _answered(state)
            else stop_after_attempt(FIRST_CONTACT_ATTEMPTS)(state)
        ),
        reraise=True,
    )
    try:
        description = retrying(client.describe_table, TableName=table)["Table"]
    except (BotoCoreError, ClientError) as error:
        raise explained(error, endpoint, table) from error
    return target_of(description, table, index)


def _answered(state: RetryCallState) -> bool:
    return state.outcome is not None and isinstance(state.outcome.exception(), ClientError)


def target_of(description: Mapping[str, Any], table: str, index: str | None = None) -> Target:
    """The target in DescribeTable's `Table`; raises IndexNotFound or CannotStart.

    table: as the user wrote it, a name or an ARN: requests use the same.
    """
    name = description["TableName"]
    status = description.get("TableStatus", "ACTIVE")
    if status not in READABLE:
        raise CannotStart(f"Table {name!r} is {status}: wait until it is ACTIVE.")
    counted = description
    space = table_keyspace(description)
    if index is not None:
        found = index_keyspace(description, index)
        if found is None:
            known = ", ".join(entry["IndexName"] for entry in indexes_of(description))
            raise IndexNotFound(
                f"Table {name!r} has no index {index!r}: "
                + (f"its indexes are {known}." if known else "it has none.")
            )
        space = found
        counted = next(e for e in indexes_of(description) if e["IndexName"] == index)
        if counted.get("Backfilling") or counted.get("IndexStatus", "ACTIVE") not in READABLE:
            raise CannotStart(f"Index {index!r} is being built: wait until it is ACTIVE.")
    created = description.get("CreationDateTime")
    identity = description.get("TableId") or str(created and created.timestamp())
    return Target(
        name=table,
        index=index,
        arn=description.get("TableArn", ""),
        identity=f"{description.get('TableArn', '')}#{identity}",
        space=space,
        item_count=int(counted.get("ItemCount", 0)),
        size_bytes=int(counted.get("TableSizeBytes", counted.get("IndexSizeBytes", 0))),
        has_key_index=any(entry["IndexName"] == INDEX for entry in indexes_of(description)),
    )
