"""What `keyhop index` does: build, audit, remove, status, reconcile."""

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from keyhop.cli.exit_status import DONE, DRIFT_FOUND, FAILED
from keyhop.cli.progress import Display
from keyhop.cli.session import Stop, connection_of, stop_on_signals
from keyhop.cli.summary import check_report_path, write_report
from keyhop.dynamodb.client import Connection, aws_client
from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.tables import Table
from keyhop.errors import CannotStart
from keyhop.jobs.journal import Journal
from keyhop.jobs.local import LocalJob, nowhere, opened
from keyhop.jobs.plan import Place
from keyhop.key_index.belief import why_not
from keyhop.key_index.collections import Collections
from keyhop.key_index.index import check_has_one, is_ready, status_of, table_with_index
from keyhop.key_index.keeper import keep
from keyhop.key_index.life_cycle import LifeCycle
from keyhop.key_index.protocol import GRACE_SECONDS
from keyhop.key_index.registry import Registry, local_registry
from keyhop.key_index.report import report_text
from keyhop.key_index.request import Action, Order, parse_walk
from keyhop.key_index.sentinel import INDEX, Sentinel
from keyhop.key_index.task import Kind, WalkTask
from keyhop.key_index.validation import check_place
from keyhop.storage.local import Directory
from keyhop.streams.dead_letters import DeadLetters
from keyhop.streams.event_source import keepers_of

POLL_SECONDS = 2.0
LOCAL_POLL_SECONDS = 0.2
SETTLE_SECONDS = 0
"""A keeper that has to be waited for is not detached from here: the command refuses it."""

STATES = {"walk": "walked", "audit": "audited"}
"""Of each job that a step names: where the next step finds its run."""

Keepers = Callable[[Table], list[str] | None]
"""Names of keepers that follow a table; None if that cannot be seen."""


@dataclass(frozen=True, slots=True)
class SeenKeeper:
    """A keeper of some deployment, which the command only looks at (life_cycle.Keeper).

    believes_none: the user knows of none where it cannot be seen.
    """

    turns_stream_on: ClassVar[bool] = False
    keepers: Keepers
    believes_none: bool = False

    def attach(self, table: Table) -> bool:
        """Keeper.attach: there is nothing to attach."""
        return True

    def check_may_detach(self, table: Table) -> None:
        """Keeper.check_may_detach."""
        keepers = self.keepers(table)
        if keepers:
            raise CannotStart(
                f"A keeper follows the table's stream and would put the sentinels back: "
                f"{', '.join(keepers)}. Start the state machine RemoveKeyIndex of its deployment."
            )
        if keepers is None and not self.believes_none:
            raise CannotStart(
                "It cannot be seen from here whether a keeper follows the table's stream, which "
                "would put the sentinels back: allow lambda:ListEventSourceMappings, or, if you "
                "know of none, give --no-keeper."
            )

    def detach(self, table: Table) -> bool:
        """Keeper.detach: there is nothing to detach."""
        return True

    def follows(self, table: Table) -> bool:
        """Keeper.follows."""
        return bool(self.keepers(table))

    def shares_stream(self, table: Table) -> bool:
        """Keeper.shares_stream."""
        return True

    def mappings(self, table: Table) -> int:
        """Keeper.mappings."""
        return len(self.keepers(table) or ())


@dataclass(slots=True)
class IndexCommand:
    """One command on the key index of one table."""

    options: argparse.Namespace
    stop: Stop
    connection: Connection = field(init=False)
    table: Table = field(init=False)
    registry: Registry = field(init=False)
    said: str = ""

    def __post_init__(self) -> None:
        self.connection = connection_of(self.options)
        self.table = table_with_index(self.connection, self.options.table)
        self.registry = local_registry(self.table)

    def sentinel(self, table: Table) -> Sentinel:
        """Where sentinels are, or are to be."""
        place = getattr(self.options, "sentinel", None)
        known = (self.registry.setup() or {}).get("sentinel")
        if place is None and known is not None:
            return Sentinel.from_json(known)
        return Sentinel.of(table.space, place)

    def keepers(self, table: Table) -> list[str] | None:
        """Keepers that follow the table; None if that cannot be seen."""
        return keepers_of(table.stream, self.connection.endpoint)

    def order(self, action: Action) -> Order:
        """The flags as an order."""
        options = self.options
        return Order(
            action,
            options.table,
            max_write_rate=options.max_write_rate,
            max_read_rate=options.max_read_rate,
            grace_seconds=getattr(options, "grace", GRACE_SECONDS),
            plan_only=getattr(options, "plan", False),
            repair=not getattr(options, "no_repair", False),
            sweep=getattr(options, "sweep", False),
        )

    def say(self, text: str) -> None:
        """Tell the person, on standard error."""
        if not self.options.quiet:
            print(text, file=sys.stderr)

    def run(self, action: Action) -> tuple[Mapping[str, Any], dict[str, dict[str, Any]]]:
        """The steps of an action, to their end; its result, and a report of each walk."""
        reports: dict[str, dict[str, Any]] = {}
        journals: dict[str, Journal] = {}
        state: dict[str, Any] = {}
        step, following = "prepare", "prepare"
        while following != "end":
            life_cycle = self.life_cycle(action, journals)
            state |= life_cycle.step(step, state)
            following = state["next"]
            if following == "wait":
                self._wait(state["says"])
            elif following == "walk":
                for name, run in STATES.items():
                    if name in state:
                        kind: Kind = state[name]["walk"]["kind"]
                        journals[run] = self._walk(kind, state[name], state.get("rounds", 1))
                        state[run] = {"run": run}
                        report = life_cycle.report_of(kind, journals[run])
                        reports[kind] = _added(reports.get(kind), report)
            step = "finish" if following in ("walk", "finish") or "rounds" in state else step
        return state["result"], reports

    def life_cycle(self, action: Action, journals: Mapping[str, Journal]) -> LifeCycle:
        """The life cycle of the table, as it is now."""
        self.table = table_with_index(self.connection, self.options.table)
        return LifeCycle(
            self.order(action),
            self.connection,
            self.table,
            self.sentinel,
            self.registry,
            SeenKeeper(self.keepers, getattr(self.options, "no_keeper", False)),
            lambda run: journals[run],
            SETTLE_SECONDS,
        )

    def _walk(self, kind: Kind, given: Mapping[str, Any], round_: int) -> Journal:
        """One walk, with progress; in a directory of its own it can be gone on with."""
        name = kind if round_ == 1 else f"{kind}-{round_}"
        path = self.options.output and Path(self.options.output) / name
        journal = opened(path, self.options.resume) if path else nowhere()
        try:
            job = LocalJob(
                parse_walk(given),
                {"key_index": partial(WalkTask, sentinel=self.sentinel(self.table))},
                self.connection,
                journal,
                self.stop.event,
                self.options.give_up_after,
                Place(str(path), f"The run in {path}", "--"),
            )
            if self.options.resume and journal.is_finished():
                return journal
            job.prepare()
            job.begin()
            with Display(job.reader, job.progress, self.options.quiet) as display:
                if not job.work(display.update):
                    raise Stopped
            job.finish()
            return journal
        finally:
            if isinstance(journal.store, Directory):
                journal.store.unlock()

    def _wait(self, says: str) -> None:
        if says != self.said:
            self.say(f"{says} ...")
            self.said = says
        local = self.connection.endpoint.is_loopback
        if self.stop.event.wait(LOCAL_POLL_SECONDS if local else POLL_SECONDS):
            raise Stopped


def _added(before: Mapping[str, Any] | None, report: dict[str, Any]) -> dict[str, Any]:
    """A walk that took several rounds: what all of them came to."""
    if before is None:
        return report
    sums = ("deleted", "collections", "requests", "strong_reads")
    figures = ("read_units", "write_units", "dollars", "seconds")
    return {**report, **{name: round(before[name] + report[name], 9) for name in sums + figures}}


def build(options: argparse.Namespace) -> int:
    """Add the index, put a sentinel for each key, audit."""
    return _run(options, _build)


def audit(options: argparse.Namespace) -> int:
    """Walk the table and compare."""
    return _run(options, _audit)


def remove(options: argparse.Namespace) -> int:
    """Delete the sentinels, then the index."""
    return _run(options, _remove)


def status(options: argparse.Namespace) -> int:
    """Say what there is."""
    return _run(options, _status)


def reconcile(options: argparse.Namespace) -> int:
    """Work what lies in the keeper's failure queue."""
    return _run(options, _reconcile)


def _run(options: argparse.Namespace, work: Callable[[IndexCommand], int]) -> int:
    if options.report:
        check_report_path(options.report)
    with stop_on_signals() as stop:
        try:
            return work(IndexCommand(options, stop))
        except Stopped:
            print("keyhop: Interrupted. Start the same command again.", file=sys.stderr)
            return stop.status


def _build(command: IndexCommand) -> int:
    if command.options.plan:
        return _plan(command)
    _, reports = command.run("build")
    command.say(report_text(command.table.name, reports["build"]))
    result = _audited(command, reports["audit"], reports)
    if not command.keepers(command.table):
        command.say(
            "No keeper that can be seen from here follows the table's stream, so the index is true "
            "as of now: deploy one with keyIndex (README), or audit before you read it."
        )
    return result


def _plan(command: IndexCommand) -> int:
    life_cycle = command.life_cycle("build", {})
    estimate = life_cycle.step("prepare", {})["estimate"]
    spent = estimate.pop("spent")["read_units"]
    estimate["seconds_of_writing"] = estimate.pop("secondsOfWriting")
    if command.options.report:
        write_report(command.options.report, estimate)
    keys = estimate["keys"]
    print(
        f"{command.table.name}: about {keys['estimate']:,} keys ({keys['low']:,} to "
        f"{keys['high'] or '?'}); a build would write {estimate['write_units']:,.0f} WRU and read "
        f"{estimate['read_units']:,.0f} RRU, its audit included: ${estimate['dollars']:,.4f} "
        f"({estimate['price']}), and write for {estimate['seconds_of_writing']:,.0f} s. Looked at "
        f"for {spent:g} RRU."
    )
    return DONE


def _audit(command: IndexCommand) -> int:
    _, reports = command.run("audit")
    return _audited(command, reports["audit"], reports["audit"])


def _audited(command: IndexCommand, audit: dict[str, Any], report: Mapping[str, Any]) -> int:
    audit["keeper"] = bool(command.keepers(command.table))
    command.say(report_text(command.table.name, audit))
    if command.options.report:
        write_report(command.options.report, report)
    return DRIFT_FOUND if audit["drift"] else DONE


def _remove(command: IndexCommand) -> int:
    result, reports = command.run("remove")
    if "skipped" in result:
        raise CannotStart(
            f"Table {command.table.bare_name!r} has no key index, and none is on record here. If "
            f"sentinels may be left in it, give --sweep: that reads each collection, for about 1.5 "
            f"RRU a key."
        )
    removed = reports.get("remove") or {"kind": "remove", **result}
    removed["as_before"] = result["as_before"]
    if command.options.report:
        write_report(command.options.report, removed)
    if "remove" in reports:
        command.say(report_text(command.table.name, removed))
    command.say(f"The index {INDEX} is gone, and no sentinel is left.")
    return DONE


def _reconcile(command: IndexCommand) -> int:
    options, table = command.options, command.table
    check_has_one(table)
    sentinel = command.sentinel(table)
    check_place(command.connection, table, sentinel)
    endpoint = command.connection.endpoint
    collections = Collections(command.connection, table.name, sentinel, stop=command.stop.event)
    letters = DeadLetters(
        aws_client("sqs", endpoint),
        aws_client("dynamodbstreams", endpoint),
        options.queue,
        table.bare_name,
    )
    done = letters.work(
        lambda records, on_failure: keep(records, collections, on_failure), options.discard_old
    )
    if options.report:
        write_report(options.report, done.to_json())
    command.say(done.text(table.name))
    return DONE if done.is_clear else FAILED


def _status(command: IndexCommand) -> int:
    table = command.table
    audit = command.registry.audit()
    keepers = command.keepers(table)
    why = why_not(audit) if is_ready(table) else "there is no ACTIVE key index"
    index = table.index(INDEX)
    rows = 0 if index is None else int(index.get("ItemCount", 0))
    report = {
        "table": table.bare_name,
        "index": status_of(table),
        "rows_reported": rows,
        "stream": table.stream,
        "keepers": keepers,
        "audit": audit,
        "auto_uses_it": why is None,
    }
    if command.options.report:
        write_report(command.options.report, report)
    followed = "not to be seen from here" if keepers is None else ", ".join(keepers) or "none"
    some = f", {rows:,} rows as of some hours ago" if index else ""
    lines = [
        table.bare_name,
        f"  index     {INDEX}: {status_of(table) or 'there is none'}{some}",
        f"  stream    {f'on, {table.stream_view}' if table.stream else 'off'}",
        f"  keeper    {followed}",
        f"  audit     {_audit_text(audit)}",
        f"  auto      {'reads it' if why is None else f'does not read it: {why}'}",
    ]
    print("\n".join(lines))
    return DONE


def _audit_text(audit: Mapping[str, Any] | None) -> str:
    if audit is None:
        return "none on record here"
    return (
        f"{audit['ended']}: {audit['collections']:,} collections, missing "
        f"{audit['missing']:,}, surplus {audit['surplus']:,}, occupied {audit['occupied']:,}"
    )
