"""The state machines' definitions, as they are deployed: what their promises rest on."""

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
LEVELS |= {f"source {number}": one for number, one in enumerate(SOURCES["Branches"])}
STATES = {
    (file, name): state for file in FILES for name, state in states_in(json.loads(definition(file)))
}
RETRYING = [where for where, state in STATES.items() if state["Type"] in ("Task", "Map")]
OF_RUNS = {name: state for (file, name), state in STATES.items() if file == JOB}
MAP = OF_RUNS["ScanGroups"]
MOVE = DRAIN["States"]["MoveShards"]
NO_ROOM = "Lambda.TooManyRequestsException"
OF_AWS = re.compile(r"(States|Lambda|Sandbox|Runtime|S3|CloudWatch|StepFunctions)\.\w+")
NO_SUCH_ERROR = "StepFunctions.ServiceException"
NAME = re.compile(r"\$\{(\w+)\}")


@pytest.fixture
def holding(machine: str, sharded: Deployed, reported: Deployed) -> Deployed:
    """A template with the machine."""
    return reported if machine in ("ReportKeys", "SampleKeys") else sharded


@pytest.mark.parametrize("file", FILES)
def test_a_file_is_json_as_it_stands(file: str):
    """So that editors, linters and tests read it; names stand only inside strings."""
    text = (DEFINITIONS / f"{file}.asl.json").read_text()
    strings = [*strings_in(json.loads(text))]
    assert text.count("${") == sum(one.count("${") for one in strings)
    assert set(NAME.findall(text)) == {name for one in strings for name in NAME.findall(one)}


def test_every_policy_of_retries_is_used_and_every_one_that_is_named_exists():
    texts = [path.read_text() for path in DEFINITIONS.glob("*.asl.json")]
    named = [name for text in texts for name in re.findall(r'"Retry": "\$\{(\w+)\}"', text)]
    assert set(named) == set(POLICIES)
    assert not any('"Retry": [' in text for text in texts), "lists are in infra/machines.py"


@pytest.mark.parametrize("machine", FILE_OF)
def test_the_template_holds_the_definition_and_every_name_of_it(holding: Deployed, machine: str):
    properties = holding.machine(machine)
    assert json.loads(properties["DefinitionString"]) == json.loads(definition(FILE_OF[machine]))
    substitutions = properties["DefinitionSubstitutions"]
    assert set(substitutions) == set(NAME.findall(properties["DefinitionString"]))
    assert all(substitutions.values())


@pytest.mark.parametrize("machine", FILE_OF)
def test_a_machine_can_be_redriven_is_traced_and_logs_no_keys(holding: Deployed, machine: str):
    """Only standard machines keep a history to go on from, wait for days, and refuse a second
    execution of one name. Keys can be personal data: the history is for those who may read it."""
    properties = holding.machine(machine)
    assert properties["StateMachineName"] == f"Keyhop-{machine}"
    assert properties["StateMachineType"] == "STANDARD"
    assert properties["TracingConfiguration"] == {"Enabled": True}
    logging = properties["LoggingConfiguration"]
    assert (logging["Level"], logging["IncludeExecutionData"]) == ("ERROR", False)
    groups = holding.of_type("AWS::Logs::LogGroup").values()
    names = [group["Properties"]["LogGroupName"] for group in groups]
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


@pytest.mark.parametrize("where", STATES)
def test_every_state_says_in_the_console_what_it_is_for(where: tuple[str, str]):
    assert STATES[where]["Comment"].endswith(".")


@pytest.mark.parametrize("level", LEVELS)
def test_every_state_leads_to_an_end(level: str):
    for name, state in LEVELS[level]["States"].items():
        ends = state["Type"] in ("Succeed", "Fail") or state.get("End")
        assert targets_of(state) or ends, name


@pytest.mark.parametrize("where", RETRYING)
def test_a_retry_names_its_errors(where: tuple[str, str]):
    """A retry of everything would try a wrong input, or a table's absence, over and over."""
    for rule in STATES[where]["Retry"]:
        assert rule["ErrorEquals"]
        wrong = {"States.ALL", "States.TaskFailed", "Exception", NO_SUCH_ERROR}
        assert not wrong & set(rule["ErrorEquals"])
        if rule["ErrorEquals"] != [NO_ROOM]:
            assert rule["MaxAttempts"] <= 10


@pytest.mark.parametrize("where", RETRYING)
def test_no_room_in_lambda_is_waited_out(where: tuple[str, str]):
    """A map of more children than the account, or a reservation, serves: most wait for their turn.

    For hours, each five minutes at most; as an error of its own, so that it takes no other's
    attempts. A retry is a state transition, and paid for.
    """
    state = STATES[where]
    if "lambda:invoke" in state.get("Resource", ""):
        rule = state["Retry"][0]
        assert rule["ErrorEquals"] == [NO_ROOM]
        mean_delay = rule["MaxDelaySeconds"] / 2
        assert rule["MaxAttempts"] * mean_delay > 8 * 3600
        retries_a_minute = 1_000 * 60 / mean_delay
        assert retries_a_minute <= 400, "of a thousand that wait"


def test_a_function_that_was_idle_for_weeks_is_waited_for():
    """In every machine. Lambda needs up to two minutes; each rule has attempts of its own."""
    invoking = {
        (path.name, name): state
        for path in DEFINITIONS.glob("*.asl.json")
        for name, state in states_in(json.loads(definition(path.name.removesuffix(".asl.json"))))
        if "lambda:invoke" in state.get("Resource", "")
    }
    assert {file for file, _ in invoking} == {path.name for path in DEFINITIONS.glob("*.asl.json")}
    for where, state in invoking.items():
        (rule,) = [one for one in state["Retry"] if {*NOT_READY} & {*one["ErrorEquals"]}]
        assert {*rule["ErrorEquals"]} == {*NOT_READY}, where
        waited = [rule["IntervalSeconds"] * rule["BackoffRate"] ** n for n in range(6)]
        assert (rule["MaxAttempts"], sum(waited)) == (6, 315), where


@pytest.mark.parametrize("where", RETRYING)
def test_no_task_waits_for_ever(where: tuple[str, str]):
    """A lost answer would hold an execution for three years, as AWS's default is."""
    state = STATES[where]
    if state["Type"] == "Task":
        assert state["TimeoutSeconds"] <= 90 * 24 * 3600


@pytest.mark.parametrize("where", RETRYING)
def test_whatever_is_not_retried_is_caught(where: tuple[str, str]):
    """Where nothing catches, the task's own error is the run's: these two are the last word. What a
    source fails with, their common state catches."""
    of_a_branch = [name for one in SOURCES["Branches"] for name, _ in states_in(one)]
    if where[1] not in ("CleanUp", "NoteFailure", *of_a_branch):
        assert STATES[where]["Catch"][-1]["ErrorEquals"] == ["States.ALL"]


def test_every_error_of_ours_in_a_definition_exists():
    """Lambda reports an exception by its class's name: a renamed class would no longer match."""
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
def test_jobs_differ_in_their_task_and_in_who_works(
    sharded: Deployed, machine: str, task: str, worker: str
):
    substitutions = sharded.machine(machine)["DefinitionSubstitutions"]
    assert (substitutions["Task"], substitutions["ResultsBucket"]) == (task, BUCKET)
    invoked = {name: substitutions[f"{name}Arn"] for name in FUNCTIONS}
    functions = {**{name: name for name in FUNCTIONS}, "ScanSegments": worker}
    assert invoked == {name: function_arn(f"Keyhop-{one}") for name, one in functions.items()}
    assert OF_RUNS["PlanRun"]["Parameters"]["Payload"]["task"] == "${Task}"


def test_a_state_its_function_and_its_substitution_have_one_name():
    tasks = {name for name, state in OF_RUNS.items() if state["Type"] == "Task"}
    assert tasks == {*FUNCTIONS, "NoteFailure", "RaiseAlarm"}
    for name in FUNCTIONS:
        assert OF_RUNS[name]["Parameters"]["FunctionName"] == f"${{{name}Arn}}"


def test_plan_run_knows_how_many_workers_a_reservation_serves(scheduled: Deployed, plain: Deployed):
    assert scheduled.environment("PlanRun")["KEYHOP_MOST_WORKERS"] == "20"
    assert "KEYHOP_MOST_WORKERS" not in plain.environment("PlanRun")


def test_the_map_keeps_what_the_run_promises():
    """A list with a hole is no list. The plan decides how many workers run at once. The children
    are executions of their own, which may loop. The map's own output is limited to 256 KiB: the
    manifest is made from the commits. The roles know the map by its label.
    """
    fields = ("ToleratedFailurePercentage", "MaxConcurrencyPath", "ResultPath", "Label")
    assert [MAP[field] for field in fields] == [0, "$.maxConcurrency", None, MAP_LABEL]
    others = {"ToleratedFailureCount", "ToleratedFailurePercentagePath", "MaxConcurrency"}
    assert not others & MAP.keys()
    config = MAP["ItemProcessor"]["ProcessorConfig"]
    assert config == {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    for state in (MAP["ItemReader"], MAP["ResultWriter"], OF_RUNS["NoteFailure"]):
        assert state["Parameters"]["Bucket"] == "${ResultsBucket}"
    assert MAP["ItemReader"]["Parameters"]["Key.$"].startswith("$.")
    assert MAP["ResultWriter"]["Parameters"]["Prefix.$"].startswith("$.")


@pytest.mark.parametrize("where", RETRYING)
def test_step_functions_waits_for_a_function_longer_than_it_lives(
    sharded: Deployed, reported: Deployed, where: tuple[str, str]
):
    state = STATES[where]
    if "lambda:invoke" in state.get("Resource", ""):
        name = state["Parameters"]["FunctionName"].removeprefix("${").removesuffix("Arn}")
        workers = ("ScanSegments", "WalkSegments") if name == "ScanSegments" else (name,)
        template = reported if where[0] == report.DEFINITION else sharded
        longest = max(template.function(worker)["Timeout"] for worker in workers)
        assert longest < state["TimeoutSeconds"] <= longest + 60


@pytest.mark.parametrize(
    ("file", "name"), [("manage", "Walk"), ("manage", "Verify"), ("report", "Sample")]
)
def test_a_walk_may_take_as_long_as_its_files_are_there(plain: Deployed, file: str, name: str):
    """113 hours are not the longest: a billion sentinels at the default rate are 23 days."""
    rules = plain.only("AWS::S3::Bucket")["Properties"]["LifecycleConfiguration"]["Rules"]
    (days,) = {rule["ExpirationInDays"] for rule in rules if "ExpirationInDays" in rule}
    assert STATES[file, name]["TimeoutSeconds"] == days * 24 * 3600


def test_a_redrive_of_a_failed_run_goes_back_to_its_groups():
    """A redrive starts at the state that failed: that must be one from which the run goes on."""
    assert OF_RUNS["CleanUp"]["Type"] == "Task"
    assert OF_RUNS["CleanUp"]["Next"] == "ScanGroups"
    (catch,) = OF_RUNS["CleanUp"]["Catch"]
    caught = {*catch["ErrorEquals"]}
    assert all(OF_AWS.fullmatch(error) for error in caught), "and none that CleanUp fails with"
    assert not caught & {"States.ALL", "States.TaskFailed"}, "which the run's own errors are"
    assert caught >= {*OF_LAMBDA, *CRASHED, *NOT_READY, NO_ROOM}


def test_a_redrive_is_known_by_the_number_that_was_noted_before_it():
    """The state that notes it succeeds, so a redrive does not enter it again."""
    leading = [name for name, state in OF_RUNS.items() if "RaiseAlarm" in targets_of(state)]
    assert leading == ["PlanRun", "WasItScheduled", "CountRedrives"]
    count = OF_RUNS["CountRedrives"]
    assert (count["Type"], count["ResultPath"]) == ("Pass", "$.failedAfter")
    assert count["Parameters"] == {"redrives.$": "$$.Execution.RedriveCount"}


def test_a_failed_run_ends_with_its_own_error_and_a_cause_that_is_no_json():
    """By the token of its state: of an exception Lambda would make JSON. The run's error is never
    one that the state retries."""
    clean_up = OF_RUNS["CleanUp"]
    assert clean_up["Resource"].endswith(":::lambda:invoke.waitForTaskToken")
    assert clean_up["Parameters"]["Payload"]["token.$"] == "$$.Task.Token"
    retried = {error for rule in clean_up["Retry"] for error in rule["ErrorEquals"]}
    assert all(OF_AWS.fullmatch(error) for error in retried)


# --- builds, verifications and removals of key indexes


def test_each_machine_does_its_own_action_and_starts_walks(kept: Deployed):
    for machine, (action, *_) in MACHINES.items():
        assert kept.machine(machine)["DefinitionSubstitutions"] == {
            "Partition": "aws",
            "Namespace": "Keyhop",
            "Service": SERVICE,
            "Machine": machine,
            "Action": action,
            "ManageIndexArn": function_arn("Keyhop-ManageIndex"),
            "WalkKeyIndexesArn": states_arn("stateMachine:Keyhop-WalkKeyIndexes"),
        }


@pytest.mark.parametrize("action", [action for action, *_ in MACHINES.values()])
def test_a_step_names_an_action_and_a_step_that_the_function_knows(action: str):
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


def test_a_walk_is_a_run_that_is_waited_for():
    """.sync:2: the state's result is the run's output, and its failure is the run's."""
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
        # A removal may walk again, if a keeper has still put a sentinel.
        ("IsFinished", {**REMOVAL, "rounds": 2}, ["Settle", "Walk", "IsToBeVerified", "Finish"]),
    ],
)
def test_what_follows_a_step_is_what_it_says(choice: str, state: dict[str, Any], path: list[str]):
    assert follow(choice, state, len(path)) == path


def follow(name: str, state: Mapping[str, Any], steps: int) -> list[str]:
    """The states after `name`, if none of them changes what the choices read."""
    found = []
    for _ in range(steps):
        at = MANAGE["States"][name]
        name = next_of(at, state) if at["Type"] == "Choice" else at["Next"]
        found.append(name)
    return found


def next_of(choice: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    for rule in choice["Choices"]:
        field = rule["Variable"].removeprefix("$.")
        if rule.get("IsPresent") and field in state:
            return str(rule["Next"])
        if "StringEquals" in rule and state.get(field) == rule["StringEquals"]:
            return str(rule["Next"])
    return str(choice["Default"])


# --- drains


def test_a_step_gets_the_executions_own_input(sharded: Deployed):
    """Of the last step it only hears whether this drain has begun: it asks the metadata itself."""
    assert MOVE["Parameters"]["Payload"] == {"request.$": "$$.Execution.Input", "last.$": "$"}
    substitutions = sharded.machine("DrainShards")["DefinitionSubstitutions"]
    assert substitutions["MoveShardsArn"] == function_arn("Keyhop-MoveShards")


def test_a_drain_that_failed_looks_failed():
    """With the sentence of the error as its cause; only the end of a drain is a success."""
    states = DRAIN["States"]
    ends = {name: state["Type"] for name, state in states.items() if not targets_of(state)}
    failed = dict.fromkeys(("CalledOff", "Refused", "Broken", "BrokenOff"), "Fail")
    assert ends == {"Drained": "Succeed", **failed}
    assert {rule["Next"] for rule in MOVE["Catch"]} == {"WhyItFailed", "RaiseAlarm"}
    assert states["Refused"]["CausePath"] == "$.exception.errorMessage"


def test_a_drain_ends_when_it_is_done_and_waits_otherwise():
    states = DRAIN["States"]
    choice = states["IsDrained"]
    follows = {rule["StringEquals"]: rule["Next"] for rule in choice["Choices"]}
    assert follows == {"done": "Drained", "called off": "CalledOff"}
    assert {rule["Variable"] for rule in choice["Choices"]} == {"$.action"}
    assert choice["Default"] == "Wait"
    assert (states["Wait"]["SecondsPath"], states["Wait"]["Next"]) == ("$.seconds", "MoveShards")


def test_what_the_choice_reads_is_what_the_function_answers():
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
        assert state["seconds"] >= 1, "a drain that gets nowhere must not spin"


# --- reports


def test_all_sources_are_looked_at_at_once_beside_the_sample():
    """Then probes, advice and the page, each by what those before have left in the run's files."""
    begin = [one["StartAt"] for one in SOURCES["Branches"]]
    assert begin == ["Insights", "Stream", "IsSampled"]
    assert (SOURCES["Type"], SOURCES["Catch"][-1]["ErrorEquals"]) == ("Parallel", ["States.ALL"])
    path, name = [], REPORT["StartAt"]
    while name != "Finished":
        state = REPORT["States"][name]
        path.append(name)
        name = state.get("Next") or state["Default"]
    assert path == ["Plan", "IsDryRun", "Sources", "Probe", "Advise", "Render", "IsGoodEnough"]


def test_each_step_of_a_report_is_one_that_the_function_knows():
    from keyhop.report.steps import STEPS

    named = {
        name: state["Parameters"]["Payload"]["step"]
        for (file, name), state in STATES.items()
        if file == report.DEFINITION and "Payload" in state.get("Parameters", {})
    }
    assert named == {name: name.lower() for name in named}
    assert {*named.values()} == {*STEPS}


def test_a_table_that_is_not_sampled_is_reported_on_all_the_same():
    branch = SOURCES["Branches"][2]["States"]
    given = {"dryRun": False, "sample": {"table": "Orders"}}
    (rule,) = branch["IsSampled"]["Choices"]
    assert (rule["Variable"], rule["IsPresent"], rule["Next"]) == ("$.sample", True, "Sample")
    assert "sample" in given
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
        for one in value.values() if isinstance(value, dict) else value:
            yield from strings_in(one)
