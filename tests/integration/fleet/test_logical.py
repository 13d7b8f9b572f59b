"""Runs with `"logical": true`: workers read physical keys, and FinishRun folds them."""

import gzip
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from keyhop.errors import (
    BrokenPromise,
    CannotStart,
    InvalidInput,
    NoProgress,
    RunConflict,
    StoreUnavailable,
    TableNotFound,
)
from keyhop.jobs.pages import PartPages
from keyhop.jobs.runs import ExecutionContext
from keyhop.keys.request import KeysInput

from testing.databases import Database
from testing.marks import prove
from tests.integration.fleet.conftest import Fleet
from tests.integration.test_logical_keys import (
    LOOKING_LIKE_SHARDS,
    in_small_slices,
    with_keys_that_look_like_shards,
)
from tests.machine import passed_on

SHARDS = [1, 2, 9, 1, 40, 1, 3, 1] * 8
PLAIN = ["/plain.txt", "/zero_0", "/large_1001", "/f3", "/f3.txt"]
"""Keys that stay as they are. /f3.txt is also the key that /f3.txt_1 is folded into."""


def sharded(database: Database, table: str) -> Counter[str]:
    """Create a table of sharded and plain keys, and return its logical keys."""
    counts = enumerate(SHARDS)
    physical = [f"/f{n}.txt_{shard}" for n, count in counts for shard in range(1, count + 1)]
    database.create(table, ("pk", "S"), ("sk", "S"))
    items = ({"pk": {"S": key}, "sk": {"S": "1"}} for key in [*physical, *PLAIN])
    database.fill(table, items)
    return Counter({f"/f{n}.txt" for n in range(len(SHARDS))} | set(PLAIN))


def listed(machine: Fleet, run: str = "run") -> Counter[str]:
    """Return the keys in the files that the manifest and the lists for readers name."""
    manifest = machine.manifest(run)
    names = {f"runs/{run}/{part['name']}" for part in manifest["parts"]}
    assert all(name.startswith(f"runs/{run}/logical/") for name in names)
    assert {item["key"] for item in json.loads(machine.object(f"runs/{run}/parts.json"))} == names
    links = machine.object(f"runs/{run}/links/parts.txt").decode().splitlines()
    assert sorted(links) == sorted(f"s3://{machine.runs.bucket}/{name}" for name in names)
    keys = Counter(next(iter(key["pk"].values())) for key in parts_of(machine, run))
    assert manifest["keys"] == sum(keys.values())
    return keys


def parts_of(machine: Fleet, run: str = "run") -> Iterator[dict[str, Any]]:
    """Yield the keys in the parts of the manifest."""
    for part in machine.manifest(run)["parts"]:
        content = gzip.decompress(machine.object(f"runs/{run}/{part['name']}"))
        yield from map(json.loads, content.decode().splitlines())


@pytest.mark.parametrize("more", [prove({}), prove({"method": "scan"}), {"verifyShare": 0.3}])
def test_many_workers_list_each_logical_key_once(local: Fleet, more: dict[str, Any]) -> None:
    expected = sharded(local.database, local.table)
    result = local.run("run", logical=True, segments=200, maxConcurrency=4, **more)
    assert listed(local) == expected
    physical = sum(SHARDS) + len(PLAIN)
    logical = {"separator": "_", "metadata": None, "physical_keys": physical, "folded": sum(SHARDS)}
    manifest = local.manifest("run")
    assert manifest["logical"] == result["logical"] == logical
    assert manifest["groups"] == 7
    assert result["keys"] == len(expected)
    assert sum(manifest["segments"]["keys"]) == physical
    if "verifyShare" in more:
        assert result["verify"]["missing"] == 0


def test_with_metadata_a_key_that_only_looks_like_a_shard_stays(machine: Fleet) -> None:
    metadata = with_keys_that_look_like_shards(machine.database, machine.table)
    fields = {"table": machine.table, "logical": True, "metadata": metadata, "segments": 64}
    result = machine.start(fields, "run")
    keys = [key["path"]["S"] for key in parts_of(machine)]
    assert sorted(keys) == sorted(LOOKING_LIKE_SHARDS)
    logical = {"separator": "_", "metadata": metadata, "physical_keys": 10, "folded": 6}
    assert machine.manifest("run")["logical"] == result["logical"] == logical
    with pytest.raises(TableNotFound, match="no-such-table"):
        machine.plan({**fields, "metadata": "no-such-table"}, machine.execution())
    with pytest.raises(CannotStart, match="is not the shard-metadata table of this table"):
        machine.plan({**fields, "metadata": machine.table}, machine.execution())


def test_two_concurrent_calls_of_each_worker_list_each_key_once(machine: Fleet) -> None:
    expected = sharded(machine.database, machine.table)
    scan = machine.scan

    def twice(*args: Any, **kwargs: Any) -> Any:
        with ThreadPoolExecutor(2) as pool:
            first, second = (pool.submit(scan, *args, **kwargs) for _ in range(2))
            return first.result() if second.result() else None

    machine.scan = twice
    machine.run("run", logical=True, segments=96)
    assert listed(machine) == expected


def test_another_separator_and_binary_keys(machine: Fleet) -> None:
    machine.create(("pk", "B"), ("sk", "S"))
    keys = [b"\xff::1", b"\xff::2", b"\xff_3"]
    machine.fill({"pk": {"B": key}, "sk": {"S": "1"}} for key in keys)
    machine.run("run", logical=True, separator="::", segments=64)
    assert listed(machine) == Counter(["/w==", "/18z"])


@pytest.mark.prove
def test_a_run_without_logical_lists_physical_keys(machine: Fleet) -> None:
    sharded(machine.database, machine.table)
    result = machine.run("run", segments=64)
    assert result["keys"] == sum(SHARDS) + len(PLAIN)
    assert len(machine.keys("run")) == result["keys"]
    assert "logical" not in result
    assert "logical" not in machine.manifest("run")
    assert "fold" not in json.loads(machine.object("runs/run/run.json"))
    listing = machine.runs.s3.list_objects_v2(Bucket=machine.runs.bucket, Prefix="runs/run/")
    assert not [e for e in listing["Contents"] if "logical" in e["Key"] or "fold" in e["Key"]]


@pytest.fixture
def read(machine: Fleet) -> tuple[dict[str, Any], ExecutionContext]:
    """The state for FinishRun of a run that is read and not folded, and its execution."""
    sharded(machine.database, machine.table)
    state, execution = machine.begin(logical=True, segments=96)
    machine.map(state)
    return state, execution


@pytest.mark.prove
def test_a_finish_that_is_killed_at_any_write_can_be_repeated(
    machine: Fleet, read: tuple[dict[str, Any], ExecutionContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_small_slices(monkeypatch)
    put = machine.runs.s3.put_object
    remaining = crash_at = 0

    def crashing(**parameters: Any) -> Any:
        nonlocal remaining
        remaining -= 1
        if remaining == 0:
            raise StoreUnavailable("the process ends here")
        return put(**parameters)

    monkeypatch.setattr(machine.runs.s3, "put_object", crashing)
    while True:
        crash_at += 1
        remaining = crash_at
        try:
            state = machine.finish(*read)
            break
        except StoreUnavailable:
            assert machine.runs.journal("run").manifest() is None
    assert crash_at > 4
    assert state["next"] == "end"
    expected = Counter({f"/f{n}.txt" for n in range(len(SHARDS))} | set(PLAIN))
    assert listed(machine) == expected
    store = machine.runs.store("run")
    assert len(store.sizes("logical/parts")) == len(machine.manifest("run")["parts"]) > 1


def test_a_fold_takes_as_many_turns_as_it_needs(
    machine: Fleet, read: tuple[dict[str, Any], ExecutionContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keyhop.jobs.pages.KEYS_AT_ONCE", 20)
    step, calls = PartPages.step, itertools.count(1)

    def stopping_step(self: PartPages, *args: Any) -> Any:
        if next(calls) % 3 == 0:
            self.stop.set()
        return step(self, *args)

    monkeypatch.setattr(PartPages, "step", stopping_step)
    state, execution = read
    turns = 0
    state["next"] = "finish"
    while state["next"] == "finish":
        state = passed_on(machine.finish(state, execution))
        turns += 1
    assert turns > 2
    assert state["next"] == "end"
    assert state["result"]["logical"]["folded"] == sum(SHARDS)
    assert listed(machine) == Counter({f"/f{n}.txt" for n in range(len(SHARDS))} | set(PLAIN))


def test_a_repeated_finish_returns_the_same_result(
    machine: Fleet, read: tuple[dict[str, Any], ExecutionContext]
) -> None:
    first, second = (machine.finish(*read) for _ in range(2))
    first["result"].pop("seconds"), second["result"].pop("seconds")
    assert first == second


@pytest.mark.prove
def test_a_fold_without_time_says_so_and_can_be_resumed(
    machine: Fleet, read: tuple[dict[str, Any], ExecutionContext]
) -> None:
    with pytest.raises(NoProgress, match="on your machine, which has no deadline"):
        machine.finish(*read, remaining_seconds=0.0)
    assert machine.progress("run")["finished"] is False
    result = machine.run("again", resume="run")
    assert result["keys"] == sum(listed(machine).values())


def test_a_missing_part_of_a_fold_is_detected(
    machine: Fleet, read: tuple[dict[str, Any], ExecutionContext]
) -> None:
    machine.finish(*read)
    store = machine.runs.store("run")
    store.delete(next(iter(store.sizes("logical/parts"))))
    with pytest.raises(BrokenPromise, match="was changed after its commit"):
        machine.finish(*read)


@pytest.mark.prove
def test_a_resume_cannot_change_the_options_of_the_run(
    machine: Fleet, read: tuple[dict[str, Any], ExecutionContext]
) -> None:
    resumed = {"table": machine.table, "resume": "run"}
    with pytest.raises(RunConflict, match="was begun with separator _, not -"):
        machine.plan({**resumed, "logical": True, "separator": "-"}, machine.execution())
    machine.plan({"table": machine.table, "segments": 64}, machine.execution("other"))
    with pytest.raises(RunConflict, match="was begun without logical"):
        machine.plan({**resumed, "resume": "other", "logical": True}, machine.execution())
    result = machine.run("again", resume="run", logical=True)
    assert result["logical"]["folded"] == sum(SHARDS)


def test_a_number_cannot_carry_a_suffix(machine: Fleet) -> None:
    machine.create(("pk", "N"))
    with pytest.raises(CannotStart, match="the partition key is a number"):
        machine.plan({"table": machine.table, "logical": True}, machine.execution())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"logical": True, "index": "by-day"}, "leave index out"),
        ({"logical": True, "dryRun": True}, "dryRun samples physical keys"),
        ({"separator": "-"}, "are for logical: give that too"),
        ({"logical": False, "separator": "-"}, "are for logical: give that too"),
        ({"logical": True, "separator": "1"}, "with no digits and no spaces"),
        ({"logical": True, "separator": "-" * 17}, "1 to 16 printable ASCII characters"),
        ({"logical": "yes"}, "logical must be true or false"),
    ],
)
def test_invalid_combinations_of_fields_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        KeysInput.parse({"table": "Orders", **fields})


def test_the_fields_of_logical_keys_become_options() -> None:
    assert KeysInput.parse({"table": "Orders"}).options == {}
    assert KeysInput.parse({"table": "Orders", "logical": False}).options == {}
    fold = {"separator": "_", "metadata": None}
    assert KeysInput.parse({"table": "O-1", "logical": True}).options == {"fold": fold}
    fields = {"table": "Orders", "logical": True, "separator": "--"}
    assert KeysInput.parse(fields).options == {"fold": {"separator": "--", "metadata": None}}
