"""Start an execution and follow it: `python -m local.start STATE_MACHINE_ARN BUCKET INPUT [NAME]`.

Where is as the environment says (AWS_ENDPOINT_URL, credentials, region): a laptop cloud, or AWS.
"""

import json
import os
import sys

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from local.follow import Executions
from local.show import follow, result_text

LONGEST_SECONDS = 24 * 3600.0


def main(arguments: list[str]) -> int:
    """Returns an exit status."""
    console = Console(highlight=False, soft_wrap=True)
    try:
        machine, bucket, given, *name = arguments
        parsed = json.loads(given)
    except ValueError:
        console.print(__doc__, markup=False)
        return 2
    if "AWS_REGION" in os.environ:
        os.environ.setdefault("AWS_DEFAULT_REGION", os.environ["AWS_REGION"])  # boto3's name for it
    try:
        executions = Executions(boto3.client, machine, bucket)
        execution = executions.start(parsed, name[0] if name else None)
    except (BotoCoreError, ClientError) as error:
        console.print(f"Not started: {error}", markup=False)
        return 2
    try:
        output = follow(console, executions, execution, LONGEST_SECONDS)
    except KeyboardInterrupt:
        console.print(
            f"The execution goes on. To stop it:\n"
            f"aws stepfunctions stop-execution --execution-arn {execution}",
            markup=False,
        )
        return 130
    if output is None:
        return 1
    if "manifest" in output:
        console.print(result_text(output), markup=False)
    else:
        console.print_json(data=output)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
