"""What `keyhop shards` does: list, show, add, drain."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console
from rich.text import Text

from keyhop.cli.exit_status import DONE
from keyhop.cli.options import Options
from keyhop.cli.progress import duration
from keyhop.cli.session import stop_on_signals
from keyhop.cli.shards_command import ShardsCommand
from keyhop.cli.shards_view import (
    ASCII_BAR,
    BAR,
    escaped,
    key_json,
    keys_table,
    phase_text,
    shards_word,
    show_text,
    shown,
)
from keyhop.dynamodb.capacity import PRICE_DATE, PRICE_REGION, write_dollars
from keyhop.dynamodb.client import explained
from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.values import TypedValue
from keyhop.errors import CannotStart, GaveUp
from keyhop.sharding.drain import Drain, DrainStep, Next
from keyhop.sharding.io.items import typed, untyped
from keyhop.sharding.key.shards import DRAINING, PASSING, Phase, Shards
from keyhop.sharding.manage import TooEarly, add_shards, list_keys
from keyhop.sharding.store.metadata import MetadataChanged
from keyhop.sharding.table import ShardedTable

STEP_SECONDS = 1.0
"""A drain moves items for so long before it looks whether it is to stop."""
LINE_SECONDS = 5.0
UNLIMITED_WIDTH = 10_000


class StatusLine:
    """What goes on, on standard error: a line on a terminal, else one now and then."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._console = Console(stderr=True, markup=False, highlight=False, emoji=False)
        self._status = self._console.status(Text("")) if self._console.is_terminal else None
        self._said = ""
        self._said_at = float("-inf")

    @contextmanager
    def at_work(self) -> Iterator["StatusLine"]:
        """Show a line meanwhile, on a terminal."""
        if self._status is None or self._quiet:
            yield self
            return
        with self._status:
            yield self

    def now(self, kind: str, text: str) -> None:
        """What goes on; repeated only now and then while it is of the same kind."""
        if self._quiet:
            return
        if self._status is not None:
            self._status.update(Text(text, no_wrap=True, overflow="ellipsis"))
        elif kind != self._said or time.monotonic() - self._said_at >= LINE_SECONDS:
            self.say(text, kind)

    def say(self, text: str, kind: str = "") -> None:
        """A line that stays; kind: what it is the first of."""
        if not self._quiet:
            self._said, self._said_at = kind, time.monotonic()
            print(text, file=sys.stderr, flush=True)


def _action(work: Callable[[ShardsCommand], int]) -> Callable[[Options], int]:
    """A command: work on the table that its options name, until it is done or interrupted."""

    def run(options: Options) -> int:
        with stop_on_signals() as stop:
            table = ShardsCommand(options, stop)
            try:
                return work(table)
            except Stopped:
                print(
                    "keyhop: Interrupted. Start the same command again to go on; keyhop shards "
                    "show tells where the key stands.",
                    file=sys.stderr,
                )
                return stop.status
            except (BotoCoreError, ClientError) as error:
                raise explained(error, table.endpoint, options.metadata) from error

    return run


@_action
def list_(table: ShardsCommand) -> int:
    """The keys of a table."""
    options = table.options
    rows = [
        (typed(one.key), one)
        for one in list_keys(table.to_look())
        if options.all or _is_worth_a_look(one.shards)
    ]
    rows.sort(key=lambda pair: (-pair[1].shards.number, shown(pair[0])))
    if options.json:
        print(json.dumps([key_json(key, one) for key, one in rows], indent=2))
        return DONE
    if not rows:
        what = (
            "is empty" if options.all else "has no key with more than one shard (--all: the rest)"
        )
        print(f"{escaped(options.metadata)} {what}.")
        return DONE
    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = UNLIMITED_WIDTH  # whoever reads a pipe wants the keys as a whole
    console.print(keys_table(rows, table.clock.time()))
    return DONE


def _is_worth_a_look(shards: Shards) -> bool:
    return shards.number > 1 or shards.readable > 1 or shards.phase is not Phase.STEADY


@_action
def show(table: ShardsCommand) -> int:
    """One key."""
    key = table.key()
    one = table.get(key)
    if table.options.json:
        print(json.dumps(key_json(key, one), indent=2))
        return DONE
    print(_encodable(show_text(one, key, table.clock.time(), _bar())))
    return DONE


def _bar() -> str:
    return BAR if _encodable(BAR) == BAR else ASCII_BAR


def _encodable(text: str) -> str:
    """Text as standard output can show it, whatever its encoding."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


@_action
def add(table: ShardsCommand) -> int:
    """Add shards to a key."""
    options = table.options
    key = table.key()
    before = table.find(key)
    library = table.agreed(before.shards if before else None)
    wanted = (before.shards.number if before else 1) + options.count
    status = StatusLine(options.quiet)
    with status.at_work():
        shards = _grown(table, library, key, wanted, status)
        status.say(
            f"{shown(key)}: {shards_word(shards.number)} from now on. Readers read them at once; "
            f"writers use them after {shards.settle:g} s, when all readers know."
        )
        if not options.no_wait:
            _wait_for_writers(table, library, key, wanted, status)
            status.say(f"Writers use {shards_word(wanted)} of {shown(key)} now.")
    return DONE


def _grown(
    table: ShardsCommand, library: ShardedTable, key: TypedValue, wanted: int, status: StatusLine
) -> Shards:
    """The metadata once it has `wanted` shards; somebody else may have added them."""
    while True:
        known = library.metadata.of(key, register=True, fresh=True)
        if known.shards.number >= wanted:
            return known.shards
        try:
            return add_shards(library, untyped(key), wanted - known.shards.number).shards
        except TooEarly as early:
            if table.options.no_wait:
                raise CannotStart(
                    f"The shard count of {shown(key)} is being changed, or was within the last "
                    f"minute: try again after that, or without --no-wait."
                ) from early
            if known.shards.phase not in PASSING and known.shards.phase is not Phase.STEADY:
                raise CannotStart(
                    f"{shown(key)} is being drained ({known.shards.phase}): let that end, or end "
                    f"it with keyhop shards drain --call-off."
                ) from early
            status.now("early", f"waiting {early.seconds:.1f} s until the last change has settled")
            table.wait(early.seconds)
        except MetadataChanged:
            table.wait(0)


def _wait_for_writers(
    table: ShardsCommand, library: ShardedTable, key: TypedValue, wanted: int, status: StatusLine
) -> None:
    while True:
        known = library.metadata.of(key, fresh=True)
        known = library.writer.throttle_tracker.pass_on(key, known)
        if known.shards.writable >= wanted or known.shards.number < wanted:
            return
        left = known.shards.settle - library.metadata.known_for(known)
        status.now("wait", f"waiting {max(0.0, left):.1f} s until writers use them")
        table.wait(min(left, STEP_SECONDS))


@_action
def drain(table: ShardsCommand) -> int:
    """Move items off a key's last shards."""
    options = table.options
    key = table.key()
    before = table.get(key).shards
    library = table.agreed(before)
    work = Drain(library)
    status = StatusLine(options.quiet)
    if options.call_off:
        return _call_off(table, work, key, before, status)
    if before.phase not in DRAINING and before.number <= options.shards:
        status.say(f"{shown(key)} has {shards_word(before.number)}: there is nothing to drain.")
        return DONE
    if before.phase in DRAINING and before.number != options.shards:
        raise CannotStart(
            f"{shown(key)} is being drained to {shards_word(before.number)}: go on with --shards "
            f"{before.number}, or end that with --call-off."
        )
    status.say(
        f"Draining {shown(key)} to {shards_word(options.shards)}, with {before.settle:g} s for "
        f"each of four steps and more. Readers and writers go on."
    )
    began, moved, phase, begun = table.clock.monotonic(), 0, Phase.STEADY, False
    with status.at_work():
        while True:
            step = work.step(untyped(key), options.shards, STEP_SECONDS, begun=begun)
            begun = step.begun
            moved += step.moved
            if step.action is Next.DONE:
                break
            if step.action is Next.CALLED_OFF:
                raise GaveUp(
                    f"The drain of {shown(key)} was called off, or the key became hot: it has "
                    f"{shards_word(step.number)} again."
                )
            if step.phase is not phase:
                phase = step.phase
                status.say(f"  {phase}: {_phase_of(step)}", phase)
            line = f"  {phase}: {moved:,} items moved"
            left = step.seconds if step.action is Next.WAIT else 0.0
            while left > STEP_SECONDS:
                status.now(phase, f"{line}; {left:.0f} s until the next step")
                table.wait(STEP_SECONDS)
                left -= STEP_SECONDS
            status.now(phase, line)
            table.wait(left)
    units = library.usage.write_units
    status.say(
        f"{shown(key)} has {shards_word(step.number)} now: {moved:,} items moved in "
        f"{duration(table.clock.monotonic() - began)}, for {units:,.0f} WRU: "
        f"${write_dollars(units):,.6f} (on demand, {PRICE_REGION}, {PRICE_DATE})"
    )
    return DONE


def _phase_of(step: DrainStep) -> str:
    writable = step.readable if step.phase is Phase.CLOSING else step.number
    return phase_text(Shards(step.number, 0, (), writable, step.readable, step.phase))


def _call_off(
    table: ShardsCommand, work: Drain, key: TypedValue, before: Shards, status: StatusLine
) -> int:
    if before.phase not in DRAINING:
        raise CannotStart(f"No drain of {shown(key)} is under way ({before.phase}).")
    with status.at_work():
        while True:
            step = work.call_off(untyped(key))
            if step.action is Next.DONE:
                break
            status.now("wait", f"waiting {step.seconds:.1f} s until the last step has settled")
            table.wait(step.seconds)
    one = table.get(key)
    if one.shards.phase is Phase.STEADY and one.shards.number == before.number:
        raise GaveUp(
            f"Too late: the drain of {shown(key)} has ended, with {shards_word(before.number)}; "
            "keyhop shards add gives it more."
        )
    status.say(f"{shown(key)}: {one.shards.phase}: {phase_text(one.shards)}.")
    return DONE
