"""Every interleaving of users and attempts at one row: a put against deletes, crashes, late twins.

The courses of `keyhop.each.protocol` themselves are explored: an attempt between two calls is the
answers that it has had, and its course is run anew for each call. A world is a value.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from keyhop.each.outcomes import GONE, GUARDED, PUT
from keyhop.each.protocol import FOUND, Answer, Call, Course
from keyhop.each.protocol import Rules as Given

from testing.worlds import reachable

OURS, EQUAL, OTHER = "ours", "a user's, equal", "a user's"
"""What is in our place. Courses cannot tell the first two from each other, unless contents tell."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """At a row. answers: so far. witness: that the last look has found. unsure: an answer of a put
    was lost. outcome: that it is about to commit. over: it has, or was killed.
    """

    answers: tuple[Answer, ...] = ()
    witness: str = ""
    unsure: bool = False
    outcome: str | None = None
    over: bool = False


@dataclass(frozen=True, slots=True)
class World:
    """users: what each will yet do, in order: "+a", "-a"; "+" and "-" at our place, "~" changes
    what is there. items: of users, beside our place.

    attempts: that have begun; more: how many may yet begin; twins: also while another is at work.
    crashes, losses: how many attempts may be killed, and answers be lost. result: that was
    committed first. was_empty: since our item was last taken from its place, or never was there,
    users had no item, at some moment. was_right: since it is there, users had one. taken: who has
    taken it last from there.
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
    taken: str = ""
    harm: str = ""

    @property
    def has_users_items(self) -> bool:
        return bool(self.items) or self.place in (EQUAL, OTHER)

    @property
    def is_at_rest(self) -> bool:
        return self.result is not None and not any(self.users) and not self.at_work

    @property
    def at_work(self) -> bool:
        return not all(attempt.over for attempt in self.attempts)

    def noted(self) -> "World":
        """After a step: what of the present moment is remembered."""
        has = self.has_users_items
        was_right = self.place == OURS and (self.was_right or has)
        return replace(self, was_empty=self.was_empty or not has, was_right=was_right)


@dataclass(frozen=True)
class Rules:
    """What is explored; others than the defaults are mutants, to show what each part is for.

    course: in place of the protocol's. sees_sentinels: they are taken for witnesses.
    sees_itself: so is our item. unconditional: our item is taken back whatever is in its place.
    """

    given: Given = field(default_factory=Given)
    course: Callable[[Given], Course] | None = None
    sees_sentinels: bool = False
    sees_itself: bool = False
    unconditional: bool = False
    known: dict[Any, Any] = field(default_factory=dict)

    def explore(self, world: World, most: int = 3_000_000) -> tuple[int, list[World]]:
        """How many worlds can come of it, and those of them at rest, or harmed."""

        def nexts(here: World) -> Iterator[World]:
            if not here.harm:
                yield from (there.noted() for there in self.nexts(here))

        worlds = [*reachable(world.noted(), nexts, most)]
        return len(worlds), [one for one in worlds if one.is_at_rest or one.harm]

    def nexts(self, world: World) -> Iterator[World]:
        """All worlds that are one step away."""
        for number, script in enumerate(world.users):
            if script:
                users = (*world.users[:number], script[1:], *world.users[number + 1 :])
                yield _used(replace(world, users=users), script[0])
        may_begin = world.twins or (world.result is None and not world.at_work)
        if world.more and may_begin and (world.attempts or not world.at_work):
            begun = (*world.attempts, Attempt())
            yield replace(world, attempts=begun, more=world.more - 1)
        for number, attempt in enumerate(world.attempts):
            if not attempt.over:
                yield from self._acted(world, number, attempt)

    def following(self, attempt: Attempt) -> Call | str:
        """Its next call; or its outcome."""
        if attempt.answers not in self.known:
            course = (self.course or self.given.course)(self.given)
            try:
                call = next(course)
                for answer in attempt.answers:
                    call = course.send(answer)
                self.known[attempt.answers] = call
            except StopIteration as end:
                self.known[attempt.answers] = end.value
        found: Call | str = self.known[attempt.answers]
        return found

    def _acted(self, world: World, number: int, attempt: Attempt) -> Iterator[World]:
        if world.crashes and (world.more or world.twins):
            yield replace(_with(world, number, Attempt(over=True)), crashes=world.crashes - 1)
        if attempt.outcome is not None:
            result = world.result or attempt.outcome
            yield replace(_with(world, number, Attempt(over=True)), result=result)
            return
        call = self.following(attempt)
        assert isinstance(call, Call)
        there, answer, witness = self._called(world, number, attempt, call)
        if call is Call.PUT and world.losses:
            unsure = replace(attempt, unsure=True)
            yield replace(_with(there, number, unsure), losses=world.losses - 1)
        told = replace(attempt, answers=(*attempt.answers, answer), witness=witness)
        outcome = self.following(told)
        if outcome is self.following(Attempt()):  # a course that begins anew has forgotten all
            told = replace(told, answers=())
        if isinstance(outcome, str):
            told = Attempt(outcome=outcome)
        yield _with(there, number, told)

    def _called(
        self, world: World, number: int, attempt: Attempt, call: Call
    ) -> tuple[World, Answer, str]:
        """A call, served: atomic, as a request for one item is, and a transaction."""
        place, witness = world.place, attempt.witness
        at_place = {None: Answer.FREE, OTHER: Answer.OTHER}.get(place, Answer.EQUAL)
        if call is Call.ASK:
            tried = attempt.unsure or len(world.attempts) > 1
            return world, Answer.EQUAL if tried else Answer.FREE, witness
        if call is Call.READ:
            return world, at_place, witness
        if call is Call.LOOK:
            others = sorted(world.items) + ["!"] * (self.sees_sentinels and world.sentinel)
            others += ["place"] * (self.sees_itself and place is not None)
            if others:
                return world, Answer.WITNESS, others[0]
            return world, Answer.FREE if place is None else Answer.ALONE, ""
        if call is Call.TAKE_BACK:
            if self.unconditional and place == OTHER:
                return replace(world, harm="an item of a user is deleted"), Answer.FREE, witness
            if at_place is not Answer.EQUAL:
                return world, at_place, witness
            if place == EQUAL:
                return replace(world, harm="an item of a user is deleted"), Answer.FREE, witness
            gone = replace(world, place=None, was_empty=False, taken="us")
            return gone, Answer.FREE, witness
        if call is Call.REPLACE and place is None:
            return world, Answer.LOST, witness
        if call is Call.CHECKED_PUT and witness not in {
            *world.items,
            "!" * world.sentinel,
            "place",
        }:
            return world, Answer.LOST, witness
        overwrites = self.given.overwrite and call is not Call.PUT
        if place is not None and not overwrites:
            return world, at_place, witness
        # A user's item that is overwritten is a witness itself.
        was_right = world.was_right if place == OURS else place is not None
        written = replace(world, place=OURS, was_right=was_right, was_empty=False)
        return written, Answer.FREE, witness


def is_alone(world: World) -> bool:
    """Whether our item stands alone, and did so ever since it was put."""
    return world.place == OURS and not world.has_users_items and not world.was_right


def is_miscounted(world: World) -> bool:
    """Whether our item is where the committed outcome says that it is not, or the reverse.

    Taken away by a user it may be; and by a late twin from a collection that users have emptied.
    """
    if world.result in (PUT, FOUND):
        twins = world.twins and world.was_empty
        return world.place is None and world.taken != "user" and not twins
    return world.place == OURS


def is_robbed(world: World) -> bool:
    """Whether the outcome says that there was no collection, but there was one all the time since
    our item was taken from it, or without it ever being there.
    """
    return world.result in (GUARDED, GONE) and not world.was_empty


def _used(world: World, operation: str) -> World:
    """A user's write. What a user puts into our place is another content than ours."""
    does, name = operation[0], operation[1:]
    if name:
        items = world.items | {name} if does == "+" else world.items - {name}
        return replace(world, items=items)
    if does == "-":
        taken = "user" if world.place == OURS else world.taken
        was_empty = world.was_empty and world.place != OURS
        return replace(world, place=None, taken=taken, was_empty=was_empty)
    if does == "~" and world.place is None:
        return world
    taken = "user" if world.place == OURS else world.taken
    return replace(world, place=OTHER, taken=taken)


def _with(world: World, number: int, attempt: Attempt) -> World:
    attempts = (*world.attempts[:number], attempt, *world.attempts[number + 1 :])
    return replace(world, attempts=attempts)
