"""The question before something is written to a user's table, or costs more than a little.

A terminal means standard input and standard error: where one of them is none, nobody can be asked,
and only `--yes` lets the command go on.
"""

import select
import sys
from collections.abc import Callable, Iterable
from threading import Event

from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.requester import Stopped
from keyhop.errors import CannotStart

Facts = Iterable[tuple[str, str]]
"""What is shown above the question: a name, and what there is to know."""

ASK_ABOVE = 1.0
"""Dollars of reads."""

LOOK_SECONDS = 0.1
"""So often it is looked whether the person pressed Ctrl-C instead."""

YES = ("y", "yes")


def confirm(act: str, told: Callable[[], Facts], yes: bool, stop: Event) -> None:
    """Go on only with a yes: `--yes`, or one that a person types under what is told.

    act: what is about to be done, as in "whether to build the key index of Orders". told: called
    only if somebody can be asked, as it may read a sample. stop: set by Ctrl-C.
    Raises CannotStart without a terminal, before anything is read, and for any other answer;
    Stopped.
    """
    if yes:
        return
    if not is_terminal():
        raise CannotStart(f"There is no terminal to ask at whether to {act}: add --yes.")
    facts = list(told())
    width = max((len(name) for name, _ in facts), default=0)
    for name, text in facts:
        print(f"  {name.ljust(width)}  {text}", file=sys.stderr)
    print(f"{act[:1].upper()}{act[1:]}? [y/N] ", end="", file=sys.stderr, flush=True)
    if _typed(stop).strip().lower() not in YES:
        raise CannotStart("The answer was no: nothing was done.")


def place(arn: str, endpoint: Endpoint) -> Facts:
    """Account, region and table, by the table's ARN, which DescribeTable has told anyway."""
    parts = arn.split(":", 5)
    region, account, resource = parts[3:] if len(parts) == 6 else ("", "", "")
    yield "account", account or "unknown"
    yield "region", region or endpoint.region or "unknown"
    if endpoint.url:
        yield "endpoint", endpoint.shown
    yield "table", resource.partition("/")[2] or "unknown"


def is_terminal() -> bool:
    """Whether a person can be asked."""
    streams = (sys.stdin, sys.stderr)
    return all(stream is not None and stream.isatty() for stream in streams)


def _typed(stop: Event) -> str:
    """A line from standard input; nothing at its end. The signal's handler only sets `stop`."""
    while not stop.is_set():
        ready, _, _ = select.select([sys.stdin], [], [], LOOK_SECONDS)
        if ready:
            return sys.stdin.readline()
    print(file=sys.stderr)
    raise Stopped
