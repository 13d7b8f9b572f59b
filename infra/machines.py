"""The common parts of all state machines: definition, logs, tracing, role."""

import json
from collections.abc import Mapping

from aws_cdk import ArnFormat, Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from .config import Config
from .functions import SERVICE, own_log_group
from .paths import ROOT
from .permissions import acknowledge, allow
from .retries import with_retries

DEFINITIONS = ROOT / "statemachines"


class Machine(sfn.StateMachine):
    """A state machine whose role may only count executions that a person must look at.

    Args:
        file: The file of the definition.
        names: The values of ${Name} in the definition.
    """

    def __init__(
        self, scope: Construct, name: str, config: Config, file: str, names: Mapping[str, str]
    ) -> None:
        physical_name = machine_name(config, name)
        role = iam.Role(
            scope,
            f"{name}Role",
            assumed_by=iam.ServicePrincipal("states.amazonaws.com"),
            description=f"What {physical_name} may do",
        )
        # The CDK adds the permissions for tracing and logging.
        acknowledge(
            role,
            "The actions of X-Ray and of log delivery know no resources: the services take no "
            "other than *.",
            "AwsSolutions-IAM5[Resource::*]",
        )
        super().__init__(
            scope,
            name,
            state_machine_name=physical_name,
            state_machine_type=sfn.StateMachineType.STANDARD,
            # From a string, so that tests see the definition and its names in the template.
            definition_body=sfn.DefinitionBody.from_string(definition(file)),
            definition_substitutions={
                "Partition": Aws.PARTITION,
                "Namespace": config.stack_name,
                "Service": SERVICE,
                "Machine": name,
                **names,
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
        allow(
            self,
            "CountTheEndsThatAPersonHasToLookAt",
            "cloudwatch:PutMetricData",
            "*",
            conditions={"StringEquals": {"cloudwatch:namespace": config.stack_name}},
            wildcard="Metrics know no resources: CloudWatch takes no other than *; the condition "
            "allows the deployment's own.",
        )
        acknowledge(
            self,
            "The history of an execution has all events, and is kept for 90 days; the log has the "
            "errors. A run has up to a million children, of which each would log every event.",
            "AwsSolutions-SF1",
        )


def definition(file: str) -> str:
    """Return the definition in `file`, with its lists of retries."""
    text = (DEFINITIONS / f"{file}.asl.json").read_text()
    return json.dumps(json.loads(text, object_hook=with_retries))


def machine_name(config: Config, name: str) -> str:
    """Return the physical name of the deployment's state machine `name`."""
    return f"{config.stack_name}-{name}"


def states_arn(scope: Construct, resource: str, name: str) -> str:
    """Return an ARN of Step Functions in the stack's account and region."""
    return Stack.of(scope).format_arn(
        service="states",
        resource=resource,
        resource_name=name,
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
