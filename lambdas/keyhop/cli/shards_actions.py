"""What `keyhop shards` does: ask, call keyhop.Shards, and print the result.

Keys and names of tables come from others: control characters in them are escaped, and rich's
markup is never applied to them.
"""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from keyhop import KeyShards, LostKey
from keyhop.cli.exit_status import DONE, FAILED
from keyhop.cli.options import Options
from keyhop.cli.output import UNLIMITED_WIDTH, encodable, is_text, put_out
from keyhop.cli.progress import JobProgress, StatusLine
from keyhop.cli.session import Facts, Session, Stop, stop_on_signals
from keyhop.errors import CannotStart
from keyhop.public.runs import Progress
from keyhop.public.shards import RECOVERY_UNITS, ShardChange, Shards
from keyhop.public.tables import suggesting
from keyhop.sharding.key.texts import BAR, ago, escaped, moment, shards_text, shown
from keyhop.wording import aligned, counted, duration

MOST_SHOWN = 10
"""Lost keys that are named before the question."""

ASCII_BAR = "#"


def run(options: Options) -> int:
    """Run one action on the shards of a table, and return its exit status."""
    if getattr(options, "remote", False):
        return _start_drain(options)
    advice = "Start the same command again to go on; keyhop shards show prints the key's state."
    status = StatusLine(getattr(options, "quiet", True))
    with stop_on_signals(advice) as stop, status:
        return int(getattr(ShardsCommand(options, stop, status), options.action)())
    return stop.status


def _start_drain(options: Options) -> int:
    """Let a deployment drain a key; ask before."""
    from keyhop.cli.runs_actions import start  # It loads boto3's transfers.

    key = {"key": {"B": options.key}, "typed": True} if options.base64 else {"key": options.key}
    values = {"table": options.table, "shards": options.shards, **key}
    act = f"drain {escaped(options.key)} to {shards_text(options.shards)}"
    return start(options, "DrainShards", values, act)


class ShardsCommand(Session):
    """The shards of a table's keys; list_, show, add, drain and recover are the actions."""

    def __init__(self, options: Options, stop: Stop, status: StatusLine) -> None:
        super().__init__(options, stop)
        self.status, self.say = status, status.say
        self._shown: JobProgress | None = None
        names = ("placement", "hash", "append_only", "separator")
        with suggesting(self.connection, options.metadata or f"{options.table}-shards"):
            self.shards = Shards(
                self.opened,
                **{name: getattr(options, name) for name in names if hasattr(options, name)},
                stack=options.stack,
                metadata=options.metadata,
                progress=self._show,
                approve=self._ask,
                approve_reads=lambda predicted_units, maximum: self.ask_about_cost(
                    self.table.name, maximum, predicted_units
                ),
                say=status.say,
                stop=stop.event,
            )

    def _show(self, progress: Progress) -> None:
        if progress.activity == "reading":
            self._shown = self._shown or JobProgress(self.status)
            self._shown.update(progress)
            return
        if progress.is_over:
            self.status.end()
            return
        wait = f"; {progress.seconds:.0f} s until the next step" if progress.seconds > 1 else ""
        self.status.now("", f"  {progress.activity}: {counted(progress.moved, 'item')} moved{wait}")

    def _ask(self, action: str, estimate: Callable[[], Any]) -> None:
        """Ask before something is written; lost keys are shown first, also with --yes."""
        if action == "recover":
            count = self._show_lost(estimate())
            act = f"recover the metadata of {counted(count, 'key')}"
            self.confirm(act, lambda: self._facts(RECOVERY_UNITS * count))
            return
        key = shown(self._key())
        if action == "add":
            act = f"give {key} {shards_text(estimate().after)}"
        else:
            act = f"drain {key} to {shards_text(self.options.shards)}"
        self.confirm(act, lambda: self._change_facts(estimate()))

    def _change_facts(self, change: ShardChange) -> Facts:
        return self._facts(change.write_units, change if change.action == "drain" else None)

    def _facts(self, write_units: float, drain: ShardChange | None = None) -> Facts:
        """Return the metadata table, and the estimate of a drain or of writes to that table."""
        prices, metadata = self.connection.prices, escaped(self.shards.metadata)
        about, alone, read_units = "about", f", into {metadata} alone", 0.0
        yield "metadata", f"{metadata}, {self.shards.metadata_reason}"
        if drain is not None:
            about, alone = "more than" if drain.is_least else "about", ""
            read_units = drain.read_units
            yield "moves", f"{about} {counted(drain.items, 'item')}"
            yield "reads", f"{about} {read_units:,.0f} RRU"
        yield "writes", f"{about} {write_units:,.0f} WRU{alone}"
        dollars = prices.dollars(read_units, write_units)
        yield "cost", f"{about} ${dollars:,.6f} ({prices.on_demand})"

    def list_(self) -> int:
        options = self.options
        keys = self.shards.list(all=options.all)
        if not is_text(options.format):
            records = [key.to_json() for key in keys]
            put_out(options.format, records, str, list(map(without_traffic, records)))
        elif keys:
            console = Console(markup=False, highlight=False, emoji=False)
            if not console.is_terminal:
                console.width = UNLIMITED_WIDTH  # a pipe gets the keys uncut
            console.print(keys_table(keys))
        else:
            few = "has no key with more than one shard (--all: the rest)"
            print(f"{escaped(self.shards.metadata)} {'is empty' if options.all else few}.")
        return DONE

    def show(self) -> int:
        key = self.shards.show(self._key())
        bar = BAR if encodable(BAR) == BAR else ASCII_BAR
        record = key.to_json()
        put_out(self.options.format, record, lambda: key.to_text(bar), [without_traffic(record)])
        return DONE

    def add(self) -> int:
        options = self.options
        wait, dry_run = not options.no_wait, options.dry_run
        return self._tell(self.shards.add(self._key(), options.count, wait=wait, dry_run=dry_run))

    def drain(self) -> int:
        options, key = self.options, self._key()
        if options.call_off:
            return self._tell(self.shards.call_off(key))
        change = self.shards.drain(key, options.shards, dry_run=options.dry_run)
        if not change.dry_run and change.before != change.after:
            self.say(
                f"{shown(key)} has {shards_text(change.after)} now: "
                f"{counted(change.items, 'item')} moved in {duration(change.seconds)}, for "
                f"{change.read_units:,.0f} RRU and {change.write_units:,.0f} WRU: "
                f"${change.dollars:,.6f} ({self.connection.prices.on_demand})"
            )
        return self._tell(change)

    def _tell(self, change: ShardChange) -> int:
        """Print a change to programs, or an estimate; a person has seen each step of a change."""
        if change.dry_run or not is_text(self.options.format):
            now = f"{shown(change.key)} would have {shards_text(change.after)}; now {change.before}"
            lines = [now, *aligned(self._change_facts(change), "  ")]
            put_out(self.options.format, change.to_json(), lambda: "\n".join(lines))
        return DONE

    def recover(self) -> int:
        options = self.options
        key = None if options.key is None else self._key()
        lost_keys = self.shards.recover(
            key, with_gaps=options.with_gaps, max_cost=options.max_cost, dry_run=options.dry_run
        )
        if options.dry_run:
            self.say(f"metadata: {escaped(self.shards.metadata)}, {self.shards.metadata_reason}")
        keys = [lost for lost in lost_keys if options.with_gaps or not lost.has_gaps]
        if options.dry_run or not keys:  # otherwise they were shown before the question
            self._show_lost(lost_keys)
        if keys or not is_text(options.format):
            records = [lost.to_json() for lost in keys]
            put_out(options.format, records, lambda: "\n".join(lost.to_text() for lost in keys))
        return FAILED if any(lost.error is not None for lost in keys) else DONE

    def _show_lost(self, lost_keys: Sequence[LostKey]) -> int:
        """Show the lost keys, and return how many of them will be recovered."""
        keys = [lost for lost in lost_keys if self.options.with_gaps or not lost.has_gaps]
        left_out = [] if self.options.with_gaps else [lost for lost in lost_keys if lost.has_gaps]
        if not keys:
            metadata = escaped(self.shards.metadata)
            self.say(f"{metadata} lacks nothing: no key has items in shards beyond it.")
        for lost in keys[:MOST_SHOWN]:
            metadata = shards_text(lost.known) if lost.known else "no metadata"
            self.say(f"  {shown(lost.key)}: {shards_text(lost.shards)}; there is {metadata}")
        if len(keys) > MOST_SHOWN:
            self.say(f"  and {len(keys) - MOST_SHOWN:,} more")
        if keys:
            self.say(
                "Do not recover keys that the application wrote without Keyhop: their items would "
                "be overwritten. Use another separator and a new metadata table instead."
            )
        if left_out:
            names = ", ".join(shown(lost.key) for lost in left_out[:MOST_SHOWN])
            self.say(
                f"Left out: {counted(len(left_out), 'key')} with an empty shard before the "
                f"last one ({names}); ordinary keys that end in a number look the same. Give "
                "--with-gaps to recover all of them, or --key for one."
            )
        return len(keys)

    def _key(self) -> str | bytes:
        """Return KEY as a value of the partition key; raise CannotStart."""
        text, is_binary = self.options.key, self.table.space.partition[0].type == "B"
        content: bytes = text.encode()
        if self.options.base64:
            try:
                content = base64.b64decode(content, validate=True)
            except binascii.Error as error:
                raise CannotStart(f"KEY {escaped(text)} is not base64.") from error
        elif is_binary:
            raise CannotStart("The partition key is binary: give KEY in base64, with --base64.")
        try:
            return content if is_binary else content.decode()
        except UnicodeDecodeError as error:
            raise CannotStart("KEY is not UTF-8, as a string partition key must be.") from error


def keys_table(keys: Sequence[KeyShards]) -> Table:
    """Return the keys of a table; all cells are Text, so that no key is taken for markup."""
    table = Table(box=None, pad_edge=False)
    table.add_column("key", no_wrap=True, overflow="ellipsis")
    table.add_column("shards", justify="right")
    table.add_column("phase")
    table.add_column("last change (UTC)", no_wrap=True)
    table.add_column("would do", justify="right")
    for key in keys:
        at = key.shards.last_updated
        cells = (
            shown(key.key),
            f"{key.shards.number:,}",
            key.shards.phase.value,
            f"{moment(at)}, {ago(at, key.read_at)}",
            "" if key.would_do is None else f"{key.would_do:,}",
        )
        table.add_row(*map(Text, cells))
    return table


def without_traffic(record: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a key in csv, where each minute would be a column."""
    return {name: value for name, value in record.items() if name != "traffic"}
