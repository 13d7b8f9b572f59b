"""The sharded table with one of its precautions left out: the simulator must find each of them."""

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from keyhop.errors import GaveUp
from keyhop.sharding.io import writer
from keyhop.sharding.io.items import Clause
from keyhop.sharding.io.writer import Act, Writer
from keyhop.sharding.key import protocol
from keyhop.sharding.key.protocol import ByClaim, Create, Hold, InPlace, Late, Order
from keyhop.sharding.store.metadata import Metadata

from testing.sharding_simulator.world import KernelsChance

Patch = tuple[Any, str, Any]


def _repeated(self: Writer, key: Any, physical: Any, known: Any, is_update: bool = False) -> bool:
    """A late success is done again if the metadata has changed meanwhile."""
    if self.requests.clock.monotonic() <= known.effective_until:
        return True
    return self.metadata.of(key.logical, fresh=True).version == known.version


_do = Writer._do


def _into_anything(self: Writer, step: Any, write: Any) -> Any:
    """A new item's transaction does not ask whether its target is there."""
    returns_new = write.returns in ("ALL_NEW", "UPDATED_NEW")
    if not isinstance(step, Create) or not step.unless or returns_new:
        return _do(self, step, write)
    absent = writer.absent(self.schema)
    checks = [(other, writer.CHECK, absent) for other in step.unless]
    users = 0 if write.clause.condition else None
    self._transact(write, [(step.shard, write.act, write.clause), *checks], users)
    return {}


_write = Writer.write


def _read_afterwards(
    self: Writer, key: Any, act: Act, clause: Clause, returns: str | None, *more: Any
) -> Any:
    """What an update has made is read by a request of its own."""
    if returns not in ("ALL_NEW", "UPDATED_NEW"):
        return _write(self, key, act, clause, returns, *more)
    answer = _write(self, key, act, clause, None, *more)
    known = self.metadata.of(key.logical)
    where = protocol.candidates(known.shards, self.placement, self.place_of(key))
    copies = writer.find_copies(self.requests, self.schema, key, where)
    for item in copies.values():
        shown = {n: item[n] for n in item if n == "n" or returns == "ALL_NEW"}
        if "n" in shown:
            return {**answer, "Attributes": shown}
    raise GaveUp("it is gone")


def _by_wall_clock(self: Metadata, known: Any) -> float:
    """Since when metadata has been as it is: what its writer's clock said."""
    return self.requests.clock.time() - float(known.version)


_update_step = protocol.step_of_update


def _without_fence(*given: Any) -> Any:
    step = _update_step(*given)
    return replace(step, fence=False) if isinstance(step, InPlace) else step


def _without_checks(*given: Any) -> Any:
    step = _update_step(*given)
    return replace(step, unless=()) if isinstance(step, Create) else step


def _unheld(shards: Any, placement: Any, place: Any, holders: Any) -> Any:
    step = _update_step(shards, placement, place, holders)
    return Create(protocol.home(shards, place)) if isinstance(step, ByClaim) else step


_by_claim = protocol.step_by_claim


def _impatient(shards: Any, place: Any, *more: Any) -> Any:
    step = _by_claim(shards, place, *more)
    return Create(protocol.home(shards, place)) if isinstance(step, Hold) else step


def _lone_home(shards: Any, placement: Any, place: Any) -> tuple[int, ...]:
    return (protocol.home(shards, place),)


def _copied(self: random.Random) -> random.Random:
    copy = random.Random()
    copy.setstate(self.getstate())
    return copy


MUTANTS: dict[str, list[Patch]] = {
    "a late success is repeated": [(Writer, "stands", _repeated)],
    "a late success is believed, wherever it lies": [
        (protocol, "after_a_late_answer", lambda *_: Late.KEPT)
    ],
    "a new item's target may be there": [(Writer, "_do", _into_anything)],
    "what an update made is read later": [(Writer, "write", _read_afterwards)],
    "a get looks once": [(protocol, "looks_that_suffice", lambda *_: 1)],
    "wall clocks are compared": [(Metadata, "known_for", _by_wall_clock)],
    "nobody waits for the others": [(Metadata, "unsettled", lambda *_: 0.0)],
    "queries read in no order": [(protocol, "order_of_reading", lambda *_: Order.ANY)],
    "no fences": [(protocol, "step_of_update", _without_fence)],
    "other places are not checked": [(protocol, "step_of_update", _without_checks)],
    "nothing is claimed": [(protocol, "step_of_update", _unheld)],
    "nobody waits for a claim's owner": [(protocol, "step_by_claim", _impatient)],
    "claims end too early": [
        (Metadata, "usable", lambda self, known: protocol.after_settling(known.shards))
    ],
    "only an item's home is looked at": [(protocol, "candidates", _lone_home)],
    "a fork has its parent's luck": [(KernelsChance, "__copy__", _copied)],
}


@contextmanager
def mutated(name: str) -> Iterator[None]:
    with ExitStack() as stack:
        for where, what, instead in MUTANTS[name]:
            stack.enter_context(mock.patch.object(where, what, instead))
        yield
