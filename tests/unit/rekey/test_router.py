"""A router follows the control item, in virtual time."""

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


class World:
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
def world() -> World:
    return World()


def test_reads_and_writes_go_to_the_table_that_serves(world: World) -> None:
    assert (world.read(), world.write()) == ("old", "old")
    world.set(serving="destination")
    world.run(lambda: world.clock.sleep(16))
    assert (world.read(), world.write()) == ("new", "new")


def test_the_name_of_the_new_table_is_refused_in_place_of_a_side_table() -> None:
    """Otherwise the error of its first call would be about a key without a value."""
    with pytest.raises(ValueError, match="'Orders' is not a side table"):
        Router("Orders", clients=())


def test_one_look_serves_a_quarter_of_the_lease(world: World) -> None:
    def use() -> None:
        for _ in range(75):
            world.write()
            world.clock.sleep(0.1)

    world.run(use)
    assert world.router.usage.counters["looks"] == 1


@pytest.mark.parametrize(("stage", "table"), [("frozen", "old"), ("fenced", "old")])
def test_reads_go_on_while_writes_are_frozen(world: World, stage, table) -> None:
    world.set(stage=stage)
    assert world.read() == table


def test_a_frozen_write_waits_and_goes_to_the_new_table(world: World) -> None:
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
    world = World(patience=5.0)  # raised to what a freeze may take
    world.set(stage="frozen", freeze_limit=60.0)
    world.side.swap = lambda old, new: False  # type: ignore[method-assign]
    with pytest.raises(WritesFrozen, match="nothing was written"):
        world.run(world.write)
    assert world.calls == []
    assert world.clock.time() - EPOCH == pytest.approx(63.0, abs=1.2)


def test_a_read_that_outlives_a_cutover_is_made_again(world: World) -> None:
    """Its result may be older than what others have written to the new table since then."""

    def cut_over() -> None:
        world.clock.sleep(20)
        for stage in ("closing", "frozen", "fenced"):
            world.set(stage=stage)
        world.set(stage="turned", serving="destination")
        world.set(stage="open")

    assert world.run(lambda: world.read(31), cut_over)[0] == "new"
    assert world.calls[0] == ("read", "old")


def test_a_read_that_outlives_the_lease_counts_if_nothing_has_turned(world: World) -> None:
    world.run(lambda: world.read(31))
    assert world.calls == [("read", "old")]


def test_the_router_calls_off_a_freeze_that_nobody_ends(world: World) -> None:
    world.set(stage="frozen")
    started = world.clock.time()
    assert world.run(world.write) == ["old"]
    assert world.side.item.stage == "open"
    assert world.router.usage.counters["called_off"] == 1
    assert world.clock.time() - started <= 13.0  # freeze_limit + 3 s


def test_routers_that_call_off_together_do_it_once(world: World) -> None:
    others = [Router(world.side, clients=(), clock=world.clock) for _ in range(5)]
    world.set(stage="frozen")
    revision = world.side.item.revision
    writes = [
        lambda router=router: router.write(old=lambda: "old", new=lambda: "new")
        for router in others
    ]
    assert world.run(*writes) == ["old"] * 5
    assert world.side.item.revision == revision + 1


def test_a_change_that_stays_turned_is_opened_by_the_router(world: World) -> None:
    world.set(stage="turned", serving="destination")
    assert world.run(world.write) == ["new"]
    assert world.side.item.stage == "open"


def test_reads_work_if_the_control_item_cannot_be_swapped(world: World) -> None:
    world.set(stage="frozen")

    def refuse(request: str) -> None:
        if request in ("swap", "report_client"):
            raise Unreachable("no")

    world.side.before = refuse
    with pytest.raises(WritesFrozen):
        world.run(world.write)
    assert world.read() == "old"


def test_a_write_that_outlives_the_lease_counts_if_nothing_has_changed(world: World) -> None:
    assert world.run(lambda: world.write(seconds=100)) == ["old"]


def test_a_write_that_outlives_a_cutover_is_not_acknowledged(world: World) -> None:
    def cut_over() -> None:
        world.clock.sleep(40)
        for _ in range(4):
            world.set(serving="destination")

    with pytest.raises(WriteUncertain):
        world.run(lambda: world.write(seconds=100), cut_over)


def test_a_write_that_outlives_the_start_of_a_freeze_is_not_acknowledged(world: World) -> None:
    def freeze() -> None:
        world.clock.sleep(40)
        world.set(stage="frozen")

    with pytest.raises(WriteUncertain):
        world.run(lambda: world.write(seconds=42), freeze)


class ApplicationError(Exception):
    """An error of the application's function, such as a failed condition or a missing item."""


def late(world: World, turns: bool):
    """Return a function that raises after the lease, and one that changes the table before."""

    def fail() -> str:
        world.clock.sleep(100)
        raise ApplicationError

    def cut_over() -> None:
        world.clock.sleep(40)
        for _ in range(4 if turns else 0):
            world.set(serving="destination")

    return fail, cut_over


def test_an_error_of_a_write_that_outlives_a_cutover_is_not_passed_on(world: World) -> None:
    fail, cut_over = late(world, turns=True)
    with pytest.raises(WriteUncertain):
        world.run(lambda: world.router.write(old=fail, new=lambda: "new"), cut_over)


def test_a_read_that_raises_after_a_cutover_is_made_again(world: World) -> None:
    fail, cut_over = late(world, turns=True)
    answers = world.run(lambda: world.router.read(old=fail, new=lambda: "new"), cut_over)
    assert answers == ["new", None]


@pytest.mark.parametrize("kind", ["read", "write"])
def test_a_late_error_is_passed_on_if_nothing_has_turned(world: World, kind: str) -> None:
    fail, nothing = late(world, turns=False)
    with pytest.raises(ApplicationError):
        world.run(lambda: getattr(world.router, kind)(old=fail, new=lambda: "new"), nothing)


def test_a_look_that_fails_matters_only_when_the_view_has_ended(world: World) -> None:
    assert world.write() == "old"

    def refuse(request: str) -> None:
        raise Unreachable("no")

    world.side.before = refuse
    world.run(lambda: world.clock.sleep(14))
    assert world.write() == "old"
    world.run(lambda: world.clock.sleep(2))
    with pytest.raises(Unreachable):
        world.write()


def test_threads_share_one_look(world: World) -> None:
    world.side.before = lambda request: world.clock.sleep(0.5)
    assert world.run(*[world.read] * 8) == ["old"] * 8
    assert world.router.usage.counters["looks"] == 1


def test_a_jump_of_the_wall_clock_ends_the_view(world: World) -> None:
    world.write()
    world.set(serving="destination")
    thawed = world.clock.time() + 3_600
    world.clock.time = lambda: thawed  # type: ignore[method-assign]
    assert world.write() == "new"


def test_a_router_reports_once_per_revision_and_before_its_report_expires(world: World) -> None:
    world.write()
    (report,) = world.side.reports.values()
    assert report["revision"] == 0
    assert report["until"] > world.clock.time() + 30
    world.set(stage="closing")
    world.run(lambda: world.clock.sleep(16))
    world.write()
    assert next(iter(world.side.reports.values()))["revision"] == 1


def test_a_write_counts_as_unbroken_only_if_no_two_turns_fit_into_it() -> None:
    """Check all sequences of changes that begin with a stage that takes writes."""
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


def test_a_read_counts_as_unbroken_only_if_no_turn_fits_into_it() -> None:
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


def test_the_router_reports_the_result_of_shadow_reads(world: World) -> None:
    """`keyhop rekey shadow` shows this result."""
    world.set(shadow=1.0)

    def use() -> None:
        for _ in range(200):
            world.read()
            world.clock.sleep(0.5)

    world.run(use)
    (report,) = world.side.reports.values()
    assert report["shadow_real"] > 0, "the two tables differ permanently"
