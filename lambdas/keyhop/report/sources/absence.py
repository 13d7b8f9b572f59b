"""Why a source of a report has no facts, and whether the table's data may be sampled."""

import os
import re
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import aws_client
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.refusals import NO_ANSWER, error_code
from keyhop.dynamodb.throttling import is_throttling
from keyhop.errors import KeyhopError
from keyhop.report.facts import TABLE, Absent, MetricFacts
from keyhop.report.findings import Spent
from keyhop.wording import duration

T = TypeVar("T")

NOTHING = Spent(0.0, 0, 0.0, 0.0)
FAILURES = (BotoCoreError, ClientError, KeyhopError)
"""The errors of a request that end a source, but not the report."""

_DENIED = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"}
_NOT_SERVED = {"UnknownOperationException", "UnknownOperation", "InvalidAction", "NotImplemented"}
_ACTION_ON = re.compile(r"\b([a-z0-9-]+:[A-Z]\w+)(?: on (arn:\S+?)[.,;:]?(?=\s|$))?")
"""The first action in a sentence of NotPermitted, with its resource (see denied.py)."""

TABLE_ARN = "table/{table}"
INDEX_ARN = "table/{table}/index/*"
STREAM_ARN = "table/{table}/stream/*"
RULE_ARN = "insight-rule/DynamoDBContributorInsights*"
ANY = "*"
"""The resources of a source's actions, as the end of an ARN; ANY for an action without one."""

CALM_SECONDS = 3600.0
"""A key range must be without throttles for this long before a report adds reads to the load."""


@dataclass(frozen=True, slots=True)
class Looked(Generic[T]):
    """The facts of a source, and the cost of reading it, without the seconds."""

    facts: T | Absent
    spent: Spent = NOTHING


def client_beside(service: str, endpoint: Endpoint) -> Any | Absent:
    """Return the client of boto3 for a service at the table's endpoint; Absent if there is none.

    A table at an address outside AWS must not be mistaken for the table of the same name in the
    caller's account, unless the environment names the service's address (AWS_ENDPOINT_URL).
    """
    variables = f"AWS_ENDPOINT_URL_{service.upper()}", "AWS_ENDPOINT_URL"
    is_configured = any(os.environ.get(name) for name in variables)
    is_served = service == "dynamodbstreams" or endpoint.is_of_aws
    if endpoint.url and not is_served and not is_configured:
        return Absent(f"{endpoint.shown} has no {service}", "run the report on the table in AWS")
    try:
        return aws_client(service, endpoint)
    except FAILURES as error:
        return why_absent(error, service)


def why_denied(sentence: str) -> Absent:
    """Return why a source is missing that the caller may not read.

    Args:
        sentence: The text of a NotPermitted error, or of the failed run that it has ended.
    """
    match = _ACTION_ON.search(sentence)
    if match is None:
        return Absent("a permission is missing")
    action, resource = match.groups()
    return Absent(
        f"{action} is not allowed",
        f"allow {action} on {resource}" if resource else f"allow {action}",
    )


def why_absent(error: BaseException, service: str, action: str = "") -> Absent:
    """Return the reason for a failed request; `action` is the one that it needs."""
    cause = error.__cause__ if isinstance(error, KeyhopError) and error.__cause__ else error
    if isinstance(cause, ClientError):
        code = error_code(cause)
        if code in _DENIED:
            return Absent(f"{action or cause.operation_name} is not allowed", f"allow {action}")
        if is_throttling(cause.response):
            return Absent(f"{service} throttled the request", "try again in a minute")
        if code in _NOT_SERVED:
            return Absent(f"{cause.operation_name} is not served at this endpoint")
        return Absent(f"{service} refused {cause.operation_name} ({code})")
    if isinstance(cause, NO_ANSWER):
        return Absent(f"{service} cannot be reached", "check the network, then try again")
    return Absent(f"{service} could not be called ({type(cause).__name__})")


def why_not(metrics: MetricFacts | Absent, now: float, accepted: bool = False) -> Absent | None:
    """Return why the data is not sampled; None if it may be sampled.

    Only throttles that CloudWatch reports prevent a sample. Without an answer of CloudWatch, the
    report reads at its low rate, and says that it does not know. Throttled writes of an index do
    not prevent it: the sample only reads.

    Args:
        accepted: Whether the caller accepts that the table is throttled.
    """
    if accepted or isinstance(metrics, Absent):
        return None
    recent = {
        target: throttles.last
        for (way, cause, target), throttles in metrics.throttles.items()
        if cause == "key range"
        and (way == "read" or target == TABLE)
        and throttles.last is not None
        and now - throttles.last < CALM_SECONDS
    }
    if not recent:
        return None
    last = max(last for last in recent.values() if last is not None)
    where = " and ".join(
        "the table" if name == TABLE else f"index {name}" for name in sorted(recent)
    )
    ago = duration(max(0.0, now - last))
    return Absent(
        f"DynamoDB throttled a key range of {where} {ago} ago: a sample would add to that load",
        f"wait for {duration(CALM_SECONDS)} without throttles, or give --accept throttled",
    )
