"""The state machines of the key index, walked in this process, over a table and fake services."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any

from keyhop.jobs.runs import ExecutionContext
from keyhop.key_index.index import table_with_index
from keyhop.key_index.life_cycle import LifeCycle, check_cost
from keyhop.key_index.provisioned import Scaling
from keyhop.key_index.registry import Lease, Registry
from keyhop.key_index.request import Order
from keyhop.key_index.trust import MappedKeeper
from keyhop.streams.event_source import Mappings, Watch

from testing.databases import Database
from testing.keepers import KEEPER, QUEUE, Elsewhere, FakeLambda, watch_of
from testing.schemas.watch import watched
from tests.integration.key_index.on_table import OnTable
from tests.machine import Machine, passed_on

BUCKET = "results"


@dataclass
class Machines(OnTable):
    """BuildKeyIndex, VerifyKeyIndex and RemoveKeyIndex around the machine EnumerateKeys.

    database: has its table, where the methods that look at the table are used.
    """

    machine: Machine
    lambdas: FakeLambda = field(default_factory=FakeLambda)
    elsewhere: Elsewhere = field(default_factory=Elsewhere)
    running: set[str] = field(default_factory=set)
    drifts: list[int] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    max_cost: float = 10.0
    scaling: Scaling = field(default_factory=Scaling)
    database: Database | None = None

    def __post_init__(self) -> None:
        self.machine.watch = self.watch

    @property
    def watch(self) -> Watch:
        return watch_of(self.lambdas, self.elsewhere)

    @property
    def table(self) -> str:
        return self.machine.tables[0]

    @property
    def registry(self) -> Registry:
        return self.machine.indexes.registry(self.looked_up())

    def built(self, sizes: Sequence[int]) -> set[str]:
        """A table of collections with so many items each, and its index; returns its keys."""
        keys = self.collections(sizes)
        self.build()
        return keys

    def build(self, **given: Any) -> dict[str, Any]:
        return self.start("build", {"table": self.table, "graceSeconds": 0, **given})

    def verify(self, **given: Any) -> dict[str, Any]:
        return self.start("verify", {"table": self.table, "graceSeconds": 0, **given})

    def remove(self, **given: Any) -> dict[str, Any]:
        return self.start("remove", {"table": self.table, **given})

    def prepared_removal(self, execution: ExecutionContext) -> dict[str, Any]:
        """The state of a removal, from its first step to the walk that deletes the sentinels."""
        state: dict[str, Any] = {"next": "wait"}
        while state["next"] == "wait":
            state = self.step("remove", "prepare", {"table": self.table}, execution, {})
        return state

    def read(self, **given: Any) -> dict[str, Any]:
        """The output of EnumerateKeys."""
        return self.machine.start({"table": self.table, **given})

    def keys(self, read: dict[str, Any]) -> Counter[str]:
        return Counter(key["pk"]["S"] for key in self.machine.keys(read["run"]))

    def reason(self, read: dict[str, Any]) -> str:
        """Why the keys were read as they were."""
        return str(self.machine.runs.open_run(read["run"])[1].reason)

    def is_alive(self, lease: Lease, age: float) -> bool:
        return lease.holder in self.running

    def start(self, action: str, given: dict[str, Any]) -> dict[str, Any]:
        execution = self.machine.execution()
        self.running.add(execution.id)
        name = f"{action.capitalize()}KeyIndex"
        try:
            return dict(watched(name, lambda: self.run(action, given, execution), given))
        finally:
            self.running.remove(execution.id)

    def run(
        self, action: str, given: dict[str, Any], execution: ExecutionContext
    ) -> dict[str, Any]:
        state = self.step(action, "prepare", given, execution, {})
        while True:
            following = state["next"]
            self.steps.append(following)
            if following == "wait":
                Event().wait(0.1)  # the state Wait
                step = "finish" if state.keys() & {"walked", "verified"} else "prepare"
                state = self.step(action, step, given, execution, state)
            elif following == "planned":
                return dict(state["estimate"])
            elif following == "finish":
                state = self.step(action, "finish", given, execution, state)
            elif following == "end":
                return dict(state["result"])
            else:
                for name in ("walk", "verify"):
                    if name in state and following == "walk":
                        done = self.machine.start(state[name], walk=True)
                        state[{"walk": "walked", "verify": "verified"}[name]] = {"run": done["run"]}
                state = self.step(action, "finish", given, execution, state)

    def step(
        self,
        action: str,
        step: str,
        given: dict[str, Any],
        execution: ExecutionContext,
        state: dict[str, Any],
    ) -> dict[str, Any]:
        order = Order.parse(action, given)
        order = replace(order, table=self.machine.indexes.checked(order.table))
        connection = self.machine.deployment.connect(order.table, 16)
        table = table_with_index(connection, order.table)
        life_cycle = LifeCycle(
            order,
            connection,
            table,
            self.machine.indexes.sentinel,
            self.machine.indexes.registry(table),
            MappedKeeper(Mappings(self.lambdas, KEEPER, QUEUE), self.watch),
            self.machine.runs.journal,
            execution.id,
            self.is_alive,
            settle_seconds=1,
            scaling=self.scaling,
        )
        if step == "prepare":
            check_cost(life_cycle, given, state, self.max_cost)
        following = passed_on(life_cycle.step(step, state))
        if "verification" in following.get("result", {}):
            self.drifts.append(following["result"]["verification"]["drift"])
        return {**state, **following}
