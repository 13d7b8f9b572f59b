"""What `keyhop index` does: build, audit, remove, status, reconcile."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from typing import Any, ClassVar

from keyhop.cli.exit_status import DONE, DRIFT_FOUND, FAILED
from keyhop.cli.local_runner import job_in, work
from keyhop.cli.options import Options
from keyhop.cli.session import Stop, connection_of, stop_on_signals
from keyhop.cli.summary import check_report_path, write_report
from keyhop.dynamodb.client import Connection, aws_client
from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.tables import Table
from keyhop.errors import CannotStart
from keyhop.jobs.journal import Journal
from keyhop.key_index.collections import Collections
from keyhop.key_index.index import check_has_one, table_with_index
from keyhop.key_index.keeper import keep
from keyhop.key_index.life_cycle import LifeCycle, all_steps
from keyhop.key_index.registry import Registry, local_registry
from keyhop.key_index.report import (
    estimate_text,
    report_text,
    status_report,
    with_earlier_round,
)
from keyhop.key_index.request import Action, Audit, Build, Order, Remove, parse_walk
from keyhop.key_index.sentinel import INDEX, Sentinel
from keyhop.key_index.task import WalkTask
from keyhop.key_index.validation import check_place
from keyhop.streams.dead_letters import DeadLetters
from keyhop.streams.event_source import keepers_of

POLL_SECONDS = 2.0
LOCAL_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class OthersKeeper:
    """A keeper of some deployment, which the command only looks at (life_cycle.Keeper).

    keepers: names of keepers that follow a table; None if that cannot be seen. believes_none: the
    user knows of none then.
    """

    turns_stream_on: ClassVar[bool] = False
    keepers: Callable[[Table], list[str] | None]
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

    def mappings(self, table: Table) -> int:
        """Keeper.mappings."""
        return len(self.keepers(table) or ())

    def shares_stream(self, table: Table) -> bool:
        """Keeper.shares_stream."""
        return True


@dataclass(slots=True)
class IndexCommand:
    """One command on the key index of one table. reports: of each kind of walk, once it is done."""

    options: Options
    stop: Stop
    connection: Connection = field(init=False)
    table: Table = field(init=False)
    registry: Registry = field(init=False)
    reports: dict[str, dict[str, Any]] = field(default_factory=dict)
    _journals: dict[str, Journal] = field(default_factory=dict)
    _last_wait: str = ""

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

    def say(self, text: str) -> None:
        """Tell the person, on standard error."""
        if not self.options.quiet:
            print(text, file=sys.stderr)

    def report(self, report: Mapping[str, Any]) -> None:
        """Write the --report, if one is wanted."""
        if self.options.report:
            write_report(self.options.report, report)

    def run(self, action: Action) -> Mapping[str, Any]:
        """The steps of an action, to their end; returns the last one's state."""
        options = self.options
        common = (options.table, options.max_write_rate, options.max_read_rate)
        order: Order
        if action == "build":
            order = Build(*common, plan_only=options.plan)
        elif action == "audit":
            order = Audit(*common, grace_seconds=options.grace, repair=not options.no_repair)
        else:
            order = Remove(*common, sweep=options.sweep)
        return all_steps(partial(self._life_cycle, order), self._walk, self._wait)

    def _life_cycle(self, order: Order) -> LifeCycle:
        """The life cycle of the table, as it is now."""
        self.table = table_with_index(self.connection, self.options.table)
        return LifeCycle(
            order,
            self.connection,
            self.table,
            self.sentinel,
            self.registry,
            OthersKeeper(self.keepers, getattr(self.options, "no_keeper", False)),
            self._journals.__getitem__,
        )

    def _walk(self, life_cycle: LifeCycle, given: Mapping[str, Any]) -> str:
        """One walk, with progress; in a directory of its own it can be gone on with."""
        options, kind = self.options, given["walk"]["kind"]
        rounds = sum(name.startswith(kind) for name in self._journals)
        name = f"{kind}-{rounds + 1}" if rounds else kind
        path = Path(options.output) / name if options.output else None
        tasks = {"key_index": partial(WalkTask, sentinel_of=self.sentinel)}
        with job_in(path, parse_walk(given), tasks, self.connection, options, self.stop) as job:
            job.prepare(may_be_finished=options.resume)
            if not job.journal.is_finished():
                job.begin()
                if not work(job, options):
                    raise Stopped
                job.finish()
            report = life_cycle.report_of(kind, job.journal)
        self._journals[name] = job.journal
        self.reports[kind] = with_earlier_round(report, self.reports.get(kind))
        return name

    def _wait(self, says: str) -> None:
        if says != self._last_wait:
            self.say(f"{says} ...")
            self._last_wait = says
        local = self.connection.endpoint.is_loopback
        if self.stop.event.wait(LOCAL_POLL_SECONDS if local else POLL_SECONDS):
            raise Stopped


def _action(act: Callable[[IndexCommand], int]) -> Callable[[Options], int]:
    """An action of the command line, which signals end cleanly."""

    @wraps(act)
    def run(options: Options) -> int:
        if options.report:
            check_report_path(options.report)
        with stop_on_signals() as stop:
            try:
                return act(IndexCommand(options, stop))
            except Stopped:
                print("keyhop: Interrupted. Start the same command again.", file=sys.stderr)
                return stop.status

    return run


@_action
def build(command: IndexCommand) -> int:
    """Add the index, put a sentinel for each key, audit; or only say what that would cost."""
    state = command.run("build")
    if command.options.plan:
        estimate = state["estimate"]
        print(estimate_text(command.table.name, estimate))
        del estimate["spent"]
        estimate["seconds_of_writing"] = estimate.pop("secondsOfWriting")
        command.report(estimate)
        return DONE
    command.say(report_text(command.table.name, command.reports["build"]))
    status = _audited(command, state["result"], command.reports)
    if not state["result"]["audit"]["keeper"]:
        command.say(
            "No keeper that can be seen from here follows the table's stream, so the index is true "
            "as of now: deploy one with keyIndex (README), or audit before you read it."
        )
    return status


@_action
def audit(command: IndexCommand) -> int:
    """Compare the index with the table; repair what is wrong."""
    result = command.run("audit")["result"]
    return _audited(command, result, command.reports["audit"])


def _audited(command: IndexCommand, result: Mapping[str, Any], report: Mapping[str, Any]) -> int:
    audit = command.reports["audit"]
    audit["keeper"] = result["audit"]["keeper"]
    command.say(report_text(command.table.name, audit))
    command.report(report)
    return DRIFT_FOUND if audit["drift"] else DONE


@_action
def remove(command: IndexCommand) -> int:
    """Delete the sentinels, then the index."""
    result = command.run("remove")["result"]
    if "skipped" in result:
        raise CannotStart(
            f"Table {command.table.bare_name!r} has no key index, and none is on record here. If "
            f"sentinels may be left in it, give --sweep: that reads each collection, for about 1.5 "
            f"RRU a key."
        )
    walked = command.reports.get("remove")
    removed = walked or {"kind": "remove", **result}
    command.report({**removed, "as_before": result["as_before"]})
    if walked:
        command.say(report_text(command.table.name, walked))
    command.say(f"The index {INDEX} is gone, and no sentinel is left.")
    return DONE


@_action
def reconcile(command: IndexCommand) -> int:
    """Repair what the messages in the keeper's failure queue are about."""
    options, table, connection = command.options, command.table, command.connection
    check_has_one(table)
    sentinel = command.sentinel(table)
    check_place(connection, table, sentinel)
    collections = Collections(connection, table.name, sentinel, stop=command.stop.event)
    letters = DeadLetters(
        aws_client("sqs", connection.endpoint),
        aws_client("dynamodbstreams", connection.endpoint),
        options.queue,
        table.bare_name,
    )
    done = letters.work(
        lambda records, on_failure: keep(records, collections, on_failure), options.discard_old
    )
    command.report(done.to_json())
    command.say(done.text(table.name))
    return DONE if done.is_clear else FAILED


@_action
def status(command: IndexCommand) -> int:
    """Show the state of the key index, and what the last audit found."""
    table = command.table
    report, text = status_report(table, command.registry.audit(), command.keepers(table))
    command.report(report)
    print(text)
    return DONE
