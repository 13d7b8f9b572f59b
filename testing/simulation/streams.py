"""The streams of tables in memory, as boto3's client `dynamodbstreams` tells them."""

from typing import Any

from testing.simulation.schedule import Schedule
from testing.simulation.service import Table
from testing.simulation.values import NotSimulated, copy_of

ANSWER_SECONDS = 0.01


class Streams:
    """tables: by name, which is their streams' ARN as well."""

    def __init__(self, schedule: Schedule, tables: dict[str, Table]) -> None:
        self._schedule = schedule
        self._tables = tables

    def describe_stream(self, **request: Any) -> dict[str, Any]:
        self._schedule.sleep(ANSWER_SECONDS)
        table = request["StreamArn"]
        open_ = {"StartingSequenceNumber": "0"}
        names = [f"{table} {number}" for number in range(len(self._tables[table].shards))]
        shards = [{"ShardId": name, "SequenceNumberRange": open_} for name in names]
        return {"StreamDescription": {"Shards": shards}}

    def get_shard_iterator(self, **request: Any) -> dict[str, Any]:
        self._schedule.sleep(ANSWER_SECONDS)
        name, number = request["ShardId"].rsplit(" ", 1)
        shard = self._tables[name].shards[int(number)]
        places = {"LATEST": len(shard), "TRIM_HORIZON": 0}
        if request["ShardIteratorType"] not in places:
            raise NotSimulated(request["ShardIteratorType"])
        return {"ShardIterator": f"{name} {number} {places[request['ShardIteratorType']]}"}

    def get_records(self, **request: Any) -> dict[str, Any]:
        self._schedule.sleep(ANSWER_SECONDS)
        name, number, at = request["ShardIterator"].rsplit(" ", 2)
        most = request.get("Limit", 1_000)
        found = records(self._tables[name], name, int(number), int(at), most)
        return {
            "Records": found,
            "NextShardIterator": f"{name} {number} {int(at) + len(found)}",
        }


def records(table: Table, name: str, shard: int, at: int, most: int) -> list[dict[str, Any]]:
    """Of one shard from a place on, also as a function is handed them."""
    found = []
    for number, (moment, old, new) in enumerate(table.shards[shard][at : at + most], at + 1):
        images = {"OldImage": old, "NewImage": new}
        there = old or new or {}
        kinds = {(True, False): "INSERT", (False, True): "REMOVE", (False, False): "MODIFY"}
        found.append(
            {
                "eventID": f"{name} {shard} {number}",
                "eventName": kinds[old is None, new is None],
                "eventSource": "aws:dynamodb",
                "eventSourceARN": name,
                "dynamodb": {
                    "ApproximateCreationDateTime": moment,
                    "Keys": copy_of(table.key_of(there)),
                    "SequenceNumber": str(number).zfill(21),
                    **{kind: copy_of(image) for kind, image in images.items() if image is not None},
                },
            }
        )
    return found
