"""`"logical": true`: many workers read physical keys, FinishRun folds them, each key once."""

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
"""/f3.txt has no suffix, and is also what /f3.txt_1 is folded into."""


def sharded(database: Database, table: str) -> Counter[str]:
    """A table of logical keys with so many shards each, and others; returns what is listed."""
    counts = enumerate(SHARDS)
    physical = [f"/f{n}.txt_{shard}" for n, count in counts for shard in range(1, count + 1)]
    database.create(table, ("pk", "S"), ("sk", "S"))
    items = ({"pk": {"S": key}, "sk": {"S": "1"}} for key in [*physical, *PLAIN])
    database.fill(table, items)
    return Counter({f"/f{n}.txt" for n in range(len(SHARDS))} | set(PLAIN))


def through(machine: Fleet, given: dict[str, Any], name: str = "run") -> dict[str, Any]:
    """From the input to the output."""
    execution = machine.execution(name)
    state = machine.plan(given, execution)
    state["next"] = "scan"
    while state["next"] != "end":
        if state["next"] == "verify":
            state = machine.verify(state)
            continue
        if state["next"] == "scan":
            machine.map(state)
        state = machine.finish(state, execution)
    return dict(state["result"])


def listed(machine: Fleet, run: str = "run") -> Counter[str]:
    """The keys in the files that the manifest, and the lists for readers, name."""
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
    """The keys in the parts of the manifest."""
    for part in machine.manifest(run)["parts"]:
        content = gzip.decompress(machine.object(f"runs/{run}/{part['name']}"))
        yield from map(json.loads, content.decode().splitlines())


@pytest.mark.parametrize("more", [prove({}), prove({"method": "scan"}), {"verifyShare": 0.3}])
def test_each_logical_key_once_by_many_workers(local: Fleet, more: dict[str, Any]) -> None:
    expected = sharded(local.database, local.table)
    given = {"table": local.table, "logical": True, "segments": 200, "maxConcurrency": 4, **more}
    told = through(local, given)
    assert listed(local) == expected
    physical = sum(SHARDS) + len(PLAIN)
    logical = {"separator": "_", "metadata": None, "physical_keys": physical, "folded": sum(SHARDS)}
    manifest = local.manifest("run")
    assert manifest["logical"] == told["logical"] == logical
    assert manifest["groups"] == 7
    assert told["keys"] == len(expected)
    assert sum(manifest["segments"]["keys"]) == physical
    if "verifyShare" in more:
        assert told["verify"]["missing"] == 0


def test_with_metadata_a_key_that_only_looks_like_a_shard_stays(machine: Fleet) -> None:
    """As the command does it."""
    metadata = with_keys_that_look_like_shards(machine.database, machine.table)
    given = {"table": machine.table, "logical": True, "metadata": metadata, "segments": 64}
    told = through(machine, given)
    keys = [key["path"]["S"] for key in parts_of(machine)]
    assert sorted(keys) == sorted(LOOKING_LIKE_SHARDS)
    logical = {"separator": "_", "metadata": metadata, "physical_keys": 10, "folded": 6}
    assert machine.manifest("run")["logical"] == told["logical"] == logical
    with pytest.raises(TableNotFound, match="no-such-table"):
        machine.plan({**given, "metadata": "no-such-table"}, machine.execution())
    with pytest.raises(CannotStart, match="is not the shard-metadata table of this table"):
        machine.plan({**given, "metadata": machine.table}, machine.execution())


def test_workers_that_are_called_again_and_twice_change_nothing(machine: Fleet) -> None:
    expected = sharded(machine.database, machine.table)
    scan = machine.scan

    def twice(*arguments: Any, **named: Any) -> Any:
        with ThreadPoolExecutor(2) as pool:
            first, second = (pool.submit(scan, *arguments, **named) for _ in range(2))
            return first.result() if second.result() else None

    machine.scan = twice
    through(machine, {"table": machine.table, "logical": True, "segments": 96})
    assert listed(machine) == expected


def test_another_separator_and_binary_keys(machine: Fleet) -> None:
    machine.create(("pk", "B"), ("sk", "S"))
    keys = [b"\xff::1", b"\xff::2", b"\xff_3"]
    machine.fill({"pk": {"B": key}, "sk": {"S": "1"}} for key in keys)
    through(machine, {"table": machine.table, "logical": True, "separator": "::", "segments": 64})
    assert listed(machine) == Counter(["/w==", "/18z"])


@pytest.mark.prove
def test_a_run_without_logical_is_as_it_was(machine: Fleet) -> None:
    sharded(machine.database, machine.table)
    told = machine.run("run", segments=64)
    assert told["keys"] == sum(SHARDS) + len(PLAIN)
    assert len(machine.keys("run")) == told["keys"]
    assert "logical" not in told
    assert "logical" not in machine.manifest("run")
    assert "fold" not in json.loads(machine.object("runs/run/run.json"))
    listing = machine.runs.s3.list_objects_v2(Bucket=machine.runs.bucket, Prefix="runs/run/")
    assert not [e for e in listing["Contents"] if "logical" in e["Key"] or "fold" in e["Key"]]


@pytest.fixture
def read(machine: Fleet) -> tuple[dict[str, Any], ExecutionContext]:
    """A run that is read and not folded: the state for FinishRun, and its execution."""
    sharded(machine.database, machine.table)
    state, execution = machine.begin(logical=True, segments=96)
    machine.map(state)
    return state, execution


@pytest.mark.prove
def test_a_finish_that_is_killed_at_any_write_is_done_again(
    machine: Fleet, read: tuple[dict[str, Any], ExecutionContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    in_small_slices(monkeypatch)
    put = machine.runs.s3.put_object
    left = crash_at = 0

    def crashing(**parameters: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            raise StoreUnavailable("the process ends here")
        return put(**parameters)

    monkeypatch.setattr(machine.runs.s3, "put_object", crashing)
    while True:
        crash_at += 1
        left = crash_at
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

    def ending(self: PartPages, *given: Any) -> Any:
        if next(calls) % 3 == 0:
            self.stop.set()
        return step(self, *given)

    monkeypatch.setattr(PartPages, "step", ending)
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


def test_a_finish_that_runs_twice_says_the_same(
    machine: Fleet, read: tuple[dict[str, Any], ExecutionContext]
) -> None:
    first, second = (machine.finish(*read) for _ in range(2))
    first["result"].pop("seconds"), second["result"].pop("seconds")
    assert first == second


@pytest.mark.prove
def test_a_fold_that_has_no_time_says_so_and_can_be_resumed(
    machine: Fleet, read: tuple[dict[str, Any], ExecutionContext]
) -> None:
    with pytest.raises(NoProgress, match="on your machine, which has no deadline"):
        machine.finish(*read, remaining_seconds=0.0)
    assert machine.progress("run")["finished"] is False
    told = through(machine, {"table": machine.table, "resume": "run"}, name="again")
    assert told["keys"] == sum(listed(machine).values())


def test_a_harmed_fold_is_noticed(
    machine: Fleet, read: tuple[dict[str, Any], ExecutionContext]
) -> None:
    machine.finish(*read)
    store = machine.runs.store("run")
    store.delete(next(iter(store.sizes("logical/parts"))))
    with pytest.raises(BrokenPromise, match="was changed after its commit"):
        machine.finish(*read)


@pytest.mark.prove
def test_a_resume_keeps_what_the_run_was_begun_with(
    machine: Fleet, read: tuple[dict[str, Any], ExecutionContext]
) -> None:
    resumed = {"table": machine.table, "resume": "run"}
    with pytest.raises(RunConflict, match="was begun with separator _, not -"):
        machine.plan({**resumed, "logical": True, "separator": "-"}, machine.execution())
    machine.plan({"table": machine.table, "segments": 64}, machine.execution("other"))
    with pytest.raises(RunConflict, match="was begun without logical"):
        machine.plan({**resumed, "resume": "other", "logical": True}, machine.execution())
    told = through(machine, {**resumed, "logical": True}, name="again")
    assert told["logical"]["folded"] == sum(SHARDS)


def test_a_number_cannot_carry_a_suffix(machine: Fleet) -> None:
    machine.create(("pk", "N"))
    with pytest.raises(CannotStart, match="the partition key is a number"):
        machine.plan({"table": machine.table, "logical": True}, machine.execution())


@pytest.mark.parametrize(
    ("more", "told"),
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
def test_what_does_not_go_together_is_refused(more: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        KeysInput.parse({"table": "Orders", **more})


def test_the_fields_of_logical_keys() -> None:
    assert KeysInput.parse({"table": "Orders"}).options == {}
    assert KeysInput.parse({"table": "Orders", "logical": False}).options == {}
    fold = {"separator": "_", "metadata": None}
    assert KeysInput.parse({"table": "O-1", "logical": True}).options == {"fold": fold}
    given = {"table": "Orders", "logical": True, "separator": "--"}
    assert KeysInput.parse(given).options == {"fold": {"separator": "--", "metadata": None}}
