"""Tests that docs/reference/permissions.md and the policies of `keyhop permissions` are current.

Both are generated from the recorded calls and from the template.
"""

import json
import re
from collections.abc import Iterable, Iterator

import keyhop
import pytest
from keyhop.cli.main import main
from keyhop.errors import CannotStart

from testing.iam.simulator import Call, simulator
from tests.docs.permissions import (
    COMMANDS,
    PAGE,
    POLICIES,
    SOURCES,
    calls_of,
    page,
    policies,
    policy,
    with_others,
)


def test_the_page_matches_the_recorded_calls() -> None:
    """If it does not, `make sessions` writes it."""
    assert PAGE.read_text() == page(PAGE.read_text())


def test_the_policies_of_the_command_match_the_recorded_calls() -> None:
    assert POLICIES.read_text() == policies()


def test_the_page_has_each_policy() -> None:
    assert re.findall(r"<!-- policy: ([\w ]+) -->", PAGE.read_text()) == [*SOURCES]


@pytest.mark.parametrize("name", SOURCES)
def test_a_policy_allows_the_recorded_calls(name: str) -> None:
    """The placeholders are replaced with the names in the record."""
    text = json.dumps(policy(calls_of(SOURCES[name])))
    for placeholder, recorded in (
        ("REGION", "eu-west-1"),
        ("ACCOUNT", "111122223333"),
        ("BUCKET", "the-results"),
        ("QUEUE", "the-failures"),
    ):
        text = text.replace(placeholder, recorded)
    statements = json.loads(text)["Statement"]
    assert _refused(name, statements) == []


NAMES = {
    "region": "eu-west-1",
    "account": "111122223333",
    "to": "OrdersByDay",
    "bucket": "the-results",
}


def _table_of(command: str) -> str:
    return "Audit" if command in ("shards", "writer", "reader") else "Orders"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("names", [NAMES, {"to": "OrdersByDay", "bucket": "the-*"}])
def test_permissions_allow_the_recorded_calls_of_a_command(command: str, names: dict) -> None:
    generated = keyhop.permissions(command, _table_of(command), **names)
    assert _refused(COMMANDS[command], generated["Statement"]) == []


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "runs"])
def test_permissions_are_only_for_the_given_tables(command: str) -> None:
    generated = keyhop.permissions(command, "Others", **NAMES | {"to": "OthersByDay"})
    calls = [*_recorded(COMMANDS[command])]
    refused = _refused(COMMANDS[command], generated["Statement"])
    assert refused == [call for call in calls if ":table/" in call.resource]


def test_permissions_have_the_partition_of_the_region() -> None:
    (first, _) = keyhop.permissions("keys", "Orders", region="cn-north-1")["Statement"]
    assert first["Resource"] == ["arn:aws-cn:dynamodb:cn-north-1:*:table/Orders"]


@pytest.mark.parametrize(
    ("command", "names", "message"),
    [
        ("kess", {"table": "Orders"}, "Give one of keys, each"),
        ("keys", {}, "a name as `table`"),
        ("shards", {}, "a name as `table`"),
        ("rekey", {"table": "Orders"}, "a name as `to`"),
        ("keys", {"table": 'Orders", "*'}, "a name as `table`"),
    ],
)
def test_permissions_need_names(command: str, names: dict, message: str) -> None:
    with pytest.raises(CannotStart, match=message):
        keyhop.permissions(command, **names)


def test_the_command_prints_the_policy(capsys: pytest.CaptureFixture) -> None:
    assert main(["permissions", "keys", "--table", "Orders"]) == 0
    assert json.loads(capsys.readouterr().out) == keyhop.permissions("keys", "Orders")


def test_a_new_record_keeps_calls_to_state_machines_that_the_stack_does_not_have() -> None:
    def calls(caller: str, *resources: str) -> list[Call]:
        arn = "arn:aws:states:eu-west-1:111122223333"
        return [Call(caller, "states:DescribeExecution", f"{arn}:{name}") for name in resources]

    kept_calls = calls("lists", "stateMachine:Keyhop-ForEachKey", "execution:Keyhop-ForEachKey:e1")
    removed = calls("lists", "stateMachine:Keyhop-Gone", "execution:Keyhop-EnumerateKeys:e1")
    removed.append(Call("lists", "s3:GetObject", "arn:aws:s3:::old"))
    recorded = {"lists": [[call.action, call.resource] for call in (*kept_calls, *removed)]}
    recorded["forgotten"] = recorded["lists"]
    new = calls("lists", "stateMachine:Keyhop-EnumerateKeys")
    assert with_others(new, recorded) == {*new, *kept_calls}


def _recorded(name: str) -> Iterator[Call]:
    return (Call("somebody", *call) for call in _as_documented(calls_of(SOURCES[name])))


def _refused(name: str, statements: list) -> list[Call]:
    calls = [*_recorded(name)]
    assert calls
    return [call for call in calls if not simulator().decide(statements, call).allowed]


def _as_documented(calls: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the calls with the names of the documents' tables."""
    for action, resource in calls:
        for name, documented in (("Keyhop-shards-Sharded", "Audit-shards"), ("Sharded", "Audit")):
            resource = resource.replace(f"table/{name}", f"table/{documented}")
        for name in ("Kept", "Reported"):
            resource = resource.replace(f"table/{name}", "table/Orders")
        yield action, resource
