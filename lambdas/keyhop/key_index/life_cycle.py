"""The life of a key index: built, audited and removed, one step at a time.

A state machine (BuildKeyIndex, AuditKeyIndex, RemoveKeyIndex) or a loop on a laptop asks for the
steps. Each may be repeated. `next` in a step's result says what follows: "wait" (then the same step
again), "walk" (the jobs in `walk` and `audit`; then the step "finish"), "finish", "planned", "end".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from keyhop.dynamodb.capacity import UNITS_PER_BLOCK
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Table
from keyhop.errors import CannotStart
from keyhop.jobs.estimate import estimate
from keyhop.jobs.journal import Journal
from keyhop.jobs.layout import Wishes
from keyhop.jobs.model import usage_of
from keyhop.jobs.task import Examples, merged
from keyhop.jobs.work import NOTES
from keyhop.key_index.index import (
    Step,
    check_can_have_one,
    check_has_one,
    is_ready,
    shape_of,
    status_of,
    step_towards_built,
    step_towards_removed,
)
from keyhop.key_index.registry import Registry, without_examples
from keyhop.key_index.report import build_cost, walk_report
from keyhop.key_index.request import Order, parse_walk
from keyhop.key_index.sentinel import INDEX, Sentinel
from keyhop.key_index.task import Kind, Walk, WalkTask
from keyhop.key_index.validation import check_all_were_free, check_items, check_place
from keyhop.scan.rate_limit import Budget
from keyhop.scan.reader import PageReader

WAIT_SECONDS = 10
LONG_WAIT_SECONDS = 60
MOST_REMOVALS = 5
"""Walks of a removal: if rows turn up again and again, somebody else puts sentinels."""

ROWS_AT_ONCE = 50
REPORT = "audit.json"
"""Beside the manifest of the audit's run; it names examples, and goes with the run."""


class Keeper(Protocol):
    """Who keeps the index of a table true, as far as it is ours to say."""

    @property
    def turns_stream_on(self) -> bool:
        """Whether a table without a stream gets one, which goes with the index."""

    def attach(self, table: Table) -> bool:
        """Make sure that the table is followed; False: not yet, so this is called again."""

    def check_may_detach(self, table: Table) -> None:
        """Raises CannotStart if somebody follows the table whom it is not ours to stop."""

    def detach(self, table: Table) -> bool:
        """Make sure that it is not followed; False: not yet, so this is called again."""

    def mappings(self, table: Table) -> int:
        """How many mappings of the keeper there are: with none, nobody follows the table."""

    def shares_stream(self, table: Table) -> bool:
        """Whether somebody else reads the table's stream."""


@dataclass(frozen=True, slots=True)
class LifeCycle:
    """One action on the key index of one table.

    journal_of: from a run to its files. settle_seconds: longer than a keeper can still be at work.
    execution: what the walks are started by. drift: told of what an audit finds, also if the build
    that it ends is refused.
    """

    order: Order
    connection: Connection
    table: Table
    sentinel_of: Callable[[Table], Sentinel]
    registry: Registry
    keeper: Keeper
    journal_of: Callable[[str], Journal]
    settle_seconds: int = 0
    execution: str = ""
    drift: Callable[[int], None] = lambda found: None

    @property
    def sentinel(self) -> Sentinel:
        """The table's sentinels; raises CannotStart if it can have none."""
        return self.sentinel_of(self.table)

    def step(self, step: str, state: Mapping[str, Any]) -> dict[str, Any]:
        """One step, "prepare" or "finish"; returns the next state. Raises CannotStart."""
        steps: dict[tuple[str, str], Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            ("build", "prepare"): self._prepare_build,
            ("audit", "prepare"): self._prepare_audit,
            ("remove", "prepare"): self._prepare_removal,
            ("build", "finish"): self._finish_audit,
            ("audit", "finish"): self._finish_audit,
            ("remove", "finish"): self._finish_removal,
        }
        return steps[self.order.action, step](state)

    def estimate(self) -> dict[str, Any]:
        """What a build would cost, by a sample."""
        reader = self._reader("build")
        found = estimate(reader, "skip", "a build walks by hops", Wishes())
        cost = build_cost(found.findings.keys.mean, found.costs["skip"].units.mean)
        rate = self.order.max_write_rate or cost["write_units"] or 1.0
        return {
            "table": self.order.table,
            "keys": found.to_json()["keys"],
            **cost,
            "secondsOfWriting": round(cost["write_units"] / rate, 1),
            "spent": {"read_units": found.spent_units},
        }

    def _prepare_build(self, state: Mapping[str, Any]) -> dict[str, Any]:
        check_can_have_one(self.table)
        if self.order.plan_only:
            self._check_place()
            return {"next": "planned", "estimate": self.estimate()}
        if self.table.index(INDEX) is None:
            check_items(self.connection, self.order.table, self.sentinel)
        self._check_place()
        self.registry.check_writable()
        self.registry.note_setup(shape_of(self.table), self.sentinel)
        table, step = step_towards_built(
            self.connection, self.order.table, with_stream=self.keeper.turns_stream_on
        )
        if step.done and not self.keeper.attach(table):
            step = Step(False, "attaching the keeper")
        if not step.done:
            return self._wait(step)
        return {"next": "walk", "walk": self._job("build"), "audit": self._job("audit")}

    def _prepare_audit(self, state: Mapping[str, Any]) -> dict[str, Any]:
        order, table = self.order, self.table
        if table.index(INDEX) is None and order.scheduled:
            why = "the table has no key index: start BuildKeyIndex"
            return {"next": "end", "result": {"table": order.table, "skipped": why}}
        check_has_one(table)
        if table.stream is None and self.keeper.turns_stream_on:
            raise CannotStart(
                f"The stream of table {order.table!r} is off, so no keeper can follow it: start "
                f"BuildKeyIndex, which turns it on again."
            )
        self.registry.check_writable()
        self._check_place()
        if not self.keeper.attach(table):
            return self._wait(Step(False, "attaching the keeper to the table's present stream"))
        return {"next": "walk", "audit": self._job("audit")}

    def _prepare_removal(self, state: Mapping[str, Any]) -> dict[str, Any]:
        order, table = self.order, self.table
        self.keeper.check_may_detach(table)
        # First of all: from the next step on the index holds less than the table.
        self.registry.void_audit()
        if not self.keeper.detach(table):
            return self._wait(Step(False, "detaching the keeper"))
        setup = self.registry.setup() or {}
        if setup.get("emptied") and status_of(table) in (None, "DELETING"):
            return {"next": "finish", "rounds": 1}  # an earlier removal had come so far
        if table.index(INDEX) is None and not setup and not order.sweep:
            why = 'there is no key index, nor a record of one; "sweep": true looks for sentinels'
            return {"next": "end", "result": {"table": order.table, "skipped": why}}
        if table.index(INDEX) is not None and not is_ready(table):
            return self._wait(Step(False, f"waiting for the index, which is {status_of(table)}"))
        self._check_place()
        # Without an index the walk goes over the table, and reads each collection's sentinel.
        return self._removal(1)

    def _removal(self, round_: int) -> dict[str, Any]:
        return {
            "next": "walk",
            "walk": self._job("remove"),
            "rounds": round_,
            "settleSeconds": self.settle_seconds,
        }

    def _finish_audit(self, state: Mapping[str, Any]) -> dict[str, Any]:
        order = self.order
        journal = self.journal_of(state["audited"]["run"])
        report = self.report_of("audit", journal)
        report["keeper"] = bool(self.keeper.mappings(self.table))
        journal.keep(REPORT, report)
        self.registry.note_audit(report)
        self.drift(report["drift"])
        result = {
            "table": order.table,
            "audit": without_examples(report),
            "report": journal.store.url(REPORT),
        }
        if order.action == "build":
            built = self.report_of("build", self.journal_of(state["walked"]["run"]))
            check_all_were_free(built)
            result["build"] = without_examples(built)
        return {"next": "end", "result": result}

    def _finish_removal(self, state: Mapping[str, Any]) -> dict[str, Any]:
        order, table = self.order, self.table
        if is_ready(table):
            if self._has_rows():
                if state["rounds"] < MOST_REMOVALS:
                    return self._removal(state["rounds"] + 1)
                raise CannotStart(
                    "Sentinels turn up again and again while they are deleted: somebody else "
                    "builds or keeps the index; end that, and start again."
                )
            self.registry.note_emptied()
        before = (self.registry.setup() or {}).get("before")
        was_off = before is not None and before["stream_view"] is None
        is_ours = (
            self.keeper.turns_stream_on
            and was_off
            and table.stream is not None
            and not self.keeper.shares_stream(table)
        )
        table, step = step_towards_removed(self.connection, order.table, with_stream=is_ours)
        if not step.done:
            return {**self._wait(step), "rounds": state["rounds"]}
        self.registry.forget()
        result = {
            "table": order.table,
            "index": None,
            "sentinels": 0,
            "stream": table.stream,
            "mappings": self.keeper.mappings(table),
            "as_before": before is None or shape_of(table) == before,
        }
        return {"next": "end", "result": result}

    def _check_place(self) -> None:
        check_place(self.connection, self.table, self.sentinel)

    def _job(self, kind: Kind) -> dict[str, Any]:
        return self.order.run_input(self.walk(kind), self.execution)

    def walk(self, kind: Kind) -> Walk:
        """One of the walks; where nobody keeps the index there is nobody to wait for."""
        grace = self.order.grace_seconds if self.keeper.mappings(self.table) else 0.0
        return self.order.walk(kind, grace)

    def _wait(self, step: Step) -> dict[str, Any]:
        # An index can take a day, and an execution's history has room for 25,000 events.
        seconds = LONG_WAIT_SECONDS if "for the index" in step.says else WAIT_SECONDS
        seconds = min(seconds, self.settle_seconds)
        return {"next": "wait", "seconds": seconds, "says": step.says}

    def _has_rows(self) -> bool:
        """Whether the index still has rows of sentinels; reads it to the end, or to the first."""
        return has_rows(self._reader("remove"))

    def _reader(self, kind: Kind) -> PageReader:
        """Reads what a walk of that kind walks over."""
        request = parse_walk(self._job(kind))
        task = WalkTask(self.connection, request.options, self.sentinel_of)
        source = task.plan(self.table, request).source
        return PageReader(self.connection, source, Budget(request.max_read_rate))

    def report_of(self, kind: Kind, journal: Journal) -> dict[str, Any]:
        """The report of a walk, from the manifest of its run."""
        manifest = journal.manifest()
        if manifest is None:
            raise CannotStart("The run of the walk is not finished: start again.")
        return walk_report(
            self.order.walk(kind),
            usage_of(manifest),
            manifest["seconds"],
            manifest["ended"],
            examples_of(journal),
        )


def all_steps(
    life_cycle_of: Callable[[], LifeCycle],
    walk: Callable[[LifeCycle, Mapping[str, Any]], str],
    wait: Callable[[str], None],
) -> dict[str, Any]:
    """The steps of an action, one after the other as a state machine has them; the last state.

    life_cycle_of: the table's, as it is now. walk: does the job that it is given, and returns its
    run. wait: is told for what.
    """
    step = "prepare"
    state: dict[str, Any] = {}
    while True:
        life_cycle = life_cycle_of()
        state |= life_cycle.step(step, state)
        if state["next"] in ("planned", "end"):
            return state
        if state["next"] == "wait":
            wait(state["says"])
            continue
        if state["next"] == "walk":
            for job, walked in (("walk", "walked"), ("audit", "audited")):
                if job in state:
                    state[walked] = {"run": walk(life_cycle, state[job])}
        step = "finish"


def has_rows(reader: PageReader) -> bool:
    """Whether there is a row that counts in the index that `reader` reads."""
    start = None
    while True:
        page = reader.read(0, 1, start, ROWS_AT_ONCE, UNITS_PER_BLOCK)
        if page.keys:
            return True
        start = page.next
        if start is None:
            return False


def examples_of(journal: Journal) -> Examples:
    """A few keys of each kind of drift, from what the workers of a walk have noted."""
    found: Examples = {}
    for name in sorted(journal.store.sizes(NOTES)):
        found = merged(found, journal.load(name) or {})
    return found
