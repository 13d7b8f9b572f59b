"""Executions that begin by themselves: EventBridge's rules, and the role that starts them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from constructs import Construct

from .machines import Machine
from .permissions import acknowledge, allow


@dataclass(frozen=True)
class Start:
    """name: of the rule's construct. when: as EventBridge writes it. given: the input."""

    name: str
    description: str
    when: str
    given: Mapping[str, Any]


def start_regularly(
    scope: Construct, what: str, machine: Machine, starts: Sequence[Start], if_missed: str
) -> list[events.Rule]:
    """A rule for each, in their order. what: "Audit", of which all names are made. if_missed: why
    no queue is needed for one that EventBridge, which tries for a day, could not start.
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
            input=events.RuleTargetInput.from_object({**start.given, "scheduled": True}),
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
    return rules
