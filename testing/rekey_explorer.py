"""Every interleaving of users, workers, sweeps, a backfill and a verification, over a few keys.

What is explored is `keyhop.rekey.worker.protocol.Protocol` itself, and the decision of verify,
`keyhop.rekey.compare.look.verdict`. A world is a tuple; whatever is
not a number in it stands there by its number (`Numbers`), so that worlds are small and equal
quickly, and each step of a work is computed once. Worlds that differ only in which of two alike
workers does what are one world: workers have no names, and share nothing but what lies in the
tables.

Time is not in it. What rests on time is stated as order: a wait ends when the requests that it is
for have taken effect, or never will.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from keyhop.rekey.compare.rows import Look, Verdict, verdict
from keyhop.rekey.worker.protocol import WRITES, Claim, Kind, Protocol, Work

from testing.rekey_explored import (
    DONE,
    NEW,
    NOT_CLEAN,
    PUT_IF_ABSENT,
    TO_DO,
    Image,
    Known,
    Record,
    Scenario,
    claimed,
    differences,
    effect,
    is_settled,
    look_of,
    place_of,
    with_owner,
)
from testing.worlds import explored, with_more

World = tuple[Any, ...]
"""(source, destination, script, records, slots, late, claims, copies, crashes, fill, verify)

source: an image or None for each key; destination: (owner, image) or None for each place; script:
how far; records, slots, late: numbers, sorted; slots holds busy ones only; claims: (place, owner,
token), sorted; fill: of each source key TO_DO, DONE, or the number of what is in hand; verify: the
same, once.
"""


@dataclass
class Explorer:
    """protocol: what is explored. effect: what its requests do. Others than the defaults are
    mutants, to show what each part is for."""

    scenario: Scenario
    protocol: Protocol = field(default_factory=lambda: Protocol(place_of))
    effect: Callable[..., tuple[Any, Any, Any]] = field(default_factory=lambda: effect)

    known: Known = field(default_factory=Known)

    def __post_init__(self) -> None:
        known = self.known
        self.records, self.works, self.slots = known.records, known.works, known.slots
        self.lates, self.hands = known.lates, known.hands
        self.calls, self.after, self.judged = known.calls, known.after, known.judged

    def explore(self) -> tuple[int, World | None]:
        """How many worlds there are, and one that is at rest and wrong; None if none is."""

        def is_right(world: World) -> bool:
            return not self.is_quiet(world) or self.is_right(world)

        return explored(self.scenario.first(), self.nexts, is_right)

    def is_quiet(self, world: World) -> bool:
        """Nothing is left to be done but sweeping."""
        _, _, at, records, slots, late, _, _, _, fill, verify = world
        if records or slots or late or verify != DONE or at < len(self.scenario.script):
            return False
        return all(state == DONE for state in fill)

    def is_right(self, world: World) -> bool:
        """After the claims are swept, the destination is as the source says, or is claimed."""
        source, there, claims = world[0], world[1], world[6]
        key = (source, there, claims)
        if key not in self.judged:
            self.judged[key] = self._judge(source, there, claims)
        return self.judged[key]

    def _judge(self, source: Any, there: Any, claims: Any) -> bool:
        claims = tuple(sorted({(place, owner, max(token, NEW)) for place, owner, token in claims}))
        for _ in range(4):
            for place, owner, _token in claims:
                there, claims = self.swept(source, there, claims, place, owner)
        return is_settled(source, there, claims)

    def swept(self, source: Any, there: Any, claims: Any, place: int, owner: int) -> Any:
        """One claim, with nobody else at work."""
        claims = claimed(claims, place, owner, 1)
        work = self.protocol.settle(Claim(place, owner, 1))
        while (call := self.protocol.call(work)) is not None:
            step = (call.kind, call.source, call.place, call.image, call.owner, call.fence)
            there, claims, answer = self.effect(step, source, there, claims)
            work = self.protocol.answered(work, answer)
        return there, tuple(claim for claim in claims if claim != (place, owner, 1))

    def nexts(self, world: World) -> Iterator[World]:
        """All worlds that are one step away."""
        source, there, at, records, slots, late, claims, copies, crashes, fill, verify = world
        script = self.scenario.script
        rest = (copies, crashes, fill, verify)
        if at < len(script):
            key, image = script[at]
            old = source[key]
            more = records
            if old != image:
                places = tuple(sorted({it[0] for it in (old, image) if it is not None}))
                more = with_more(records, self.records(Record(key, places, image)))
            now = (*source[:key], image, *source[key + 1 :])
            yield (now, there, at + 1, more, slots, late, claims, *rest)
        for place in range(len(slots)):
            if place and slots[place] == slots[place - 1]:
                continue
            others = slots[:place] + slots[place + 1 :]
            yield from self._worked(world, slots[place], others)
        sweeping, working = self._busy(slots)
        if records and working < self.scenario.workers:
            yield from self._delivered(world)
        if claims and sweeping < self.scenario.sweepers:
            for place, owner, held in claims:
                if held < NEW:  # in a row with others (rekey_joint_explorer.py)
                    continue
                token = self._token(slots, late)
                swept = self.records(Record(owner, (place,), None, sweep=token))
                work = self.works(self.protocol.settle(Claim(place, owner, token)))
                busy = with_more(slots, self.slots((swept, work, True)))
                taken = claimed(claims, place, owner, token)
                yield (source, there, at, records, busy, late, taken, *rest)
        for place, request in enumerate(late):
            left = late[:place] + late[place + 1 :]
            yield (source, there, at, records, slots, left, claims, *rest)
            now, put, _ = self.effect(self.lates.values[request][1], source, there, claims)
            if now != there or put != claims:
                yield (source, now, at, records, slots, left, put, *rest)
        if any(state != DONE for state in fill):
            yield from self._filled(world)
        elif verify != DONE:
            yield from self._verified(world)

    def _busy(self, slots: Any) -> tuple[int, int]:
        """Return how many settle claims, and how many work batches."""
        sweeping = sum(self.slots.values[slot][2] for slot in slots)
        return sweeping, len(slots) - sweeping

    def _token(self, slots: Any, late: Any) -> int:
        """One that nobody has."""
        used = {self.records.values[self.slots.values[slot][0]].sweep for slot in slots}
        used |= {self.lates.values[request][1][5] for request in late}
        return next(token for token in range(1, 9) if token not in used)

    def _step(self, work: int) -> Any:
        """What a work asks next, as a tuple; None: done."""
        if work not in self.calls:
            call = self.protocol.call(self.works.values[work])
            self.calls[work] = call and (
                *(call.kind, call.source, call.place, call.image, call.owner, call.fence),
            )
        return self.calls[work]

    def _answered(self, work: int, answer: Any) -> int:
        key = (work, answer)
        if key not in self.after:
            now: Work = self.works.values[work]
            lost = answer == "lost"
            then = self.protocol.unanswered(now) if lost else self.protocol.answered(now, answer)
            self.after[key] = self.works(then)
        return self.after[key]

    def _left(self, work: int) -> int | None:
        """Instead of a write: as it is not taken, or as there were too many before it."""
        key = (work, "left")
        if key not in self.after:
            now: Work = self.works.values[work]
            may_be = now.step in WRITES and not now.is_left
            self.after[key] = self.works(self.protocol.leave(now)) if may_be else None
        return self.after[key]

    def _worked(self, world: World, slot: int, others: Any) -> Iterator[World]:
        """One call of a worker; or it is killed, gets no answer, or leaves its work."""
        source, there, at, records, _, late, claims, copies, crashes, fill, verify = world
        number, work, sweeps = self.slots.values[slot]
        rest = (copies, crashes, fill, verify)
        step = self._step(work)
        if step is None:
            record = self.records.values[number]
            mine = (record.places[0], record.source, record.sweep)
            if not self.works.values[work].is_left:
                claims = tuple(claim for claim in claims if claim != mine)
            yield (source, there, at, records, others, late, claims, *rest)
            return
        kind = step[0]
        if kind is not Kind.WAIT or all(self.lates.values[it][0] != number for it in late):
            now, put, answer = self.effect(step, source, there, claims)
            work_then = self._answered(work, answer)
            over = self._step(work_then) is None and not sweeps
            busy = others if over else with_more(others, self.slots((number, work_then, sweeps)))
            yield (source, now, at, records, busy, late, put, *rest)
        if crashes:
            rest = (copies, crashes - 1, fill, verify)
            if (work_then := self._left(work)) is not None:
                busy = with_more(others, self.slots((number, work_then, sweeps)))
                yield (source, there, at, records, busy, late, claims, *rest)
            under_way = kind not in (Kind.LOOK, Kind.LOOK_AT_OWNER, Kind.WAIT)
            again = number if sweeps else self._again(number)
            more = with_more(late, self.lates((again, step))) if under_way else late
            back = records if sweeps else with_more(records, again)
            yield (source, there, at, back, others, more, claims, *rest)
            if under_way:
                work_then = self._answered(work, "lost")
                busy = with_more(others, self.slots((again, work_then, sweeps)))
                yield (source, there, at, records, busy, more, claims, *rest)

    def _again(self, number: int) -> int:
        record = self.records.values[number]
        return self.records(Record(record.source, record.places, record.image, again=True))

    def _delivered(self, world: World) -> Iterator[World]:
        """Any waiting record may come next, or two of a key; and each may come once more later."""
        source, there, at, records, slots, late, claims, copies, crashes, fill, verify = world
        for place, number in enumerate(records):
            if place and records[place - 1] == number:
                continue
            left = records[:place] + records[place + 1 :]
            busy = with_more(slots, self._begun(number))
            yield (source, there, at, left, busy, late, claims, copies, crashes, fill, verify)
            if copies:
                rest = (copies - 1, crashes, fill, verify)
                yield (source, there, at, records, busy, late, claims, *rest)
            if self.scenario.loses and any(state != DONE for state in fill):
                rest = (copies, crashes, fill, verify)
                yield (source, there, at, left, slots, late, claims, *rest)
            for second, other in enumerate(left) if self.scenario.merges else ():
                both = self._merged(number, other)
                if both is not None:
                    busy = with_more(slots, self._begun(both))
                    less = left[:second] + left[second + 1 :]
                    rest = (copies, crashes, fill, verify)
                    yield (source, there, at, less, busy, late, claims, *rest)

    def _begun(self, number: int) -> int:
        if number not in self.known.begun:
            it = self.records.values[number]
            begun = self.protocol.begin(it.source, it.places, it.image, it.again, waits=it.again)
            self.known.begun[number] = self.slots((number, self.works(begun), False))
        return self.known.begun[number]

    def _merged(self, number: int, other: int) -> int | None:
        one, two = self.records.values[number], self.records.values[other]
        if one.source != two.source or one.again or two.again:
            return None
        places = tuple(sorted({*one.places, *two.places}))
        return self.records(Record(one.source, places, two.image))

    def _filled(self, world: World) -> Iterator[World]:
        """Take one step of the backfill for any of its source keys.

        It reads, puts if nothing is there, and looks again at what it may have put; it claims a
        place that another item has, and one that its own item has left. It may be killed, or get no
        answer to its put, which it repeats.
        """
        source, there, at, records, slots, late, claims, copies, crashes, fill, verify = world

        def at_hand(key: int, state: int) -> tuple[int, ...]:
            return (*fill[:key], state, *fill[key + 1 :])

        for key, state in enumerate(fill):
            if state == DONE:
                continue
            now, put = there, claims
            if state == TO_DO:
                image = source[key]
                then = DONE if image is None else self.hands((PUT_IF_ABSENT, image, False))
                done = at_hand(key, then)
                rest = (copies, crashes, done, verify)
                yield (source, there, at, records, slots, late, claims, *rest)
                continue
            what, image, is_unsure = self.hands.values[state]
            step = (what, key, image[0], image, None, None)
            if what is not Kind.WAIT or not self.is_copy_late(late, key):
                now, put, answer = self.effect(step, source, there, claims)
                then = self._copied(key, what, image, is_unsure, answer)
                done = at_hand(key, then)
                yield (source, now, at, records, slots, late, put, copies, crashes, done, verify)
            if not crashes:
                continue
            under_way = what in (PUT_IF_ABSENT, Kind.CLAIM)
            more = with_more(late, self.lates((DONE, step))) if under_way else late
            rest = (copies, crashes - 1)
            if self.scenario.copy_dies:
                todo = at_hand(key, TO_DO)
                yield (source, there, at, records, slots, more, claims, *rest, todo, verify)
            if what is PUT_IF_ABSENT:
                again = at_hand(key, self.hands((PUT_IF_ABSENT, image, True)))
                yield (source, there, at, records, slots, more, claims, *rest, again, verify)

    def _copied(self, key: int, what: Any, image: Image, is_unsure: bool, answer: Any) -> int:
        """Return what the backfill has in hand after a request for a source key was answered."""
        look = self.hands((Kind.WAIT if is_unsure else Kind.LOOK, image, False))
        if what is PUT_IF_ABSENT:
            if answer not in (None, key):
                return self.hands((Kind.CLAIM, image, is_unsure))
            return look if self.looks_again and (answer is None or is_unsure) else DONE
        if what is Kind.WAIT:
            return self.hands((Kind.LOOK, image, False))
        if what is Kind.LOOK and not (answer and answer[0] == image[0]):
            return self.hands((Kind.CLAIM, image, False))
        return look if what is Kind.CLAIM and is_unsure else DONE

    looks_again = True
    """Whether the backfill looks at what it has put."""

    def is_copy_late(self, late: tuple[int, ...], key: int) -> bool:
        """Whether a put of the backfill for this source key may still take effect."""
        requests = (self.lates.values[it] for it in late)
        return any(origin == DONE and step[1] == key for origin, step in requests)

    def may_verify(self, late: tuple[int, ...]) -> bool:
        """Whether no write of the backfill may take effect any more."""
        return all(self.lates.values[it][0] != DONE for it in late)

    def _verified(self, world: World) -> Iterator[World]:
        """Take one step of verify: a read for the digests, a read of a look, or a claim.

        A world is left out once a verification without repair has said that it is not clean.
        """
        source, there, at, records, slots, late, claims, copies, crashes, fill, verify = world
        if verify == TO_DO and not self.may_verify(late):
            return
        seen = () if verify == TO_DO else self.hands.values[verify]
        put = claims
        if seen and seen[0] == "claims":
            place, owner = seen[1]
            put = claimed(claims, place, owner, NEW)
            then = self.hands(("claims", *seen[2:])) if seen[2:] else DONE
        elif seen and seen[0] == "look":
            then = self._looked(seen, source, there)
        else:
            first, last = (there, source) if self.scenario.places_first else (source, there)
            seen = (*seen, (*first, *last)[len(seen)])
            if len(seen) < len(source) + len(there):
                then = self.hands(seen)
            else:
                then = self._looks(differences(seen, len(first), self.scenario.places_first), ())
        if then != NOT_CLEAN:
            yield (source, there, at, records, slots, late, put, copies, crashes, fill, then)

    def _looks(self, candidates: Any, to_claim: Any) -> int:
        """Begin the second look at the first candidate; without one, begin the claims.

        The first look is left out: it could only find that a candidate is equal, as the second may.
        """
        if candidates:
            return self.hands(("look", candidates, to_claim, None, ()))
        return self.hands(("claims", *to_claim)) if to_claim else DONE

    def _looked(self, seen: Any, source: Any, there: Any) -> int:
        """Read the place of a candidate, or one of its owners; decide after the last read."""
        _, ((place, owners), *others), to_claim, before, reads = seen
        if not reads:
            owners = with_owner(owners, there[place])
            reads = (there[place],)
        else:
            reads = (*reads, source[owners[len(reads) - 1]])
        candidates = ((place, owners), *others)
        if len(reads) <= len(owners):
            return self.hands(("look", candidates, to_claim, before, reads))
        look = self.look_of(place, reads[0], tuple(zip(owners, reads[1:], strict=True)))
        if before is None:
            if look.finding == "equal":
                return self._looks(tuple(others), to_claim)
            return self.hands(("look", candidates, to_claim, look, ()))
        if self.verdict(before, look) == "in flight":
            return self._looks(tuple(others), to_claim)
        if not self.scenario.repairs:
            return NOT_CLEAN
        more = tuple((place, owner) for owner in owners)
        return self._looks(tuple(others), (*to_claim, *more))

    def look_of(self, place: int, held: Any, images: Any) -> Look:
        """Return what a look at a place comes to."""
        return look_of(place, held, images)

    def verdict(self, before: Look, last: Look) -> Verdict:
        """Return what the last two looks at a place come to."""
        return verdict(before, last)
