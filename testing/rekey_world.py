"""A re-key in virtual time: two tables, a worker that follows, writers and readers by routers.

The tables are dictionaries, so this tries the cutover and the router, and not the worker's
protocol: the worker here copies what is there when it comes to it, once and in order.
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
    """Of whoever makes the change."""


@dataclass
class Table:
    """stream: keys that were written, in order; seen: how many of them the worker has done."""

    items: dict[str, int] = field(default_factory=dict)
    stream: list[str] = field(default_factory=list)
    seen: int = 0

    def put(self, key: str, value: int) -> None:
        self.items[key] = value
        self.stream.append(key)


@dataclass
class DrainInMemory:
    """Of one table, whose stream has one shard. before: as SideInMemory's."""

    table: Table
    side: SideInMemory
    before: Callable[[str], None] = lambda request: None
    made: int = 0

    def prepare(self) -> tuple[int, float]:
        self.before("prepare")
        return (1, 0.5)

    def mark(self) -> list[str]:
        self.before("mark")
        self.made += 1
        marker = f"{MARKER}{id(self)} {self.made}"
        self.side.noted[marker] = {}
        self.table.stream.append(marker)
        return [marker]

    def unseen(self, markers: Any) -> int:
        self.before("unseen")
        return sum("seen" not in self.side.noted.get(one, {}) for one in markers)

    def check_shards(self) -> None:
        self.before("check_shards")

    def forget(self, markers: Any) -> None:
        for marker in markers:
            self.side.drop_marker(marker)


class World:
    """lag: seconds of a batch; latency: the longest request of the application's."""

    def __init__(self, seed: int = 0, *, lag: float = 0.4, latency: float = 0.05) -> None:
        self.chance = random.Random(seed)
        self.clock = VirtualClock()
        self.side = SideInMemory()
        self.tables: dict[Side, Table] = {"source": Table(), "destination": Table()}
        self.lag, self.latency = lag, latency
        self.over = False
        self.floor: dict[str, int] = {}
        self.written: list[tuple[float, float]] = []
        """When each write was asked for, and when it was acknowledged."""
        self.failed: list[Exception] = []
        self.stale: list[str] = []

    def router(self) -> Router:
        chance = random.Random(self.chance.random())
        return Router(self.side, clients=(), clock=self.clock, chance=chance)

    def change(self, to: Side, kill: Callable[[str], None] = lambda request: None) -> Change:
        """kill: called before and after each request of whoever makes the change."""
        serving: Side = "source" if to == "destination" else "destination"
        side = _Killable(self.side, kill)
        drain = DrainInMemory(self.tables[serving], self.side, kill)
        return Change(to, side, drain, self.clock, look=_all_open)  # type: ignore[arg-type]

    # --- who is at work ---

    def worker(self, direction: Direction) -> None:
        """Follows one table until the world is over."""
        here, there = self.tables["source"], self.tables["destination"]
        if direction == "reverse":
            here, there = there, here
        while not self.over:
            self.clock.sleep(0.1)
            batch = here.stream[here.seen : here.seen + 50]
            if not batch:
                continue
            self.side.batches.append(direction)
            share = self.side.item.share_of(direction)
            if share == "work":
                self.clock.sleep(self.chance.random() * self.lag)
                for key in batch:
                    if not key.startswith(MARKER) and there.items.get(key) != here.items[key]:
                        there.put(key, here.items[key])
            if share != "later":
                here.seen += len(batch)
                for key in batch:
                    if share == "work":
                        self.side.see_marker(key, {})
            self.side.batches.remove(direction)

    def writer(self, key: str, router: Router, pause: float = 0.2) -> None:
        """Counts up; a write that fails is made again with the next number."""
        value = 0
        while not self.over:
            value += 1
            asked = self.clock.time()
            try:
                router.write(
                    old=self._put("source", key, value), new=self._put("destination", key, value)
                )
            except KeyhopError as error:
                self.failed.append(error)
                continue
            self.floor[key] = max(self.floor.get(key, 0), value)
            self.written.append((asked, self.clock.time()))
            self.clock.sleep(self.chance.random() * pause)

    def reader(self, keys: list[str], router: Router, pause: float = 0.1) -> None:
        while not self.over:
            key = self.chance.choice(keys)
            least = self.floor.get(key, 0)
            found = router.read(old=self._get("source", key), new=self._get("destination", key))
            if found < least:
                self.stale.append(f"{key} was {least} and is {found} at {self.clock.time():.2f}")
            self.floor[key] = max(self.floor.get(key, 0), found)
            self.clock.sleep(self.chance.random() * pause)

    def run(self, *acts: Callable[[], Any], writers: int = 4, readers: int = 3) -> list[Any]:
        """Under traffic; the world is over when all acts are."""
        keys = [f"k{number}" for number in range(writers)]
        results: list[Any] = [None] * len(acts)
        left = [len(acts)]

        def doing(number: int) -> Callable[[], None]:
            def go() -> None:
                try:
                    results[number] = acts[number]()
                except Killed as killed:
                    results[number] = killed
                left[0] -= 1
                self.over = left[0] == 0

            return go

        everybody: list[Callable[[], None]] = [
            *(doing(number) for number in range(len(acts))),
            lambda: self.worker("forward"),
            lambda: self.worker("reverse"),
        ]
        for key in keys:
            router = self.router()
            everybody.append(lambda key=key, router=router: self.writer(key, router))
        for _ in range(readers):
            router = self.router()
            everybody.append(lambda router=router: self.reader(keys, router))
        self.clock.run(everybody)
        return results

    def check(self) -> None:
        """No acknowledged write is lost, and no read went back."""
        assert not self.stale, self.stale
        serving = self.tables[self.side.item.serving].items
        lost = {
            key: (serving.get(key), least)
            for key, least in self.floor.items()
            if serving.get(key, 0) < least
        }
        assert not lost, lost

    @property
    def pause(self) -> float:
        """The longest time for which no write was acknowledged: refused to accepted."""
        return max((done - asked for asked, done in self.written), default=0.0)

    def _put(self, side: Side, key: str, value: int) -> Callable[[], None]:
        """Takes effect somewhere between the request and its answer."""

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
            found = self.tables[side].items.get(key, 0)
            self.clock.sleep(self.latency - seconds)
            return found

        return get


@dataclass
class _Killable:
    """The side table of one who may be killed before a request, or after it."""

    side: SideInMemory
    kill: Callable[[str], None]

    def __getattr__(self, name: str) -> Any:
        request = getattr(self.side, name)

        def asked(*given: Any) -> Any:
            self.kill(f"before {name}")
            answer = request(*given)
            self.kill(f"after {name}")
            return answer

        return asked


def _all_open(control: Control) -> list[Gate]:
    return [Gate("all", True, "open")]


def killed_at(number: int, only: str = "") -> Callable[[str], None]:
    """Whoever asks is killed at the request with this number, beginning with 0, and sends nothing
    any more. only: counts those alone in whose name it is.
    """
    left = [number]

    def kill(request: str) -> None:
        left[0] -= only in request
        if left[0] < 0:
            raise Killed(request)

    return kill
