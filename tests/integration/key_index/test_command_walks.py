"""`keyhop index` that is interrupted and resumed."""

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

from testing.databases import Result, resuming
from testing.keepers import FakeLambda
from tests.integration.conftest import Interrupt
from tests.integration.key_index.command import STACK, Index, failing_after, listed


def build_interrupted(puts: int, index: Index, interrupt: Interrupt, *options: str) -> Result:
    """Run a build that is interrupted after this number of puts."""
    put = Collections.put
    calls = itertools.count()

    def interrupting(self: Collections, partition: Any) -> bool:
        if next(calls) >= puts:
            interrupt()
        return put(self, partition)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Collections, "put", interrupting)
        return index("build", *options)


def test_an_interrupted_walk_says_so_and_can_be_repeated(
    index: Index, interrupt: Interrupt
) -> None:
    index.collections([2] * 30)
    interrupted = build_interrupted(6, index, interrupt)
    assert (interrupted.status, "Interrupted" in interrupted.err) == (130, True)
    index.built()
    assert index.drift() == (set(), set())


@pytest.mark.prove
def test_a_walk_in_a_directory_continues_where_it_was_interrupted(
    index: Index, tmp_path: Path, interrupt: Interrupt
) -> None:
    """The two starts together list each collection once."""
    expected = index.collections([2, 1, 3] * 80, filling=4_000)
    where = ("--output", str(tmp_path / "walks"))
    interrupted = build_interrupted(160, index, interrupt, *where)
    assert interrupted.status == 130
    assert f"Interrupted. To go on: keyhop index build {index.table}" in interrupted.err
    assert f"--resume {tmp_path}/walks" in interrupted.err
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


def test_a_refused_build_cannot_be_resumed(index: Index, tmp_path: Path) -> None:
    """A new build checks the table again, as the items in its way may have changed."""
    index.collections([2] * 30)
    place = {"pk": {"S": "k3"}, "sk": LEAST_SORT_KEY["S"]}
    index.put(place)
    where = ("--output", str(tmp_path / "walks"))
    index.refuses("in the place of their sentinel", "build", *where)
    index.delete(place)
    index.refuses("holds a build of a key index that has ended", "build", *resuming(*where))
    assert index("build", "--output", str(tmp_path / "others")).status == 0


def test_a_verification_without_repairs_cannot_be_resumed_with_repairs(
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


def test_a_resumed_walk_uses_the_limits_of_its_new_start(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.collections([2] * 30)
    rates: list[float] = []
    start = WalkTask.start

    def recorded_start(self: WalkTask, reader: Any) -> None:
        rates.append(self.max_write_rate)
        start(self, reader)

    monkeypatch.setattr(WalkTask, "start", recorded_start)
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


def test_the_report_of_a_resumed_verification_contains_all_repairs(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The resumed verification reads pages again that are already repaired."""
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
    """Otherwise the page would be read, and would wait, again and again."""
    index.collections([2] * 5)
    index.built()
    index.delete_sentinels("k3")
    index.attach(lambdas)
    more = ("--grace", "0.4", "--output", str(tmp_path / "walks"), *STACK)
    status, verification = index.report("verify", *more)
    assert (status, verification["missing"], verification["repaired"]) == (3, 1, 1)
    assert len(list((tmp_path / "walks" / "verify" / "commits").iterdir())) == 1


def test_a_resumed_verification_is_not_trusted(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verification may have missed writes between its two halves."""
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
    content = json.loads(plan.read_text())
    plan.write_text(json.dumps({**content, "started": "2026-01-01T00:00:00+00:00"}))
    assert index("verify", *resuming(*where)).status == 3
    assert b"was resumed: start one from the beginning" in index("status").out
