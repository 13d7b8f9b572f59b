"""`keyhop index` interrupted, and gone on with."""

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from keyhop.errors import CannotStart
from keyhop.key_index.keeper import Collections
from keyhop.key_index.sentinel import LEAST_SORT_KEY
from keyhop.key_index.task import WalkTask

from testing.databases import resuming
from testing.keepers import FakeLambda
from tests.integration.conftest import Interrupt
from tests.integration.key_index.command import (
    STACK,
    Index,
    failing_after,
    listed,
)


def test_an_interrupted_walk_says_so_and_can_be_repeated(
    index: Index, monkeypatch: pytest.MonkeyPatch, interrupt: Interrupt
) -> None:
    index.collections([2] * 30)
    put = Collections.put
    calls = itertools.count(1)

    def interrupting(self: Collections, partition: Any) -> bool:
        if next(calls) >= 7:
            interrupt()
        return put(self, partition)

    monkeypatch.setattr(Collections, "put", interrupting)
    interrupted = index("build")
    assert (interrupted.status, "Interrupted" in interrupted.err) == (130, True)
    monkeypatch.setattr(Collections, "put", put)
    index.built()
    assert index.drift() == (set(), set())


def test_a_walk_in_a_directory_goes_on_where_it_was_interrupted(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupt: Interrupt
) -> None:
    """What is settled is not read again: each collection is listed once over both starts."""
    expected = index.collections([2, 1, 3] * 80, filling=4_000)
    where = ("--output", str(tmp_path / "walks"))
    put = Collections.put
    calls = itertools.count()

    def interrupting(self: Collections, partition: Any) -> bool:
        if next(calls) >= 160:
            interrupt()
        return put(self, partition)

    monkeypatch.setattr(Collections, "put", interrupting)
    interrupted = index("build", *where)
    assert interrupted.status == 130
    assert f"Interrupted. To go on: keyhop index build {index.table}" in interrupted.err
    assert f"--resume {tmp_path}/walks" in interrupted.err
    monkeypatch.setattr(Collections, "put", put)
    assert 0 < listed(tmp_path / "walks" / "build").total() < len(expected)
    index.refuses(f"--resume {tmp_path}/walks", "build", *where)
    more = resuming(*where)
    status, built = index.report("build", *more)
    assert (status, built["verification"]["drift"]) == (0, 0)
    assert built["build"]["collections"] == built["verification"]["collections"] == len(expected)
    for walk in ("build", "verify"):
        assert listed(tmp_path / "walks" / walk) == Counter(expected)
    assert index.drift() == (set(), set())
    index.refuses("holds a finished run", "build", *where)
    index.refuses("holds a build of a key index that has ended", "build", *more)
    index.refuses("holds a build of a key index, and no verify", "verify", *more)


def test_a_refused_build_looks_at_the_table_again(index: Index, tmp_path: Path) -> None:
    """Its items in the way may be gone, or others may have come."""
    index.collections([2] * 30)
    place = {"pk": {"S": "k3"}, "sk": LEAST_SORT_KEY["S"]}
    index.database.client.put_item(TableName=index.table, Item=place)
    where = ("--output", str(tmp_path / "walks"))
    index.refuses("in the place of their sentinel", "build", *where)
    index.database.client.delete_item(TableName=index.table, Key=place)
    index.refuses("holds a build of a key index that has ended", "build", *resuming(*where))
    assert index("build", "--output", str(tmp_path / "others")).status == 0


def test_a_verification_that_only_looked_does_not_say_that_it_has_repaired(
    index: Index, tmp_path: Path
) -> None:
    index.collections([2] * 30)
    index.built()
    index.delete_sentinels("k3")
    where = ("--output", str(tmp_path / "walks"))
    assert index("verify", "--no-repair", *where).status == 3
    index.refuses("that has ended", "verify", *resuming(*where), "--no-repair")
    action = tmp_path / "walks" / "action.json"
    action.write_text(action.read_text().replace('"has_ended": true', '"has_ended": false'))
    index.refuses("a verification that does not repair", "verify", *resuming(*where))
    action.write_text(action.read_text().replace('"version": 1', '"version": 2'))
    index.refuses("was written in format 2", "verify", *resuming(*where))


def test_a_walk_that_is_resumed_has_the_limits_of_its_new_start(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.collections([2] * 30)
    rates: list[float] = []
    start = WalkTask.start

    def noting(self: WalkTask, reader: Any) -> None:
        rates.append(self.max_write_rate)
        start(self, reader)

    monkeypatch.setattr(WalkTask, "start", noting)
    where = ("--output", str(tmp_path / "walks"))
    interrupted = CannotStart("this far and no further")
    put = Collections.put
    monkeypatch.setattr(Collections, "put", failing_after(4, put, interrupted))
    assert index("build", "--max-write-rate", "900", *where).status == 2
    monkeypatch.setattr(Collections, "put", put)
    assert set(rates) == {900.0}
    rates.clear()
    assert index("build", "--max-write-rate", "800", *resuming(*where)).status == 0
    assert set(rates) == {800.0}


def test_what_an_interrupted_verification_has_repaired_is_in_its_report(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pages are visited again, when nothing is wrong with them any more."""
    index.collections([2] * 30)
    index.built()
    index.delete_sentinels(*(f"k{number}" for number in range(9)))
    where = ("--output", str(tmp_path / "walks"))
    put = Collections.put
    interrupted = CannotStart("this far and no further")
    monkeypatch.setattr(Collections, "put", failing_after(4, put, interrupted))
    assert index("verify", *where).status == 2
    monkeypatch.setattr(Collections, "put", put)
    more = resuming(*where)
    index.refuses("holds a verification that repairs", "verify", *more, "--no-repair")
    status, verification = index.report("verify", *more)
    counts = [verification[name] for name in ("missing", "repaired", "put")]
    assert (status, counts) == (3, [9, 9, 9])
    assert verification["collections"] == 30


def test_a_page_that_waits_for_the_keeper_is_settled_in_one_slice(
    index: Index, tmp_path: Path, lambdas: FakeLambda
) -> None:
    """However long the keeper may need: else the page is read, and waits, again and again."""
    index.collections([2] * 5)
    index.built()
    index.delete_sentinels("k3")
    index.attach(lambdas)
    more = ("--grace", "0.4", "--output", str(tmp_path / "walks"), *STACK)
    status, verification = index.report("verify", *more)
    assert (status, verification["missing"], verification["repaired"]) == (3, 1, 1)
    assert len(list((tmp_path / "walks" / "verify" / "commits").iterdir())) == 1


def test_a_verification_that_was_resumed_is_not_trusted(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written between its two halves may have escaped it."""
    index.collections([2] * 30)
    index.built()
    index.delete_sentinels("k1")
    where = ("--output", str(tmp_path / "walks"))
    put = Collections.put
    with monkeypatch.context() as patched:
        interrupted = CannotStart("this far and no further")
        patched.setattr(Collections, "put", failing_after(0, put, interrupted))
        assert index("verify", *where).status == 2
    plan = tmp_path / "walks" / "verify" / "run.json"
    begun = json.loads(plan.read_text())
    plan.write_text(json.dumps({**begun, "started": "2026-01-01T00:00:00+00:00"}))
    assert index("verify", *resuming(*where)).status == 3
    assert b"was resumed: start one from the beginning" in index("status").out
