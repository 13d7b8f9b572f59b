"""What `keyhop each` does: list the keys, then do something for each of them; undo it."""

import json
import math
import shlex
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from keyhop import __version__
from keyhop.checks import check_characters
from keyhop.cli.exit_status import BUDGET_SPENT, DONE, FAILED, KEYS_MISSING
from keyhop.cli.options import Options, flag
from keyhop.cli.output import aligned, put_out
from keyhop.cli.session import Facts, Session, place, stop_on_signals
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.requester import Stopped
from keyhop.each.effect import Effect
from keyhop.each.outcomes import CHANGED, LIMITS, PUT, per_key
from keyhop.each.outcomes import FAILED as KEY_FAILED
from keyhop.each.request import EachInput
from keyhop.each.task import checked_effect
from keyhop.errors import BrokenPromise, BudgetSpent, CannotStart, KeyhopError
from keyhop.jobs.estimate import estimate
from keyhop.jobs.journal import Journal
from keyhop.jobs.layout import Wishes
from keyhop.jobs.local import check_is_begun
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
    """Run the command; return its exit status, or raise a KeyhopError."""
    values = _asked(options)
    command = EachCommand(options, values, values.request(flag, {}))
    with stop_on_signals("Nothing was done.", stop=command.stop):
        return command.run()
    return command.stop.status


def _asked(options: Options) -> EachInput:
    """Return the flags in the form of an execution's input.

    Raises:
        CannotStart: A file or JSON cannot be read.
    """
    values = {name: value for name, value in vars(options).items() if name in _FIELDS}
    values["resume"] = options.output if options.resume else None
    values["delete"] = True if options.delete else None
    if options.put is not None:
        values["put"] = _json(options.put, "--put", file=True)
    for name in ("values", "names"):
        if values[name] is not None:
            values[name] = _json(values[name], f"--{name}")
    if options.item is not None:
        values["item"] = _item(options.item)
    return EachInput(**values)


def _json(source: str, flag: str, file: bool = False) -> dict[str, Any]:
    """Return an object from JSON or from a file that contains it."""
    text = source
    if file or not source.lstrip().startswith("{"):
        try:
            text = Path(source).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CannotStart(f"{flag}: {source} cannot be read: {error}.") from error
    try:
        value = json.loads(text, parse_float=Decimal)  # a float would not keep 38 digits
        check_characters(value)
    except (ValueError, RecursionError) as error:
        raise CannotStart(f"{flag} cannot be read as JSON: {error}.") from error
    if not isinstance(value, dict):
        raise CannotStart(f'{flag} must be a JSON object, such as {{"sk": "#feature"}}.')
    return value


def _item(source: str) -> dict[str, Any]:
    """Return an item's sort key from NAME=VALUE or JSON."""
    if source.lstrip().startswith("{"):
        return _json(source, "--item")
    name, equals, value = source.partition("=")
    if not (name and equals):
        raise CannotStart("--item must be NAME=VALUE, such as sk=PROFILE, or a JSON object.")
    return {name: value}


class EachCommand(Session):
    """The list of keys and the effect on each, as runs in directories."""

    _effect: Effect

    def __init__(self, options: Options, values: EachInput, request: Request) -> None:
        super().__init__(options)
        self._asked, self._request = values, request
        self._began = time.monotonic()
        self._listed: dict[str, Any] | None = None  # The manifest of the list, if it is made here.
        if options.undo:
            self._list = Path(options.undo)
            default = self._list / UNDO
        else:
            moment = time.strftime("%Y%m%d-%H%M%S")
            default = Path(DEFAULT_NAME.format(table=self.table.bare_name, time=moment))
        self._path = Path(options.output) if options.output else default
        if not options.undo:
            self._list = Path(options.keys) if options.keys else self._path / LIST

    def run(self) -> int:
        """Do it, and return the exit status."""
        options, stored = self.options, None
        self._tasks = partial(tasks_of, sentinels_of=self.key_index.sentinels_of)
        if options.resume:
            check_is_begun(self._path)
            stored = Journal(Directory(self._path)).plan()
        if stored is None:
            self._check_effect()
            self._check_list()
        if options.dry_run:
            facts = [*place(self.table.arn, self.connection.endpoint), *self._facts()]
            put_out(options.format, dict(facts), lambda: "\n".join(aligned(facts, width=10)))
            return DONE
        if not options.resume:
            self.confirm(self._act, self._facts)
        self.say(f"The run is kept in {self._path}.")
        try:
            if not options.keys and not options.undo and stored is None:
                self._make_list()
            return self._work()
        except Stopped:
            print(f"keyhop: Interrupted. {self._hint}", file=sys.stderr)
            return self.stop.status

    @property
    def _act(self) -> str:
        effect = self._request.options["effect"]["kind"]
        acts = {
            "put": "put the item into each collection of {}",
            "update": "update that item of each collection of {}",
            "delete": "delete that item of each collection of {}",
            "undo": "delete what the run has put into {}",
        }
        return acts.get(effect, "hand on each key of {}").format(self.table.name)

    @property
    def _hint(self) -> str:
        return f"Continue with --resume {shlex.quote(str(self._path))}."

    def _check_effect(self) -> None:
        """Raise CannotStart before anything is read, if the effect is impossible on this table."""
        if self.options.undo:
            return
        if not self._request.options["effect"]:
            raise CannotStart(
                f"{self._path} was interrupted while the keys were listed: give what is to be done "
                "as well."
            )
        self._effect = checked_effect(
            self.connection, self.table, self._request.options, self.key_index.sentinels_of
        )

    def _check_list(self) -> None:
        """Raise CannotStart if the directory of a list has none."""
        is_given = self.options.keys or self.options.undo
        if is_given and self._list_manifest() is None:
            raise CannotStart(f"{self._list} holds no finished run: give the directory of one.")

    def _list_manifest(self) -> dict[str, Any] | None:
        return Journal(Directory(self._list)).manifest() if self._list.is_dir() else None

    def _facts(self) -> Facts:
        """Estimate the effort by a sample or a list, before anything is written."""
        options = self.options
        keys, spent, units = self._expected()
        write_units, read_units = self._per_key()
        low, high = (f"{bound:,.0f}" for bound in (keys.low, keys.high))
        between = "" if keys.low == keys.high else f" (95% interval {low} to {high})"
        yield "keys", f"{keys.mean:,.0f}{between}"
        reads = units.mean + keys.mean * read_units
        writes = keys.mean * write_units
        prices = self.connection.prices
        yield "reads", f"about {reads:,.0f} RRU"
        yield "writes", f"about {writes:,.0f} WRU, {write_units:g} for each key, indexes apart"
        if names := self.table.vector_indexes:
            yield (
                "not in it",
                f"writes to the vector indexes {', '.join(names)}, charged by the byte",
            )
        if math.isfinite(keys.high):
            maximum = prices.dollars(units.high + keys.high * read_units, keys.high * write_units)
            yield "cost", f"about ${prices.dollars(reads, writes):,.4f}, at most ${maximum:,.4f}"
        yield "prices", prices.on_demand
        yield "time", f"at least {duration(writes / options.max_write_rate)} of writing"
        if spent:
            yield "sample", f"{spent:,.1f} RRU were read for this"

    def _expected(self) -> tuple[Interval, float, Interval]:
        """Return the number of keys, the cost of the sample, and the read units of the list."""
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
        wanted_method = self._asked.method
        method, reason = choose_method(
            source.space, None, "auto" if wanted_method == "index" else wanted_method
        )
        plan = estimate(reader, method, reason, Wishes(max_rate=self.options.max_read_rate))
        return plan.findings.keys, plan.spent_units, plan.costs[method].units

    def _per_key(self) -> tuple[float, float]:
        """Return the write and the read units for each key."""
        effect = self._request.options["effect"]
        mean = self.table.source().mean_item_bytes or 0.0
        if self.options.undo:
            return 1.0, 0.0
        return per_key(effect, self._effect.item_bytes, mean)

    def _make_list(self) -> None:
        """List the keys in a separate run, unless an earlier start has finished it."""
        options = self.options
        request = keys_request(
            options.table,
            method=options.method,
            max_read_rate=options.max_read_rate,
            max_read_units=options.max_read_units,
            format="jsonl",
            first=sorted(self._effect.first),
        )
        if options.resume and Journal(Directory(self._list)).is_finished():
            return
        tasks = self._tasks(self.key_index.decide_trust)
        job = self.run_job(
            self._list, request, tasks, "listing the keys", table=self.table, processes=None
        )
        self._listed = job.journal.manifest()

    def _work(self) -> int:
        options = self.options
        request = replace(
            self._request, options={**self._request.options, "keys": str(self._list)}, resume=None
        )
        tasks = self._tasks(journal_of=lambda path: Journal(Directory(Path(path))))
        limits = {name: self._request.options[name] for name in LIMITS}

        def each(connection: Connection, options: Mapping[str, Any]) -> Task:
            """Apply the limits of this start, even if another one has begun the run."""
            return tasks["each"](connection, {**options, **limits})

        limited = {"each": each}
        with self.job_in(self._path, request, limited) as job:
            job.prepare(self.table, may_be_finished=options.resume)
            if job.journal.is_finished():
                return self._report(job.journal.manifest() or {}, None)
            error: KeyhopError | None = None
            manifest = self._list_manifest()
            job.expected = float(manifest["keys"]) if manifest else None
            job.begin()
            kind = job.plan.options["effect"]["kind"]
            try:
                self.work(job, STATES.get(kind, "handing on keys"))
            except Stopped:
                pass
            except KeyhopError as refusal:
                error = refusal
            return self._report(job.finish()[1], error)

    def _report(self, summary: Mapping[str, Any], error: KeyhopError | None) -> int:
        counts = dict(summary.get("counts", {}))
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
        self.put_out(report, lambda: "\n".join(lines_of(report)))
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
    """Return the result for a person: what became of the keys, and the cost."""
    so_far = "" if report["finished"] else " so far"
    yield f"{counted(report['keys'], 'key')} of {report['table']}{so_far}"
    for name, count in sorted(report["outcomes"].items(), key=lambda entry: -entry[1]):
        yield f"  {name:9} {count:>9,}  {MEANS.get(name, '')}".rstrip()
    reads, writes = f"{report['read_units']:,.1f} RRU", f"{report['write_units']:,.1f} WRU"
    facts = [("wrote", f"{writes}, read {reads}: ${report['dollars']:,.6f}")]
    if keys := report["list"]:
        facts.append(("list", f"{keys['read_units']:,.1f} RRU, by {keys['method']}"))
    yield from aligned([*facts, ("run", report["run"])], "  ", 9)
