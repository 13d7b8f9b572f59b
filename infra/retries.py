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
"""What Invoke answers while Lambda prepares a function: one that has not been used for weeks, in a
VPC its network interfaces, or one that is being updated. It is ready after 40 to 110 seconds
(observed by others); CodeArtifactUserFailedException needs a new deployment, so it is not here."""

CRASHED = (
    *("Lambda.Unknown", "Sandbox.Timedout", "Runtime.ExitError", "Runtime.OutOfMemory"),
    "States.Timeout",
)
OF_STEP_FUNCTIONS = (
    *("StepFunctions.ExecutionLimitExceeded", "StepFunctions.ExecutionLimitExceededException"),
    *("StepFunctions.AWSStepFunctionsException", "StepFunctions.SdkClientException"),
)
"""AWS's own examples write the first without `Exception`, and others of its kind with it."""


def _retry(
    errors: tuple[str, ...], interval: int, attempts: int, most: int = 0, backoff: float = 2
) -> dict[str, Any]:
    """One rule. most: seconds between attempts, of which a random part is waited."""
    random = {"MaxDelaySeconds": most, "JitterStrategy": "FULL"} if most else {}
    return {
        "ErrorEquals": [*errors],
        "IntervalSeconds": interval,
        "BackoffRate": backoff,
        "MaxAttempts": attempts,
        **random,
    }


NO_ROOM = _retry(("Lambda.TooManyRequestsException",), 2, 250, most=300, backoff=1.5)
"""Others have the account's concurrency, or a reservation: whoever waits for a turn waits for
hours; a rule of its own, so that it takes no other's attempts. A retry is a state transition, which
is paid for: a thousand that wait make some 400 of them a minute."""


WAKING = _retry(NOT_READY, 5, 6)
"""For five minutes, with attempts of its own."""


def _failed(*ours: str) -> dict[str, Any]:
    """Failures of Lambda, and ours that pass."""
    return _retry((*OF_LAMBDA, *ours), 2, 6, most=60)


POLICIES: dict[str, list[dict[str, Any]]] = {
    "RetryOfTask": [NO_ROOM, WAKING, _failed("StoreUnavailable"), _retry(CRASHED, 5, 2)],
    "RetryOfScan": [
        NO_ROOM,
        WAKING,
        _retry(OF_LAMBDA, 2, 8, most=120),
        _retry(CRASHED, 5, 5, most=60),
        _retry(("GaveUp", "NoProgress", "Unreachable", "StoreUnavailable"), 30, 5, most=600),
    ],
    "RetryOfVerify": [
        NO_ROOM,
        WAKING,
        _failed("StoreUnavailable"),
        _retry((*CRASHED, "GaveUp", "Unreachable"), 30, 3),
    ],
    # No error of ours: it fails with that of the run. A crash is not retried but caught, and the
    # execution then ends with the run's error as the failed state told it.
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
    "RetryOfWalk": [_retry(OF_STEP_FUNCTIONS, 5, 6, most=60)],
}


def with_retries(state: dict[str, Any]) -> dict[str, Any]:
    """A state whose policy's name is replaced by its rules; whatever else is left as it is."""
    if isinstance(name := state.get("Retry"), str):
        return {**state, "Retry": POLICIES[name.strip("${}")]}
    return state
