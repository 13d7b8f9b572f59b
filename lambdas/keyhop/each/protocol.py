"""The protocol that puts an item into a collection without creating a collection. Pure.

A course is a sequence of calls for one row. Each call is atomic and strongly consistent. Users may
write between two calls. If the process is killed, the row is processed again from the start.

*none*: put the item if no item has its key. If the collection was deleted after its key was listed,
the item is then the only one with this partition key.

*look*: put the item, then look for a witness: an item of the collection that is neither ours nor a
sentinel. If there is none, our item is alone. Delete it on condition that all of its attributes are
as we put them, and look again. If there is still no witness, the collection did not exist. If there
is one, a user has written between the look and the delete, and our item is missing: start again. So
the last look of a course comes after its last write. Until then a crash means that the row is
processed again: the next attempt finds the equal item, and continues with the look.

*transaction*: look for a witness first. Put the item in a transaction that checks that this witness
exists. If it no longer exists, look for another. If there is none, the collection does not exist.
Our item is never alone.

*An equal item* was put by this run only if another attempt may have processed the row before, or
may be processing it now. This is checked after the item was found. Even then it may be a user's
item with the same content, unless the content identifies the run (with ${run} or ${now}). If it
does not, the item counts as put, and neither the guard nor an undo deletes it: an item left alone
does less harm than a user's item deleted.

Limits: an item that a user writes between our put and our delete, with exactly our content, is
treated as ours. A *late twin* processes a row whose outcome another process has committed. It may
delete an item from a collection that users have emptied since, or put one into a collection that
users have refilled since. If it is killed between its put and its look, no other attempt looks.

*overwrite* replaces an item that has the key. A user's item with this key is itself a witness, and
is replaced on condition that it exists.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from enum import Enum

from keyhop.each.outcomes import GONE, GUARDED, PUT, THERE

FOUND = "found"
"""An equal item existed, put by an earlier attempt or by a user: it counts as put."""


class Call(Enum):
    """The next call, with its possible answers."""

    PUT = "put our item, if nothing has its key: FREE (it is written), EQUAL or OTHER"
    ASK = "whether somebody else may have put it: FREE for no, EQUAL for yes"
    LOOK = "for a witness: WITNESS, ALONE (something has our key, and there is nothing else), FREE"
    TAKE_BACK = "delete our item if all of it is as it was put: FREE (it is gone), or OTHER"
    READ = "what has our key: FREE, EQUAL or OTHER"
    CHECKED_PUT = "as PUT, together with a check of the witness; or LOST: that one is gone"
    REPLACE = "put our item where another one is: FREE (it is written), or LOST: none is there"


class Answer(Enum):
    """The answer to a call; the descriptions of the calls explain the values."""

    FREE = "free"
    EQUAL = "equal"
    OTHER = "other"
    WITNESS = "witness"
    ALONE = "alone"
    LOST = "lost"


Course = Generator[Call, Answer, str]
"""A generator that yields calls, receives their answers, and returns the outcome."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for putting an item. telling: whether the item's content identifies the run."""

    guard: str = "look"
    overwrite: bool = False
    telling: bool = False

    @property
    def course(self) -> Callable[["Rules"], Course]:
        return put_in_transaction if self.guard == "transaction" else put


def put(rules: Rules) -> Course:
    """The course of the guards none and look."""
    while True:
        answer = yield Call.PUT
        if answer is Answer.OTHER:
            return THERE
        if answer is Answer.EQUAL:
            if (yield Call.ASK) is Answer.FREE:
                return THERE
            if not rules.telling:
                return FOUND
        if rules.guard == "none":
            return PUT
        if (yield Call.LOOK) is Answer.WITNESS:
            return PUT
        if (yield Call.TAKE_BACK) is Answer.OTHER:
            return PUT  # a user has changed it: it is theirs now
        if (yield Call.LOOK) is Answer.FREE:
            return GUARDED


def put_in_transaction(rules: Rules) -> Course:
    """The course of the guard transaction."""
    while True:
        look = yield Call.LOOK
        if look is Answer.FREE:
            return GONE
        if look is Answer.WITNESS or rules.overwrite:
            answer = yield Call.CHECKED_PUT if look is Answer.WITNESS else Call.REPLACE
            if answer is Answer.LOST:
                continue
        else:
            answer = yield Call.READ
            if answer is Answer.FREE:
                continue
            if answer is Answer.OTHER:
                return THERE
        if answer is Answer.EQUAL:
            if (yield Call.ASK) is Answer.FREE:
                return THERE
            return PUT if rules.telling else FOUND
        return THERE if answer is Answer.OTHER else PUT
