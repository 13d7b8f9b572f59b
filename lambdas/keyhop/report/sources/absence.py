"""What a source of a report gives: facts, or why there are none; and what looking has cost."""

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
from keyhop.report.facts import Absent
from keyhop.report.findings import Spent

T = TypeVar("T")

NOTHING = Spent(0.0, 0, 0.0, 0.0)
FAILURES = (BotoCoreError, ClientError, KeyhopError)
"""What a request may raise that ends a source, and not the report."""

_DENIED = {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"}
_NOT_SERVED = {"UnknownOperationException", "UnknownOperation", "InvalidAction", "NotImplemented"}
_ACTION_ON = re.compile(r"\b([a-z0-9-]+:[A-Z]\w+)(?: on (arn:\S+?)[.,;:]?(?=\s|$))?")
"""The action that a sentence of NotPermitted names first, and its resource (see denied.py)."""

TABLE_ARN = "table/{table}"
INDEX_ARN = "table/{table}/index/*"
STREAM_ARN = "table/{table}/stream/*"
RULE_ARN = "insight-rule/DynamoDBContributorInsights*"
ANY = "*"
"""Resources of a source's actions, as the last part of an ARN; ANY: the action knows none."""


@dataclass(frozen=True, slots=True)
class Looked(Generic[T]):
    """spent: without seconds; who looks has the clock."""

    facts: T | Absent
    spent: Spent = NOTHING


def client_beside(service: str, endpoint: Endpoint) -> Any | Absent:
    """boto3's client of a service for a table there; Absent if the service is not where it is.

    A table at an address that is not AWS's must not be taken for the one of the same name in the
    caller's account: unless the environment says where the service is beside it (AWS_ENDPOINT_URL).
    """
    own = f"AWS_ENDPOINT_URL_{service.upper()}"
    is_told = bool(os.environ.get(own) or os.environ.get("AWS_ENDPOINT_URL"))
    is_beside = service == "dynamodbstreams" or endpoint.is_of_aws
    if endpoint.url and not is_beside and not is_told:
        return Absent(f"{endpoint.shown} has no {service}", "look at the table in AWS")
    try:
        return aws_client(service, endpoint)
    except FAILURES as error:
        return why_absent(error, service)


def why_denied(sentence: str) -> Absent:
    """Return why a source is missing that the caller may not read.

    Args:
        sentence: The text of a NotPermitted error, or of the failed run that it has ended.
    """
    named = _ACTION_ON.search(sentence)
    if named is None:
        return Absent("a permission is missing")
    action, resource = named.groups()
    return Absent(
        f"{action} is not allowed",
        f"allow {action} on {resource}" if resource else f"allow {action}",
    )


def why_absent(error: BaseException, service: str, action: str = "") -> Absent:
    """What to say of a request that failed. action: what has to be allowed for it."""
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
    return Absent(f"{service} could not be asked ({type(cause).__name__})")
