"""`keyhop index build|audit|remove|status TABLE`: the key index, from the command line."""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from keyhop.cli.numbers import positive, rate
from keyhop.cli.progress import Display
from keyhop.cli.session import Limits, Stop, reader_of, stop_on_signals
from keyhop.cli.status import DONE, DRIFT_FOUND, FAILED
from keyhop.cli.summary import check_report_path, write_report
from keyhop.client import DynamoDB, Endpoint, aws_client, dynamodb_client
from keyhop.enumerate.estimate import estimate
from keyhop.enumerate.pages import PageReader, Stopped
from keyhop.enumerate.plan import MOST_WORKERS, Choice, Wishes
from keyhop.enumerate.run import Progress, now
from keyhop.enumerate.table import DEFAULT_PATIENCE_SECONDS
from keyhop.errors import CannotStart
from keyhop.key_index.attach import keepers_of
from keyhop.key_index.book import Book, local_book, why_not
from keyhop.key_index.build import check_all_were_free, check_places_are_free
from keyhop.key_index.collections import Collections
from keyhop.key_index.failures import Failures
from keyhop.key_index.index import (
    TableState,
    check_can_have_one,
    check_has_one,
    look_up,
    step_towards_built,
    step_towards_removed,
)
from keyhop.key_index.passes import Pass, target_of_walk, writes_of
from keyhop.key_index.report import build_cost, report_text
from keyhop.key_index.walk import GRACE_SECONDS, Walk
from keyhop.sentinel import INDEX, MARKER, Sentinel

DEFAULT_WRITE_RATE = 1000.0
"""Write units a second: 500 sentinels."""

POLL_SECONDS = 2.0
CONNECTIONS = 2 * MOST_WORKERS

EPILOG = """\
A key index holds one tiny item, a sentinel, for each partition key of the table; reading it costs
0.5 read units for each 4 KB of keys. It stays true only while a keeper follows the table's stream:
deploy one with keyIndex, see the README. Without a keeper it is as true as its last audit.

examples:
  keyhop index build Orders --plan       what would it cost?
  keyhop index build Orders              add the index, put the sentinels, audit
  keyhop index status Orders
  keyhop keys Orders --method index      read the keys from it
  keyhop index audit Orders --no-repair  only look
  keyhop index reconcile Orders --queue URL
  keyhop index remove Orders             delete the sentinels and the index

exit status: 0 done, 2 error, 3 the audit found drift, 130 interrupted, 143 terminated. Each command
can be started again after an interruption. Reports name up to ten keys of each kind of drift.
"""


def add_command(commands: Any) -> None:
    """Add `index` to the command line."""
    command = commands.add_parser(
        "index",
        help="build, audit or remove the key index of a table",
        description="A list of the partition keys that is always there: the key index.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
    build = _action(actions, "build", _build, "add the index, put a sentinel for each key, audit")
    _writing(build)
    build.add_argument("--plan", action="store_true", help="sample, and print what it would cost")
    audit = _action(actions, "audit", _audit, "walk the table and compare; repair what is wrong")
    _writing(audit)
    audit.add_argument("--no-repair", action="store_true", help="only look")
    audit.add_argument(
        "--grace",
        type=_seconds,
        default=GRACE_SECONDS,
        metavar="SECONDS",
        help=f"how long a keeper may be behind (default {GRACE_SECONDS:g})",
    )
    remove = _action(actions, "remove", _remove, "delete the sentinels, then the index")
    _writing(remove)
    _action(actions, "status", _status, "what there is, and what the last audit found")
    reconcile = _action(
        actions, "reconcile", _reconcile, "work what lies in the keeper's failure queue"
    )
    reconcile.add_argument(
        "--queue", required=True, metavar="URL", help="the output FailureQueueUrl of the stack"
    )
    reconcile.add_argument(
        "--discard-old",
        action="store_true",
        help="delete messages whose records the stream has forgotten; audit afterwards",
    )


def _action(actions: Any, name: str, run: Any, help_: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=help_, description=help_[0].upper() + help_[1:] + "."
    )
    parser.set_defaults(run=run)
    parser.add_argument("table", metavar="TABLE", help="name or ARN of the table")
    parser.add_argument("--report", metavar="FILE", help="write the result to FILE as JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress, no summary")
    place = parser.add_argument_group("where the table is")
    place.add_argument("--region", help="AWS region (default: from your AWS configuration)")
    place.add_argument("--profile", help="AWS profile")
    place.add_argument("--endpoint-url", metavar="URL", help="another endpoint")
    return parser


def _writing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-write-rate",
        type=rate,
        default=DEFAULT_WRITE_RATE,
        metavar="WRU_PER_SECOND",
        help=f"hold writes under this (default {DEFAULT_WRITE_RATE:g}); a sentinel costs two",
    )
    parser.add_argument(
        "--max-read-rate", type=rate, metavar="RRU_PER_SECOND", help="hold reads under this"
    )
    parser.add_argument(
        "--sentinel",
        metavar="SORT_KEY",
        help="the sentinels' sort key, binary as base64 (default: that of the build, else the "
        "least one)",
    )
    parser.add_argument(
        "--give-up-after",
        type=positive,
        default=DEFAULT_PATIENCE_SECONDS,
        metavar="SECONDS",
        help=f"end when nothing has succeeded for so long (default {DEFAULT_PATIENCE_SECONDS:g})",
    )


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
        if place is None and self.setup is not None:
            return Sentinel.from_json(self.setup["sentinel"])
        return Sentinel.of(self.state.space, place)

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


def _run(options: argparse.Namespace, work: Callable[[Table], int]) -> int:
    if options.report:
        check_report_path(options.report)
    with stop_on_signals() as stop:
        try:
            return work(Table(options, stop))
        except Stopped:
            print("keyhop: Interrupted. Start the same command again.", file=sys.stderr)
            return stop.status


def _build(options: argparse.Namespace) -> int:
    return _run(options, _built)


def _built(table: Table) -> int:
    options = table.options
    check_can_have_one(table.state)
    sentinel = table.sentinel()
    walk = Walk("build", max_write_rate=options.max_write_rate)
    reader = table.reader(walk, sentinel)
    if options.plan:
        return _planned(table, reader)
    if table.state.index is None:
        check_places_are_free(reader, table.collections(walk, sentinel))
    before = {"before": table.state.shape(), "sentinel": sentinel.to_json(), "built": now()}
    table.book.note_setup(before)
    table.wait_for(step_towards_built)
    built = table.walk(walk, sentinel)
    table.say(report_text(table.name, built))
    check_all_were_free(built)
    audit = table.walk(Walk("audit", grace_seconds=_grace(table, GRACE_SECONDS)), sentinel)
    status = _noted(table, audit, {"build": built, "audit": audit})
    if not _keepers(table):
        table.say(
            "No keeper follows the table's stream, so the index is true as of now: deploy one with "
            "keyIndex (README), or audit again before you use it."
        )
    return status


def _planned(table: Table, reader: PageReader) -> int:
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
        f"({cost['price']}), and write for "
        f"{told['seconds_of_writing']:,.0f} s. Looked at for {found.spent_units:g} RRU."
    )
    return DONE


def _audit(options: argparse.Namespace) -> int:
    return _run(options, _audited)


def _audited(table: Table) -> int:
    options = table.options
    check_has_one(table.state)
    walk = Walk(
        "audit", not options.no_repair, _grace(table, options.grace), options.max_write_rate
    )
    audit = table.walk(walk, table.sentinel())
    return _noted(table, audit, audit)


def _noted(table: Table, audit: dict[str, Any], report: dict[str, Any]) -> int:
    table.book.note_audit(audit)
    table.say(report_text(table.name, audit))
    if table.options.report:
        write_report(table.options.report, report)
    return DRIFT_FOUND if audit["drift"] else DONE


def _remove(options: argparse.Namespace) -> int:
    return _run(options, _removed)


def _removed(table: Table) -> int:
    options = table.options
    check_has_one(table.state)
    keepers = _keepers(table)
    if keepers:
        raise CannotStart(
            f"A keeper follows the table's stream and would put the sentinels back: "
            f"{', '.join(keepers)}. Start the state machine RemoveKeyIndex of its deployment."
        )
    sentinel = table.sentinel()
    walk = Walk("remove", max_write_rate=options.max_write_rate)
    removed = table.walk(walk, sentinel)
    again = table.walk(walk, sentinel)
    if again["collections"] > 0 and again["deleted"] > 0:
        raise CannotStart(
            "Sentinels were put while they were being deleted: somebody else is building or "
            "keeping the index; end that, and start again."
        )
    state = table.wait_for(step_towards_removed)
    table.book.forget()
    removed["as_before"] = table.setup is None or state.shape() == table.setup["before"]
    if options.report:
        write_report(options.report, removed)
    table.say(report_text(table.name, removed))
    table.say(f"The index {INDEX} is gone, and no item carries {MARKER!r} at the sentinels' key.")
    return DONE


def _reconcile(options: argparse.Namespace) -> int:
    return _run(options, _reconciled)


def _reconciled(table: Table) -> int:
    options = table.options
    walk = Walk("audit")
    failures = Failures(
        aws_client("sqs", table.endpoint),
        aws_client("dynamodbstreams", table.endpoint),
        options.queue,
        table.state.name,
    )
    done = failures.work(table.collections(walk, table.sentinel()), options.discard_old)
    if options.report:
        write_report(options.report, done.to_json())
    table.say(done.text(table.name))
    return DONE if done.is_clear else FAILED


def _status(options: argparse.Namespace) -> int:
    return _run(options, _told)


def _told(table: Table) -> int:
    state = table.state
    audit = table.book.audit()
    keepers = _keepers(table)
    told = {
        "table": state.name,
        "index": state.index,
        "rows_reported": state.index_rows,
        "stream": state.stream,
        "keepers": keepers,
        "audit": audit,
        "auto_uses_it": state.is_index_ready and why_not(audit) is None,
    }
    if table.options.report:
        write_report(table.options.report, told)
    lines = [
        f"{state.name}",
        f"  index     {INDEX}: {state.index or 'there is none'}"
        + (f", {state.index_rows:,} rows as of some hours ago" if state.index else ""),
        f"  stream    {f'on, {state.stream_view}' if state.stream else 'off'}",
        f"  keeper    {', '.join(keepers) if keepers else 'none that can be seen from here'}",
        f"  audit     {_audit_text(audit)}",
        f"  auto      {'reads it' if told['auto_uses_it'] else f'does not read it: {_why(table)}'}",
    ]
    print("\n".join(lines))
    return DONE


def _why(table: Table) -> str:
    if not table.state.is_index_ready:
        return "there is no ACTIVE key index"
    return why_not(table.book.audit()) or ""


def _audit_text(audit: dict[str, Any] | None) -> str:
    if audit is None:
        return "none on record here"
    counts = json.dumps({name: audit[name] for name in ("missing", "surplus", "occupied")})
    return f"{audit['ended']}: {audit['collections']:,} collections, drift {counts}"


def _keepers(table: Table) -> list[str]:
    return keepers_of(table.state.stream, table.endpoint)


def _grace(table: Table, seconds: float) -> float:
    """Without a keeper there is nobody to wait for."""
    return seconds if _keepers(table) else 0.0


def _seconds(text: str) -> float:
    return 0.0 if text.strip() in ("0", "0.0") else positive(text)
