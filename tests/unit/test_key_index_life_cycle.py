"""Explore LifeCycle and trust in all interleavings, and check that mutants fail.

`auto` never returns a partial list, and a successful removal leaves nothing behind, whatever other
actions are running and whatever is stopped.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from keyhop.key_index.life_cycle import LifeCycle
from keyhop.key_index.trust import VERIFICATION_COUNTS_DAYS, Evidence, why_not

from testing.life_cycle_explorer import NOW, Actor, Operation, Reader, Rules, World
from testing.marks import prove, prove_long

pytestmark = pytest.mark.timeout(1200)

INSERT: Operation = ("insert", "b")


def kept_world() -> World:
    """Return a table of one collection after a build."""
    rules = Rules()
    world = World((Actor("builder", "build"),))
    while world.actors[0].step != "over":
        world = next(rules.nexts(world))
    while not world.is_quiet:
        world = next(rules.nexts(world))
    return replace(world, actors=())


def scene(
    *actions: str, users: tuple[Operation, ...] = (INSERT,), crashes: int = 0, redrives: int = 0
) -> World:
    actors = tuple(Actor(f"actor {n}", action) for n, action in enumerate(actions))
    more = {"users": users, "crashes": crashes, "redrives": redrives, "reader": Reader()}
    return replace(kept_world(), actors=actors, **more)  # type: ignore[arg-type]


def test_a_kept_index_is_trusted() -> None:
    world = kept_world()
    assert why_not(Rules().evidence(world), NOW) is None
    assert world.sentinels == world.items == {"a"}


@pytest.mark.parametrize("action", ["build", "verify", "remove"])
def test_one_action_that_is_stopped_and_redriven_anywhere(action: str) -> None:
    assert Rules().explore(scene(action, crashes=1, redrives=1)) > 100


def test_from_nothing_to_a_kept_index() -> None:
    world = World((Actor("a", "build"),), users=(INSERT,), crashes=1, reader=Reader())
    assert Rules().explore(world) > 1_000


@pytest.mark.parametrize(
    "users",
    [
        (("unlist",), INSERT),
        (("disable",), INSERT, ("enable",)),
        (("stream", "off"), INSERT, ("stream", "on")),
        (("stream", "off"), INSERT, ("stream", "on"), ("attach",)),
    ],
)
def test_users_change_the_stream_and_the_mapping(users: tuple[Operation, ...]) -> None:
    assert Rules().explore(scene(users=users)) > 20


@pytest.mark.parametrize(
    "actions",
    [
        prove_long(("remove", "verify")),
        prove_long(("remove", "build")),
        *map(prove, [("build", "verify"), ("remove", "remove")]),
        *map(prove, [("verify", "verify"), ("build", "build")]),
    ],
)
def test_two_actions_of_which_one_may_be_stopped(actions: tuple[str, ...]) -> None:
    assert Rules().explore(scene(*actions, crashes=1)) > 10_000


@pytest.mark.prove
@pytest.mark.parametrize("action", ["build", "verify", "remove"])
def test_a_deployment_during_an_action(action: str) -> None:
    users = (INSERT, ("unlist",))
    assert Rules().explore(scene(action, users=users, crashes=1)) > 1_000


@pytest.mark.prove
@pytest.mark.parametrize(
    "actions",
    [
        *(("build", "verify"), ("verify", "verify"), ("remove", "verify"), ("remove", "build")),
        *(("remove", "remove"), ("build", "build")),
    ],
)
def test_a_deployment_during_two_actions_of_which_one_may_be_stopped(
    actions: tuple[str, ...],
) -> None:
    """The context loses the keyIndex of the table, and one of the two may be stopped."""
    assert Rules().explore(scene(*actions, users=(("unlist",),), crashes=1)) > 10_000


GIVEN_UP = (INSERT, ("give up", "b"))


@pytest.mark.parametrize(
    ("actions", "users"),
    [
        (("discard",), GIVEN_UP),
        prove(("discard", "verify"), GIVEN_UP),
        ((), (*GIVEN_UP, ("expire",))),
        prove_long(("discard", "discard", "verify"), GIVEN_UP),
    ],
)
def test_records_that_are_lost_after_the_keeper_gave_up(
    actions: tuple[str, ...], users: tuple[Operation, ...]
) -> None:
    """A message is deleted unprocessed, or the queue deletes it after its retention."""
    assert Rules().explore(scene(*actions, users=users, crashes=1)) > 20


class CountsWithdrawalsAtItsEnd(LifeCycle):
    """A verification that ignores withdrawals before its end."""

    def _evidence_of_verification(self, journal: Any) -> dict[str, Any]:
        now = self.registry.entry().withdrawals
        return {**super()._evidence_of_verification(journal), "withdrawals": now}


def _counting_a_verification_for_30_days(evidence: Evidence) -> str | None:
    return why_not(evidence, NOW - timedelta(days=30 - VERIFICATION_COUNTS_DAYS))


class NotesBelatedly(LifeCycle):
    """A removal that does not void the verification before it begins."""

    def _note(self, **fields: Any) -> None:
        if fields != {"verification": None}:
            super()._note(**fields)


class FinishesAnyway(LifeCycle):
    """An action whose last step does not check whether it still holds the lease."""

    def step(self, step: str, state: Mapping[str, Any]) -> dict[str, Any]:
        if step == "finish":
            self.registry.take(self.holder, self.order.action, self.is_alive)
        return super().step(step, state)


class DetachesOnce(LifeCycle):
    """A removal that does not check again whether the keeper was attached."""

    def _finish_removal(self, state: Mapping[str, Any]) -> dict[str, Any]:
        keeper = self.keeper
        self.keeper = _Detached(keeper)  # type: ignore[assignment]
        try:
            return super()._finish_removal(state)
        finally:
            self.keeper = keeper


class _Detached:
    def __init__(self, keeper: Any) -> None:
        self._keeper = keeper

    def __getattr__(self, name: str) -> Any:
        return getattr(self._keeper, name)

    def detach(self, table: Any) -> bool:
        return True


def _ignoring_kept_by(evidence: Evidence) -> str | None:
    verification = evidence.entry.verification
    if verification is None:
        return "no verification"
    changes = {keeper.uuid: keeper.modified for keeper in evidence.keepers or ()}
    entry = replace(evidence.entry, verification={**verification, "kept_by": changes})
    return why_not(replace(evidence, entry=entry), NOW)


MUTANTS = {
    "a removal detaches once": (
        Rules(life_cycle=DetachesOnce),
        scene("remove", users=(("attach",),)),
    ),
    "nobody waits for actions in flight": (Rules(waits=False), scene("remove")),
    "a reader trusts its first look": (
        Rules(checks_again=False, compares_begun=False),
        scene("remove", users=()),
    ),
    "a message is discarded without a withdrawal": (
        Rules(withdraws=False),
        scene("discard", users=GIVEN_UP),
    ),
    "a verification that began before a withdrawal counts": (
        Rules(life_cycle=CountsWithdrawalsAtItsEnd),
        scene("verify", "discard", users=GIVEN_UP),
    ),
    "a verification counts for 30 days": (
        Rules(why_not=_counting_a_verification_for_30_days),
        scene(users=(*GIVEN_UP, ("expire",))),
    ),
    "a mapping may have been off for a while": (
        Rules(why_not=_ignoring_kept_by),
        scene(users=(("disable",), INSERT, ("enable",))),
    ),
    "a removal voids no verification, and a changed mapping is not noticed": (
        Rules(life_cycle=NotesBelatedly, why_not=_ignoring_kept_by),
        scene("remove", "verify", users=(("forget",),), crashes=1),
    ),
    "an action ends without its lease": (
        Rules(life_cycle=FinishesAnyway),
        scene("verify", "remove", users=(), crashes=1, redrives=1),
    ),
    "walkers do not ask for the lease": (
        Rules(fences=False),
        scene("build", "remove", crashes=1),
    ),
    "a reader does not check for changes since then": (
        Rules(compares_begun=False),
        scene("remove", "verify", users=(), crashes=1),
    ),
}


@pytest.mark.prove
@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_die(name: str) -> None:
    mutant, world = MUTANTS[name]
    with pytest.raises(AssertionError, match=r"partial list|left"):
        mutant.explore(world)
