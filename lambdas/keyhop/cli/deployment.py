"""Where the record of a key index is: in a deployment's bucket (--stack), or on this machine."""

from functools import partial

from keyhop.cli.options import Options
from keyhop.dynamodb.client import Connection, aws_client
from keyhop.dynamodb.tables import Source, Table
from keyhop.key_index.index import Sentinels, sentinels_of
from keyhop.key_index.provisioned import Scaling
from keyhop.key_index.registry import Registry, bucket_registry, is_alive, local_registry
from keyhop.key_index.trust import Evidence, Trust, choose_source, gather
from keyhop.streams.event_source import Watch


class KeyIndexAccess:
    """What a command knows of key indexes. watch: sees keepers; None where there can be none.
    scaling: sees auto scaling there.

    is_shared: whether the record is that of a deployment, which its state machines use too.
    """

    def __init__(self, options: Options, connection: Connection) -> None:
        self._endpoint = connection.endpoint
        self.watch = Watch.from_here(connection.endpoint)
        client_of = partial(aws_client, "application-autoscaling", connection.endpoint)
        self.scaling = Scaling(client_of if self.watch else None)
        self.is_shared = options.stack is not None
        self._bucket = ""
        if self.is_shared:
            from keyhop.cli.stack import find_stack  # with boto3's transfers to and from S3

            self._bucket = find_stack(options.stack, self._endpoint).bucket
        self.is_alive = partial(is_alive, partial(aws_client, "stepfunctions", connection.endpoint))

    def registry(self, table: Table | Source) -> Registry:
        if not self.is_shared:
            return local_registry(table)
        return bucket_registry(aws_client("s3", self._endpoint), self._bucket, table)

    def decide_trust(self, table: Table, method: str, accepts_stale: bool) -> Trust:
        """Whether the keys are read from the index; see keys/task.py."""
        return choose_source(table, method, accepts_stale, lambda: self.evidence(table))

    def sentinels_of(self, table: Table) -> Sentinels | None:
        """What tells the sentinels of a table; see keys/task.py."""
        return sentinels_of(table, self.registry(table).entry())

    def evidence(self, table: Table) -> Evidence:
        """What can be seen of the table's key index at this moment."""
        return gather(table, self.registry(table).entry(), self.watch)
