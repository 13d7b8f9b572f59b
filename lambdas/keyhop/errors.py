"""The errors a user can meet; each message is one sentence that says what to do.

KeyhopError
├── CannotStart            what was asked for cannot be done as it stands
│   ├── TableNotFound
│   ├── IndexNotFound
│   └── RunConflict        the output already holds something else
├── AwsRefused             the service said no; asking again does not help
│   ├── NoCredentials
│   └── NotPermitted
├── Unreachable            no answer from the endpoint at all
├── StoreUnavailable       the results' place does not answer; the run can be resumed
├── GaveUp                 throttled or failing for too long; the run can be resumed
├── NoProgress             the time allowed did not suffice for anything
├── BudgetSpent            the next page would cost more than is left; the run can be resumed
├── SegmentsTooLarge       a check cannot read a segment to its end in the time allowed
├── KeysMissing            a check found keys that the run did not report
└── BrokenPromise          the service, or a stored run, contradicts what it promises
"""


class KeyhopError(Exception):
    """Base of all errors that Keyhop explains."""


class CannotStart(KeyhopError):
    """What was asked for cannot be done as it stands; nothing has been read."""


class TableNotFound(CannotStart):
    """No such table in this account and region."""


class IndexNotFound(CannotStart):
    """The table has no such index."""


class RunConflict(CannotStart):
    """The place for the output holds another run, or a finished one."""


class AwsRefused(KeyhopError):
    """The service refused; asking again does not help."""


class NoCredentials(AwsRefused):
    """There are no AWS credentials, or they are not valid."""


class NotPermitted(AwsRefused):
    """The credentials lack a permission."""


class Unreachable(KeyhopError):
    """The endpoint did not answer at all."""


class StoreUnavailable(KeyhopError):
    """The place for the results does not answer, or refuses for the moment."""


class GaveUp(KeyhopError):
    """Nothing has succeeded for as long as patience allows."""


class NoProgress(KeyhopError):
    """The time that a worker was allowed did not suffice for anything."""


class BudgetSpent(KeyhopError):
    """The next page would cost more read units than the run may still spend."""


class SegmentsTooLarge(KeyhopError):
    """A check cannot read a segment to its end in the time allowed."""


class KeysMissing(KeyhopError):
    """A check of a finished run found keys that it did not report. missing: how many."""

    def __init__(self, message: str, missing: int = 0) -> None:
        super().__init__(message)
        self.missing = missing


class BrokenPromise(KeyhopError):
    """Something that must hold does not: going on could lose keys."""
