"""A cutover under writers and readers, in virtual time; killed everywhere, there and back."""

import itertools
import json
import math
import statistics
from dataclasses import replace
from typing import Any

import pytest
from keyhop.errors import GaveUp, Stopped
from keyhop.rekey import control
from keyhop.rekey.control import Control, Evidence, Side, direction_from, other_side
from keyhop.rekey.cutover.change import Change, Next
from keyhop.rekey.routing.follower import View
from keyhop.rekey.side.layout import Claim, Straggler
from keyhop.rekey.standing import Gate

from testing.marks import prove
from testing.rekey_world import Killed, World, killed_at


def after(world: World, seconds: float, act):
    def go():
        world.clock.sleep(seconds)
        return act()

    return go


def test_a_cutover_and_back_and_forward_again_lose_nothing() -> None:
    world = World()

    def there_and_back() -> list[Next]:
        world.clock.sleep(1)
        found = []
        for to in ("destination", "source", "destination"):
            found.append(world.change(to).run())
            world.clock.sleep(2)
        return found

    (found,) = world.run(there_and_back)
    assert [one.action for one in found] == ["done"] * 3
    assert world.side.item == Control("destination", "open", 15, replicating=True, turns=3)
    assert world.failed == []
    world.check()


@pytest.mark.parametrize("seed", range(4))
def test_a_shorter_lease_begins_it_sooner_and_loses_nothing(seed: int) -> None:
    world = World(seed, lag=(0.2, 0.8)[seed % 2])
    world.side.item = replace(world.side.item, long_lease=10.0)

    def there_and_back() -> list[Next]:
        world.clock.sleep(1)
        made = []
        for to in ("destination", "source"):
            began = world.clock.monotonic()
            made.append(world.change(to).run())
            assert world.clock.monotonic() - began < 30
            world.clock.sleep(2)
        return made

    (found,) = world.run(there_and_back)
    assert [one.action for one in found] == ["done"] * 2
    assert world.failed == []
    world.check()


def test_a_write_that_is_under_way_when_writes_are_frozen_is_not_lost() -> None:
    world = World()
    stages: list[str] = []

    def put() -> None:
        world.clock.sleep(0.9)
        stages.append(world.side.item.stage)
        world.tables["source"].put("open", 1)

    def write() -> None:
        while world.side.item.stage != "closing":
            world.clock.sleep(0.05)
        world.clock.sleep(world.side.item.settle - 0.5)
        stages.append(world.side.item.stage)
        world.router().write(old=put, new=lambda: pytest.fail("it began before"))

    found, _ = world.run(after(world, 1, world.change("destination").run), write)
    assert stages == ["closing", "frozen"]
    assert found.action == "done"
    assert world.tables["destination"].items["open"] == 1
    world.check()


def test_writers_wait_for_six_seconds_at_most_in_the_median(capsys) -> None:
    pauses = []
    for seed in range(5):
        world = World(seed)
        (found,) = world.run(after(world, 1, world.change("destination").run))
        assert found.action == "done"
        assert world.failed == []
        pauses.append(world.pause)
    with capsys.disabled():
        print(f"\npause of writers: {', '.join(f'{one:.2f}' for one in sorted(pauses))} s")
    assert statistics.median(pauses) <= 6.0
    assert max(pauses) <= 10.0


def test_it_is_made_in_steps_that_know_each_other_by_json_alone() -> None:
    """As the state machine makes it: each step by another process, with a wait between them."""
    world = World()

    def steps() -> list[str]:
        actions: list[str] = []
        last: dict[str, Any] = {"rekey": "the input"}
        while not actions or actions[-1] == "wait":
            found = world.change("destination").step(last)
            world.clock.sleep(math.ceil(found.seconds))
            last = json.loads(json.dumps(found.to_json()))
            actions.append(found.action)
        return actions

    (actions,) = world.run(after(world, 1, steps))
    assert actions == ["wait", "done"]
    assert world.failed == []
    world.check()


def test_a_step_that_is_repeated_waits_anew_for_what_it_has_not_seen() -> None:
    world = World()

    def steps() -> list[str]:
        first = world.change("destination").step()
        again = world.change("destination").step()  # nobody knows how long it was closing
        return [first.action, again.action, world.change("destination").abort("enough").action]

    (actions,) = world.run(steps)
    assert actions == ["wait", "wait", "called off"]
    assert [one.stage for one in world.side.history] == ["closing", "open"]


def test_what_was_called_off_while_it_waited_is_not_begun_again() -> None:
    world = World()

    def steps() -> Next:
        last = world.change("destination").step().to_json()
        world.change("destination").abort("by hand")
        return world.change("destination").step(last)

    (found,) = world.run(steps)
    assert found.action == "called off"
    assert [one.stage for one in world.side.history] == ["closing", "open"]


@pytest.mark.parametrize("seconds", [5, 30.5, 31.9])
def test_whoever_stops_it_before_the_turn_calls_it_off_at_once(seconds: float) -> None:
    """Not first when it has turned, nor by leaving writers to wait until routers have seen it."""
    world = World()
    change = world.change("destination")
    began: list[float] = []

    def check() -> None:
        if began and world.clock.monotonic() - began[0] >= seconds:
            raise Stopped

    def run() -> None:
        began.append(world.clock.monotonic())
        with pytest.raises(Stopped):
            change.run()
        assert world.clock.monotonic() - began[0] < seconds + 1.5

    change.check = check
    world.run(after(world, 1, run))
    assert (world.side.item.serving, world.side.item.stage) == ("source", "open")
    assert [one.stage for one in world.side.history][-1] == "open"
    assert world.failed == []
    world.check()


@pytest.mark.parametrize("stage", ["closing", "frozen", "fenced"])
def test_a_rollback_of_a_cutover_that_was_left_behind_calls_it_off(stage: str) -> None:
    """It may not go on with it: it would drain the table that does not serve, and turn to it."""
    world = World()
    world.side.item = replace(world.side.item, stage=stage)  # type: ignore[arg-type]

    def back() -> list[Next]:
        first = world.change("source").step()
        world.clock.sleep(40)
        return [first, world.change("source").run()]

    (found,) = world.run(back)
    assert [one.action for one in found] == ["called off", "done"]
    assert [(one.serving, one.stage) for one in world.side.history] == [("source", "open")]


def test_a_cutover_of_a_rollback_that_was_left_behind_calls_it_off() -> None:
    world = World()
    world.side.item = Control("destination", "closing", 7, replicating=True)
    (found,) = world.run(world.change("destination").run)
    assert (found.action, found.control.serving) == ("called off", "destination")


def test_a_drain_that_takes_too_long_is_called_off_in_time() -> None:
    world = World()
    change = world.change("destination")
    change.drain.unseen = lambda markers: 1  # type: ignore[method-assign]
    (found,) = world.run(after(world, 1, change.run))
    assert found.action == "called off"
    assert "1 of 1 shard" in found.why
    assert world.side.item.stage == "open"
    assert world.pause <= world.side.item.freeze_limit + 3
    assert world.failed == []
    world.check()


def test_a_batch_that_does_not_end_calls_it_off() -> None:
    world = World()
    change = world.change("destination")
    change.side.side.open_batches = lambda direction: ["one"]  # type: ignore[attr-defined]
    (found,) = world.run(after(world, 1, change.run))
    assert found.action == "called off"
    assert "1 batch is in flight" in found.why
    world.check()


@pytest.mark.parametrize("serving", ["source", "destination"])
def test_a_claim_that_is_not_settled_calls_it_off(serving: Side) -> None:
    world = World()
    world.side.item = replace(world.side.item, serving=serving)
    direction = direction_from(serving)
    world.side.claimed.append(Claim(direction, {"id": {"S": "s"}}, {"pk": {"S": "d"}}, 0.0, "t"))
    (found,) = world.run(after(world, 1, world.change(other_side(serving)).run))
    assert (found.action, found.control.serving) == ("called off", serving)
    assert "claims remain" in found.why
    world.check()


@pytest.mark.parametrize("stage", ["frozen", "fenced"])
@pytest.mark.parametrize("waits_for", ["stragglers", "claims"])
def test_a_change_enters_the_stages_that_the_explored_rule_allows(
    stage: str, waits_for: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the explorer walks through is what runs: the rule alone decides, and is obeyed."""
    rule, asked = Control.following, []

    def following(self: Control, evidence: Evidence):
        asked.append(self.stage)
        return (None, waits_for) if self.stage == stage else rule(self, evidence)

    monkeypatch.setattr(Control, "following", following)
    world = World()
    (found,) = world.run(after(world, 1, world.change("destination").run))
    assert found.action == "called off"
    assert asked[0] == "closing"
    assert world.side.history[-2].stage == stage
    world.check()


def straggler() -> Straggler:
    return Straggler("source", {"id": {"S": "s"}}, ({"pk": {"S": "d"}},), 0.0)


@pytest.mark.parametrize("stage", ["closing", "frozen", "fenced"])
def test_a_straggler_that_is_noted_during_a_rollback_aborts_it(stage: str) -> None:
    world = World()
    world.side.item = replace(world.side.item, serving="destination", turns=1)
    swap = world.side.swap

    def swapped(old: Control, new: Control) -> bool:
        if new.stage == stage:
            world.side.bypassed.append(straggler())
        return swap(old, new)

    world.side.swap = swapped  # type: ignore[method-assign]
    (found,) = world.run(after(world, 1, world.change("source").run))
    assert (found.action, found.control.serving) == ("called off", "destination")
    assert "a write has bypassed the routers" in found.why
    world.check()


def test_what_is_not_examined_refuses_a_rollback_until_that_is_accepted() -> None:
    for accept, action in (((), "refused"), (("stragglers",), "done")):
        world = World()
        world.side.item = replace(world.side.item, serving="destination", turns=1)
        change = world.change("source")
        change.accept = accept

        def examine() -> None:
            raise GaveUp("the other stream is 90 seconds behind")

        change.examine = examine
        (found,) = world.run(after(world, 1, change.run))
        assert found.action == action
        (gate,) = [one for one in found.gates if one.name == "examined"] or [None]
        assert gate is None or "90 seconds behind" in gate.says


def test_accepted_stragglers_are_settled_by_batches_before_a_rollback_begins() -> None:
    world = World()
    world.side.item = replace(world.side.item, serving="destination", turns=1)
    world.side.bypassed.append(straggler())
    change, rehearsals = world.change("source"), []
    change.accept = ("stragglers",)
    rehearse = change.drain.prepare

    def settle(one: Straggler, control: Control) -> bool:
        world.side.bypassed.remove(one)
        world.side.claimed += [Claim("reverse", one.key, one.places[0], 0.0, "token")] * 3
        return True

    def prepare() -> tuple[int, float]:
        assert {one.stage for one in world.side.history} <= {"open"}, "it has not begun"
        world.side.claimed[:1] = []
        rehearsals.append(len(world.side.claimed))
        return rehearse()

    world.side.settle = settle  # type: ignore[method-assign]
    change.drain.prepare = prepare  # type: ignore[method-assign]
    (found,) = world.run(after(world, 1, change.run))
    assert (found.action, rehearsals) == ("done", [2, 1, 0])


def test_a_shut_gate_changes_nothing() -> None:
    world = World()
    change = world.change("destination")
    change.look = lambda control: [Gate("claims", False, "2 items want a place", "look")]
    (found,) = world.run(change.run)
    assert found.action == "refused"
    assert world.side.history == []


@pytest.mark.parametrize("gate", ["claims", "lag"])
def test_what_a_batch_would_settle_does_not_shut_it_out_of_a_quiet_table(gate: str) -> None:
    """Whoever has noted claims was killed, the first batch came late, as its function was cold;
    and no other one comes: the rehearsal's markers bring one.
    """
    world = World()
    change = world.change("destination")
    rehearse, rehearsed = change.drain.prepare, list[tuple[int, float]]()

    def prepare() -> tuple[int, float]:
        rehearsed.append(rehearse())
        return rehearsed[-1]

    change.drain.prepare = prepare
    change.look = lambda control: [Gate(gate, bool(rehearsed), "not yet", "look")]
    (found,) = world.run(change.run)
    assert (found.action, len(rehearsed)) == ("done", 1)


def test_a_dry_run_changes_nothing() -> None:
    world = World()
    assert world.change("destination").dry_run().action == "looked"
    assert world.side.history == []
    assert world.tables["source"].stream == []


def test_a_drain_that_was_too_slow_in_the_rehearsal_is_refused() -> None:
    world = World()
    world.side.item = replace(world.side.item, freeze_limit=5.0)
    change = world.change("destination")
    (found,) = world.run(change.run)
    assert found.action == "refused"
    assert world.side.item.stage == "open"


def test_a_freeze_limit_is_kept_for_the_way_back_until_another_one_is_given() -> None:
    world = World()
    limits: list[float] = []

    def change(to: Any, limit: float | None) -> None:
        made = world.change(to)
        made.freeze_limit = limit
        assert made.run().action == "done"
        limits.append(world.side.item.freeze_limit)

    def act() -> None:
        change("destination", 18.0)
        change("source", None)
        change("destination", None)
        change("source", 12.0)

    world.run(after(world, 1, act))
    assert world.failed == []
    assert limits == [18.0, 18.0, 18.0, 12.0]


def test_two_who_make_the_same_change_at_once_end_in_one() -> None:
    world = World()
    first, second = world.change("destination"), world.change("destination")
    world.run(after(world, 1, first.run), after(world, 1.05, second.run))
    assert world.side.item.stage == "open"
    assert world.failed == []
    world.check()


@pytest.mark.parametrize("resumes", [True, False], ids=["resumed", "left alone"])
@pytest.mark.parametrize("only", ["swap", prove("")], ids=["at swaps", "anywhere"])
def test_whoever_makes_it_is_killed(resumes: bool, only: str) -> None:
    for number in itertools.count():
        world = World(number)
        change = world.change("destination", killed_at(number, only))

        def act(world=world, change=change):
            world.clock.sleep(1)
            try:
                return change.run()
            except Killed:
                world.clock.sleep(3 if resumes else 30)
                if resumes:
                    world.change("destination").run()
                raise

        (found,) = world.run(act, writers=1, readers=1)
        world.check()
        assert world.failed == [], number
        # Killed in a freeze, routers end it.
        assert world.pause <= world.side.item.freeze_limit + 3, number
        assert world.side.item.stage in ("open", "closing"), number
        if not isinstance(found, Killed):
            break
    assert number >= 10


@pytest.mark.parametrize("every", [7, prove(1)])
def test_its_function_is_killed_at_each_request_and_no_step_is_lost(every: int) -> None:
    """As the state machine has it: the same step is asked for again; what was called off by then,
    somebody starts anew."""
    whole = ["closing", "frozen", "fenced", "turned", "open"]
    for number in itertools.count(step=every):
        world = World(number)

        def steps(world=world, number=number) -> list[str]:
            world.clock.sleep(1)
            actions, last = [], {}
            change = world.change("destination", killed_at(number))
            while not actions or actions[-1] != "done":
                try:
                    found = change.step(last)
                except Killed:
                    actions.append("killed")
                else:
                    actions.append(found.action)
                    last = json.loads(json.dumps(found.to_json()))
                    last = last if found.action == "wait" else {}
                    world.clock.sleep(math.ceil(found.seconds))
                if actions[-1] == "killed":
                    world.clock.sleep(2)
                    change = world.change("destination")
            return actions

        (actions,) = world.run(steps, writers=1, readers=1)
        world.check()
        assert world.failed == [], number
        assert actions.count("called off") <= 1, actions
        assert [one.stage for one in world.side.history][-5:] == whole
        assert world.side.item.serving == "destination"
        assert world.pause <= world.side.item.freeze_limit + 3, number
        if "killed" not in actions:
            break
    assert number >= 20


def without_a_settle(stage: str):
    def mutate(patch: pytest.MonkeyPatch, world: World, change: Change) -> None:
        patch.setitem(control._SETTLES, stage, 0.0)

    return mutate


def without_a_drain(patch: pytest.MonkeyPatch, world: World, change: Change) -> None:
    patch.setattr(world.side, "open_batches", lambda direction: [])
    patch.setattr(change.drain, "unseen", lambda markers: 0)


def without_a_freeze(patch: pytest.MonkeyPatch, world: World, change: Change) -> None:
    patch.setattr(Control, "takes_writes", property(lambda self: True))


def by_old_views(patch: pytest.MonkeyPatch, world: World, change: Change) -> None:
    patch.setattr(View, "may_send", lambda self, now: True)
    patch.setattr(View, "holds", lambda self, now: True)
    patch.setattr(View, "is_young", lambda self, now: self.requested_at.until(now) < 60)


MUTANTS = {
    "no long lease is waited for": without_a_settle("closing"),
    "no short lease is waited for before the drain": without_a_settle("frozen"),
    "no lease is waited for after the turn": without_a_settle("turned"),
    "no drain": without_a_drain,
    "no freeze": without_a_freeze,
    "routers go by old views, and do not look back": by_old_views,
}


@pytest.mark.prove
@pytest.mark.parametrize("name", MUTANTS)
def test_without_any_part_of_it_something_is_lost(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(8):
        world = World(seed, lag=(0.05, 4.0)[seed % 2])
        change = world.change("destination")

        def act(world=world, change=change) -> None:
            world.clock.sleep(1)
            change.run()
            world.clock.sleep(3)

        with monkeypatch.context() as patch:
            # As lazy as they may be.
            patch.setattr(View, "is_young", View.may_send)
            MUTANTS[name](patch, world, change)
            world.run(act, writers=4, readers=4)
            try:
                world.check()
            except AssertionError:
                return
    pytest.fail("nothing was lost")
