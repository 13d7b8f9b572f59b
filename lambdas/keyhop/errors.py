"""The errors that a user can see. Each message is one sentence that says what to do.

KeyhopError
├── CannotStart            the request cannot be done like this; nothing has been read
│   ├── TableNotFound
│   ├── IndexNotFound
│   ├── IndexBusy          another process builds, verifies or removes the key index
│   ├── InvalidInput       the input has unknown, missing or wrong values
│   ├── BaselineUnreadable the older report cannot be compared
│   └── RunConflict        the output already holds another run, or a finished one
│       └── UnfinishedRun  the output holds an unfinished run, which can be resumed
├── MetadataLost           a key has items in shards that the shard metadata does not have
├── TooExpensive           the upper end of the estimate is over the limit in dollars; only a sample
│                          was read, but it can also stop a scheduled run, so it raises an alarm
├── AwsRefused             the service refused the request; a retry does not help
│   ├── NoCredentials      there are no credentials, or they are not valid
│   └── NotPermitted
├── Unreachable            the endpoint does not answer
├── StoreUnavailable       the storage of the results does not answer; the run can be resumed
├── GaveUp                 requests were throttled or failed for too long; the run can be resumed
│   └── WritesFrozen       a router did not write: writes were frozen for longer than it waits
├── WriteUncertain         a write by a router may have been made or not
├── NoProgress             a worker had too little time to commit anything
├── BudgetSpent            the next page may exceed the budget; the run can be resumed
├── SegmentsTooLarge       a check cannot read a segment to its end in the time allowed
├── StaleIndex            the key index that a run has read may be stale: the run starts again
├── RunFailed              an execution of a deployment failed
├── KeysMissing            a check found keys that the run did not report
└── BrokenPromise          the service, or a stored run, contradicts its own guarantees: to continue
                           could lose keys

Stopped is not one of them: it ends a call whose `stop` event was set.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


class KeyhopError(Exception):
    """An error that a user can see.

    Attributes:
        result: The figures so far, if it has ended a call of `for_each_key` whose action had begun.
    """

    result: "Any" = None


class CannotStart(KeyhopError): ...


class TableNotFound(CannotStart): ...


class IndexNotFound(CannotStart): ...


class IndexBusy(CannotStart): ...


class MetadataLost(KeyhopError): ...


class RunConflict(CannotStart): ...


class UnfinishedRun(RunConflict):
    """A directory holds an unfinished run.

    Attributes:
        directory: The path of the directory.
    """

    def __init__(self, message: str, directory: str = "") -> None:
        super().__init__(message)
        self.directory = directory


class InvalidInput(CannotStart): ...


class BaselineUnreadable(CannotStart): ...


class TooExpensive(KeyhopError): ...


class AwsRefused(KeyhopError): ...


class NoCredentials(AwsRefused): ...


class NotPermitted(AwsRefused): ...


class Unreachable(KeyhopError): ...


class StoreUnavailable(KeyhopError): ...


class GaveUp(KeyhopError): ...


class WritesFrozen(GaveUp): ...


class WriteUncertain(KeyhopError): ...


class NoProgress(KeyhopError): ...


class BudgetSpent(KeyhopError): ...


class SegmentsTooLarge(KeyhopError): ...


class StaleIndex(KeyhopError): ...


class RunFailed(KeyhopError):
    """An execution failed with an error of this name."""

    def __init__(self, message: str, error: str = "RunFailed") -> None:
        super().__init__(message)
        self.error = error


class KeysMissing(KeyhopError):
    """A check found missing keys; `missing` is their number."""

    def __init__(self, message: str, missing: int = 0) -> None:
        super().__init__(message)
        self.missing = missing


class BrokenPromise(KeyhopError): ...


class Stopped(Exception):
    """A call ended because its `stop` event was set; waiting threads sent nothing more."""

    def __str__(self) -> str:
        return "The call was stopped."
