"""Explore every interleaving of users and attempts at a row: puts, deletes, crashes, late twins.

The explorer runs the courses of `keyhop.each.protocol` themselves. The state of an attempt between
two calls is its list of answers: its course is run again for each call. A world is a value.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from keyhop.each.outcomes import GONE, GUARDED, PUT
from keyhop.each.protocol import FOUND, Answer, Call, Course
from keyhop.each.protocol import Rules as Given

from testing.worlds import reachable

OURS, EQUAL, OTHER = "ours", "a user's, equal", "a user's"
"""The item in our place. Courses distinguish the first two only if the contents show the owner."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt at a row.

    Attributes:
        answers: The answers so far.
        witness: The witness that the last look found.
        unsure: Whether the answer to a put was lost.
        outcome: The outcome that it will commit next.
        over: Whether it has committed, or was killed.
    """

    answers: tuple[Answer, ...] = ()
    witness: str = ""
    unsure: bool = False
    outcome: str | None = None
    over: bool = False


@dataclass(frozen=True, slots=True)
class World:
    """A collection, its users, and the attempts to put our item into it.

    Attributes:
        users: The remaining writes of each user, in order: "+a" and "-a", or "+", "-" and "~"
            (change the item) at our place.
        items: The items of users that are not at our place.
        more: How many attempts may still begin.
        twins: Whether an attempt may begin while another one is running.
        crashes, losses: How many attempts may be killed, and how many answers be lost.
        result: The first outcome that was committed.
        was_empty: Whether users had no item at some moment while our item was not in its place.
        was_right: Whether users had an item at some moment while our item was in its place.
        last_taker: Who last removed our item from its place.
    """

    users: tuple[tuple[str, ...], ...] = ()
    items: frozenset[str] = frozenset("a")
    place: str | None = None
    sentinel: bool = False
    attempts: tuple[Attempt, ...] = ()
    more: int = 1
    twins: bool = False
    crashes: int = 0
    losses: int = 0
    result: str | None = None
    was_empty: bool = False
    was_right: bool = False
    last_taker: str = ""
    harm: str = ""

    @property
    def has_users_items(self) -> bool:
        return bool(self.items) or self.place in (EQUAL, OTHER)

    @property
    def is_at_rest(self) -> bool:
        return self.result is not None and not any(self.users) and not self.is_active

    @property
    def is_active(self) -> bool:
        return not all(attempt.over for attempt in self.attempts)

    def with_history(self) -> "World":
        """Return the world with an updated history, after a step."""
        has = self.has_users_items
        was_right = self.place == OURS and (self.was_right or has)
        return replace(self, was_empty=self.was_empty or not has, was_right=was_right)


@dataclass(frozen=True)
class Rules:
    """The rules that are explored; mutants change one, to show that each is needed.

    Attributes:
        given: The rules of the protocol.
        course: A course to run instead of the protocol's.
        sees_sentinels: Whether a sentinel counts as a witness.
        sees_itself: Whether our item counts as a witness.
        unconditional: Whether our item is taken back whatever item is in its place.
        known: A cache of calls and outcomes.
    """

    given: Given = field(default_factory=Given)
    course: Callable[[Given], Course] | None = None
    sees_sentinels: bool = False
    sees_itself: bool = False
    unconditional: bool = False
    known: dict[Any, Any] = field(default_factory=dict)

    def explore(self, world: World, maximum: int = 3_000_000) -> tuple[int, list[World]]:
        """Return the number of reachable worlds, and those that are at rest or harmed."""

        def nexts(world: World) -> Iterator[World]:
            if not world.harm:
                yield from (neighbour.with_history() for neighbour in self.nexts(world))

        worlds = [*reachable(world.with_history(), nexts, maximum)]
        return len(worlds), [each for each in worlds if each.is_at_rest or each.harm]

    def nexts(self, world: World) -> Iterator[World]:
        """Yield all worlds that are one step away."""
        for number, script in enumerate(world.users):
            if script:
                users = (*world.users[:number], script[1:], *world.users[number + 1 :])
                yield _used(replace(world, users=users), script[0])
        may_begin = world.twins or (world.result is None and not world.is_active)
        if world.more and may_begin:
            attempts = (*world.attempts, Attempt())
            yield replace(world, attempts=attempts, more=world.more - 1)
        for number, attempt in enumerate(world.attempts):
            if not attempt.over:
                yield from self._acted(world, number, attempt)

    def following(self, attempt: Attempt) -> Call | str:
        """Return an attempt's next call, or its outcome."""
        if attempt.answers not in self.known:
            course = (self.course or self.given.course)(self.given)
            try:
                call = next(course)
                for answer in attempt.answers:
                    call = course.send(answer)
                self.known[attempt.answers] = call
            except StopIteration as end:
                self.known[attempt.answers] = end.value
        step: Call | str = self.known[attempt.answers]
        return step

    def _acted(self, world: World, number: int, attempt: Attempt) -> Iterator[World]:
        if world.crashes and (world.more or world.twins):
            yield replace(_with(world, number, Attempt(over=True)), crashes=world.crashes - 1)
        if attempt.outcome is not None:
            result = world.result or attempt.outcome
            yield replace(_with(world, number, Attempt(over=True)), result=result)
            return
        call = self.following(attempt)
        assert isinstance(call, Call)
        next_world, answer, witness = self._called(world, attempt, call)
        if call is Call.PUT and world.losses:
            unsure = replace(attempt, unsure=True)
            yield replace(_with(next_world, number, unsure), losses=world.losses - 1)
        attempt = replace(attempt, answers=(*attempt.answers, answer), witness=witness)
        outcome = self.following(attempt)
        if outcome is self.following(Attempt()):  # a course that restarts has lost its answers
            attempt = replace(attempt, answers=())
        if isinstance(outcome, str):
            attempt = Attempt(outcome=outcome)
        yield _with(next_world, number, attempt)

    def _called(self, world: World, attempt: Attempt, call: Call) -> tuple[World, Answer, str]:
        """Make a call, which is atomic like a request for one item, or a transaction."""
        place, witness = world.place, attempt.witness
        at_place = {None: Answer.FREE, OTHER: Answer.OTHER}.get(place, Answer.EQUAL)
        if call is Call.ASK:
            tried = attempt.unsure or len(world.attempts) > 1
            return world, Answer.EQUAL if tried else Answer.FREE, witness
        if call is Call.READ:
            return world, at_place, witness
        if call is Call.LOOK:
            witnesses = sorted(world.items) + ["!"] * (self.sees_sentinels and world.sentinel)
            witnesses += ["place"] * (self.sees_itself and place is not None)
            if witnesses:
                return world, Answer.WITNESS, witnesses[0]
            return world, Answer.FREE if place is None else Answer.ALONE, ""
        if call is Call.TAKE_BACK:
            if self.unconditional and place == OTHER:
                return replace(world, harm="an item of a user is deleted"), Answer.FREE, witness
            if at_place is not Answer.EQUAL:
                return world, at_place, witness
            if place == EQUAL:
                return replace(world, harm="an item of a user is deleted"), Answer.FREE, witness
            removed = replace(world, place=None, was_empty=False, last_taker="us")
            return removed, Answer.FREE, witness
        if call is Call.REPLACE and place is None:
            return world, Answer.LOST, witness
        witnesses = [*world.items, "!" * world.sentinel, "place"]
        if call is Call.CHECKED_PUT and witness not in witnesses:
            return world, Answer.LOST, witness
        overwrites = self.given.overwrite and call is not Call.PUT
        if place is not None and not overwrites:
            return world, at_place, witness
        # An overwritten item of a user is itself a witness.
        was_right = world.was_right if place == OURS else place is not None
        written = replace(world, place=OURS, was_right=was_right, was_empty=False)
        return written, Answer.FREE, witness


def is_alone(world: World) -> bool:
    """Return whether our item has been alone in its collection since it was put."""
    return world.place == OURS and not world.has_users_items and not world.was_right


def is_miscounted(world: World) -> bool:
    """Return whether the committed outcome contradicts the presence of our item.

    A user may have removed it, or a late twin from a collection that users have emptied.
    """
    if world.result in (PUT, FOUND):
        twins = world.twins and world.was_empty
        return world.place is None and world.last_taker != "user" and not twins
    return world.place == OURS


def is_robbed(world: World) -> bool:
    """Return whether the outcome denies a collection that existed all the time without our item."""
    return world.result in (GUARDED, GONE) and not world.was_empty


def _used(world: World, operation: str) -> World:
    """Apply a user's write. An item that a user puts into our place differs from ours."""
    action, name = operation[0], operation[1:]
    if name:
        items = world.items | {name} if action == "+" else world.items - {name}
        return replace(world, items=items)
    last_taker = "user" if world.place == OURS else world.last_taker
    if action == "-":
        was_empty = world.was_empty and world.place != OURS
        return replace(world, place=None, last_taker=last_taker, was_empty=was_empty)
    if action == "~" and world.place is None:
        return world
    return replace(world, place=OTHER, last_taker=last_taker)


def _with(world: World, number: int, attempt: Attempt) -> World:
    attempts = (*world.attempts[:number], attempt, *world.attempts[number + 1 :])
    return replace(world, attempts=attempts)
