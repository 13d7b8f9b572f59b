"""The list of the keys of a table: `list_keys` and `estimate_keys`."""

import os
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import IO, Any, Literal

from keyhop import __version__
from keyhop.checks import Must, check_arguments, number, one_of, shown, whole
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.values import Key, TypedValue, to_json
from keyhop.errors import BudgetSpent, CannotStart, StaleIndex, Stopped
from keyhop.jobs.estimate import Estimate, PredictUnits, by_index, estimate
from keyhop.jobs.formats import Encoder, Format
from keyhop.jobs.journal import Commit, Journal, usage_json
from keyhop.jobs.layout import DEFAULT_UNITS, Wishes
from keyhop.jobs.lifecycle import sum_up
from keyhop.jobs.local import LocalJob, check_is_begun
from keyhop.jobs.price import Cost, price
from keyhop.jobs.request import Request, accepting
from keyhop.keys.request import STALE_INDEX, KeysInput
from keyhop.keys.task import Fold, choose_method, listed, without_sentinels
from keyhop.keys.verify import Verdict, verify
from keyhop.public.runs import PREFIX, OwnStop, Progress, check_estimate, opened_job, progress_of
from keyhop.public.sinks import FORMATS, MOST_HELD_BYTES, ByteSink, Feed, FeedSink, KeySink
from keyhop.public.tables import IndexRecord, OpenTable, index_record, open_table
from keyhop.retries import DEFAULT_PATIENCE_SECONDS
from keyhop.scan.in_flight import MOST
from keyhop.scan.reader import PageReader
from keyhop.scan.segments import MOST_SEGMENTS
from keyhop.scan.statistics import Interval
from keyhop.storage.local import Directory
from keyhop.storage.store import Memory
from keyhop.tasks import tasks_of
from keyhop.wording import counted

SinkOf = Callable[[Encoder, Fold | None], KeySink]
"""Makes the receiver of keys, from what encodes and what folds them."""

OutputFormat = Literal["text", "json", "typed-json", "csv"]
LAST_SECONDS = 4.0
"""How long `close` waits for requests that were sent."""

OF_MANIFEST = ("run", "format", "segments", "started", "ended", "parts")
"""The fields of a manifest that a summary omits, or whose values are those of this process."""

_ABOVE_ZERO = Must(number(5e-324), "a number above 0")
_ARGUMENTS = {
    "method": Must(one_of("auto", "skip", "scan", "index"), '"auto", "skip", "scan" or "index"'),
    "accept": accepting(STALE_INDEX),
    "limit": Must(whole(1), "a whole number above 0"),
    "segments": Must(whole(1, MOST_SEGMENTS), f"a whole number from 1 to {MOST_SEGMENTS:,}"),
    "threads": Must(whole(1, MOST), f"a whole number from 1 to {MOST}"),
    "processes": Must(whole(1, 256), "a whole number from 1 to 256"),
    "max_read_rate": _ABOVE_ZERO,
    "max_read_units": _ABOVE_ZERO,
    "max_cost": _ABOVE_ZERO,
    "patience": _ABOVE_ZERO,
    "verify": Must(number(5e-324, 1), "a number above 0, up to 1"),
    "format": Must(one_of(*FORMATS), f"one of {', '.join(FORMATS)}"),
}


def list_keys(
    table: Any,
    *,
    session: Any = None,
    endpoint_url: str | None = None,
    stack: str | None = None,
    index: str | None = None,
    method: str = "auto",
    accept: Sequence[str] = (),
    limit: int | None = None,
    typed: bool = False,
    logical: bool = False,
    separator: str | None = None,
    metadata: str | None = None,
    segments: int | None = None,
    threads: int | None = None,
    processes: int | None = 1,
    max_read_rate: float | None = None,
    max_read_units: float | None = None,
    max_cost: float | None = None,
    patience: float = DEFAULT_PATIENCE_SECONDS,
    output: str | Path | None = None,
    resume: bool = False,
    format: OutputFormat | None = None,
    verify: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    approve: Callable[[PredictUnits, float | None], None] | None = None,
    say: Callable[[str], None] | None = None,
    stop: Event | None = None,
) -> "Keys":
    """List the distinct partition keys of a table or an index, each once, in no order.

    The table is described at once. Keys are read when the result is iterated, or when one of its
    methods is called.

        for key in keyhop.list_keys("Orders"):
            ...

    Args:
        table: The name or the ARN of a table, or boto3's Table, whose client then sends all
            requests.
        session: A boto3 session. By default credentials and region are those of the environment.
        endpoint_url: The address of the service, such as that of DynamoDB Local.
        stack: The name of the deployment whose record of the key index counts. By default that of
            this machine counts.
        index: List the keys of this index instead. If its partition key has several attributes,
            each key is a tuple of their values.
        method: "skip" hops from key to key, "scan" reads everything, "index" reads the key index;
            "auto" chooses, and `summary.reason` says why.
        accept: ["stale-index"], with method "index": read the key index even if it may be out of
            date.
        limit: End after this number of keys, in an iteration and in `write_to`.
        typed: Yield each key as a dict of JSON values with types, such as {"pk": {"S": "a"}}.
            Otherwise a key is a str, a Decimal or bytes.
        logical: List logical keys: "/f.txt" once for "/f.txt_1", "/f.txt_2", and so on.
        separator: With logical: the text between a logical key and its shard, "_" by default.
        metadata: With logical: take for shards only what this shard-metadata table knows.
        segments: The parts of the hash space that are read independently; planned by default.
        threads: The maximum number of segments that are read at once.
        processes: The number of processes that read; None for as many as make it faster. More than
            one need credentials from the environment.
        max_read_rate: The maximum read units a second.
        max_read_units: Raise BudgetSpent before more read units than this are spent.
        max_cost: The same in dollars of reads, at on-demand prices. BudgetSpent is also raised
            before the keys are read if they cost more for sure.
        patience: Raise GaveUp when nothing but throttling and failures came for so many seconds.
        output: A directory for the keys, as files; such a run can be resumed. Its keys are yielded
            as they are committed.
        resume: Continue the unfinished run in `output`. A finished run yields its keys, and reads
            nothing from the table.
        format: The format of the files, and of `write_to`: "text" by default, and that of the run
            that is resumed.
        verify: Afterwards, read this share of the table by plain Scans, and compare.
        progress: Is called a few times a second while keys are read, by a thread of the listing.
        approve: Is called before keys are read, with a function that returns the expected read
            units, and with their maximum (None for no limit). An exception that it raises ends the
            listing.
        say: Is called with messages for a person, such as why the key index is not read any more.
        stop: An event that ends the listing when it is set, as `close` does. Several calls may
            share it: a listing never sets it.

    Raises:
        CannotStart: An argument is wrong, or the keys cannot be listed like this.
        TableNotFound, IndexNotFound: The table or the index does not exist.
        RunConflict: The directory has another run.
        KeyhopError: See keyhop.errors.
    """
    arguments = locals()
    check_arguments(arguments, _ARGUMENTS)
    if resume and output is None:
        raise CannotStart("resume needs output: only a run in a directory can be resumed.")
    if output == "":
        raise CannotStart("output is empty: give it a value, or leave it out.")
    opened = open_table(table, session, endpoint_url, threads or 0, patience)
    if processes != 1 and (session is not None or not isinstance(table, str | OpenTable)):
        raise CannotStart(
            "processes is only for credentials from the environment: leave session and boto3's "
            "Table out, or processes."
        )
    keys_input = KeysInput(
        table=opened.table.name,
        index=index,
        method=method,
        segments=segments,
        max_read_rate=max_read_rate,
        max_read_units=max_read_units,
        accept=tuple(accept),
        logical=logical,
        separator=separator,
        metadata=metadata,
        verify_share=verify,
    )
    for sentence in keys_input.contradictions(
        lambda name: "verify" * (name == "verify_share") or name
    ):
        raise CannotStart(f"{sentence}.")
    request = replace(
        keys_input.request(str, {}), threads=threads, format=FORMATS[format] if format else None
    )
    cost_limit = max_cost
    if max_cost is not None:
        maximum = opened.connection.prices.units_for(max_cost)
        if request.max_read_units is not None and request.max_read_units < maximum:
            cost_limit = None  # The other limit is reached before.
        else:
            request = replace(request, max_read_units=maximum)

    def approve_reads(predicted_units: PredictUnits, maximum: float | None) -> None:
        if max_cost is not None:
            low = predicted_units(lambda units: True).low
            check_estimate(opened.connection.prices.dollars(low), max_cost)
        if approve is not None:
            approve(predicted_units, maximum)

    listing = KeyListing(
        opened,
        request,
        index_record(opened.connection, stack),
        None if output is None else Path(output),
        resume,
        processes,
        patience,
        progress or (lambda progress: None),
        approve_reads,
        say or (lambda text: None),
        OwnStop(stop),
        cost_limit,
        limit,
    )
    return Keys(listing, limit, typed)


@dataclass(frozen=True, slots=True)
class KeysSummary:
    """The figures of a list of keys; `to_json` has more of them.

    Attributes:
        keys: The number of keys.
        read_units, requests, dollars: The costs of the reads.
        method, reason: How keys are found, and why in this way.
        seconds: The duration of reading.
        finished: Whether all keys were listed.
    """

    table: str
    index: str | None
    keys: int
    read_units: float
    requests: int
    dollars: float
    method: str
    reason: str
    seconds: float
    finished: bool
    _report: Mapping[str, Any] = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return all figures, as `keyhop keys --summary FILE` writes them."""
        return dict(self._report)


class Keys(Iterator[Any]):
    """An iterator over keys, which reads ahead in separate threads.

    One thread may iterate; `close` may be called by any. A fork of the process cannot go on with an
    iteration. An iterator that is closed or abandoned stops its threads; as a context manager it is
    closed at the end of the block.
    """

    def __init__(self, listing: "KeyListing", limit: int | None, typed: bool) -> None:
        self._listing = listing
        self._limit = limit
        self._typed = typed
        self._count = 0
        self._process = os.getpid()
        self._batch: Iterator[Key] = iter(())
        self._feed: Feed | None = None
        self._thread: Thread | None = None
        self._end = weakref.finalize(self, _abandon, listing, self._process)

    @property
    def title(self) -> str:
        """The table, and the index if there is one: Orders/by-day."""
        return self._listing.title

    def __repr__(self) -> str:
        state = "finished" if self._listing.is_finished else "unfinished"
        return f"<keyhop.Keys of {self._listing.title}: {counted(self._count, 'key')}, {state}>"

    def __iter__(self) -> "Keys":
        return self

    def __enter__(self) -> "Keys":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __next__(self) -> Any:
        if self._limit is not None and self._count >= self._limit:
            self.close()
            raise StopIteration
        try:
            while (key := next(self._batch, None)) is None:
                batch = self._next_batch()
                if batch is None:
                    raise StopIteration
                self._batch = iter(batch)
        except BaseException:
            self.close()
            raise
        self._count += 1
        return _value_of(key, self._typed)

    def _next_batch(self) -> Sequence[Key] | None:
        if self._process != os.getpid():
            raise CannotStart("A forked process cannot continue a list: begin another list.")
        if self._feed is None:
            if self._listing.was_run:
                return None
            listing = self._listing
            feed = self._feed = Feed(listing.stop, self._limit)
            # The thread must not refer to this iterator, or nobody could abandon it.
            work = partial(listing.run, partial(FeedSink, feed), "jsonl")
            self._thread = Thread(target=feed.fill, args=(work,), daemon=True)
            self._thread.start()
            self._end.detach()
            self._end = weakref.finalize(self, _abandon, self._listing, self._process, feed)
        return self._feed.take()

    def write_to(self, stream: IO[bytes]) -> KeysSummary:
        """Write keys to a binary stream, in the format of `list_keys`, and return the summary.

        This is the fastest way to print all keys. It works in the calling thread. With a limit it
        iterates.
        """
        if self._limit is None:
            return self._run(partial(ByteSink, stream))
        with self:
            batch = [*self._batch] or self._next_batch()
            if batch is not None or self._listing.is_finished:
                plan = self._listing.job.plan
                encoder = Encoder(plan.format, plan.space)
                stream.write(encoder.header())
            while batch is not None:
                stream.write(encoder.encode(batch))
                stream.flush()
                self._count += len(batch)
                batch = self._next_batch() if self._count < self._limit else None
        return self.summary

    def run(self) -> KeysSummary:
        """Read all keys without yielding them: into `output`, or only to count them."""
        if self._limit is not None:
            raise CannotStart("run reads all keys: leave limit out, or iterate instead.")
        return self._run(None)

    def _run(self, sink_of: SinkOf | None) -> KeysSummary:
        self._end.detach()
        self._listing.run(sink_of)
        return self.summary

    @property
    def summary(self) -> KeysSummary:
        """The figures so far; they are complete after the last key."""
        report = self._listing.report()
        if self._limit is not None:
            report["keys"] = self._count
        names = (name for name in KeysSummary.__slots__ if name != "_report")
        return KeysSummary(**{name: report[name] for name in names}, _report=report)

    @property
    def was_finished(self) -> bool:
        """Whether `output` holds a finished run, of which nothing remains to be read."""
        return self._listing.stored is not None

    @property
    def began_anew(self) -> bool:
        """Whether the key index turned out to be stale, so that the keys were found without it."""
        return self._listing.began_anew

    def close(self) -> None:
        """Stop reading, and wait for requests that were sent, for a few seconds at most."""
        self._end()
        if self._thread is not None and self._process == os.getpid():
            self._thread.join(LAST_SECONDS)


def _abandon(listing: "KeyListing", process: int, feed: "Feed | None" = None) -> None:
    """Stop the threads of a list, if this is the process that has them."""
    if process != os.getpid():
        return
    listing.stop.set()
    if feed is None:
        listing.cleaning.close()
    else:
        feed.close()


def _value_of(key: Key, typed: bool) -> Any:
    """Return a key as `list_keys` yields it."""
    if typed:
        return to_json(key)
    values = tuple(map(_python_value, key.values()))
    return values[0] if len(values) == 1 else values


def _python_value(value: TypedValue) -> str | Decimal | bytes:
    ((type_, content),) = value.items()
    if type_ == "N":
        return Decimal(content)
    return content if type_ == "S" else bytes(content)


class KeyListing:
    """A list of keys in this process: opened, run once, and reported.

    Attributes:
        stored: The figures of the finished run in the directory; None if keys must be read.
        was_run: Whether `run` was called.
        is_finished: Whether all keys were listed.
        began_anew: Whether the keys were found by another method after the key index was refused.
    """

    job: LocalJob

    def __init__(
        self,
        opened: OpenTable,
        request: Request,
        record: IndexRecord,
        output: Path | None,
        resume: bool,
        processes: int | None,
        patience: float,
        progress: Callable[[Progress], None],
        approve: Callable[[PredictUnits, float | None], None] | None,
        say: Callable[[str], None],
        stop: OwnStop,
        max_cost: float | None = None,
        limit: int | None = None,
    ) -> None:
        self.stop = stop
        self._max_cost = max_cost
        self.stored: dict[str, Any] | None = None
        self.was_run = self.is_finished = self.began_anew = False
        self.cleaning = ExitStack()
        self._output = output
        self._progress = progress
        self._say = say
        self._share = request.verify_share
        self._fold: Mapping[str, Any] | None = request.options.get("fold")
        # Without files, logical keys are folded as they are listed.
        metadata = self._fold and self._fold["metadata"]
        self._keeps = bool(output or self._share or metadata)
        self._folds_at_end = self._keeps and self._fold is not None
        self._figures: dict[str, Any] = {}
        self._seconds = 0.0
        with ExitStack() as cleaning:
            path = output
            if path is None and self._keeps:
                path = Path(cleaning.enter_context(tempfile.TemporaryDirectory(prefix=PREFIX)))
            tasks = tasks_of(
                record.decide_trust, folds=self._keeps, sentinels_of=record.sentinels_of
            )
            if resume and output is not None:
                check_is_begun(output)
            self.job = cleaning.enter_context(
                opened_job(
                    opened.connection,
                    request,
                    tasks,
                    path,
                    resume=resume,
                    stop=stop,
                    patience=patience,
                    processes=processes,
                )
            )
            self.job.limit = limit
            self.job.prepare(opened.table, may_be_finished=resume and not self._share)
            if self.job.journal.is_finished():
                manifest = self.job.journal.manifest() or {}
                self.stored = {name: manifest[name] for name in manifest if name not in OF_MANIFEST}
                self.is_finished = True
            elif approve is not None:
                self.job.approve = lambda job, units: approve(units, job.request.max_read_units)
            self.cleaning = cleaning.pop_all()

    @property
    def title(self) -> str:
        """The table, and the index if there is one, for messages."""
        return self.job.reader.source.title

    def run(self, sink_of: SinkOf | None, format_: Format | None = None) -> None:
        """Read the keys, and pass them to what `sink_of` makes; without it, only keep or count.

        Args:
            format_: What the sink encodes keys in; by default, the format of the run.

        Raises:
            BudgetSpent, GaveUp and others: See keyhop.errors. `report` has the keys that were read.
        """
        if self.was_run:
            raise CannotStart("The keys were listed already: begin another list.")
        self.was_run = True
        self._format = format_
        began = time.monotonic()
        if sink_of is None and self._fold is not None and not self._keeps:
            sink_of = KeySink  # it folds keys, and passes none on
        try:
            if self.stored is not None:
                self._show_stored(sink_of)
                return
            try:
                self._read(sink_of)
            except StaleIndex as error:
                self.began_anew = True
                self._say(f"{error} The keys are found without it.")
                self.job = self.job.anew(str(error))
                self._read(sink_of)
        except Stopped:
            pass
        except BaseException as error:
            if not isinstance(error, Exception):  # Ctrl-C, with threads that are still reading
                self.stop.set()
            raise
        finally:
            self._seconds = time.monotonic() - began
            self.cleaning.close()

    def _over_cost(self, maximum: float) -> BudgetSpent:
        spent = self.job.connection.prices.dollars(self.job.reader.usage.read_units)
        go_on = "Begin again" if self._output is None else "Resume it"
        return BudgetSpent(
            f"${spent:,.6f} is spent, and the maximum is ${maximum:g}: the next page may cost "
            f"more than the remainder. {go_on} with a higher max_cost=."
        )

    def _show_stored(self, sink_of: SinkOf | None) -> None:
        """Pass on the keys of a finished run; without a sink, only check its files."""
        journal = self.job.journal
        plan = journal.plan()
        if plan is None:
            return
        self.job.plan = plan
        parts = sum_up(journal, plan)[0].parts
        if sink_of is None:
            journal.check_content(parts)
            for _ in listed(journal, plan) if self._folds_at_end else ():
                pass
            return
        sink = self._begun_sink(sink_of)
        if self._folds_at_end:
            self._show_logical(sink)
        else:
            sink.show(journal, plan, parts)

    def _read(self, sink_of: SinkOf | None) -> None:
        self.job.begin()
        try:
            if isinstance(self.job.journal.store, Memory):
                self._pass_on(sink_of)
            else:
                self._keep(sink_of)
        except BudgetSpent as error:
            if self._max_cost is None:
                raise
            raise self._over_cost(self._max_cost) from error

    def _pass_on(self, sink_of: SinkOf | None) -> None:
        """Pass the keys on page by page, and keep no files."""
        # The keys of an index are held back until the index is known to have been up to date.
        with ExitStack() as cleaning:
            sink = None if sink_of is None else self._sink(sink_of)
            if sink is not None and self.job.plan.method == "index":
                sink.hold(cleaning.enter_context(tempfile.SpooledTemporaryFile(MOST_HELD_BYTES)))
            elif sink is not None:
                sink.begin()
            try:
                self._work(output=sink)
                manifest = self.job.finish()[1]
                self.is_finished = manifest["finished"]
            finally:
                self._count_folded(sink)
            if "doubt" in manifest:
                self._figures["doubt"] = manifest["doubt"]
            if sink is not None and self.is_finished:
                sink.release()

    def _keep(self, sink_of: SinkOf | None) -> None:
        """Write the keys to files, and pass them on as they are committed."""
        job, holds = self.job, self.job.plan.method == "index"
        follows = sink_of is not None and not self._folds_at_end and not holds
        sink = self._begun_sink(sink_of) if sink_of is not None and follows else None

        def show(commit: Commit) -> None:
            if sink is not None:
                sink.show(job.journal, job.plan, commit.parts)

        if self._output is not None and sink is not None:  # those of a run that is resumed
            for commit in job.journal.commits_of(sorted(job.journal.commit_files())):
                show(commit)
        try:
            self._work(committed=show)
        finally:
            totals, manifest = job.finish()
            self._figures = {name: manifest[name] for name in manifest if name not in OF_MANIFEST}
            self.is_finished = manifest["finished"]
            self._count_folded(sink)
        if self.is_finished and sink_of is not None and not follows:
            sink = self._begun_sink(sink_of)
            if self._folds_at_end:
                self._show_logical(sink)
            else:
                sink.show(job.journal, job.plan, totals.parts)
                self._count_folded(sink)
        if self.is_finished and self._share:
            self._verify(self._share)

    def _work(self, **more: Any) -> None:
        """Read to the end, or until the listing is stopped, and report the progress."""
        job = self.job
        self._progress(progress_of(job))
        try:
            job.work(lambda: self._progress(progress_of(job)), self._say, **more)
        finally:
            self._progress(progress_of(job, is_over=True))

    def _verify(self, share: float) -> None:
        job = self.job
        before = job.reader.usage.copy()
        verdict = Verdict.of_none(job.plan, share)
        with tempfile.TemporaryDirectory(prefix=PREFIX) as path:
            within = Journal(Directory(Path(path)))
            verify(job.journal, job.plan, within, job.reader, verdict, job.group.threads)
        if not verdict.is_whole:
            raise Stopped
        used = job.reader.usage - before
        checking = {**usage_json(used), **price(used.read_units, job.plan.prices)}
        self._figures["verify"] = {**verdict.to_json(), **checking}

    def _sink(self, sink_of: SinkOf) -> KeySink:
        """Return a sink, which folds keys if they are not folded at the end."""
        plan, fold = self.job.plan, None
        if self._fold is not None and not self._folds_at_end:
            from keyhop.sharding.logical_keys import fold_of

            fold = fold_of(self.job.connection, plan.space, self._fold, "")
        return sink_of(Encoder(self._format or plan.format, plan.space), fold)

    def _begun_sink(self, sink_of: SinkOf) -> KeySink:
        sink = self._sink(sink_of)
        sink.begin()
        return sink

    def _count_folded(self, sink: KeySink | None) -> None:
        if sink is not None and self._fold is not None and not self._folds_at_end:
            counts = {"physical_keys": sink.physical, "folded": sink.folded}
            self._figures |= {"keys": sink.passed, "logical": {**self._fold, **counts}}

    def _show_logical(self, sink: KeySink) -> None:
        """Pass on the logical keys of a complete run."""
        self.is_finished = False
        for keys in listed(self.job.journal, self.job.plan):
            if self.stop.is_set():
                raise Stopped
            sink.write(0, keys)
        self.is_finished = True

    def report(self) -> dict[str, Any]:
        """Return the figures of the run, or else those of this process."""
        if self.stored is not None:
            return {"seconds": 0.0, "finished": True, **self.stored, "output": str(self._output)}
        job, usage = self.job, self.job.reader.usage
        method, reason = job.how
        is_begun = hasattr(job, "group")
        path = self._output if is_begun else None
        return {
            "table": job.reader.source.name,
            "index": job.reader.source.index,
            "method": method,
            "reason": reason,
            "segments": job.plan.segments if is_begun else 0,
            "processes": job.processes if is_begun else 1,
            "workers": job.group.threads if is_begun else 0,
            "keys": job.group.keys if is_begun else 0,
            **usage_json(usage),
            **price(usage.read_units, job.connection.prices),
            "seconds": round(self._seconds, 3),
            "output": path and str(path),
            "software_version": __version__,
            **({} if self._fold is None else {"logical": self._fold}),
            **self._figures,
            "finished": self.is_finished,
        }


@dataclass(frozen=True, slots=True)
class KeysEstimate:
    """The expected cost of each method of listing keys.

    Attributes:
        estimate: The figures of the sample.
        not_index: Why the key index would not be read; None if it would be, or if the keys of
            another index are estimated.
        why_index: Why the key index would be read.
    """

    estimate: Estimate
    not_index: str | None = None
    why_index: str | None = None

    @property
    def keys(self) -> Interval:
        """The number of keys: its `mean`, and `low` and `high`, the ends of a 95% interval."""
        return self.estimate.findings.keys

    @property
    def method(self) -> str:
        """The method that `list_keys` would choose; `reason` says why."""
        return self.estimate.method

    @property
    def reason(self) -> str:
        """Why this method would be chosen."""
        return self.estimate.reason

    @property
    def methods(self) -> Mapping[str, Cost]:
        """The read units (with their interval), requests and seconds of each method."""
        return self.estimate.costs

    def dollars(self, method: str) -> Interval:
        """Return the dollars of reads of a method, at on-demand prices.

        Args:
            method: One of `methods`: "skip", "scan", "published" (the published method, which
                Keyhop does not use), or "index" if the key index would be read.

        Returns:
            The `mean`, and the ends of a 95% interval: `low` and `high`.

        Raises:
            CannotStart: The method was not estimated.
        """
        if method not in self.methods:
            raise CannotStart(
                f"method must be one of {', '.join(self.methods)}, not {shown(method)}."
            )
        units, prices = self.estimate.costs[method].units, self.estimate.prices
        return Interval(*map(prices.dollars, (units.mean, units.low, units.high)))

    def to_json(self) -> dict[str, Any]:
        """Return all figures, as `keyhop keys --dry-run --format json` prints them."""
        report = self.estimate.to_json()
        if self.not_index is not None or self.why_index is not None:
            why = self.not_index or self.why_index
            report["key_index"] = {"read": self.not_index is None, "why": why}
        return report


def estimate_keys(
    table: Any,
    *,
    session: Any = None,
    endpoint_url: str | None = None,
    stack: str | None = None,
    index: str | None = None,
    segments: int | None = None,
    threads: int | None = None,
    max_read_rate: float | None = None,
    max_read_units: float | None = None,
    patience: float = DEFAULT_PATIENCE_SECONDS,
    stop: Event | None = None,
) -> KeysEstimate:
    """Estimate by a small sample what each method of `list_keys` would cost, with intervals.

    Args:
        table, session, endpoint_url, stack, index, segments, threads, patience: See `list_keys`.
        max_read_rate: The maximum read units a second, of the sample and of the listing.
        max_read_units: What the sample may spend.
        stop: An event that ends the sample when it is set.

    Raises:
        KeyhopError: See `list_keys`.
        Stopped: `stop` was set.
    """
    opened = open_table(table, session, endpoint_url, threads or 0, patience)
    record = index_record(opened.connection, stack)
    source = opened.table.source(index)
    sentinels = None if index is not None else record.sentinels_of(opened.table)
    if sentinels is not None:
        source = without_sentinels(source, sentinels)
    reader = PageReader(
        opened.connection,
        source,
        Budget(max_read_rate),
        patience=patience,
        stop=stop or Event(),
    )
    method, reason = choose_method(source.space, source.index, "auto")
    wishes = Wishes(segments, threads, max_read_rate)
    result = estimate(reader, method, reason, wishes, max_read_units or DEFAULT_UNITS)
    trust = None if index is not None else record.decide_trust(opened.table, "auto", False)
    if trust is None:
        return KeysEstimate(result)
    if trust.source is None:
        return KeysEstimate(result, not_index=trust.why or "the table has none")
    return KeysEstimate(by_index(result, trust.source, trust.why, wishes), why_index=trust.why)
