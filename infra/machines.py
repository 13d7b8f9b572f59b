"""One place for what all state machines have in common: definition, logs, tracing, role."""

import re
from collections.abc import Mapping
from pathlib import Path

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.config import Config
from infra.functions import own_log_group
from infra.layer import ROOT
from infra.permissions import acknowledge

DEFINITIONS = ROOT / "statemachines"


def names_in(definition: str) -> set[str]:
    """The names in a definition's text, as ${Name}, for which something has to be put in."""
    return set(re.findall(r"\$\{(\w+)\}", definition))


def machine_name(config: Config, name: str) -> str:
    """The physical name of the deployment's state machine `name`."""
    return f"{config.stack_name}-{name}"


def states_arn(scope: Construct, resource: str, name: str) -> str:
    """An ARN of Step Functions, in the stack's account and region."""
    return Stack.of(scope).format_arn(
        service="states",
        resource=resource,
        resource_name=name,
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )


def machine_role(scope: Construct, name: str, config: Config) -> iam.Role:
    """A role for the state machine `name`, with no rights yet."""
    role = iam.Role(
        scope,
        f"{name}Role",
        assumed_by=iam.ServicePrincipal("states.amazonaws.com"),
        description=f"What {machine_name(config, name)} may do",
    )
    # The CDK itself adds what tracing and logging need.
    acknowledge(
        role,
        "The actions of X-Ray and of log delivery know no resources: the services take no "
        "other than *.",
        "AwsSolutions-IAM5[Resource::*]",
    )
    return role


def state_machine(
    scope: Construct,
    name: str,
    config: Config,
    definition: Path,
    substitutions: Mapping[str, str],
    role: iam.Role,
    only_errors: str,
) -> sfn.StateMachine:
    """The state machine `name`.

    substitutions: what to put in for a name; names that the definition has not are left out.
    only_errors: why not every event is logged, for cdk-nag.
    """
    text = definition.read_text()
    physical_name = machine_name(config, name)
    machine = sfn.StateMachine(
        scope,
        name,
        state_machine_name=physical_name,
        state_machine_type=sfn.StateMachineType.STANDARD,
        # From a string, so that tests see the definition and its substitutions in the template.
        definition_body=sfn.DefinitionBody.from_string(text),
        definition_substitutions={
            one: value for one, value in substitutions.items() if one in names_in(text)
        },
        role=role,
        tracing_enabled=True,
        logs=sfn.LogOptions(
            # Groups of this prefix need no entry in the log resource policy, whose length is
            # limited.
            destination=own_log_group(
                scope, f"{name}Logs", f"/aws/vendedlogs/states/{physical_name}", config
            ),
            level=sfn.LogLevel.ERROR,
            # Keys can be personal data: none of them in a log.
            include_execution_data=False,
        ),
    )
    acknowledge(machine, only_errors, "AwsSolutions-SF1")
    return machine
