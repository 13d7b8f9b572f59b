"""A session: one call of a command, with its table, its question and its result."""

import math
import os
import select
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Timer
from types import FrameType
from typing import TYPE_CHECKING, Any

from keyhop.cli.exit_status import INTERRUPTED, SENTENCE, TERMINATED
from keyhop.cli.options import Options
from keyhop.cli.output import is_text, put_out
from keyhop.cli.progress import StatusLine
from keyhop.cli.settings import sources_text
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.errors import CannotStart, Stopped
from keyhop.public.limits import DEFAULT_PATIENCE_SECONDS
from keyhop.public.tables import NamedTable, connected, open_table, suggesting
from keyhop.wording import aligned

if TYPE_CHECKING:
    from keyhop.dynamodb.client import Connection
    from keyhop.jobs.estimate import PredictUnits

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
    "keyhop: Interrupted during a request, so it ends at once. Work that was not committed is "
    "lost.\n"
)


@dataclass(slots=True)
class Stop:
    """A request to stop, by Ctrl-C or SIGTERM, and the exit status that follows from it."""

    event: Event
    status: int = INTERRUPTED


class Session:
    """One call of a command for a table; the commands are its subclasses, or use one.

    A session may begin before `stop_on_signals` does: signals then end its first look at once.
    """

    def __init__(self, options: Options, stop: Stop | None = None, threads: int = 0) -> None:
        self.options = options
        self.stop = stop or Stop(Event())
        self.say = StatusLine(getattr(options, "quiet", True)).say
        if used := getattr(options, "settings", None):
            self.say(sources_text(used))
        self.connection = connection_of(options, threads)
        with suggesting(self.connection, options.table):
            self.opened = open_table(NamedTable(self.connection, options.table))
        self.table = self.opened.table

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
        """Print the result; its text is a summary, which --quiet omits."""
        options = self.options
        if not options.quiet or not is_text(options.format):
            put_out(options.format, report, text, rows)

    def ask_about_cost(
        self, title: str, capped: float | None, predicted_units: "PredictUnits"
    ) -> None:
        """Ask, if reading may cost more than ASK_ABOVE; --yes and --max-cost are answers.

        Args:
            title: The table or the index.
            capped: The maximum read units; None for no limit.
        """
        answered = self.options.yes or getattr(self.options, "max_cost", None) is not None
        prices = self.connection.prices
        limit = prices.units_for(ASK_ABOVE)
        if answered or (capped is not None and capped <= limit):
            return
        units = predicted_units(lambda units: units.high <= limit)
        if units.high <= limit:
            return

        def facts() -> Facts:
            yield from place(self.table.arn, self.connection.endpoint)
            maximum = "with no upper limit that is known"
            if math.isfinite(units.high):
                maximum = f"at most {units.high:,.0f}: ${prices.dollars(units.high):,.2f}"
            yield "reads", f"about {units.mean:,.0f} RRU, {maximum}"
            yield "cost", f"about ${prices.dollars(units.mean):,.2f} ({prices.on_demand})"

        act = f"read {title} for more than ${ASK_ABOVE:g}"
        confirm(act, facts, False, self.stop.event)


def connection_of(options: Options, threads: int = 0) -> "Connection":
    """Connect to the place that the options name, with connections for so many threads."""
    endpoint = Endpoint(options.region, options.profile, options.endpoint_url, options.role_arn)
    return connected(endpoint, threads, getattr(options, "give_up_after", DEFAULT_PATIENCE_SECONDS))


def confirm(act: str, facts: Callable[[], Facts], yes: bool, stop: Event) -> None:
    """Ask before something is written to a user's table, or costs more than a little.

    Without a terminal on standard input and on standard error nobody can be asked, and only
    `--yes` lets the command go on.

    Args:
        act: The action, as in "whether to build the key index of Orders".
        facts: Called only before a question, because it may read a sample.
        stop: Set by Ctrl-C.

    Raises:
        CannotStart: Without a terminal, and for any answer but yes.
        Stopped: Ctrl-C.
    """
    if yes:
        return
    if not is_terminal():
        raise CannotStart(
            f"This would {act}, but there is no terminal on which to confirm it: add --yes."
        )
    for line in aligned(facts(), "  "):
        print(line, file=sys.stderr)
    print(f"{act[:1].upper()}{act[1:]}? [y/N] ", end="", file=sys.stderr, flush=True)
    if _typed(stop).strip().lower() not in YES:
        raise CannotStart("The answer was no, so nothing more was done.")


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
