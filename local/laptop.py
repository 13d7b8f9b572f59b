"""`make laptop`: the deployed application on this machine, to start executions of one's own."""

import os
import shlex
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from rich.console import Console

from local.cloud import Cloud, DeploymentError, laptop_cloud
from local.demo import load_and_deploy
from local.flights import TABLE
from local.stream_bridge import IDLE_SECONDS, bridge_for


def main() -> int:
    """Load, deploy, tell what to do with it, and keep it up; returns an exit status."""
    console = Console(highlight=False, soft_wrap=True)
    with laptop_cloud() as cloud:
        try:
            load_and_deploy(console, cloud)
        except DeploymentError as error:
            console.print(str(error), markup=False)
            return 1
        console.print(_what_to_do(cloud), markup=False)
        _carry_records(console, cloud)
    return 0


def _carry_records(console: Console, cloud: Cloud) -> None:
    """Until Ctrl-C. SIGUSR1 halts it, or lets it go on: to see what an audit finds meanwhile."""
    halted = False

    def toggle(_number: int, _frame: FrameType | None) -> None:
        nonlocal halted
        halted = not halted
        console.print(f"The stream is {'halted' if halted else 'carried on'}.")

    signal.signal(signal.SIGUSR1, toggle)
    bridge = bridge_for(cloud)
    while True:
        time.sleep(IDLE_SECONDS)
        if not halted:
            bridge.look()


def _what_to_do(cloud: Cloud) -> str:
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
