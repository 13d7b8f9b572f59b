"""Tests that the template allows each recorded call, and that a call needs each right.

iam-simulate decides, for the deployment of the end-to-end tests and for a larger one.
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
from tests.infra.unrecorded import ALL_FUNCTIONS, MACHINES, service_calls, unrecorded_calls

OWNERS = (*ALL_FUNCTIONS, *MACHINES)
RECORDED = recorded.read()
UNRECORDED = [*service_calls(), *unrecorded_calls()]


class Right(NamedTuple):
    """An action that an owner may do; `why` is the name of the statement that allows it."""

    owner: str
    action: str
    why: str


UNUSED: dict[Right, str] = {}
"""The rights that no call needs, with the reason why they are granted nevertheless."""


def with_key_attributes(table: Any) -> dict[str, Any]:
    """Return an entry for a table of the end-to-end tests, with the names of its keys."""
    entry = {"table": table} if isinstance(table, str) else table
    return entry if "sharding" in entry else {**entry, "keyAttributes": ["pk", "sk"]}


CONTEXTS: dict[str, dict[str, Any]] = {
    "as tested": {"tables": TABLES, "rekey": REKEY},
    "with key attributes": {"tables": [*map(with_key_attributes, TABLES)], "rekey": REKEY},
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
    decisions = {call: template.judge(call) for call in RECORDED if call.caller == owner}
    assert [call for call, decision in decisions.items() if not decision.allowed] == []
    # A condition on a key that the request does not have would never be met.
    assert [call for call, decision in decisions.items() if decision.ignored] == []


def test_no_unrecorded_call_is_denied(template: Deployed) -> None:
    assert [call for call, _ in UNRECORDED if not template.judge(call).allowed] == []
    assert not {call for call, _ in UNRECORDED} & {*RECORDED}, "a recorded call is also listed"


def test_a_recorded_request_has_the_key_of_every_condition(template: Deployed) -> None:
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
def needed_rights() -> frozenset[Right]:
    """Return the rights that a call needs."""
    calls = [*RECORDED, *(call for call, _ in UNRECORDED)]
    return frozenset(
        Right(call.caller, call.action, reason(sid))
        for call in calls
        for sid in as_tested().judge(call).by
    )


def reason(sid: str) -> str:
    """Return a statement's name without the number that statements for many tables have."""
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
def test_a_right_that_no_call_needs_has_a_reason(owner: str) -> None:
    assert rights(owner) - needed_rights() == {right for right in UNUSED if right.owner == owner}


@pytest.mark.parametrize("owner", OWNERS)
def test_a_call_is_denied_without_the_statements_that_allow_it(owner: str) -> None:
    """No recorded call is allowed by chance."""
    statements = as_tested().statements(owner)
    for call in RECORDED:
        if call.caller == owner:
            sids = as_tested().judge(call).by
            remaining = [item for item in statements if item.get("Sid", "") not in sids]
            assert not simulator().decide(remaining, call).allowed
