"""Schedules: how many EventBridge rules a stack makes."""

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_events as events

from infra.machines import REGION, warn_of_many_rules


def warnings(region: str | None, *counts: int, credentials: str = "") -> list[str]:
    """Add so many rules at a time; return the warnings of the stack.

    region: of the stack. credentials: the region that they tell.
    """
    env = Environment(account="111122223333", region=region) if region else None
    stack = Stack(App(context={REGION: credentials}), "Stack", env=env)
    for turn, count in enumerate(counts):
        for number in range(count):
            schedule = events.Schedule.expression("rate(1 day)")
            events.Rule(stack, f"Rule{turn}-{number}", schedule=schedule)
        warn_of_many_rules(stack, count)
    metadata = stack.node.metadata
    return [str(one.data) for one in metadata if one.type == "aws:cdk:warning"]


@pytest.mark.parametrize(
    ("region", "most"), [("eu-west-1", 300), ("af-south-1", 100), ("eu-south-1", 100), (None, 300)]
)
def test_one_warning_tells_of_more_rules_than_an_event_bus_has(region: str | None, most: int):
    assert warnings(region, most - 1, 1) == []
    (said,) = warnings(region, most, 1, 5)
    assert f"more than {most} EventBridge rules" in said
    assert (region or "event bus,") in said


def test_the_region_of_the_credentials_counts_where_the_stack_names_none():
    assert len(warnings(None, 101, credentials="af-south-1")) == 1
