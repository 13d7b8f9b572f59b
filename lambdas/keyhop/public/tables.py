"""The table of a public call, and the record of its key index."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import Connection, aws_client, connect, name_table
from keyhop.dynamodb.client import NamedTable as NamedTable
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.tables import Source, Table, look_up, table_names
from keyhop.dynamodb.units import VARIABLE
from keyhop.errors import TableNotFound
from keyhop.key_index.index import Sentinels, sentinels_of
from keyhop.key_index.provisioned import Scaling
from keyhop.key_index.registry import Registry, bucket_registry, is_alive, local_registry
from keyhop.key_index.trust import Evidence, Trust, choose_source, gather
from keyhop.retries import DEFAULT_PATIENCE_SECONDS
from keyhop.scan.in_flight import MOST
from keyhop.streams.event_source import Watch
from keyhop.wording import did_you_mean

CONNECTIONS = MOST
"""The least number of connections to keep open; the first look at a table uses up to eight."""

MOST_NAMES = 1_000
"""The maximum number of tables among which to look for similar names: ten requests."""


@dataclass(frozen=True, slots=True)
class OpenTable:
    """A table that was described, and the connection to it."""

    connection: Connection
    table: Table


def open_table(
    table: Any,
    session: Any = None,
    endpoint_url: str | None = None,
    threads: int = 0,
    patience: float = DEFAULT_PATIENCE_SECONDS,
) -> OpenTable:
    """Describe a table.

    Args:
        table: A name, an ARN or boto3's Table, whose client sends all requests; an OpenTable is
            returned as it is.
        session: A boto3 session; by default the environment is used.
        endpoint_url: The address of the service, such as that of DynamoDB Local.
        threads: The number of connections to keep open.

    Raises:
        KeyhopError: The table does not exist, or cannot be described.
    """
    if isinstance(table, OpenTable):
        return table
    connection, name = name_table(table, session, endpoint_url, max(CONNECTIONS, threads), patience)
    return OpenTable(connection, look_up(connection, name, patience))


def connected(endpoint: Endpoint, threads: int, patience: float) -> Connection:
    """Connect to a place, with connections for so many threads, at the prices of this process."""
    own_prices = os.environ.get(VARIABLE)
    return connect(endpoint, max(CONNECTIONS, threads), own_prices, give_up_after=patience)


@contextmanager
def suggesting(connection: Connection, table: str) -> Iterator[None]:
    """Add similar names of tables to a TableNotFound, if tables may be listed."""
    try:
        yield
    except TableNotFound as error:
        try:
            names = list(islice(table_names(connection.client), MOST_NAMES))
        except (BotoCoreError, ClientError):
            raise error from None
        raise TableNotFound(f"{error}{did_you_mean(table, names)}") from error


class IndexRecord:
    """The record of the key indexes: in the bucket of a deployment, or on this machine.

    Attributes:
        is_shared: Whether the record is that of a deployment, which its state machines use, too.
        watch: Finds keepers; None where there can be none.
        scaling: Changes auto scaling.
        is_alive: Checks whether the holder of a lease is alive.
    """

    def __init__(self, connection: Connection, bucket: str | None = None) -> None:
        self._endpoint = connection.endpoint
        self.watch = Watch.from_here(connection.endpoint)
        client_of = partial(aws_client, "application-autoscaling", connection.endpoint)
        self.scaling = Scaling(client_of if self.watch else None)
        self.is_shared = bucket is not None
        self._bucket = bucket or ""
        self.is_alive = partial(is_alive, partial(aws_client, "stepfunctions", connection.endpoint))

    def registry(self, table: Table | Source) -> Registry:
        """Return the record of one table."""
        if not self.is_shared:
            return local_registry(table)
        return bucket_registry(aws_client("s3", self._endpoint), self._bucket, table)

    def decide_trust(self, table: Table, method: str, accepts_stale: bool) -> Trust:
        """Decide whether the keys are read from the index; see keys/task.py."""
        return choose_source(table, method, accepts_stale, lambda: self.evidence(table))

    def sentinels_of(self, table: Table) -> Sentinels | None:
        """Return what identifies the sentinels of a table; see keys/task.py."""
        return sentinels_of(table, self.registry(table).entry())

    def evidence(self, table: Table) -> Evidence:
        """Return the current state of the table's key index."""
        return gather(table, self.registry(table).entry(), self.watch)


def index_record(connection: Connection, stack: str | None) -> IndexRecord:
    """Return a deployment's record of the key index; without a stack, that of this machine."""
    if stack is None:
        return IndexRecord(connection)
    # Only a call with a stack needs this module.
    from keyhop.public.deployment import BUCKET, find_outputs

    outputs, _ = find_outputs(stack, connection.endpoint)
    return IndexRecord(connection, outputs.get(BUCKET))
