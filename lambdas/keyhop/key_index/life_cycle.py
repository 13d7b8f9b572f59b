"""The steps of BuildKeyIndex, AuditKeyIndex and RemoveKeyIndex, as one function carries them out.

Each step may be repeated. `next` in its result names what follows: "wait" (then the same step
again), "walk" (a run of EnumerateKeys, whose input is there too), "finish", "end".
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from keyhop.dynamodb.capacity import UNITS_PER_BLOCK
from keyhop.dynamodb.client import DynamoDB, Endpoint
from keyhop.dynamodb.tables import describe
from keyhop.dynamodb.usage import Tally
from keyhop.errors import CannotStart
from keyhop.jobs.estimate import estimate
from keyhop.jobs.layout import Choice, Wishes
from keyhop.jobs.runs import Execution, Runs, dynamodb_for
from keyhop.jobs.work import EXAMPLES
from keyhop.jobs.worker import now
from keyhop.key_index.fleet import KeyIndexes
from keyhop.key_index.index import (
    Step,
    TableState,
    check_has_one,
    look_up,
    step_towards_built,
    step_towards_removed,
)
from keyhop.key_index.report import build_cost, walk_report
from keyhop.key_index.request import Order
from keyhop.key_index.sentinel import INDEX
from keyhop.key_index.task import EXAMPLES as MOST_EXAMPLES
from keyhop.key_index.task import Walk
from keyhop.key_index.validation import check_all_were_free, check_items, check_place
from keyhop.scan.rate_limit import Budget
from keyhop.scan.reader import PageReader
from keyhop.storage.s3 import Bucket
from keyhop.streams.event_source import Mappings

WAIT_SECONDS = 10
LONG_WAIT_SECONDS = 60
MOST_REMOVALS = 5
"""Walks of a removal: if rows turn up again and again, somebody else puts sentinels."""

ROWS_AT_ONCE = 50
REPORT = "audit.json"
"""Beside the manifest of the audit's run; it names examples, and goes with the run."""

CONNECTIONS = 16


@dataclass(frozen=True, slots=True)
class _Work:
    """What a step works on. execution: the id of the state machine's execution."""

    order: Order
    table: TableState
    client: DynamoDB
    endpoint: Endpoint
    execution: str
    state: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Manager:
    """Carries out the steps. settle_seconds: longer than a keeper can still be at work."""

    runs: Runs
    tables: list[str]
    indexes: KeyIndexes
    mappings: Mappings
    settle_seconds: int
    drift: Callable[[int], None] = lambda found: None

    def step(
        self, action: str, step: str, given: object, execution: Execution, state: Mapping[str, Any]
    ) -> dict[str, Any]:
        """One step of a state machine; returns the next state. Raises CannotStart and its kin."""
        order = Order.parse(action, given)
        order = replace(order, table=self.indexes.checked(order.table))
        steps = {
            ("build", "prepare"): self._prepare_build,
            ("audit", "prepare"): self._prepare_audit,
            ("remove", "prepare"): self._prepare_removal,
            ("build", "finish"): self._finish_audit,
            ("audit", "finish"): self._finish_audit,
            ("remove", "finish"): self._finish_removal,
        }
        client, endpoint = dynamodb_for(order.table, self.tables, CONNECTIONS)
        table = look_up(client, endpoint, order.table)
        return steps[action, step](_Work(order, table, client, endpoint, execution.id, state))

    def _prepare_build(self, work: _Work) -> dict[str, Any]:
        order, client, endpoint = work.order, work.client, work.endpoint
        sentinel = self.indexes.sentinel(order.table, work.table.space)
        if order.plan_only:
            target = replace(describe(client, endpoint, order.table), sentinel=sentinel)
            reader = PageReader(client, target, Budget(order.max_read_rate), endpoint=endpoint)
            return {"next": "planned", "estimate": _planned(order, reader)}
        if work.table.index is None:
            check_items(client, endpoint, order.table, sentinel)
        check_place(client, endpoint, work.table, order.table, sentinel)
        self.indexes.book(work.table).note_setup(work.table.shape(), sentinel)
        table, step = step_towards_built(client, endpoint, order.table, with_stream=True)
        if step.done and table.stream is not None and not self.mappings.attach(table.stream):
            step = Step(False, "attaching the keeper")
        if not step.done:
            return self._wait(step)
        return {
            "next": "walk",
            "walk": order.run_input("build", work.execution),
            "audit": order.run_input("audit", work.execution),
        }

    def _prepare_audit(self, work: _Work) -> dict[str, Any]:
        order, table = work.order, work.table
        if table.index is None and order.scheduled:
            why = "the table has no key index: start BuildKeyIndex"
            return {"next": "end", "result": {"table": order.table, "skipped": why}}
        check_has_one(table)
        if table.stream is None:
            raise CannotStart(
                f"The stream of table {order.table!r} is off, so no keeper can follow it: start "
                f"BuildKeyIndex, which turns it on again."
            )
        self._check_place(work)
        if not self.mappings.attach(table.stream):
            return self._wait(Step(False, "attaching the keeper to the table's present stream"))
        return {"next": "walk", "audit": order.run_input("audit", work.execution)}

    def _prepare_removal(self, work: _Work) -> dict[str, Any]:
        order, table = work.order, work.table
        # First of all: from the next step on the index holds less than the table.
        self.indexes.book(table).void_audit()
        if not self.mappings.detach(_stream_of(table)):
            return self._wait(Step(False, "detaching the keeper"))
        setup = self.indexes.book(table).setup() or {}
        if setup.get("emptied") and table.index in (None, "DELETING"):
            return {"next": "finish", "rounds": 1}  # an earlier removal had come so far
        if table.index is None and not setup and not order.sweep:
            why = 'there is no key index, nor a record of one; "sweep": true looks for sentinels'
            return {"next": "end", "result": {"table": order.table, "skipped": why}}
        if table.index is not None and not table.is_index_ready:
            return self._wait(Step(False, f"waiting for the index, which is {table.index}"))
        self._check_place(work)
        # Without an index the walk goes over the table, and reads each collection's sentinel.
        return self._removal(work, 1)

    def _removal(self, work: _Work, round_: int) -> dict[str, Any]:
        return {
            "next": "walk",
            "walk": work.order.run_input("remove", work.execution),
            "rounds": round_,
            "settleSeconds": self.settle_seconds,
        }

    def _finish_audit(self, work: _Work) -> dict[str, Any]:
        order, table = work.order, work.table
        run = work.state["audited"]["run"]
        report = self._report(order.walk("audit"), run)
        report["keeper"] = bool(self.mappings.of_table(_stream_of(table)))
        store = self.runs.store(run)
        store.replace(REPORT, json.dumps(report, ensure_ascii=False).encode())
        self.indexes.book(table).note_audit(report)
        self.drift(report["drift"])
        told = {
            "table": order.table,
            "audit": without_examples(report),
            "report": store.url(REPORT),
        }
        if order.action == "build":
            built = self._report(order.walk("build"), work.state["walked"]["run"])
            check_all_were_free(built)
            told["build"] = without_examples(built)
        return {"next": "end", "result": told}

    def _finish_removal(self, work: _Work) -> dict[str, Any]:
        order, table = work.order, work.table
        book = self.indexes.book(table)
        if table.is_index_ready:
            if self._rows_left(work):
                if work.state["rounds"] < MOST_REMOVALS:
                    return self._removal(work, work.state["rounds"] + 1)
                raise CannotStart(
                    "Sentinels turn up again and again while they are deleted: somebody else "
                    "builds or keeps the index; end that, and start again."
                )
            book.note_emptied()
        before = (book.setup() or {}).get("before")
        was_off = before is not None and before["stream_view"] is None
        ours = was_off and table.stream is not None and not self.mappings.others(table.stream)
        table, step = step_towards_removed(
            work.client, work.endpoint, order.table, with_stream=ours
        )
        if not step.done:
            return {**self._wait(step), "rounds": work.state["rounds"]}
        book.forget()
        result = {
            "table": order.table,
            "index": None,
            "sentinels": 0,
            "stream": table.stream,
            "mappings": len(self.mappings.of_table(_stream_of(table))),
            "as_before": before is None or table.shape() == before,
        }
        return {"next": "end", "result": result}

    def _check_place(self, work: _Work) -> None:
        sentinel = self.indexes.sentinel(work.order.table, work.table.space)
        check_place(work.client, work.endpoint, work.table, work.order.table, sentinel)

    def _wait(self, step: Step) -> dict[str, Any]:
        # An index can take a day, and an execution's history has room for 25,000 events.
        seconds = LONG_WAIT_SECONDS if "for the index" in step.says else WAIT_SECONDS
        seconds = min(seconds, self.settle_seconds)
        return {"next": "wait", "seconds": seconds, "says": step.says}

    def _rows_left(self, work: _Work) -> bool:
        """Whether the index still has rows of sentinels; reads it to the end, or to the first."""
        order, table = work.order, work.table
        sentinel = self.indexes.sentinel(order.table, table.space)
        target = replace(
            describe(work.client, work.endpoint, order.table, INDEX), sentinel=sentinel
        )
        reader = PageReader(
            work.client, target, Budget(order.max_read_rate), endpoint=work.endpoint
        )
        return has_rows(reader)

    def _report(self, walk: Walk, run: str) -> dict[str, Any]:
        """The report of a walk, from the manifest of its run."""
        manifest = self.runs.log(run).manifest()
        if manifest is None:
            raise CannotStart(f"The run {run!r} of the walk is not finished: start again.")
        tally = Tally.from_json(manifest)
        return walk_report(
            walk, tally, manifest["seconds"], now(), examples_of(self.runs.store(run))
        )


def without_examples(report: Mapping[str, Any]) -> dict[str, Any]:
    """For the output of an execution, which holds no keys."""
    return {name: told for name, told in report.items() if name != "examples"}


def has_rows(reader: PageReader) -> bool:
    """Whether there is a row with the sentinels' sort key in the index that `reader` reads."""
    start = None
    while True:
        page = reader.read(0, 1, start, ROWS_AT_ONCE, UNITS_PER_BLOCK)
        if page.keys:
            return True
        start = page.next
        if start is None:
            return False


def examples_of(store: Bucket) -> dict[str, list[Any]]:
    """A few keys of each kind of drift, from what the workers have noted."""
    found: dict[str, list[Any]] = {}
    for name in sorted(store.sizes(EXAMPLES)):
        content = store.read(name)
        for kind, keys in json.loads(content or b"{}").items():
            named = found.setdefault(kind, [])
            named += [key for key in keys if key not in named][: MOST_EXAMPLES - len(named)]
    return found


def _planned(order: Order, reader: PageReader) -> dict[str, Any]:
    found = estimate(reader, Choice("skip", "a build walks by hops"), Wishes())
    cost = build_cost(found.findings.keys.mean, found.costs["skip"].units.mean)
    return {
        "table": order.table,
        "keys": found.to_json()["keys"],
        **cost,
        "secondsOfWriting": round(cost["write_units"] / order.max_write_rate, 1),
        "spent": {"read_units": found.spent_units},
    }


def _stream_of(table: TableState) -> str:
    """The table's stream, or an ARN like it: mappings to streams of yesterday go as well."""
    return table.stream or f"{table.identity.partition('#')[0]}/stream/none"
