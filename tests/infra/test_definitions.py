"""Tests of the deployed definitions of the state machines."""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from keyhop.key_index import life_cycle

from infra import key_index, report, sharding
from infra.functions import LAMBDAS, SERVICE
from infra.key_index import MACHINES
from infra.machines import (
    CRASHED,
    DEFINITIONS,
    JOB,
    MAP_LABEL,
    NOT_READY,
    OF_LAMBDA,
    POLICIES,
    definition,
)
from tests.infra.template import (
    BUCKET,
    FUNCTIONS,
    KEY_INDEX_MACHINES,
    Deployed,
    function_arn,
    states_arn,
    states_in,
)

FILES = (JOB, key_index.DEFINITION, sharding.DEFINITION, report.DEFINITION)
FILE_OF = {
    **dict.fromkeys(("EnumerateKeys", "WalkKeyIndexes"), JOB),
    **dict.fromkeys(KEY_INDEX_MACHINES, key_index.DEFINITION),
    "DrainShards": sharding.DEFINITION,
    "SampleKeys": JOB,
    "ReportKeys": report.DEFINITION,
}
RUN, MANAGE, DRAIN, REPORT = (json.loads(definition(file)) for file in FILES)
SOURCES = REPORT["States"]["Sources"]
LEVELS = {"run": RUN, "child": RUN["States"]["ScanGroups"]["ItemProcessor"]}
LEVELS |= {"manage": MANAGE, "drain": DRAIN, "report": REPORT}
LEVELS |= {f"source {number}": branch for number, branch in enumerate(SOURCES["Branches"])}
STATES = {
    (file, name): state for file in FILES for name, state in states_in(json.loads(definition(file)))
}
RETRYING = [location for location, state in STATES.items() if state["Type"] in ("Task", "Map")]
OF_RUNS = {name: state for (file, name), state in STATES.items() if file == JOB}
MAP = OF_RUNS["ScanGroups"]
MOVE = DRAIN["States"]["MoveShards"]
THROTTLED = "Lambda.TooManyRequestsException"
OF_AWS = re.compile(r"(States|Lambda|Sandbox|Runtime|S3|CloudWatch|StepFunctions)\.\w+")
NO_SUCH_ERROR = "StepFunctions.ServiceException"
NAME = re.compile(r"\$\{(\w+)\}")


@pytest.fixture
def holding(machine: str, sharded: Deployed, reported: Deployed) -> Deployed:
    """A template that has the machine."""
    return reported if machine in ("ReportKeys", "SampleKeys") else sharded


@pytest.mark.parametrize("file", FILES)
def test_a_definition_file_is_valid_json(file: str):
    """Editors, linters and tests can read it; placeholders occur only in strings."""
    text = (DEFINITIONS / f"{file}.asl.json").read_text()
    strings = [*strings_in(json.loads(text))]
    assert text.count("${") == sum(string.count("${") for string in strings)
    assert set(NAME.findall(text)) == {name for string in strings for name in NAME.findall(string)}


def test_every_retry_policy_is_used_and_every_policy_name_exists():
    texts = [path.read_text() for path in DEFINITIONS.glob("*.asl.json")]
    named = [name for text in texts for name in re.findall(r'"Retry": "\$\{(\w+)\}"', text)]
    assert set(named) == set(POLICIES)
    assert not any('"Retry": [' in text for text in texts), "lists are in infra/machines.py"


@pytest.mark.parametrize("machine", FILE_OF)
def test_the_template_has_the_definition_and_every_placeholder(holding: Deployed, machine: str):
    properties = holding.machine(machine)
    assert json.loads(properties["DefinitionString"]) == json.loads(definition(FILE_OF[machine]))
    substitutions = properties["DefinitionSubstitutions"]
    assert set(substitutions) == set(NAME.findall(properties["DefinitionString"]))
    assert all(substitutions.values())


@pytest.mark.parametrize("machine", FILE_OF)
def test_a_machine_can_be_redriven_is_traced_and_logs_no_keys(holding: Deployed, machine: str):
    """Only standard machines can be redriven, wait for days and refuse a second execution of the
    same name. Keys can be personal data, so they appear in the history only."""
    properties = holding.machine(machine)
    assert properties["StateMachineName"] == f"Keyhop-{machine}"
    assert properties["StateMachineType"] == "STANDARD"
    assert properties["TracingConfiguration"] == {"Enabled": True}
    logging = properties["LoggingConfiguration"]
    assert (logging["Level"], logging["IncludeExecutionData"]) == ("ERROR", False)
    groups = holding.properties_of("AWS::Logs::LogGroup")
    names = [group["LogGroupName"] for group in groups]
    assert f"/aws/vendedlogs/states/Keyhop-{machine}" in names


@pytest.mark.parametrize("level", LEVELS)
def test_every_state_is_reached_and_every_target_exists(level: str):
    states = LEVELS[level]["States"]
    reached: set[str] = set()
    waiting = [LEVELS[level]["StartAt"]]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += targets_of(states[name])
    assert reached == set(states)


@pytest.mark.parametrize("location", STATES)
def test_every_state_has_a_comment(location: tuple[str, str]):
    assert STATES[location]["Comment"].endswith(".")


@pytest.mark.parametrize("level", LEVELS)
def test_every_state_leads_to_an_end(level: str):
    for name, state in LEVELS[level]["States"].items():
        ends = state["Type"] in ("Succeed", "Fail") or state.get("End")
        assert targets_of(state) or ends, name


@pytest.mark.parametrize("location", RETRYING)
def test_a_retry_names_its_errors(location: tuple[str, str]):
    """A retry of every error would repeat an invalid input or a missing table."""
    for rule in STATES[location]["Retry"]:
        assert rule["ErrorEquals"]
        wrong = {"States.ALL", "States.TaskFailed", "Exception", NO_SUCH_ERROR}
        assert not wrong & set(rule["ErrorEquals"])
        if rule["ErrorEquals"] != [THROTTLED]:
            assert rule["MaxAttempts"] <= 10


@pytest.mark.parametrize("location", RETRYING)
def test_lambda_throttling_is_retried_for_hours(location: tuple[str, str]):
    """A map can have more children than the concurrency of the account or reservation.

    They wait for hours, up to five minutes per retry. A separate rule leaves the attempts of other
    errors unchanged. A retry is a billed state transition.
    """
    state = STATES[location]
    if "lambda:invoke" in state.get("Resource", ""):
        rule = state["Retry"][0]
        assert rule["ErrorEquals"] == [THROTTLED]
        mean_delay = rule["MaxDelaySeconds"] / 2
        assert rule["MaxAttempts"] * mean_delay > 8 * 3600
        retries_a_minute = 1_000 * 60 / mean_delay
        assert retries_a_minute <= 400, "of a thousand waiting children"


def test_every_machine_waits_for_a_function_that_was_idle_for_weeks():
    """Lambda needs up to two minutes to activate it; each rule counts its attempts separately."""
    invoking = {
        (path.name, name): state
        for path in DEFINITIONS.glob("*.asl.json")
        for name, state in states_in(json.loads(definition(path.name.removesuffix(".asl.json"))))
        if "lambda:invoke" in state.get("Resource", "")
    }
    assert {file for file, _ in invoking} == {path.name for path in DEFINITIONS.glob("*.asl.json")}
    for location, state in invoking.items():
        (rule,) = [item for item in state["Retry"] if {*NOT_READY} & {*item["ErrorEquals"]}]
        assert {*rule["ErrorEquals"]} == {*NOT_READY}, location
        delays = [rule["IntervalSeconds"] * rule["BackoffRate"] ** n for n in range(6)]
        assert (rule["MaxAttempts"], sum(delays)) == (6, 315), location


@pytest.mark.parametrize("location", RETRYING)
def test_every_task_has_a_timeout(location: tuple[str, str]):
    """Without a timeout, a lost answer would hold an execution for three years."""
    state = STATES[location]
    if state["Type"] == "Task":
        assert state["TimeoutSeconds"] <= 90 * 24 * 3600


@pytest.mark.parametrize("location", RETRYING)
def test_errors_that_are_not_retried_are_caught(location: tuple[str, str]):
    """The errors of CleanUp and NoteFailure are those of the run, so no rule catches them. The
    state with the branches catches the errors of the sources."""
    branch_states = [name for branch in SOURCES["Branches"] for name, _ in states_in(branch)]
    if location[1] not in ("CleanUp", "NoteFailure", *branch_states):
        assert STATES[location]["Catch"][-1]["ErrorEquals"] == ["States.ALL"]


def test_every_keyhop_error_in_a_definition_exists():
    """Lambda reports an exception by its class name, so a renamed class would no longer match."""
    named = {
        error
        for state in STATES.values()
        for rule in (*state.get("Retry", ()), *state.get("Catch", ()))
        for error in rule["ErrorEquals"]
        if not OF_AWS.fullmatch(error)
    }
    classes = {
        node.name
        for path in LAMBDAS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    }
    assert named
    assert named - classes == set()


# --- jobs


@pytest.mark.parametrize(
    ("machine", "task", "worker"),
    [("EnumerateKeys", "keys", "ScanSegments"), ("WalkKeyIndexes", "key_index", "WalkSegments")],
)
def test_jobs_differ_in_their_task_and_their_worker(
    sharded: Deployed, machine: str, task: str, worker: str
):
    substitutions = sharded.machine(machine)["DefinitionSubstitutions"]
    assert (substitutions["Task"], substitutions["ResultsBucket"]) == (task, BUCKET)
    invoked = {name: substitutions[f"{name}Arn"] for name in FUNCTIONS}
    functions = {**{name: name for name in FUNCTIONS}, "ScanSegments": worker}
    assert invoked == {
        name: function_arn(f"Keyhop-{function}") for name, function in functions.items()
    }
    assert OF_RUNS["PlanRun"]["Parameters"]["Payload"]["task"] == "${Task}"


def test_a_state_its_function_and_its_placeholder_have_one_name():
    tasks = {name for name, state in OF_RUNS.items() if state["Type"] == "Task"}
    assert tasks == {*FUNCTIONS, "NoteFailure", "RaiseAlarm"}
    for name in FUNCTIONS:
        assert OF_RUNS[name]["Parameters"]["FunctionName"] == f"${{{name}Arn}}"


def test_plan_run_gets_the_maximum_of_workers_from_a_reservation(
    scheduled: Deployed, plain: Deployed
):
    assert scheduled.environment("PlanRun")["KEYHOP_MOST_WORKERS"] == "20"
    assert "KEYHOP_MOST_WORKERS" not in plain.environment("PlanRun")


def test_the_map_has_the_options_that_a_run_relies_on():
    """A list with a gap is worthless, so the map tolerates no failure. The plan decides how many
    workers run at once. The children are separate executions, which may loop. The map's output is
    limited to 256 KiB, so the manifest is built from the commits. Roles name the map by its label.
    """
    fields = ("ToleratedFailurePercentage", "MaxConcurrencyPath", "ResultPath", "Label")
    assert [MAP[field] for field in fields] == [0, "$.maxConcurrency", None, MAP_LABEL]
    excluded = {"ToleratedFailureCount", "ToleratedFailurePercentagePath", "MaxConcurrency"}
    assert not excluded & MAP.keys()
    config = MAP["ItemProcessor"]["ProcessorConfig"]
    assert config == {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    for state in (MAP["ItemReader"], MAP["ResultWriter"], OF_RUNS["NoteFailure"]):
        assert state["Parameters"]["Bucket"] == "${ResultsBucket}"
    assert MAP["ItemReader"]["Parameters"]["Key.$"].startswith("$.")
    assert MAP["ResultWriter"]["Parameters"]["Prefix.$"].startswith("$.")


@pytest.mark.parametrize("location", RETRYING)
def test_a_state_waits_longer_than_its_function_can_run(
    sharded: Deployed, reported: Deployed, location: tuple[str, str]
):
    state = STATES[location]
    if "lambda:invoke" in state.get("Resource", ""):
        name = state["Parameters"]["FunctionName"].removeprefix("${").removesuffix("Arn}")
        workers = ("ScanSegments", "WalkSegments") if name == "ScanSegments" else (name,)
        template = reported if location[0] == report.DEFINITION else sharded
        longest = max(template.function(worker)["Timeout"] for worker in workers)
        assert longest < state["TimeoutSeconds"] <= longest + 60


@pytest.mark.parametrize(
    ("file", "name"), [("manage", "Walk"), ("manage", "Verify"), ("report", "Sample")]
)
def test_a_walk_may_take_until_its_files_expire(plain: Deployed, file: str, name: str):
    """A walk can exceed 113 hours: a billion sentinels at the default rate take 23 days."""
    rules = plain.only("AWS::S3::Bucket")["Properties"]["LifecycleConfiguration"]["Rules"]
    (days,) = {rule["ExpirationInDays"] for rule in rules if "ExpirationInDays" in rule}
    assert STATES[file, name]["TimeoutSeconds"] == days * 24 * 3600


def test_a_redrive_of_a_failed_run_continues_with_its_groups():
    """A redrive starts at the state that failed, which must lead back to the groups."""
    assert OF_RUNS["CleanUp"]["Type"] == "Task"
    assert OF_RUNS["CleanUp"]["Next"] == "ScanGroups"
    (catch,) = OF_RUNS["CleanUp"]["Catch"]
    caught = {*catch["ErrorEquals"]}
    assert all(OF_AWS.fullmatch(error) for error in caught), "no error that CleanUp reports"
    assert not caught & {"States.ALL", "States.TaskFailed"}, "these match the errors of the run"
    assert caught >= {*OF_LAMBDA, *CRASHED, *NOT_READY, THROTTLED}


def test_a_redrive_is_detected_by_the_count_that_was_stored_before_it():
    """The state that stores the count succeeds, so a redrive does not enter it again."""
    predecessors = [name for name, state in OF_RUNS.items() if "RaiseAlarm" in targets_of(state)]
    assert predecessors == ["PlanRun", "WasItScheduled", "CountRedrives"]
    count = OF_RUNS["CountRedrives"]
    assert (count["Type"], count["ResultPath"]) == ("Pass", "$.failedAfter")
    assert count["Parameters"] == {"redrives.$": "$$.Execution.RedriveCount"}


def test_a_failed_run_ends_with_its_error_and_a_plain_text_cause():
    """CleanUp fails its state by the task token, because Lambda encodes an exception as JSON. The
    state never retries the error of the run."""
    clean_up = OF_RUNS["CleanUp"]
    assert clean_up["Resource"].endswith(":::lambda:invoke.waitForTaskToken")
    assert clean_up["Parameters"]["Payload"]["token.$"] == "$$.Task.Token"
    retried = {error for rule in clean_up["Retry"] for error in rule["ErrorEquals"]}
    assert all(OF_AWS.fullmatch(error) for error in retried)


# --- builds, verifications and removals of key indexes


def test_each_machine_has_its_action_and_can_start_walks(indexed: Deployed):
    for machine, (action, *_) in MACHINES.items():
        assert indexed.machine(machine)["DefinitionSubstitutions"] == {
            "Partition": "aws",
            "Namespace": "Keyhop",
            "Service": SERVICE,
            "Machine": machine,
            "Action": action,
            "ManageIndexArn": function_arn("Keyhop-ManageIndex"),
            "WalkKeyIndexesArn": states_arn("stateMachine:Keyhop-WalkKeyIndexes"),
        }


@pytest.mark.parametrize("action", [action for action, *_ in MACHINES.values()])
def test_the_function_has_the_action_and_the_step_of_each_state(action: str):
    source = Path(life_cycle.__file__).read_text()
    steps = [
        state["Parameters"]["Payload"]
        for state in MANAGE["States"].values()
        if "Payload" in state.get("Parameters", {})
    ]
    assert [step["step"] for step in steps] == ["prepare", "finish"]
    for step in steps:
        assert step["action"] == "${Action}"
        assert f'("{action}", "{step["step"]}")' in source


def test_a_machine_waits_for_the_run_of_a_walk():
    """With .sync:2 the state has the result or the failure of the run."""
    resources = {
        state["Resource"]
        for state in MANAGE["States"].values()
        if state["Type"] == "Task" and "StateMachineArn" in state["Parameters"]
    }
    resources.add(STATES[report.DEFINITION, "Sample"]["Resource"])
    assert resources == {"arn:${Partition}:states:::states:startExecution.sync:2"}


WALK, VERIFICATION = {"table": "Orders"}, {"table": "Orders", "walk": {"kind": "verify"}}
REMOVAL = {"next": "walk", "walk": WALK, "rounds": 1, "settleSeconds": 65}


@pytest.mark.parametrize(
    ("choice", "state", "path"),
    [
        ("IsPrepared", {"next": "wait", "seconds": 10}, ["Wait"]),
        ("IsPrepared", {"next": "planned", "estimate": {}}, ["Planned"]),
        ("IsPrepared", {"next": "end", "result": {}}, ["Finished"]),
        ("IsPrepared", {"next": "finish", "rounds": 1}, ["Finish"]),
        (
            "IsPrepared",
            {"next": "walk", "walk": WALK, "verify": VERIFICATION},
            ["Walk", "IsToBeVerified", "Verify", "Finish"],
        ),
        ("IsPrepared", {"next": "walk", "verify": VERIFICATION}, ["Verify", "Finish"]),
        ("IsPrepared", REMOVAL, ["Settle", "Walk", "IsToBeVerified", "Finish"]),
        ("IsFinished", {"next": "end", "result": {}}, ["Finished"]),
        ("IsFinished", {"next": "wait", "seconds": 10, "rounds": 1}, ["WaitForTable", "Finish"]),
        # A removal walks again if a keeper has put a sentinel since the first walk.
        ("IsFinished", {**REMOVAL, "rounds": 2}, ["Settle", "Walk", "IsToBeVerified", "Finish"]),
    ],
)
def test_the_answer_of_a_step_selects_the_next_states(
    choice: str, state: dict[str, Any], path: list[str]
):
    assert follow(choice, state, len(path)) == path


def follow(name: str, state: Mapping[str, Any], steps: int) -> list[str]:
    """Return the states after `name`, if none of them changes the fields that choices read."""
    path = []
    for _ in range(steps):
        current = MANAGE["States"][name]
        name = next_of(current, state) if current["Type"] == "Choice" else current["Next"]
        path.append(name)
    return path


def next_of(choice: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    for rule in choice["Choices"]:
        field = rule["Variable"].removeprefix("$.")
        if rule.get("IsPresent") and field in state:
            return str(rule["Next"])
        if "StringEquals" in rule and state.get(field) == rule["StringEquals"]:
            return str(rule["Next"])
    return str(choice["Default"])


# --- drains


def test_a_step_receives_the_input_of_the_execution(sharded: Deployed):
    """The last step's answer only shows whether the drain has begun; the metadata has the rest."""
    assert MOVE["Parameters"]["Payload"] == {"request.$": "$$.Execution.Input", "last.$": "$"}
    substitutions = sharded.machine("DrainShards")["DefinitionSubstitutions"]
    assert substitutions["MoveShardsArn"] == function_arn("Keyhop-MoveShards")


def test_only_a_completed_drain_is_a_success():
    """A failed drain has the sentence of its error as its cause."""
    states = DRAIN["States"]
    ends = {name: state["Type"] for name, state in states.items() if not targets_of(state)}
    failed = dict.fromkeys(("CalledOff", "Refused", "Broken", "BrokenOff"), "Fail")
    assert ends == {"Drained": "Succeed", **failed}
    assert {rule["Next"] for rule in MOVE["Catch"]} == {"WhyItFailed", "RaiseAlarm"}
    assert states["Refused"]["CausePath"] == "$.exception.errorMessage"


def test_an_unfinished_drain_waits():
    states = DRAIN["States"]
    choice = states["IsDrained"]
    follows = {rule["StringEquals"]: rule["Next"] for rule in choice["Choices"]}
    assert follows == {"done": "Drained", "called off": "CalledOff"}
    assert {rule["Variable"] for rule in choice["Choices"]} == {"$.action"}
    assert choice["Default"] == "Wait"
    assert (states["Wait"]["SecondsPath"], states["Wait"]["Next"]) == ("$.seconds", "MoveShards")


def test_the_function_answers_with_the_fields_that_the_choice_reads():
    from handlers.sharding import to_state
    from keyhop.sharding.drain import DrainStep, Next
    from keyhop.sharding.key.shards import Phase, Shards

    answers = {
        action: to_state(DrainStep(action, Shards(1, 0, phase=Phase.MOVING), 0.2))
        for action in Next
    }
    assert answers[Next.DONE]["action"] == "done"
    for state in answers.values():
        assert isinstance(state["seconds"], int)
        assert state["seconds"] >= 1, "a drain without progress must not spin"


# --- reports


def test_all_sources_are_read_in_parallel_with_the_sample():
    """Probes, advice and the page follow; each reads the run's files of the steps before it."""
    first_states = [branch["StartAt"] for branch in SOURCES["Branches"]]
    assert first_states == ["Insights", "Stream", "IsSampled"]
    assert (SOURCES["Type"], SOURCES["Catch"][-1]["ErrorEquals"]) == ("Parallel", ["States.ALL"])
    path, name = [], REPORT["StartAt"]
    while name != "Finished":
        state = REPORT["States"][name]
        path.append(name)
        name = state.get("Next") or state["Default"]
    assert path == ["Plan", "IsDryRun", "Sources", "Probe", "Advise", "Render", "IsGoodEnough"]


def test_the_function_has_each_step_of_a_report():
    from keyhop.report.steps import STEPS

    named = {
        name: state["Parameters"]["Payload"]["step"]
        for (file, name), state in STATES.items()
        if file == report.DEFINITION and "Payload" in state.get("Parameters", {})
    }
    assert named == {name: name.lower() for name in named}
    assert {*named.values()} == {*STEPS}


def test_a_report_does_not_need_a_sample():
    branch = SOURCES["Branches"][2]["States"]
    (rule,) = branch["IsSampled"]["Choices"]
    assert (rule["Variable"], rule["IsPresent"], rule["Next"]) == ("$.sample", True, "Sample")
    assert branch["NotSampled"]["Result"] == {"run": None}


def targets_of(state: Mapping[str, Any]) -> list[str]:
    rules = (*state.get("Catch", ()), *state.get("Choices", ()))
    return [
        *(state[field] for field in ("Next", "Default") if field in state),
        *(rule["Next"] for rule in rules),
    ]


def strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings_in(item)
