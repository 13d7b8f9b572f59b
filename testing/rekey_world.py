"""A re-key in virtual time: two tables, replication workers, and writers and readers with routers.

The tables are dictionaries, so this tests the cutover and the router, and not the worker's
protocol: this worker copies the current value of each written key, once and in order.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from keyhop.errors import KeyhopError
from keyhop.rekey.control import Control, Direction, Side
from keyhop.rekey.cutover.change import Change
from keyhop.rekey.routing.router import Router
from keyhop.rekey.standing import Gate

from testing.rekey_side import SideInMemory
from testing.virtual_time import VirtualClock

MARKER = "marker "


class Killed(BaseException):
    """Raised in the process that makes the change, to end it."""


@dataclass
class Table:
    """A table, with its stream of written keys, of which the worker has processed `position`."""

    items: dict[str, int] = field(default_factory=dict)
    stream: list[str] = field(default_factory=list)
    position: int = 0

    def put(self, key: str, value: int) -> None:
        self.items[key] = value
        self.stream.append(key)


@dataclass
class DrainInMemory:
    """A drain of a table whose stream has one shard. `before` is that of SideInMemory."""

    table: Table
    side: SideInMemory
    before: Callable[[str], None] = lambda request: None
    marker_count: int = 0

    def prepare(self) -> tuple[int, float]:
        self.before("prepare")
        return (1, 0.5)

    def mark(self) -> list[str]:
        self.before("mark")
        self.marker_count += 1
        marker = f"{MARKER}{id(self)} {self.marker_count}"
        self.side.marker_details[marker] = {}
        self.table.stream.append(marker)
        return [marker]

    def unseen(self, markers: Any) -> int:
        self.before("unseen")
        return sum("seen" not in self.side.marker_details.get(marker, {}) for marker in markers)

    def check_shards(self) -> None:
        self.before("check_shards")

    def forget(self, markers: Any) -> None:
        for marker in markers:
            self.side.drop_marker(marker)


class World:
    """A re-key under traffic. A batch takes up to `lag` seconds, a client's request `latency`."""

    def __init__(self, seed: int = 0, *, lag: float = 0.4, latency: float = 0.05) -> None:
        self.chance = random.Random(seed)
        self.clock = VirtualClock()
        self.side = SideInMemory()
        self.tables: dict[Side, Table] = {"source": Table(), "destination": Table()}
        self.lag, self.latency = lag, latency
        self.over = False
        self.floor: dict[str, int] = {}
        self.written: list[tuple[float, float]] = []
        """When each write was requested, and when it was acknowledged."""
        self.failed: list[Exception] = []
        self.stale: list[str] = []

    def router(self) -> Router:
        chance = random.Random(self.chance.random())
        return Router(self.side, clients=(), clock=self.clock, chance=chance)

    def change(self, to: Side, kill: Callable[[str], None] = lambda request: None) -> Change:
        """Return a change; `kill` is called before and after each of its requests."""
        serving: Side = "source" if to == "destination" else "destination"
        side = _Killable(self.side, kill)
        drain = DrainInMemory(self.tables[serving], self.side, kill)
        return Change(to, side, drain, self.clock, look=_all_open)  # type: ignore[arg-type]

    def worker(self, direction: Direction) -> None:
        """Replicate one direction until the world is over."""
        origin, target = self.tables["source"], self.tables["destination"]
        if direction == "reverse":
            origin, target = target, origin
        while not self.over:
            self.clock.sleep(0.1)
            batch = origin.stream[origin.position : origin.position + 50]
            if not batch:
                continue
            self.side.batches.append(direction)
            share = self.side.item.share_of(direction)
            if share == "work":
                self.clock.sleep(self.chance.random() * self.lag)
                for key in batch:
                    if not key.startswith(MARKER) and target.items.get(key) != origin.items[key]:
                        target.put(key, origin.items[key])
            if share != "later":
                origin.position += len(batch)
                for key in batch:
                    if share == "work":
                        self.side.see_marker(key, {})
            self.side.batches.remove(direction)

    def writer(self, key: str, router: Router, pause: float = 0.2) -> None:
        """Write increasing numbers; a write that fails is repeated with the next number."""
        value = 0
        while not self.over:
            value += 1
            requested_at = self.clock.time()
            try:
                router.write(
                    old=self._put("source", key, value), new=self._put("destination", key, value)
                )
            except KeyhopError as error:
                self.failed.append(error)
                continue
            self.floor[key] = max(self.floor.get(key, 0), value)
            self.written.append((requested_at, self.clock.time()))
            self.clock.sleep(self.chance.random() * pause)

    def reader(self, keys: list[str], router: Router, pause: float = 0.1) -> None:
        while not self.over:
            key = self.chance.choice(keys)
            minimum = self.floor.get(key, 0)
            value = router.read(old=self._get("source", key), new=self._get("destination", key))
            if value < minimum:
                self.stale.append(f"{key} was {minimum} and is {value} at {self.clock.time():.2f}")
            self.floor[key] = max(self.floor.get(key, 0), value)
            self.clock.sleep(self.chance.random() * pause)

    def run(self, *acts: Callable[[], Any], writers: int = 4, readers: int = 3) -> list[Any]:
        """Run the acts under traffic and return their results; the world ends with the last act."""
        keys = [f"k{number}" for number in range(writers)]
        results: list[Any] = [None] * len(acts)
        remaining = [len(acts)]

        def recorded(number: int) -> Callable[[], None]:
            def run_act() -> None:
                try:
                    results[number] = acts[number]()
                except Killed as killed:
                    results[number] = killed
                remaining[0] -= 1
                self.over = remaining[0] == 0

            return run_act

        functions: list[Callable[[], None]] = [
            *(recorded(number) for number in range(len(acts))),
            lambda: self.worker("forward"),
            lambda: self.worker("reverse"),
        ]
        for key in keys:
            router = self.router()
            functions.append(lambda key=key, router=router: self.writer(key, router))
        for _ in range(readers):
            router = self.router()
            functions.append(lambda router=router: self.reader(keys, router))
        self.clock.run(functions)
        return results

    def check(self) -> None:
        """Assert that no acknowledged write is lost, and that no read went back in time."""
        assert not self.stale, self.stale
        serving = self.tables[self.side.item.serving].items
        lost = {
            key: (serving.get(key), minimum)
            for key, minimum in self.floor.items()
            if serving.get(key, 0) < minimum
        }
        assert not lost, lost

    @property
    def pause(self) -> float:
        """The longest time from the request of a write to its acknowledgement."""
        return max((end - start for start, end in self.written), default=0.0)

    def _put(self, side: Side, key: str, value: int) -> Callable[[], None]:
        """Return a write that takes effect somewhere between its request and its answer."""

        def put() -> None:
            seconds = self.chance.random() * self.latency
            self.clock.sleep(seconds)
            self.tables[side].put(key, value)
            self.clock.sleep(self.latency - seconds)

        return put

    def _get(self, side: Side, key: str) -> Callable[[], int]:
        def get() -> int:
            seconds = self.chance.random() * self.latency
            self.clock.sleep(seconds)
            value = self.tables[side].items.get(key, 0)
            self.clock.sleep(self.latency - seconds)
            return value

        return get


@dataclass
class _Killable:
    """A side table whose client may be killed before a request, or after it."""

    side: SideInMemory
    kill: Callable[[str], None]

    def __getattr__(self, name: str) -> Any:
        request = getattr(self.side, name)

        def send(*arguments: Any) -> Any:
            self.kill(f"before {name}")
            answer = request(*arguments)
            self.kill(f"after {name}")
            return answer

        return send


def _all_open(control: Control) -> list[Gate]:
    return [Gate("all", True, "open")]


def killed_at(number: int, only: str = "") -> Callable[[str], None]:
    """Return a function that kills its caller at the request with this number and at later ones.

    Requests are counted from 0. With `only`, those whose names contain it are counted.
    """
    remaining = [number]

    def kill(request: str) -> None:
        remaining[0] -= only in request
        if remaining[0] < 0:
            raise Killed(request)

    return kill
