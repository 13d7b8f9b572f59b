"""Tests that a sample stays within its budget, stores no keys, and resumes after it was stopped."""

import itertools
import json
import math
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from keyhop.dynamodb.client import connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.tables import look_up
from keyhop.dynamodb.usage import Usage
from keyhop.errors import Stopped
from keyhop.jobs.journal import Journal
from keyhop.report.request import ReportInput
from keyhop.report.sampling import sample
from keyhop.storage.local import Directory

from testing.databases import BY_DAY, Database
from testing.standin.server import StandIn
from tests.integration.report.sample.tables import collections, sampled

PAGE_UNITS = 128.0
CANARY = "canary-271828"


@pytest.fixture
def units(stand_in: StandIn) -> list[float]:
    """Return a list to which the stand-in adds the units of each Scan and Query."""
    charges: list[float] = []
    answer = stand_in.answer

    def record_charge(operation: str, request: Any) -> Any:
        status, body = answer(operation, request)
        if operation in ("Scan", "Query") and status == 200:
            charges.append(body["ConsumedCapacity"]["CapacityUnits"])
        return status, body

    stand_in.answer = record_charge  # type: ignore[method-assign]
    return charges


def test_the_sample_stays_within_its_budget(
    strict: Database, table_name: str, units: list[float]
) -> None:
    strict.create(table_name, **BY_DAY)
    strict.fill(
        table_name,
        (
            {**item, "day": {"S": item["sk"]["S"]}}
            for item in collections([1, 4, 90, 300] * 30, filling=700)
        ),
    )
    for budget in (10, 60, 250):
        units.clear()
        usage = Usage()
        sampled(strict, table_name, budget, usage)
        assert sum(units) == usage.read_units
        assert sum(units) <= budget + max(units)


@pytest.mark.prove
def test_large_items_exceed_the_budget_by_one_page_at_most(
    strict: Database, table_name: str, units: list[float]
) -> None:
    strict.create(table_name)
    strict.fill(table_name, collections([1, 2, 3] * 10, filling=300_000))
    facts = sampled(strict, table_name, 1_500)
    assert sum(units) <= 1_500 + max(units)
    assert facts.largest_item is not None
    assert facts.largest_item > 300_000


def test_no_file_of_a_run_contains_a_key_or_a_value(
    strict: Database, table_name: str, tmp_path: Path
) -> None:
    strict.create(table_name, **BY_DAY)
    strict.fill(
        table_name,
        (
            {
                **item,
                "pk": {"S": f"{CANARY}-{item['pk']['S']}"},
                "day": {"S": f"{CANARY}-{number % 40}"},
                "data": {"S": CANARY},
            }
            for number, item in enumerate(collections([1, 3, 200] * 30))
        ),
    )
    connection = connect(Endpoint(url=strict.url))
    table = look_up(connection, table_name)
    request = ReportInput(table=table_name, max_read_units=150).request(str, {})
    facts = sample(connection, table, request, journal=Journal(Directory(tmp_path)))
    assert facts.keys is not None
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 3
    for path in files:
        assert CANARY.encode() not in path.read_bytes(), path


@pytest.mark.prove
def test_a_run_resumes_after_it_was_stopped(
    strict: Database, stand_in: StandIn, table_name: str, tmp_path: Path
) -> None:
    """The units suffice for some segments in any draw, but not for every item."""
    strict.create(table_name)
    strict.fill(table_name, collections([1, 3, 30] * 800))
    connection = connect(Endpoint(url=strict.url))
    request = ReportInput(table=table_name, max_read_units=1_000).request(str, {})
    stop = Event()
    answer, requests = stand_in.answer, itertools.count(1)

    def stop_at_the_400th(operation: str, parameters: Any) -> Any:
        if next(requests) == 400:
            stop.set()
        return answer(operation, parameters)

    stand_in.answer = stop_at_the_400th  # type: ignore[method-assign]
    journal = Journal(Directory(tmp_path))
    first, second = Usage(), Usage()
    table = look_up(connection, table_name)
    with pytest.raises(Stopped):
        sample(connection, table, request, journal=journal, stop=stop, usage=first)
    commits = [*journal.commits(0)]
    assert commits[-1].usage.requests > 300
    facts = sample(connection, table, request, journal=journal, usage=second)
    assert 0.9 * facts.keys.low <= 2_400 <= 1.1 * facts.keys.high
    assert facts.rru == pytest.approx(first.read_units + second.read_units, abs=8)
    checkpoint = json.dumps([commit.checkpoint.open for commit in commits], default=str)
    assert "USER" not in checkpoint


def test_the_sample_stays_within_its_rate(strict: Database, table_name: str, charged: list) -> None:
    strict.create(table_name)
    strict.fill(table_name, collections([1, 3] * 200))
    sampled(strict, table_name, 40, max_read_rate=25)
    began = charged[0][0]
    for at, _ in charged[1:]:
        spent = sum(units for time, units in charged if time <= at)
        assert spent <= 25 * (at - began) + 8 + math.ulp(1)
