"""`keyhop.KeyIndex`, as a Python program calls it."""

import threading
import time
from typing import Any

import keyhop
import pytest
from keyhop.key_index.sentinel import LEAST_SORT_KEY, Sentinel

from testing.databases import Database
from testing.key_index_tables import drift, scanned, table_of
from tests.public.conftest import boto3s_table


def index_of(database: Database, table: str, **arguments: Any) -> keyhop.KeyIndex:
    return keyhop.KeyIndex(table, endpoint_url=database.url, **arguments)


def test_build_verify_repair_and_remove(dynamodb: Database, table_name: str) -> None:
    dynamodb.collections(table_name, [1, 3] * 10)
    before = sorted(map(repr, scanned(dynamodb, table_name)))
    reports: list[keyhop.Progress] = []
    approvals: list[str] = []
    index = index_of(
        dynamodb,
        table_name,
        progress=reports.append,
        approve=lambda action, estimate: approvals.append(action),
    )
    assert index.status().status is None
    plan = index.build(dry_run=True)
    assert (plan.dry_run, plan.collections, approvals) == (True, 20, [])
    assert plan.write_units >= 20
    built = index.build()
    assert (built.action, built.collections, built.drift) == ("build", 20, 0)
    assert built.write_units > 0
    assert "No keeper" in built.notes[0]
    assert {progress.activity for progress in reports} == {"checking", "building", "verifying"}
    sentinel = Sentinel.of(table_of(dynamodb, table_name).space)
    dynamodb.client.delete_item(TableName=table_name, Key=sentinel.key_of({"pk": {"S": "k3"}}))
    verification = index.verify(repair=False)
    assert (verification.missing, verification.drift, verification.repaired) == (1, 1, 0)
    assert "k3" in verification.to_text()
    assert "k3" not in repr(verification)
    assert index.verify(dry_run=True).read_units > 0
    assert index.verify().repaired == 1
    assert drift(dynamodb, table_name, sentinel) == (set(), set())
    status = index.status()
    assert (status.status, status.is_trusted) == ("ACTIVE", False)
    assert "keeper" in str(status.why_not)
    assert index.remove(dry_run=True).write_units >= 20
    index.remove()
    assert approvals == ["build", "verify", "remove"]
    assert sorted(map(repr, scanned(dynamodb, table_name))) == before
    with pytest.raises(keyhop.errors.CannotStart, match="no key index"):
        index.remove(dry_run=True)


@pytest.mark.prove
def test_the_consistent_reads_of_a_build_stay_below_the_read_rate(
    dynamodb: Database, table_name: str
) -> None:
    dynamodb.collections(table_name, [1] * 100)
    began = time.monotonic()
    built = index_of(dynamodb, table_name).build(max_read_rate=100)
    assert built.read_units > 100
    assert built.read_units < 100 * (time.monotonic() - began) + 60


def test_a_verification_of_large_items_is_not_cheaper_than_estimated(
    dynamodb: Database, table_name: str
) -> None:
    dynamodb.collections(table_name, [2] * 20, filling=100_000)
    index = index_of(dynamodb, table_name)
    estimated_build = index.build(dry_run=True)
    built = index.build()
    assert built.read_units < 1.5 * estimated_build.read_units
    estimated = index.verify(dry_run=True)
    assert 0.5 * estimated.read_units < index.verify().read_units < 1.5 * estimated.read_units


def test_a_build_does_not_start_if_an_item_has_the_key_of_a_sentinel(
    dynamodb: Database, table_name: str
) -> None:
    dynamodb.create(table_name)
    item = {"pk": {"S": "a"}, "sk": LEAST_SORT_KEY["S"]}
    dynamodb.client.put_item(TableName=table_name, Item=item)
    index = index_of(dynamodb, table_name)
    with pytest.raises(keyhop.errors.CannotStart, match="sort key"):
        index.build()
    assert len(list(scanned(dynamodb, table_name))) == 1
    assert index.status().status is None


def test_an_exception_in_approve_ends_a_call_before_it_writes(
    dynamodb: Database, table_name: str
) -> None:
    dynamodb.collections(table_name, [2] * 5)

    class Refusal(Exception):
        pass

    def refuse(action: str, estimate: Any) -> None:
        assert estimate().collections == 5
        raise Refusal

    with pytest.raises(Refusal):
        index_of(dynamodb, table_name, approve=refuse).build()
    assert len(list(scanned(dynamodb, table_name))) == 10
    assert index_of(dynamodb, table_name).status().status is None


def test_boto3s_table_and_several_threads(dynamodb: Database, table_name: str) -> None:
    """One of two concurrent builds has the lease."""
    dynamodb.collections(table_name, [2] * 5)
    index = keyhop.KeyIndex(boto3s_table(dynamodb, table_name))
    outcomes: list[str] = []

    def build() -> None:
        try:
            outcomes.append(index.build().action)
        except keyhop.errors.IndexBusy:
            outcomes.append("busy")

    threads = [threading.Thread(target=build) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) in (["build", "build"], ["build", "busy"])
    assert index.verify(repair=False).drift == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_write_rate": 0}, "max_write_rate must be a number above 0, not 0."),
        ({"max_read_rate": "5"}, "max_read_rate must be"),
        ({"resume": True}, "resume needs output"),
    ],
)
def test_wrong_arguments_are_refused(
    dynamodb: Database, table_name: str, arguments: dict[str, Any], message: str
) -> None:
    dynamodb.collections(table_name, [1])
    with pytest.raises(keyhop.errors.CannotStart, match=message):
        index_of(dynamodb, table_name).build(**arguments)


def test_a_redrive_needs_a_queue(dynamodb: Database, table_name: str) -> None:
    dynamodb.collections(table_name, [1])
    index = index_of(dynamodb, table_name)
    index.build()
    with pytest.raises(keyhop.errors.CannotStart, match="or queue="):
        index.redrive()
