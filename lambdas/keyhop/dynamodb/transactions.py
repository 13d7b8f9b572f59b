"""What the errors of transactions say, and of writes that one stands in the way of."""

from botocore.exceptions import ClientError

from keyhop.dynamodb.throttling import TRANSACTION_THROTTLED

CHECK_FAILED = "ConditionalCheckFailed"
"""A code of a cancelled transaction."""
CONDITION_FAILED = "ConditionalCheckFailedException"
CONFLICTS = frozenset({"TransactionConflictException", "TransactionInProgressException"})
CONFLICT = "TransactionConflict"
_CANCELLED = "TransactionCanceledException"


def cancellations(error: BaseException) -> list[str]:
    """Of a cancelled transaction: a code for each of its items, "None" for those not at fault."""
    if _code(error) != _CANCELLED:
        return []
    assert isinstance(error, ClientError)
    return [reason.get("Code", "") for reason in error.response.get("CancellationReasons", ())]


def is_conflict(error: BaseException) -> bool:
    """Whether another transaction, or a write, was at work on the same item: it will end."""
    codes = cancellations(error)
    may_pass = {*TRANSACTION_THROTTLED, CONFLICT, "None"}
    return _code(error) in CONFLICTS or (CONFLICT in codes and set(codes) <= may_pass)


def is_refused(error: BaseException) -> bool:
    """Whether a condition has failed, of a single write or in a transaction: that is an answer."""
    return _code(error) == CONDITION_FAILED or CHECK_FAILED in cancellations(error)


def _code(error: BaseException) -> str:
    response = error.response if isinstance(error, ClientError) else {}
    return str(response.get("Error", {}).get("Code", ""))
