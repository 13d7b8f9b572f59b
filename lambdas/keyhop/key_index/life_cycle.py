"""The life of a key index: built, verified and removed, one step at a time.

A state machine (BuildKeyIndex, VerifyKeyIndex, RemoveKeyIndex) or a loop on a laptop asks for the
steps. Each may be repeated. `next` in a step's result says what follows: "wait" (then the same step
again), "walk" (the jobs in `walk` and `verify`; then the step "finish"), "finish", "planned",
"end".
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.tables import Table
from keyhop.errors import CannotStart, IndexBusy
from keyhop.jobs.journal import Journal, usage_of
from keyhop.jobs.price import refuse_above
from keyhop.jobs.task import noted_examples
from keyhop.key_index.index import (
    check_all_are_free,
    check_all_were_free,
    check_can_have_one,
    check_has_one,
    check_items,
    check_place,
    check_region,
    check_stream_view,
    is_ready,
    shape_of,
    status_of,
    step_towards_built,
    step_towards_removed,
    table_with_index,
)
from keyhop.key_index.provisioned import Scaling, capacity_now, capacity_of, scale_again, settle
from keyhop.key_index.registry import FENCE_SECONDS, LOST, Entry, IsAlive, Registry
from keyhop.key_index.report import action_estimate, has_rows, manifest_of, remaining, report_of
from keyhop.key_index.request import Order, WalkInput
from keyhop.key_index.sentinel import INDEX, Sentinel
from keyhop.key_index.task import Kind, WalkTask
from keyhop.key_index.trust import Keeper
from keyhop.scan.reader import PageReader
from keyhop.scan.statistics import Interval
from keyhop.storage.store import Memory

WAIT_SECONDS = 10
LONG_WAIT_SECONDS = 60
MOST_REMOVALS = 5
"""The maximum walks of a removal: if rows come back, somebody else puts sentinels."""

CARRIED = ("walked", "verified", "kept", "checked")
"""The fields of the state after the walks of a build or a verification that the next step needs."""

OF_AN_INDEX = (
    *("before", "sentinel", "turns_stream_on", "stream", "emptied", "elsewhere", "units"),
    "refused",
)
"""The fields of an entry that lose their meaning when the index is gone."""

REPORT = "verification.json"
"""The file of a report, with examples of keys. It is deleted with the run of the verification."""


@dataclass(slots=True)
class LifeCycle:
    """One action on the key index of one table.

    Attributes:
        holder: The holder of the lease during the action, which also starts the walks.
        settle_seconds: A time after which a keeper, or a walker of an earlier holder, has certainly
            ended.
        drift: Is called with the findings of a verification, even if the build that ends with it
            is refused.
        scaling: Changes the auto scaling of tables with provisioned capacity.
    """

    order: Order
    connection: Connection
    table: Table
    sentinel_of: Callable[[Table], Sentinel]
    registry: Registry
    keeper: Keeper
    journal_of: Callable[[str], Journal]
    holder: str
    is_alive: IsAlive
    settle_seconds: int = FENCE_SECONDS
    drift: Callable[[int], None] = lambda drift: None
    scaling: Scaling = field(default_factory=Scaling)
    entry: Entry = field(init=False)

    def step(self, step: str, state: Mapping[str, Any]) -> dict[str, Any]:
        """Do one step, "prepare" or "finish"; return the next state. Raise CannotStart.

        The step is done under the lease, which the last step returns. A step that is repeated after
        that returns the state of the first time.
        """
        action = self.order.action
        if self.order.dry_run:
            return {"next": "planned", "estimate": self.expected()}
        self.registry.check_writable()
        self.entry = self.registry.load()
        ended = self.entry.ended
        if ended is not None and ended["holder"] == self.holder:
            return dict(ended["state"])
        lease = self.entry.lease
        is_first = lease is None or lease.holder != self.holder
        if is_first and step != "prepare":
            raise IndexBusy(LOST)  # the work under the lease may have been undone
        try:
            self.entry = self.registry.take(self.holder, action, self.is_alive)
        except IndexBusy as busy:
            if not self.order.scheduled:
                raise
            return {"next": "end", "result": {"table": self.order.table, "skipped": str(busy)}}
        lease = self.entry.lease
        assert lease is not None
        if lease.inherited and state.get("heir") != lease.since:
            says = "waiting for what the last holder of the lease may still be doing"
            wait = {"next": "wait", "seconds": self.settle_seconds, "says": says}
            return {**wait, "heir": lease.since}
        self._note(lease=replace(lease, inherited=False))
        # Evidence from before the lease was taken proves nothing.
        self.table = table_with_index(self.connection, self.order.table)
        try:
            following = self._steps[action, step](state)
        except CannotStart:
            if is_first:  # nothing was done that must be finished
                self._note(lease=None)
            raise
        if following["next"] == "end":
            self._note(lease=None, ended={"holder": self.holder, "state": following})
        return following

    @property
    def _steps(self) -> Mapping[tuple[str, str], Callable[[Mapping[str, Any]], dict[str, Any]]]:
        return {
            ("build", "prepare"): self._prepare_build,
            ("verify", "prepare"): self._prepare_verification,
            ("remove", "prepare"): self._prepare_removal,
            ("build", "finish"): self._finish_build,
            ("verify", "finish"): self._finish_verification,
            ("remove", "finish"): self._finish_removal,
        }

    def _note(self, **fields: Any) -> None:
        if any(getattr(self.entry, name) != value for name, value in fields.items()):
            self.entry = self.registry.change(self.holder, **fields)

    @property
    def sentinel(self) -> Sentinel:
        """Return the sentinels of the table as recorded, or as configured for a new index.

        Raises CannotStart if the table can have none.
        """
        return self.entry.place or self.sentinel_of(self.table)

    def expected(self) -> dict[str, Any] | None:
        """Estimate the cost of the action from a sample; None if there is nothing to do.

        Raise CannotStart if the action is not possible.
        """
        self.entry = self.registry.entry()
        if self.order.action == "build":
            self._check_can_build()
        elif self.order.action == "verify":
            check_has_one(self.table)
        elif self._is_gone():
            return None
        return action_estimate(self._reader("check"), self.table, self.order, self.scaling)

    def _is_gone(self) -> bool:
        nothing = self.table.index(INDEX) is None and self.entry.sentinel is None
        return nothing and not self.order.sweep

    def _check_can_build(self) -> None:
        check_can_have_one(self.table)
        self._check_region()
        check_stream_view(self.table, self.order.stream_view)
        self._check_place()

    def _prepare_build(self, state: Mapping[str, Any]) -> dict[str, Any]:
        self._check_can_build()
        if self.table.index(INDEX) is None:
            # Where an index is, it was looked for; what came since, the walk finds.
            check_items(self.connection, self.order.table, self.sentinel)
            return {"next": "walk", "walk": self._job("check")}
        return self._build()

    def _finish_build(self, state: Mapping[str, Any]) -> dict[str, Any]:
        if "verified" in state:
            return self._lower(state) or self._finish_verification(state)
        if not state.get("checked"):
            journal = self.journal_of(state["walked"]["run"])
            journal.keep(REPORT, {"kind": "check", "examples": noted_examples(journal)})
            named_in = None if isinstance(journal.store, Memory) else journal.store.url(REPORT)
            usage = usage_of(manifest_of(journal))
            try:
                check_all_are_free(usage, self.sentinel, named_in)
            except CannotStart:
                self._note(lease=None)  # nothing was done
                raise
        return {**self._build(), "checked": True}

    def _build(self) -> dict[str, Any]:
        """Do the next thing that is necessary before sentinels are put."""
        turns_on = self.keeper.turns_stream_on and self.table.stream is None
        capacity = None
        if self.table.index(INDEX) is None:
            capacity = capacity_of(self.table, self.order.max_write_rate, self.scaling)
        self._note(
            before=self.entry.before or shape_of(self.table),
            sentinel=self.sentinel.to_json(),
            turns_stream_on=turns_on or self.entry.turns_stream_on,
            stream=None if turns_on else self.entry.stream,
            emptied=False,
            elsewhere=0,
            units=capacity.kept if capacity else self.entry.units,
            refused=None if capacity else self.entry.refused,
        )
        table, awaited = step_towards_built(
            self.connection,
            self.order.table,
            with_stream=self.keeper.turns_stream_on,
            view=self.order.stream_view,
            throughput=capacity.building if capacity else None,
        )
        if self.entry.turns_stream_on and self.entry.stream is None and table.stream is not None:
            self._note(stream=table.stream)
        if awaited:
            return self._wait(awaited)
        if not self.keeper.attach(table, self.sentinel):
            return self._wait("attaching the keeper")
        self.table = table
        return {
            "next": "walk",
            "walk": self._job("build"),
            "verify": self._job("verify"),
            "kept": self.keeper.kept_now(self.table),
            "settleSeconds": 0,
        }

    def _lower(self, state: Mapping[str, Any]) -> dict[str, Any] | None:
        """Lower the index's capacity after its build; return the state that waits, or None."""
        if (units := self.entry.units) is not None:
            self.table, awaited, refused = settle(self.connection, self.table, units, self.scaling)
            if awaited:
                return {**state, **self._wait(awaited)}
            self._note(units=None, refused=refused)
        elif self.entry.refused:  # by an earlier build, whose index has its capacity by now
            self._note(refused=scale_again(self.table, self.order.max_write_rate, self.scaling))
        return None

    def _prepare_verification(self, state: Mapping[str, Any]) -> dict[str, Any]:
        order, table = self.order, self.table
        if table.index(INDEX) is None and order.scheduled:
            why = "the table has no key index: start BuildKeyIndex"
            return {"next": "end", "result": {"table": order.table, "skipped": why}}
        check_has_one(table)
        self._check_region()
        if table.stream is None and self.keeper.turns_stream_on:
            raise CannotStart(
                f"The stream of table {order.table!r} is off, so no keeper can follow it: start "
                f"BuildKeyIndex, which turns it on again."
            )
        self._check_place()
        # Before the walk: a deploy during it may change the place of sentinels of new indexes.
        self._note(sentinel=self.sentinel.to_json())
        if not self.keeper.attach(table, self.sentinel):
            return self._wait("attaching the keeper to the table's present stream")
        mappings = self.keeper.kept_now(table)
        return {"next": "walk", "verify": self._job("verify"), "kept": mappings}

    def _prepare_removal(self, state: Mapping[str, Any]) -> dict[str, Any]:
        order, table, entry = self.order, self.table, self.entry
        self.keeper.check_may_detach(table)
        if self._is_gone():
            why = 'it has no key index, and no record of one; "sweep": true looks for sentinels'
            return {"next": "end", "result": {"table": order.table, "skipped": why}}
        if not order.sweep:
            self._check_region()
        if entry.place is None:
            self._check_place()
        # First of all: from the next step on the index holds less than the table, whether or not
        # the removal comes to its end.
        self._note(verification=None)
        if not self.keeper.detach(table):
            return self._wait("detaching the keeper")
        if entry.emptied and status_of(table) in (None, "DELETING"):
            return {"next": "finish", "rounds": 1}  # an earlier removal had come so far
        if table.index(INDEX) is not None and not is_ready(table):
            return self._wait(f"waiting for the index, which is {status_of(table)}")
        # Without an index the walk goes over the table, and reads each collection's sentinel.
        return self._removal(1)

    def _removal(self, round_: int) -> dict[str, Any]:
        return {
            "next": "walk",
            "walk": self._job("remove"),
            "rounds": round_,
            "settleSeconds": self.settle_seconds,
        }

    def _finish_verification(self, state: Mapping[str, Any]) -> dict[str, Any]:
        order = self.order
        journal = self.journal_of(state["verified"]["run"])
        report = report_of("verify", order, journal)
        grace = math.ceil(self._grace_seconds)
        if report["drift"] and grace and not state.get("lookingAgain"):
            says = "waiting for the keeper before a second look at the differences"
            wait = {"next": "wait", "seconds": grace, "says": says, "lookingAgain": True}
            return {**wait, **{name: state[name] for name in CARRIED if name in state}}
        report["remaining"] = remaining(
            self.connection, self.table, self.sentinel, report["drift"], noted_examples(journal)
        )
        # Who followed the table before the walk, and ever since.
        mappings = self.keeper.kept_now(self.table)
        report["keeper"] = bool(mappings) and mappings == state["kept"]
        report["kept_by"] = mappings
        report["stream"] = self.table.stream
        journal.keep(REPORT, report)
        evidence = self._evidence_of_verification(journal)
        del report["examples"]  # which are keys
        self._note(verification={**report, **evidence})
        self.drift(report["drift"])
        result: dict[str, Any] = {
            "table": order.table,
            "verification": report,
            "report": journal.store.url(REPORT),
        }
        if order.action == "build":
            built = report_of("build", order, self.journal_of(state["walked"]["run"]))
            check_all_were_free(built)
            del built["examples"]
            result["build"] = built
            result["capacity"] = capacity_now(self.table, self.scaling, self.entry.refused)
        return {"next": "end", "result": result}

    def _evidence_of_verification(self, journal: Journal) -> dict[str, Any]:
        """Return when the verification began and how many withdrawals it came after.

        Both are taken from the lease, because the walk may have missed whatever happened after the
        lease was taken. A walk that began before the lease was resumed, and nothing is known about
        the time in between.
        """
        lease, plan = self.entry.lease, journal.plan()
        assert lease is not None
        evidence = {"began": lease.since, "withdrawals": lease.withdrawals}
        moment = datetime.fromisoformat
        if plan is not None and moment(plan.started) < moment(lease.since):
            return {**evidence, "began": plan.started, "resumed": True}
        return evidence

    def _finish_removal(self, state: Mapping[str, Any]) -> dict[str, Any]:
        order, table = self.order, self.table
        # Once more: a person may have attached one in the meantime.
        if not self.keeper.detach(table):
            return {**self._wait("detaching the keeper"), "rounds": state["rounds"]}
        if is_ready(table):
            reader = self._reader("remove")
            if has_rows(reader):
                if state["rounds"] < MOST_REMOVALS:
                    return self._removal(state["rounds"] + 1)
                raise CannotStart(
                    "Sentinels reappear while they are deleted: another process builds or keeps "
                    "the index. End that process, and start again."
                )
            self._note(emptied=True, elsewhere=reader.usage.counters["rows_elsewhere"])
        is_ours = (
            self.keeper.turns_stream_on
            and not order.keep_stream
            and table.stream is not None
            and table.stream == self.entry.our_stream(table.stream)
            and not self.keeper.shares_stream(table)
        )
        refused = self.scaling.forget(table)
        table, awaited = step_towards_removed(self.connection, order.table, with_stream=is_ours)
        if awaited:
            return {**self._wait(awaited), "rounds": state["rounds"]}
        before, other_rows = self.entry.before, self.entry.elsewhere
        result = {
            "table": order.table,
            "index": None,
            "sentinels": 0,
            "elsewhere": other_rows,
            "stream": table.stream,
            "mappings": self.keeper.mappings(table),
            "as_before": not other_rows and (before is None or shape_of(table) == before),
            "refused": refused,
        }
        nothing = Entry(self.entry.identity)
        self._note(**{name: getattr(nothing, name) for name in OF_AN_INDEX})
        return {"next": "end", "result": result}

    def _check_region(self) -> None:
        check_region(self.table, self.order.region, is_known=self.entry.sentinel is not None)

    def _check_place(self) -> None:
        check_place(self.connection, self.table, self.sentinel_of(self.table), self.entry.place)

    def _job(self, kind: Kind) -> dict[str, Any]:
        return self.order.run_input(kind, self._grace_seconds, self.holder)

    @property
    def _grace_seconds(self) -> float:
        """Return how long a walk waits for the keeper; 0 if there is no keeper."""
        return self.order.grace_seconds if self.keeper.mappings(self.table) else 0.0

    def _wait(self, says: str) -> dict[str, Any]:
        # An index can take a day, and an execution's history has room for 25,000 events.
        seconds = LONG_WAIT_SECONDS if "for the index" in says else WAIT_SECONDS
        return {"next": "wait", "seconds": min(seconds, self.settle_seconds), "says": says}

    def _reader(self, kind: Kind) -> PageReader:
        """Return a reader of what a walk of this kind reads."""
        request = WalkInput.parse(self._job(kind))
        task = WalkTask(self.connection, request.options, lambda table: self.sentinel)
        source = task.plan(self.table, request).source
        return PageReader(self.connection, source, Budget(request.max_read_rate))


def all_steps(
    life_cycle_of: Callable[[], LifeCycle],
    walk: Callable[[LifeCycle, Mapping[str, Any]], str],
    wait: Callable[[str], None],
) -> dict[str, Any]:
    """Run the steps of an action in this process, and return the last state.

    Args:
        life_cycle_of: Returns the life cycle of the table as it is now.
        walk: Does a job, and returns the name of its run.
        wait: Waits, and shows for what.
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
            for job, walked in (("walk", "walked"), ("verify", "verified")):
                if job in state:
                    state[walked] = {"run": walk(life_cycle, state[job])}
        step = "finish"


def check_cost(
    life_cycle: LifeCycle, job_input: Mapping[str, Any], state: Mapping[str, Any], limit: float
) -> None:
    """Raise TooExpensive if the upper end of an estimate, by a sample, exceeds the limit.

    Only the cost of DynamoDB counts.

    Args:
        state: The state of the step. A step that is repeated has a `next` in its state.
        limit: The limit in dollars that applies if the input has none.
    """
    order = life_cycle.order
    is_skipped = order.scheduled and life_cycle.table.index(INDEX) is None
    if order.dry_run or is_skipped or "next" in state:
        return
    if (expected := life_cycle.expected()) is None:
        return
    high = expected["dollars_high"]
    dollars = Interval(expected["dollars"], 0.0, math.inf if high is None else high)
    input_limit = order.max_cost
    refuse_above(
        lambda some: some,
        dollars,
        limit if input_limit is None else input_limit,
        job_input,
        input_limit is not None,
    )
