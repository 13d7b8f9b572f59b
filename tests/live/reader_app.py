"""The CDK app of another stack of the suite: a state machine outside Keyhop, with its role.

The machine is the example in docs/how-to/runs.md, Use the keys, and returns the keys that it gets.
Context: `stackName`, `bucket`, `run`.
"""

import json
import re
from typing import Any

from aws_cdk import App, CfnOutput, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_stepfunctions as stepfunctions

from infra.machines import states_arn
from testing.servers import ROOT

PAGE = ROOT / "docs" / "how-to" / "runs.md"
EXAMPLE = re.compile(r'^```json\n("ForEachPart": .*?)^```', re.MULTILINE | re.DOTALL)
RETURN_KEY = {
    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
    "StartAt": "ReturnKey",
    "States": {"ReturnKey": {"Type": "Pass", "End": True}},
}
"""The processor of each key, which the example does not define."""


def definition(bucket: str, run: str) -> dict[str, Any]:
    """Return the example of the page as a complete definition, for the parts of a run."""
    (example,) = EXAMPLE.findall(PAGE.read_text())
    for placeholder, value in (
        ("BUCKET", bucket),
        ("runs/orders-1/", f"runs/{run}/"),
        ("{ ... }", json.dumps(RETURN_KEY)),
    ):
        assert example.count(placeholder) == 1, f"{placeholder} in {PAGE}"
        example = example.replace(placeholder, value)
    return {"StartAt": "ForEachPart", "States": json.loads(f"{{{example}}}")}


class Reader(Stack):
    """A stack with a state machine that has its name, so that the machine's role can name it."""

    def __init__(self, app: App, name: str, bucket: str, run: str) -> None:
        super().__init__(app, name)
        parts = self.format_arn(
            service="s3", region="", account="", resource=bucket, resource_name=f"runs/{run}/*"
        )
        # Children of a map that contain a map are executions of NAME/LABEL.
        machines = [states_arn(self, "stateMachine", f"{name}{suffix}") for suffix in ("", "/*")]
        children = [states_arn(self, "execution", f"{name}{suffix}") for suffix in (":*", "/*")]
        allowed = {
            "s3:GetObject": [parts],
            "states:StartExecution": machines,
            "states:DescribeExecution": children,
            "states:StopExecution": children,
        }
        statements = [
            iam.PolicyStatement(actions=[action], resources=resources)
            for action, resources in allowed.items()
        ]
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("states.amazonaws.com"),
            inline_policies={"Maps": iam.PolicyDocument(statements=statements)},
        )
        machine = stepfunctions.CfnStateMachine(
            self,
            "Machine",
            state_machine_name=name,
            role_arn=role.role_arn,
            definition_string=json.dumps(definition(bucket, run)),
        )
        CfnOutput(self, "MachineArn", value=machine.ref)


def main() -> None:
    """Synthesize the app."""
    app = App(stack_traces=False)
    context = app.node.get_context
    Reader(app, context("stackName"), context("bucket"), context("run"))
    app.synth()


if __name__ == "__main__":
    main()
