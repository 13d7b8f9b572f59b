"""A session: one call of a command, with its table, its question, its jobs here, and its result."""

import math
import os
import select
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Timer
from types import FrameType
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.cli.exit_status import INTERRUPTED, SENTENCE, TERMINATED
from keyhop.cli.options import Options
from keyhop.cli.output import aligned, is_text, put_out, write_report
from keyhop.cli.progress import JobProgress, StatusLine
from keyhop.dynamodb.client import Connection, DynamoDB, aws_client, connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.tables import Source, Table, look_up
from keyhop.dynamodb.units import VARIABLE
from keyhop.errors import CannotStart, StaleIndex, TableNotFound
from keyhop.jobs.estimate import Ahead
from keyhop.jobs.journal import Journal
from keyhop.jobs.lifecycle import Place
from keyhop.jobs.local import LocalJob, Several, opened
from keyhop.jobs.processes import starting
from keyhop.jobs.request import Request
from keyhop.jobs.task import Tasks
from keyhop.key_index.index import Sentinels, sentinels_of
from keyhop.key_index.provisioned import Scaling
from keyhop.key_index.registry import Registry, bucket_registry, is_alive, local_registry
from keyhop.key_index.trust import Evidence, Trust, choose_source, gather
from keyhop.scan.in_flight import MOST
from keyhop.storage.local import Directory
from keyhop.storage.store import Memory
from keyhop.streams.event_source import Watch
from keyhop.wording import did_you_mean

Facts = Iterable[tuple[str, str]]
"""The names and values that are shown above the question."""

ASK_ABOVE = 1.0
"""Dollars of reads."""

LOOK_SECONDS = 0.1
"""How often to check for Ctrl-C while waiting for an answer."""

YES = ("y", "yes")

STOP_SECONDS = 4.5
"""After so long nothing is waited for any more; the current slice waits for less (worker.py)."""

TOO_LATE = (
    "keyhop: Interrupted while an answer was awaited: ended as by a crash, which costs what was "
    "not committed.\n"
)

PROGRAM = "keyhop.cli.process"
"""The program of a further process, which works a group of a run."""

PREFIX = "keyhop-"
"""The prefix of temporary directories."""

MOST_NAMES = 1_000
"""The maximum number of tables among which to look for similar names: ten requests."""

CONNECTIONS = MOST
"""The least number of connections to keep open; the first look at a table uses up to eight."""

POLL_SECONDS = 2.0
LOCAL_POLL_SECONDS = 0.05
LEAST_WAIT_SECONDS = 0.05


@dataclass(slots=True)
class Stop:
    """A request to stop, by Ctrl-C or SIGTERM, and the exit status that follows from it."""

    event: Event
    status: int = INTERRUPTED


class Session:
    """One call of a command for a table; the commands are its subclasses, or use one.

    A session may begin before `stop_on_signals` does: signals then end its first look at once.
    """

    def __init__(
        self,
        options: Options,
        stop: Stop | None = None,
        table_of: Callable[[Connection, str], Table] = look_up,
        threads: int = 0,
    ) -> None:
        self.options = options
        self.stop = stop or Stop(Event())
        self.connection = connection_of(options, threads)
        with suggesting(self.connection, options.table):
            self.table = table_of(self.connection, options.table)
        self.say = StatusLine(getattr(options, "quiet", True)).say
        self._waited_for = ""

    @cached_property
    def key_index(self) -> "KeyIndexAccess":
        """The record of the key index that --stack names."""
        return KeyIndexAccess(self.options, self.connection)

    def confirm(self, act: str, facts: Callable[[], Facts] = tuple) -> None:
        """Ask below the table's place and the facts, unless --yes was given; see `confirm`."""

        def all_facts() -> Facts:
            yield from place(self.table.arn, self.connection.endpoint)
            yield from facts()

        confirm(act, all_facts, self.options.yes, self.stop.event)

    def put_out(
        self,
        report: Mapping[str, Any],
        text: Callable[[], str],
        rows: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Write the report and print the result; its text is a summary, which --quiet omits."""
        options = self.options
        write_report(options.report, report)
        if not options.quiet or not is_text(options.format):
            put_out(options.format, report, text, rows)

    def run_job(
        self,
        path: Path | None,
        request: Request,
        tasks: Tasks,
        state: str,
        expected: float | None = None,
        table: Table | None = None,
        processes: int | None = 1,
    ) -> LocalJob:
        """Run a job in this process to its end, unless its directory holds a finished one.

        Raises:
            Stopped: The job was interrupted.
        """
        with self.job_in(path, request, tasks, processes) as job:
            job.prepare(table, may_be_finished=self.options.resume)
            if job.journal.is_finished():
                return job
            job.expected = expected
            try:
                self._complete(job, state)
            except StaleIndex as error:
                job = job.anew(str(error))
                self._complete(job, state)
            return job

    def _complete(self, job: LocalJob, state: str) -> None:
        job.begin()
        if not self.work(job, state):
            raise Stopped
        job.finish()

    @contextmanager
    def job_in(
        self, path: Path | None, request: Request, tasks: Tasks, processes: int | None = 1
    ) -> Iterator[LocalJob]:
        """Open a job whose files are in a locked directory.

        Without a path the files are nowhere, or, if several processes do the work, in a temporary
        directory. `processes` is None for as many as make the run faster.
        """
        with ExitStack() as cleaning:

            def opened_until_then(path: Path) -> Journal:
                journal = opened(path, self.options.resume)
                if isinstance(journal.store, Directory):
                    cleaning.callback(journal.store.unlock)
                return journal

            def temporary() -> Journal:
                directory = TemporaryDirectory(prefix=PREFIX)
                return opened_until_then(Path(cleaning.enter_context(directory)))

            yield LocalJob(
                request,
                tasks,
                self.connection,
                opened_until_then(path) if path else Journal(Memory()),
                self.stop.event,
                self.options.give_up_after,
                Place(str(path), f"The run in {path}", "--"),
                several=Several(starting(PROGRAM), processes, temporary),
            )

    def work(self, job: LocalJob, state: str = "reading", **more: Any) -> bool:
        """Work until everything is read (see LocalJob.work), and show the progress.

        `state` is the activity, in a word or two.
        """
        with StatusLine(self.options.quiet) as status:
            return job.work(JobProgress(job, status, state).update, status.say, **more)

    def approve(self, job: LocalJob, ahead: Ahead) -> None:
        """Ask, if reading may cost more than ASK_ABOVE; --yes and --max-cost are answers."""
        answered = self.options.yes or getattr(self.options, "max_cost", None) is not None
        prices, capped = job.connection.prices, job.request.max_read_units
        limit = prices.units_for(ASK_ABOVE)
        if answered or (capped is not None and capped <= limit):
            return
        units = ahead(lambda units: units.high <= limit)
        if units.high <= limit:
            return

        def facts() -> Facts:
            yield from place(job.reader.source.arn, job.connection.endpoint)
            maximum = "with no upper limit that is known"
            if math.isfinite(units.high):
                maximum = f"at most {units.high:,.0f}: ${prices.dollars(units.high):,.2f}"
            yield "reads", f"about {units.mean:,.0f} RRU, {maximum}"
            yield "cost", f"about ${prices.dollars(units.mean):,.2f} ({prices.on_demand})"

        act = f"read {job.reader.source.title} for more than ${ASK_ABOVE:g}"
        confirm(act, facts, False, self.stop.event)

    def wait_for(self, says: str) -> None:
        """Say once why the command waits, and wait until the next look. Raise Stopped."""
        if says != self._waited_for:
            self.say(f"{says} ...")
            self._waited_for = says
        is_local = self.connection.endpoint.is_loopback
        self.wait(LOCAL_POLL_SECONDS if is_local else POLL_SECONDS)

    def wait(self, seconds: float) -> None:
        """Wait; raise Stopped after Ctrl-C."""
        if self.stop.event.wait(max(LEAST_WAIT_SECONDS, seconds)):
            raise Stopped

    def check_stop(self) -> None:
        """Raise Stopped after Ctrl-C."""
        if self.stop.event.is_set():
            raise Stopped


def connection_of(options: Options, threads: int = 0) -> Connection:
    """Connect to the place that the options name, with connections for so many threads."""
    endpoint = Endpoint(options.region, options.profile, options.endpoint_url, options.role_arn)
    return connect(endpoint, max(CONNECTIONS, threads), os.environ.get(VARIABLE))


@contextmanager
def suggesting(connection: Connection, table: str) -> Iterator[None]:
    """Add similar names of tables to a TableNotFound, if tables may be listed."""
    try:
        yield
    except TableNotFound as error:
        try:
            names = list(islice(_table_names(connection.client), MOST_NAMES))
        except (BotoCoreError, ClientError):
            raise error from None
        raise TableNotFound(f"{error}{did_you_mean(table, names)}") from error


def _table_names(client: DynamoDB) -> Iterator[str]:
    page: dict[str, Any] = {}
    while True:
        after = page.get("LastEvaluatedTableName")
        page = client.call("list_tables", **({"ExclusiveStartTableName": after} if after else {}))
        yield from page["TableNames"]
        if "LastEvaluatedTableName" not in page:
            return


def confirm(act: str, facts: Callable[[], Facts], yes: bool, stop: Event) -> None:
    """Ask before something is written to a user's table, or costs more than a little.

    Without a terminal on standard input and on standard error nobody can be asked, and only
    `--yes` lets the command go on.

    Args:
        act: The action, as in "whether to build the key index of Orders".
        facts: Called only before a question, because it may read a sample.
        stop: Set by Ctrl-C.

    Raises:
        CannotStart: Without a terminal, before anything is read, and for any answer but yes.
        Stopped: Ctrl-C.
    """
    if yes:
        return
    if not is_terminal():
        raise CannotStart(f"There is no terminal to ask at whether to {act}: add --yes.")
    for line in aligned(facts(), "  "):
        print(line, file=sys.stderr)
    print(f"{act[:1].upper()}{act[1:]}? [y/N] ", end="", file=sys.stderr, flush=True)
    if _typed(stop).strip().lower() not in YES:
        raise CannotStart("The answer was no: nothing was done.")


def place(arn: str, endpoint: Endpoint) -> Facts:
    """Return account, region and table, by the table's ARN."""
    parts = arn.split(":", 5)
    region, account, resource = parts[3:] if len(parts) == 6 else ("", "", "")
    yield "account", account or "unknown"
    yield "region", region or endpoint.region or "unknown"
    if endpoint.url:
        yield "endpoint", endpoint.shown
    yield "table", resource.partition("/")[2] or "unknown"


def is_terminal() -> bool:
    """Return whether a person can be asked."""
    streams = (sys.stdin, sys.stderr)
    return all(stream is not None and stream.isatty() for stream in streams)


def _typed(stop: Event) -> str:
    """Read a line of standard input, empty at its end. The signal's handler only sets `stop`."""
    while not stop.is_set():
        ready, _, _ = select.select([sys.stdin], [], [], LOOK_SECONDS)
        if ready:
            return sys.stdin.readline()
    print(file=sys.stderr)
    raise Stopped


@contextmanager
def stop_on_signals(
    advice: str = "",
    patience: float | None = None,
    end: Callable[[int], None] = os._exit,
    stop: Stop | None = None,
) -> Iterator[Stop]:
    """Let the first signal ask for a clean end.

    A second one ends this process at once, as a crash would, and so does the time, because the
    block may be waiting for a request that is never answered. If Stopped ends the block, one
    sentence is printed, and the caller returns `stop.status`.

    Args:
        advice: The text to print after that sentence.
        patience: The time from the first signal on; STOP_SECONDS by default.
        end: Ends this process.
        stop: The request to stop of a session that has begun already.
    """
    stop = stop or Stop(Event())

    def give_up() -> None:
        _shout(TOO_LATE)
        end(stop.status)

    late = Timer(STOP_SECONDS if patience is None else patience, give_up)
    late.daemon = True

    def ask(number: int, _frame: FrameType | None) -> None:
        stop.status = TERMINATED if number == signal.SIGTERM else INTERRUPTED
        if stop.event.is_set():
            end(stop.status)
            return
        stop.event.set()
        _shout("keyhop: stopping ...\n")
        late.start()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    except Stopped:
        print(f"{SENTENCE} {advice}".rstrip(), file=sys.stderr)
    finally:
        late.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)


def _shout(text: str) -> None:
    """Write to standard error past its buffer, which may be in use at this very moment."""
    with suppress(OSError, ValueError, AttributeError):
        os.write(sys.stderr.fileno(), text.encode())


class KeyIndexAccess:
    """The key indexes as a command sees them.

    Their record is in a deployment's bucket (--stack), or on this machine.

    Attributes:
        is_shared: Whether the record is that of a deployment, which its state machines use, too.
        watch: Finds keepers; None where there can be none.
        scaling: Changes auto scaling.
        is_alive: Checks whether the holder of a lease is alive.
    """

    def __init__(self, options: Options, connection: Connection) -> None:
        self._endpoint = connection.endpoint
        self.watch = Watch.from_here(connection.endpoint)
        client_of = partial(aws_client, "application-autoscaling", connection.endpoint)
        self.scaling = Scaling(client_of if self.watch else None)
        self.is_shared = options.stack is not None
        self._bucket = ""
        if self.is_shared:
            from keyhop.cli.stack import find_stack  # with boto3's transfers to and from S3

            self._bucket = find_stack(options.stack, self._endpoint).bucket
        self.is_alive = partial(is_alive, partial(aws_client, "stepfunctions", connection.endpoint))

    def registry(self, table: Table | Source) -> Registry:
        if not self.is_shared:
            return local_registry(table)
        return bucket_registry(aws_client("s3", self._endpoint), self._bucket, table)

    def decide_trust(self, table: Table, method: str, accepts_stale: bool) -> Trust:
        """Decide whether the keys are read from the index; see keys/task.py."""
        return choose_source(table, method, accepts_stale, lambda: self.evidence(table))

    def sentinels_of(self, table: Table) -> Sentinels | None:
        """Return what identifies the sentinels of a table; see keys/task.py."""
        return sentinels_of(table, self.registry(table).entry())

    def evidence(self, table: Table) -> Evidence:
        """Return the current state of the table's key index."""
        return gather(table, self.registry(table).entry(), self.watch)
