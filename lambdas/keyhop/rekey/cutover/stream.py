"""Requests about the stream of one table: its shards, and the records in them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.refusals import error_code
from keyhop.dynamodb.requester import ItemCalls
from keyhop.dynamodb.schema import KeySpace, keyspace_of
from keyhop.errors import AwsRefused, CannotStart
from keyhop.rekey.cutover.drain import Shard

TRIMMED = "TrimmedDataAccessException"
TOO_MANY_READERS = "LimitExceededException"
"""DynamoDB Streams throttles with this error if more than two processes read a shard at once."""


class StreamCalls(ItemCalls):
    """Requests about a table's items and its stream, by the client `dynamodbstreams` of boto3."""

    def __init__(self, connection: Connection, table: str, streams: Any, **more: Any) -> None:
        super().__init__(connection, table, **more)
        self._streams = replace(
            self._requester,
            client=streams,
            service="DynamoDB Streams",
            throttling_codes=frozenset({TOO_MANY_READERS}),
        )
        self._described: dict[str, Any] = {}

    @property
    def stream(self) -> str:
        """Return the ARN of the stream, or raise CannotStart if the table has none."""
        arn = self._table_described.get("LatestStreamArn")
        if not arn:
            raise CannotStart(f"Table {self._table!r} has no stream: start turns it on.")
        return str(arn)

    @property
    def _space(self) -> KeySpace:
        return keyspace_of(self._table_described)

    @property
    def _table_described(self) -> Mapping[str, Any]:
        if not self._described:
            self._described = self._requester.call("describe_table", TableName=self._table)["Table"]
        return self._described

    def shards(self) -> list[Shard]:
        """Return all shards that the stream still has."""
        shards: list[Shard] = []
        start: dict[str, Any] = {}
        while True:
            description = self._ask("describe_stream", StreamArn=self.stream, **start)[
                "StreamDescription"
            ]
            shards += map(Shard.of, description["Shards"])
            if "LastEvaluatedShardId" not in description:
                return shards
            start = {"ExclusiveStartShardId": description["LastEvaluatedShardId"]}

    def _records(self, shard: str, place: str) -> Any:
        try:
            return self._ask("get_records", ShardIterator=place)
        except AwsRefused as error:
            if error_code(error.__cause__ or error) != TRIMMED:
                raise
            # The record of the iterator is gone; DynamoDB Local says so in an empty shard as well.
            place = self._iterator(shard, "TRIM_HORIZON")
            return self._ask("get_records", ShardIterator=place)

    def _iterator(self, shard: str, kind: str) -> str:
        answer = self._ask(
            "get_shard_iterator", StreamArn=self.stream, ShardId=shard, ShardIteratorType=kind
        )
        return str(answer["ShardIterator"])

    def _ask(self, operation: str, **parameters: Any) -> Any:
        return self._streams.call(operation, **parameters)
