"""The state machines of the key index, run in this process with a table and fake services."""

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

    The methods that read the table need `database`.
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
        """Create a table with collections of these sizes and its index, and return its keys."""
        keys = self.collections(sizes)
        self.build()
        return keys

    def build(self, **fields: Any) -> dict[str, Any]:
        return self.start("build", {"table": self.table, "graceSeconds": 0, **fields})

    def verify(self, **fields: Any) -> dict[str, Any]:
        return self.start("verify", {"table": self.table, "graceSeconds": 0, **fields})

    def remove(self, **fields: Any) -> dict[str, Any]:
        return self.start("remove", {"table": self.table, **fields})

    def prepared_removal(self, execution: ExecutionContext) -> dict[str, Any]:
        """Run a removal up to the walk that deletes the sentinels, and return its state."""
        state: dict[str, Any] = {"next": "wait"}
        while state["next"] == "wait":
            state = self.step("remove", "prepare", {"table": self.table}, execution, {})
        return state

    def read(self, **fields: Any) -> dict[str, Any]:
        """Run EnumerateKeys, and return its output."""
        return self.machine.start({"table": self.table, **fields})

    def keys(self, read: dict[str, Any]) -> Counter[str]:
        return Counter(key["pk"]["S"] for key in self.machine.keys(read["run"]))

    def reason(self, read: dict[str, Any]) -> str:
        """Return the run's reason for its method."""
        return str(self.machine.runs.open_run(read["run"])[1].reason)

    def is_alive(self, lease: Lease, age: float) -> bool:
        return lease.holder in self.running

    def start(self, action: str, execution_input: dict[str, Any]) -> dict[str, Any]:
        execution = self.machine.execution()
        self.running.add(execution.id)
        name = f"{action.capitalize()}KeyIndex"
        try:
            return dict(
                watched(name, lambda: self.run(action, execution_input, execution), execution_input)
            )
        finally:
            self.running.remove(execution.id)

    def run(
        self, action: str, execution_input: dict[str, Any], execution: ExecutionContext
    ) -> dict[str, Any]:
        state = self.step(action, "prepare", execution_input, execution, {})
        while True:
            next_state = state["next"]
            self.steps.append(next_state)
            if next_state == "wait":
                Event().wait(0.1)  # the state Wait
                step = "finish" if state.keys() & {"walked", "verified"} else "prepare"
                state = self.step(action, step, execution_input, execution, state)
            elif next_state == "planned":
                return dict(state["estimate"])
            elif next_state == "finish":
                state = self.step(action, "finish", execution_input, execution, state)
            elif next_state == "end":
                return dict(state["result"])
            else:
                for name, result_name in {"walk": "walked", "verify": "verified"}.items():
                    if name in state and next_state == "walk":
                        result = self.machine.start(state[name], walk=True)
                        state[result_name] = {"run": result["run"]}
                state = self.step(action, "finish", execution_input, execution, state)

    def step(
        self,
        action: str,
        step: str,
        execution_input: dict[str, Any],
        execution: ExecutionContext,
        state: dict[str, Any],
    ) -> dict[str, Any]:
        order = Order.parse(action, execution_input)
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
            check_cost(life_cycle, execution_input, state, self.max_cost)
        changes = passed_on(life_cycle.step(step, state))
        if "verification" in changes.get("result", {}):
            self.drifts.append(changes["result"]["verification"]["drift"])
        return {**state, **changes}
