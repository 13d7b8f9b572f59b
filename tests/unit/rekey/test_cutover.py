"""Cutovers and rollbacks under writers and readers, in virtual time, killed at every point."""

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


def called_off(world: World, change: Change) -> Next:
    """Check that a change is called off and loses nothing, and return its result."""
    (result,) = world.run(after(world, 1, change.run))
    assert result.action == "called off"
    world.check()
    return result


def test_a_cutover_and_back_and_forward_again_lose_nothing() -> None:
    world = World()

    def there_and_back() -> list[Next]:
        world.clock.sleep(1)
        results = []
        for to in ("destination", "source", "destination"):
            results.append(world.change(to).run())
            world.clock.sleep(2)
        return results

    (results,) = world.run(there_and_back)
    assert [result.action for result in results] == ["done"] * 3
    assert world.side.item == Control("destination", "open", 15, replicating=True, turns=3)
    assert world.failed == []
    world.check()


@pytest.mark.parametrize("seed", range(4))
def test_a_shorter_lease_starts_a_change_sooner_and_loses_nothing(seed: int) -> None:
    world = World(seed, lag=(0.2, 0.8)[seed % 2])
    world.side.item = replace(world.side.item, long_lease=10.0)

    def there_and_back() -> list[Next]:
        world.clock.sleep(1)
        results = []
        for to in ("destination", "source"):
            started = world.clock.monotonic()
            results.append(world.change(to).run())
            assert world.clock.monotonic() - started < 30
            world.clock.sleep(2)
        return results

    (results,) = world.run(there_and_back)
    assert [result.action for result in results] == ["done"] * 2
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

    result, _ = world.run(after(world, 1, world.change("destination").run), write)
    assert stages == ["closing", "frozen"]
    assert result.action == "done"
    assert world.tables["destination"].items["open"] == 1
    world.check()


def test_the_median_wait_of_writers_is_at_most_six_seconds(capsys) -> None:
    pauses = []
    for seed in range(5):
        world = World(seed)
        (result,) = world.run(after(world, 1, world.change("destination").run))
        assert result.action == "done"
        assert world.failed == []
        pauses.append(world.pause)
    with capsys.disabled():
        print(f"\npause of writers: {', '.join(f'{pause:.2f}' for pause in sorted(pauses))} s")
    assert statistics.median(pauses) <= 6.0
    assert max(pauses) <= 10.0


def test_a_change_works_in_steps_that_pass_only_json() -> None:
    """The state machine runs each step in another process and waits between the steps."""
    world = World()

    def steps() -> list[str]:
        actions: list[str] = []
        last: dict[str, Any] = {"rekey": "the input"}
        while not actions or actions[-1] == "wait":
            result = world.change("destination").step(last)
            world.clock.sleep(math.ceil(result.seconds))
            last = json.loads(json.dumps(result.to_json()))
            actions.append(result.action)
        return actions

    (actions,) = world.run(after(world, 1, steps))
    assert actions == ["wait", "done"]
    assert world.failed == []
    world.check()


def test_a_repeated_step_waits_again_for_what_it_has_not_seen() -> None:
    world = World()

    def steps() -> list[str]:
        first = world.change("destination").step()
        second = world.change("destination").step()  # it does not know how long it was closing
        return [first.action, second.action, world.change("destination").abort("enough").action]

    (actions,) = world.run(steps)
    assert actions == ["wait", "wait", "called off"]
    assert [control.stage for control in world.side.history] == ["closing", "open"]


def test_a_change_that_was_called_off_while_it_waited_does_not_restart() -> None:
    world = World()

    def steps() -> Next:
        last = world.change("destination").step().to_json()
        world.change("destination").abort("by hand")
        return world.change("destination").step(last)

    (result,) = world.run(steps)
    assert result.action == "called off"
    assert [control.stage for control in world.side.history] == ["closing", "open"]


@pytest.mark.parametrize("seconds", [5, 30.5, 31.9])
def test_a_stop_before_the_turn_calls_the_change_off_at_once(seconds: float) -> None:
    """The stop neither waits for the turn nor leaves writers waiting until routers see it."""
    world = World()
    change = world.change("destination")
    started: list[float] = []

    def check() -> None:
        if started and world.clock.monotonic() - started[0] >= seconds:
            raise Stopped

    def run() -> None:
        started.append(world.clock.monotonic())
        with pytest.raises(Stopped):
            change.run()
        assert world.clock.monotonic() - started[0] < seconds + 1.5

    change.check = check
    world.run(after(world, 1, run))
    assert (world.side.item.serving, world.side.item.stage) == ("source", "open")
    assert [control.stage for control in world.side.history][-1] == "open"
    assert world.failed == []
    world.check()


@pytest.mark.parametrize("stage", ["closing", "frozen", "fenced"])
def test_a_rollback_calls_an_abandoned_cutover_off(stage: str) -> None:
    """If it continued the cutover, it would drain the table that does not serve, and turn to it."""
    world = World()
    world.side.item = replace(world.side.item, stage=stage)  # type: ignore[arg-type]

    def back() -> list[Next]:
        first = world.change("source").step()
        world.clock.sleep(40)
        return [first, world.change("source").run()]

    (results,) = world.run(back)
    assert [result.action for result in results] == ["called off", "done"]
    assert [(item.serving, item.stage) for item in world.side.history] == [("source", "open")]


def test_a_cutover_calls_an_abandoned_rollback_off() -> None:
    world = World()
    world.side.item = Control("destination", "closing", 7, replicating=True)
    (result,) = world.run(world.change("destination").run)
    assert (result.action, result.control.serving) == ("called off", "destination")


def test_a_drain_that_takes_too_long_is_called_off_in_time() -> None:
    world = World()
    change = world.change("destination")
    change.drain.unseen = lambda markers: 1  # type: ignore[method-assign]
    assert "1 of 1 shard" in called_off(world, change).why
    assert world.side.item.stage == "open"
    assert world.pause <= world.side.item.freeze_limit + 3
    assert world.failed == []


def test_a_batch_that_does_not_end_calls_the_change_off() -> None:
    world = World()
    change = world.change("destination")
    change.side.side.open_batches = lambda direction: ["one"]  # type: ignore[attr-defined]
    assert "1 batch is in flight" in called_off(world, change).why


@pytest.mark.parametrize("serving", ["source", "destination"])
def test_an_unsettled_claim_calls_the_change_off(serving: Side) -> None:
    world = World()
    world.side.item = replace(world.side.item, serving=serving)
    direction = direction_from(serving)
    world.side.claimed.append(Claim(direction, {"id": {"S": "s"}}, {"pk": {"S": "d"}}, 0.0, "t"))
    result = called_off(world, world.change(other_side(serving)))
    assert result.control.serving == serving
    assert "claims remain" in result.why


@pytest.mark.parametrize("stage", ["frozen", "fenced"])
@pytest.mark.parametrize("waits_for", ["stragglers", "claims"])
def test_a_change_enters_the_stages_that_the_explored_rule_allows(
    stage: str, waits_for: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule that the explorer checks is the only one that decides about a stage."""
    rule, stages = Control.following, []

    def following(self: Control, evidence: Evidence):
        stages.append(self.stage)
        return (None, waits_for) if self.stage == stage else rule(self, evidence)

    monkeypatch.setattr(Control, "following", following)
    world = World()
    called_off(world, world.change("destination"))
    assert stages[0] == "closing"
    assert world.side.history[-2].stage == stage


def straggler() -> Straggler:
    return Straggler("source", {"id": {"S": "s"}}, ({"pk": {"S": "d"}},), 0.0)


@pytest.mark.parametrize("stage", ["closing", "frozen", "fenced"])
def test_a_straggler_that_is_recorded_during_a_rollback_aborts_it(stage: str) -> None:
    world = World()
    world.side.item = replace(world.side.item, serving="destination", turns=1)
    swap = world.side.swap

    def swapped(old: Control, new: Control) -> bool:
        if new.stage == stage:
            world.side.bypassed.append(straggler())
        return swap(old, new)

    world.side.swap = swapped  # type: ignore[method-assign]
    result = called_off(world, world.change("source"))
    assert result.control.serving == "destination"
    assert "a write has bypassed the routers" in result.why


def test_a_failed_examination_refuses_a_rollback_until_that_is_accepted() -> None:
    for accept, action in (((), "refused"), (("stragglers",), "done")):
        world = World()
        world.side.item = replace(world.side.item, serving="destination", turns=1)
        change = world.change("source")
        change.accept = accept

        def examine() -> None:
            raise GaveUp("the other stream is 90 seconds behind")

        change.examine = examine
        (result,) = world.run(after(world, 1, change.run))
        assert result.action == action
        (gate,) = [gate for gate in result.gates if gate.name == "examined"] or [None]
        assert gate is None or "90 seconds behind" in gate.says


def test_batches_settle_accepted_stragglers_before_a_rollback_starts() -> None:
    world = World()
    world.side.item = replace(world.side.item, serving="destination", turns=1)
    world.side.bypassed.append(straggler())
    change, rehearsals = world.change("source"), []
    change.accept = ("stragglers",)
    rehearse = change.drain.prepare

    def settle(straggler: Straggler, control: Control) -> bool:
        world.side.bypassed.remove(straggler)
        claim = Claim("reverse", straggler.key, straggler.places[0], 0.0, "token")
        world.side.claimed += [claim] * 3
        return True

    def prepare() -> tuple[int, float]:
        assert {item.stage for item in world.side.history} <= {"open"}, "it has not started"
        world.side.claimed[:1] = []
        rehearsals.append(len(world.side.claimed))
        return rehearse()

    world.side.settle = settle  # type: ignore[method-assign]
    change.drain.prepare = prepare  # type: ignore[method-assign]
    (result,) = world.run(after(world, 1, change.run))
    assert (result.action, rehearsals) == ("done", [2, 1, 0])


def test_a_change_with_a_shut_gate_changes_nothing() -> None:
    world = World()
    change = world.change("destination")
    change.look = lambda control: [Gate("claims", False, "2 items want a place", "look")]
    (result,) = world.run(change.run)
    assert result.action == "refused"
    assert world.side.history == []


@pytest.mark.parametrize("gate", ["claims", "lag"])
def test_a_quiet_table_opens_the_gates_that_the_next_batch_opens(gate: str) -> None:
    """The rehearsal's markers cause a batch, which settles claims and reports the present lag."""
    world = World()
    change = world.change("destination")
    rehearse, rehearsals = change.drain.prepare, list[tuple[int, float]]()

    def prepare() -> tuple[int, float]:
        rehearsals.append(rehearse())
        return rehearsals[-1]

    change.drain.prepare = prepare
    change.look = lambda control: [Gate(gate, bool(rehearsals), "not yet", "look")]
    (result,) = world.run(change.run)
    assert (result.action, len(rehearsals)) == ("done", 1)


def test_a_dry_run_changes_nothing() -> None:
    world = World()
    assert world.change("destination").dry_run().action == "looked"
    assert world.side.history == []
    assert world.tables["source"].stream == []


def test_a_drain_that_was_too_slow_in_the_rehearsal_is_refused() -> None:
    world = World()
    world.side.item = replace(world.side.item, freeze_limit=5.0)
    change = world.change("destination")
    (result,) = world.run(change.run)
    assert result.action == "refused"
    assert world.side.item.stage == "open"


def test_a_freeze_limit_applies_to_later_changes_until_another_one_is_set() -> None:
    world = World()
    limits: list[float] = []

    def run_change(to: Any, limit: float | None) -> None:
        change = world.change(to)
        change.freeze_limit = limit
        assert change.run().action == "done"
        limits.append(world.side.item.freeze_limit)

    def act() -> None:
        run_change("destination", 18.0)
        run_change("source", None)
        run_change("destination", None)
        run_change("source", 12.0)

    world.run(after(world, 1, act))
    assert world.failed == []
    assert limits == [18.0, 18.0, 18.0, 12.0]


def test_two_processes_that_make_the_same_change_make_it_once() -> None:
    world = World()
    first, second = world.change("destination"), world.change("destination")
    world.run(after(world, 1, first.run), after(world, 1.05, second.run))
    assert world.side.item.stage == "open"
    assert world.failed == []
    world.check()


@pytest.mark.parametrize("resumes", [True, False], ids=["resumed", "left alone"])
@pytest.mark.parametrize("only", ["swap", prove("")], ids=["at swaps", "anywhere"])
def test_a_killed_change_loses_nothing(resumes: bool, only: str) -> None:
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

        (result,) = world.run(act, writers=1, readers=1)
        world.check()
        assert world.failed == [], number
        # If the change is killed in a freeze, routers end the freeze.
        assert world.pause <= world.side.item.freeze_limit + 3, number
        assert world.side.item.stage in ("open", "closing"), number
        if not isinstance(result, Killed):
            break
    assert number >= 10


@pytest.mark.parametrize("every", [7, prove(1)])
def test_the_function_is_killed_at_each_request_and_no_step_is_lost(every: int) -> None:
    """Repeat a killed step, as the state machine does, and restart a change that was called off."""
    stages = ["closing", "frozen", "fenced", "turned", "open"]
    for number in itertools.count(step=every):
        world = World(number)

        def steps(world=world, number=number) -> list[str]:
            world.clock.sleep(1)
            actions, last = [], {}
            change = world.change("destination", killed_at(number))
            while not actions or actions[-1] != "done":
                try:
                    result = change.step(last)
                except Killed:
                    actions.append("killed")
                else:
                    actions.append(result.action)
                    last = json.loads(json.dumps(result.to_json()))
                    last = last if result.action == "wait" else {}
                    world.clock.sleep(math.ceil(result.seconds))
                if actions[-1] == "killed":
                    world.clock.sleep(2)
                    change = world.change("destination")
            return actions

        (actions,) = world.run(steps, writers=1, readers=1)
        world.check()
        assert world.failed == [], number
        assert actions.count("called off") <= 1, actions
        assert [control.stage for control in world.side.history][-5:] == stages
        assert world.side.item.serving == "destination"
        assert world.pause <= world.side.item.freeze_limit + 3, number
        if "killed" not in actions:
            break
    assert number >= 20


def skip_lease(stage: str):
    def mutate(patch: pytest.MonkeyPatch, world: World, change: Change) -> None:
        patch.setitem(control._SETTLES, stage, 0.0)

    return mutate


def skip_drain(patch: pytest.MonkeyPatch, world: World, change: Change) -> None:
    patch.setattr(world.side, "open_batches", lambda direction: [])
    patch.setattr(change.drain, "unseen", lambda markers: 0)


def skip_freeze(patch: pytest.MonkeyPatch, world: World, change: Change) -> None:
    patch.setattr(Control, "takes_writes", property(lambda self: True))


def trust_old_views(patch: pytest.MonkeyPatch, world: World, change: Change) -> None:
    patch.setattr(View, "may_send", lambda self, now: True)
    patch.setattr(View, "holds", lambda self, now: True)
    patch.setattr(View, "is_young", lambda self, now: self.requested_at.until(now) < 60)


MUTANTS = {
    "no wait for the long lease": skip_lease("closing"),
    "no wait for the short lease before the drain": skip_lease("frozen"),
    "no wait for a lease after the turn": skip_lease("turned"),
    "no drain": skip_drain,
    "no freeze": skip_freeze,
    "routers trust old views, and do not check afterwards": trust_old_views,
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
            # Routers look at the control item as rarely as they may.
            patch.setattr(View, "is_young", View.may_send)
            MUTANTS[name](patch, world, change)
            world.run(act, writers=4, readers=4)
            try:
                world.check()
            except AssertionError:
                return
    pytest.fail("nothing was lost")
