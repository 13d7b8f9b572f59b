"""The benchmark's stub serves, refuses, throttles and charges reads of a table as the stand-in."""

import itertools
import shutil
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError
from keyhop.dynamodb.throttling import is_throttling, reason_names

from bench.command import environment, keyhop, measure
from bench.stub import TABLE, stub
from testing.marks import prove
from testing.servers import local_client
from testing.simulation.service import Service
from testing.simulation.tables import Table, keyed

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the stub waits by epoll"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="the stub is written in C"),
]


def page(answer: Mapping[str, Any]) -> tuple[int, float, bool]:
    """Return the number of items, the units, and whether there is a next page."""
    units = answer["ConsumedCapacity"]["CapacityUnits"]
    return len(answer["Items"]), units, "LastEvaluatedKey" in answer


@pytest.mark.parametrize(
    ("settings", "flags"),
    [
        ({"keys": 777, "items": 3, "bytes": 150}, ("--segments", "1000")),
        prove({"keys": 300, "items": 200, "bytes": 500, "latency": 500}, ("--threads", "64")),
        prove({"keys": 20_000, "items": 1, "bytes": 40}, ()),
        ({"keys": 2_000, "items": 10, "bytes": 1_000}, ("--method", "scan")),
    ],
)
def test_the_command_lists_each_key_once(settings: dict[str, int], flags: tuple[str, ...]) -> None:
    with stub(**settings) as table:
        ended = subprocess.run(
            keyhop(table.url, *flags), env=environment(), stdout=subprocess.PIPE, text=True
        )
    assert ended.returncode == 0
    assert sorted(ended.stdout.split()) == [f"k{n:09}" for n in range(settings["keys"])]
    assert table.served().scans >= 1
    assert table.cpu_seconds > 0


@pytest.mark.parametrize("limit", [1, 9, 40, 500, None])
@pytest.mark.parametrize("item_bytes", [100, 4_096, 300_000])
def test_a_page_has_the_length_and_cost_of_the_simulations(
    item_bytes: int, limit: int | None
) -> None:
    simulation = Service({TABLE: Table(keyed({"pk": "S", "sk": "S"}))})
    padding = {"S": "x" * (item_bytes - len("pk" + "k000000000" + "sk" + "000000" + "d"))}
    for k, i in itertools.product(range(5), range(8)):
        item = {"pk": {"S": f"k{k:09}"}, "sk": {"S": f"{i:06}"}, "d": padding}
        simulation.tables[TABLE].put(item)
    request = {"TableName": TABLE, "ReturnConsumedCapacity": "TOTAL"}
    request |= {} if limit is None else {"Limit": limit}
    with stub(keys=5, items=8, bytes=item_bytes) as table:
        client = local_client(table.url)
        answer = client.scan(**request)
        assert page(answer) == page(simulation.answer("scan", request))
        items = len(answer["Items"])
        while "LastEvaluatedKey" in answer:
            answer = client.scan(**request, ExclusiveStartKey=answer["LastEvaluatedKey"])
            items += len(answer["Items"])
        assert items == 5 * 8


def test_a_start_key_of_another_segment_is_refused() -> None:
    with stub(keys=10, items=2, bytes=100) as table, pytest.raises(ClientError) as refused:
        local_client(table.url).scan(
            TableName=TABLE,
            Segment=1,
            TotalSegments=2,
            ExclusiveStartKey={"pk": {"S": "k000000000"}, "sk": {"S": "000000"}},
        )
    assert refused.value.response["Error"]["Code"] == "ValidationException"


def test_requests_beyond_the_rate_of_the_table_are_throttled() -> None:
    with stub(keys=100, items=10, bytes=1_000, rate=1) as table:
        client = local_client(table.url)
        client.scan(TableName=TABLE)
        with pytest.raises(ClientError) as refused:
            client.scan(TableName=TABLE)
    assert is_throttling(refused.value.response)
    assert reason_names(refused.value.response) == ("TableReadProvisionedThroughputExceeded",)
    assert (table.served().scans, table.served().throttled) == (1, 1)


def test_a_measurement_contains_requests_and_memory() -> None:
    measured = measure(60.0, keys=200, items=500, bytes=400, latency=1_000)
    assert measured["keys"] == 200
    assert measured["requests"] >= 38, "the minimum number of pages for 40 MB"
    assert measured["requests_per_second"] > 0
    assert measured["megabytes"] > 10
