"""The errors that a user can see. Each message is one sentence that says what to do.

KeyhopError
├── CannotStart            the request cannot be done like this; nothing has been read
│   ├── TableNotFound
│   ├── IndexNotFound
│   ├── IndexBusy          another process builds, audits or removes the key index
│   └── RunConflict        the output already holds another run, or a finished one
├── MetadataLost           a key has items in shards that the shard metadata does not have
├── TooExpensive           the upper end of the estimate is over the limit in dollars; only a sample
│                          was read, but it can also stop a scheduled run, so it raises an alarm
├── AwsRefused             the service refused the request; a retry does not help
│   ├── NoCredentials      there are no credentials, or they are not valid
│   └── NotPermitted
├── Unreachable            the endpoint does not answer
├── StoreUnavailable       the storage of the results does not answer; the run can be resumed
├── GaveUp                 requests were throttled or failed for too long; the run can be resumed
├── NoProgress             a worker had too little time to commit anything
├── BudgetSpent            the next page may exceed the budget; the run can be resumed
├── SegmentsTooLarge       a check cannot read a segment to its end in the time allowed
├── StaleIndex            the key index that a run has read may be stale: the run starts again
├── KeysMissing            a check found keys that the run did not report
└── BrokenPromise          the service, or a stored run, contradicts its own guarantees: to continue
                           could lose keys
"""


class KeyhopError(Exception): ...


class CannotStart(KeyhopError): ...


class TableNotFound(CannotStart): ...


class IndexNotFound(CannotStart): ...


class IndexBusy(CannotStart): ...


class MetadataLost(KeyhopError): ...


class RunConflict(CannotStart): ...


class TooExpensive(KeyhopError): ...


class AwsRefused(KeyhopError): ...


class NoCredentials(AwsRefused): ...


class NotPermitted(AwsRefused): ...


class Unreachable(KeyhopError): ...


class StoreUnavailable(KeyhopError): ...


class GaveUp(KeyhopError): ...


class NoProgress(KeyhopError): ...


class BudgetSpent(KeyhopError): ...


class SegmentsTooLarge(KeyhopError): ...


class StaleIndex(KeyhopError): ...


class KeysMissing(KeyhopError):
    """missing: how many."""

    def __init__(self, message: str, missing: int = 0) -> None:
        super().__init__(message)
        self.missing = missing


class BrokenPromise(KeyhopError): ...
