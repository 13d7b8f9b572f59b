"""CloudFormation's custom resource: no mapping of the keeper outlives the stack.

Mappings are made by BuildKeyIndex, so CloudFormation does not know them. When the stack goes, or a
table leaves the context, this removes them. It always answers: without an answer CloudFormation
would wait for an hour.
"""

import json
import os
import time
import urllib.request
from typing import Any

import boto3
from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.streams.event_source import Mappings

logger = Logger()

PAUSE_SECONDS = 0.5
MARGIN_MILLISECONDS = 10_000


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """On Delete all mappings go, on Update those of tables that are not listed any more."""
    status, reason = "SUCCESS", ""
    try:
        mappings = Mappings(
            boto3.client("lambda"),
            os.environ["KEYHOP_KEEPER"],
            os.environ["KEYHOP_FAILURE_QUEUE"],
        )
        tables = event["ResourceProperties"].get("Tables", [])
        if event["RequestType"] != "Create":
            release(mappings, [] if event["RequestType"] == "Delete" else tables, context)
    except Exception as error:
        logger.exception("not released")
        status, reason = "FAILED", f"{type(error).__name__}: {error}"
    _answer(event, context, status, reason)


def release(mappings: Mappings, kept: list[str], context: LambdaContext) -> None:
    """Remove all mappings but those to tables that are kept; raises TimeoutError."""
    while not mappings.detach_all_but(kept):
        if context.get_remaining_time_in_millis() < MARGIN_MILLISECONDS:
            raise TimeoutError("a mapping of the keeper cannot be removed: delete it in Lambda")
        time.sleep(PAUSE_SECONDS)
    logger.info("released", kept=kept)


def _answer(event: dict[str, Any], context: LambdaContext, status: str, reason: str) -> None:
    body = {
        "Status": status,
        "Reason": reason or f"See the log stream {context.log_stream_name}",
        "PhysicalResourceId": event.get("PhysicalResourceId") or "keeper-mappings",
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
    }
    data = json.dumps(body).encode()
    # CloudFormation's own address, signed by it.
    request = urllib.request.Request(event["ResponseURL"], data=data, method="PUT")  # noqa: S310
    request.add_header("Content-Type", "")
    with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
        response.read()
