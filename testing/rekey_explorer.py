"""Every interleaving of users, workers, sweeps, a backfill and a verify, over a few keys.

What is explored is `keyhop.rekey.worker.protocol.Protocol` itself. A world is a tuple; whatever is
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

from keyhop.rekey.compare.look import Look, Verdict, verdict
from keyhop.rekey.worker.protocol import WRITES, Claim, Kind, Outcome, Protocol, Work

from testing.rekey_explored import (
    DONE,
    NEW,
    PUT_IF_ABSENT,
    TO_DO,
    UNCLEAN,
    Known,
    Record,
    Scenario,
    claimed,
    effect,
    is_settled,
    look,
    place_of,
    unmatched,
)
from testing.worlds import explored, with_more

UNREAD = "unread"
"""Of a place that a look has not read yet."""

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
    looks_again = True
    """Whether the backfill looks at a source item again when it has put it."""

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
        sweeping = 0
        if self.scenario.sweepers:
            sweeping = sum(self.slots.values[slot][2] for slot in slots)
        if records and len(slots) - sweeping < self.scenario.workers:
            yield from self._delivered(world)
        if claims and sweeping < self.scenario.sweepers:
            for place, owner, _ in claims:
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
        elif verify not in (DONE, UNCLEAN):
            yield from self._verified(world)

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
        """The backfill: read; put if nothing is there; look again; claim what is not right.

        It is killed, or has no answer to its put, or not.
        """
        source, there, at, records, slots, late, claims, copies, crashes, fill, verify = world
        for key, state in enumerate(fill):
            if state == DONE:
                continue
            others = (fill[:key], fill[key + 1 :])
            if state == TO_DO:
                then = DONE if source[key] is None else self._hand(PUT_IF_ABSENT, source[key])
                now = (*others[0], then, *others[1])
                yield (
                    source,
                    there,
                    at,
                    records,
                    slots,
                    late,
                    claims,
                    copies,
                    crashes,
                    now,
                    verify,
                )
                continue
            what, image, unsure = self.hands.values[state]
            step = (what, key, image[0], image, None, None)
            if crashes:
                is_write = what is not Kind.LOOK
                more = with_more(late, self.lates((DONE, step))) if is_write else late
                todo = (*others[0], TO_DO, *others[1])
                rest = (copies, crashes - 1, todo, verify)
                yield (source, there, at, records, slots, more, claims, *rest)
                if what is PUT_IF_ABSENT:
                    again = (*others[0], self._hand(what, image, True), *others[1])
                    rest = (copies, crashes - 1, again, verify)
                    yield (source, there, at, records, slots, more, claims, *rest)
            if what is Kind.LOOK and unsure and not self.may_verify(late):
                continue  # it waits
            now, put, answer = self.effect(step, source, there, claims)
            then = self._filled_next(what, key, image, unsure, answer)
            done = (*others[0], then, *others[1])
            yield (source, now, at, records, slots, late, put, copies, crashes, done, verify)

    def _hand(self, what: Any, image: Any, unsure: bool = False) -> int:
        return self.hands((what, image, unsure))

    def _filled_next(self, what: Any, key: int, image: Any, unsure: bool, answer: Any) -> int:
        """What the backfill has in hand after an answer."""
        if what is PUT_IF_ABSENT:
            if answer is None or (unsure and answer == key):
                return self._hand(Kind.LOOK, image, unsure) if self.looks_again else DONE
            return DONE if answer == key else self._hand(Kind.CLAIM, image)
        if what is Kind.LOOK:
            belongs = answer is not None and place_of(answer) == image[0]
            return DONE if belongs else self._hand(Kind.CLAIM, image)
        return DONE

    def may_verify(self, late: tuple[int, ...]) -> bool:
        """Whether no write of the backfill may take effect any more."""
        return all(self.lates.values[it][0] != DONE for it in late)

    def _verified(self, world: World) -> Iterator[World]:
        """Verify: read each key and each place, in turn; look at each candidate twice, unless it is
        equal the first time; then claim what still differs for each of its owners.
        """
        source, there, at, records, slots, late, claims, copies, crashes, fill, verify = world
        if verify == TO_DO and not self.may_verify(late):
            return
        phase, *state = ("read",) if verify == TO_DO else self.hands.values[verify]
        put = claims
        if phase == "read":
            then = self._read(tuple(state), source, there)
        elif phase == "look":
            then = self._look(source, there, *state)
        else:
            (place, owner), *rest = state
            put = claimed(claims, place, owner, NEW)
            then = self.hands(("claims", *rest)) if rest else DONE
        yield (source, there, at, records, slots, late, put, copies, crashes, fill, then)

    def _read(self, seen: Any, source: Any, there: Any) -> int:
        """One more row of the digests; after the last one, the first candidate is looked at."""
        places_first = self.scenario.places_first
        first, last = (there, source) if places_first else (source, there)
        seen = (*seen, (*first, *last)[len(seen)])
        if len(seen) < len(source) + len(there):
            return self.hands(("read", *seen))
        key = (seen, len(first), places_first)
        if key not in self.known.looked:
            self.known.looked[key] = unmatched(*key)
        return self._next_candidate(self.known.looked[key], (), True)

    def _next_candidate(self, candidates: Any, found: Any, is_clean: bool) -> int:
        if candidates:
            return self.hands(("look", candidates, None, UNREAD, found, is_clean))
        if found:
            return self.hands(("claims", *found))
        return DONE if is_clean else UNCLEAN

    def _look(
        self,
        source: Any,
        there: Any,
        candidates: Any,
        before: Any,
        held: Any,
        found: Any,
        clean: Any,
    ) -> int:
        """The place is read, in another step its owners; the last two looks decide."""
        (place, owners), *rest = candidates
        if held == UNREAD:
            held = there[place]
            if held is not None and held[0] not in (*owners, Outcome.FOREIGN):
                owners = (*owners, held[0])
            changed = ((place, owners), *rest)
            return self.hands(("look", changed, before, held, found, clean))
        images = tuple((owner, source[owner]) for owner in owners)
        key = (place, held, images)
        if key not in self.known.looked:
            self.known.looked[key] = self.look(*key)
        now: Look = self.known.looked[key]
        if now.finding == "equal":
            return self._next_candidate(tuple(rest), found, clean)
        if before is None:
            return self.hands(("look", candidates, now, UNREAD, found, clean))
        if self.counts(verdict(before, now)):
            if self.scenario.repair:
                found = (*found, *((place, owner) for owner in owners))
            else:
                clean = False
        return self._next_candidate(tuple(rest), found, clean)

    def look(self, place: int, held: Any, owners: Any) -> Look:
        return look(place, held, owners)

    def counts(self, comes_to: Verdict) -> bool:
        """Whether a row is settled, or keeps the gate shut."""
        return comes_to != "in flight"
