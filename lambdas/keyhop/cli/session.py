"""What the commands share: a connection, a job in this process, and a clean end on Ctrl-C."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Timer
from types import FrameType
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.cli.display import JobProgress, StatusLine
from keyhop.cli.exit_status import INTERRUPTED, TERMINATED
from keyhop.cli.interrupts import SENTENCE
from keyhop.cli.options import Options
from keyhop.dynamodb.client import Connection, DynamoDB, connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.units import VARIABLE
from keyhop.errors import TableNotFound
from keyhop.jobs.journal import Journal
from keyhop.jobs.lifecycle import Place
from keyhop.jobs.local import LocalJob, Several, opened
from keyhop.jobs.processes import starting
from keyhop.jobs.request import Request
from keyhop.jobs.task import Tasks
from keyhop.scan.in_flight import MOST
from keyhop.storage.local import Directory
from keyhop.storage.store import Memory
from keyhop.wording import did_you_mean

STOP_SECONDS = 4.5
"""After so long nothing is waited for any more; the slice under way waits for less (worker.py)."""

TOO_LATE = (
    "keyhop: Interrupted while an answer was awaited: ended as by a crash, which costs what was "
    "not committed.\n"
)

PROGRAM = "keyhop.cli.process"
"""A process beside this one, that works a group of a run."""

PREFIX = "keyhop-"
"""Of temporary directories."""

MOST_NAMES = 1_000
"""Of tables, among which one is looked for that is called nearly so: ten requests."""

CONNECTIONS = MOST
"""Connections kept open at least; the first look at a table uses up to eight at once."""


@dataclass(slots=True)
class Stop:
    """Asked to stop, by Ctrl-C or by SIGTERM; status: the exit status that this calls for."""

    event: Event
    status: int = INTERRUPTED


@contextmanager
def stop_on_signals(
    advice: str = "", patience: float | None = None, end: Callable[[int], None] = os._exit
) -> Iterator[Stop]:
    """The first signal asks for a clean end; a second one ends at once, as a crash would, and so
    does the time: a request may be under way that nobody answers.

    If Stopped ends the block, one sentence is printed, and the caller returns `stop.status`.
    advice: what to print after that sentence.
    patience: seconds from the first signal on; None for STOP_SECONDS. end: what ends this process.
    """
    stop = Stop(Event())

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
    """To standard error, past its buffer, which may be in use at this very moment."""
    with suppress(OSError, ValueError, AttributeError):
        os.write(sys.stderr.fileno(), text.encode())


def connection_of(options: Options, threads: int = 0) -> Connection:
    """Where the options say that the table is; for so many threads."""
    endpoint = Endpoint(options.region, options.profile, options.endpoint_url, options.role_arn)
    return connect(endpoint, max(CONNECTIONS, threads), os.environ.get(VARIABLE))


@contextmanager
def suggesting(connection: Connection, table: str) -> Iterator[None]:
    """Whoever misses this table is told of others with such a name, if they may be listed."""
    try:
        yield
    except TableNotFound as error:
        try:
            names = list(islice(_table_names(connection.client), MOST_NAMES))
        except (BotoCoreError, ClientError):
            raise error from None
        raise TableNotFound(f"{error}{did_you_mean(table, names)}") from error


def _table_names(client: DynamoDB) -> Iterator[str]:
    """In pages of up to 100."""
    page: dict[str, Any] = {}
    while True:
        after = page.get("LastEvaluatedTableName")
        page = client.call("list_tables", **({"ExclusiveStartTableName": after} if after else {}))
        yield from page["TableNames"]
        if "LastEvaluatedTableName" not in page:
            return


@contextmanager
def job_in(
    path: Path | None,
    request: Request,
    tasks: Tasks,
    connection: Connection,
    options: Options,
    stop: Stop,
    processes: int | None = 1,
) -> Iterator[LocalJob]:
    """A job whose files are in a directory of its own, locked meanwhile; without one, nowhere, or
    in one for the time being if several processes work it. processes: None for as many as pay.
    """
    with ExitStack() as cleaning:

        def opened_until_then(path: Path) -> Journal:
            journal = opened(path, options.resume)
            if isinstance(journal.store, Directory):
                cleaning.callback(journal.store.unlock)
            return journal

        def aside() -> Journal:
            return opened_until_then(
                Path(cleaning.enter_context(TemporaryDirectory(prefix=PREFIX)))
            )

        yield LocalJob(
            request,
            tasks,
            connection,
            opened_until_then(path) if path else Journal(Memory()),
            stop.event,
            options.give_up_after,
            Place(str(path), f"The run in {path}", "--"),
            several=Several(starting(PROGRAM), processes, aside),
        )


def work(job: LocalJob, options: Options, state: str = "reading", **how: Any) -> bool:
    """Go on until all is read (see LocalJob.work), and show how far that is.

    state: what is being done, in a word or two.
    """
    with StatusLine(options.quiet) as status:
        return job.work(JobProgress(job, status, state).update, status.say, **how)
