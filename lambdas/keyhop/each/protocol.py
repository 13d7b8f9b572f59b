"""How an item is put into a collection so that it does not become one itself. Pure.

A course of calls for one row, each atomic and strongly consistent. Users write meanwhile; the
process may be killed between any two calls, and then the row is worked again from the start.

*none*: put the item if nothing has its key. If the collection was deleted since its key was listed,
the item now stands alone.

*look*: put it, then look for a witness: an item of the collection that is neither ours nor a
sentinel. If there is none, our item stands alone: take it back, on condition that all of it is as
we have put it, and look again. Still nothing: there was no collection. But a user may have written
between the look and the taking back; then the collection is there, without our item: begin anew.
So the last of the facts that a course ends with was seen after its last write. At each moment
somebody is still to look at what he has put, unless he is killed; then whoever works the row again
finds the item, equal to what he would put, and looks in his place.

*transaction*: look for a witness first; put the item in a transaction that checks that this witness
is there. If it has gone meanwhile, look for another; without one there is no collection. Our item
never stands alone, not for a moment.

*An equal item* that is found was put by this run only if somebody may have worked the row before,
or may be working it now. So one asks for that, and asks after one has found it. Even so it may be a
user's own, which only has the same content; but not if the content tells the run (it has ${run} or
${now} in it). If it does not tell, such an item counts as put, and is left where it is, by
the guard as by an undo: better an item that stands alone than one of a user that is deleted.

What a user writes between our put and the taking back, with exactly our content, is taken for ours.
A *late twin*, who works a row whose outcome another has committed, may take back an item of a
collection that users have emptied since, or put one into a collection that users have refilled
since; if he is killed between his put and his look, nobody looks.

*Overwriting* replaces what has the item's key. An item of a user's in that place is a witness
itself: it is replaced on condition that something is there.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from enum import Enum

from keyhop.each.outcomes import GONE, GUARDED, PUT, THERE

FOUND = "found"
"""An equal item was there, which an earlier attempt has put, or a user: it counts as put."""


class Call(Enum):
    """What to ask next; and what the answer can be."""

    PUT = "put our item, if nothing has its key: FREE (it is written), EQUAL or OTHER"
    ASK = "whether somebody else may have put it: FREE for no, EQUAL for yes"
    LOOK = "for a witness: WITNESS, ALONE (something has our key, and there is nothing else), FREE"
    TAKE_BACK = "delete our item if all of it is as it was put: FREE (it is gone), or OTHER"
    READ = "what has our key: FREE, EQUAL or OTHER"
    CHECKED_PUT = "as PUT, together with a check of the witness; or LOST: that one is gone"
    REPLACE = "put our item where another one is: FREE (it is written), or LOST: none is there"


class Answer(Enum):
    """What a call has found. The words are the calls'."""

    FREE = "free"
    EQUAL = "equal"
    OTHER = "other"
    WITNESS = "witness"
    ALONE = "alone"
    LOST = "lost"


Course = Generator[Call, Answer, str]
"""Yields calls, is sent their answers, returns the outcome."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How to put. telling: whether the item's content tells that it is of this run."""

    guard: str = "look"
    overwrite: bool = False
    telling: bool = False

    @property
    def course(self) -> Callable[["Rules"], Course]:
        return put_in_transaction if self.guard == "transaction" else put


def put(rules: Rules) -> Course:
    """The course of guards none and look."""
    while True:
        found = yield Call.PUT
        if found is Answer.OTHER:
            return THERE
        if found is Answer.EQUAL:
            if (yield Call.ASK) is Answer.FREE:
                return THERE
            if not rules.telling:
                return FOUND
        if rules.guard == "none":
            return PUT
        if (yield Call.LOOK) is Answer.WITNESS:
            return PUT
        if (yield Call.TAKE_BACK) is Answer.OTHER:
            return PUT  # a user has changed it: it is his now
        if (yield Call.LOOK) is Answer.FREE:
            return GUARDED


def put_in_transaction(rules: Rules) -> Course:
    """The course of guard transaction."""
    while True:
        seen = yield Call.LOOK
        if seen is Answer.FREE:
            return GONE
        if seen is Answer.WITNESS or rules.overwrite:
            found = yield Call.CHECKED_PUT if seen is Answer.WITNESS else Call.REPLACE
            if found is Answer.LOST:
                continue
        else:
            found = yield Call.READ
            if found is Answer.FREE:
                continue
            if found is Answer.OTHER:
                return THERE
        if found is Answer.EQUAL:
            if (yield Call.ASK) is Answer.FREE:
                return THERE
            return PUT if rules.telling else FOUND
        return THERE if found is Answer.OTHER else PUT
