"""The functions of the state machine on DynamoDB Local and the stand-in, with S3 by moto."""

import gzip
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from keyhop.enumerate.bucket import s3_client
from keyhop.enumerate.fleet import working
from keyhop.enumerate.fleet.checking import verify_run
from keyhop.enumerate.fleet.failing import RunFailed, clean_up
from keyhop.enumerate.fleet.finishing import finish_run
from keyhop.enumerate.fleet.request import InvalidInput
from keyhop.enumerate.fleet.runs import Runs
from keyhop.enumerate.fleet.working import GroupWork, Worked, scan_segments, working_seconds
from keyhop.errors import (
    BrokenPromise,
    BudgetSpent,
    CannotStart,
    KeysMissing,
    RunConflict,
    TableNotFound,
)
from moto import mock_aws

from tests.databases import Database, hashable
from tests.machine import MOST_STATE_BYTES, WORKER, Machine
from tests.standin.server import StandIn

BUCKET = "results"
SIZES = [1, 6, 1, 25, 2] * 60


class Unanswering:
    """Step Functions, silent: the fleet counts as planned."""

    def __init__(self, execution: str) -> None:
        pass

    def at_once(self) -> None:
        return None


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "us-east-1")
    monkeypatch.setattr(working, "MapRun", Unanswering)
    with mock_aws():
        s3 = s3_client()
        s3.create_bucket(Bucket=BUCKET)
        yield Runs(s3, BUCKET)


@pytest.fixture
def local(
    dynamodb: Database, runs: Runs, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> Machine:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamodb.url)
    return Machine(runs, [table_name])


@pytest.fixture
def machine(
    strict: Database, runs: Runs, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> Machine:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", strict.url)
    return Machine(runs, [table_name])


@pytest.fixture
def charged(stand_in: StandIn) -> list[tuple[float, float]]:
    """When the stand-in answered a Scan, and what it charged."""
    scans: list[tuple[float, float]] = []
    answer = stand_in.answer

    def noting(operation: str, request):
        status, body = answer(operation, request)
        if operation == "Scan":
            scans.append((time.monotonic(), body["ConsumedCapacity"]["CapacityUnits"]))
        return status, body

    stand_in.answer = noting  # type: ignore[method-assign]
    return scans


def units(scans: list[tuple[float, float]]) -> float:
    return sum(charge for _, charge in scans)


def names(machine: Machine, run: str) -> Counter[str]:
    return Counter(key["pk"]["S"] for key in machine.keys(run))


def test_all_keys_of_a_table_in_many_groups(
    local: Machine, dynamodb: Database, table_name: str
) -> None:
    expected = dynamodb.collections(table_name, SIZES, filling=300)
    told = local.start({"table": table_name, "segments": 200, "maxConcurrency": 4}, name="first")
    assert names(local, "first") == Counter(expected)
    manifest = local.manifest("first")
    assert manifest["finished"]
    assert manifest["groups"] == 7
    assert manifest["keys"] == told["keys"] == len(expected)
    assert manifest["segments"]["ended"] == 200
    assert sum(manifest["segments"]["keys"]) == len(expected)
    assert manifest["segments"]["skew"] >= 1
    assert manifest["cost"]["total"] > manifest["cost"]["dynamodb"] > 0
    assert told["manifest"] == "s3://results/runs/first/manifest.json"
    assert told["parts"] == "s3://results/runs/first/parts/"
    assert "keys" not in told["segments"]


@pytest.mark.parametrize("type_", ["S", "N", "B"])
def test_all_key_types(local: Machine, dynamodb: Database, table_name: str, type_: str) -> None:
    dynamodb.create(table_name, ("the key", type_), ("sort", type_))
    value = {"S": str, "N": str, "B": lambda n: b"%d" % n}[type_]
    keys = [{"the key": {type_: value(n)}} for n in range(100)]
    dynamodb.fill(
        table_name, ({**key, "sort": {type_: value(n)}} for key in keys for n in range(1, 4))
    )
    local.start({"table": table_name, "segments": 40}, name="run")
    assert hashable(local.keys("run")) == hashable(keys)


def test_parts_are_gzip_files_of_typed_json_lines(
    local: Machine, dynamodb: Database, table_name: str
) -> None:
    expected = dynamodb.collections(table_name, [2] * 30)
    local.start({"table": table_name}, name="run")
    (part,) = local.manifest("run")["parts"]
    assert part["name"].endswith(".jsonl.gz")
    lines = gzip.decompress(local.object(f"runs/run/{part['name']}")).decode().splitlines()
    assert {json.loads(line)["pk"]["S"] for line in lines} == expected


def test_csv_with_a_header(local: Machine, dynamodb: Database, table_name: str) -> None:
    expected = dynamodb.collections(table_name, [2] * 30)
    local.start({"table": table_name, "format": "csv"}, name="run")
    (part,) = local.manifest("run")["parts"]
    assert part["name"].endswith(".csv.gz")
    lines = gzip.decompress(local.object(f"runs/run/{part['name']}")).decode().splitlines()
    assert lines[0] == "pk"
    assert set(lines[1:]) == expected
    assert names(local, "run") == Counter(expected)


def test_an_empty_table_and_a_table_without_a_sort_key(
    local: Machine, dynamodb: Database, table_name: str
) -> None:
    dynamodb.create(table_name, sort=None)
    assert local.start({"table": table_name}, name="empty")["keys"] == 0
    dynamodb.fill(table_name, ({"pk": {"S": f"k{n}"}} for n in range(500)))
    told = local.start({"table": table_name, "segments": 40, "maxConcurrency": 3}, name="full")
    assert (told["keys"], told["method"]) == (500, "scan")


def test_an_index_is_read_by_one_group_and_gives_no_key_twice(
    local: Machine, dynamodb: Database, table_name: str
) -> None:
    dynamodb.create(
        table_name,
        AttributeDefinitions=[{"AttributeName": "day", "AttributeType": "S"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by-day",
                "KeySchema": [{"AttributeName": "day", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
    )
    dynamodb.fill(
        table_name,
        ({"pk": {"S": f"k{n}"}, "sk": {"S": "1"}, "day": {"S": f"d{n % 9}"}} for n in range(300)),
    )
    told = local.start(
        {"table": table_name, "index": "by-day", "segments": 50, "maxConcurrency": 9}, name="run"
    )
    assert Counter(key["day"]["S"] for key in local.keys("run")) == Counter(
        f"d{n}" for n in range(9)
    )
    assert told["index"] == "by-day"


def test_a_plan_only_reads_a_sample_and_begins_nothing(
    local: Machine, dynamodb: Database, table_name: str
) -> None:
    dynamodb.collections(table_name, [3] * 400, filling=500)
    told = local.start({"table": table_name, "planOnly": True, "maxReadUnits": 40}, name="plan")
    assert told["spent"]["read_units"] <= 40
    assert told["keys"]["low"] <= 400 <= told["keys"]["high"]
    assert told["cost"]["total"] > 0
    assert local.runs.log("plan").plan() is None


def test_a_million_segments_go_through_s3_and_leave_the_state_small(
    machine: Machine, strict: Database, table_name: str
) -> None:
    """passed_on asserts the limit of 256 KiB; as an array the groups would be beyond it."""
    strict.collections(table_name, [1] * 10)
    sizes = {}
    for segments in (64, 1_000_000):
        state = machine.plan({"table": table_name, "segments": segments}, machine.execution())
        content = machine.object(state["groups"]["key"])
        sizes[segments] = len(content)
        items = json.loads(content)
        assert [item["group"] for item in items] == list(range(state["plan"]["groups"]))
    assert sizes[64] < MOST_STATE_BYTES < sizes[1_000_000]


def test_a_worker_whose_time_is_over_hands_back_a_checkpoint_and_goes_on(
    machine: Machine, strict: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working, "LEAST_MARGIN_SECONDS", 0.0)
    machine.remaining = 0.4
    expected = strict.collections(table_name, [2] * 300, filling=3_000)
    machine.start({"table": table_name, "segments": 64, "maxReadRate": 100}, name="run")
    assert names(machine, "run") == Counter(expected)
    assert machine.invocations > 4
    assert machine.manifest("run")["invocations"] > 3


def test_time_to_work_ends_well_before_the_deadline() -> None:
    assert working_seconds(900) == 840
    assert working_seconds(100) == 85
    assert working_seconds(30) == 25
    assert working_seconds(2) == 0


def test_a_killed_worker_and_a_late_twin_change_nothing(
    machine: Machine, strict: Database, table_name: str
) -> None:
    """Each first attempt goes on in the background while its retry works: both may commit."""
    expected = strict.collections(table_name, SIZES, filling=2_000)
    late: list[threading.Thread] = []

    def twice(*arguments) -> Worked:
        thread = threading.Thread(target=lambda: scan_segments(*arguments))
        thread.start()
        late.append(thread)
        return scan_segments(*arguments)

    machine.scan = twice
    machine.start({"table": table_name, "segments": 128, "maxConcurrency": 2}, name="run")
    assert names(machine, "run") == Counter(expected)
    for thread in late:
        thread.join()
    # What the twins have written since is not named by any commit, and changes nothing.
    assert names(machine, "run") == Counter(expected)


def test_a_poisoned_group_fails_the_run_with_its_cause_and_a_new_run_succeeds(
    machine: Machine, strict: Database, table_name: str
) -> None:
    expected = strict.collections(table_name, SIZES)
    given = {"table": table_name, "segments": 128, "maxConcurrency": 2}
    execution = machine.execution("poisoned")
    state = machine.plan(given, execution)
    machine.runs.store("poisoned").create("commits/g00002-s000000.json", b"{")
    with pytest.raises(BrokenPromise, match=r"g00002-s000000\.json is damaged") as raised:
        machine.go_on(state, execution)
    cause = json.dumps({"errorType": "BrokenPromise", "errorMessage": str(raised.value)})
    note = {"failure": {"Error": "BrokenPromise", "Cause": cause}, "item": {"group": 2}}
    note["execution"] = execution.id
    machine.runs.store("poisoned").replace("failures/g2.json", json.dumps(note).encode())
    failure = {"Error": "States.ExceedToleratedFailureThreshold", "Cause": "..."}
    with pytest.raises(RunFailed) as failed:
        clean_up("poisoned", failure, execution, machine.runs, WORKER)
    assert "Group 2 failed. BrokenPromise: " in str(failed.value)
    assert "start a new run" in str(failed.value)
    machine.start(given, name="new")
    assert names(machine, "new") == Counter(expected)


def test_a_failed_run_goes_on_with_resume_from_its_commits(
    machine: Machine, strict: Database, table_name: str
) -> None:
    expected = strict.collections(table_name, SIZES, filling=1_000)

    def failing(work: GroupWork, *rest) -> Worked:
        if work.group == 3:
            raise CannotStart("poison")
        return scan_segments(work, *rest)

    machine.scan = failing
    execution = machine.execution("begun")
    state = machine.plan({"table": table_name, "segments": 160}, execution)
    with pytest.raises(CannotStart):
        machine.go_on(state, execution)
    failure = {"Error": "CannotStart", "Cause": "poison"}
    with pytest.raises(RunFailed, match=r"start again with .*\"resume\": \"begun\"") as failed:
        clean_up("begun", failure, execution, machine.runs, WORKER)
    assert "128 of 160 segments are done" in str(failed.value)
    assert not machine.progress("begun")["finished"]
    machine.scan = scan_segments
    machine.invocations = 0
    told = machine.start({"table": table_name, "resume": "begun"})
    assert machine.invocations == 1
    assert told["run"] == "begun"
    assert names(machine, "begun") == Counter(expected)


def test_a_redriven_execution_is_sent_back_to_the_groups(machine: Machine) -> None:
    """A redrive begins at the state that failed, which is CleanUp."""
    execution = machine.execution("r")
    failure = {"Error": "GaveUp", "Cause": "throttled"}
    with pytest.raises(RunFailed, match="redrive the execution"):
        clean_up("r", failure, execution, machine.runs, WORKER)
    with pytest.raises(RunFailed):  # a retry of the same state is no redrive
        clean_up("r", failure, execution, machine.runs, WORKER)
    clean_up("r", failure, replace(execution, redrives=1), machine.runs, WORKER)
    with pytest.raises(RunFailed):  # it failed again after its first redrive
        clean_up("r", failure, replace(execution, redrives=1), machine.runs, WORKER)


def test_a_budget_of_units_holds_over_all_groups_and_leftovers_are_shared_out_again(
    machine: Machine, strict: Database, table_name: str, charged: list[tuple[float, float]]
) -> None:
    """Groups of very different cost: one share each would be too little for the dear ones."""
    expected = strict.collections(table_name, [1] * 400, filling=3_500)
    given = {"table": table_name, "segments": 96, "maxConcurrency": 3}
    whole = machine.start(given, name="whole")["read_units"]
    before = units(charged)
    told = machine.start({**given, "maxReadUnits": whole * 1.15}, name="capped")
    assert names(machine, "capped") == Counter(expected)
    assert units(charged) - before <= whole * 1.15
    assert told["read_units"] <= whole * 1.15


def test_a_budget_that_is_too_small_ends_the_run_and_a_resume_with_more_finishes_it(
    machine: Machine, strict: Database, table_name: str, charged: list[tuple[float, float]]
) -> None:
    expected = strict.collections(table_name, [1] * 400, filling=3_500)
    given = {"table": table_name, "segments": 96, "maxConcurrency": 3}
    with pytest.raises(BudgetSpent, match="too little is left"):
        machine.start({**given, "maxReadUnits": 80}, name="run")
    assert units(charged) <= 80
    manifest = machine.progress("run")
    assert not manifest["finished"]
    assert 60 <= manifest["read_units"] <= 80
    before = units(charged)
    with pytest.raises(BudgetSpent):
        machine.start({"table": table_name, "resume": "run", "maxReadUnits": 50})
    assert units(charged) - before <= 50
    machine.start({"table": table_name, "resume": "run", "maxReadUnits": 5_000})
    assert names(machine, "run") == Counter(expected)


def test_the_check_finds_nothing_to_complain_of_and_its_examples_stay_out_of_the_state(
    machine: Machine, strict: Database, table_name: str
) -> None:
    strict.collections(table_name, SIZES, filling=200)
    told = machine.start({"table": table_name, "segments": 128, "verifyShare": 0.2}, name="run")
    assert told["verify"]["segments"] == told["verify"]["drawn"] == 26
    assert told["verify"]["missing"] == 0
    assert "examples" not in told["verify"]


def test_the_check_goes_on_where_an_earlier_invocation_stopped(
    machine: Machine, strict: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict.collections(table_name, SIZES, filling=200)
    execution = machine.execution("run")
    state = machine.plan({"table": table_name, "segments": 64, "verifyShare": 1}, execution)
    machine.map(state)
    state = finish_run(state, execution, machine.runs, WORKER)
    assert state["next"] == "verify"
    turns = 0
    while state["next"] == "verify":
        ticks = iter([0.0, 0.0, 1.0])  # the first batch only
        state = verify_run(
            state, machine.runs, machine.tables, 1.0, clock=lambda ticks=ticks: next(ticks)
        )[0]
        turns += 1
    assert turns == 8
    assert state["result"]["verify"]["segments"] == 64
    assert state["result"]["verify"]["keys"] == len(SIZES)


def test_a_key_that_is_missing_fails_the_run(
    machine: Machine, strict: Database, table_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict.create(table_name, sort=None)
    strict.fill(table_name, ({"pk": {"S": f"k{n}"}} for n in range(200)))
    execution = machine.execution("run")
    state = machine.plan({"table": table_name, "segments": 64, "verifyShare": 1}, execution)
    machine.map(state)
    strict.fill(table_name, [{"pk": {"S": "late"}}])
    with pytest.raises(KeysMissing, match="found 1 keys that the run did not report"):
        machine.go_on(state, execution)
    assert json.loads(machine.object("runs/run/verify.json"))["verdict"]["examples"]


def test_nothing_is_read_for_an_input_that_is_wrong(
    machine: Machine, strict: Database, table_name: str, charged: list[tuple[float, float]]
) -> None:
    strict.collections(table_name, [1] * 5)
    wrong = [
        ({"table": table_name, "segmetns": 5}, InvalidInput),
        ({"table": "another-table"}, InvalidInput),
        ({"table": table_name, "index": "none"}, CannotStart),
        ({"table": table_name, "resume": "never-begun"}, RunConflict),
    ]
    for given, error in wrong:
        with pytest.raises(error):
            machine.start(given)
    machine.tables.append("missing")
    with pytest.raises(TableNotFound):
        machine.start({"table": "missing"})
    assert units(charged) == 0


def test_a_method_that_cannot_work_is_told(
    machine: Machine, strict: Database, table_name: str
) -> None:
    strict.create(table_name, sort=None)
    with pytest.raises(CannotStart, match="Method skip cannot work here"):
        machine.start({"table": table_name, "method": "skip"})


def test_planning_again_finds_its_own_run_and_a_second_run_of_the_name_is_refused(
    machine: Machine, strict: Database, table_name: str
) -> None:
    expected = strict.collections(table_name, SIZES)
    execution = machine.execution("run")
    given = {"table": table_name, "segments": 64}
    first = machine.plan(given, execution)
    assert machine.plan(given, execution) == first
    again_after_90_days = replace(execution, started="2027-03-01")
    with pytest.raises(RunConflict, match="There is a run named 'run' already"):
        machine.plan(given, again_after_90_days)
    machine.go_on(first, execution)
    assert names(machine, "run") == Counter(expected)
    with pytest.raises(RunConflict, match="finished run"):
        machine.start({"table": table_name, "resume": "run"})


def test_a_resume_with_other_wishes_is_refused(
    machine: Machine, strict: Database, table_name: str
) -> None:
    strict.collections(table_name, SIZES)
    machine.plan({"table": table_name, "segments": 64}, machine.execution("run"))
    for wish in ({"segments": 65}, {"format": "csv"}, {"method": "scan"}):
        with pytest.raises(RunConflict, match="was begun with"):
            machine.start({"table": table_name, "resume": "run", **wish})


def test_a_table_that_is_replaced_during_the_run_is_noticed(
    local: Machine, dynamodb: Database, table_name: str
) -> None:
    dynamodb.collections(table_name, SIZES)
    execution = local.execution("run")
    state = local.plan({"table": table_name, "segments": 64}, execution)
    dynamodb.client.delete_table(TableName=table_name)
    dynamodb.collections(table_name, [1])
    with pytest.raises(BrokenPromise, match="is not the table that the run was begun with"):
        local.go_on(state, execution)


def test_a_finish_that_runs_twice_says_the_same(
    machine: Machine, strict: Database, table_name: str
) -> None:
    strict.collections(table_name, SIZES)
    execution = machine.execution("run")
    state = machine.plan({"table": table_name, "segments": 64}, execution)
    machine.map(state)
    first, second = (finish_run(state, execution, machine.runs, WORKER) for _ in range(2))
    first["result"].pop("seconds"), second["result"].pop("seconds")
    assert first == second


def test_a_map_that_ends_with_a_group_unfinished_is_told(
    machine: Machine, strict: Database, table_name: str
) -> None:
    strict.collections(table_name, SIZES)
    machine.scan = lambda *arguments: Worked(True, 0, 0)
    with pytest.raises(BrokenPromise, match="4 of 4 groups are not finished"):
        machine.start({"table": table_name, "segments": 128})


def test_a_rate_holds_over_all_workers_together(
    machine: Machine, strict: Database, table_name: str, charged: list[tuple[float, float]]
) -> None:
    """As the service would measure it: units of the answers that it sent, by its own clock."""
    strict.collections(table_name, [1] * 300, filling=3_000)
    rate = 60.0
    given = {"table": table_name, "segments": 96, "maxConcurrency": 3, "maxReadRate": rate}
    execution = machine.execution("run")
    state = machine.plan(given, execution)
    charged.clear()
    began = time.monotonic()
    machine.go_on(state, execution)
    total = 0.0
    for moment, charge in charged:
        total += charge
        assert total <= rate * (moment - began) * 1.1 + 1.0
    assert total / rate <= charged[-1][0] - began <= 2 * total / rate + 1
