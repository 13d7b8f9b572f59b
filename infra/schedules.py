"""Scheduled executions: the rules of EventBridge, and the role that starts executions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aws_cdk import Annotations, Stack, Token
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from constructs import Construct

from .machines import Machine
from .permissions import acknowledge, allow

REGION = "keyhop:region"
"""The context in which app.py passes the region of the credentials."""

RULES_OF_A_BUS = 300
RULES_OF_REGIONS = {"af-south-1": 100, "eu-south-1": 100}
"""Rules of an event bus (Amazon EventBridge quotas; adjustable)."""


@dataclass(frozen=True)
class Start:
    """A scheduled execution with its input. `name` is the construct id of its rule."""

    name: str
    description: str
    when: str
    execution_input: Mapping[str, Any]


def start_regularly(
    scope: Construct, what: str, machine: Machine, starts: Sequence[Start], if_missed: str
) -> list[events.Rule]:
    """Add a rule for each start, and return the rules in this order.

    Args:
        what: The noun in all names, such as "Audit".
        if_missed: The reason why starts that EventBridge gives up after a day need no queue.
    """
    role = iam.Role(
        scope,
        f"{what}ScheduleRole",
        assumed_by=iam.ServicePrincipal("events.amazonaws.com"),
        description=f"Starts {machine.node.id} by a schedule",
    )
    allow(role, f"Start{what}s", "states:StartExecution", machine.state_machine_arn)
    rules = []
    for start in starts:
        target = targets.SfnStateMachine(
            machine,
            input=events.RuleTargetInput.from_object({**start.execution_input, "scheduled": True}),
            role=role.without_policy_updates(),
        )
        rule = events.Rule(
            scope,
            start.name,
            description=start.description,
            schedule=events.Schedule.expression(start.when),
            targets=[target],
        )
        acknowledge(rule, if_missed, "Serverless-EventBusDLQ")
        rules.append(rule)
    warn_of_many_rules(scope, len(rules))
    return rules


def warn_of_many_rules(scope: Construct, added: int) -> None:
    """Add one warning to a stack if its last `added` rules exceed the quota of an event bus.

    It is not an error, because other stacks use the same bus, and the quota can be raised.
    """
    stack = Stack.of(scope)
    region = str(stack.node.try_get_context(REGION) or "")
    if not Token.is_unresolved(stack.region):
        region = stack.region
    quota = RULES_OF_REGIONS.get(region, RULES_OF_A_BUS)
    count = sum(isinstance(construct, events.Rule) for construct in stack.node.find_all())
    if count - added <= quota < count:
        Annotations.of(stack).add_warning_v2(
            "keyhop:rules",
            f"The schedules of this stack make more than {quota:,} EventBridge rules, which is the "
            f"default quota of an event bus{f' in {region}' if region else ''}, for all stacks "
            "together. Before you deploy, have it raised (Service Quotas, Amazon EventBridge, "
            "Rules), or turn off schedules that you do not need.",
        )
