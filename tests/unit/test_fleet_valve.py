"""Check a rate over a fleet while the map of Step Functions changes or does not answer.

The library's code runs with a store, a Step Functions and a clock of the test, without threads.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Any

import pytest
from botocore.exceptions import ClientError
from keyhop.errors import GaveUp, StoreUnavailable
from keyhop.jobs.fleet_rate import SLOT_SECONDS, TURN_SECONDS, FleetRate, MapLevels
from keyhop.storage.store import Memory

from testing.marks import prove

FOREVER = 1e9
RATE = 1_000.0
BEGAN = 1_000_003.0
ANSWER_SECONDS = 0.1
"""The seconds until others can read a write to S3."""


@dataclass
class Bucket:
    """A token bucket of `size`, which `refill` tokens a second refill."""

    size: float
    refill: float
    tokens: float = field(init=False)
    filled_at: float = BEGAN

    def __post_init__(self) -> None:
        self.tokens = self.size

    def take(self, now: float) -> bool:
        self.tokens = min(self.size, self.tokens + self.refill * (now - self.filled_at))
        self.filled_at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class World:
    """A fleet under one map whose limit changes, and the sum of the workers' rates.

    Attributes:
        limit: The maximum concurrency of the map, or 0 for none.
        children: The number of the map's child executions.
        dumb: Step Functions throttles each request.
        broken: S3 throttles each request.
    """

    def __init__(self, limit: int, children: int = 1_000) -> None:
        self.limit = limit
        self.children = children
        self.now = BEGAN
        self.shares: dict[int, float] = {}
        self.total = 0.0
        self.running: dict[int, FleetRate] = {}
        self.dumb = self.broken = False
        self.asked_at: list[float] = []
        self.chance = random.Random(7)
        self.store = SlowStore(self)
        # Step Functions' quotas of API actions, of an account and a region (AWS documentation,
        # "Quotas related to API action throttling"), and S3's for a prefix ("Best practices design
        # patterns: optimizing Amazon S3 performance").
        self.quotas = {
            "ListMapRuns": Bucket(100, 1),
            "DescribeMapRun": Bucket(200, 1),
            "put": Bucket(3_500, 3_500),
            "get": Bucket(5_500, 5_500),
        }
        self.calls: Counter[str] = Counter()
        self.throttles: Counter[str] = Counter()
        self.map_run = "map-run-1"
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def list_map_runs(self, executionArn: str) -> dict[str, Any]:  # noqa: N803
        self._take("ListMapRuns")
        runs = [{"mapRunArn": f"map-run-{n}", "startDate": n} for n in (1, 2)]
        return {"mapRuns": [run for run in runs if run["mapRunArn"] <= self.map_run]}

    def describe_map_run(self, mapRunArn: str) -> dict[str, Any]:  # noqa: N803
        self.asked_at.append(self.now)
        self._take("DescribeMapRun")
        running = len(self.running)
        if mapRunArn != self.map_run:
            counts = {"running": 0, "pending": 0}
            return {"status": "FAILED", "maxConcurrency": 1, "executionCounts": counts}
        counts = {"running": running, "pending": self.children - running}
        return {"status": "RUNNING", "maxConcurrency": self.limit, "executionCounts": counts}

    def _take(self, action: str) -> None:
        self.calls[action] += 1
        if self.dumb or not self.quotas[action].take(self.now):
            self.throttles[action] += 1
            raise ClientError({"Error": {"Code": "ThrottlingException"}}, action)

    def use_store(self, action: str) -> None:
        self.calls[action] += 1
        if self.broken or not self.quotas[action].take(self.now):
            self.throttles[action] += 1
            raise StoreUnavailable("S3")

    def worker(self, name: int) -> FleetRate:
        def limit(share: float) -> None:
            self.total += share * RATE - self.shares.get(name, 0.0)
            self.shares[name] = share * RATE
            assert self.total <= RATE * 1.000001

        def wait(seconds: float) -> None:
            self.pass_time(seconds)

        levels = MapLevels("an-execution", "a-map", self.store, self)
        rate = FleetRate(levels, limit, wait, lambda: self.now, self.chance)
        self.running[name] = rate
        return rate

    def begin(self, name: int, until: float = FOREVER) -> bool:
        """Start a worker that waits if it must, and return if it may read."""
        rate = self.worker(name)
        opened = rate.open(until)
        if opened:
            self._look(name)
        return opened

    def begin_later(self, name: int, at: float, until: float) -> None:
        """Start a worker at a time, concurrently with others."""

        def start() -> None:
            rate = self.worker(name)
            waits = rate.opening()

            def go_on() -> None:
                if name not in self.running:
                    return
                for seconds, _ in waits:
                    assert self.now + seconds < until, "it gave up"
                    self.at(self.now + seconds, go_on)
                    return
                self._look(name)

            go_on()

        self.at(at, start)

    def _look(self, name: int) -> None:
        if name in self.shares:
            rate = self.running[name]
            rate.tick()
            self.at(max(self.now + 0.1, rate._next_at), lambda: self._look(name))

    def at(self, moment: float, what: Callable[[], None]) -> None:
        heappush(self._events, (moment, next(self._numbers), what))

    def end(self, name: int) -> None:
        del self.running[name]
        self.total -= self.shares.pop(name, 0.0)

    def pass_time(self, seconds: float) -> None:
        end = self.now + seconds
        while self._events and self._events[0][0] <= end:
            moment, _, what = heappop(self._events)
            self.now = max(self.now, moment)
            what()
        self.now = max(self.now, end)


class SlowStore(Memory):
    """A store like S3 here: reads see a new file late, and a second creation sees it at once."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.versions: dict[str, list[tuple[float, bytes]]] = {}

    def create(self, name: str, content: bytes) -> bool:
        self.world.use_store("put")
        created = super().create(name, content)
        if created:
            self._show(name, content)
        return created

    def replace(self, name: str, content: bytes) -> None:
        self.world.use_store("put")
        super().replace(name, content)
        self._show(name, content)

    def read(self, name: str) -> bytes | None:
        self.world.use_store("get")
        latest = None
        for since, content in self.versions.get(name, ()):
            if since <= self.world.now:
                latest = content
        return latest

    def _show(self, name: str, content: bytes) -> None:
        self.versions.setdefault(name, []).append((self.world.now + ANSWER_SECONDS, content))


def test_the_first_of_a_fleet_begins_at_once_and_all_within_two_turns() -> None:
    world = World(limit=8)
    assert world.begin(0)
    assert world.now == BEGAN
    for name in range(1, 8):
        world.begin_later(name, BEGAN, FOREVER)
    world.pass_time(3 * TURN_SECONDS)
    assert world.total == pytest.approx(RATE)


@pytest.mark.parametrize(
    ("workers", "at_once"),
    [
        (10, True),
        (10, False),
        (1_000, True),
        (1_000, False),
        prove(10_000, True),
        prove(10_000, False),
    ],
)
def test_a_fleet_of_any_size_begins_soon(workers: int, at_once: bool) -> None:
    """Workers begin all at once or a hundred a second, and none gives up.

    When each one asked Step Functions, 200 workers took 101 s, and of 1,000 and 3,000 workers 61
    and 2,061 gave up in 900 s.
    """
    world = World(limit=workers, children=workers)
    for name in range(workers):
        began = BEGAN + (0.0 if at_once else name / 100)
        world.begin_later(name, began, until=began + 600.0)
    last_start = 0.0 if at_once else workers / 100
    seconds = 12.0 if workers > 1_000 else 8.0
    world.pass_time(last_start + seconds)
    assert len(world.shares) == workers
    assert world.calls["ListMapRuns"] <= 2
    assert world.calls["DescribeMapRun"] <= (last_start + seconds) / TURN_SECONDS + 5
    world.pass_time(3 * SLOT_SECONDS)
    assert world.total == pytest.approx(RATE)
    assert world.throttles["DescribeMapRun"] == world.throttles["ListMapRuns"] == 0


def test_a_worker_waits_while_step_functions_throttles_it() -> None:
    """Others in the account have used up the quotas, and take most of the refill."""
    world = World(limit=200)
    for action in ("ListMapRuns", "DescribeMapRun"):
        world.quotas[action].tokens = 0.0
        world.quotas[action].refill = 0.1
    for name in range(200):
        world.begin_later(name, BEGAN + name / 100, until=BEGAN + 600.0)
    world.pass_time(60.0)
    assert len(world.shares) == 200
    assert world.throttles["ListMapRuns"] > 0
    for _ in range(20):
        world.pass_time(SLOT_SECONDS)
        assert world.total == pytest.approx(RATE)


def test_a_worker_that_dies_while_it_asks_is_replaced_in_the_next_turn() -> None:
    world = World(limit=4)
    dead = world.worker(0)
    turn = int(world.now // TURN_SECONDS)
    assert dead.levels.claim(turn)
    del world.running[0]
    assert world.begin(1)
    assert world.now - BEGAN <= 2 * TURN_SECONDS
    assert world.total == RATE / 4


@pytest.mark.parametrize("limits", [[2, 8], [2, 10, 2, 10], [10, 200, 400], [5, 1, 5, 20, 3, 40]])
@pytest.mark.parametrize("outage", [False, True])
def test_the_sum_of_shares_never_exceeds_the_rate(limits: list[int], outage: bool) -> None:
    """Step Functions may not answer around a change, so notes are stale."""
    world = World(limit=limits[0])
    names = count()
    for limit in limits:
        if outage:
            world.dumb = True
            world.pass_time(world.chance.uniform(0, 45))
        world.limit = limit
        while len(world.running) > limit:
            world.end(next(iter(world.running)))
            world.pass_time(3.0)
        while len(world.running) < limit:
            world.begin_later(next(names), world.now, FOREVER)
            world.pass_time(world.chance.choice((0.0, 0.5)))
        world.pass_time(world.chance.uniform(0, 15))
        world.dumb = False
        world.pass_time(world.chance.uniform(0, 45))
    world.pass_time(4 * SLOT_SECONDS)
    assert len(world.shares) == limits[-1]
    assert world.total == pytest.approx(RATE)


def test_a_change_while_a_worker_begins() -> None:
    for offset in range(40):
        world = World(limit=2)
        world.begin(0)
        world.begin(1)
        world.pass_time(offset / 2)
        world.limit = 6
        for name in range(2, 6):
            assert world.begin(name)
        world.pass_time(30)
        assert world.total == pytest.approx(RATE)


def test_no_limit_counts_all_workers_that_may_still_begin() -> None:
    world = World(limit=2, children=40)
    world.begin(0)
    world.begin(1)
    world.limit = 0
    for name in range(2, 40):
        assert world.begin(name)
        world.pass_time(2.0)
    world.pass_time(20)
    assert world.total == pytest.approx(RATE)


def test_a_higher_limit_is_awaited_for_two_slots_and_only_once() -> None:
    world = World(limit=2)
    world.begin(0)
    world.limit = 10_000
    began = world.now
    world.begin(1)
    assert world.now - began <= 2 * SLOT_SECONDS + 3 * TURN_SECONDS
    world.pass_time(TURN_SECONDS)
    began = world.now
    world.begin(2)
    assert world.now == began


def test_a_fleet_asks_step_functions_about_once_a_slot() -> None:
    """DescribeMapRun serves about one request a second, for up to ten thousand workers."""
    world = World(limit=300)
    for name in range(300):
        world.begin_later(name, world.now, FOREVER)
    world.pass_time(20)
    world.asked_at.clear()
    world.pass_time(100)
    assert 9 <= len(world.asked_at) <= 11
    assert world.calls["ListMapRuns"] <= 2


def test_a_map_that_is_retried_is_found() -> None:
    """The retry is another map run of the same execution, and the notes name the first one."""
    world = World(limit=4)
    world.begin(0)
    world.end(0)
    world.map_run, world.limit = "map-run-2", 5
    world.pass_time(4 * SLOT_SECONDS)
    assert world.begin(1)
    world.pass_time(SLOT_SECONDS)
    assert world.total == RATE / 5


def test_a_wait_longer_than_the_functions_time_is_handed_back() -> None:
    world = World(limit=2)
    world.begin(0)
    world.limit = 8
    world.pass_time(TURN_SECONDS)
    began = world.now
    assert not world.begin(1, until=world.now + 3.0)
    assert world.now == began + 3.0
    assert 1 not in world.shares


def test_a_worker_without_time_to_wait_hands_back() -> None:
    """Another worker has just asked, so Step Functions is available."""
    world = World(limit=2)
    world.begin(0)
    world.pass_time(0.5)
    assert not world.begin(1, until=world.now + 0.5)
    assert 1 not in world.shares


def test_a_worker_without_an_answer_reads_nothing_and_reports_why() -> None:
    world = World(limit=4)
    world.dumb = True
    with pytest.raises(GaveUp, match="did not report how many workers share maxReadRate"):
        world.begin(0, until=world.now + 60.0)
    assert world.shares == {}


def test_a_worker_lowers_its_rate_while_it_gets_no_answer() -> None:
    world = World(limit=2)
    world.begin(0)
    world.begin(1)
    world.dumb = True
    world.pass_time(3 * SLOT_SECONDS)
    assert world.total <= RATE / 4
    world.pass_time(1_000)
    assert world.total > RATE / 100
    world.dumb = False
    world.pass_time(2 * SLOT_SECONDS)
    assert world.total == pytest.approx(RATE)


def test_unreadable_notes_count_as_no_answer() -> None:
    world = World(limit=2)
    world.begin(0)
    world.broken = True
    world.pass_time(2 * SLOT_SECONDS)
    assert world.total <= RATE / 4
    world.broken = False
    world.pass_time(2 * SLOT_SECONDS)
    assert world.total == RATE / 2
