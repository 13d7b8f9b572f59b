"""What a router does by the control item, in virtual time."""

import random
import subprocess
import sys
from dataclasses import replace

import pytest
from keyhop.errors import Unreachable, WritesFrozen, WriteUncertain
from keyhop.rekey import Router
from keyhop.rekey.control import Control
from keyhop.rekey.routing.follower import (
    LEAST_CHANGES_OF_TWO_TURNS,
    held_for_reads,
    held_for_writes,
)

from testing.rekey_side import SideInMemory
from testing.virtual_time import EPOCH, VirtualClock


class Fixture:
    def __init__(self, **more) -> None:
        self.clock = VirtualClock()
        self.side = SideInMemory()
        self.router = Router(
            self.side, clients=(), clock=self.clock, chance=random.Random(1), **more
        )
        self.calls: list[tuple[str, str]] = []

    def way(self, kind: str, table: str, seconds: float = 0.0):
        def go() -> str:
            self.calls.append((kind, table))
            self.clock.sleep(seconds)
            return table

        return go

    def write(self, seconds: float = 0.0) -> str:
        return self.router.write(
            old=self.way("write", "old", seconds), new=self.way("write", "new", seconds)
        )

    def read(self, seconds: float = 0.0) -> str:
        return self.router.read(
            old=self.way("read", "old", seconds), new=self.way("read", "new", seconds)
        )

    def set(self, **fields) -> None:
        item = self.side.item
        self.side.item = replace(item, revision=item.revision + 1, **fields)

    def run(self, *functions):
        return self.clock.run(functions)


@pytest.fixture
def world() -> Fixture:
    return Fixture()


def test_reads_and_writes_go_to_the_table_that_serves(world: Fixture) -> None:
    assert (world.read(), world.write()) == ("old", "old")
    world.set(serving="destination")
    world.run(lambda: world.clock.sleep(16))
    assert (world.read(), world.write()) == ("new", "new")


def test_the_new_table_s_own_name_is_told_to_be_no_side_table() -> None:
    """Else its first call would say that some key was not given a value."""
    with pytest.raises(ValueError, match="'Orders' is not a side table"):
        Router("Orders", clients=())


def test_one_look_serves_a_quarter_of_the_lease(world: Fixture) -> None:
    def use() -> None:
        for _ in range(75):
            world.write()
            world.clock.sleep(0.1)

    world.run(use)
    assert world.router.usage.counters["looks"] == 1


@pytest.mark.parametrize(("stage", "table"), [("frozen", "old"), ("fenced", "old")])
def test_reads_go_on_while_writes_are_frozen(world: Fixture, stage, table) -> None:
    world.set(stage=stage)
    assert world.read() == table


def test_a_frozen_write_waits_and_goes_to_the_new_table(world: Fixture) -> None:
    world.set(stage="frozen")

    def cut_over() -> None:
        world.clock.sleep(3)
        world.set(stage="turned", serving="destination")
        world.clock.sleep(2)
        world.set(stage="open")

    written, _ = world.run(world.write, cut_over)
    assert written == "new"
    assert world.calls == [("write", "new")]


def test_a_write_gives_up_at_its_time_out_and_says_that_nothing_was_written() -> None:
    world = Fixture(patience=5.0)  # raised to what a freeze may take
    world.set(stage="frozen", freeze_limit=60.0)
    world.side.swap = lambda old, new: False  # type: ignore[method-assign]
    with pytest.raises(WritesFrozen, match="nothing was written"):
        world.run(world.write)
    assert world.calls == []
    assert world.clock.time() - EPOCH == pytest.approx(63.0, abs=1.2)


def test_a_read_that_outlives_a_cutover_is_made_again(world: Fixture) -> None:
    """What it has returned may be older than what others have written to the new table since."""

    def cut_over() -> None:
        world.clock.sleep(20)
        for stage in ("closing", "frozen", "fenced"):
            world.set(stage=stage)
        world.set(stage="turned", serving="destination")
        world.set(stage="open")

    assert world.run(lambda: world.read(31), cut_over)[0] == "new"
    assert world.calls[0] == ("read", "old")


def test_a_read_that_outlives_the_lease_counts_if_nothing_has_turned(world: Fixture) -> None:
    world.run(lambda: world.read(31))
    assert world.calls == [("read", "old")]


def test_a_freeze_that_nobody_ends_is_called_off_by_the_router(world: Fixture) -> None:
    world.set(stage="frozen")
    began = world.clock.time()
    assert world.run(world.write) == ["old"]
    assert world.side.item.stage == "open"
    assert world.router.usage.counters["called_off"] == 1
    assert world.clock.time() - began <= 13.0  # freeze_limit + 3 s


def test_routers_that_call_off_together_do_it_once(world: Fixture) -> None:
    others = [Router(world.side, clients=(), clock=world.clock) for _ in range(5)]
    world.set(stage="frozen")
    revision = world.side.item.revision
    writes = [
        lambda router=router: router.write(old=lambda: "old", new=lambda: "new")
        for router in others
    ]
    assert world.run(*writes) == ["old"] * 5
    assert world.side.item.revision == revision + 1


def test_a_change_that_stays_turned_is_opened_by_the_router(world: Fixture) -> None:
    world.set(stage="turned", serving="destination")
    assert world.run(world.write) == ["new"]
    assert world.side.item.stage == "open"


def test_what_may_not_be_swapped_does_not_keep_from_reading(world: Fixture) -> None:
    world.set(stage="frozen")

    def refuse(request: str) -> None:
        if request in ("swap", "report_client"):
            raise Unreachable("no")

    world.side.before = refuse
    with pytest.raises(WritesFrozen):
        world.run(world.write)
    assert world.read() == "old"


def test_a_write_that_outlives_the_lease_counts_if_nothing_has_changed(world: Fixture) -> None:
    assert world.run(lambda: world.write(seconds=100)) == ["old"]


def test_a_write_that_outlives_a_cutover_is_not_acknowledged(world: Fixture) -> None:
    def cut_over() -> None:
        world.clock.sleep(40)
        for _ in range(4):
            world.set(serving="destination")

    with pytest.raises(WriteUncertain):
        world.run(lambda: world.write(seconds=100), cut_over)


def test_a_write_that_outlives_a_freeze_is_not_acknowledged_meanwhile(world: Fixture) -> None:
    def freeze() -> None:
        world.clock.sleep(40)
        world.set(stage="frozen")

    with pytest.raises(WriteUncertain):
        world.run(lambda: world.write(seconds=42), freeze)


class OfTheirs(Exception):
    """As of a condition that has failed, or of an item that was not there."""


def late(world: Fixture, turns: bool):
    """One who answers by it after the lease; and meanwhile another table serves, if it turns."""

    def fail() -> str:
        world.clock.sleep(100)
        raise OfTheirs

    def cut_over() -> None:
        world.clock.sleep(40)
        for _ in range(4 if turns else 0):
            world.set(serving="destination")

    return fail, cut_over


def test_what_a_write_raises_too_late_is_not_passed_on_as_what_the_table_says(
    world: Fixture,
) -> None:
    fail, cut_over = late(world, turns=True)
    with pytest.raises(WriteUncertain):
        world.run(lambda: world.router.write(old=fail, new=lambda: "new"), cut_over)


def test_a_read_that_raises_after_a_cutover_is_made_again(world: Fixture) -> None:
    fail, cut_over = late(world, turns=True)
    answers = world.run(lambda: world.router.read(old=fail, new=lambda: "new"), cut_over)
    assert answers == ["new", None]


@pytest.mark.parametrize("kind", ["read", "write"])
def test_what_is_raised_late_goes_through_if_nothing_has_turned(world: Fixture, kind: str) -> None:
    fail, nothing = late(world, turns=False)
    with pytest.raises(OfTheirs):
        world.run(lambda: getattr(world.router, kind)(old=fail, new=lambda: "new"), nothing)


def test_a_look_that_fails_matters_only_when_the_view_has_ended(world: Fixture) -> None:
    assert world.write() == "old"

    def refuse(request: str) -> None:
        raise Unreachable("no")

    world.side.before = refuse
    world.run(lambda: world.clock.sleep(14))
    assert world.write() == "old"
    world.run(lambda: world.clock.sleep(2))
    with pytest.raises(Unreachable):
        world.write()


def test_threads_share_one_look(world: Fixture) -> None:
    world.side.before = lambda request: world.clock.sleep(0.5)
    assert world.run(*[world.read] * 8) == ["old"] * 8
    assert world.router.usage.counters["looks"] == 1


def test_a_wall_clock_that_jumps_as_after_a_freeze_ends_the_view(world: Fixture) -> None:
    world.write()
    world.set(serving="destination")
    thawed = world.clock.time() + 3_600
    world.clock.time = lambda: thawed  # type: ignore[method-assign]
    assert world.write() == "new"


def test_each_router_reports_itself_once_a_revision_and_again_in_time(world: Fixture) -> None:
    world.write()
    (told,) = world.side.reports.values()
    assert told["revision"] == 0
    assert told["until"] > world.clock.time() + 30
    world.set(stage="closing")
    world.run(lambda: world.clock.sleep(16))
    world.write()
    assert next(iter(world.side.reports.values()))["revision"] == 1


def test_writes_are_taken_for_unbroken_only_if_no_two_turns_fit_between() -> None:
    """By all sequences of changes from where writes are taken."""
    fewest = 99
    todo = {(Control(), 0)} | {(Control().closed(), 0)}
    for length in range(1, 12):
        after = set()
        for control, turns in todo:
            for step in ("closed", "froze", "fenced", "turned", "opened", "aborted"):
                if not hasattr(control, step):
                    continue
                try:
                    then = getattr(control, step)()
                except ValueError:
                    continue
                after.add((then, turns + (step == "turned")))
        todo = after
        if any(turns >= 2 and control.takes_writes for control, turns in todo):
            fewest = min(fewest, length)
    assert fewest >= LEAST_CHANGES_OF_TWO_TURNS
    assert held_for_writes(Control(), Control().closed().aborted())
    assert not held_for_writes(Control(), Control(serving="destination", revision=4))


def test_reads_are_taken_for_unbroken_only_if_no_two_turns_fit_between() -> None:
    before = Control().closed().froze().fenced()
    assert held_for_reads(before, before.aborted().closed().froze())
    assert not held_for_reads(before, before.turned())
    after = before.turned().opened().closed().froze().fenced().turned()
    assert after.serving == before.serving
    assert not held_for_reads(before, after)


def test_the_router_needs_neither_click_nor_rich_and_pure_modules_need_no_aws() -> None:
    code = (
        "import sys, keyhop.rekey.control\n"
        "assert 'botocore' not in sys.modules\n"
        "from keyhop.rekey import Router\n"
        "assert not {'click', 'rich', 'boto3'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_shadow_reads_have_come_to_is_told_with_the_lease(world: Fixture) -> None:
    """`keyhop rekey shadow` goes by it."""
    world.set(shadow=1.0)

    def use() -> None:
        for _ in range(200):
            world.read()
            world.clock.sleep(0.5)

    world.run(use)
    (told,) = world.side.reports.values()
    assert told["shadow_real"] > 0, "the two tables differ for good"
