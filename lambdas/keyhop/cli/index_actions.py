"""What `keyhop index` does: build, audit, remove, status, reconcile."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from keyhop.cli.exit_status import DONE, DRIFT_FOUND, FAILED
from keyhop.cli.progress import Display
from keyhop.cli.session import Limits, Stop, reader_of, stop_on_signals
from keyhop.cli.summary import check_report_path, write_report
from keyhop.dynamodb.client import DynamoDB, Endpoint, aws_client, dynamodb_client
from keyhop.dynamodb.tables import DEFAULT_PATIENCE_SECONDS
from keyhop.dynamodb.usage import Tally
from keyhop.errors import CannotStart
from keyhop.jobs.estimate import estimate
from keyhop.jobs.layout import MOST_WORKERS, Choice, Wishes
from keyhop.jobs.worker import Progress, now
from keyhop.key_index.collections import Collections
from keyhop.key_index.index import (
    TableState,
    check_can_have_one,
    check_has_one,
    look_up,
    step_towards_built,
    step_towards_removed,
)
from keyhop.key_index.local_walk import Pass, target_of_walk, writes_of
from keyhop.key_index.protocol import GRACE_SECONDS
from keyhop.key_index.registry import Book, local_book, why_not
from keyhop.key_index.report import build_cost, report_text, walk_report
from keyhop.key_index.sentinel import INDEX, Sentinel
from keyhop.key_index.task import Walk
from keyhop.key_index.validation import check_all_were_free, check_items, check_place
from keyhop.scan.reader import PageReader, Stopped
from keyhop.streams.dead_letters import Failures
from keyhop.streams.event_source import keepers_of

POLL_SECONDS = 2.0
CONNECTIONS = 2 * MOST_WORKERS


class Table:
    """The table of one command, with its client, its state and its book."""

    def __init__(self, options: argparse.Namespace, stop: Stop) -> None:
        self.options = options
        self.stop = stop
        endpoint = Endpoint(options.region, options.profile, options.endpoint_url)
        self.client: DynamoDB = dynamodb_client(endpoint, CONNECTIONS)
        self.endpoint = replace(endpoint, region=self.client.region)
        self.name: str = options.table
        self.state: TableState = look_up(self.client, self.endpoint, self.name)
        self.book: Book = local_book(self.state.name, self.state.identity)
        self.setup = self.book.setup()

    def sentinel(self) -> Sentinel:
        """Where sentinels are, or are to be."""
        place = getattr(self.options, "sentinel", None)
        known = (self.setup or {}).get("sentinel")
        if place is None and known is not None:
            return Sentinel.from_json(known)
        return Sentinel.of(self.state.space, place)

    def checked_sentinel(self) -> Sentinel:
        """The same; raises CannotStart if the index was built with another one."""
        sentinel = self.sentinel()
        check_place(self.client, self.endpoint, self.state, self.name, sentinel)
        return sentinel

    @property
    def keepers(self) -> list[str] | None:
        """Keepers that follow the table; None if that cannot be seen."""
        return keepers_of(self.state.stream, self.endpoint)

    def walk(self, walk: Walk, sentinel: Sentinel) -> dict[str, Any]:
        """Walk over the table, with progress."""
        reader = self.reader(walk, sentinel)
        done = Pass(walk, reader, self.collections(walk, sentinel), self._wishes())
        display: list[Display] = []

        def follow(progress: Progress) -> Callable[[], None]:
            display.append(Display(reader, progress, self.options.quiet))
            return display[0].update

        try:
            return done.run(follow)
        finally:
            for shown in display:
                shown.close()

    def reader(self, walk: Walk, sentinel: Sentinel) -> PageReader:
        """Reads pages for a walk."""
        target = target_of_walk(self.client, self.endpoint, self.name, sentinel, walk)
        limits = Limits(self.options.max_read_rate, None, self.options.give_up_after)
        return reader_of(self.client, target, self.endpoint, limits, self.stop)

    def collections(self, walk: Walk, sentinel: Sentinel) -> Collections:
        """Calls on single collections."""
        return Collections(
            self.client,
            self.name,
            sentinel,
            writes=writes_of(walk),
            endpoint=self.endpoint,
            patience=getattr(self.options, "give_up_after", DEFAULT_PATIENCE_SECONDS),
            stop=self.stop.event,
        )

    def say(self, text: str) -> None:
        """Tell the person, on standard error."""
        if not self.options.quiet:
            print(text, file=sys.stderr)

    def wait_for(self, step: Callable[..., Any]) -> TableState:
        """Repeat a step until nothing is left to do."""
        said = ""
        while True:
            state, told = step(self.client, self.endpoint, self.name, False)
            if told.done:
                return state  # type: ignore[no-any-return]
            if told.says != said:
                self.say(f"{told.says} ...")
                said = told.says
            if self.stop.event.wait(0.2 if self.endpoint.is_loopback else POLL_SECONDS):
                raise Stopped

    def _wishes(self) -> Wishes:
        return Wishes(max_rate=self.options.max_read_rate)


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


def _run(options: argparse.Namespace, work: Callable[[Table], int]) -> int:
    if options.report:
        check_report_path(options.report)
    with stop_on_signals() as stop:
        try:
            return work(Table(options, stop))
        except Stopped:
            print("keyhop: Interrupted. Start the same command again.", file=sys.stderr)
            return stop.status


def _build(table: Table) -> int:
    options = table.options
    check_can_have_one(table.state)
    sentinel = table.checked_sentinel()
    walk = Walk("build", max_write_rate=options.max_write_rate)
    if options.plan:
        return _plan(table, table.reader(walk, sentinel))
    if table.state.index is None:
        check_items(table.client, table.endpoint, table.name, sentinel)
    table.book.check_writable()
    table.book.note_setup(table.state.shape(), sentinel)
    table.wait_for(step_towards_built)
    built = table.walk(walk, sentinel)
    table.say(report_text(table.name, built))
    check_all_were_free(built)
    grace = GRACE_SECONDS if table.keepers else 0.0
    audited = table.walk(Walk("audit", grace_seconds=grace), sentinel)
    result = _noted(table, audited, {"build": built, "audit": audited})
    if not table.keepers:
        table.say(
            "No keeper that can be seen from here follows the table's stream, so the index is true "
            "as of now: deploy one with keyIndex (README), or audit before you read it."
        )
    return result


def _plan(table: Table, reader: PageReader) -> int:
    found = estimate(reader, Choice("skip", "a build walks by hops"), Wishes())
    cost = build_cost(found.findings.keys.mean, found.costs["skip"].units.mean)
    told = {
        "table": table.name,
        "keys": found.to_json()["keys"],
        **cost,
        "seconds_of_writing": round(cost["write_units"] / table.options.max_write_rate, 1),
    }
    if table.options.report:
        write_report(table.options.report, told)
    keys = told["keys"]
    print(
        f"{table.name}: about {keys['estimate']:,} keys ({keys['low']:,} to "
        f"{keys['high'] or '?'}); a build would write {cost['write_units']:,.0f} WRU and read "
        f"{cost['read_units']:,.0f} RRU, its audit included: ${cost['dollars']:,.4f} "
        f"({cost['price']}), and write for {told['seconds_of_writing']:,.0f} s. Looked at for "
        f"{found.spent_units:g} RRU."
    )
    return DONE


def _audit(table: Table) -> int:
    options = table.options
    check_has_one(table.state)
    grace = options.grace if table.keepers else 0.0  # without a keeper there is nobody to wait for
    walk = Walk("audit", not options.no_repair, grace, options.max_write_rate)
    table.book.check_writable()
    audited = table.walk(walk, table.checked_sentinel())
    return _noted(table, audited, audited)


def _noted(table: Table, audited: dict[str, Any], report: dict[str, Any]) -> int:
    audited["keeper"] = bool(table.keepers)
    table.say(report_text(table.name, audited))
    if table.options.report:
        write_report(table.options.report, report)
    table.book.note_audit(audited)
    return DRIFT_FOUND if audited["drift"] else DONE


def _remove(table: Table) -> int:
    options = table.options
    _check_nobody_keeps(table)
    table.book.void_audit()  # first of all: from now on the index holds less than the table
    removed = _emptied(table)
    if table.state.is_index_ready:
        table.book.note_emptied()
    state = table.wait_for(step_towards_removed)
    before = (table.setup or {}).get("before")
    table.book.forget()
    removed["as_before"] = before is None or state.shape() == before
    if options.report:
        write_report(options.report, removed)
    table.say(report_text(table.name, removed))
    table.say(f"The index {INDEX} is gone, and no sentinel is left.")
    return DONE


def _emptied(table: Table) -> dict[str, Any]:
    """Delete all sentinels; what both walks came to: the second one proves the first."""
    state = table.state
    sentinel = table.checked_sentinel()
    walk = Walk("remove", max_write_rate=table.options.max_write_rate)
    is_emptied = bool((table.setup or {}).get("emptied"))
    if is_emptied and state.index in (None, "DELETING"):
        return walk_report(walk, Tally(), 0.0, now(), {})  # an earlier removal had come so far
    if state.index == "DELETING":  # by somebody else: sentinels are still there
        state = table.wait_for(step_towards_removed)
    elif state.index is None and table.setup is None and not table.options.sweep:
        raise CannotStart(
            f"Table {state.name!r} has no key index, and none is on record here. If sentinels may "
            f"be left in it, give --sweep: that reads each collection, for about 1.5 RRU a key."
        )
    elif state.index is not None:
        check_has_one(state)
    removed = table.walk(walk, sentinel)
    if state.index is None:
        return removed
    again = table.walk(walk, sentinel)
    if again["deleted"]:
        raise CannotStart(
            "Sentinels were put while they were being deleted: somebody else is building or "
            "keeping the index; end that, and start again."
        )
    for name in ("requests", "read_units", "write_units", "dollars", "seconds"):
        removed[name] = round(removed[name] + again[name], 9)
    return removed


def _check_nobody_keeps(table: Table) -> None:
    keepers = table.keepers
    if keepers:
        raise CannotStart(
            f"A keeper follows the table's stream and would put the sentinels back: "
            f"{', '.join(keepers)}. Start the state machine RemoveKeyIndex of its deployment."
        )
    if keepers is None and not table.options.no_keeper:
        raise CannotStart(
            "It cannot be seen from here whether a keeper follows the table's stream, which would "
            "put the sentinels back: allow lambda:ListEventSourceMappings, or, if you know of "
            "none, give --no-keeper."
        )


def _reconcile(table: Table) -> int:
    options = table.options
    check_has_one(table.state)
    failures = Failures(
        aws_client("sqs", table.endpoint),
        aws_client("dynamodbstreams", table.endpoint),
        options.queue,
        table.state.name,
    )
    collections = table.collections(Walk("audit"), table.checked_sentinel())
    done = failures.work(collections, options.discard_old)
    if options.report:
        write_report(options.report, done.to_json())
    table.say(done.text(table.name))
    return DONE if done.is_clear else FAILED


def _status(table: Table) -> int:
    state = table.state
    audited = table.book.audit()
    keepers = table.keepers
    why = why_not(audited) if state.is_index_ready else "there is no ACTIVE key index"
    told = {
        "table": state.name,
        "index": state.index,
        "rows_reported": state.index_rows,
        "stream": state.stream,
        "keepers": keepers,
        "audit": audited,
        "auto_uses_it": why is None,
    }
    if table.options.report:
        write_report(table.options.report, told)
    followed = "not to be seen from here" if keepers is None else ", ".join(keepers) or "none"
    rows = f", {state.index_rows:,} rows as of some hours ago" if state.index else ""
    lines = [
        state.name,
        f"  index     {INDEX}: {state.index or 'there is none'}{rows}",
        f"  stream    {f'on, {state.stream_view}' if state.stream else 'off'}",
        f"  keeper    {followed}",
        f"  audit     {_audit_text(audited)}",
        f"  auto      {'reads it' if why is None else f'does not read it: {why}'}",
    ]
    print("\n".join(lines))
    return DONE


def _audit_text(audited: dict[str, Any] | None) -> str:
    if audited is None:
        return "none on record here"
    return (
        f"{audited['ended']}: {audited['collections']:,} collections, missing "
        f"{audited['missing']:,}, surplus {audited['surplus']:,}, occupied {audited['occupied']:,}"
    )
