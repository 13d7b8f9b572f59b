"""Check several processes on one machine: how they share limits, and what follows a death."""

import errno
from collections import namedtuple
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Link
from pathlib import Path

import pytest
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.tables import Source
from keyhop.dynamodb.usage import Usage
from keyhop.errors import BudgetSpent, GaveUp, NotPermitted
from keyhop.jobs.journal import Checkpoint, Commit, Journal, RunPlan, usage_json
from keyhop.jobs.layout import most_processes
from keyhop.jobs.processes import MOST_DEATHS, GroupProcesses
from keyhop.scan.reader import PageReader
from keyhop.storage.local import Directory

SPACE = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "S"))
SOURCE = Source("Orders", None, "", "id", SPACE, 0, 0)
SEGMENTS = 100

Assigned = namedtuple("Assigned", "path endpoint group threads patience max_read_rate may_read")
"""The first message to a process."""


def test_there_are_no_more_processes_than_the_limits_keep_busy() -> None:
    assert most_processes(2, None, None) == 2
    assert most_processes(64, None, None) == 7
    assert most_processes(64, 40_000, None) == 22
    assert most_processes(16, 500, None) == 1
    assert most_processes(16, None, 1_000) == 1
    assert most_processes(1, None, None) == 1


@dataclass
class Child:
    """A process that the test controls."""

    link: Link
    descriptors: Sequence[int]
    status: int = 0
    is_killed: bool = False
    orders: list[object] = field(default_factory=list)

    def kill(self) -> None:
        self.is_killed = True

    def wait(self) -> int:
        return self.status

    def messages(self) -> list[object]:
        """Return all messages to the process; the first is its assignment."""
        while not self.link.closed and self.link.poll(0):
            self.orders.append(self.link.recv())
        return self.orders

    @property
    def assignment(self) -> Assigned:
        (first, *_) = self.messages()
        assert isinstance(first, tuple)
        return Assigned(*first)

    @property
    def rate(self) -> object:
        last = self.messages()[-1]
        return Assigned(*last).max_read_rate if isinstance(last, tuple) else last

    def news(self, keys: int = 0, units: float = 0.0, commits: int = 0) -> None:
        used = usage_json(Usage(requests=int(2 * units), read_units=units))
        self.link.send((keys, 0, 3, commits, used))

    def end(self, error: Exception | None = None) -> None:
        self.link.send(error)
        self.link.close()

    def die(self, status: int = -9) -> None:
        self.status = status
        self.link.close()


class Run:
    """A run with some groups. The test plays its processes, moment by moment."""

    def __init__(self, path: Path, groups: int, at_once: int | None = None, **limits: float):
        self.journal = Journal(Directory(path))
        self.plan = RunPlan(
            "id", "Orders", None, "id", SPACE, "skip", "", SEGMENTS, groups, "text", "now"
        )
        connection = Connection(None, Endpoint())  # type: ignore[arg-type]
        budget = Budget(limits.get("max_rate"), limits.get("max_units"))
        self.reader = PageReader(connection, SOURCE, budget)
        self.children: list[Child] = []
        self.said: list[str] = []
        self.committed: list[tuple[int, int]] = []
        self.processes = GroupProcesses(
            self.journal, self.plan, self.reader, self.start, at_once or groups, each=4
        )
        self.now = 0.0
        self.processes.clock = lambda: self.now
        self.processes.last_seconds = 0.3
        self.processes.say = self.said.append
        self.processes.committed = lambda c: self.committed.append((c.group, c.slice))

    def start(self, link: Link, descriptors: Sequence[int]) -> Child:
        self.children.append(Child(link, descriptors))
        return self.children[-1]

    def commit(self, group: int, number: int = 0, finished: bool = True) -> None:
        ended = self.plan.group_size(group) if finished else 0
        checkpoint = Checkpoint(ended)
        record = Commit(group, number, "a", (), ended, Usage(), 1.0, checkpoint, finished)
        assert self.journal.commit(record)

    def work(self, *moments: Callable[[], object]) -> bool:
        """Run, and call each of `moments` one tick after the other."""
        calls = iter((*moments, *[nothing] * 20))

        def idle() -> None:
            self.now += 0.1
            next(calls, lambda: pytest.fail("nothing ends this run"))()

        self.processes.idle = idle
        return self.processes.run()

    def finish(self, child: Child) -> None:
        self.commit(child.assignment.group)
        child.end()


def nothing() -> None:
    """Let a moment pass."""


def test_each_group_runs_once_and_a_few_at_a_time(tmp_path: Path) -> None:
    run = Run(tmp_path, groups=5, at_once=2)

    def all_end() -> None:
        assert len(run.children) - len(run.committed) <= 2
        for child in run.children:
            if not child.link.closed:
                run.finish(child)

    assert run.work(*[all_end] * 6)
    assert [child.assignment.group for child in run.children] == [0, 1, 2, 3, 4]
    assert sorted(run.committed) == [(group, 0) for group in range(5)]
    assert run.processes.ended == SEGMENTS


def test_finished_groups_are_not_started_again(tmp_path: Path) -> None:
    Run(tmp_path, groups=3).commit(1, finished=False)
    Run(tmp_path, groups=3).commit(2)
    run = Run(tmp_path, groups=3)

    def end() -> None:
        assert [child.assignment.group for child in run.children] == [0, 1]
        run.commit(0)
        run.commit(1, 1)
        for child in run.children:
            child.end()

    assert run.work(end)
    assert sorted(run.committed) == [(0, 0), (1, 1)]


def test_the_rate_is_shared_again_when_a_process_ends(tmp_path: Path) -> None:
    run = Run(tmp_path, groups=4, max_rate=120.0)

    def rates() -> list[object]:
        return [child.rate for child in run.children if not child.link.closed]

    assert run.work(
        lambda: (rates() == [30.0] * 4 or pytest.fail(str(rates())), run.finish(run.children[0])),
        nothing,
        lambda: (rates() == [40.0] * 3 or pytest.fail(str(rates())), run.finish(run.children[2])),
        nothing,
        lambda: rates() == [60.0] * 2 or pytest.fail(str(rates())),
        lambda: [run.finish(run.children[n]) for n in (1, 3)],
    )


def test_unused_units_go_to_the_other_processes_before_the_run_ends(tmp_path: Path) -> None:
    run = Run(tmp_path, groups=2, max_units=100.0)
    error = BudgetSpent("Of 50 read units ...")

    def one_is_cheap() -> None:
        cheap, expensive = run.children
        assert (cheap.assignment.may_read, expensive.assignment.may_read) == (50.0, 50.0)
        cheap.news(units=10.0)
        expensive.news(units=49.0)
        run.finish(cheap)
        expensive.end(error)

    def more() -> None:
        successor = run.children[2]
        assert (successor.assignment.group, successor.assignment.may_read) == (1, 41.0)
        successor.news(units=40.5)
        successor.end(error)

    def stuck() -> None:
        assert run.children[3].assignment.may_read == 0.5
        run.children[3].end(error)

    with pytest.raises(BudgetSpent, match=r"^Of 100 read units 99.5 are spent, and the next page"):
        run.work(one_is_cheap, nothing, nothing, more, nothing, nothing, stuck)


def test_units_and_keys_of_the_processes_count_in_the_parent(tmp_path: Path) -> None:
    """The progress, the report and the check at the end need these numbers."""
    run = Run(tmp_path, groups=2, max_units=1_000.0, max_rate=1e6)

    def read() -> None:
        run.children[0].news(keys=7, units=20.0)
        run.children[0].news(keys=9, units=2.5)
        run.children[1].news(keys=30, units=10.0)

    def check() -> None:
        assert run.processes.keys == 39
        assert (run.reader.usage.requests, run.reader.usage.read_units) == (65, 32.5)
        assert run.reader.budget.remaining == 967.5
        for child in run.children:
            run.commit(child.assignment.group)
            child.end()

    assert run.work(read, nothing, check)


def test_a_killed_process_is_replaced_by_one_with_the_rest_of_its_share(tmp_path: Path) -> None:
    run = Run(tmp_path, groups=2, max_units=100.0)

    def die() -> None:
        run.children[0].news(keys=5, units=20.0)
        run.children[0].die()

    def finish_all() -> None:
        assert run.children[2].assignment.group == 0
        assert run.children[2].assignment.may_read == 30.0
        assert run.processes.keys == 0
        for child in run.children[1:]:
            run.finish(child)

    assert run.work(die, nothing, nothing, finish_all)
    assert run.said == ["A process ended (signal 9): another one goes on from its last commit."]


def test_a_commit_that_was_not_reported_is_found(tmp_path: Path) -> None:
    run = Run(tmp_path, groups=2)

    def die() -> None:
        run.commit(0, finished=False)
        run.children[0].die()

    def finish_all() -> None:
        assert run.committed == [(0, 0)]
        run.commit(0, 1)
        run.children[2].end()
        run.finish(run.children[1])

    assert run.work(die, nothing, finish_all)


@pytest.mark.parametrize("commits", [False, True])
def test_repeated_deaths_end_the_run_unless_commits_are_made(tmp_path: Path, commits: bool) -> None:
    run = Run(tmp_path, groups=1)

    def die() -> None:
        if commits:
            run.commit(0, len(run.children) - 1, finished=False)
        run.children[-1].die()

    def end() -> None:
        run.commit(0, len(run.children) - 1)
        run.children[-1].end()

    deaths = [die, nothing] * (MOST_DEATHS + 1)
    if commits:
        assert run.work(*deaths, end)
    else:
        with pytest.raises(GaveUp, match=r"4 processes in a row ended \(signal 9\)"):
            run.work(*deaths)


def test_the_others_are_stopped_when_one_fails(tmp_path: Path) -> None:
    run = Run(tmp_path, groups=3)

    def others_end() -> None:
        for child in run.children[::2]:
            assert child.messages()[-1] is None
            child.end()

    with pytest.raises(NotPermitted, match="no scan"):
        run.work(lambda: run.children[1].end(NotPermitted("no scan")), nothing, others_end)
    assert len(run.children) == 3


def test_a_stop_ends_all_processes(tmp_path: Path) -> None:
    run = Run(tmp_path, groups=2)

    def one_ends() -> None:
        assert all(child.messages()[-1] is None for child in run.children)
        run.commit(0, finished=False)
        run.children[0].end()

    assert not run.work(run.reader.stop.set, nothing, one_ends)
    assert run.committed == [(0, 0)]
    assert all(child.is_killed for child in run.children)


def test_an_error_in_the_parent_kills_all_processes(tmp_path: Path) -> None:
    run = Run(tmp_path, groups=2)

    def closed() -> None:
        raise BrokenPipeError(errno.EPIPE, "output is closed")

    with pytest.raises(BrokenPipeError):
        run.work(closed)
    assert all(child.is_killed for child in run.children)


def test_a_process_inherits_the_lock(tmp_path: Path) -> None:
    store = Directory(tmp_path)
    store.lock()
    run = Run(tmp_path, groups=1)
    run.journal.store = store
    try:
        assert run.work(lambda: run.finish(run.children[0]))
        assert run.children[0].descriptors == store.locked_by != ()
    finally:
        store.unlock()
