"""Which errors a state retries, and how often; a definition names a policy, as "${RetryOfScan}".

Each names its errors: a retry of everything would try a wrong input over and over.
"""

from typing import Any

OF_LAMBDA = (
    *("Lambda.ServiceException", "Lambda.AWSLambdaException"),
    *("Lambda.SdkClientException", "Lambda.ClientExecutionTimeoutException"),
)
NOT_READY = (
    *("Lambda.CodeArtifactUserPendingException", "Lambda.ResourceNotReadyException"),
    "Lambda.ResourceConflictException",
)
"""The errors of Invoke while Lambda prepares a function that has not been used for weeks, its
network interfaces in a VPC, or an update. It is ready after 40 to 110 seconds (observed by others).
CodeArtifactUserFailedException needs a new deployment, so it is not here."""

CRASHED = (
    *("Lambda.Unknown", "Sandbox.Timedout", "Runtime.ExitError", "Runtime.OutOfMemory"),
    "States.Timeout",
)
OF_STEP_FUNCTIONS = (
    *("StepFunctions.ExecutionLimitExceeded", "StepFunctions.ExecutionLimitExceededException"),
    *("StepFunctions.AWSStepFunctionsException", "StepFunctions.SdkClientException"),
)
"""The first has two names, because the examples of AWS write it without `Exception`."""


def _retry(
    errors: tuple[str, ...], interval: int, attempts: int, max_delay: int = 0, backoff: float = 2
) -> dict[str, Any]:
    """Return one rule. With `max_delay` it waits a random part of the seconds between attempts."""
    random = {"MaxDelaySeconds": max_delay, "JitterStrategy": "FULL"} if max_delay else {}
    return {
        "ErrorEquals": [*errors],
        "IntervalSeconds": interval,
        "BackoffRate": backoff,
        "MaxAttempts": attempts,
        **random,
    }


NO_ROOM = _retry(("Lambda.TooManyRequestsException",), 2, 250, max_delay=300, backoff=1.5)
"""The rule for a lack of concurrency, because others use that of the account or a reservation.
Waiting for a turn can take hours. It is a separate rule, so that it uses no attempts of another
one. A retry is a state transition, which is paid for: a thousand waiting executions make some 400
transitions per minute."""


WAKING = _retry(NOT_READY, 5, 6)
"""The rule for functions that are not ready: five minutes, with attempts that no other rule
uses."""


def _failed(*ours: str) -> dict[str, Any]:
    """Return a rule for failures of Lambda, and for our transient errors."""
    return _retry((*OF_LAMBDA, *ours), 2, 6, max_delay=60)


POLICIES: dict[str, list[dict[str, Any]]] = {
    "RetryOfTask": [NO_ROOM, WAKING, _failed("StoreUnavailable"), _retry(CRASHED, 5, 2)],
    "RetryOfScan": [
        NO_ROOM,
        WAKING,
        _retry(OF_LAMBDA, 2, 8, max_delay=120),
        _retry(CRASHED, 5, 5, max_delay=60),
        _retry(("GaveUp", "NoProgress", "Unreachable", "StoreUnavailable"), 30, 5, max_delay=600),
    ],
    "RetryOfVerify": [
        NO_ROOM,
        WAKING,
        _failed("StoreUnavailable"),
        _retry((*CRASHED, "GaveUp", "Unreachable"), 30, 3),
    ],
    # None of our errors: it fails with the error of the run. A crash is not retried but caught, and
    # the execution then ends with the error of the run from the failed state.
    "RetryOfCleanUp": [NO_ROOM, WAKING, _failed()],
    "RetryOfStep": [
        NO_ROOM,
        WAKING,
        _failed("StoreUnavailable", "Unreachable", "GaveUp"),
        _retry(CRASHED, 5, 2),
    ],
    "RetryOfMove": [NO_ROOM, WAKING, _failed("Unreachable", "GaveUp"), _retry(CRASHED, 5, 2)],
    "RetryOfMap": [_retry(("States.ItemReaderFailed", "States.ResultWriterFailed"), 5, 2)],
    "RetryOfNote": [
        {**_retry(("S3.SdkClientException", "S3.S3Exception"), 2, 4), "JitterStrategy": "FULL"}
    ],
    "RetryOfAlarm": [
        {
            **_retry(("CloudWatch.SdkClientException", "CloudWatch.CloudWatchException"), 2, 4),
            "JitterStrategy": "FULL",
        }
    ],
    "RetryOfWalk": [_retry(OF_STEP_FUNCTIONS, 5, 6, max_delay=60)],
}


def with_retries(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state with the rules in place of the name of its policy."""
    if isinstance(name := state.get("Retry"), str):
        return {**state, "Retry": POLICIES[name.strip("${}")]}
    return state
