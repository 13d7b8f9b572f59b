"""The meaning of errors of the service, and of the connection to it.

Functions return whether the same request may succeed later (`is_transient`, `is_conflict`), whether
the error is the answer of a condition (`is_refused`), whether the service may have charged for the
request (`may_have_been_served`), and what a user can do about it (`explained`). The reasons of
throttling errors are in throttling.py.
"""

from typing import Any

from botocore import exceptions as boto
from botocore.exceptions import BotoCoreError, ClientError

from keyhop.denied import Denied, clock_text
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.throttling import TRANSACTION_THROTTLED, is_throttling
from keyhop.errors import (
    AwsRefused,
    CannotStart,
    KeyhopError,
    NoCredentials,
    NotPermitted,
    TableNotFound,
    Unreachable,
)

_CREDENTIAL_CODES = {
    "ExpiredToken",
    "ExpiredTokenException",
    "IncompleteSignature",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}
_SIGNED_OUT = (boto.SSOError, boto.TokenRetrievalError)
NO_ANSWER = (boto.ConnectionError, boto.HTTPClientError)
NEVER_SENT = (
    boto.EndpointConnectionError,
    boto.ConnectTimeoutError,
    boto.ProxyConnectionError,
    boto.SSLError,
)
_KMS_DENIED = "KMS key access denied error"
"""The beginning of DynamoDB's message if KMS refuses the use of the table's key. The text after it
is from KMS. It names the action and the key, unless the caller may not see the key; texts of some
years ago do not name them."""

CHECK_FAILED = "ConditionalCheckFailed"
INVALID = "ValidationError"
"""Codes of a cancelled transaction."""
CONDITION_FAILED = "ConditionalCheckFailedException"
CONFLICTS = frozenset({"TransactionConflictException", "TransactionInProgressException"})
CONFLICT = "TransactionConflict"
_CANCELLED = "TransactionCanceledException"


def cancellations(error: BaseException) -> list[str]:
    """Return the code of each item of a cancelled transaction; "None" for items without fault."""
    if error_code(error) != _CANCELLED:
        return []
    assert isinstance(error, ClientError)
    return [reason.get("Code", "") for reason in error.response.get("CancellationReasons", ())]


def is_conflict(error: BaseException) -> bool:
    """Return whether another write or transaction, which will end, was changing the same item."""
    codes = cancellations(error)
    may_pass = {*TRANSACTION_THROTTLED, CONFLICT, "None"}
    return error_code(error) in CONFLICTS or (CONFLICT in codes and set(codes) <= may_pass)


def is_refused(error: BaseException) -> bool:
    """Return whether the condition of a write or a transaction has failed. That is an answer."""
    return error_code(error) == CONDITION_FAILED or CHECK_FAILED in cancellations(error)


def error_code(error: BaseException) -> str:
    """Return the service's error code; empty for an error that is not an answer."""
    response = error.response if isinstance(error, ClientError) else {}
    return str(response.get("Error", {}).get("Code", ""))


FUNCTION_NOT_READY = frozenset(
    {"CodeArtifactUserPendingException", "ResourceNotReadyException", "ResourceConflictException"}
)
"""The codes of Lambda's Invoke while it prepares a function: one that was idle for weeks, that gets
network interfaces in a VPC, or that is being updated (Lambda API reference)."""


def is_transient(error: BaseException) -> bool:
    """Return whether the same request may succeed later.

    It may after throttling, 5xx or a broken connection, and while Lambda prepares a function.
    """
    if isinstance(error, ClientError):
        if error_code(error) in FUNCTION_NOT_READY:
            return True
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= 500 or status in (408, 429) or is_throttling(error.response)
    return isinstance(error, NO_ANSWER) and not isinstance(error, boto.SSLError)


def may_have_been_served(error: BotoCoreError) -> bool:
    """Return whether the service may have charged for a request whose answer was lost."""
    return isinstance(error, NO_ANSWER) and not isinstance(error, NEVER_SENT)


def explained(
    error: Exception, endpoint: Endpoint, table: str = "", arn: str = "", service: str = "DynamoDB"
) -> KeyhopError:
    """Return the error that a user can act on. `arn` is the ARN of the table, if it is known."""
    if isinstance(error, KeyhopError):
        return error
    if isinstance(error, ClientError):
        return _explained_response(error, endpoint, table, arn, service)
    if isinstance(error, (boto.NoCredentialsError, boto.PartialCredentialsError)):
        return NoCredentials(
            "No AWS credentials were found: sign in (aws sso login), choose a profile, or set "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
    if isinstance(error, _SIGNED_OUT):
        return NoCredentials(
            f"The session of AWS's single sign-on has expired: sign in again{_sign_in(endpoint)}."
        )
    if isinstance(error, boto.ProfileNotFound):
        return CannotStart(
            f"The AWS profile {endpoint.profile!r} does not exist: see aws configure list-profiles."
        )
    if isinstance(error, boto.NoRegionError):
        return CannotStart("No AWS region is set: set AWS_REGION, or name a region.")
    if isinstance(error, boto.InvalidRegionError):
        return CannotStart(f"{endpoint.region} is not the name of an AWS region.")
    if isinstance(error, NO_ANSWER):
        return Unreachable(_unreachable(error, endpoint, service))
    return AwsRefused(f"The AWS client failed: {_one_line(error)}")


def _explained_response(
    error: ClientError, endpoint: Endpoint, table: str, arn: str, service: str
) -> KeyhopError:
    response = error.response
    code = response.get("Error", {}).get("Code", "")
    reasons: Any = response.get("CancellationReasons", ())
    messages = [reason["Message"] for reason in reasons if reason.get("Message")]
    message = _one_line("; ".join(messages) or response.get("Error", {}).get("Message", ""))
    where = f"region {endpoint.region}" if endpoint.region else "this account and region"
    if endpoint.url:
        where = f"{endpoint.shown} ({where})" if endpoint.region else endpoint.shown
    if code == "ResourceNotFoundException":
        return TableNotFound(
            f"There is no table {table!r} at {where}: check the name, the region and the profile."
        )
    if skewed := clock_text(response):
        return AwsRefused(skewed)
    if code in _CREDENTIAL_CODES:
        return NoCredentials(
            f"The AWS credentials were not accepted ({code}): sign in again{_sign_in(endpoint)}."
        )
    if code in ("AccessDeniedException", "AccessDenied"):
        denied = Denied.read(message)
        if message.startswith(_KMS_DENIED):
            action, key = "kms:Decrypt", "its key"
            if denied is not None:
                action, key = denied.action, denied.resource
            return NotPermitted(
                f"Table {table!r} is encrypted with a KMS key that may not be used: allow {action} "
                f"on {key}, which DescribeTable names as SSEDescription, in the caller's policy "
                "(for a deployment, kmsKey in its context) and in the key's own."
                + (f" That is: {denied}" if denied is not None else "")
            )
        if denied is not None:
            return NotPermitted(f"Permission is missing: {denied}")
        return NotPermitted(
            f"Permission is missing: allow dynamodb:{error.operation_name} on "
            f"{arn or f'table {table!r} in {where}'}. {message}".rstrip()
        )
    if code == "ValidationException":
        return CannotStart(f"{service} did not accept the request: {message}")
    return AwsRefused(f"{service} refused the request ({code}): {message}")


def _sign_in(endpoint: Endpoint) -> str:
    profile = f" --profile {endpoint.profile}" if endpoint.profile else ""
    return f" (as by aws sso login{profile})"


def _unreachable(error: Exception, endpoint: Endpoint, service: str) -> str:
    if isinstance(error, boto.SSLError):
        return f"No TLS connection to {service}: {_one_line(error)}; check the certificates."
    if isinstance(error, BotoCoreError) and may_have_been_served(error):
        return f"The connection to {service} broke, or brought no whole answer: {_one_line(error)}"
    if endpoint.url:
        return f"Nothing answers at {endpoint.shown}: is it running, and is the address right?"
    target = isinstance(error, boto.EndpointConnectionError) and error.kwargs.get("endpoint_url")
    region = f"region {endpoint.region}" if endpoint.region else "the region of your configuration"
    return (
        f"{service} cannot be reached{f' at {target}' if target else ''}: check the network and "
        f"that {region} exists."
    )


def _one_line(text: object) -> str:
    """Return foreign text for a message, without line breaks and escape codes."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(str(text).split()))
