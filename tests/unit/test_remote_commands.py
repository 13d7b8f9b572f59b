"""--remote of each, report, index and shards drain: the state machine that starts, its input."""

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from keyhop.errors import CannotStart
from keyhop.public.deployment import MACHINES, Deployment, OpenStack

from testing.databases import keyhop

ARN = "arn:aws:states:eu-west-1:123456789012:stateMachine:Keyhop-"
BEGAN = datetime(2026, 11, 22, 8, 0, tzinfo=UTC)


class States:
    """Step Functions, whose executions have this output as soon as they are started."""

    def __init__(self) -> None:
        self.meta = SimpleNamespace(endpoint_url="http://127.0.0.1:1")
        self.started: list[tuple[str, Any]] = []
        self.output: Any = {"says": "done"}

    def start_execution(self, *, stateMachineArn: str, input: str, name: str) -> dict[str, Any]:  # noqa: N803
        self.started.append((stateMachineArn.removeprefix(ARN), json.loads(input)))
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


class Files:
    """S3, as far as the address of a run's files needs it."""


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> States:
    states = States()
    outputs = {output: f"{ARN}{name}" for name, output in MACHINES.items()}
    clients = {"stepfunctions": states, "s3": Files()}
    stack = OpenStack("Keyhop", {**outputs, "ResultsBucketName": "b"}, clients.__getitem__)
    monkeypatch.setattr("keyhop.cli.runs_actions.open_stack", lambda name, endpoint: stack)
    return states


PUT = {"sk": "#feature", "plan": 1.5}


@pytest.fixture
def item(tmp_path: Path) -> str:
    (tmp_path / "item.json").write_text(json.dumps(PUT))
    return str(tmp_path / "item.json")


@pytest.mark.parametrize(
    ("arguments", "machine", "given"),
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
    states: States, item: str, arguments: list[str], machine: str, given: dict[str, Any]
) -> None:
    words = [item if word == "ITEM" else word for word in arguments]
    yes = [] if words[0] == "report" else ["--yes"]
    started = keyhop(*words, *yes, "--remote", "--name", "first")
    assert (started.status, started.lines) == (0, ["first"]), started.err
    assert "To follow it: keyhop runs show first --follow" in started.err
    guard = {"guard": "none"} if "--guard" in arguments else {}
    assert states.started == [(machine, {"table": "TTT", **given, **guard})]


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
def test_it_asks_before_a_deployment_writes(
    states: States, item: str, arguments: list[str], act: str
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
def test_what_writes_nothing_or_was_begun_before_does_not_ask(
    states: States, arguments: list[str]
) -> None:
    assert keyhop(*arguments, "--remote").status == 0
    assert len(states.started) == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["each", "TTT", "--delete", "-o", "x"], "--output is for work on this machine"),
        (["report", "TTT", "--code", "src"], "--code is for work on this machine"),
        (["report", "TTT", "--format", "html"], "--format html does not work with --remote"),
        (["index", "build", "TTT", "--resume", "x"], "--resume is for work on this machine"),
        (["shards", "drain", "TTT", "/f", "--call-off"], "--call-off is for work on this machine"),
        (["each", "TTT", "--delete", "--guard", "look"], "--guard and --overwrite are for --put"),
        (["report", "TTT", "--exhaustive", "--control-plane-only"], "give one of them"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_started(
    states: States, arguments: list[str], says: str
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
    states: States, arguments: list[str], output: dict[str, Any], status: int
) -> None:
    states.output = output
    ended = keyhop(*arguments, "--remote", "--follow", "--format", "json")
    assert ended.status == status
    assert json.loads(ended.out)["result"] == output


def test_an_item_keeps_its_digits_or_is_refused(states: States, tmp_path: Path) -> None:
    (tmp_path / "exact.json").write_text('{"sk": "a", "n": 0.1, "whole": 12.0}')
    (tmp_path / "long.json").write_text('{"sk": "a", "n": 0.12345678901234567890123}')
    words = ("each", "TTT", "--yes", "--remote", "--put")
    assert keyhop(*words, str(tmp_path / "exact.json")).status == 0
    assert states.started[0][1]["put"] == {"sk": "a", "n": 0.1, "whole": 12}
    refused = keyhop(*words, str(tmp_path / "long.json"))
    assert (refused.status, len(states.started)) == (2, 1)
    assert 'such as {"N": "0.12345678901234567890123"}' in refused.err


@pytest.mark.parametrize(
    ("machine", "given"),
    [
        ("ForEachKey", {"table": "TTT", "putt": {}}),
        ("ReportKeys", {"table": "TTT", "since": "yesterday"}),
        ("BuildKeyIndex", {"table": "TTT", "maxWriteRate": 0}),
        ("VerifyKeyIndex", {"table": "TTT", "repair": "no"}),
        ("RemoveKeyIndex", {"table": "TTT", "sweeep": True}),
    ],
)
def test_python_refuses_a_wrong_input_before_it_starts_a_run(
    states: States, machine: str, given: dict[str, Any]
) -> None:
    outputs = {**{output: f"{ARN}{name}" for name, output in MACHINES.items()}}
    stack = OpenStack("Keyhop", outputs, {"stepfunctions": states}.__getitem__)
    with pytest.raises(CannotStart, match="The input is wrong"):
        Deployment(stack).start(given, machine=machine)
    assert states.started == []
