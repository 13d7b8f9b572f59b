"""`make laptop`: the deployed application on this machine, to start executions of one's own."""

import os
import shlex
import signal
import sys
from pathlib import Path
from types import FrameType

from rich.console import Console

from local.cloud import Cloud, DeploymentError, laptop_cloud
from local.demo import load_and_deploy
from local.flights import TABLE
from local.pump import Pump, pump_for


def main() -> int:
    """Load, deploy, tell what to do with it, and keep it up; returns an exit status."""
    console = Console(highlight=False, soft_wrap=True)
    with laptop_cloud() as cloud:
        try:
            load_and_deploy(console, cloud)
        except DeploymentError as error:
            console.print(str(error), markup=False)
            return 1
        with pump_for(cloud) as pump:
            console.print(_told(cloud), markup=False)
            _toggle_with_usr1(console, pump)
            while True:
                signal.pause()


def _toggle_with_usr1(console: Console, pump: Pump) -> None:
    """SIGUSR1 halts the pump, and lets it go on: to see what an audit finds meanwhile."""
    halted = False

    def toggle(_number: int, _frame: FrameType | None) -> None:
        nonlocal halted
        halted = not halted
        (pump.pause if halted else pump.resume)()
        console.print(f"The stream pump is {'halted' if halted else 'at work'}.")

    signal.signal(signal.SIGUSR1, toggle)


def _told(cloud: Cloud) -> str:
    exports = "\n".join(f"export {name}={value}" for name, value in cloud.exports.items())
    machine, bucket = cloud.outputs["StateMachineArn"], cloud.outputs["ResultsBucketName"]
    execution = f"{machine.replace(':stateMachine:', ':execution:')}:first"
    given = shlex.quote(f'{{"table": "{TABLE}"}}')
    python = Path(".venv/bin/python")
    build, audit, remove = (
        cloud.outputs[f"{name}KeyIndexArn"] for name in ("Build", "Audit", "Remove")
    )
    return f"""
In another terminal:

{exports}

aws stepfunctions start-execution --name first --state-machine-arn {machine} --input {given}
aws stepfunctions describe-execution --execution-arn {execution}
aws s3 cp --recursive s3://{bucket}/runs/first first

and without the AWS command line:

{python} -m local.start {machine} {bucket} {given}
.venv/bin/keyhop keys {TABLE} --endpoint-url {cloud.dynamodb}

A key index, kept by the deployed function:

{python} -m local.start {build} {bucket} {given}
{python} -m local.start {audit} {bucket} {given}
{python} -m local.start {remove} {bucket} {given}
.venv/bin/keyhop index status {TABLE} --endpoint-url {cloud.dynamodb}

kill -USR1 {os.getpid()} halts the stream, so that the keeper hears nothing; again lets it go on.
Ctrl-C ends the laptop cloud, and all that is in it."""


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("Interrupted; all servers are stopped.", file=sys.stderr)
        sys.exit(130)
