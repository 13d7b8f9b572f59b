"""Check `--remote` and `keyhop runs`: flags, inputs, and how a run is found and followed."""

import json
import shlex
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from keyhop.checks import names_of
from keyhop.cli.main import command
from keyhop.cli.options import Options
from keyhop.cli.runs_actions import command_of, follow, input_of, run_json, run_lines
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.errors import (
    AwsRefused,
    CannotStart,
    KeyhopError,
    NoCredentials,
    NotPermitted,
    RunConflict,
)
from keyhop.keys.request import KeysInput
from keyhop.public import deployment as stacks
from keyhop.public.deployment import (
    MACHINES,
    Deployment,
    Executions,
    OpenStack,
    Run,
    RunProgress,
    open_stack,
    start_execution,
)

from testing.databases import keyhop

MACHINE = "arn:aws:states:eu-west-1:123456789012:stateMachine:Keyhop-EnumerateKeys"
MACHINES_BEGIN = MACHINE.removesuffix("EnumerateKeys")
CUTOVER = MACHINE.replace("EnumerateKeys", "RekeyCutOver")
ARN = MACHINE.replace(":stateMachine:", ":execution:") + ":first"
BEGAN = datetime(2026, 11, 22, 8, 0, tzinfo=UTC)
FULL = {
    "table": "Orders",
    "index": "by-day",
    "method": "skip",
    "segments": 9,
    "maxConcurrency": 3,
    "maxReadRate": 12.5,
    "maxReadUnits": 1e6,
    "maxCost": 2.5,
    "fileFormat": "csv",
}
OTHERS: list[dict[str, Any]] = [
    {"table": "Orders", "method": "index", "accept": ["stale-index"]},
    {"table": "Orders", "logical": True, "separator": "#", "metadata": "shards"},
    {"table": "Orders", "resume": "a+run", "verifyShare": 0.25},
    {"table": "arn:aws:dynamodb:eu-west-1:123456789012:table/Orders", "dryRun": True},
]


def options_of(*arguments: str) -> Options:
    parent = command.make_context("keyhop", ["keys"])
    keys = command.commands["keys"]
    return Options(**keys.make_context("keys", ["--remote", *arguments], parent).params)


def keys_input(options: Options) -> dict[str, Any]:
    return input_of(KeysInput, options, verify_share=options.verify)


@pytest.mark.parametrize("arguments", [FULL, *OTHERS])
def test_the_command_for_an_input_means_that_input(arguments: dict[str, Any]) -> None:
    assert keys_input(options_of(*shlex.split(command_of(arguments))[2:])) == arguments


def test_every_field_of_an_input_has_a_flag() -> None:
    """The only exception is the field by which a schedule says that no user started the run."""
    fields = {name for run_input in (FULL, *OTHERS) for name in run_input}
    assert fields == {*names_of(KeysInput)} - {"scheduled"}
    assert command_of({"table": "Orders", "scheduled": True}) == "keyhop keys Orders --remote"


class States:
    """Step Functions with one execution. Each call returns or raises the next answer."""

    def __init__(self, *answers: Any, url: str = "https://states.eu-west-1.amazonaws.com") -> None:
        self.answers = iter(answers)
        self.meta = SimpleNamespace(endpoint_url=url)

    def describe_execution(self, executionArn: str) -> dict[str, Any]:  # noqa: N803
        answer = next(self.answers)
        if isinstance(answer, BaseException):
            raise answer
        return {
            "executionArn": executionArn,
            "status": "RUNNING",
            "startDate": BEGAN,
            "input": '{"table": "Orders"}',
            **answer,
        }

    def start_execution(self, **arguments: Any) -> Any:
        raise next(self.answers)

    def stop_execution(self, executionArn: str) -> Any:  # noqa: N803
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        assert (executionArn, answer) == (ARN, "stop")


def refusal(code: str, operation: str = "DescribeExecution") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, operation)


def executions(*answers: Any, **more: Any) -> Executions:
    return Executions(States(*answers, **more), MACHINE)


class Clients:
    """The clients of a deployment: Step Functions, and S3 without a run."""

    def __init__(self, *answers: Any) -> None:
        self.states = States(*answers)

    def __call__(self, service: str) -> Any:
        return {"stepfunctions": self.states}.get(service) or SimpleNamespace(
            get_object=self.refuse
        )

    def refuse(self, **arguments: Any) -> Any:
        raise refusal("NoSuchKey", "GetObject")


def stack(*answers: Any) -> OpenStack:
    machines = {"StateMachineArn": MACHINE, "RekeyCutOverArn": CUTOVER}
    return OpenStack("Keyhop", {"ResultsBucketName": "results", **machines}, Clients(*answers))


def running(arn: str = ARN) -> Run:
    return executions({}).describe(arn)


def test_ctrl_c_stops_following_and_says_how_to_return(capsys: pytest.CaptureFixture[str]) -> None:
    assert follow(stack({}, KeyboardInterrupt()), running(), quiet=False) is None
    assert "The run goes on" in (err := capsys.readouterr().err)
    assert "keyhop runs show first --follow" in err
    assert "To stop it: keyhop runs stop first\n" in err


def test_a_run_that_is_going_on_is_stopped() -> None:
    answers = {}, "stop", {"status": "ABORTED", "stopDate": BEGAN}
    assert Deployment(stack(*answers)).stop("first").status == "ABORTED"


@pytest.mark.parametrize(
    "answers",
    [
        [{"status": "SUCCEEDED", "stopDate": BEGAN}],
        [{}, "stop", {"status": "SUCCEEDED", "stopDate": BEGAN}],  # it ended in the meantime
    ],
)
def test_a_run_that_has_ended_is_not_stopped(answers: list[Any]) -> None:
    with pytest.raises(RunConflict, match="'first' has ended already"):
        Deployment(stack(*answers)).stop("first")


def test_a_cutover_is_not_stopped_while_writes_may_wait(capsys: pytest.CaptureFixture[str]) -> None:
    cutover = running(ARN.replace("EnumerateKeys", "RekeyCutOver"))
    with pytest.raises(RunConflict, match="Abort a cutover with a rollback"):
        Deployment(stack({})).stop(cutover)
    assert follow(stack({}, KeyboardInterrupt()), cutover, quiet=False) is None
    assert "runs stop" not in capsys.readouterr().err


def test_a_stop_that_is_not_permitted_is_refused_in_a_sentence() -> None:
    refused = stack({}, refusal("AccessDeniedException", "StopExecution"))
    with pytest.raises(NotPermitted):
        Deployment(refused).stop("first")


def test_an_error_while_following_says_that_the_run_continues() -> None:
    error = EndpointConnectionError(endpoint_url="https://states")
    with pytest.raises(KeyhopError, match="The run goes on: keyhop runs show first --follow"):
        follow(stack({}, error), running(), quiet=True)


@pytest.mark.parametrize(
    ("url", "first"), [("https://states.aws", 5.0), ("http://127.0.0.1:80", 0.2)]
)
def test_a_long_run_is_looked_at_less_often(url: str, first: float) -> None:
    pauses: list[float] = []
    looks = [{}] * 1_000
    executions(*looks, {"status": "SUCCEEDED"}, url=url).follow(ARN, wait=pauses.append)
    assert pauses[0] == first
    assert pauses[-1] == 60.0
    assert sorted(pauses) == pauses
    if first == 5.0:
        passed = 0.0
        looked = sum(1 for pause in pauses if (passed := passed + pause) <= 3_600)
        assert 200 < looked < 220, "requests of an hour"


@pytest.mark.parametrize(
    ("error", "expected", "says"),
    [
        (refusal("ExecutionAlreadyExists"), RunConflict, "named 'first' already"),
        (refusal("AccessDeniedException", "StartExecution"), NotPermitted, "StartExecution"),
        (
            refusal("ExecutionLimitExceeded", "StartExecution"),
            AwsRefused,
            "AWS refused the request",
        ),
        (refusal("InvalidSignatureException", "StartExecution"), NoCredentials, "sign in again"),
    ],
)
def test_a_refused_start_is_raised(error: Exception, expected: type[Exception], says: str) -> None:
    with pytest.raises(expected, match=says):
        start_execution(States(error), MACHINE, {"table": "Orders"}, "first", Endpoint())


class CloudFormation:
    def __init__(self, *names: str, may_list: bool = True) -> None:
        self.names = names
        self.may_list = may_list
        self.meta = SimpleNamespace(region_name="eu-west-1")

    def __call__(self, service: str, endpoint: Endpoint) -> Any:
        return self

    def described(self, name: str) -> dict[str, Any]:
        outputs = [{"OutputKey": "ResultsBucketName", "OutputValue": "results"}]
        outputs.append({"OutputKey": "StateMachineArn", "OutputValue": MACHINE})
        ours = {"Outputs": outputs} if name.startswith("Key") else {}
        return {"StackName": name, "StackStatus": "CREATE_COMPLETE", **ours}

    def describe_stacks(self, StackName: str) -> dict[str, Any]:  # noqa: N803
        if StackName not in self.names:
            raise refusal("ValidationError", "DescribeStacks")
        return {"Stacks": [self.described(StackName)]}

    def get_paginator(self, _operation: str) -> Any:
        if not self.may_list:
            raise refusal("AccessDenied", "DescribeStacks")
        return self

    def paginate(self) -> Iterable[dict[str, Any]]:
        return [{"Stacks": [self.described(name)]} for name in self.names]


@pytest.mark.parametrize(
    ("names", "may_list", "says"),
    [
        (("Keyhops", "Other"), True, "did you mean Keyhops?"),
        (("Key-orders-of-the-north", "Keys1", "x"), True, "is there as Key-orders-of-the-north, K"),
        (("Other",), True, r"deploy it first \(npx cdk deploy\)"),
        (("Keyhops",), False, r"deploy it first \(npx cdk deploy\)"),
    ],
)
def test_a_missing_stack_is_reported_with_the_existing_ones(
    names: tuple[str, ...], may_list: bool, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stacks, "aws_client", CloudFormation(*names, may_list=may_list))
    with pytest.raises(CannotStart, match=rf"no stack 'Keyhop' in region eu-west-1: .*{says}"):
        open_stack("Keyhop", Endpoint())


def test_a_stack_without_keyhop_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "aws_client", CloudFormation("Other", "Keyhop"))
    assert open_stack("Keyhop", Endpoint()).outputs["ResultsBucketName"] == "results"
    with pytest.raises(CannotStart, match=r"Stack 'Other' \(CREATE_COMPLETE\) has no output"):
        open_stack("Other", Endpoint())


@pytest.mark.parametrize("name", ["..", "a/b", "x" * 81, "", "a\x1b[2J"])
def test_an_invalid_name_of_a_run_is_refused_before_a_call(name: str) -> None:
    with pytest.raises(CannotStart, match="is not the name of a run"):
        Deployment(stack()).show(name)


def failed(cause: str = "", **more: Any) -> Run:
    end = BEGAN + timedelta(minutes=5)
    return executions({"status": "FAILED", "stopDate": end, "cause": cause, **more}).describe(ARN)


def lines_of(run: Run) -> list[str]:
    return [*run_lines(run_json(run))]


def half_done(run: Run, **more: Any) -> Run:
    progress = RunProgress(
        keys=1,
        expected=None,
        share=0.5,
        segments=2,
        segments_done=1,
        read_units=0.5,
        write_units=0.0,
        throttles=0,
        requests=1,
        prices="today",
        **more,
    )
    return replace(run, progress=progress)


def test_a_failed_run_is_shown_with_the_commands_that_go_on() -> None:
    run_input = '{"table": "Orders", "resume": "first", "maxReadUnits": 80}'
    cause = f"Too little. Redrive the execution, or: start again with {run_input}."
    lines = lines_of(failed(cause, error="BudgetSpent", redriveStatus="REDRIVABLE"))
    assert lines[0] == "first: EnumerateKeys of Orders, failed after 5 min"
    assert f"  BudgetSpent: {cause}" in lines
    assert "  go on by  keyhop keys Orders --remote --resume first --max-read-units 80" in lines
    redrive = f"aws stepfunctions redrive-execution --execution-arn {ARN}"
    assert f"  or        {redrive}" in lines


def test_a_run_that_was_stopped_goes_on_by_its_name() -> None:
    lines = lines_of(half_done(failed(status="ABORTED")))
    assert lines[0] == "first: EnumerateKeys of Orders, stopped after 5 min"
    assert "  done      50%: 1 of 2 segments, 1 key" in lines
    assert "  go on by  keyhop keys Orders --remote --resume first" in lines


@pytest.mark.parametrize(
    "cause", ["", 'Too little: start again with {"table": "Orders", "resume": "first"}.']
)
def test_a_failed_execution_that_no_command_starts_goes_on_by_the_aws_cli(cause: str) -> None:
    machine = MACHINE.replace("EnumerateKeys", "ForEachKey")
    status = "FAILED" if cause else "ABORTED"
    arn = ARN.replace("EnumerateKeys", "ForEachKey")
    lines = lines_of(half_done(failed(cause, status=status, executionArn=arn)))
    assert lines[0].startswith("first: ForEachKey of Orders, ")
    (command,) = (line for line in lines if line.startswith("  go on by  "))
    *start, text = shlex.split(command.removeprefix("  go on by  "))
    flags = ["--state-machine-arn", machine, "--input"]
    assert start == ["aws", "stepfunctions", "start-execution", *flags]
    assert json.loads(text) == {"table": "Orders", "resume": "first"}


def test_text_from_a_service_adds_no_escape_codes_and_no_lines() -> None:
    cause = 'bad\x1b[2J\nrun start again with {"table": "a\\u001b[2J; rm -rf ~"}'
    text = "\n".join(lines_of(failed(cause, error="Odd\x07")))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert failed("start again with [1]").next_input is None
    assert "'a?[2J; rm -rf ~'" in text, "one word, for a shell"


@pytest.mark.parametrize(
    ("partition", "host"),
    [
        ("aws", "eu-west-1.console.aws.amazon.com"),
        ("aws-cn", "console.amazonaws.cn"),
        ("aws-us-gov", "console.amazonaws-us-gov.com"),
    ],
)
def test_the_console_link_belongs_to_the_partition(partition: str, host: str) -> None:
    run = running(ARN.replace("arn:aws:", f"arn:{partition}:"))
    assert run.console.startswith(f"https://{host}/")


def test_a_running_run_is_shown_with_its_rate_and_remaining_time() -> None:
    began = datetime.now(UTC) - timedelta(minutes=10)
    run = half_done(replace(running(), started=began), read_rate=1.0, seconds_left=600.0)
    lines = lines_of(run)
    assert lines[0] == "first: EnumerateKeys of Orders, running for 10 min"
    assert "  rate      1.0 RRU/s, about 10 min left" in lines
    assert not [line for line in lines if "go on by" in line]


class Starts:
    """Step Functions, where an execution has its output as soon as it starts."""

    def __init__(self) -> None:
        self.meta = SimpleNamespace(endpoint_url="http://127.0.0.1:1")
        self.started: list[tuple[str, Any]] = []
        self.output: Any = {"says": "done"}

    def start_execution(self, *, stateMachineArn: str, input: str, name: str) -> dict[str, Any]:  # noqa: N803
        self.started.append((stateMachineArn.removeprefix(MACHINES_BEGIN), json.loads(input)))
        return {
            "executionArn": f"{stateMachineArn.replace(':stateMachine:', ':execution:')}:{name}"
        }

    def describe_execution(self, *, executionArn: str) -> dict[str, Any]:  # noqa: N803
        return {
            "executionArn": executionArn,
            "status": "SUCCEEDED",
            "startDate": BEGAN,
            "stopDate": BEGAN,
            "input": json.dumps(self.started[-1][1]),
            "output": json.dumps(self.output),
        }

    def stack(self, *_: Any) -> OpenStack:
        outputs = {output: f"{MACHINES_BEGIN}{name}" for name, output in MACHINES.items()}
        clients = {"stepfunctions": self, "s3": object()}
        return OpenStack("Keyhop", {**outputs, "ResultsBucketName": "b"}, clients.__getitem__)


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> Starts:
    states = Starts()
    monkeypatch.setattr("keyhop.cli.runs_actions.open_stack", states.stack)
    return states


PUT = {"sk": "#feature", "plan": 1.5}


@pytest.fixture
def item(tmp_path: Path) -> str:
    (tmp_path / "item.json").write_text(json.dumps(PUT))
    return str(tmp_path / "item.json")


@pytest.mark.parametrize(
    ("arguments", "machine", "fields"),
    [
        (["each", "T" * 3, "--put", "ITEM", "--guard", "none"], "ForEachKey", {"put": PUT}),
        (
            ["each", "TTT", "--delete", "--item", "sk=OLD", "--keys", "first"],
            "ForEachKey",
            {"delete": True, "item": {"sk": "OLD"}, "keys": "first"},
        ),
        (
            ["each", "TTT", "--resume", "first", "--max-concurrency", "3", "--max-cost", "2"],
            "ForEachKey",
            {"resume": "first", "maxConcurrency": 3, "maxCost": 2.0},
        ),
        (["report", "TTT"], "ReportKeys", {}),
        (
            ["report", "TTT", "--stream", "15m", "--candidate", "PK={a}", "--baseline", "old"],
            "ReportKeys",
            {"stream": 900.0, "candidates": ["PK={a}"], "baseline": "old"},
        ),
        (["report", "TTT", "--accept", "throttled"], "ReportKeys", {"accept": ["throttled"]}),
        (
            ["index", "build", "TTT", "--region", "eu-west-1", "--max-cost", "9"],
            "BuildKeyIndex",
            {"maxCost": 9.0},
        ),
        (
            ["index", "verify", "TTT", "--no-repair", "--grace", "3", "--max-read-rate", "9"],
            "VerifyKeyIndex",
            {"repair": False, "graceSeconds": 3.0, "maxReadRate": 9.0},
        ),
        (["index", "remove", "TTT", "--sweep"], "RemoveKeyIndex", {"sweep": True}),
        (
            ["shards", "drain", "TTT", "/f.txt", "--shards", "2"],
            "DrainShards",
            {"key": "/f.txt", "shards": 2},
        ),
        (
            ["shards", "drain", "TTT", "AP8=", "--base64", "--shards", "2"],
            "DrainShards",
            {"key": {"B": "AP8="}, "typed": True, "shards": 2},
        ),
    ],
)
def test_a_command_starts_its_state_machine_with_its_flags(
    states: Starts, item: str, arguments: list[str], machine: str, fields: dict[str, Any]
) -> None:
    words = [item if word == "ITEM" else word for word in arguments]
    yes = [] if words[0] == "report" else ["--yes"]
    started = keyhop(*words, *yes, "--remote", "--name", "first")
    assert (started.status, started.lines) == (0, ["first"]), started.err
    assert "To follow it: keyhop runs show first --follow" in started.err
    guard = {"guard": "none"} if "--guard" in arguments else {}
    assert states.started == [(machine, {"table": "TTT", **fields, **guard})]


@pytest.mark.parametrize(
    ("arguments", "act"),
    [
        (["each", "TTT", "--put", "ITEM"], "put the item into each collection of TTT"),
        (["each", "TTT", "--undo", "old"], "delete what the run has put into TTT"),
        (["each", "TTT", "--invoke", "arn:x"], "pass on each key of TTT"),
        (["index", "build", "TTT"], "build the key index of TTT"),
        (["index", "verify", "TTT"], "verify, and repair, the key index of TTT"),
        (["index", "remove", "TTT"], "remove the key index of TTT"),
        (["shards", "drain", "TTT", "/f", "--shards", "1"], "drain /f to 1 shard"),
    ],
)
def test_a_command_asks_before_a_deployment_writes(
    states: Starts, item: str, arguments: list[str], act: str
) -> None:
    words = [item if word == "ITEM" else word for word in arguments]
    refused = keyhop(*words, "--remote")
    assert (refused.status, states.started) == (2, [])
    assert (
        f"This would {act}, but there is no terminal on which to confirm it: add --yes."
        in refused.err
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "TTT"],
        ["index", "verify", "TTT", "--no-repair"],
        ["index", "build", "TTT", "--dry-run"],
        ["each", "TTT", "--resume", "first"],
    ],
)
def test_read_only_and_resumed_runs_do_not_ask(states: Starts, arguments: list[str]) -> None:
    assert keyhop(*arguments, "--remote").status == 0
    assert len(states.started) == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["keys", "TTT", "--accept", "stale-index"], "--accept stale-index is for --method index"),
        (
            ["keys", "TTT", "--resume", "x", "--dry-run"],
            "--resume and --dry-run cannot be combined",
        ),
        (["keys", "TTT", "--resume", "../x"], "resume must be the id of a run"),
        (["keys", "TTT", "--max-read-rate", "0.5"], "maxReadRate must be"),
        (["keys", "no table!"], "table must be the name or the ARN"),
        (["each", "TTT", "--delete", "-o", "x"], "--output is for work on this machine"),
        (["report", "TTT", "--code", "src"], "--code is for work on this machine"),
        (["report", "TTT", "--format", "html"], "--format html does not work with --remote"),
        (["index", "build", "TTT", "--resume", "x"], "--resume is for work on this machine"),
        (["shards", "drain", "TTT", "/f", "--call-off"], "--call-off is for work on this machine"),
        (["each", "TTT", "--delete", "--guard", "look"], "--guard and --overwrite are for --put"),
        (["report", "TTT", "--exhaustive", "--control-plane-only"], "give one of them"),
    ],
)
def test_flags_that_do_not_fit_are_refused_before_a_start(
    states: Starts, arguments: list[str], says: str
) -> None:
    refused = keyhop(*arguments, "--remote")
    assert (refused.status, states.started) == (2, [])
    assert says in refused.err


@pytest.mark.parametrize(
    ("arguments", "output", "status"),
    [
        (["index", "verify", "TTT", "--no-repair"], {"verification": {"drift": 0}}, 0),
        (["index", "verify", "TTT", "--no-repair"], {"verification": {"drift": 2}}, 3),
        (["each", "TTT", "--resume", "x"], {"outcomes": {"put": 5, "there": 1}}, 0),
        (["each", "TTT", "--resume", "x"], {"outcomes": {"put": 5, "failed": 1}}, 3),
    ],
)
def test_with_follow_the_result_and_the_status_are_those_of_the_run(
    states: Starts, arguments: list[str], output: dict[str, Any], status: int
) -> None:
    states.output = output
    ended = keyhop(*arguments, "--remote", "--follow", "--format", "json")
    assert ended.status == status
    assert json.loads(ended.out)["result"] == output


def test_an_item_keeps_its_digits_or_is_refused(states: Starts, tmp_path: Path) -> None:
    (tmp_path / "exact.json").write_text('{"sk": "a", "n": 0.1, "whole": 12.0}')
    (tmp_path / "long.json").write_text('{"sk": "a", "n": 0.12345678901234567890123}')
    words = ("each", "TTT", "--yes", "--remote", "--put")
    assert keyhop(*words, str(tmp_path / "exact.json")).status == 0
    assert states.started[0][1]["put"] == {"sk": "a", "n": 0.1, "whole": 12}
    refused = keyhop(*words, str(tmp_path / "long.json"))
    assert (refused.status, len(states.started)) == (2, 1)
    assert 'such as {"N": "0.12345678901234567890123"}' in refused.err


@pytest.mark.parametrize(
    ("machine", "fields"),
    [
        ("ForEachKey", {"table": "TTT", "putt": {}}),
        ("ReportKeys", {"table": "TTT", "since": "yesterday"}),
        ("BuildKeyIndex", {"table": "TTT", "maxWriteRate": 0}),
        ("VerifyKeyIndex", {"table": "TTT", "repair": "no"}),
        ("RemoveKeyIndex", {"table": "TTT", "sweeep": True}),
    ],
)
def test_python_refuses_a_wrong_input_before_it_starts_a_run(
    states: Starts, machine: str, fields: dict[str, Any]
) -> None:
    with pytest.raises(CannotStart, match="The input is wrong"):
        Deployment(states.stack()).start(fields, machine=machine)
    assert states.started == []
