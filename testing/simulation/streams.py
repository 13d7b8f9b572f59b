"""The streams of tables in memory, with the methods of boto3's client `dynamodbstreams`."""

from collections.abc import Callable
from typing import Any

from testing.simulation.schedule import Schedule
from testing.simulation.service import failure
from testing.simulation.tables import Table
from testing.simulation.values import NotSimulated, copy_of

ANSWER_SECONDS = 0.01


TOO_MANY_READERS = "Too many operations for a given subscriber."
"""The message of a LimitExceededException (service model of DynamoDB Streams, botocore 1.44)."""


class Streams:
    """A client of the streams of tables.

    Attributes:
        tables: The tables by their names, which are also the ARNs of their streams.
        is_crowded: Returns whether the next request of an operation is throttled because too many
            readers use the stream.
    """

    def __init__(self, schedule: Schedule, tables: dict[str, Table]) -> None:
        self._schedule = schedule
        self._tables = tables
        self.is_crowded: Callable[[str], bool] = lambda operation: False

    def _admit(self, operation: str) -> None:
        """Wait for the time of an answer, and raise an error if the request is throttled."""
        self._schedule.sleep(ANSWER_SECONDS)
        if self.is_crowded(operation):
            raise failure("LimitExceededException", TOO_MANY_READERS)

    def describe_stream(self, **request: Any) -> dict[str, Any]:
        self._admit("describe_stream")
        table = request["StreamArn"]
        open_ = {"StartingSequenceNumber": "0"}
        names = [f"{table} {number}" for number in range(len(self._tables[table].shards))]
        shards = [{"ShardId": name, "SequenceNumberRange": open_} for name in names]
        return {"StreamDescription": {"Shards": shards}}

    def get_shard_iterator(self, **request: Any) -> dict[str, Any]:
        self._admit("get_shard_iterator")
        name, number = request["ShardId"].rsplit(" ", 1)
        shard = self._tables[name].shards[int(number)]
        places = {"LATEST": len(shard), "TRIM_HORIZON": 0}
        if request["ShardIteratorType"] not in places:
            raise NotSimulated(request["ShardIteratorType"])
        return {"ShardIterator": f"{name} {number} {places[request['ShardIteratorType']]}"}

    def get_records(self, **request: Any) -> dict[str, Any]:
        self._admit("get_records")
        name, number, at = request["ShardIterator"].rsplit(" ", 2)
        page = records(self._tables[name], name, int(number), int(at), request.get("Limit", 1_000))
        return {"Records": page, "NextShardIterator": f"{name} {number} {int(at) + len(page)}"}


def records(table: Table, name: str, shard: int, at: int, maximum: int) -> list[dict[str, Any]]:
    """Return the records of a shard from a place on, in the form of a client or a function."""
    kinds = {(True, False): "INSERT", (False, True): "REMOVE", (False, False): "MODIFY"}
    page = []
    for number, (moment, old, new) in enumerate(table.shards[shard][at : at + maximum], at + 1):
        images = {"OldImage": old, "NewImage": new}
        page.append(
            {
                "eventID": f"{name} {shard} {number}",
                "eventName": kinds[old is None, new is None],
                "eventSource": "aws:dynamodb",
                "eventSourceARN": name,
                "dynamodb": {
                    "ApproximateCreationDateTime": moment,
                    "Keys": copy_of(table.base.key_of(old or new or {})),
                    "SequenceNumber": str(number).zfill(21),
                    **{kind: copy_of(image) for kind, image in images.items() if image is not None},
                },
            }
        )
    return page
