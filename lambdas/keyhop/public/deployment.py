"""A deployment: the outputs of its stack."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.checks import hint
from keyhop.dynamodb.client import aws_client
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.refusals import error_code, explained
from keyhop.errors import CannotStart, KeyhopError

BUCKET = "ResultsBucketName"
MACHINE = "StateMachineArn"
"""The outputs that every deployment has: the bucket, and the state machine EnumerateKeys."""

FAILURE_QUEUE = "FailureQueueUrl"
"""The output of a deployment with a key index: the queue of what its keeper gave up on."""

SHARD_METADATA = "ShardMetadata"
"""How the outputs of a deployment with sharded tables begin: in each are the name of a table, and
that of its shard-metadata table."""

ClientOf = Callable[[str], Any]
"""Makes a client by the name of its service."""


def find_outputs(name: str, endpoint: Endpoint) -> tuple[dict[str, str], ClientOf]:
    """Return the outputs of the stack of this name, and what makes clients beside it.

    Raises:
        CannotStart: The stack does not exist, or is not a deployment of Keyhop.
    """
    client = cache(partial(aws_client, endpoint=endpoint))
    with explaining(endpoint):
        cloudformation = client("cloudformation")
        try:
            (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
        except ClientError as error:
            if error_code(error) != "ValidationError":
                raise
            region = cloudformation.meta.region_name
            raise CannotStart(
                f"There is no stack {name!r} in region {region}: "
                f"{_other_stacks(name, cloudformation)}"
            ) from error
    outputs = _outputs(stack)
    if BUCKET not in outputs:
        raise CannotStart(
            f"Stack {name!r} ({stack['StackStatus']}) has no output {BUCKET}: it is none of "
            f"Keyhop's, or its deployment is not done."
        )
    return outputs, client


def _outputs(stack: Mapping[str, Any]) -> dict[str, str]:
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", ())}


def _other_stacks(name: str, cloudformation: Any) -> str:
    """Name the deployments that may have been meant. Listing stacks needs a separate right."""
    names: list[str] = []
    with suppress(ClientError, KeyhopError):
        pages = cloudformation.get_paginator("describe_stacks").paginate()
        stacks = (stack for page in pages for stack in page["Stacks"])
        names = [
            stack["StackName"] for stack in stacks if {BUCKET, MACHINE} <= _outputs(stack).keys()
        ]
    if names:
        return hint(name, names) or f"Keyhop is there as {', '.join(names)}; give --stack."
    return "deploy it first (npx cdk deploy), or give --stack or --region."


@contextmanager
def explaining(endpoint: Endpoint, service: str = "AWS", table: str = "") -> Iterator[None]:
    """Turn what boto3 raises into errors that a user can act on."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise explained(error, endpoint, table, service=service) from error
