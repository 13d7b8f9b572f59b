"""Parts of the demo: its reports of faults, and its writes during a build."""

import itertools
from collections import Counter
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from local.cloud import Cloud, Failed
from local.demo import Way, faults_of_index, faults_of_ways, routes_come_and_go, show_each
from testing.databases import Database
from testing.flights import BY_ROUTE, create_table
from testing.simulation.service import failure
from testing.standin.server import StandIn

ROUTES = [f"JFK-{number:02}" for number in range(20)]
LONGEST_SECONDS = 60.0
TOO_LARGE = "Item size has exceeded the maximum allowed size"
VERIFICATION = {"drift": 0, "remaining": 0, "missing": 0, "surplus": 0}
READ = {"keys": 230, "method": "index", "reason": "the key index is trusted"}


def cloud_of(database: Database, folder: Path) -> Cloud:
    """Return a laptop cloud that has only a database, with a table of routes."""
    create_table(database.url, BY_ROUTE)
    items = ({"route": {"S": route}, "departure": {"S": "2013-01-01"}} for route in ROUTES)
    database.fill(BY_ROUTE, items)
    return Cloud("http://127.0.0.1:9", database.url, folder, database.url)


@pytest.fixture
def cloud(strict: Database, tmp_path: Path) -> Cloud:
    return cloud_of(strict, tmp_path)


@pytest.mark.prove
def test_an_unexpected_number_of_puts_and_deletions_is_a_fault(
    dynamodb: Database, tmp_path: Path
) -> None:
    cloud = cloud_of(dynamodb, tmp_path)
    try:
        assert show_each(cloud, 20) == []
        assert show_each(cloud, 21) == [
            'of 21 keys, keyhop each has put and deleted [{"put": 20}, {"deleted": 20}].'
        ]
    finally:
        dynamodb.client.delete_table(TableName=BY_ROUTE)


def test_a_failed_command_prints_outcomes_and_errors(
    cloud: Cloud, stand_in: StandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    too_large = failure("ValidationException", TOO_LARGE)
    stand_in.at("PutItem", lambda number: too_large if number <= 3 else None)
    with pytest.raises(Failed, match="keyhop each has ended with status 3"):
        show_each(cloud, len(ROUTES))
    printed = capsys.readouterr().out.splitlines()
    assert "  17 put" in printed
    assert any("  3 failed: " in line and TOO_LARGE in line for line in printed)


def test_a_command_that_cannot_start_is_reported(
    cloud: Cloud, strict: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    strict.client.delete_table(TableName=BY_ROUTE)
    with pytest.raises(Failed):
        show_each(cloud, len(ROUTES))
    assert "The run had not begun." in capsys.readouterr().out


@pytest.mark.prove
def test_writes_continue_after_temporary_failures_of_the_database(
    cloud: Cloud, strict: Database, stand_in: StandIn
) -> None:
    """DynamoDB Local answers InternalFailure while it creates an index."""
    writes = itertools.count(1)
    failures = 9
    enough = Event()

    def fault(operation: str, request: Any) -> None:
        if operation not in ("PutItem", "DeleteItem"):
            return
        number = next(writes)
        if number <= failures:
            message = "The request processing has failed because of an unknown error."
            raise failure("InternalFailure", message, 500)
        if number > failures + 5:
            enough.set()

    stand_in.fault = fault
    with routes_come_and_go(cloud) as counts:
        assert enough.wait(LONGEST_SECONDS)
    names = Counter(item["route"]["S"] for item in strict.client.scan(TableName=BY_ROUTE)["Items"])
    assert len(names) == len(ROUTES) + counts["came"] - counts["went"]


@pytest.mark.parametrize(
    ("verification", "read", "faults"),
    [
        ({}, {}, []),
        ({"drift": 2, "missing": 1, "surplus": 1}, {}, []),  # the keeper was late
        (
            {"drift": 2, "missing": 1, "surplus": 1, "remaining": 1},
            {},
            [
                "the verification found 1 missing and 1 surplus sentinels, and 1 of these 2 "
                "remained wrong."
            ],
        ),
        (
            {},
            {"method": "skip", "reason": "hops; not its key index: drift", "keys": 229},
            [
                "the run did not read the index: hops; not its key index: drift.",
                "the run by the index found 229 keys instead of 230.",
            ],
        ),
    ],
)
def test_an_index_has_faults_if_drift_remains_or_it_is_not_read(
    verification: dict[str, Any], read: dict[str, Any], faults: list[str]
) -> None:
    assert list(faults_of_index(VERIFICATION | verification, READ | read, 230)) == faults


def test_methods_that_find_different_numbers_of_keys_are_a_fault() -> None:
    ways = [Way("by a deployment", 1_230, 1, 1.0), Way("full scan", 1_229, 1, 1.0)]
    assert list(faults_of_ways(ways)) == [
        "the ways found different numbers of keys: by a deployment 1,230, full scan 1,229."
    ]
    assert list(faults_of_ways(ways[:1])) == []
