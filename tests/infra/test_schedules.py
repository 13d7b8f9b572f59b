"""Runs that begin by themselves: `runSchedule` and `runInput` of a table."""

import json
from typing import Any

import pytest
from keyhop.keys.request import parse

from infra.config import Config, ConfigError
from tests.infra.conftest import deployed, stack_of
from tests.infra.template import Deployed, states_arn

NIGHTLY = {
    "table": "Orders",
    "runSchedule": "cron(0 3 * * ? *)",
    "runInput": {"maxReadRate": 500, "method": "skip"},
}
ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/Bestellungen"
CONTEXT = {"tables": [NIGHTLY, {"table": ARN, "runSchedule": "rate(1 day)"}, "Flights"]}


@pytest.fixture
def regular() -> Deployed:
    return deployed(stack_of(CONTEXT))


def test_each_table_with_a_schedule_has_its_keys_listed_by_it(regular: Deployed):
    rules = [rule["Properties"] for rule in regular.of_type("AWS::Events::Rule").values()]
    assert [rule["ScheduleExpression"] for rule in rules] == ["cron(0 3 * * ? *)", "rate(1 day)"]
    (first,), (second,) = (rule["Targets"] for rule in rules)
    machine = states_arn("stateMachine:Keyhop-EnumerateKeys")
    assert {regular.resolve(target["Arn"]) for target in (first, second)} == {machine}
    given = json.loads(first["Input"])
    assert given == {**NIGHTLY["runInput"], "table": "Orders", "scheduled": True}
    assert json.loads(second["Input"]) == {"table": ARN, "scheduled": True}
    assert parse(given).max_read_rate == 500


def test_the_role_of_the_rules_may_start_runs_and_nothing_else(regular: Deployed):
    (rule, _) = regular.of_type("AWS::Events::Rule").values()
    statements = regular.statements_of(rule["Properties"]["Targets"][0])
    machine = states_arn("stateMachine:Keyhop-EnumerateKeys")
    assert [(one["Action"], one["Resource"]) for one in statements] == [
        (["states:StartExecution"], [machine])
    ]


def test_without_a_schedule_there_is_no_rule(plain: Deployed):
    assert not plain.of_type("AWS::Events::Rule")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"runSchedule": "daily"}, "runSchedule"),
        ({"runInput": {"maxReadRate": 5}}, "left out without runSchedule"),
        ({"runSchedule": "rate(1 day)", "runInput": [1]}, "an object"),
        ({"runSchedule": "rate(1 day)", "runInput": {"resume": "r"}}, "without resume"),
        ({"runSchedule": "rate(1 day)", "runInput": {"table": "T"}}, "without table"),
        ({"runSchedule": "rate(1 day)", "runInput": {"maxReadRat": 5}}, "maxReadRate"),
        ({"runSchedule": "rate(1 day)", "runInput": {"maxReadRate": 0}}, "at least 1"),
    ],
)
def test_what_every_run_would_be_refused_for_is_refused_at_synth(wrong: dict[str, Any], told: str):
    with pytest.raises(ConfigError, match=told):
        Config.from_context({"tables": [{"table": "Orders", **wrong}]})


def test_never_is_no_schedule():
    (table,) = Config.from_context({"tables": [{"table": "Orders", "runSchedule": "never"}]}).tables
    assert table.run_schedule is None
