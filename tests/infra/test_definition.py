"""The state machine's definition: what a run's promises rest on."""

import ast
import json
import re
from typing import Any

import pytest

from infra.enumeration import DEFINITION, MAP_LABEL
from infra.functions import LAMBDAS
from tests.infra.conftest import deployed, stack_of
from tests.infra.template import BUCKET, FUNCTIONS, Deployed, states_in

TEXT = DEFINITION.read_text()
RUN = json.loads(TEXT)
STATES = dict(states_in(RUN))
MAP = STATES["ScanGroups"]
TASKS = {name: state for name, state in STATES.items() if state["Type"] == "Task"}
NO_ROOM = "Lambda.TooManyRequestsException"
OF_AWS = re.compile(r"(States|Lambda|Sandbox|Runtime|S3)\.\w+")


def names_in(text: str) -> set[str]:
    return set(re.findall(r"\$\{(\w+)\}", text))


def retries() -> list[tuple[str, dict[str, Any]]]:
    return [(name, retry) for name, state in STATES.items() for retry in state.get("Retry", ())]


def test_the_file_is_json_as_it_stands():
    """So that editors, linters and tests read it; names stand only inside strings."""
    strings = json.dumps([value for _, value in _strings(RUN)])
    assert names_in(TEXT) == names_in(strings)
    assert TEXT.count("${") == strings.count("${")


def test_every_name_of_the_definition_has_a_substitution_and_none_is_left_over(
    template: Deployed,
):
    substitutions = template.state_machine["DefinitionSubstitutions"]
    assert set(substitutions) == names_in(TEXT)
    assert substitutions["ResultsBucket"] == BUCKET
    assert all(substitutions.values())


def test_the_template_holds_the_definition_of_the_file(template: Deployed):
    assert json.loads(template.state_machine["DefinitionString"]) == RUN


def test_the_machine_is_one_that_can_be_redriven(template: Deployed):
    """Only standard machines keep a history to go on from."""
    assert template.state_machine["StateMachineType"] == "STANDARD"


def test_a_state_its_function_and_its_substitution_have_one_name():
    for name in FUNCTIONS:
        assert STATES[name]["Parameters"]["FunctionName"] == f"${{{name}Arn}}"
    assert set(TASKS) == {*FUNCTIONS, "NoteFailure"}


def test_every_task_retries_and_so_does_the_map():
    for name, state in {**TASKS, "ScanGroups": MAP}.items():
        assert state["Retry"], name


@pytest.mark.parametrize(("state", "retry"), retries())
def test_a_retry_names_its_errors(state: str, retry: dict[str, Any]):
    """A retry of everything would try a wrong input, or a table's absence, over and over."""
    assert retry["ErrorEquals"]
    assert not {"States.ALL", "States.TaskFailed", "Exception"} & set(retry["ErrorEquals"])
    if retry["ErrorEquals"] != [NO_ROOM]:
        assert retry["MaxAttempts"] <= 10


def test_no_room_in_lambda_is_waited_out():
    """A map of more children than the account, or a reservation, serves: most wait for their turn.

    For hours, each a minute at most; as an error of its own, so that it takes no other's attempts.
    """
    for name, state in TASKS.items():
        if name != "NoteFailure":
            rule = state["Retry"][0]
            assert rule["ErrorEquals"] == [NO_ROOM], name
            assert rule["MaxAttempts"] * rule["MaxDelaySeconds"] / 2 > 8 * 3600, name


def test_plan_run_knows_how_many_workers_a_reservation_serves():
    reserved = deployed(stack_of({"tables": "Flights", "reservedConcurrency": "20"}))
    assert reserved.function("PlanRun")["Environment"]["Variables"]["KEYHOP_MOST_WORKERS"] == "20"
    unlimited = deployed(stack_of({"tables": "Flights"}))
    assert "KEYHOP_MOST_WORKERS" not in unlimited.function("PlanRun")["Environment"]["Variables"]


def test_whatever_is_not_retried_is_caught():
    """Where nothing catches, the task's own error is the run's: these two are the last word."""
    for name, state in {**TASKS, "ScanGroups": MAP}.items():
        if name not in ("CleanUp", "NoteFailure"):
            assert state["Catch"][-1]["ErrorEquals"] == ["States.ALL"], name


def test_every_error_of_ours_in_the_definition_exists():
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
    assert named - classes == set()


def test_a_list_with_a_hole_is_no_list():
    assert MAP["ToleratedFailurePercentage"] == 0
    assert "ToleratedFailureCount" not in MAP
    assert "ToleratedFailurePercentagePath" not in MAP


def test_the_children_are_executions_of_their_own_that_may_loop():
    config = MAP["ItemProcessor"]["ProcessorConfig"]
    assert config == {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}


def test_the_plan_decides_how_many_workers_run_at_once():
    assert MAP["MaxConcurrencyPath"] == "$.maxConcurrency"
    assert "MaxConcurrency" not in MAP


def test_groups_come_from_the_results_bucket_and_results_go_there():
    assert MAP["ItemReader"]["Parameters"]["Bucket"] == "${ResultsBucket}"
    assert MAP["ItemReader"]["Parameters"]["Key.$"].startswith("$.")
    assert MAP["ResultWriter"]["Parameters"]["Bucket"] == "${ResultsBucket}"
    assert MAP["ResultWriter"]["Parameters"]["Prefix.$"].startswith("$.")
    assert STATES["NoteFailure"]["Parameters"]["Bucket"] == "${ResultsBucket}"


def test_the_maps_own_output_is_dropped():
    """It is limited to 256 KiB; the manifest is made from the commits."""
    assert MAP["ResultPath"] is None


def test_the_roles_know_the_map_by_its_label():
    assert MAP["Label"] == MAP_LABEL


def test_step_functions_waits_for_a_worker_longer_than_the_worker_lives(template: Deployed):
    assert STATES["ScanSegments"]["TimeoutSeconds"] > template.function("ScanSegments")["Timeout"]


def test_a_redrive_of_a_failed_run_goes_back_to_its_groups():
    """A redrive starts at the state that failed: that must be one from which the run goes on."""
    assert STATES["CleanUp"]["Type"] == "Task"
    assert STATES["CleanUp"]["Next"] == "ScanGroups"
    assert "Catch" not in STATES["CleanUp"]


@pytest.mark.parametrize("level", [RUN, MAP["ItemProcessor"]], ids=["run", "child"])
def test_every_state_is_reached_and_every_target_exists(level: dict[str, Any]):
    states = level["States"]
    targets = {level["StartAt"]}
    for state in states.values():
        targets |= {state[field] for field in ("Next", "Default") if field in state}
        targets |= {rule["Next"] for rule in (*state.get("Catch", ()), *state.get("Choices", ()))}
    assert targets == set(states)


def test_errors_are_logged_and_keys_are_not(template: Deployed):
    """Keys can be personal data; the history of an execution is for those who may read it."""
    logging = template.state_machine["LoggingConfiguration"]
    assert (logging["Level"], logging["IncludeExecutionData"]) == ("ERROR", False)
    assert template.state_machine["TracingConfiguration"] == {"Enabled": True}


def _strings(value: Any, path: str = "") -> list[tuple[str, str]]:
    if isinstance(value, str):
        return [(path, value)]
    if isinstance(value, dict):
        return [pair for key, one in value.items() for pair in _strings(one, f"{path}.{key}")]
    if isinstance(value, list):
        return [pair for one in value for pair in _strings(one, path)]
    return []
