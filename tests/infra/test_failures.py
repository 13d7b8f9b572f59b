"""Tests that a failed execution ends with an error and a sentence, whatever form its cause has.

The causes have the forms of the documentation: Lambda encodes an exception as JSON, and `.sync:2`
an execution that has ended (with Error and Cause only if it has them). The cause of a refused call
is plain text.
"""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from keyhop.errors import CannotStart

from infra.machines import definition
from tests.infra.asl import End, end_of
from tests.infra.template import states_in

FILES = ("job", "manage", "drain", "report")
STATES = {file: json.loads(definition(file))["States"] for file in FILES}
INPUT = {"table": "Orders", "maxWriteRate": 500}
CONTEXT = {"Execution": {"Input": INPUT, "RedriveCount": 2}}
SENTENCE = 'No table "Orders": create it.'
EXCEPTION = json.dumps(
    {"errorMessage": SENTENCE, "errorType": "TableNotFound", "requestId": "r", "stackTrace": []}
)
TIMED_OUT = '{"errorType":"Sandbox.Timedout","errorMessage":"RequestId: r Error: Task timed out"}'
UNKNOWN = (
    "The cause could not be determined because Lambda did not return an error type. Returned "
    'payload: {"errorMessage": "RequestId: r Process exited before completing request"}'
)
REFUSED = "Rate exceeded (Service: Lambda, Status Code: 429, Request ID: r)"
BROKEN_OFF = STATES["job"]["BrokenOff"]["Cause"]
RUN = "arn:aws:states:eu-west-1:123456789012:execution:Keyhop-WalkKeyIndexes:w"


def names_of(error: type[Exception]) -> set[str]:
    """Return the names of an error class and all its subclasses."""
    return {error.__name__}.union(*(names_of(subclass) for subclass in error.__subclasses__()))


TASKS = [
    (file, name)
    for file in FILES
    for name, state in STATES[file].items()
    if "RaiseAlarm" in [rule["Next"] for rule in state.get("Catch", ())]
]
REFUSING_TASKS = [(file, name) for file, name in TASKS if file != "report" or name == "Plan"]
"""The tasks that check the input, or whether the table has changed since then."""
WALKS = [("manage", "Walk"), ("manage", "Verify"), ("report", "Sources")]
REFUSALS = sorted(names_of(CannotStart) - {"BaselineUnreadable", "UnfinishedRun"})
"""The two excluded errors are about local files, which no execution has."""


def failing(
    file: str, name: str, output: dict[str, Any], context: Mapping[str, Any] = CONTEXT
) -> End:
    """Return the end of an execution after a state has caught an error output."""
    for catch in STATES[file][name]["Catch"]:
        if {output["Error"], "States.ALL"} & {*catch["ErrorEquals"]}:
            assert catch["ResultPath"] == "$"
            return end_of(STATES[file], catch["Next"], output, context)
    raise AssertionError("no rule catches all other errors")


def test_these_tasks_end_an_execution_if_they_fail():
    assert TASKS == [
        ("job", "PlanRun"),
        ("manage", "Prepare"),
        ("manage", "Finish"),
        ("drain", "MoveShards"),
        ("report", "Plan"),
        ("report", "Probe"),
        ("report", "Advise"),
        ("report", "Render"),
    ]


@pytest.mark.parametrize(("file", "name"), TASKS)
@pytest.mark.parametrize(
    ("error", "cause", "message"),
    [
        ("TableNotFound", EXCEPTION, SENTENCE),
        ("KeyError", EXCEPTION, SENTENCE),
        ("Sandbox.Timedout", TIMED_OUT, "RequestId: r Error: Task timed out"),
        ("Lambda.Unknown", UNKNOWN, UNKNOWN),
        ("Lambda.TooManyRequestsException", REFUSED, REFUSED),
        ("TableNotFound", EXCEPTION[:-9], EXCEPTION[:-9]),
    ],
    ids=["refusal", "bug", "timed-out", "unknown", "refused", "cut"],
)
def test_a_failed_function_ends_the_execution_with_its_error_and_sentence(
    file: str, name: str, error: str, cause: str, message: str
):
    end = failing(file, name, {"Error": error, "Cause": cause})
    assert (end.error, end.cause) == (error, message)


@pytest.mark.parametrize(("file", "name"), REFUSING_TASKS)
def test_a_refused_input_ends_with_its_reason_and_raises_no_alarm(file: str, name: str):
    for error in REFUSALS:
        end = failing(file, name, {"Error": error, "Cause": EXCEPTION})
        assert (end.error, end.cause, end.alarms) == (error, SENTENCE, 0)


@pytest.mark.parametrize(
    ("file", "name"), [(file, name) for file, name in REFUSING_TASKS if file != "drain"]
)
@pytest.mark.parametrize(("scheduled", "alarms"), [(True, 1), (False, 0)])
def test_a_refused_input_of_a_schedule_raises_the_alarm(
    file: str, name: str, scheduled: bool, alarms: int
):
    """Nobody reads the answer, but a missing or too expensive table needs attention."""
    context = {"Execution": {"Input": {**INPUT, "scheduled": scheduled}, "RedriveCount": 0}}
    end = failing(file, name, {"Error": "TableNotFound", "Cause": EXCEPTION}, context)
    assert (end.cause, end.alarms) == (SENTENCE, alarms)


@pytest.mark.parametrize(("file", "name"), TASKS)
@pytest.mark.parametrize("error", ["NotPermitted", "GaveUp", "BudgetSpent", "KeyError"])
def test_any_other_failure_of_a_step_raises_the_alarm_once(file: str, name: str, error: str):
    assert failing(file, name, {"Error": error, "Cause": EXCEPTION}).alarms == 1


@pytest.mark.parametrize("name", ["ScanGroups", "FinishRun", "VerifyRun"])
def test_a_failed_run_raises_the_alarm_before_its_clean_up(name: str):
    """CleanUp may fail too. A redrive begins there, and does not raise the alarm again."""
    states = STATES["job"]
    (catch,) = states[name]["Catch"]
    assert (catch["ErrorEquals"], catch["Next"]) == (["States.ALL"], "CountRedrives")
    assert states["CountRedrives"]["Next"] == "RaiseAlarm"
    rule, *other_rules = states[states["RaiseAlarm"]["Next"]]["Choices"]
    assert not other_rules
    assert (rule["Variable"], rule["Next"]) == (states["CountRedrives"]["ResultPath"], "CleanUp")


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        ({"Error": "GaveUp", "Cause": EXCEPTION}, ("GaveUp", SENTENCE)),
        ({"Error": "States.Runtime", "Cause": REFUSED}, ("States.Runtime", REFUSED)),
        ({"Error": "States.Timeout"}, ("States.Timeout", BROKEN_OFF)),
    ],
)
def test_a_clean_up_that_cannot_run_does_not_hide_the_error_of_the_run(
    failure: dict[str, str], expected: tuple[str, str]
):
    """After weeks without a failure, CleanUp is the function that is most likely to be idle."""
    (catch,) = STATES["job"]["CleanUp"]["Catch"]
    assert "Lambda.CodeArtifactUserPendingException" in catch["ErrorEquals"]
    assert catch["ResultPath"] is None
    end = end_of(STATES["job"], catch["Next"], {"run": "r", "failure": failure}, CONTEXT)
    assert (end.error, end.cause, end.alarms) == (*expected, 0)


@pytest.mark.parametrize("file", FILES)
def test_the_alarm_is_a_metric_of_the_deployment_and_the_machine(file: str):
    state = STATES[file]["RaiseAlarm"]
    assert state["Resource"] == "arn:${Partition}:states:::aws-sdk:cloudwatch:putMetricData"
    (metric,) = state["Parameters"]["MetricData"]
    assert state["Parameters"]["Namespace"] == "${Namespace}"
    assert (metric["MetricName"], metric["Value"]) == ("NeedsAPerson", 1)
    dimensions = {dimension["Name"]: dimension["Value"] for dimension in metric["Dimensions"]}
    assert dimensions == {"service": "${Service}", "machine": "${Machine}"}


@pytest.mark.parametrize(("file", "name"), TASKS)
def test_a_step_without_a_cause_ends_with_its_error(file: str, name: str):
    end = failing(file, name, {"Error": "States.Timeout"})
    assert end.error == "States.Timeout"
    assert "start it again with the same input" in end.cause


@pytest.mark.parametrize(("file", "name"), WALKS)
@pytest.mark.parametrize(
    ("error", "cause"),
    [
        ("StepFunctions.ExecutionLimitExceededException", "The maximum number of executions"),
        ("StepFunctions.ExecutionLimitExceeded", "Too many (Service: AWSStepFunctions; r)"),
        ("StepFunctions.AWSStepFunctionsException", "User: r is not authorized to perform: ..."),
        ("States.TaskFailed", "Something else than JSON"),
    ],
)
def test_a_walk_that_cannot_be_started_ends_with_the_error_of_step_functions(
    file: str, name: str, error: str, cause: str
):
    """These causes are not JSON, and States.TaskFailed is a wildcard for them."""
    end = failing(file, name, {"Error": error, "Cause": cause})
    assert (end.error, end.cause, end.alarms) == (error, cause, 1)


def nested(status: str, **more: str) -> dict[str, str]:
    """Return the error output of a state that has waited for an execution (.sync:2)."""
    cause = {
        **more,
        "ExecutionArn": RUN,
        "Input": json.dumps({"walk": {"kind": "build"}}),
        "InputDetails": {"Included": True},
        "Name": "w",
        "RedriveCount": 0,
        "StartDate": 1763700000000,
        "StateMachineArn": RUN.replace(":execution:", ":stateMachine:").removesuffix(":w"),
        "Status": status,
        "StopDate": 1763700001000,
    }
    return {"Error": "States.TaskFailed", "Cause": json.dumps(cause)}


@pytest.mark.parametrize(("file", "name"), WALKS)
@pytest.mark.parametrize("sentence", [SENTENCE, EXCEPTION])
def test_a_failed_walk_ends_with_its_error_its_cause_and_an_input(
    file: str, name: str, sentence: str
):
    end = failing(file, name, nested("FAILED", Error="NotPermitted", Cause=sentence))
    assert (end.state, end.error, end.alarms) == ("RunFailed", "NotPermitted", 1)
    assert f"The run {RUN} over the table has failed: {sentence} To go on" in end.cause
    assert json.loads(end.cause.partition("start again with ")[2]) == INPUT


@pytest.mark.parametrize(("file", "name"), WALKS)
@pytest.mark.parametrize(
    ("status", "more"),
    [("ABORTED", {}), ("TIMED_OUT", {}), ("ABORTED", {"Error": "by hand"}), ("FAILED", {})],
)
def test_a_walk_that_was_stopped_or_timed_out_is_reported(
    file: str, name: str, status: str, more: dict[str, str]
):
    """It has neither Error nor Cause: a path to them would end in States.Runtime."""
    end = failing(file, name, nested(status, **more))
    assert (end.state, end.error) == ("RunEnded", "RunEnded")
    assert f"The run {RUN} over the table is {status}" in end.cause
    assert end.alarms == (0 if status == "ABORTED" else 1), "a stop by a user raises no alarm"
    assert json.loads(end.cause.partition("start again with ")[2]) == INPUT


@pytest.mark.parametrize(("file", "name"), WALKS)
def test_a_walk_that_outlasts_its_state_is_reported(file: str, name: str):
    assert failing(file, name, {"Error": "States.Timeout"}).error == "States.Timeout"


def test_a_group_that_fails_without_a_cause_is_a_failed_group():
    states = STATES["job"]["ScanGroups"]["ItemProcessor"]["States"]
    end = end_of(states, "GroupFailed", {"failure": {"Error": "States.Timeout"}})
    assert end.error == "States.Timeout"


SAMPLE = STATES["report"]["Sources"]["Branches"][2]["States"]


@pytest.mark.parametrize(
    ("output", "last_state"),
    [
        (nested("FAILED", Error="NotPermitted", Cause=SENTENCE), "Denied"),
        (nested("FAILED", Error="GaveUp", Cause=SENTENCE), "SampleFailed"),
        (nested("FAILED", Error="GaveUp", Cause='"Error":"NotPermitted"'), "SampleFailed"),
        (nested("ABORTED"), "SampleFailed"),
        ({"Error": "StepFunctions.ExecutionLimitExceeded", "Cause": "Too many"}, "SampleFailed"),
        ({"Error": "States.TaskFailed"}, "SampleBrokenOff"),
    ],
)
def test_only_a_denied_sample_leaves_the_report_without_one(
    output: dict[str, str], last_state: str
):
    """Any other failure reaches the states after Sources unchanged."""
    (catch,) = SAMPLE["Sample"]["Catch"]
    assert catch["ErrorEquals"] == ["States.TaskFailed"]
    state_input = {"at": 1.0, catch["ResultPath"].removeprefix("$."): output}
    if last_state != "Denied":
        end = end_of(SAMPLE, catch["Next"], state_input)
        assert (end.state, end.error) == (last_state, output["Error"])
        assert end.cause == output.get("Cause", end.cause)
        return
    denied = {"Type": "Fail", "Error": "", "CausePath": "$.sampling.execution.Cause"}
    end = end_of({**SAMPLE, "Denied": denied}, catch["Next"], state_input)
    assert (end.state, end.cause) == (last_state, SENTENCE)
    assert SAMPLE["Denied"]["Parameters"]["Payload"]["state.$"] == "$"


def test_no_other_state_reads_a_cause():
    """The tests above therefore cover all states that do."""
    readers = {
        (file, name)
        for file in FILES
        for name, state in states_in(json.loads(definition(file)))
        if "Cause)" in json.dumps({**state, "Branches": ()})
        or state.get("CausePath", "").endswith("Cause")
    }
    assert {name for _, name in readers} == {
        *("ExplainRefusal", "ExplainRun", "Broken"),
        *("ReadTheFailure", "SampleFailed"),
    }


# --- RekeyCutOver: ends by the answer of its step, and by its failures

CUTOVER = json.loads(definition("rekey-cutover"))["States"]


@pytest.mark.parametrize(
    ("action", "error"), [("refused", "GateShut"), ("called off", "CalledOff")]
)
def test_a_cutover_that_did_not_happen_fails_with_its_reason_and_no_alarm(action: str, error: str):
    end = end_of(CUTOVER, "WhatFollows", {"action": action, "why": "claims: 2 items"})
    assert (end.error, end.cause, end.alarms) == (error, "claims: 2 items", 0)


def test_every_failure_but_an_invalid_input_calls_the_cutover_off():
    (of_input, rest) = CUTOVER["CutOver"]["Catch"]
    assert (of_input["ErrorEquals"], of_input["Next"]) == (["InvalidInput"], "WhyItFailed")
    assert (rest["ErrorEquals"], rest["Next"]) == (["States.ALL"], "Abort")


@pytest.mark.parametrize(("error", "alarms"), [("TableNotFound", 0), ("KeyError", 1)])
def test_a_failure_is_reported_after_the_cutover_was_called_off(error: str, alarms: int):
    failure = {"Error": error, "Cause": EXCEPTION, "aborted": {"action": "called off"}}
    end = end_of(CUTOVER, "HasItTurned", failure)
    assert (end.error, end.cause, end.alarms) == (error, SENTENCE, alarms)


def test_a_completed_cutover_succeeds_although_a_step_has_failed():
    next_state = next(rule["Next"] for rule in CUTOVER["HasItTurned"]["Choices"])
    assert CUTOVER[next_state]["Type"] == "Succeed"


def test_a_cutover_that_cannot_be_called_off_raises_the_alarm():
    (catch,) = CUTOVER["Abort"]["Catch"]
    failure = {"Error": "Lambda.Unknown", "Cause": "no memory", "abort": {"Error": "x"}}
    end = end_of(CUTOVER, catch["Next"], failure)
    assert (end.error, end.alarms) == ("Lambda.Unknown", 1)
