"""How an execution that fails ends: with an error and a sentence, whatever AWS says of the cause.

The forms of causes are those of the documentation: Lambda makes JSON of an exception, `.sync:2` of
an execution that has ended (with Error and Cause only if it has them), and a call that is refused
has a text.
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


def all_of(error: type[Exception]) -> set[str]:
    """The names of an error and all that are of its kind."""
    return {error.__name__}.union(*(all_of(one) for one in error.__subclasses__()))


TASKS = [
    (file, name)
    for file in FILES
    for name, state in STATES[file].items()
    if "RaiseAlarm" in [rule["Next"] for rule in state.get("Catch", ())]
]
REFUSING = [one for one in TASKS if one[0] != "report" or one[1] == "Plan"]
"""Those that look at what was asked for, or at what has become of the table meanwhile."""
WALKS = [("manage", "Walk"), ("manage", "Verify"), ("report", "Sources")]
REFUSALS = sorted(all_of(CannotStart) - {"BaselineUnreadable", "UnfinishedRun"})
"""Those two are of files, which no execution has: a report's file and a folder of a local run."""


def failing(
    file: str, name: str, output: dict[str, Any], context: Mapping[str, Any] = CONTEXT
) -> End:
    """From the output of an error that a state catches to the end of its execution."""
    for catch in STATES[file][name]["Catch"]:
        if {output["Error"], "States.ALL"} & {*catch["ErrorEquals"]}:
            assert catch["ResultPath"] == "$"
            return end_of(STATES[file], catch["Next"], output, context)
    raise AssertionError("nothing catches the rest")


def test_the_functions_whose_failure_ends_an_execution_are_known():
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
    ("error", "cause", "told"),
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
def test_a_function_that_fails_ends_with_its_error_and_its_sentence(
    file: str, name: str, error: str, cause: str, told: str
):
    ended = failing(file, name, {"Error": error, "Cause": cause})
    assert (ended.error, ended.cause) == (error, told)


@pytest.mark.parametrize(("file", "name"), REFUSING)
def test_what_was_asked_for_wrongly_is_told_and_raises_no_alarm(file: str, name: str):
    for error in REFUSALS:
        ended = failing(file, name, {"Error": error, "Cause": EXCEPTION})
        assert (ended.error, ended.cause, ended.alarms) == (error, SENTENCE, 0)


@pytest.mark.parametrize(
    ("file", "name"), [one for one in TASKS if one in REFUSING and one[0] != "drain"]
)
@pytest.mark.parametrize(("scheduled", "alarms"), [(True, 1), (False, 0)])
def test_a_refusal_of_a_schedules_input_is_nobodys_answer(
    file: str, name: str, scheduled: bool, alarms: int
):
    """Nobody waits for it: if a table is gone, or has grown too dear, somebody has to know."""
    context = {"Execution": {"Input": {**INPUT, "scheduled": scheduled}, "RedriveCount": 0}}
    ended = failing(file, name, {"Error": "TableNotFound", "Cause": EXCEPTION}, context)
    assert (ended.cause, ended.alarms) == (SENTENCE, alarms)


@pytest.mark.parametrize(("file", "name"), TASKS)
@pytest.mark.parametrize("error", ["NotPermitted", "GaveUp", "BudgetSpent", "KeyError"])
def test_any_other_failure_of_a_step_raises_the_alarm_once(file: str, name: str, error: str):
    assert failing(file, name, {"Error": error, "Cause": EXCEPTION}).alarms == 1


@pytest.mark.parametrize("name", ["ScanGroups", "FinishRun", "VerifyRun"])
def test_a_run_that_failed_raises_the_alarm_before_it_is_summed_up(name: str):
    """Whatever becomes of CleanUp; a redrive begins there, and does not raise it again."""
    states = STATES["job"]
    (catch,) = states[name]["Catch"]
    assert (catch["ErrorEquals"], catch["Next"]) == (["States.ALL"], "CountRedrives")
    assert states["CountRedrives"]["Next"] == "RaiseAlarm"
    rule, *others = states[states["RaiseAlarm"]["Next"]]["Choices"]
    assert not others
    assert (rule["Variable"], rule["Next"]) == (states["CountRedrives"]["ResultPath"], "CleanUp")


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        ({"Error": "GaveUp", "Cause": EXCEPTION}, ("GaveUp", SENTENCE)),
        ({"Error": "States.Runtime", "Cause": REFUSED}, ("States.Runtime", REFUSED)),
        ({"Error": "States.Timeout"}, ("States.Timeout", BROKEN_OFF)),
    ],
)
def test_a_clean_up_that_cannot_run_does_not_hide_the_runs_own_error(
    failure: dict[str, str], told: tuple[str, str]
):
    """After weeks without a failure, CleanUp is the function that is most likely to be idle."""
    (catch,) = STATES["job"]["CleanUp"]["Catch"]
    assert "Lambda.CodeArtifactUserPendingException" in catch["ErrorEquals"]
    assert catch["ResultPath"] is None
    ended = end_of(STATES["job"], catch["Next"], {"run": "r", "failure": failure}, CONTEXT)
    assert (ended.error, ended.cause, ended.alarms) == (*told, 0)


@pytest.mark.parametrize("file", FILES)
def test_the_alarm_is_a_metric_of_the_deployment_and_the_machine(file: str):
    state = STATES[file]["RaiseAlarm"]
    assert state["Resource"] == "arn:${Partition}:states:::aws-sdk:cloudwatch:putMetricData"
    (metric,) = state["Parameters"]["MetricData"]
    assert state["Parameters"]["Namespace"] == "${Namespace}"
    assert (metric["MetricName"], metric["Value"]) == ("NeedsAPerson", 1)
    dimensions = {one["Name"]: one["Value"] for one in metric["Dimensions"]}
    assert dimensions == {"service": "${Service}", "machine": "${Machine}"}


@pytest.mark.parametrize(("file", "name"), TASKS)
def test_a_step_that_tells_no_cause_ends_with_its_error(file: str, name: str):
    ended = failing(file, name, {"Error": "States.Timeout"})
    assert ended.error == "States.Timeout"
    assert "start it again with the same input" in ended.cause


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
def test_a_walk_that_cannot_be_started_ends_with_what_step_functions_says(
    file: str, name: str, error: str, cause: str
):
    """Their causes are no JSON, and States.TaskFailed is a wildcard for them."""
    ended = failing(file, name, {"Error": error, "Cause": cause})
    assert (ended.error, ended.cause, ended.alarms) == (error, cause, 1)


def nested(status: str, **more: str) -> dict[str, str]:
    """The error output of a state that has waited for an execution (.sync:2)."""
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
def test_a_walk_that_fails_hands_on_its_error_its_cause_and_an_input(
    file: str, name: str, sentence: str
):
    ended = failing(file, name, nested("FAILED", Error="NotPermitted", Cause=sentence))
    assert (ended.state, ended.error, ended.alarms) == ("RunFailed", "NotPermitted", 1)
    assert f"The run {RUN} over the table has failed: {sentence} To go on" in ended.cause
    assert json.loads(ended.cause.partition("start again with ")[2]) == INPUT


@pytest.mark.parametrize(("file", "name"), WALKS)
@pytest.mark.parametrize(
    ("status", "more"),
    [("ABORTED", {}), ("TIMED_OUT", {}), ("ABORTED", {"Error": "by hand"}), ("FAILED", {})],
)
def test_a_walk_that_was_stopped_or_timed_out_is_told(
    file: str, name: str, status: str, more: dict[str, str]
):
    """It has neither Error nor Cause: a path to them would end in States.Runtime."""
    ended = failing(file, name, nested(status, **more))
    assert (ended.state, ended.error) == ("RunEnded", "RunEnded")
    assert f"The run {RUN} over the table is {status}" in ended.cause
    assert ended.alarms == (0 if status == "ABORTED" else 1), "one's own stop is no alarm"
    assert json.loads(ended.cause.partition("start again with ")[2]) == INPUT


@pytest.mark.parametrize(("file", "name"), WALKS)
def test_a_walk_that_outlasts_its_state_is_told(file: str, name: str):
    assert failing(file, name, {"Error": "States.Timeout"}).error == "States.Timeout"


def test_a_group_that_fails_without_a_cause_is_a_failed_group():
    states = STATES["job"]["ScanGroups"]["ItemProcessor"]["States"]
    ended = end_of(states, "GroupFailed", {"failure": {"Error": "States.Timeout"}})
    assert ended.error == "States.Timeout"


SAMPLE = STATES["report"]["Sources"]["Branches"][2]["States"]


@pytest.mark.parametrize(
    ("output", "ends_at"),
    [
        (nested("FAILED", Error="NotPermitted", Cause=SENTENCE), "Denied"),
        (nested("FAILED", Error="GaveUp", Cause=SENTENCE), "SampleFailed"),
        (nested("FAILED", Error="GaveUp", Cause='"Error":"NotPermitted"'), "SampleFailed"),
        (nested("ABORTED"), "SampleFailed"),
        ({"Error": "StepFunctions.ExecutionLimitExceeded", "Cause": "Too many"}, "SampleFailed"),
        ({"Error": "States.TaskFailed"}, "SampleBrokenOff"),
    ],
)
def test_only_a_denied_sample_leaves_the_report_without_one(output: dict[str, str], ends_at: str):
    """Any other failure reaches the states after Sources as it is."""
    (catch,) = SAMPLE["Sample"]["Catch"]
    assert catch["ErrorEquals"] == ["States.TaskFailed"]
    given = {"at": 1.0, catch["ResultPath"].removeprefix("$."): output}
    if ends_at != "Denied":
        ended = end_of(SAMPLE, catch["Next"], given)
        assert (ended.state, ended.error) == (ends_at, output["Error"])
        assert ended.cause == output.get("Cause", ended.cause)
        return
    told = {"Type": "Fail", "Error": "", "CausePath": "$.sampling.execution.Cause"}
    ended = end_of({**SAMPLE, "Denied": told}, catch["Next"], given)
    assert (ended.state, ended.cause) == (ends_at, SENTENCE)
    assert SAMPLE["Denied"]["Parameters"]["Payload"]["state.$"] == "$"


def test_no_other_state_reads_a_cause():
    """So that what is shown here is all that there is to show."""
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


# --- RekeyCutOver: by what its step says, and by what has failed

CUTOVER = json.loads(definition("rekey-cutover"))["States"]


@pytest.mark.parametrize(
    ("action", "error"), [("refused", "GateShut"), ("called off", "CalledOff")]
)
def test_what_did_not_come_about_fails_with_its_reason_and_no_alarm(action: str, error: str):
    ended = end_of(CUTOVER, "WhatFollows", {"action": action, "why": "claims: 2 items"})
    assert (ended.error, ended.cause, ended.alarms) == (error, "claims: 2 items", 0)


def test_whatever_fails_calls_it_off_but_for_a_wrong_input_which_has_changed_nothing():
    (of_input, rest) = CUTOVER["CutOver"]["Catch"]
    assert (of_input["ErrorEquals"], of_input["Next"]) == (["InvalidInput"], "WhyItFailed")
    assert (rest["ErrorEquals"], rest["Next"]) == (["States.ALL"], "Abort")


@pytest.mark.parametrize(("error", "alarms"), [("TableNotFound", 0), ("KeyError", 1)])
def test_what_has_failed_is_told_after_it_was_called_off(error: str, alarms: int):
    failed = {"Error": error, "Cause": EXCEPTION, "aborted": {"action": "called off"}}
    ended = end_of(CUTOVER, "HasItTurned", failed)
    assert (ended.error, ended.cause, ended.alarms) == (error, SENTENCE, alarms)


def test_what_had_turned_is_done_although_a_step_has_failed():
    done = next(rule["Next"] for rule in CUTOVER["HasItTurned"]["Choices"])
    assert CUTOVER[done]["Type"] == "Succeed"


def test_what_cannot_be_called_off_needs_a_person():
    (catch,) = CUTOVER["Abort"]["Catch"]
    failed = {"Error": "Lambda.Unknown", "Cause": "no memory", "abort": {"Error": "x"}}
    ended = end_of(CUTOVER, catch["Next"], failed)
    assert (ended.error, ended.alarms) == ("Lambda.Unknown", 1)
