"""`keyhop index` interrupted, and gone on with."""

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from keyhop.errors import CannotStart
from keyhop.key_index.keeper import Collections
from keyhop.key_index.sentinel import Sentinel

from testing.databases import Database, resuming
from testing.keepers import FakeLambda
from testing.key_index_tables import drift, table_of
from tests.integration.conftest import Interrupt
from tests.integration.key_index.command import (
    attach,
    failing_after,
    index,
    listed,
    report_of,
)


def test_an_interrupted_walk_says_so_and_can_be_repeated(
    dynamodb: Database, table_name: str, monkeypatch: pytest.MonkeyPatch, interrupt: Interrupt
) -> None:
    dynamodb.collections(table_name, [2] * 30)
    put = Collections.put
    calls = itertools.count(1)

    def interrupting(self: Collections, partition: Any) -> bool:
        if next(calls) >= 7:
            interrupt()
        return put(self, partition)

    monkeypatch.setattr(Collections, "put", interrupting)
    interrupted = index(dynamodb, "build", table_name)
    assert (interrupted.status, "Interrupted" in interrupted.err) == (130, True)
    monkeypatch.setattr(Collections, "put", put)
    assert index(dynamodb, "build", table_name).status == 0
    sentinel = Sentinel.of(table_of(dynamodb, table_name).space)
    assert drift(dynamodb, table_name, sentinel) == (set(), set())


def test_a_walk_in_a_directory_goes_on_where_it_was_interrupted(
    dynamodb: Database,
    table_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    interrupt: Interrupt,
) -> None:
    """What is settled is not read again: each collection is listed once over both starts."""
    expected = dynamodb.collections(table_name, [2, 1, 3] * 80, filling=4_000)
    where = ("--output", str(tmp_path / "walks"))
    put = Collections.put
    calls = itertools.count()

    def interrupting(self: Collections, partition: Any) -> bool:
        if next(calls) >= 160:
            interrupt()
        return put(self, partition)

    monkeypatch.setattr(Collections, "put", interrupting)
    assert index(dynamodb, "build", table_name, *where).status == 130
    monkeypatch.setattr(Collections, "put", put)
    assert 0 < listed(tmp_path / "walks" / "build").total() < len(expected)
    refused = index(dynamodb, "build", table_name, *where)
    assert (refused.status, f"--resume {tmp_path}/walks" in refused.err) == (2, True)
    more = resuming(*where)
    status, built = report_of(dynamodb, "build", table_name, *more)
    assert (status, built["verification"]["drift"]) == (0, 0)
    assert built["build"]["collections"] == built["verification"]["collections"] == len(expected)
    for walk in ("build", "verify"):
        assert listed(tmp_path / "walks" / walk) == Counter(expected)
    sentinel = Sentinel.of(table_of(dynamodb, table_name).space)
    assert drift(dynamodb, table_name, sentinel) == (set(), set())
    again = index(dynamodb, "build", table_name, *where)
    assert (again.status, "holds a finished run" in again.err) == (2, True)


def test_what_an_interrupted_verification_has_repaired_is_in_its_report(
    dynamodb: Database, table_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pages are visited again, when nothing is wrong with them any more."""
    dynamodb.collections(table_name, [2] * 30)
    assert index(dynamodb, "build", table_name).status == 0
    sentinel = Sentinel.of(table_of(dynamodb, table_name).space)
    for number in range(9):
        key = sentinel.key_of({"pk": {"S": f"k{number}"}})
        dynamodb.client.delete_item(TableName=table_name, Key=key)
    where = ("--output", str(tmp_path / "walks"))
    put = Collections.put
    interrupted = CannotStart("this far and no further")
    monkeypatch.setattr(Collections, "put", failing_after(4, put, interrupted))
    assert index(dynamodb, "verify", table_name, *where).status == 2
    monkeypatch.setattr(Collections, "put", put)
    more = resuming(*where)
    refused = index(dynamodb, "verify", table_name, *more, "--no-repair")
    assert (refused.status, "begun without --no-repair" in refused.err) == (2, True)
    status, verification = report_of(dynamodb, "verify", table_name, *more)
    assert (status, verification["missing"], verification["repaired"], verification["put"]) == (
        3,
        9,
        9,
        9,
    )
    assert verification["collections"] == 30


def test_a_page_that_waits_for_the_keeper_is_settled_in_one_slice(
    dynamodb: Database, table_name: str, tmp_path: Path, lambdas: FakeLambda
) -> None:
    """However long the keeper may need: else the page is read, and waits, again and again."""
    dynamodb.collections(table_name, [2] * 5)
    assert index(dynamodb, "build", table_name).status == 0
    sentinel = Sentinel.of(table_of(dynamodb, table_name).space)
    key = sentinel.key_of({"pk": {"S": "k3"}})
    dynamodb.client.delete_item(TableName=table_name, Key=key)
    attach(dynamodb, table_name, lambdas)
    more = ("--grace", "0.4", "--output", str(tmp_path / "walks"), "--stack", "Keyhop")
    status, verification = report_of(dynamodb, "verify", table_name, *more)
    assert (status, verification["missing"], verification["repaired"]) == (3, 1, 1)
    assert len(list((tmp_path / "walks" / "verify" / "commits").iterdir())) == 1


def test_a_verification_that_was_resumed_is_not_trusted(
    dynamodb: Database, table_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written between its two halves may have escaped it."""
    dynamodb.collections(table_name, [2] * 30)
    assert index(dynamodb, "build", table_name).status == 0
    sentinel = Sentinel.of(table_of(dynamodb, table_name).space)
    key = sentinel.key_of({"pk": {"S": "k1"}})
    dynamodb.client.delete_item(TableName=table_name, Key=key)
    where = ("--output", str(tmp_path / "walks"))
    put = Collections.put
    with monkeypatch.context() as patched:
        interrupted = CannotStart("this far and no further")
        patched.setattr(Collections, "put", failing_after(0, put, interrupted))
        assert index(dynamodb, "verify", table_name, *where).status == 2
    plan = tmp_path / "walks" / "verify" / "run.json"
    begun = json.loads(plan.read_text())
    plan.write_text(json.dumps({**begun, "started": "2026-01-01T00:00:00+00:00"}))
    assert index(dynamodb, "verify", table_name, *resuming(*where)).status == 3
    assert b"was resumed: start one from the beginning" in index(dynamodb, "status", table_name).out
