"""Throttles and failures are retried and counted, until the command gives up."""

import itertools
import json
import math
import threading
import time
from collections import Counter
from pathlib import Path
from unittest.mock import Mock

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError
from keyhop.dynamodb.client import Connection, connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.rate_limit import SLOWEST, Budget
from keyhop.dynamodb.requester import Requester
from keyhop.dynamodb.tables import look_up, table_names
from keyhop.errors import GaveUp
from keyhop.jobs.journal import Checkpoint
from keyhop.jobs.pages import TablePages
from keyhop.jobs.worker import Slice
from keyhop.scan.reader import PageReader

from testing.databases import Database, keyhop, resuming
from testing.marks import prove
from testing.partitions import ALL_REASONS
from testing.servers import local_client
from testing.simulation.service import failure
from testing.standin.server import Hangup, StandIn

SIZES = [1, 3, 10, 1, 7, 1, 1, 30] * 10


def throttle(reason: str | None, code: str = "ThrottlingException") -> ClientError:
    field = "throttlingReasons" if code == "ThrottlingException" else "ThrottlingReasons"
    more = {field: [{"reason": reason, "resource": "arn:x"}]} if reason else {}
    return failure(code, "slow down", **more)


@pytest.mark.parametrize("reason", [*ALL_REASONS[:3], *map(prove, ALL_REASONS[3:])])
def test_throttles_of_every_reason_are_retried_and_counted(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path, reason: str
) -> None:
    expected = strict.collections(table_name, SIZES[:16], filling=3_000)
    codes = itertools.cycle(
        ["ThrottlingException", "ProvisionedThroughputExceededException", "RequestLimitExceeded"]
    )
    scans = stand_in.at("Scan", lambda scan: None if scan % 4 else throttle(reason, next(codes)))
    status, report = strict.report(table_name, tmp_path, "--segments", "3")
    assert status == 0
    assert sorted(key["pk"]["S"] for key in report["out"]) == sorted(expected)
    assert report["throttles"] == {reason: len(scans) // 4}
    assert len(scans) >= 3 * 4


def test_throttles_are_parsed_by_boto3(dynamodb: Database, table_name: str) -> None:
    """The test injects raw responses below boto3's client."""
    expected = dynamodb.collections(table_name, [2] * 40, filling=3_000)
    endpoint = Endpoint(url=dynamodb.url)
    client = local_client(dynamodb.url)
    body = {
        "__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
        "message": "slow down",
        "ThrottlingReasons": [
            {"reason": "TableReadKeyRangeThroughputExceeded", "resource": "arn:x"},
            {"reason": "TableReadAccountLimitExceeded", "resource": "arn:x"},
        ],
    }
    count = itertools.count(1)

    def inject(request, **_):
        if next(count) % 5:
            return None
        response = AWSResponse(request.url, 400, {}, None)
        response._content = json.dumps(body).encode()
        return response

    client.meta.events.register("before-send.dynamodb.Scan", inject)
    connection = Connection(client, endpoint)
    reader = PageReader(connection, look_up(connection, table_name).source(), Budget())
    names = Counter()

    def write(segment, keys):
        names.update(key["pk"]["S"] for key in keys)
        return len(keys)

    pages = TablePages(reader, hop=True, total=4)
    slice_ = Slice(pages, iter(range(4)), Checkpoint(), write)
    slice_.work(4, math.inf)
    assert (slice_.error, slice_.ended) == (None, 4)
    assert names == Counter(expected)
    assert set(reader.usage.throttles) == {
        "TableReadKeyRangeThroughputExceeded",
        "TableReadAccountLimitExceeded",
    }


def test_a_throttle_without_a_reason(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    strict.collections(table_name, [1] * 5)
    stand_in.at("Scan", lambda number: throttle(None) if number == 1 else None)
    status, report = strict.report(table_name, tmp_path)
    assert (status, report["throttles"]) == (0, {"unknown": 1})


def test_server_errors_and_broken_connections_are_retried(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    expected = strict.collections(table_name, SIZES, filling=3_000)
    kinds = itertools.cycle(
        [
            failure("InternalServerError", "oops", 500),
            Hangup(),
            failure("ServiceUnavailable", "", 503),
        ]
    )
    stand_in.at("Scan", lambda number: None if number % 6 else next(kinds))
    status, report = strict.report(table_name, tmp_path, "--segments", "5")
    assert status == 0
    assert sorted(key["pk"]["S"] for key in report["out"]) == sorted(expected)
    assert report["retries"] >= 3
    assert report["throttles"] == {}


def test_other_errors_are_not_retried(strict: Database, stand_in: StandIn, table_name: str) -> None:
    strict.collections(table_name, SIZES, filling=3_000)
    message = "User: me is not authorized to perform: dynamodb:Scan on resource: arn:aws:x/Orders"
    denied = failure("AccessDeniedException", message)
    scans = stand_in.at("Scan", lambda number: denied if number >= 10 else None)
    result = strict.keys(table_name, "--segments", "1")
    assert result.status == 2
    assert "allow dynamodb:Scan on arn:aws:x/Orders" in result.err
    assert len(scans) == 10


def test_a_run_that_gave_up_can_be_resumed(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    expected = strict.collections(table_name, SIZES, filling=3_000)
    slow_down = throttle("TableReadProvisionedThroughputExceeded")
    stand_in.at("Scan", lambda number: slow_down if number > 30 else None)
    out = ("--output", str(tmp_path / "out"), "--segments", "4")
    result = strict.keys(table_name, *out, "--give-up-after", "0.3")
    assert result.status == 2
    assert "Nothing has succeeded for 0.3 seconds" in result.err
    assert f"Continue with --resume {tmp_path}/out." in result.err
    stand_in.heal()
    assert strict.keys(table_name, *resuming(*out)).status == 0
    parts = (tmp_path / "out" / "parts").iterdir()
    names = [json.loads(line)["pk"]["S"] for part in parts for line in part.open()]
    assert sorted(names) == sorted(expected)


def test_patience_starts_with_the_first_failure_after_a_success() -> None:
    """A pause between requests, such as a wait for the rate, is not a failure."""
    service = TimedService()
    requester = Requester(service, "Orders", clock=service.clock, pause=lambda seconds: None)
    service.answers = [(0, {}), (10_000, THROTTLED), (10_299, THROTTLED), (10_300, {})]
    requester.call("scan")
    service.now = 10_000
    requester.call("scan")
    service.now = 20_000
    service.answers = [(moment, THROTTLED) for moment in (20_000, 20_299, 20_300, 20_301)]
    with pytest.raises(GaveUp):
        requester.call("scan")
    assert len(service.answers) == 1


THROTTLED = ClientError({"Error": {"Code": "ThrottlingException"}}, "Scan")


class TimedService:
    """A service with a clock, which gives each answer at a fixed time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.answers: list[tuple[float, dict | Exception]] = []

    def clock(self) -> float:
        return self.now

    def call(self, operation, **parameters):
        self.now, answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_the_time_of_a_hanging_request_counts_against_the_patience() -> None:
    service = TimedService()
    service.answers = [(21, ReadTimeoutError(endpoint_url="http://x"))] * 2
    requester = Requester(service, "Orders", clock=service.clock, patience=20)
    with pytest.raises(GaveUp):
        requester.call("scan")
    assert len(service.answers) == 1


def test_no_wait_is_longer_than_the_remaining_patience() -> None:
    now = 0.0

    class Throttling:
        def call(self, operation, **parameters):
            raise THROTTLED

    def pause(seconds: float) -> None:
        nonlocal now
        now += seconds

    for _ in range(20):
        began = now
        requester = Requester(Throttling(), "T", clock=lambda: now, patience=20, pause=pause)
        with pytest.raises(GaveUp):
            requester.call("scan")
        assert now - began == pytest.approx(20)


@pytest.mark.prove
@pytest.mark.parametrize("command", [["keys"], ["each", "--delete", "--item", "sk=a", "--yes"]])
@pytest.mark.parametrize("requests", [5, 0])
def test_a_command_gives_up_on_a_service_that_hangs(
    strict: Database, stand_in: StandIn, table_name: str, command: list[str], requests: int
) -> None:
    """Without the option, a request hangs for 30 seconds and is repeated."""
    _ends_soon(strict, stand_in, table_name, command, requests)


@pytest.mark.prove
@pytest.mark.parametrize("command", [["report"], ["index", "build", "--yes"]])
@pytest.mark.parametrize("requests", [0, 5])
def test_a_report_and_a_build_give_up_too(
    strict: Database, stand_in: StandIn, table_name: str, command: list[str], requests: int
) -> None:
    _ends_soon(strict, stand_in, table_name, command, requests)


def _ends_soon(
    strict: Database, stand_in: StandIn, table: str, command: list[str], requests: int
) -> None:
    """Assert that the command ends when all but the first requests hang."""
    strict.collections(table, [2] * 600, filling=500)
    count, is_over = itertools.count(1), threading.Event()

    def fault(operation: str, request) -> None:
        if next(count) > requests:
            is_over.wait()
            raise Hangup

    stand_in.fault = fault
    began = time.monotonic()
    where = ("--endpoint-url", strict.url, "--give-up-after", "1")
    try:
        result = keyhop(*command, table, *where)
    finally:
        is_over.set()
    assert result.status == 2
    assert time.monotonic() - began < 20


def test_a_failed_first_connection_is_reported_at_once() -> None:
    client = Mock()
    client.call.side_effect = EndpointConnectionError(endpoint_url="http://127.0.0.1:1")
    with pytest.raises(Exception, match="Nothing answers at http"):
        look_up(Connection(client, Endpoint(url="http://127.0.0.1:1")), "Orders")
    assert client.call.call_count == 3


def test_throttling_slows_the_workers_down(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    """The run reads at a reduced rate after an early throttle, besides the requests in flight.

    The rate is that of the whole time since the throttle, so that late scans do not matter.
    """
    threads = 4
    strict.collections(table_name, [1] * 70, filling=4_000)
    read: list[tuple[float, float]] = []

    def fault(operation: str, request) -> None:
        if operation == "Scan":
            read.append((time.monotonic(), stand_in.units))
            if len(read) == 5:
                raise throttle("TableReadKeyRangeThroughputExceeded")

    stand_in.fault = fault
    status, _ = strict.report(table_name, tmp_path, "--segments", f"{threads}")
    assert status == 0
    (throttled, before), (ended, after) = read[4], read[-1]
    assert after - before <= 4 * SLOWEST * (ended - throttled) + threads


@pytest.mark.prove
def test_a_segment_that_is_always_throttled_does_not_block_the_others(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    """The slice ends in time, so that the keys of the other segments are committed."""
    expected = strict.collections(table_name, SIZES, filling=500)

    def fault(operation: str, request) -> None:
        if operation == "Scan" and request.get("Segment") == 0:
            raise throttle("TableReadKeyRangeThroughputExceeded")

    stand_in.fault = fault
    out = ("--output", str(tmp_path / "out"), "--segments", "16")
    result = strict.keys(table_name, *out, "--give-up-after", "2")
    assert result.status == 2
    manifest = json.loads((tmp_path / "out" / "progress.json").read_bytes())
    assert manifest["segments"]["ended"] == 15
    assert manifest["throttles"]["TableReadKeyRangeThroughputExceeded"] == manifest["retries"] > 3
    stand_in.heal()
    assert strict.keys(table_name, *resuming(*out)).status == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    assert manifest["keys"] == len(expected)


def test_throttles_are_reported_even_if_no_request_succeeds(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    strict.collections(table_name, SIZES)
    stand_in.at("Scan", lambda number: throttle("TableReadAccountLimitExceeded"))
    out = ("--output", str(tmp_path / "out"), "--segments", "4", "--give-up-after", "0.4")
    status, report = strict.report(table_name, tmp_path, *out)
    assert status == 2
    assert report["throttles"]["TableReadAccountLimitExceeded"] >= 4


@pytest.mark.prove
def test_a_throttled_first_request_is_retried(
    strict: Database, stand_in: StandIn, table_name: str
) -> None:
    expected = strict.collections(table_name, [1] * 5)
    contacts = stand_in.at("DescribeTable", lambda number: throttle(None) if number <= 5 else None)
    result = strict.keys(table_name)
    assert sorted(key["pk"]["S"] for key in result.keys) == sorted(expected)
    assert len(contacts) == 6


def test_the_names_of_all_tables_are_listed_by_both_clients(
    dynamodb: Database, table_name: str
) -> None:
    dynamodb.create(table_name)
    ours = connect(Endpoint(url=dynamodb.url)).client
    for client in (dynamodb.client, ours):
        assert table_name in set(table_names(client))
