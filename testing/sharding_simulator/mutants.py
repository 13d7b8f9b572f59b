"""Mutants of the sharded table, each without one precaution. The simulator must find each."""

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


def _repeats(self: Writer, key: Any, physical: Any, record: Any, is_update: bool = False) -> bool:
    """Repeat a late success if the metadata has changed since then."""
    if self.requests.clock.monotonic() <= record.effective_until:
        return True
    return self.metadata.of(key.logical, fresh=True).version == record.version


_original_do = Writer._do


def _creates_over_an_item(self: Writer, step: Any, write: Any) -> Any:
    """Create an item without the condition that the target does not exist."""
    returns_new = write.returns in ("ALL_NEW", "UPDATED_NEW")
    if not isinstance(step, Create) or not step.unless or returns_new:
        return _original_do(self, step, write)
    absent = writer.absent(self.schema)
    checks = [(other, writer.CHECK, absent) for other in step.unless]
    users = 0 if write.clause.condition else None
    self._transact(write, [(step.shard, write.act, write.clause), *checks], users)
    return {}


_original_write = Writer.write


def _reads_afterwards(
    self: Writer, key: Any, act: Act, clause: Clause, returns: str | None, *more: Any
) -> Any:
    """Read the result of an update with another request."""
    if returns not in ("ALL_NEW", "UPDATED_NEW"):
        return _original_write(self, key, act, clause, returns, *more)
    answer = _original_write(self, key, act, clause, None, *more)
    record = self.metadata.of(key.logical)
    candidates = protocol.candidates(record.shards, self.placement, self.place_of(key))
    copies = writer.find_copies(self.requests, self.schema, key, candidates)
    for item in copies.values():
        attributes = {n: item[n] for n in item if n == "n" or returns == "ALL_NEW"}
        if "n" in attributes:
            return {**answer, "Attributes": attributes}
    raise GaveUp("it is gone")


def _by_wall_clock(self: Metadata, record: Any) -> float:
    """Return the age of metadata, measured with its writer's wall clock."""
    return self.requests.clock.time() - float(record.version)


_update_step = protocol.step_of_update


def _sets_no_fence(*arguments: Any) -> Any:
    step = _update_step(*arguments)
    return replace(step, fence=False) if isinstance(step, InPlace) else step


def _checks_nothing(*arguments: Any) -> Any:
    step = _update_step(*arguments)
    return replace(step, unless=()) if isinstance(step, Create) else step


def _claims_nothing(shards: Any, placement: Any, place: Any, holders: Any) -> Any:
    step = _update_step(shards, placement, place, holders)
    return Create(protocol.home(shards, place)) if isinstance(step, ByClaim) else step


_by_claim = protocol.step_by_claim


def _waits_for_no_claim(shards: Any, place: Any, *more: Any) -> Any:
    step = _by_claim(shards, place, *more)
    return Create(protocol.home(shards, place)) if isinstance(step, Hold) else step


def _only_home(shards: Any, placement: Any, place: Any) -> tuple[int, ...]:
    return (protocol.home(shards, place),)


def _copy(self: random.Random) -> random.Random:
    copy = random.Random()
    copy.setstate(self.getstate())
    return copy


MUTANTS: dict[str, list[Patch]] = {
    "a late success is repeated": [(Writer, "stands", _repeats)],
    "a late success is believed, wherever it lies": [
        (protocol, "after_a_late_answer", lambda *_: Late.KEPT)
    ],
    "a new item's target may be there": [(Writer, "_do", _creates_over_an_item)],
    "what an update made is read later": [(Writer, "write", _reads_afterwards)],
    "a get looks once": [(protocol, "looks_that_suffice", lambda *_: 1)],
    "wall clocks are compared": [(Metadata, "known_for", _by_wall_clock)],
    "nobody waits for the others": [(Metadata, "unsettled", lambda *_: 0.0)],
    "queries read in no order": [(protocol, "order_of_reading", lambda *_: Order.ANY)],
    "no fences": [(protocol, "step_of_update", _sets_no_fence)],
    "other places are not checked": [(protocol, "step_of_update", _checks_nothing)],
    "nothing is claimed": [(protocol, "step_of_update", _claims_nothing)],
    "nobody waits for a claim's owner": [(protocol, "step_by_claim", _waits_for_no_claim)],
    "claims end too early": [
        (Metadata, "usable", lambda self, record: protocol.after_settling(record.shards))
    ],
    "only an item's home is looked at": [(protocol, "candidates", _only_home)],
    "a fork has its parent's luck": [(KernelsChance, "__copy__", _copy)],
}


@contextmanager
def mutated(name: str) -> Iterator[None]:
    with ExitStack() as stack:
        for owner, attribute, mutant in MUTANTS[name]:
            stack.enter_context(mock.patch.object(owner, attribute, mutant))
        yield
