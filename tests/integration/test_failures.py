"""Throttling and failures: waited out, counted, and given up in the end."""

import itertools
import json
import math
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
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
def test_every_reason_is_waited_out_and_counted(
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


def test_throttles_reach_us_as_they_do_live(dynamodb: Database, table_name: str) -> None:
    """On DynamoDB Local, injected below boto3's client, through that client's own parsing."""
    from botocore.awsrequest import AWSResponse

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
    found = Counter()

    class Sink:
        def write(self, segment, keys):
            found.update(key["pk"]["S"] for key in keys)
            return len(keys)

    pages = TablePages(reader, hop=True, total=4)
    slice_ = Slice(pages, iter(range(4)), Checkpoint(), Sink().write)
    slice_.work(4, math.inf)
    assert (slice_.error, slice_.ended) == (None, 4)
    assert found == Counter(expected)
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


def test_server_errors_and_broken_connections_are_waited_out(
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


def test_nothing_else_is_retried(strict: Database, stand_in: StandIn, table_name: str) -> None:
    strict.collections(table_name, SIZES, filling=3_000)
    why = "User: me is not authorized to perform: dynamodb:Scan on resource: arn:aws:x/Orders"
    denied = failure("AccessDeniedException", why)
    scans = stand_in.at("Scan", lambda number: denied if number >= 10 else None)
    result = strict.keys(table_name, "--segments", "1")
    assert result.status == 2
    assert "allow dynamodb:Scan on arn:aws:x/Orders" in result.err
    assert len(scans) == 10


def test_patience_ends_and_the_run_can_be_resumed(
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
    found = [json.loads(line)["pk"]["S"] for part in parts for line in part.open()]
    assert sorted(found) == sorted(expected)


def test_waiting_for_the_rate_is_not_taken_for_failure() -> None:
    """Patience runs from the first failed request after a success, not from the last success."""
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
    """A service that gives each answer at a fixed time of a clock that it has."""

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


def test_the_time_of_a_request_that_hangs_is_part_of_the_patience() -> None:
    service = TimedService()
    service.answers = [(21, ReadTimeoutError(endpoint_url="http://x"))] * 2
    requester = Requester(service, "Orders", clock=service.clock, patience=20)
    with pytest.raises(GaveUp):
        requester.call("scan")
    assert len(service.answers) == 1


def test_no_wait_is_longer_than_the_patience_that_is_left() -> None:
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


@pytest.mark.parametrize("command", [["keys"], ["each", "--delete", "--item", "sk=a", "--yes"]])
@pytest.mark.parametrize("requests", [5, prove(0)])
def test_a_command_gives_up_on_a_service_that_hangs(
    strict: Database, stand_in: StandIn, table_name: str, command: list[str], requests: int
) -> None:
    """A request hangs for 30 seconds otherwise, and is repeated."""
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


def test_a_first_contact_that_fails_is_told_at_once() -> None:
    class Dead:
        calls = 0

        def call(self, operation, **parameters):
            from botocore.exceptions import EndpointConnectionError

            self.calls += 1
            raise EndpointConnectionError(endpoint_url="http://127.0.0.1:1")

    dead = Dead()
    with pytest.raises(Exception, match="Nothing answers at http"):
        look_up(Connection(dead, Endpoint(url="http://127.0.0.1:1")), "Orders")  # type: ignore[arg-type]
    assert dead.calls == 3


def test_throttling_slows_the_workers_down(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    """One throttle, early: from then on the run reads at what is left of its rate, beside what was
    under way by then. However late the scans come: it is of all time since the throttle.
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


def test_a_segment_that_is_always_throttled_does_not_hold_the_others_up(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    """A slice ends in time, so what the other segments brought is committed, and they go on."""
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


def test_failures_alone_are_reported_too(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    strict.collections(table_name, SIZES)
    stand_in.at("Scan", lambda number: throttle("TableReadAccountLimitExceeded"))
    out = ("--output", str(tmp_path / "out"), "--segments", "4", "--give-up-after", "0.4")
    status, report = strict.report(table_name, tmp_path, *out)
    assert status == 2
    assert report["throttles"]["TableReadAccountLimitExceeded"] >= 4


def test_a_throttled_first_contact_is_waited_out(
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
