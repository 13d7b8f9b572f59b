"""The content of a throttling error. Pure.

DynamoDB's throttling exceptions list their reasons (service model of botocore 1.44):
ProvisionedThroughputExceededException and RequestLimitExceeded under `ThrottlingReasons`,
ThrottlingException under `throttlingReasons`; boto3 puts them at the top level of
`ClientError.response`, not under "Error". Each reason is `{reason, resource}`; the reason string is
one of the sixteen `{Table|Index}{Read|Write}{limit}Exceeded`.
"""

from collections.abc import Mapping
from typing import Any

THROTTLING_CODES = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "ProvisionedThroughputExceeded",
        "RequestLimitExceeded",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "RequestThrottled",
        "RequestThrottledException",
        "TooManyRequestsException",
    }
)

TRANSACTION_THROTTLED = frozenset({"ThrottlingError", "ProvisionedThroughputExceeded"})
"""The codes of throttled items of a cancelled transaction."""

NO_REASON = "unknown"
"""The name under which a throttling error without a reason is counted."""


def is_throttling(response: Mapping[str, Any]) -> bool:
    """Return whether `ClientError.response` is a throttling error, or a transaction's with one.

    Reasons count whatever the error code is: ThrottlingException has reasons too, and old endpoints
    send codes without any.
    """
    if _reasons(response) or response.get("Error", {}).get("Code") in THROTTLING_CODES:
        return True
    cancelled = response.get("CancellationReasons") or ()
    return any(reason.get("Code") in TRANSACTION_THROTTLED for reason in cancelled)


def reason_names(response: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the reasons of a throttling error as sent, or `(NO_REASON,)` if it has none."""
    return tuple(entry.get("reason") or NO_REASON for entry in _reasons(response)) or (NO_REASON,)


def _reasons(response: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(response.get("ThrottlingReasons") or response.get("throttlingReasons") or ())
