"""A model of a process that reads a table, without threads: lanes, a CPU, a budget, a clock.

A lane waits for its turn in the budget, then uses `cpu` seconds of the one CPU. Its request takes
`latency` seconds, or longer if the table, which serves `serves` pages a second, has a queue.
A table that throttles has read units per second, and saves those of `burst` seconds.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import Any

from keyhop.dynamodb.rate_limit import Budget, Turn
from keyhop.scan.in_flight import InFlight

TICK_SECONDS = 0.05
FIRST_BACK_OFF = 0.05

Setting = Callable[[float], float]
"""A value that depends on the time."""


def always(value: float) -> Setting:
    return lambda now: value


def steps(*levels: tuple[float, float]) -> Setting:
    """Return a setting with these (begin, value) levels."""
    return lambda now: [value for begin, value in levels if begin <= now][-1]


@dataclass(eq=False)
class Model:
    """A process that reads a table.

    Attributes:
        latency, cpu: The seconds of a request, and of the CPU that it needs.
        serves: The pages per second of the table.
        gives: The read units per second of the table.
        units, item: The read units of a page, or, if the budget has less, a multiple of `item`.
        jitter: The share by which a request may take longer.
        answered, throttled: The times of answers and of throttled requests.
        read: The times of answers, with their read units.
        lanes: The times of ticks, with the number of lanes.
    """

    in_flight: InFlight
    latency: Setting
    cpu: Setting = field(default_factory=lambda: always(1e-6))
    serves: Setting = field(default_factory=lambda: always(1e9))
    gives: Setting = field(default_factory=lambda: always(1e9))
    budget: Budget = field(default_factory=Budget)
    units: float = 0.5
    item: float = 0.5
    burst: float = 1.0
    jitter: float = 0.2
    seed: int = 1
    answered: list[float] = field(default_factory=list)
    throttled: list[float] = field(default_factory=list)
    read: list[tuple[float, float]] = field(default_factory=list)
    lanes: list[tuple[float, int]] = field(default_factory=list)

    def run(self, until: float) -> "Model":
        self._chance = random.Random(self.seed)
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._numbers = count()
        self._running = 0
        self._cpu_free = self._table_free = 0.0
        self._tokens, self._tokens_at = self.burst * self.gives(0.0), 0.0
        self._cpu_used = 0.0
        self.in_flight.cpu = lambda: self._cpu_used
        self.in_flight.begin(0.0, self.in_flight.most)
        self._at(0.0, self._tick)
        while self._events and self._events[0][0] < until:
            now, _, function, arguments = heappop(self._events)
            function(now, *arguments)
        return self

    def pages_a_second(self, begin: float, end: float) -> float:
        return sum(begin <= moment < end for moment in self.answered) / (end - begin)

    def units_a_second(self, begin: float, end: float) -> float:
        return sum(units for moment, units in self.read if begin <= moment < end) / (end - begin)

    def throttled_share(self, begin: float, end: float) -> float:
        refused = sum(begin <= moment < end for moment in self.throttled)
        return refused / max(1, refused + sum(begin <= moment < end for moment in self.answered))

    def lanes_between(self, begin: float, end: float) -> list[int]:
        return [lanes for moment, lanes in self.lanes if begin <= moment < end]

    def _at(self, moment: float, function: Callable[..., None], *arguments: Any) -> None:
        heappush(self._events, (moment, next(self._numbers), function, arguments))

    def _tick(self, now: float) -> None:
        lanes = self.in_flight.look(now)
        self.lanes.append((now, lanes))
        while self._running < lanes:
            self._running += 1
            self._begin(now)
        self._at(now + TICK_SECONDS, self._tick)

    def _begin(self, now: float) -> None:
        if self._running > self.in_flight.wanted:
            self._running -= 1
            return
        self._ask(now, now, 0)

    def _ask(self, now: float, began: float, failures: int) -> None:
        maximum = min(self.units, self.budget.page_units(now))
        turn = self.budget.reserve(now, max(self.item, maximum // self.item * self.item))
        self._wait(now, began, failures, now, turn)

    def _wait(self, now: float, began: float, failures: int, since: float, turn: Turn) -> None:
        seconds = self.budget.wait(now, turn)
        if not turn.is_sent:
            self._at(now + seconds, self._wait, began, failures, since, turn)
            return
        self.in_flight.waited(since, now)
        self._cpu_free = max(self._cpu_free, now) + self.cpu(now)
        self._cpu_used += self.cpu(now)
        self._table_free = max(self._table_free, self._cpu_free) + 1 / self.serves(now)
        back = self._table_free + self.latency(now) * (1 + self.jitter * self._chance.random())
        self._at(back, self._answer, began, failures, turn)

    def _answer(self, now: float, began: float, failures: int, turn: Turn) -> None:
        gives = self.gives(now)
        earned = (now - self._tokens_at) * gives
        self._tokens, self._tokens_at = min(self.burst * gives, self._tokens + earned), now
        if self._tokens < 0.0:
            self.throttled.append(now)
            self.in_flight.throttled()
            self.budget.settle(now, turn, 0.0)
            self.budget.throttled(now)
            longest = FIRST_BACK_OFF * 2**failures
            pause = self._chance.uniform(0.0, min(20.0, longest))
            self._at(now + pause, self._ask, began, failures + 1)
            return
        self._tokens -= turn.units
        self.read.append((now, turn.units))
        self.budget.settle(now, turn, turn.units)
        self.answered.append(now)
        self.in_flight.page(began, now)
        self._begin(now)
