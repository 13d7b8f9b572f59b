"""A look that shows an item as it was before its last change: what if assumption A1 does not hold.

Each costs one of the scenario's `crashes`.
"""

from collections.abc import Iterator
from typing import Any

from keyhop.rekey.worker.protocol import Kind

from testing.rekey_explorer import Explorer, World
from testing.worlds import with_more


class StaleLooks(Explorer):
    """Where it differs from what was written: so it would be noticed by a further look."""

    agreeing = False
    """Whether also where it is what was written."""

    def _worked(self, world: World, slot: int, others: Any) -> Iterator[World]:
        yield from super()._worked(world, slot, others)
        source, there, at, records, _, late, claims, copies, crashes, fill, verify = world
        number, work, sweeps = self.slots.values[slot]
        step = self._step(work)
        if not crashes or step is None or step[0] not in (Kind.LOOK, Kind.LOOK_AT_OWNER):
            return
        key = step[1] if step[0] is Kind.LOOK else step[4]
        past = [self.scenario.before[key]]
        past += [image for changed, image in self.scenario.script[:at] if changed == key]
        noticed = step[0] is Kind.LOOK_AT_OWNER or past[-2:-1] != [self.works.values[work].image]
        if past[-2:-1] and past[-2] != past[-1] and (noticed or self.agreeing):
            then = self._answered(work, past[-2])
            busy = with_more(others, self.slots((number, then, sweeps)))
            rest = (copies, crashes - 1, fill, verify)
            yield (source, there, at, records, busy, late, claims, *rest)


class AgreeingLooks(StaleLooks):
    """And where it does not."""

    agreeing = True
