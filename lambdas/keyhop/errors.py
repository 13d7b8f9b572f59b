"""The errors a user can meet; each message is one sentence that says what to do.

KeyhopError
├── CannotStart            what was asked for cannot be done as it stands; nothing has been read
│   ├── TableNotFound
│   ├── IndexNotFound
│   ├── IndexBusy          somebody else builds, audits or removes the key index
│   └── RunConflict        the output already holds another run, or a finished one
├── MetadataLost           a key has items in shards that the shard metadata does not know
├── TooExpensive           the upper end of the estimate is over the limit in dollars; only a sample
│                          was read, but a schedule may meet it too, so somebody has to hear of it
├── AwsRefused             the service said no; asking again does not help
│   ├── NoCredentials      there are none, or they are not valid
│   └── NotPermitted
├── Unreachable            no answer from the endpoint at all
├── StoreUnavailable       the results' place does not answer; the run can be resumed
├── GaveUp                 throttled or failing for too long; the run can be resumed
├── NoProgress             the time that a worker was allowed did not suffice for anything
├── BudgetSpent            the next page would cost more than is left; the run can be resumed
├── SegmentsTooLarge       a check cannot read a segment to its end in the time allowed
├── Disbelieved            what a run has read is not to be believed any more: it begins anew
├── KeysMissing            a check found keys that the run did not report
└── BrokenPromise          the service, or a stored run, contradicts what it promises: going on
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


class Disbelieved(KeyhopError): ...


class KeysMissing(KeyhopError):
    """missing: how many."""

    def __init__(self, message: str, missing: int = 0) -> None:
        super().__init__(message)
        self.missing = missing


class BrokenPromise(KeyhopError): ...
