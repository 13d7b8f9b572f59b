"""The live suite's checks of a stream detect a service that behaves differently."""

from typing import Any

import pytest

from tests.live import streams
from tests.live.fixtures import Fixture
from tests.live.report import Report

TABLE = Fixture("kept-on", "kept", streams=True)


class Service:
    """A table with one shard, perhaps with late reads or with two swapped records per round."""

    def __init__(self, late: bool = False, swapped: bool = False) -> None:
        self.late = late
        self.swapped = swapped
        self.items: dict[str, list[dict[str, Any]]] = {}
        self.waiting: list[dict[str, Any]] = []

    def describe_table(self, **_: Any) -> Any:
        return {"Table": {"LatestStreamArn": "arn"}}

    def describe_stream(self, **_: Any) -> Any:
        return {"StreamDescription": {"Shards": [{"ShardId": "one"}]}}

    def get_shard_iterator(self, **_: Any) -> Any:
        return {"ShardIterator": "next"}

    def put_item(self, **parameters: Any) -> None:
        item = parameters["Item"]
        self.items.setdefault(item["pk"]["S"], [item]).append(item)
        self.waiting.append({"dynamodb": {"NewImage": item}})

    def delete_item(self, **parameters: Any) -> None:
        del self.items[parameters["Key"]["pk"]["S"]]

    def get_item(self, **parameters: Any) -> Any:
        return {"Item": self.items[parameters["Key"]["pk"]["S"]][-2 if self.late else -1]}

    def get_records(self, **_: Any) -> Any:
        records, self.waiting = self.waiting, []
        if self.swapped:
            records[:2] = records[1::-1]
        return {"NextShardIterator": "next", "Records": records}


def failed(service: Service) -> list[str]:
    report = Report()
    streams.check_streams(service, service, TABLE, report, pause=0.0)
    assert not service.items
    return [title.partition(" ")[0] for title in report.failed]


def test_a_correct_stream_passes() -> None:
    assert failed(Service()) == []


@pytest.mark.parametrize(
    ("service", "check"),
    [(Service(late=True), "stream-looks"), (Service(swapped=True), "stream-order")],
)
def test_a_wrong_stream_fails(service: Service, check: str) -> None:
    assert failed(service) == [check]
