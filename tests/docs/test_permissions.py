"""docs/reference/permissions.md is what is made of the recorded calls, and of the template.

So are the policies that `keyhop permissions` prints.
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
    WAYS,
    calls_of,
    page,
    policies,
    policy,
    with_others,
)


def test_the_page_is_made_of_what_is_recorded() -> None:
    """Else `make sessions` writes it."""
    assert PAGE.read_text() == page(PAGE.read_text())


def test_the_policies_of_the_command_are_made_of_what_is_recorded() -> None:
    assert POLICIES.read_text() == policies()


def test_each_way_has_its_policy_in_the_page() -> None:
    assert re.findall(r"<!-- policy: ([\w ]+) -->", PAGE.read_text()) == [*WAYS]


@pytest.mark.parametrize("name", WAYS)
def test_a_policy_allows_the_recorded_calls(name: str) -> None:
    """With the names that they were recorded with."""
    text = json.dumps(policy(calls_of(WAYS[name])))
    for shown, recorded in (
        ("REGION", "eu-west-1"),
        ("ACCOUNT", "111122223333"),
        ("BUCKET", "the-results"),
        ("QUEUE", "the-failures"),
    ):
        text = text.replace(shown, recorded)
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
    found = keyhop.permissions(command, _table_of(command), **names)
    assert _refused(COMMANDS[command], found["Statement"]) == []


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "runs"])
def test_permissions_are_for_the_named_tables_only(command: str) -> None:
    found = keyhop.permissions(command, "Others", **NAMES | {"to": "OthersByDay"})
    calls = [*_recorded(COMMANDS[command])]
    refused = _refused(COMMANDS[command], found["Statement"])
    assert refused == [call for call in calls if ":table/" in call.resource]


def test_permissions_have_the_partition_of_the_region() -> None:
    (first, _) = keyhop.permissions("keys", "Orders", region="cn-north-1")["Statement"]
    assert first["Resource"] == ["arn:aws-cn:dynamodb:cn-north-1:*:table/Orders"]


@pytest.mark.parametrize(
    ("command", "names", "said"),
    [
        ("kess", {"table": "Orders"}, "Give one of keys, each"),
        ("keys", {}, "a name as `table`"),
        ("shards", {}, "a name as `table`"),
        ("rekey", {"table": "Orders"}, "a name as `to`"),
        ("keys", {"table": 'Orders", "*'}, "a name as `table`"),
    ],
)
def test_permissions_need_names(command: str, names: dict, said: str) -> None:
    with pytest.raises(CannotStart, match=said):
        keyhop.permissions(command, **names)


def test_the_command_prints_the_policy(capsys: pytest.CaptureFixture) -> None:
    assert main(["permissions", "keys", "--table", "Orders"]) == 0
    assert json.loads(capsys.readouterr().out) == keyhop.permissions("keys", "Orders")


def test_a_new_record_keeps_what_a_stack_of_fewer_state_machines_cannot_show() -> None:
    def calls(who: str, *resources: str) -> list[Call]:
        arn = "arn:aws:states:eu-west-1:111122223333"
        return [Call(who, "states:DescribeExecution", f"{arn}:{one}") for one in resources]

    lacking = calls("lists", "stateMachine:Keyhop-ForEachKey", "execution:Keyhop-ForEachKey:e1")
    gone = calls("lists", "stateMachine:Keyhop-Gone", "execution:Keyhop-EnumerateKeys:e1")
    gone.append(Call("lists", "s3:GetObject", "arn:aws:s3:::old"))
    recorded = {"lists": [[one.action, one.resource] for one in (*lacking, *gone)]}
    recorded["forgotten"] = recorded["lists"]
    new = calls("lists", "stateMachine:Keyhop-EnumerateKeys")
    assert with_others(new, recorded) == {*new, *lacking}


def _recorded(name: str) -> Iterator[Call]:
    return (Call("somebody", *one) for one in _as_documented(calls_of(WAYS[name])))


def _refused(name: str, statements: list) -> list[Call]:
    calls = [*_recorded(name)]
    assert calls
    return [call for call in calls if not simulator().decide(statements, call).allowed]


def _as_documented(calls: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """On the tables that the documents name."""
    for action, resource in calls:
        for name, shown in (("Keyhop-shards-Sharded", "Audit-shards"), ("Sharded", "Audit")):
            resource = resource.replace(f"table/{name}", f"table/{shown}")
        for name in ("Kept", "Reported"):
            resource = resource.replace(f"table/{name}", "table/Orders")
        yield action, resource
