"""What the actions of `keyhop shards` work on: a table, its metadata, a key."""

import base64
import binascii
from typing import Any, Literal

from keyhop.cli.options import Options
from keyhop.cli.session import Stop, connection_of
from keyhop.cli.shards_view import escaped, shown
from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.tables import look_up
from keyhop.dynamodb.values import TypedValue
from keyhop.errors import CannotStart
from keyhop.sharding.io.items import Schema, typed
from keyhop.sharding.io.validation import schema_of
from keyhop.sharding.key.names import MOST_SHARDS
from keyhop.sharding.key.placement import Placement
from keyhop.sharding.key.policy import Policy, Shrinking
from keyhop.sharding.key.shards import Shards, from_item
from keyhop.sharding.logical_keys import check_is_metadata
from keyhop.sharding.manage import KeyShards, list_keys
from keyhop.sharding.store.clock import Clock, SystemClock
from keyhop.sharding.store.metadata import TOTAL_KEY
from keyhop.sharding.store.traffic import traffic_of
from keyhop.sharding.table import ShardedTable

LEAST_WAIT_SECONDS = 0.05


class ShardsCommand:
    """The table of one command, with its client and its metadata."""

    clock: Clock = SystemClock()

    def __init__(self, options: Options, stop: Stop) -> None:
        self.options = options
        self.stop = stop
        connection = connection_of(options)
        self.client = connection.client
        self.endpoint = connection.endpoint
        table = look_up(connection, options.table)
        separator = getattr(options, "separator", "_")
        self.schema: Schema = schema_of(table.space, options.table, separator)
        check_is_metadata(connection, options.metadata, table.space)

    def opened(self, placement: Placement, separator: str) -> ShardedTable:
        """The library's table, as all its users have agreed upon."""
        kind: Literal["random", "calculated"] = "calculated" if placement.calculated else "random"
        return ShardedTable(
            self.options.table,
            metadata=self.options.metadata,
            placement=kind,
            hash=placement.hash,
            append_only=placement.append_only,
            separator=separator,
            policy=Policy(most=MOST_SHARDS),  # what a person asks for is not the policy's to refuse
            endpoint=self.endpoint,
            client=self.client,
            clock=self.clock,
        )

    def to_look(self) -> ShardedTable:
        """The library's table, for the metadata of all keys only."""
        return self.opened(Placement(True), self.schema.names.separator)

    def key(self) -> dict[str, Any]:
        """KEY, typed; raises CannotStart."""
        text, type_ = self.options.key, self.schema.partition.type
        content: bytes = text.encode(errors="surrogateescape")
        if self.options.base64:
            try:
                content = base64.b64decode(content, validate=True)
            except binascii.Error as error:
                raise CannotStart(f"KEY {escaped(text)} is not base64.") from error
        elif type_ == "B":
            raise CannotStart("The partition key is binary: give KEY in base64, with --base64.")
        try:
            key = typed(content if type_ == "B" else content.decode())
        except UnicodeDecodeError as error:
            raise CannotStart("KEY is not UTF-8, as a string partition key must be.") from error
        self.schema.names.physical(key, 1)
        if content == TOTAL_KEY.encode():
            raise CannotStart(f"{TOTAL_KEY} is no key of the table: it counts the shards of all.")
        return key

    def find(self, key: TypedValue) -> KeyShards | None:
        """What the metadata says of a key, strongly consistent; None if there is nothing."""
        requests = self.to_look().requests
        where = {self.schema.partition.name: key}
        item = requests.read_metadata(TableName=self.options.metadata, Key=where).get("Item")
        if item is None:
            return None
        now = self.clock.time()
        return KeyShards.judged(key, from_item(item), traffic_of(item), Shrinking(), now)

    def get(self, key: TypedValue) -> KeyShards:
        """The same; raises CannotStart if there is nothing."""
        one = self.find(key)
        if one is not None:
            return one
        hint = ""
        parsed = self.schema.names.parsed(key)
        if parsed is not None and self.find(parsed[0]) is not None:
            hint = f" It is shard {parsed[1]} of {shown(parsed[0])}: give that, the logical key."
        raise CannotStart(
            f"{escaped(self.options.metadata)} has no shard metadata of {shown(key)}: nothing was "
            f"written to it through the library.{hint}"
        )

    def agreed(self, shards: Shards | None) -> ShardedTable:
        """The library's table as the key's writers have it, or else those of another key.

        Raises CannotStart if nobody has agreed upon anything, and the flags do not tell either.
        """
        text = shards.placement if shards is not None else None
        if text is None:
            others = (one.shards.placement for one in list_keys(self.to_look()))
            text = next((other for other in others if other is not None), None)
        if text is not None:
            try:
                return self.opened(*Placement.parse(text))
            except ValueError as error:
                raise CannotStart(
                    f"The metadata has the placement {escaped(text)!r}, which this version does "
                    "not know."
                ) from error
        options = self.options
        if options.placement is None:
            raise CannotStart(
                "The metadata does not say yet how writers choose shards: give --placement, and "
                "--hash, --append-only and --separator if writers have them."
            )
        kind = options.placement == "calculated"
        return self.opened(
            Placement(kind, options.hash, options.append_only), self.schema.names.separator
        )

    def wait(self, seconds: float) -> None:
        """Wait; raises Stopped if the person does not want to."""
        if self.stop.event.wait(max(LEAST_WAIT_SECONDS, seconds)):
            raise Stopped
