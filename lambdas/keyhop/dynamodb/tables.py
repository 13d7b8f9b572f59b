"""Tables as DescribeTable tells of them, and what of a table a job reads."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import Connection, explained, is_transient
from keyhop.dynamodb.requester import error_code, send
from keyhop.dynamodb.schema import KeySpace, index_keyspace, indexes_of, table_keyspace
from keyhop.dynamodb.values import Key
from keyhop.errors import CannotStart, IndexNotFound
from keyhop.retries import DEFAULT_PATIENCE_SECONDS, repeat

READABLE = {"ACTIVE", "UPDATING"}
FIRST_CONTACT_ATTEMPTS = 3
CONTROL_PATIENCE_SECONDS = 30.0
BUSY = "ResourceInUseException"


@dataclass(frozen=True, slots=True)
class Source:
    """What a job reads: a table or one of its indexes, and what of its items.

    identity: the table's ARN and creation; another table under the same name has another identity.
    item_count, size_bytes: as the service reports them, up to six hours old, 0 on a new table.
    attributes: what pages bring of each item beside its partition key. only: attributes that a row
    must have to count. pairs: each page shows of each collection two items at least, if it has
    them: what is cut off before that comes again with the next page.
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
    pairs: bool = False

    @property
    def mean_item_bytes(self) -> float | None:
        """Mean size of an item; None if the service reports no items."""
        return self.size_bytes / self.item_count if self.item_count and self.size_bytes else None

    @property
    def title(self) -> str:
        """For messages: the table, and the index if there is one."""
        return f"{self.name}/{self.index}" if self.index else self.name


@dataclass(frozen=True, slots=True)
class Table:
    """A table, by DescribeTable's `Table`. name: as requests name it, a name or an ARN."""

    name: str
    description: Mapping[str, Any]

    @property
    def bare_name(self) -> str:
        """Its name, also where requests give its ARN."""
        return str(self.description["TableName"])

    @property
    def status(self) -> str:
        """TableStatus."""
        return str(self.description.get("TableStatus", "ACTIVE"))

    @property
    def arn(self) -> str:
        """Its ARN."""
        return str(self.description.get("TableArn", ""))

    @property
    def identity(self) -> str:
        """Tells it from another table that had or will have its name."""
        created = self.description.get("CreationDateTime")
        own = self.description.get("TableId") or str(created and created.timestamp())
        return f"{self.arn}#{own}"

    @property
    def space(self) -> KeySpace:
        """Its keys."""
        return table_keyspace(self.description)

    @property
    def stream(self) -> str | None:
        """The ARN of its stream, if that is on."""
        return self.description.get("LatestStreamArn") if self._stream_is_on else None

    @property
    def stream_view(self) -> str | None:
        """What the stream's records hold, if it is on."""
        return self._stream.get("StreamViewType") if self._stream_is_on else None

    @property
    def throughput(self) -> dict[str, int] | None:
        """Capacity units, by the names of requests; None for a table on demand."""
        billing = self.description.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED")
        if billing == "PAY_PER_REQUEST":
            return None
        given = self.description.get("ProvisionedThroughput", {})
        names = ("ReadCapacityUnits", "WriteCapacityUnits")
        return {name: max(1, given.get(name, 1)) for name in names}

    def index(self, name: str) -> Mapping[str, Any] | None:
        """The description of one of its indexes; None if there is none of that name."""
        return next((e for e in indexes_of(self.description) if e["IndexName"] == name), None)

    @property
    def global_indexes(self) -> tuple[str, ...]:
        """Names of its global indexes."""
        entries = self.description.get("GlobalSecondaryIndexes", ())
        return tuple(entry["IndexName"] for entry in entries)

    def source(self, index: str | None = None) -> Source:
        """The table, or one of its indexes, to be read; raises IndexNotFound or CannotStart."""
        if self.status not in READABLE:
            raise CannotStart(
                f"Table {self.bare_name!r} is {self.status}: wait until it is ACTIVE."
            )
        source = Source(
            name=self.name,
            index=None,
            arn=self.arn,
            identity=self.identity,
            space=self.space,
            item_count=int(self.description.get("ItemCount", 0)),
            size_bytes=int(self.description.get("TableSizeBytes", 0)),
        )
        return source if index is None else self._index_source(source, index)

    def _index_source(self, source: Source, index: str) -> Source:
        entry = self.index(index)
        if entry is None:
            known = ", ".join(entry["IndexName"] for entry in indexes_of(self.description))
            raise IndexNotFound(
                f"Table {self.bare_name!r} has no index {index!r}: "
                + (f"its indexes are {known}." if known else "it has none.")
            )
        if entry.get("Backfilling") or entry.get("IndexStatus", "ACTIVE") not in READABLE:
            raise CannotStart(f"Index {index!r} is being built: wait until it is ACTIVE.")
        return replace(
            source,
            index=index,
            space=index_keyspace(self.description, entry),
            item_count=int(entry.get("ItemCount", 0)),
            size_bytes=int(entry.get("IndexSizeBytes", 0)),
        )

    @property
    def _stream(self) -> Mapping[str, Any]:
        return self.description.get("StreamSpecification") or {}

    @property
    def _stream_is_on(self) -> bool:
        return bool(self._stream.get("StreamEnabled"))


def look_up(
    connection: Connection, table: str, patience: float = DEFAULT_PATIENCE_SECONDS
) -> Table:
    """Describe a table.

    This is the first contact, so without any answer it is tried a few times only: a wrong endpoint
    should be told at once. Throttling and 5xx are answers: they are borne for `patience` seconds.
    Raises TableNotFound, NoCredentials, NotPermitted, Unreachable and others.
    """
    return Table(table, request(connection, table, "describe_table", patience)["Table"])


def request(
    connection: Connection,
    table: str,
    operation: str,
    patience: float = CONTROL_PATIENCE_SECONDS,
    **parameters: Any,
) -> dict[str, Any]:
    """One request about a table as a whole, repeated while that can help.

    Raises what `explained` makes of a refusal; but that the table is busy (BUSY) as it is.
    """
    clock = connection.clock
    began = clock()

    def is_enough(error: BaseException, attempts: int) -> bool:
        if isinstance(error, ClientError):
            return clock() - began >= patience
        return attempts >= FIRST_CONTACT_ATTEMPTS

    try:
        return repeat(
            lambda: send(connection.client, operation, {"TableName": table, **parameters}),
            is_transient,
            first=0.1,
            longest=2.0,
            is_enough=is_enough,
        )
    except (BotoCoreError, ClientError) as error:
        if error_code(error) == BUSY:
            raise
        raise explained(error, connection.endpoint, table) from error
