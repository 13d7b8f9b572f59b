"""A fleet runs both jobs, with groups, budgets, redrives and twins, and counts each item once."""

from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any

import pytest
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.units import BLOCK_BYTES
from keyhop.errors import CannotStart, TooExpensive
from keyhop.jobs.fleet import scan_segments
from keyhop.jobs.runs import Runs
from keyhop.public.deployment import WatchedRun
from keyhop.rekey.backfill import COPIED, THERE, BackfillTask, Copier

from testing.databases import Database
from testing.rekey_pairs import RekeyTables, create, order, transform_of
from testing.rekey_tasks import verifying
from testing.s3 import MemoryS3
from tests.integration.rekey.test_verify import plant
from tests.machine import Machine

BUCKET = "results"
ITEMS = 600


@pytest.fixture
def runs(s3: MemoryS3) -> Runs:
    return Runs(s3, BUCKET)


@pytest.fixture
def rekey(
    dynamodb: Database,
    connection: Connection,
    table_name: str,
    runs: Runs,
    monkeypatch: pytest.MonkeyPatch,
) -> RekeyTables:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamodb.url)
    rekey = create(dynamodb, connection, table_name)
    rekey.put(order(number, size=300) for number in range(ITEMS))
    return rekey


@pytest.fixture
def machine(rekey: RekeyTables, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """RekeyBackfill, with a table that is split into several segments."""
    monkeypatch.setattr("keyhop.jobs.layout.SCAN_BYTES_PER_SEGMENT", 25_000)
    monkeypatch.setattr("keyhop.jobs.lifecycle.SCAN_BYTES_PER_SEGMENT", 25_000)
    machine = Machine(
        replace(runs, tables=[rekey.pair.source, rekey.pair.destination]), name="RekeyBackfill"
    )
    machine.own = {
        "rekey_backfill": partial(BackfillTask, transform_of=transform_of),
        **verifying(runs.journal, transform_of),
    }
    return machine


def test_a_fleet_copies_compares_and_repairs(machine: Machine, rekey: RekeyTables) -> None:
    values = {"rekey": rekey.pair.destination, "maxWriteRate": 1e6, "maxConcurrency": 3}
    result = machine.start(values, "copy")
    assert result["outcomes"] == {COPIED: ITEMS}
    assert result["writeUnits"] == ITEMS
    assert (result["table"], result["segments"]["total"] > 3) == (rekey.pair.source, True)
    assert len(rekey.copied()) == ITEMS
    orders = list(rekey.originals().values())
    planted = plant(rekey, orders, 40)
    machine.name = "RekeyVerify"
    values = {"rekey": rekey.pair.destination, "maxConcurrency": 3, "repair": False}
    compared = machine.start(values)["compared"]
    assert {name: compared[name] for name in planted} == dict(planted)
    compared = machine.start({"rekey": rekey.pair.destination}, "repair")["compared"]
    assert (compared["repaired"], compared["is_clean"]) == (40, True)
    manifest = machine.manifest("repair")
    assert manifest["keys"] == sum(part["keys"] for part in manifest["parts"]) == 40
    assert manifest["digests"]["run"] == "repair-digests"
    assert machine.start({"rekey": rekey.pair.destination})["compared"]["missing"] == 0


@pytest.mark.prove
def test_a_failed_backfill_is_resumed_and_counts_each_item_once(
    machine: Machine, rekey: RekeyTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some functions die at a write; a redrive, or a run that resumes, does the remaining work."""
    values = {"rekey": rekey.pair.destination, "maxWriteRate": 1e6, "maxConcurrency": 2}
    remaining, lock = [350], Lock()

    copied = Copier._copied

    def dying(*arguments: Any) -> str:
        with lock:
            remaining[0] -= 1
            if remaining[0] < 0 and remaining[0] % 50 == 0:
                raise OSError("the function died")
        return copied(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Copier, "_copied", dying)
        with pytest.raises(OSError, match="died"):
            machine.start(values, "copy")
    assert 0 < len(rekey.copied()) < ITEMS
    result = machine.start({**values, "resume": "copy"})
    assert result["outcomes"][COPIED] + result["outcomes"].get(THERE, 0) == ITEMS
    assert len(rekey.copied()) == ITEMS
    limit = 250 * 16 * 2
    assert result["outcomes"].get(THERE, 0) <= limit, "only pages in flight are put again"


@pytest.fixture
def verifies(machine: Machine, rekey: RekeyTables, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """RekeyVerify, with 40 faults in tables whose digests fill twelve buckets in four groups."""
    monkeypatch.setattr("keyhop.rekey.compare.rows.ROWS_PER_BUCKET", 100)
    monkeypatch.setattr("keyhop.rekey.compare.task.BUCKETS_PER_GROUP", 3)
    orders = list(rekey.originals().values())
    forward = transform_of(rekey.pair, None, None).forward  # type: ignore[arg-type]
    rekey.database.fill(rekey.pair.destination, map(forward, orders))
    plant(rekey, orders, 40)
    machine.name = "RekeyVerify"
    return machine


def test_buckets_are_distributed_to_workers(verifies: Machine, rekey: RekeyTables) -> None:
    result = verifies.start({"rekey": rekey.pair.destination, "repair": False}, "shared")
    assert (result["compared"]["left"], result["digests"]["buckets"]) == (40, 12)
    assert (result["digests"]["keys"], result["keys"]) == (2 * ITEMS, 40)
    _, plan = verifies.runs.open_run("shared")
    assert (plan.task, plan.segments, plan.groups) == ("rekey_verify", 12, 4)
    assert result["digests"]["dollars"] > 0


@pytest.mark.prove
def test_a_failed_verification_is_resumed_and_counts_each_difference_once(
    verifies: Machine, rekey: RekeyTables
) -> None:
    """One worker dies while it makes digests, another after it compared the buckets of a group."""
    values = {"rekey": rekey.pair.destination, "repair": True}
    dies = {"rekey_digests": 2, "rekey_verify": 3}

    def dying(state: Any, *arguments: Any) -> Any:
        result = scan_segments(state, *arguments)
        task = verifies.runs.open_run(state["run"])[1].task
        dies[task] -= 1
        if not dies[task]:
            raise OSError(task)
        return result

    verifies.scan = dying
    with pytest.raises(OSError, match="rekey_digests"):
        verifies.start(values, "first")
    with pytest.raises(OSError, match="rekey_verify"):
        verifies.start({**values, "resume": "first-digests"}, "second")
    compared = verifies.start({**values, "resume": "second"})["compared"]
    assert (compared["repaired"], compared["is_clean"]) == (40, True)
    assert sum(compared[kind] for kind in ("missing", "surplus", "changed")) == 40
    assert verifies.start({"rekey": rekey.pair.destination})["compared"]["is_clean"]


def test_a_watched_verification_shows_the_digests_and_then_the_comparison(
    verifies: Machine, rekey: RekeyTables
) -> None:
    run = WatchedRun(verifies.runs, "seen")
    assert run.look() is None
    values = {"rekey": rekey.pair.destination}
    execution = verifies.execution("seen")
    state = verifies.plan(values, execution)
    assert run.look() is not None
    verifies.map(state)
    totals = run.look()
    assert totals is not None
    assert (totals.keys, run.plan and run.plan.task) == (2 * ITEMS, "rekey_digests")
    verifies.go_on(state, execution, values)
    totals = run.look()
    assert totals is not None
    assert (totals.keys, run.plan and run.plan.task) == (40, "rekey_verify")


@pytest.mark.prove
def test_results_of_twins_count_once(machine: Machine, rekey: RekeyTables) -> None:
    def twice(*arguments: Any) -> Any:
        scan_segments(*arguments)
        return scan_segments(*arguments)

    machine.scan = twice
    values = {"rekey": rekey.pair.destination, "maxWriteRate": 1e6}
    assert machine.start(values)["outcomes"] == {COPIED: ITEMS}
    machine.name = "RekeyVerify"
    compared = machine.start({"rekey": rekey.pair.destination})["compared"]
    assert (compared["items"], compared["is_clean"]) == (ITEMS, True)


def test_an_estimate_includes_writes_and_a_run_above_its_limit_is_refused(
    machine: Machine, rekey: RekeyTables, dynamodb: Database
) -> None:
    values = {"rekey": rekey.pair.destination}
    estimate = machine.start({**values, "dryRun": True, "maxWriteRate": 100})
    assert estimate["each"]["keys"] == ITEMS
    assert estimate["each"]["write_units"] == ITEMS
    assert estimate["each"]["seconds"] == ITEMS / 100
    size = dynamodb.client.describe_table(TableName=rekey.pair.source)["Table"]["TableSizeBytes"]
    read_units = size / BLOCK_BYTES
    assert estimate["each"]["read_units"] == pytest.approx(read_units, rel=0.02), "the second look"
    dollars = ITEMS * 0.625e-6 + read_units * 0.125e-6
    assert estimate["each"]["dollars"] == pytest.approx(dollars, abs=1e-6)
    assert rekey.copied() == {}
    machine.name = "RekeyVerify"
    estimate = machine.start({**values, "dryRun": True})
    assert estimate["read_units"] >= size / BLOCK_BYTES
    machine.name = "RekeyBackfill"
    machine.max_cost = 1e-4
    with pytest.raises(TooExpensive, match="maxCost"):
        machine.start(values)
    assert rekey.copied() == {}


def test_an_unknown_destination_is_refused(machine: Machine, rekey: RekeyTables) -> None:
    with pytest.raises(CannotStart, match="not one of the tables"):
        machine.start({"rekey": "Another"})
