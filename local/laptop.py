"""`make laptop`: the deployed application on this machine, to start executions of one's own."""

import shlex
import signal
import sys
from pathlib import Path

from rich.console import Console

from local.cloud import Cloud, DeploymentError, laptop_cloud
from local.demo import load_and_deploy
from local.flights import TABLE


def main() -> int:
    """Load, deploy, tell what to do with it, and keep it up; returns an exit status."""
    console = Console(highlight=False, soft_wrap=True)
    with laptop_cloud() as cloud:
        try:
            load_and_deploy(console, cloud)
        except DeploymentError as error:
            console.print(str(error), markup=False)
            return 1
        console.print(_told(cloud), markup=False)
        signal.pause()
    return 0


def _told(cloud: Cloud) -> str:
    exports = "\n".join(f"export {name}={value}" for name, value in cloud.exports.items())
    machine, bucket = cloud.outputs["StateMachineArn"], cloud.outputs["ResultsBucketName"]
    execution = f"{machine.replace(':stateMachine:', ':execution:')}:first"
    given = shlex.quote(f'{{"table": "{TABLE}"}}')
    python = Path(".venv/bin/python")
    return f"""
In another terminal:

{exports}

aws stepfunctions start-execution --name first --state-machine-arn {machine} --input {given}
aws stepfunctions describe-execution --execution-arn {execution}
aws s3 cp --recursive s3://{bucket}/runs/first first

and without the AWS command line:

{python} -m local.start {machine} {bucket} {given}
.venv/bin/keyhop keys {TABLE} --endpoint-url {cloud.dynamodb}

Ctrl-C ends the laptop cloud, and all that is in it."""


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("Interrupted; all servers are stopped.", file=sys.stderr)
        sys.exit(130)
