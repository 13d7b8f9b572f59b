"""Each call that was recorded end to end, and each right of the template, held against each other.

iam-simulate judges, where the deployment is the end-to-end tests' own, and where it has more.
"""

import json
import re
from functools import cache
from typing import Any, NamedTuple

import pytest

from testing.iam.simulator import simulator
from testing.marks import prove
from tests.infra import recorded
from tests.infra.conftest import deployed, stack_of
from tests.infra.recorded import REKEY, TABLES
from tests.infra.template import Deployed
from tests.infra.unrecorded import ALL_FUNCTIONS, MACHINES, by_services, elsewhere

OWNERS = (*ALL_FUNCTIONS, *MACHINES)
RECORDED = recorded.read()
UNRECORDED = [*by_services(), *elsewhere()]


class Right(NamedTuple):
    """why: the name of its statement."""

    owner: str
    action: str
    why: str


ARGUED: dict[Right, str] = {}
"""Rights that no call needs, recorded or not: why they are there all the same."""


def named(table: Any) -> dict[str, Any]:
    """A table of the end-to-end tests with the names of its keys."""
    given = {"table": table} if isinstance(table, str) else table
    return given if "sharding" in given else {**given, "keyAttributes": ["pk", "sk"]}


CONTEXTS: dict[str, dict[str, Any]] = {
    "as tested": {"tables": TABLES, "rekey": REKEY},
    "with key attributes": {"tables": [named(table) for table in TABLES], "rekey": REKEY},
    "among others": {
        "tables": [*(f"Another-table-of-{number}" for number in range(40)), *TABLES],
        "rekey": REKEY,
    },
}


@pytest.fixture(params=["as tested", *map(prove, ("with key attributes", "among others"))])
def template(request: pytest.FixtureRequest) -> Deployed:
    return deployed(stack_of(CONTEXTS[request.param]))


@pytest.mark.parametrize("owner", OWNERS)
def test_no_recorded_call_is_denied(template: Deployed, owner: str) -> None:
    judged = {call: template.judge(call) for call in RECORDED if call.caller == owner}
    assert [call for call, decision in judged.items() if not decision.allowed] == []
    # A condition on a key that no such request has would never be met.
    assert [call for call, decision in judged.items() if decision.ignored] == []


def test_no_call_that_is_not_recorded_is_denied(template: Deployed) -> None:
    assert [call for call, _ in UNRECORDED if not template.judge(call).allowed] == []
    assert not {call for call, _ in UNRECORDED} & {*RECORDED}, "it is recorded after all"


def test_every_condition_is_on_a_key_that_is_recorded(template: Deployed) -> None:
    conditions = {
        key
        for owner in OWNERS
        for statement in template.statements(owner)
        for keys in statement.get("Condition", {}).values()
        for key in keys
    }
    calls = [*RECORDED, *(call for call, _ in UNRECORDED)]
    assert conditions <= {key for call in calls for key in json.loads(call.context)}


@cache
def used() -> frozenset[Right]:
    """The rights that a call needs."""
    needed = [*RECORDED, *(call for call, _ in UNRECORDED)]
    return frozenset(
        Right(call.caller, call.action, reason(sid))
        for call in needed
        for sid in as_tested().judge(call).by
    )


def reason(sid: str) -> str:
    """A statement's name without its number, if it is one of several for many tables."""
    return re.sub(r"\d*(And\d+)?$", "", sid)


def as_tested() -> Deployed:
    return deployed(stack_of(CONTEXTS["as tested"]))


def rights(owner: str) -> set[Right]:
    return {
        Right(owner, action, reason(statement.get("Sid", "")))
        for statement in as_tested().statements(owner)
        for action in statement["Action"]
    }


@pytest.mark.parametrize("owner", OWNERS)
def test_a_right_that_no_call_needs_is_argued(owner: str) -> None:
    assert rights(owner) - used() == {right for right in ARGUED if right.owner == owner}


@pytest.mark.parametrize("owner", OWNERS)
def test_a_right_that_is_taken_away_is_missed(owner: str) -> None:
    """No recorded call is allowed by chance: without the statements that allow it, it is denied."""
    statements = as_tested().statements(owner)
    for call in RECORDED:
        if call.caller == owner:
            needed = as_tested().judge(call).by
            kept = [one for one in statements if one.get("Sid", "") not in needed]
            assert not simulator().decide(kept, call).allowed
