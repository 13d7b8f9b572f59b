"""Explore every interleaving of users, workers, sweeps, a backfill and a verification on few keys.

The explorer runs `keyhop.rekey.worker.protocol.Protocol` itself, and verify's decision,
`keyhop.rekey.compare.look.verdict`. A world is a tuple. Any value in it that is not a number is
replaced by its number (`Numbers`), so that worlds are small and quick to compare, and each step of
a work is computed once. Workers have no names and share only the tables, so worlds that differ only
in which of two equal workers takes a step are one world.

The model has no time. Rules that depend on time are stated as order: a wait ends when the requests
that it waits for have taken effect or can no longer do so.
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
"""(source, destination, at, records, slots, late, claims, copies, crashes, fill, verify)

source: an image or None for each key; destination: (owner, image) or None for each place; at: the
number of writes of the script that have happened; records, slots, late: sorted numbers, with a slot
for each busy worker; claims: sorted (place, owner, token); fill: TO_DO, DONE or the number of the
step in progress, for each source key; verify: the same for the whole verification.
"""


@dataclass
class Explorer:
    """An explorer of a protocol; `effect` says what its requests do.

    Mutants replace the protocol or the effect, to show that each part is needed.
    """

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
        """Return the number of worlds, and one that is at rest and wrong, or None."""

        def is_right(world: World) -> bool:
            return not self.is_quiet(world) or self.is_right(world)

        return explored(self.scenario.first(), self.nexts, is_right)

    def is_quiet(self, world: World) -> bool:
        """Return whether only sweeps remain to be done."""
        _, _, at, records, slots, late, _, _, _, fill, verify = world
        if records or slots or late or verify != DONE or at < len(self.scenario.script):
            return False
        return all(state == DONE for state in fill)

    def is_right(self, world: World) -> bool:
        """Return whether a sweep of the claims makes the destination correspond to the source."""
        key = (world[0], world[1], world[6])
        if key not in self.judged:
            self.judged[key] = self._judge(*key)
        return self.judged[key]

    def _judge(self, source: Any, destination: Any, claims: Any) -> bool:
        claims = tuple(sorted({(place, owner, max(token, NEW)) for place, owner, token in claims}))
        for _ in range(4):
            for place, owner, _token in claims:
                destination, claims = self.swept(source, destination, claims, place, owner)
        return is_settled(source, destination, claims)

    def swept(self, source: Any, destination: Any, claims: Any, place: int, owner: int) -> Any:
        """Settle one claim while no other worker runs."""
        claims = claimed(claims, place, owner, 1)
        work = self.protocol.settle(Claim(place, owner, 1))
        while (call := self.protocol.call(work)) is not None:
            step = (call.kind, call.source, call.place, call.image, call.owner, call.fence)
            destination, claims, answer = self.effect(step, source, destination, claims)
            work = self.protocol.answered(work, answer)
        return destination, tuple(claim for claim in claims if claim != (place, owner, 1))

    def nexts(self, world: World) -> Iterator[World]:
        """Yield all worlds that are one step away."""
        source, destination, at, records, slots, late, claims, copies, crashes, fill, verify = world
        script = self.scenario.script
        rest = (copies, crashes, fill, verify)
        if at < len(script):
            key, image = script[at]
            old = source[key]
            new_records = records
            if old != image:
                places = tuple(sorted({each[0] for each in (old, image) if each is not None}))
                new_records = with_more(records, self.records(Record(key, places, image)))
            written = (*source[:key], image, *source[key + 1 :])
            yield (written, destination, at + 1, new_records, slots, late, claims, *rest)
        for place in range(len(slots)):
            if place and slots[place] == slots[place - 1]:
                continue
            yield from self._worked(world, slots[place], slots[:place] + slots[place + 1 :])
        sweeping, working = self._busy(slots)
        if records and working < self.scenario.workers:
            yield from self._delivered(world)
        if claims and sweeping < self.scenario.sweepers:
            for place, owner, old_token in claims:
                if old_token < NEW:  # a claim in a shared row (rekey_joint_explorer.py)
                    continue
                token = self._token(slots, late)
                swept = self.records(Record(owner, (place,), None, sweep=token))
                work = self.works(self.protocol.settle(Claim(place, owner, token)))
                busy = with_more(slots, self.slots((swept, work, True)))
                new_claims = claimed(claims, place, owner, token)
                yield (source, destination, at, records, busy, late, new_claims, *rest)
        for place, request in enumerate(late):
            still_late = late[:place] + late[place + 1 :]
            yield (source, destination, at, records, slots, still_late, claims, *rest)
            step = self.lates.values[request][1]
            then, new_claims, _ = self.effect(step, source, destination, claims)
            if then != destination or new_claims != claims:
                yield (source, then, at, records, slots, still_late, new_claims, *rest)
        if any(state != DONE for state in fill):
            yield from self._filled(world)
        elif verify != DONE:
            yield from self._verified(world)

    def _busy(self, slots: Any) -> tuple[int, int]:
        """Return how many workers settle claims, and how many process batches."""
        sweeping = sum(self.slots.values[slot][2] for slot in slots)
        return sweeping, len(slots) - sweeping

    def _token(self, slots: Any, late: Any) -> int:
        """Return a token that is not in use."""
        used = {self.records.values[self.slots.values[slot][0]].sweep for slot in slots}
        used |= {self.lates.values[request][1][5] for request in late}
        return next(token for token in range(1, 9) if token not in used)

    def _step(self, work: int) -> Any:
        """Return the next request of a work as a tuple, or None if it is done."""
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
        """Return the work when it leaves its next write to a claim; None if it may not."""
        key = (work, "left")
        if key not in self.after:
            now: Work = self.works.values[work]
            may_leave = now.step in WRITES and not now.is_left
            self.after[key] = self.works(self.protocol.leave(now)) if may_leave else None
        return self.after[key]

    def _worked(self, world: World, slot: int, other_slots: Any) -> Iterator[World]:
        """Make one call of a worker; or kill it, lose its answer, or let it leave its work."""
        source, destination, at, records, _, late, claims, copies, crashes, fill, verify = world
        number, work, sweeps = self.slots.values[slot]
        rest = (copies, crashes, fill, verify)
        step = self._step(work)
        if step is None:
            record = self.records.values[number]
            own_claim = (record.places[0], record.source, record.sweep)
            if not self.works.values[work].is_left:
                claims = tuple(claim for claim in claims if claim != own_claim)
            yield (source, destination, at, records, other_slots, late, claims, *rest)
            return
        kind = step[0]
        if kind is not Kind.WAIT or all(self.lates.values[each][0] != number for each in late):
            now, new_claims, answer = self.effect(step, source, destination, claims)
            work_then = self._answered(work, answer)
            busy = other_slots
            if sweeps or self._step(work_then) is not None:
                busy = with_more(busy, self.slots((number, work_then, sweeps)))
            yield (source, now, at, records, busy, late, new_claims, *rest)
        if crashes:
            rest = (copies, crashes - 1, fill, verify)
            if (work_then := self._left(work)) is not None:
                busy = with_more(other_slots, self.slots((number, work_then, sweeps)))
                yield (source, destination, at, records, busy, late, claims, *rest)
            is_write = kind not in (Kind.LOOK, Kind.LOOK_AT_OWNER, Kind.WAIT)
            new_record = number if sweeps else self._again(number)
            new_late = with_more(late, self.lates((new_record, step))) if is_write else late
            new_records = records if sweeps else with_more(records, new_record)
            yield (source, destination, at, new_records, other_slots, new_late, claims, *rest)
            if is_write:
                work_then = self._answered(work, "lost")
                busy = with_more(other_slots, self.slots((new_record, work_then, sweeps)))
                yield (source, destination, at, records, busy, new_late, claims, *rest)

    def _again(self, number: int) -> int:
        record = self.records.values[number]
        return self.records(Record(record.source, record.places, record.image, is_retry=True))

    def _delivered(self, world: World) -> Iterator[World]:
        """Deliver any waiting record, or two of one key; it may be delivered again later."""
        source, destination, at, records, slots, late, claims, copies, crashes, fill, verify = world
        for place, number in enumerate(records):
            if place and records[place - 1] == number:
                continue
            other_records = records[:place] + records[place + 1 :]
            busy = with_more(slots, self._begun(number))
            rest = (copies, crashes, fill, verify)
            yield (source, destination, at, other_records, busy, late, claims, *rest)
            if copies:
                fewer = (copies - 1, crashes, fill, verify)
                yield (source, destination, at, records, busy, late, claims, *fewer)
            if self.scenario.loses and any(state != DONE for state in fill):
                yield (source, destination, at, other_records, slots, late, claims, *rest)
            for second, second_number in enumerate(other_records) if self.scenario.merges else ():
                merged = self._merged(number, second_number)
                if merged is not None:
                    busy = with_more(slots, self._begun(merged))
                    remaining = other_records[:second] + other_records[second + 1 :]
                    yield (source, destination, at, remaining, busy, late, claims, *rest)

    def _begun(self, number: int) -> int:
        if number not in self.known.begun:
            record = self.records.values[number]
            image, retry = record.image, record.is_retry
            work = self.protocol.begin(record.source, record.places, image, retry, waits=retry)
            self.known.begun[number] = self.slots((number, self.works(work), False))
        return self.known.begun[number]

    def _merged(self, earlier: int, later: int) -> int | None:
        first, second = self.records.values[earlier], self.records.values[later]
        if first.source != second.source or first.is_retry or second.is_retry:
            return None
        places = tuple(sorted({*first.places, *second.places}))
        return self.records(Record(first.source, places, second.image))

    def _filled(self, world: World) -> Iterator[World]:
        """Take one step of the backfill for any of its source keys.

        It reads a source item, puts it if its place is free, and looks again after the put. It
        claims a place that another item holds, or that its item has left. It may be killed, or get
        no answer to its put, which it repeats.
        """
        source, destination, at, records, slots, late, claims, copies, crashes, fill, verify = world

        def fill_with(key: int, state: int) -> tuple[int, ...]:
            return (*fill[:key], state, *fill[key + 1 :])

        for key, state in enumerate(fill):
            if state == DONE:
                continue
            if state == TO_DO:
                image = source[key]
                then = DONE if image is None else self.hands((PUT_IF_ABSENT, image, False))
                rest = (copies, crashes, fill_with(key, then), verify)
                yield (source, destination, at, records, slots, late, claims, *rest)
                continue
            kind, image, is_unsure = self.hands.values[state]
            step = (kind, key, image[0], image, None, None)
            if kind is not Kind.WAIT or not self.is_copy_late(late, key):
                new_destination, new_claims, answer = self.effect(step, source, destination, claims)
                then = self._copied(key, kind, image, is_unsure, answer)
                rest = (copies, crashes, fill_with(key, then), verify)
                yield (source, new_destination, at, records, slots, late, new_claims, *rest)
            if not crashes:
                continue
            is_write = kind in (PUT_IF_ABSENT, Kind.CLAIM)
            new_late = with_more(late, self.lates((DONE, step))) if is_write else late
            now = (source, destination, at, records, slots, new_late, claims, copies, crashes - 1)
            if self.scenario.copy_dies:
                yield (*now, fill_with(key, TO_DO), verify)
            if kind is PUT_IF_ABSENT:
                yield (*now, fill_with(key, self.hands((PUT_IF_ABSENT, image, True))), verify)

    def _copied(self, key: int, kind: Any, image: Image, is_unsure: bool, answer: Any) -> int:
        """Return the backfill's next state of a source key after the answer to a request."""
        look = self.hands((Kind.WAIT if is_unsure else Kind.LOOK, image, False))
        if kind is PUT_IF_ABSENT:
            if answer not in (None, key):
                return self.hands((Kind.CLAIM, image, is_unsure))
            return look if self.looks_again and (answer is None or is_unsure) else DONE
        if kind is Kind.WAIT:
            return self.hands((Kind.LOOK, image, False))
        if kind is Kind.LOOK and not (answer and answer[0] == image[0]):
            return self.hands((Kind.CLAIM, image, False))
        return look if kind is Kind.CLAIM and is_unsure else DONE

    looks_again = True
    """Whether the backfill looks at an item after it has put it."""

    def is_copy_late(self, late: tuple[int, ...], key: int) -> bool:
        """Return whether a put of the backfill for this source key may still take effect."""
        requests = (self.lates.values[number] for number in late)
        return any(origin == DONE and step[1] == key for origin, step in requests)

    def may_verify(self, late: tuple[int, ...]) -> bool:
        """Return whether no write of the backfill can still take effect."""
        return all(self.lates.values[number][0] != DONE for number in late)

    def _verified(self, world: World) -> Iterator[World]:
        """Take one step of verify: a read for the digests, a read of a look, or a claim.

        Worlds in which a verification without repair has reported a difference are left out.
        """
        source, destination, at, records, slots, late, claims, copies, crashes, fill, verify = world
        if verify == TO_DO and not self.may_verify(late):
            return
        state = () if verify == TO_DO else self.hands.values[verify]
        new_claims = claims
        if state and state[0] == "claims":
            place, owner = state[1]
            new_claims = claimed(claims, place, owner, NEW)
            then = self.hands(("claims", *state[2:])) if state[2:] else DONE
        elif state and state[0] == "look":
            then = self._looked(state, source, destination)
        else:
            places_first = self.scenario.places_first
            first, last = (destination, source) if places_first else (source, destination)
            state = (*state, (*first, *last)[len(state)])
            if len(state) < len(source) + len(destination):
                then = self.hands(state)
            else:
                then = self._looks(differences(state, len(first), places_first), ())
        if then != NOT_CLEAN:
            rest = (copies, crashes, fill, then)
            yield (source, destination, at, records, slots, late, new_claims, *rest)

    def _looks(self, candidates: Any, to_claim: Any) -> int:
        """Begin the second look at the first candidate; without a candidate, begin the claims.

        The model omits the first look: it could only find that a candidate is equal, and so can the
        second.
        """
        if candidates:
            return self.hands(("look", candidates, to_claim, None, ()))
        return self.hands(("claims", *to_claim)) if to_claim else DONE

    def _looked(self, state: Any, source: Any, destination: Any) -> int:
        """Read a candidate's place or one of its owners, and decide after the last read."""
        _, ((place, owners), *other_candidates), to_claim, before, reads = state
        if not reads:
            owners = with_owner(owners, destination[place])
            reads = (destination[place],)
        else:
            reads = (*reads, source[owners[len(reads) - 1]])
        candidates = ((place, owners), *other_candidates)
        if len(reads) <= len(owners):
            return self.hands(("look", candidates, to_claim, before, reads))
        look = self.look_of(place, reads[0], tuple(zip(owners, reads[1:], strict=True)))
        if before is None:
            if look.finding == "equal":
                return self._looks(tuple(other_candidates), to_claim)
            return self.hands(("look", candidates, to_claim, look, ()))
        if self.verdict(before, look) == "in flight":
            return self._looks(tuple(other_candidates), to_claim)
        if not self.scenario.repairs:
            return NOT_CLEAN
        new_claims = tuple((place, owner) for owner in owners)
        return self._looks(tuple(other_candidates), (*to_claim, *new_claims))

    def look_of(self, place: int, item: Any, images: Any) -> Look:
        return look_of(place, item, images)

    def verdict(self, before: Look, last: Look) -> Verdict:
        return verdict(before, last)
