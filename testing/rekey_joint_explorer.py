"""Every interleaving of all others (rekey_explorer.py) and a verification with one row of claims.

A claim with a token below zero is in the shared row of that token. Each work of a row is a slot
with requests of its own: the histories of one transaction for all of them are among its histories.
A kill ends all works of a row, and the verification. If the verification had claims yet to put, it
begins again. If not, it does not, so that its claims alone must bring the repair.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from keyhop.rekey.worker.protocol import WRITES, Claim, Kind

from testing.rekey_explored import DONE, TO_DO, Record, claimed
from testing.rekey_explorer import Explorer, World
from testing.worlds import with_more


class JointExplorer(Explorer):
    """The attributes are rules, each of which a mutant leaves out (rekey_mutants.py)."""

    drops_when_all_are_done = True
    """Or else as soon as one work of the row is done."""
    claims_what_is_left = True
    """Whether work that is not done gets a row of its own before the shared row is dropped."""
    claims_before_the_drop = True
    """Whether who takes a row puts a row for each of its claims before dropping it."""
    drops_before_settling = True
    """Whether who takes a row drops it before settling any of its claims; or at any time."""

    def nexts(self, world: World) -> Iterator[World]:
        yield from super().nexts(world)
        source, there, at, records, slots, late, claims, *rest = world
        if self._busy(slots)[0] >= self.scenario.sweepers:
            return
        for row in {token for _, _, token in claims if token < 0}:
            pairs = tuple(claim[:2] for claim in claims if claim[2] == row)
            number = self.records(Record(0, (), None, sweep=self._token(slots, late)))
            busy = with_more(slots, self.slots((number, self.works((row, pairs, pairs)), True)))
            yield (source, there, at, records, busy, late, claims, *rest)

    def _busy(self, slots: Any) -> tuple[int, int]:
        return super()._busy([slot for slot in slots if self._row_of(slot) >= 0])

    def _row_of(self, slot: int) -> int:
        """Return the row that a slot works; a number above zero if none."""
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
        source, there, at, records, slots, late, claims, copies, crashes, fill, verify = world
        seen = () if verify == TO_DO else self.hands.values[verify]
        if not seen or seen[0] != "claims":
            yield from super()._verified(world)
            return
        if any(self._row_of(slot) < 0 for slot in slots):
            return
        first = {place: (place, owner) for place, owner in reversed(seen[1:])}
        pairs = tuple(pair for pair in seen[1:] if pair in first.values())
        used = {self._row_of(slot) for slot in slots} | {token for _, _, token in claims}
        used |= {self.lates.values[request][1][5] for request in late}
        works = [self.works.values[self.slots.values[slot][1]] for slot in slots]
        used |= {work[0] for work in works if isinstance(work, tuple)}
        row = next(-number for number in range(1, 9) if -number not in used)
        put = tuple(sorted((*claims, *((*pair, row) for pair in pairs))))
        others = tuple(pair for pair in seen[1:] if pair not in pairs)
        then = self.hands(("claims", *others)) if pairs else DONE
        busy = self._settling(slots, pairs, row)
        yield (source, there, at, records, busy, late, put, copies, crashes, fill, then)

    def _worked(self, world: World, slot: int, others: Any) -> Iterator[World]:
        if isinstance(self.works.values[self.slots.values[slot][1]], tuple):
            yield from self._taken(world, slot, others)
        elif self._row_of(slot) < 0:
            yield from self._worked_row(world, slot, others)
        else:
            yield from super()._worked(world, slot, others)

    def _taken(self, world: World, slot: int, others: Any) -> Iterator[World]:
        """Take one step of taking a row: put a row for one of its claims, or drop it."""
        source, there, at, records, _, late, claims, copies, crashes, fill, verify = world
        number, work, _ = self.slots.values[slot]
        row, left, pairs = self.works.values[work]
        token = self.records.values[number].sweep
        if left and (self.claims_before_the_drop or all(it != row for _, _, it in claims)):
            (place, owner), *more = left
            put = claimed(claims, place, owner, token)
            then = self.slots((number, self.works((row, tuple(more), pairs)), True))
            busy, under_way = with_more(others, then), self._claims_late(late, number, left[0])
        else:
            put, under_way, busy = _without(claims, row), late, with_more(others, slot)
            if not left:
                busy = self._settling(others, pairs, token)
            if pairs and not (left or self.drops_before_settling):
                put = claims
                busy = with_more(busy, self.slots((number, self.works((row, (), ())), True)))
        yield (source, there, at, records, busy, late, put, copies, crashes, fill, verify)
        if crashes:
            rest = (copies, crashes - 1, fill, verify)
            yield (source, there, at, records, others, under_way, claims, *rest)

    def _claims_late(self, late: Any, number: int, pair: Any) -> Any:
        place, owner = pair
        return with_more(late, self.lates((number, (Kind.CLAIM, owner, place, None, None, None))))

    def _worked_row(self, world: World, slot: int, others: Any) -> Iterator[World]:
        """One call of a work of a row; or the verification dies, gets no answer or leaves it."""
        source, there, at, records, slots, late, claims, copies, crashes, fill, verify = world
        number, work, _ = self.slots.values[slot]
        row, step = self._row_of(slot), self._step(work)
        rest = (copies, crashes, fill, verify)
        mates = [one for one in slots if self._row_of(one) == row]
        apart = tuple(one for one in slots if one not in mates)
        if step is None:
            works = [self.slots.values[one][1] for one in mates]
            left = self.works.values[work].is_left and self.claims_what_is_left
            if self.drops_when_all_are_done and any(self._step(one) for one in works):
                pass
            elif left:
                record = self.records.values[number]
                put = claimed(claims, record.places[0], record.source, 0)
                kept = self.works(replace(self.works.values[work], is_left=False))
                busy = with_more(others, self.slots((number, kept, True)))
                yield (source, there, at, records, busy, late, put, *rest)
            elif not (
                self.claims_what_is_left and any(self.works.values[one].is_left for one in works)
            ):
                yield (source, there, at, records, apart, late, _without(claims, row), *rest)
        elif step[0] is not Kind.WAIT or all(self.lates.values[it][0] != number for it in late):
            now, put, answer = self.effect(step, source, there, claims)
            busy = with_more(others, self.slots((number, self._answered(work, answer), True)))
            yield (source, now, at, records, busy, late, put, *rest)
        if not crashes:
            return
        rest = (copies, crashes - 1, fill, verify)
        if step and (left := self._left(work)) is not None:
            busy = with_more(others, self.slots((number, left, True)))
            yield (source, there, at, records, busy, late, claims, *rest)
        sent = [one for one in mates if self._is_sent(one)]
        for lost in [sent] if sent == [slot] else [sent, [slot]] if slot in sent else []:
            busy, more = tuple(one for one in slots if one not in lost), self._all_late(late, lost)
            for one in lost:
                origin, under_way, _ = self.slots.values[one]
                then = self._answered(under_way, "lost")
                busy = with_more(busy, self.slots((origin, then, True)))
            yield (source, there, at, records, busy, more, claims, *rest)
        then = DONE if self.hands.values[verify] == ("claims",) else TO_DO
        more = self._all_late(late, sent)
        rest = (copies, crashes - 1, fill, then)
        yield (source, there, at, records, apart, more, claims, *rest)

    def _is_sent(self, slot: int) -> bool:
        """Whether the next request of a slot writes."""
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
