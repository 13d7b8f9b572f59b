"""Tables as DescribeTable describes them, and the source that a job reads."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.refusals import error_code, explained, is_transient
from keyhop.dynamodb.requester import send
from keyhop.dynamodb.schema import KeySpace, indexes_of, keyspace_of
from keyhop.dynamodb.values import Key
from keyhop.errors import CannotStart, IndexNotFound
from keyhop.retries import DEFAULT_PATIENCE_SECONDS, repeat
from keyhop.wording import did_you_mean

READABLE = {"ACTIVE", "UPDATING"}
LOCKED = "INACCESSIBLE_ENCRYPTION_CREDENTIALS"
FIRST_CONTACT_ATTEMPTS = 3
CONTROL_PATIENCE_SECONDS = 30.0
BUSY = "ResourceInUseException"
NOT_NOW = (BUSY, "LimitExceededException")
"""The codes of UpdateTable while the table changes, or another of its indexes is built or deleted:
DynamoDB changes one index at a time (API Reference, UpdateTable)."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """Whether a change is done, and a text about the present step."""

    done: bool
    says: str


@dataclass(frozen=True, slots=True)
class Source:
    """The table or index that a job reads, and which of its items count.

    Attributes:
        identity: The ARN and the creation time of the table. Another table with the same name has
            another identity.
        item_count, size_bytes: The values that the service reports. They can be six hours old, and
            are 0 for a new table.
        attributes: The attributes of each item that pages contain in addition to its partition key.
        only: Attributes that a row must have to count.
        ignores: Attributes that identify an item with which alone a collection does not count. A
            collection has at most one such item.
        suspects: The same as `ignores`, for a table that may or may not have such items. A first
            look asks for them.
        pairs: Whether each page shows at least two items of each collection that has them. A
            collection that is cut off before that comes again with the next page.
        whole: Whether pages contain all attributes of items.
        strong: Whether pages are strongly consistent, at twice the price.
        trusted: Whether this is an index that is read in place of the table because it is trusted.
            If reading it is refused, it is no longer trusted (see StaleIndex).
    """

    name: str
    index: str | None
    arn: str
    identity: str
    space: KeySpace
    item_count: int
    size_bytes: int
    attributes: tuple[str, ...] = ()
    only: Key | None = None
    ignores: Key | None = None
    suspects: Key | None = None
    pairs: bool = False
    whole: bool = False
    strong: bool = False
    trusted: bool = False

    @property
    def mean_item_bytes(self) -> float | None:
        """Return the mean size of an item; None if the service reports no items."""
        return self.size_bytes / self.item_count if self.item_count and self.size_bytes else None

    @property
    def fewest_items(self) -> int:
        """Return the minimum Limit of a page: one more than the items that may not count."""
        return 1 if self.ignores is None else 2

    @property
    def title(self) -> str:
        """Return the table, and the index if there is one, for messages."""
        return f"{self.name}/{self.index}" if self.index else self.name


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its description by DescribeTable; requests use `name`, a name or an ARN."""

    name: str
    description: Mapping[str, Any]

    @property
    def bare_name(self) -> str:
        """Return its name, even if requests use its ARN."""
        return str(self.description["TableName"])

    @property
    def status(self) -> str:
        return str(self.description.get("TableStatus", "ACTIVE"))

    @property
    def arn(self) -> str:
        return str(self.description.get("TableArn", ""))

    @property
    def identity(self) -> str:
        """Return what distinguishes the table from others that had or will have its name."""
        created = self.description.get("CreationDateTime")
        suffix = self.description.get("TableId") or str(created and created.timestamp())
        return f"{self.arn}#{suffix}"

    @property
    def space(self) -> KeySpace:
        return keyspace_of(self.description)

    @property
    def stream(self) -> str | None:
        """Return the ARN of its stream, if that is on."""
        return self.description.get("LatestStreamArn") if self._stream else None

    @property
    def stream_view(self) -> str | None:
        """Return what the stream's records contain, if the stream is on."""
        return self._stream.get("StreamViewType")

    @property
    def throughput(self) -> dict[str, int] | None:
        """Return its capacity units, by the names of requests; None for a table on demand."""
        billing = self.description.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED")
        if billing == "PAY_PER_REQUEST":
            return None
        throughput = self.description.get("ProvisionedThroughput", {})
        names = ("ReadCapacityUnits", "WriteCapacityUnits")
        return {name: max(1, throughput.get(name, 1)) for name in names}

    def index(self, name: str) -> Mapping[str, Any] | None:
        return next((e for e in indexes_of(self.description) if e["IndexName"] == name), None)

    @property
    def global_indexes(self) -> tuple[str, ...]:
        entries = self.description.get("GlobalSecondaryIndexes", ())
        return tuple(entry["IndexName"] for entry in entries)

    @property
    def vector_indexes(self) -> tuple[str, ...]:
        """Return the names of the vector indexes, which only SearchVectors can read."""
        entries = self.description.get("VectorIndexes", ())
        return tuple(entry["IndexName"] for entry in entries)

    def check_is_ready(self, *statuses: str) -> None:
        """Raise CannotStart, with what to do, if the table's status is none of these."""
        if self.status in statuses:
            return
        name = f"Table {self.bare_name!r}"
        if self.status == "DELETING":
            raise CannotStart(f"{name} is being deleted.")
        if self.status in ("ARCHIVING", "ARCHIVED"):
            raise CannotStart(
                f"{name} is {self.status}: its KMS key could not be used for a week, so DynamoDB "
                "made a backup and takes no more requests. Restore that backup to another table."
            )
        raise CannotStart(f"{name} is {self.status}: wait until it is ACTIVE.")

    def source(self, index: str | None = None) -> Source:
        """Return the table, or one of its indexes, to read; raise IndexNotFound or CannotStart."""
        if self.status == LOCKED:
            key = self.description.get("SSEDescription", {}).get("KMSMasterKeyArn", "its KMS key")
            raise CannotStart(
                f"Table {self.bare_name!r} is {LOCKED}: DynamoDB may not use {key} any more: "
                "enable that key again, or allow DynamoDB to use it again."
            )
        self.check_is_ready(*READABLE)
        entry = None if index is None else self._readable_index(index)
        read = entry or self.description
        return Source(
            name=self.name,
            index=index,
            arn=self.arn,
            identity=self.identity,
            space=keyspace_of(self.description, entry),
            item_count=int(read.get("ItemCount", 0)),
            size_bytes=int(read.get("IndexSizeBytes" if entry else "TableSizeBytes", 0)),
        )

    def _readable_index(self, index: str) -> Mapping[str, Any]:
        entry = self.index(index)
        if index in self.vector_indexes:
            raise CannotStart(
                f"Index {index!r} of table {self.bare_name!r} is a vector index: only "
                "SearchVectors can read it. List the keys of the table itself, or of another index."
            )
        if entry is None:
            names = [entry["IndexName"] for entry in indexes_of(self.description)]
            hint = f"its indexes are {', '.join(names)}.{did_you_mean(index, names)}"
            raise IndexNotFound(
                f"Table {self.bare_name!r} has no index {index!r}: "
                + (hint if names else "it has none.")
            )
        if entry.get("IndexStatus") == "DELETING":
            raise CannotStart(f"Index {index!r} is being deleted.")
        if entry.get("Backfilling") or entry.get("IndexStatus", "ACTIVE") not in READABLE:
            raise CannotStart(f"Index {index!r} is being built: wait until it is ACTIVE.")
        return entry

    @property
    def _stream(self) -> Mapping[str, Any]:
        """Return the specification of a stream that is on; otherwise an empty one."""
        stream = self.description.get("StreamSpecification") or {}
        return stream if stream.get("StreamEnabled") else {}


def look_up(
    connection: Connection, table: str, patience: float = DEFAULT_PATIENCE_SECONDS
) -> Table:
    """Describe a table; for `patience` and the errors, see `ask`."""
    return Table(table, request(connection, table, "describe_table", patience)["Table"])


def request(
    connection: Connection,
    table: str,
    operation: str,
    patience: float = CONTROL_PATIENCE_SECONDS,
    **parameters: Any,
) -> dict[str, Any]:
    """Send a request about a table as a whole, by its name (see `ask`)."""
    return ask(connection, table, operation, {"TableName": table, **parameters}, patience)


def ask(
    connection: Connection,
    table: str,
    operation: str,
    parameters: Mapping[str, Any],
    patience: float = CONTROL_PATIENCE_SECONDS,
) -> dict[str, Any]:
    """Send a request about a table as a whole, and repeat it if that can help.

    Throttling and 5xx are retried for `patience` seconds, or for that of the connection if it is
    less. A missing answer is retried only a few times, because a wrong endpoint should be reported
    at once.

    Raises:
        ClientError: The service refuses the request for now (NOT_NOW).
        KeyhopError: The service refuses the request (see `explained`).
    """
    ends_at = connection.clock() + min(patience, connection.patience)

    def is_enough(error: BaseException, attempts: int) -> bool:
        is_answered = isinstance(error, ClientError)
        return connection.clock() >= ends_at or (
            not is_answered and attempts >= FIRST_CONTACT_ATTEMPTS
        )

    try:
        return repeat(
            lambda: send(connection.client, operation, parameters),
            is_transient,
            first=0.1,
            longest=2.0,
            is_enough=is_enough,
        )
    except (BotoCoreError, ClientError) as error:
        if error_code(error) in NOT_NOW:
            raise
        raise explained(error, connection.endpoint, table) from error


def update(connection: Connection, table: str, **changes: Any) -> None:
    """Send UpdateTable, unless it is refused for the moment (NOT_NOW): look at the table again."""
    try:
        request(connection, table, "update_table", **changes)
    except ClientError as error:
        if error_code(error) not in NOT_NOW:
            raise


def table_names(client: Any) -> Iterator[str]:
    """Yield the names of all tables, or raise ClientError or BotoCoreError."""
    page: dict[str, Any] = {}
    while True:
        after = page.get("LastEvaluatedTableName")
        page = send(client, "list_tables", {"ExclusiveStartTableName": after} if after else {})
        yield from page["TableNames"]
        if "LastEvaluatedTableName" not in page:
            return
