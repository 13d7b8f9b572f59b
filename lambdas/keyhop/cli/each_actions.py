"""What `keyhop each` does: a list of keys, then something for each of them; an undo."""

import json
import math
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from keyhop import __version__
from keyhop.checks import check_characters
from keyhop.cli.confirm import Facts, confirm, place
from keyhop.cli.deployment import KeyIndexAccess
from keyhop.cli.display import StatusLine, check_report_path, write_report
from keyhop.cli.exit_status import BUDGET_SPENT, DONE, FAILED, KEYS_MISSING
from keyhop.cli.options import Options, flag
from keyhop.cli.output import is_text, put_out
from keyhop.cli.session import Stop, connection_of, job_in, stop_on_signals, suggesting, work
from keyhop.clock import now
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.tables import Table, look_up
from keyhop.dynamodb.usage import Usage
from keyhop.each.costs import PerKey, per_key
from keyhop.each.effect import Effect, Work
from keyhop.each.effects import effect_of
from keyhop.each.limits import LIMITS
from keyhop.each.outcomes import CHANGED, PUT
from keyhop.each.outcomes import FAILED as KEY_FAILED
from keyhop.each.request import EachInput
from keyhop.each.task import check_rows
from keyhop.errors import BrokenPromise, BudgetSpent, CannotStart, KeyhopError, StaleIndex
from keyhop.jobs.estimate import estimate
from keyhop.jobs.journal import Journal
from keyhop.jobs.layout import Wishes
from keyhop.jobs.local import LocalJob, check_is_begun
from keyhop.jobs.request import Request
from keyhop.jobs.task import Task
from keyhop.keys.request import keys_request
from keyhop.keys.task import choose_method
from keyhop.scan.reader import PageReader
from keyhop.scan.statistics import Interval
from keyhop.storage.local import LIST, UNDO, Directory
from keyhop.tasks import tasks_of
from keyhop.wording import counted, duration

STATES = {"put": "putting", "update": "updating", "delete": "deleting", "undo": "undoing"}
DEFAULT_NAME = "each-{table}-{time}"

MEANS = {
    "put": "the item is there now",
    "there": "another item was there already",
    "gone": "the collection, or the item, is no longer there",
    "guarded": "the item stood alone, and was taken back",
    "failed": "see the errors in the run's parts",
    "changed": "somebody has changed the item since: left alone",
}
_FIELDS = {one.name for one in fields(EachInput)}


def run(options: Options) -> int:
    """The command; returns its exit status, or raises a KeyhopError."""
    check_report_path(options.report)
    if options.resume and not options.output:
        raise CannotStart("--resume needs --output DIR: the directory of the run to go on with.")
    asked = _asked(options)
    request = asked.request(flag, {})
    connection = connection_of(options)
    with suggesting(connection, options.table):
        table = look_up(connection, options.table, options.give_up_after)
    with stop_on_signals("Nothing was done.") as stop:
        return EachCommand(options, asked, request, connection, table, stop).run()
    return stop.status


def _asked(options: Options) -> EachInput:
    """The flags as an execution's input has them; raises CannotStart for a file or JSON that cannot
    be read.
    """
    given = {name: value for name, value in vars(options).items() if name in _FIELDS}
    given["resume"] = options.output if options.resume else None
    given["delete"] = True if options.delete else None
    if options.put is not None:
        given["put"] = _json(options.put, "--put", file=True)
    for name in ("values", "names"):
        if given[name] is not None:
            given[name] = _json(given[name], f"--{name}")
    if options.item is not None:
        given["item"] = _item(options.item)
    return EachInput(**given)


def _json(given: str, flag: str, file: bool = False) -> dict[str, Any]:
    """An object, from JSON or from a file that holds it."""
    text = given
    if file or not given.lstrip().startswith("{"):
        try:
            text = Path(given).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CannotStart(f"{flag}: {given} cannot be read: {error}.") from error
    try:
        found = json.loads(text, parse_float=Decimal)  # a float would not keep 38 digits
        check_characters(found)
    except (ValueError, RecursionError) as error:
        raise CannotStart(f"{flag} cannot be read as JSON: {error}.") from error
    if not isinstance(found, dict):
        raise CannotStart(f'{flag} must be a JSON object, such as {{"sk": "#feature"}}.')
    return found


def _item(given: str) -> dict[str, Any]:
    """An item's sort key: NAME=VALUE, or JSON."""
    if given.lstrip().startswith("{"):
        return _json(given, "--item")
    name, equals, value = given.partition("=")
    if not (name and equals):
        raise CannotStart("--item must be NAME=VALUE, such as sk=PROFILE, or a JSON object.")
    return {name: value}


@dataclass(slots=True)
class EachCommand:
    """The list, and then what is done with it, as runs in directories.

    _reports: what the list has read, if it was made here.
    """

    options: Options
    asked: EachInput
    request: Request
    connection: Connection
    table: Table
    stop: Stop
    _deployment: KeyIndexAccess = field(init=False)
    _path: Path = field(init=False)
    _list: Path = field(init=False)
    _began: float = field(default_factory=time.monotonic)
    _listed: dict[str, Any] | None = None
    _effect: Effect = field(init=False)

    def __post_init__(self) -> None:
        self._deployment = KeyIndexAccess(self.options, self.connection)
        options = self.options
        name = DEFAULT_NAME.format(table=self.table.bare_name, time=time.strftime("%Y%m%d-%H%M%S"))
        if options.undo:
            self._list = Path(options.undo)
            default = self._list / UNDO
        else:
            default = Path(name)
        self._path = Path(options.output) if options.output else default
        if not options.undo:
            self._list = Path(options.keys) if options.keys else self._path / LIST

    def run(self) -> int:
        """The exit status."""
        options = self.options
        begun = None
        if options.resume:
            check_is_begun(self._path)
            begun = Journal(Directory(self._path)).plan()
        if begun is None:
            self._check_effect()
            self._check_list()
        if options.dry_run:
            facts = [*self._facts()]
            told = dict(facts)
            lines = "\n".join(f"{name:10} {text}" for name, text in facts)
            put_out(options.format, told, lambda: lines)
            return DONE
        if not options.resume:
            confirm(self._act, self._facts, options.yes, self.stop.event)
        StatusLine(options.quiet).say(f"The run is kept in {self._path}.")
        try:
            if not options.keys and not options.undo and begun is None:
                self._make_list()
            return self._work()
        except Stopped:
            print(f"keyhop: Interrupted. {self._hint}", file=sys.stderr)
            return self.stop.status

    @property
    def _act(self) -> str:
        effect = self.request.options["effect"]["kind"]
        acts = {
            "put": "put the item into each collection of {}",
            "update": "update that item of each collection of {}",
            "delete": "delete that item of each collection of {}",
            "undo": "delete what the run has put into {}",
        }
        return acts.get(effect, "hand on each key of {}").format(self.table.name)

    @property
    def _hint(self) -> str:
        return f"Continue with --output {self._path} --resume."

    def _check_effect(self) -> None:
        """Raises CannotStart before anything is read, if it cannot be done to this table."""
        if self.options.undo:
            return
        if not self.request.options["effect"]:
            raise CannotStart(
                f"{self._path} was interrupted while the keys were listed: give what is to be done "
                "as well."
            )
        source = self.table.source()
        check_rows(self.request.options, source.space)
        sentinels = self._deployment.sentinels_of(self.table)
        item = None if sentinels is None else sentinels.item
        work = Work(self.connection, source, "", now(), Usage(), self.stop.event, sentinel=item)
        self._effect = effect_of(self.request.options, work)

    def _check_list(self) -> None:
        """Raises CannotStart if a list that is given is none."""
        is_given = self.options.keys or self.options.undo
        if is_given and self._list_manifest() is None:
            raise CannotStart(f"{self._list} holds no finished run: give the directory of one.")

    def _list_manifest(self) -> dict[str, Any] | None:
        return Journal(Directory(self._list)).manifest() if self._list.is_dir() else None

    def _facts(self) -> Facts:
        """What is shown before anything is written: what it comes to, by a sample or a list."""
        options = self.options
        yield from place(self.table.arn, self.connection.endpoint)
        keys, spent, units = self._expected()
        each = self._per_key()
        low, high = (f"{bound:,.0f}" for bound in (keys.low, keys.high))
        between = "" if keys.low == keys.high else f" (95% interval {low} to {high})"
        yield "keys", f"{keys.mean:,.0f}{between}"
        reads = units.mean + keys.mean * each.read_units
        writes = keys.mean * each.write_units
        prices = self.connection.prices
        yield "reads", f"about {reads:,.0f} RRU"
        yield "writes", f"about {writes:,.0f} WRU, {each.write_units:g} for each key, indexes apart"
        if names := self.table.vector_indexes:
            yield (
                "not in it",
                f"writes to the vector indexes {', '.join(names)}, charged by the byte",
            )
        if math.isfinite(keys.high):
            most = prices.dollars(
                units.high + keys.high * each.read_units, keys.high * each.write_units
            )
            yield "cost", f"about ${prices.dollars(reads, writes):,.4f}, at most ${most:,.4f}"
        yield "prices", prices.on_demand
        yield "time", f"at least {duration(writes / options.max_write_rate)} of writing"
        if spent:
            yield "sample", f"{spent:,.1f} RRU were read for this"

    def _expected(self) -> tuple[Interval, float, Interval]:
        """How many keys there are, what the sample cost, and what listing them will read."""
        none = Interval(0.0, 0.0, 0.0)
        if (manifest := self._list_manifest()) is not None:
            counts = manifest.get("counts", {})
            count = float(counts.get(PUT, 0) if self.options.undo else manifest["keys"])
            return Interval(count, count, count), 0.0, none
        source = self.table.source()
        reader = PageReader(
            self.connection,
            source,
            Budget(self.options.max_read_rate),
            patience=self.options.give_up_after,
            stop=self.stop.event,
        )
        wanted = self.asked.method
        method, reason = choose_method(source.space, None, "auto" if wanted == "index" else wanted)
        found = estimate(reader, method, reason, Wishes(max_rate=self.options.max_read_rate))
        return found.findings.keys, found.spent_units, found.costs[method].units

    def _per_key(self) -> PerKey:
        effect = self.request.options["effect"]
        mean = self.table.source().mean_item_bytes or 0.0
        if self.options.undo:
            return PerKey(1.0)
        return per_key(effect, self._effect.item_bytes, mean)

    def _make_list(self) -> None:
        """The keys, in a run of their own; one that is finished is not made again."""
        options = self.options
        first = sorted(self._effect.first)
        request = keys_request(
            options.table,
            method=options.method,
            max_read_rate=options.max_read_rate,
            max_read_units=options.max_read_units,
            format="jsonl",
            first=first,
        )
        tasks = tasks_of(self._deployment.decide_trust, sentinels_of=self._deployment.sentinels_of)
        journal = Journal(Directory(self._list))
        if options.resume and journal.is_finished():
            return
        with job_in(self._list, request, tasks, self.connection, options, self.stop, None) as job:
            job.prepare(self.table)
            try:
                self._read(job)
            except StaleIndex as error:
                self._read(job.anew(str(error)))

    def _read(self, job: LocalJob) -> None:
        job.begin()
        if not work(job, self.options, "listing the keys"):
            raise Stopped
        self._listed = dict(job.finish()[1])

    def _work(self) -> int:
        options = self.options
        request = replace(
            self.request, options={**self.request.options, "keys": str(self._list)}, resume=None
        )
        tasks = tasks_of(
            sentinels_of=self._deployment.sentinels_of,
            journal_of=lambda path: Journal(Directory(Path(path))),
        )
        limits = {name: self.request.options[name] for name in LIMITS}

        def each(connection: Connection, options: Mapping[str, Any]) -> Task:
            """With the limits of this start, if the run was begun by another."""
            return tasks["each"](connection, {**options, **limits})

        own = {"each": each}
        with job_in(self._path, request, own, self.connection, options, self.stop) as job:
            job.prepare(self.table, may_be_finished=options.resume)
            if job.journal.is_finished():
                return self._tell(job.journal.manifest() or {}, None)
            error: KeyhopError | None = None
            manifest = self._list_manifest()
            job.expected = float(manifest["keys"]) if manifest else None
            job.begin()
            kind = job.plan.options["effect"]["kind"]
            try:
                work(job, options, STATES.get(kind, "handing on keys"))
            except Stopped:
                pass
            except KeyhopError as refusal:
                error = refusal
            return self._tell(job.finish()[1], error)

    def _tell(self, summary: Mapping[str, Any], error: KeyhopError | None) -> int:
        options, counts = self.options, dict(summary.get("counts", {}))
        finished = bool(summary.get("finished"))
        report = {
            "table": self.table.name,
            "run": str(self._path),
            "keys": summary.get("keys", 0),
            "outcomes": counts,
            "requests": summary.get("requests", 0),
            "read_units": summary.get("read_units", 0.0),
            "write_units": summary.get("write_units", 0.0),
            "dollars": round(
                self.connection.prices.dollars(
                    summary.get("read_units", 0.0), summary.get("write_units", 0.0)
                ),
                9,
            ),
            "throttles": summary.get("throttles", {}),
            "list": self._listed and {k: self._listed[k] for k in OF_LIST if k in self._listed},
            "seconds": round(time.monotonic() - self._began, 3),
            "finished": finished,
            "error": None if error is None else str(error),
            "software_version": __version__,
        }
        write_report(options.report, report)
        if not options.quiet or not is_text(options.format):
            put_out(options.format, report, lambda: "\n".join(lines_of(report)))
        if error is not None:
            hint = "" if isinstance(error, BrokenPromise) else self._hint
            print(f"keyhop: {error} {hint}".rstrip(), file=sys.stderr)
            return BUDGET_SPENT if isinstance(error, BudgetSpent) else FAILED
        if not finished:
            print(f"keyhop: Interrupted. {self._hint}", file=sys.stderr)
            return self.stop.status
        return KEYS_MISSING if counts.get(KEY_FAILED) or counts.get(CHANGED) else DONE


OF_LIST = ("keys", "method", "reason", "read_units", "requests", "seconds")


def lines_of(report: Mapping[str, Any]) -> Iterator[str]:
    """The result, for a person: what became of the keys, what it cost."""
    so_far = "" if report["finished"] else " so far"
    yield f"{counted(report['keys'], 'key')} of {report['table']}{so_far}"
    for name, count in sorted(report["outcomes"].items(), key=lambda entry: -entry[1]):
        yield f"  {name:9} {count:>9,}  {MEANS.get(name, '')}".rstrip()
    yield (
        f"  wrote     {report['write_units']:,.1f} WRU, read {report['read_units']:,.1f} RRU: "
        f"${report['dollars']:,.6f}"
    )
    if listed := report["list"]:
        yield f"  list      {listed['read_units']:,.1f} RRU, by {listed['method']}"
    yield f"  run       {report['run']}"
