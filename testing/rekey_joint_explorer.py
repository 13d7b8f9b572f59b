"""Explore a verification whose claims share one row, among all that rekey_explorer.py explores.

A claim with a token below zero is in the shared row of that token. Each work of a row is a slot
with separate requests; these histories include those in which one transaction does them all.
A kill ends all works of a row, and the verification. The verification starts again if it still had
claims to put. Otherwise it does not, so that its claims alone must lead to the repair.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from keyhop.rekey.worker.protocol import WRITES, Claim, Kind

from testing.rekey_explored import DONE, TO_DO, Record, claimed
from testing.rekey_explorer import Explorer, World
from testing.worlds import with_more


class JointExplorer(Explorer):
    """An explorer whose attributes are rules; for each, a mutant disables it (rekey_mutants.py)."""

    drops_when_all_are_done = True
    """Whether a row is dropped only when all of its works are done, and not after the first."""
    claims_what_is_left = True
    """Whether work that is not done gets a separate row before the shared row is dropped."""
    claims_before_the_drop = True
    """Whether a worker that takes a row puts a row for each of its claims before dropping it."""
    drops_before_settling = True
    """Whether a worker that takes a row drops it before it settles any claim, or at any time."""

    def nexts(self, world: World) -> Iterator[World]:
        yield from super().nexts(world)
        source, destination, at, records, slots, late, claims, *rest = world
        if self._busy(slots)[0] >= self.scenario.sweepers:
            return
        for row in {token for _, _, token in claims if token < 0}:
            pairs = tuple(claim[:2] for claim in claims if claim[2] == row)
            number = self.records(Record(0, (), None, sweep=self._token(slots, late)))
            busy = with_more(slots, self.slots((number, self.works((row, pairs, pairs)), True)))
            yield (source, destination, at, records, busy, late, claims, *rest)

    def _busy(self, slots: Any) -> tuple[int, int]:
        return super()._busy([slot for slot in slots if self._row_of(slot) >= 0])

    def _row_of(self, slot: int) -> int:
        """Return the token of a slot's shared row, or a token above zero if it has none."""
        row: int = self.records.values[self.slots.values[slot][0]].sweep
        return row

    def _settling(self, slots: Any, pairs: Any, token: int) -> Any:
        """Return the slots, with one for each of these claims."""
        for place, owner in pairs:
            number = self.records(Record(owner, (place,), None, sweep=token))
            work = self.works(self.protocol.settle(Claim(place, owner, token)))
            slots = with_more(slots, self.slots((number, work, True)))
        return slots

    def _verified(self, world: World) -> Iterator[World]:
        source, destination, at, records, slots, late, claims, copies, crashes, fill, verify = world
        state = () if verify == TO_DO else self.hands.values[verify]
        if not state or state[0] != "claims":
            yield from super()._verified(world)
            return
        if any(self._row_of(slot) < 0 for slot in slots):
            return
        first = {place: (place, owner) for place, owner in reversed(state[1:])}
        pairs = tuple(pair for pair in state[1:] if pair in first.values())
        used = {self._row_of(slot) for slot in slots} | {token for _, _, token in claims}
        used |= {self.lates.values[request][1][5] for request in late}
        works = [self.works.values[self.slots.values[slot][1]] for slot in slots]
        used |= {work[0] for work in works if isinstance(work, tuple)}
        row = next(-number for number in range(1, 9) if -number not in used)
        new_claims = tuple(sorted((*claims, *((*pair, row) for pair in pairs))))
        other_pairs = tuple(pair for pair in state[1:] if pair not in pairs)
        then = self.hands(("claims", *other_pairs)) if pairs else DONE
        busy = self._settling(slots, pairs, row)
        rest = (copies, crashes, fill, then)
        yield (source, destination, at, records, busy, late, new_claims, *rest)

    def _worked(self, world: World, slot: int, other_slots: Any) -> Iterator[World]:
        if isinstance(self.works.values[self.slots.values[slot][1]], tuple):
            yield from self._taken(world, slot, other_slots)
        elif self._row_of(slot) < 0:
            yield from self._worked_row(world, slot, other_slots)
        else:
            yield from super()._worked(world, slot, other_slots)

    def _taken(self, world: World, slot: int, other_slots: Any) -> Iterator[World]:
        """Take one step of taking a row: put a row for one of its claims, or drop it."""
        source, destination, at, records, _, late, claims, copies, crashes, fill, verify = world
        number, work, _ = self.slots.values[slot]
        row, unclaimed, pairs = self.works.values[work]
        token = self.records.values[number].sweep
        if unclaimed and (self.claims_before_the_drop or all(claim[2] != row for claim in claims)):
            (place, owner), *remaining = unclaimed
            new_claims = claimed(claims, place, owner, token)
            then = self.slots((number, self.works((row, tuple(remaining), pairs)), True))
            busy = with_more(other_slots, then)
            request = (Kind.CLAIM, owner, place, None, None, None)
            new_late = with_more(late, self.lates((number, request)))
        else:
            new_claims, new_late, busy = _without(claims, row), late, with_more(other_slots, slot)
            if not unclaimed:
                busy = self._settling(other_slots, pairs, token)
            if pairs and not (unclaimed or self.drops_before_settling):
                new_claims = claims
                busy = with_more(busy, self.slots((number, self.works((row, (), ())), True)))
        rest = (copies, crashes, fill, verify)
        yield (source, destination, at, records, busy, late, new_claims, *rest)
        if crashes:
            rest = (copies, crashes - 1, fill, verify)
            yield (source, destination, at, records, other_slots, new_late, claims, *rest)

    def _worked_row(self, world: World, slot: int, other_slots: Any) -> Iterator[World]:
        """Make one call of a row's work; or the verification dies, gets no answer or leaves it."""
        source, destination, at, records, slots, late, claims, copies, crashes, fill, verify = world
        number, work, _ = self.slots.values[slot]
        row, step = self._row_of(slot), self._step(work)
        rest = (copies, crashes, fill, verify)
        row_slots = [each for each in slots if self._row_of(each) == row]
        outside = tuple(each for each in slots if each not in row_slots)
        if step is None:
            works = [self.slots.values[each][1] for each in row_slots]
            if self.drops_when_all_are_done and any(self._step(each) for each in works):
                pass
            elif self.works.values[work].is_left and self.claims_what_is_left:
                record = self.records.values[number]
                new_claims = claimed(claims, record.places[0], record.source, 0)
                work_then = self.works(replace(self.works.values[work], is_left=False))
                busy = with_more(other_slots, self.slots((number, work_then, True)))
                yield (source, destination, at, records, busy, late, new_claims, *rest)
            elif not (
                self.claims_what_is_left and any(self.works.values[each].is_left for each in works)
            ):
                new_claims = _without(claims, row)
                yield (source, destination, at, records, outside, late, new_claims, *rest)
        elif step[0] is not Kind.WAIT or all(self.lates.values[each][0] != number for each in late):
            now, new_claims, answer = self.effect(step, source, destination, claims)
            busy = with_more(other_slots, self.slots((number, self._answered(work, answer), True)))
            yield (source, now, at, records, busy, late, new_claims, *rest)
        if not crashes:
            return
        rest = (copies, crashes - 1, fill, verify)
        if step and (left_work := self._left(work)) is not None:
            busy = with_more(other_slots, self.slots((number, left_work, True)))
            yield (source, destination, at, records, busy, late, claims, *rest)
        writing = [each for each in row_slots if self._writes(each)]
        groups = [writing] if writing == [slot] else [writing, [slot]] if slot in writing else []
        for group in groups:
            busy = tuple(each for each in slots if each not in group)
            for each in group:
                origin, unanswered, _ = self.slots.values[each]
                then = self._answered(unanswered, "lost")
                busy = with_more(busy, self.slots((origin, then, True)))
            new_late = self._all_late(late, group)
            yield (source, destination, at, records, busy, new_late, claims, *rest)
        then = DONE if self.hands.values[verify] == ("claims",) else TO_DO
        new_late = self._all_late(late, writing)
        rest = (copies, crashes - 1, fill, then)
        yield (source, destination, at, records, outside, new_late, claims, *rest)

    def _writes(self, slot: int) -> bool:
        """Return whether the next request of a slot writes."""
        step = self._step(self.slots.values[slot][1])
        return step is not None and (step[0] in WRITES or step[0] is Kind.CLAIM)

    def _all_late(self, late: Any, slots: Any) -> Any:
        """Return the late requests, with the next one of each slot."""
        for slot in slots:
            number, work, _ = self.slots.values[slot]
            late = with_more(late, self.lates((number, self._step(work))))
        return late


def _without(claims: Any, row: int) -> Any:
    """Return the claims without those of a row."""
    return tuple(claim for claim in claims if claim[2] != row)
