"""Both tables of a re-key with their workers, a coordinator and an application, in virtual time.

The deployed code runs here over the simulated service: routers, both workers, and the coordinator
with all gates except those that need a deployment.
"""

import random
from collections.abc import Callable, Collection, Set
from functools import partial
from typing import Any

from keyhop.rekey.control import Control, Side
from keyhop.rekey.cutover.change import Change, Next, change_of
from keyhop.rekey.cutover.deployed import NotDeployed
from keyhop.rekey.routing.router import Router
from keyhop.rekey.standing import RekeyStatus

from testing.simulation.schedule import Process
from tests.unit.rekey.chaos import Chaos
from tests.unit.rekey.chaos_world import ChaosWorld

Item = dict[str, Any]
GATES = {"stage", "claims", "stragglers"}


def item(key: str, number: int, to: str = "") -> Item:
    return {"id": {"S": key}, "to": {"S": to or f"at {key}"}, "n": {"N": str(number)}}


class NoChance(random.Random):
    def random(self) -> float:
        return 1.0


def well(operation: str, request: Any) -> str:
    """Return the fate of a request that succeeds."""
    return "well"


class Pair:
    """Both tables with their workers, and an application."""

    def __init__(self, seed: int = 1) -> None:
        random.seed(seed)
        self.world = ChaosWorld(random.Random(seed))
        self.chaos = Chaos(self.world, keys=1, operations=0, changes=0, in_peace=True)
        self.chaos.chance = NoChance()  # no batch is delivered twice
        self.side = self.world.side()
        self.application = self.world.connection(well, timeout=float("inf"))

    def run(self, act: Callable[[], None]) -> None:
        """Call a function while the workers follow both streams."""
        world, chaos = self.world, self.chaos
        world.begin()

        def acting() -> None:
            try:
                act()
            finally:
                chaos.over = True

        actors = [partial(chaos._shard, way, n) for way in ("forward", "reverse") for n in range(3)]
        for actor in (acting, *actors):
            world.schedule.spawn(actor, Process("test"))
        world.schedule.run()

    def router(self) -> Router:
        return Router(self.world.side(), clients=(), clock=self.world, chance=self.world.chance)

    def ungated_change(self, to: Side, accept: Collection[str] = ()) -> Change:
        """Return a change without gates."""
        world = self.world
        change = change_of(
            world.connection(well),
            world.pair.destination,
            to,
            world.streams,
            accept=accept,
            clock=world,
            chance=world.chance,
            pool=world.pool,
            stop=world.stop,
        )
        change.look = lambda control: []
        return change

    def change(self, to: Side, accept: Collection[str] = (), gates: Set[str] = GATES) -> Next:
        def look(control: Control) -> Any:
            status = RekeyStatus.of(self.side, NotDeployed(), self.world.time(), control)
            return [gate for gate in status.gates(to, accept) if gate.name in gates]

        change = self.ungated_change(to, accept)
        change.look = look
        return change.run()

    def verified(self, to: Side = "destination") -> str:
        """Return the reason why the gate of the last verification is shut, or an empty string."""
        status = RekeyStatus.of(self.side, NotDeployed(), self.world.time())
        (gate,) = [gate for gate in status.gates(to) if gate.name == "verified"]
        return "" if gate.is_open else gate.says

    def put_old(self, value: Item) -> None:
        self.send("put_item", TableName=self.world.pair.source, Item=value)

    def put_new(self, value: Item) -> None:
        image = self.world.transform.forward(value)
        self.send("put_item", TableName=self.world.pair.destination, Item=image)

    def delete_old(self, key: str) -> None:
        table = self.world.pair.source
        self.send("delete_item", TableName=table, Key={"id": {"S": key}})

    def send(self, operation: str, **parameters: Any) -> None:
        self.application.client.call(operation, **parameters)

    def write(self, value: Item) -> None:
        self.router().write(old=lambda: self.put_old(value), new=lambda: self.put_new(value))

    @property
    def old(self) -> dict[str, Item]:
        return {item["id"]["S"]: item for item in self.world.items(self.world.pair.source)}

    @property
    def new(self) -> dict[str, Item]:
        """The new table's items, in the form that the old table should have them in."""
        back = self.world.transform.back
        items = [back(item) for item in self.world.items(self.world.pair.destination)]
        return {item["id"]["S"]: dict(item) for item in items if item is not None}


def with_workers(test: Callable[[Pair], None]) -> Callable[[], None]:
    """Return a test that runs while the workers of a new pair follow both streams."""

    def run() -> None:
        pair = Pair()
        pair.run(lambda: test(pair))

    return run
