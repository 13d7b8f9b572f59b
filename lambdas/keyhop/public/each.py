"""An action for each key of a table, once: `for_each_key`."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain, count
from pathlib import Path
from threading import Event
from typing import Any

from keyhop import __version__
from keyhop.checks import Must, check_arguments, check_characters, number, requirements_of, whole
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.units import DEFAULT_WRITE_RATE
from keyhop.each.effect import Effect
from keyhop.each.outcomes import LIMITS, ON_EXISTING, PUT
from keyhop.each.request import EachInput
from keyhop.each.task import checked_effect
from keyhop.errors import BudgetSpent, CannotStart, KeyhopError, Stopped
from keyhop.jobs.estimate import estimate
from keyhop.jobs.journal import Journal
from keyhop.jobs.layout import Wishes
from keyhop.jobs.local import LocalJob, check_is_begun, check_is_new
from keyhop.jobs.request import A_METHOD
from keyhop.jobs.task import Task
from keyhop.keys.request import keys_request
from keyhop.keys.task import choose_method
from keyhop.public.key_list import KeyListing
from keyhop.public.runs import OwnStop, Progress, check_estimate, opened_job, progress_of
from keyhop.public.tables import OpenTable, index_record, open_table
from keyhop.retries import DEFAULT_PATIENCE_SECONDS
from keyhop.scan.reader import PageReader
from keyhop.scan.statistics import Interval
from keyhop.storage.local import LIST, UNDO, Directory
from keyhop.tasks import tasks_of

LISTING = "listing the keys"
ACTIVITIES = {"put": "putting", "update": "updating", "delete": "deleting", "undo": "undoing"}
OF_LIST = ("keys", "method", "reason", "read_units", "requests", "seconds")
"""The figures of the list of keys that a result has."""

_ACTIONS = ("put", "update", "invoke", "queue", "start_machine", "undo")
_CHECKED = ("put", "item", "values", "names", "invoke", "update", "guard", "overwrite", "batch")
_ABOVE_ZERO = Must(number(5e-324), "a number above 0")
_LIMITS = ("max_write_rate", "max_write_units", "max_read_rate", "max_read_units")
_REQUIREMENTS = {
    **{name: must for name, must in requirements_of(EachInput).items() if name in _CHECKED},
    "method": A_METHOD,
    **dict.fromkeys(
        (*_LIMITS, "max_cost", "patience"), _ABOVE_ZERO
    ),  # Those of a deployment are narrower.
    "processes": Must(whole(1, 256), "a whole number from 1 to 256"),
}


@dataclass(frozen=True, slots=True)
class EachResult:
    """The result of `for_each_key`; after a dry run, its estimate. `repr` shows no keys.

    Attributes:
        action: The name of the argument that gave the action, such as "put" or "start_machine".
        dry_run: Whether nothing was done; the figures are then expected ones, with those of listing
            the keys.
        keys: The number of keys for which the action was done.
        outcomes: The number of keys by outcome, such as {"put": 118, "there": 2}.
        read_units, write_units, dollars: The costs of the action on DynamoDB. Those of listing the
            keys are in `to_json()["list"]`.
        finished: Whether the action was done for all keys.
        output: The directory of the run, for `undo`, `keys` and `resume`; None after a dry run.
    """

    table: str
    action: str
    dry_run: bool
    keys: int
    outcomes: Mapping[str, int]
    read_units: float
    write_units: float
    dollars: float
    finished: bool
    output: Path | None
    _report: Mapping[str, Any] = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return all figures; those of a run as `keyhop each --format json` prints them."""
        return dict(self._report)


def for_each_key(
    table: Any,
    *,
    session: Any = None,
    endpoint_url: str | None = None,
    stack: str | None = None,
    put: Mapping[str, Any] | None = None,
    update: str | None = None,
    delete: bool = False,
    invoke: str | None = None,
    queue: str | None = None,
    start_machine: str | None = None,
    undo: str | Path | None = None,
    item: Mapping[str, Any] | None = None,
    values: Mapping[str, Any] | None = None,
    names: Mapping[str, str] | None = None,
    guard: str | None = None,
    overwrite: bool = False,
    batch: int | None = None,
    where: str | None = None,
    keys: str | Path | None = None,
    method: str = "auto",
    max_write_rate: float = DEFAULT_WRITE_RATE,
    max_write_units: float | None = None,
    max_read_rate: float | None = None,
    max_read_units: float | None = None,
    max_cost: float | None = None,
    patience: float = DEFAULT_PATIENCE_SECONDS,
    processes: int | None = 1,
    output: str | Path | None = None,
    resume: bool = False,
    dry_run: bool = False,
    progress: Callable[[Progress], None] | None = None,
    approve: Callable[[str, Callable[[], EachResult]], None] | None = None,
    say: Callable[[str], None] | None = None,
    stop: Event | None = None,
) -> EachResult:
    """Perform one action for each partition key of a table: `put`, `update`, `delete` and so on.

    The keys are listed first. A put never overwrites an item unless `overwrite` is given, and no
    action creates an item collection. The files of the run hold keys, and the outcome of each.

        run = keyhop.for_each_key("Orders", put={"sk": "#feature", "run": "${run}"})
        print(run.outcomes)
        keyhop.for_each_key("Orders", undo=run.output)

    Args:
        table, session, endpoint_url: See `list_keys`.
        stack: The name of the deployment whose record of the key index counts. By default that of
            this machine counts.
        put: The item to put into each collection, without its partition key. Its values are those
            of boto3, or all of them are DynamoDB JSON; texts may have ${key}, ${run}, ${now} and
            ${first.NAME}.
        update: An update expression for the item that `item` names, where it exists.
        delete: Delete the item that `item` names, where it exists.
        invoke: The name or the ARN of a function, which is invoked with batches of keys.
        queue: The URL of a queue, which gets a message for each batch of keys.
        start_machine: The ARN of a state machine; an execution is started for each batch of keys.
        undo: The directory of a run that has put items, its `output`: delete them, where they are
            unchanged. A dry run has none.
        item: With update and delete: the sort key of the item, such as {"sk": "PROFILE"}.
        values, names: With update: the values of :names and of #names in the expression.
        guard: With put: "look" (the default) takes back an item that is alone in its collection;
            "transaction" writes it only beside another item; "none" trusts the list.
        overwrite: With put: replace an item that exists. This cannot be undone.
        batch: With invoke, queue and start_machine: the number of keys in a batch.
        where: Only keys of which this holds: "begins_with(TEXT)", "between(LOW, HIGH)" or
            "matches(REGULAR EXPRESSION)". This filters the list, and saves no reads.
        keys: The directory of a finished run whose keys are used. By default they are listed.
        method: How the keys are listed; see `list_keys`.
        max_write_rate: The maximum write units a second.
        max_write_units: Raise BudgetSpent before more write units than this are spent.
        max_read_rate, max_read_units: The same for the reads of listing the keys.
        max_cost: Raise BudgetSpent before anything is read or written if the run costs more dollars
            of reads and writes for sure, and otherwise when it has cost so many. Requests that are
            in flight then are paid, too. Other services are not counted.
        patience: Raise GaveUp when nothing but throttling and failures came for so many seconds.
        processes: The number of processes that list the keys; see `list_keys`.
        output: The directory of the run. By default it is a new one in the working directory, named
            after the table and the time; for an undo, one in the directory of the run.
        resume: Continue the unfinished run in `output`. The action may be left out, unless the run
            has ended before the action began.
        dry_run: Only return an estimate, by a small sample.
        progress: Is called a few times a second, while keys are listed by any thread, and otherwise
            in the calling thread.
        approve: Is called before a new run is begun, with the action and a function that estimates
            it by a sample. An exception that it raises ends the call.
        say: Is called with messages for a person, such as where the run is kept.
        stop: An event that ends the run when it is set; the result is then not finished. During a
            sample it raises Stopped. A call never sets it.

    Returns:
        The numbers of keys and outcomes, the costs, and the directory of the run.

    Raises:
        CannotStart: An argument is wrong, or the action is impossible on this table.
        TableNotFound: The table does not exist.
        RunConflict: The directory has another run.
        KeyhopError: See keyhop.errors. If the action had begun, the error's `result` has the
            figures so far, and the run can be resumed.
    """
    arguments = locals()
    check_arguments(arguments, _REQUIREMENTS)
    for name in ("put", "item", "values", "names"):
        try:
            check_characters(arguments[name])
        except ValueError as error:
            raise CannotStart(f"{name} cannot be written: {error}.") from error
    if not resume and not delete and not any(arguments[name] is not None for name in _ACTIONS):
        raise CannotStart(
            f"Give one thing to do, {', '.join(f'{name}=' for name in _ACTIONS)} or "
            "delete=. A dry run has no output, so it cannot be undone."
        )
    if resume and output is None:
        raise CannotStart("resume needs output: only a run in a directory can be resumed.")
    if resume and dry_run:
        raise CannotStart("resume and dry_run exclude each other: leave one of them out.")
    if output == "":
        raise CannotStart("output is empty: give it a value, or leave it out.")
    opened = open_table(table, session, endpoint_url, 0, patience)
    if processes != 1 and (session is not None or not isinstance(table, str | OpenTable)):
        raise CannotStart(
            "processes is only for credentials from the environment: leave session and boto3's "
            "Table out, or processes."
        )
    same = ("put", "update", "invoke", "queue", "start_machine", "item", "values", "names", "guard")
    more = ("overwrite", "batch", "where", "method", "max_write_rate", "max_write_units")
    limits = ("max_read_rate", "max_read_units")
    settings = EachInput(
        table=opened.table.name,
        delete=True if delete else None,
        undo=None if undo is None else str(undo),
        keys=None if keys is None else str(keys),
        resume=str(output) if resume else None,
        **{name: arguments[name] for name in (*same, *more, *limits)},
    )
    run = _Run(
        opened,
        settings,
        directory_of(opened.table.bare_name, undo) if output is None else Path(output),
        stack,
        processes,
        patience,
        progress or (lambda progress: None),
        say or (lambda text: None),
        OwnStop(stop, opened.connection.prices, max_cost),
        max_cost,
    )
    try:
        return run.estimate() if dry_run else run.run(approve or (lambda action, estimate: None))
    finally:
        run.stop.set()  # Threads that are still running end, whatever has ended the call.


def directory_of(table: str, undo: str | Path | None) -> Path:
    """Return the directory of a new run that was given none; it does not exist yet."""
    if undo is not None:
        return Path(undo) / UNDO
    name = f"each-{table}-{time.strftime('%Y%m%d-%H%M%S')}"
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(path for path in map(Path, names) if not path.exists())


class _Run:
    """A list of keys, and the action for each of them, as runs in directories."""

    def __init__(
        self,
        opened: OpenTable,
        settings: EachInput,
        path: Path,
        stack: str | None,
        processes: int | None,
        patience: float,
        progress: Callable[[Progress], None],
        say: Callable[[str], None],
        stop: OwnStop,
        max_cost: float | None,
    ) -> None:
        self.stop = stop
        self._max_cost = max_cost
        self._estimate = cache(self._look_ahead)
        self._connection, self._table = opened.connection, opened.table
        self._settings = settings
        self._request = settings.request(str, {})
        self._path = path
        list_of_others = settings.undo or settings.keys
        self._makes_list = list_of_others is None
        self._list = path / LIST if list_of_others is None else Path(list_of_others)
        self._record = index_record(opened.connection, stack)
        self._processes = processes
        self._patience = patience
        self._progress = progress
        self._say = say
        self._began = time.monotonic()
        self._effect: Effect | None = None
        self._listed: Mapping[str, Any] | None = None  # The figures of the list that is made here.

    def run(self, approve: Callable[[str, Callable[[], EachResult]], None]) -> EachResult:
        """List the keys, and do the action for each of them."""
        is_resumed = self._settings.resume is not None
        if is_resumed:
            check_is_begun(self._path)
        else:
            check_is_new(self._path)
        is_begun = is_resumed and Journal(Directory(self._path)).plan() is not None
        if not is_begun:
            self._check()
        if not is_resumed:
            if self._max_cost is not None:
                check_estimate(self._estimate().to_json()["minimum_dollars"], self._max_cost)
            approve(_action_of(self._request.options["effect"]), self._estimate)
        self._say(f"The run is kept in {self._path}.")
        if self._makes_list and not is_begun and not self._make_list(is_resumed):
            self._check_spent({})
            return self._result({})
        return self._work(is_resumed)

    def estimate(self) -> EachResult:
        """Return the estimate of a new run."""
        self._check()
        return self._estimate()

    def _check(self) -> None:
        """Raise CannotStart before anything is read, if the action is impossible on this table."""
        options = self._request.options
        if not options["effect"]:
            raise CannotStart(
                f"{self._path} was interrupted while the keys were listed: give the action as well."
            )
        if self._settings.undo is None:
            sentinels_of = self._record.sentinels_of
            self._effect = checked_effect(self._connection, self._table, options, sentinels_of)
        if self._makes_list:
            return
        if self._list_manifest() is None:
            raise CannotStart(
                f"{self._list} holds no finished run: give the directory of one. An unfinished "
                "run can be continued first."
            )
        self._task(self._connection, self._listed_options()).plan(self._table, self._request)

    def _list_manifest(self) -> dict[str, Any] | None:
        return Journal(Directory(self._list)).manifest() if self._list.is_dir() else None

    def _look_ahead(self) -> EachResult:
        """Estimate the costs by a sample or a list, before anything is written."""
        keys, sampled, units = self._expected()
        effect, source = self._request.options["effect"], self._table.source()
        task = self._task(self._connection, self._listed_options())
        write_units, read_units = task.units_per_key(source)
        # For the minimum, items are as small as possible, and some keys have nothing to write.
        least_writes, least_reads = task.units_per_key(replace(source, size_bytes=0))
        if self._settings.where is not None:
            least_writes = least_reads = 0.0
        elif effect["kind"] in ("delete", "undo"):
            least_writes = 0.0
        prices = self._connection.prices
        reads, writes = units.mean + keys.mean * read_units, keys.mean * write_units
        dollars, maximum = prices.dollars(reads, writes), None
        is_bounded = math.isfinite(keys.high)
        if is_bounded and effect["kind"] not in ON_EXISTING:
            maximum = prices.dollars(units.high + keys.high * read_units, keys.high * write_units)
        report = {
            "table": self._table.name,
            "keys": {
                "estimate": keys.mean,
                "low": keys.low,
                "high": keys.high if is_bounded else None,
            },
            "read_units": reads,
            "write_units": writes,
            "write_units_per_key": write_units,
            "without_writes_to": list(self._table.vector_indexes),
            "dollars": dollars,
            "minimum_dollars": prices.dollars(
                units.low + keys.low * least_reads, keys.low * least_writes
            ),
            "maximum_dollars": maximum,
            "price": prices.on_demand,
            "seconds_of_writing": writes / self._settings.max_write_rate,
            "sampled_read_units": sampled,
        }
        name, action, count = self._table.bare_name, _action_of(effect), round(keys.mean)
        return EachResult(
            name, action, True, count, {}, reads, writes, dollars, False, None, report
        )

    def _expected(self) -> tuple[Interval, float, Interval]:
        """Return the number of keys, the cost of the sample, and the read units of the list."""
        if (manifest := self._list_manifest()) is not None:
            puts = manifest.get("counts", {}).get(PUT, 0)
            count = float(manifest["keys"] if self._settings.undo is None else puts)
            return Interval(count, count, count), 0.0, Interval(0.0, 0.0, 0.0)
        source, rate, method = (
            self._table.source(),
            self._settings.max_read_rate,
            self._settings.method,
        )
        reader = PageReader(
            self._connection, source, Budget(rate), patience=self._patience, stop=self.stop
        )
        chosen = choose_method(source.space, None, "auto" if method == "index" else method)
        expected = estimate(reader, *chosen, Wishes(max_rate=rate))
        return expected.findings.keys, expected.spent_units, expected.costs[chosen[0]].units

    def _make_list(self, may_be_begun: bool) -> bool:
        """List the keys in a separate run, and return whether all of them were listed."""
        journal = Journal(Directory(self._list))
        if may_be_begun and journal.is_finished():
            return True
        assert self._effect is not None
        request = keys_request(
            self._table.name,
            method=self._settings.method,
            max_read_rate=self._settings.max_read_rate,
            max_read_units=self._settings.max_read_units,
            format="jsonl",
            first=sorted(self._effect.first),
        )
        listing = KeyListing(
            OpenTable(self._connection, self._table),
            request,
            self._record,
            self._list,
            may_be_begun and journal.plan() is not None,
            self._processes,
            self._patience,
            lambda progress: self._progress(replace(progress, activity=LISTING)),
            None,
            self._say,
            self.stop,
        )
        listing.run(None)
        figures = listing.report()
        self._listed = {name: figures[name] for name in OF_LIST if name in figures}
        return listing.is_finished

    def _work(self, is_resumed: bool) -> EachResult:
        """Perform the action for each key of the list that has none yet."""
        options = self._listed_options()
        limits = {name: options[name] for name in LIMITS}

        def each(connection: Connection, options: Mapping[str, Any]) -> Task:
            """Apply the limits of this start, even if another one has begun the run."""
            return self._task(connection, {**options, **limits})

        with opened_job(
            self._connection,
            replace(self._request, options=options, resume=None),
            {"each": each},
            self._path,
            resume=is_resumed,
            stop=self.stop,
            patience=self._patience,
        ) as job:
            job.prepare(self._table, may_be_finished=is_resumed)
            if job.journal.is_finished():
                return self._result(job.journal.manifest() or {}, job.journal)
            manifest = self._list_manifest()
            job.expected = float(manifest["keys"]) if manifest else None
            job.begin()
            try:
                self._do(job)
            except KeyhopError as error:
                error.result = self._result(job.finish()[1], job.journal, error)
                raise
            summary = job.finish()[1]
            if not summary["finished"]:
                self._check_spent(summary, job.journal)
            return self._result(summary, job.journal)

    def _listed_options(self) -> dict[str, Any]:
        return {**self._request.options, "keys": str(self._list)}

    def _task(self, connection: Connection, options: Mapping[str, Any]) -> Task:
        tasks = tasks_of(
            sentinels_of=self._record.sentinels_of,
            journal_of=lambda path: Journal(Directory(Path(path))),
        )
        return tasks["each"](connection, options)

    def _check_spent(self, summary: Mapping[str, Any], journal: Journal | None = None) -> None:
        """Raise BudgetSpent, with the figures so far, if the maximum cost is spent."""
        try:
            self.stop.check_spent()
        except BudgetSpent as error:
            error.result = self._result(summary, journal, error)
            raise

    def _do(self, job: LocalJob) -> None:
        """Work to the end, or until the run is stopped, and report the progress."""
        activity = ACTIVITIES.get(job.plan.options["effect"]["kind"], "handing on keys")
        progress = partial(progress_of, job, activity=activity)
        self._progress(progress())
        try:
            job.work(lambda: self._progress(progress()), self._say)
        except Stopped:
            pass
        finally:
            self._progress(progress(is_over=True))

    def _result(
        self,
        summary: Mapping[str, Any],
        journal: Journal | None = None,
        error: KeyhopError | None = None,
    ) -> EachResult:
        plan = None if journal is None else journal.plan()
        effect = self._request.options["effect"] if plan is None else plan.options["effect"]
        counts = dict(summary.get("counts", {}))
        read_units, write_units = summary.get("read_units", 0.0), summary.get("write_units", 0.0)
        dollars = round(self._connection.prices.dollars(read_units, write_units), 9)
        keys, finished = summary.get("keys", 0), bool(summary.get("finished"))
        report = {
            "table": self._table.name,
            "run": str(self._path),
            "keys": keys,
            "outcomes": counts,
            "requests": summary.get("requests", 0),
            "read_units": read_units,
            "write_units": write_units,
            "dollars": dollars,
            "throttles": summary.get("throttles", {}),
            "list": self._listed,
            "seconds": round(time.monotonic() - self._began, 3),
            "finished": finished,
            "error": None if error is None else str(error),
            "software_version": __version__,
        }
        return EachResult(
            self._table.bare_name,
            _action_of(effect),
            False,
            keys,
            counts,
            read_units,
            write_units,
            dollars,
            finished,
            self._path,
            report,
        )


def _action_of(effect: Mapping[str, Any]) -> str:
    """Return the name of the argument that gives an effect."""
    kind = str(effect["kind"])
    return "start_machine" if kind == "machine" else kind
