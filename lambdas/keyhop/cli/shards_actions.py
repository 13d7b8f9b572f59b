"""What `keyhop shards` does: list, show, add, drain, recover.

Keys and names of tables come from others: control characters in them are escaped, and rich's
markup is never applied to them.
"""

import base64
import binascii
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from keyhop.cli.exit_status import DONE, FAILED
from keyhop.cli.options import Options
from keyhop.cli.output import UNLIMITED_WIDTH, aligned, encodable, is_text, put_out
from keyhop.cli.progress import JobProgress, StatusLine
from keyhop.cli.session import Facts, Session, Stop, stop_on_signals, suggesting
from keyhop.clock import Clock, SystemClock
from keyhop.dynamodb.refusals import explained
from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.units import BLOCK_BYTES, Prices
from keyhop.dynamodb.values import Key, TypedValue
from keyhop.errors import BrokenPromise, CannotStart, GaveUp
from keyhop.jobs.journal import Journal, Part
from keyhop.jobs.local import LocalJob
from keyhop.keys.request import keys_request
from keyhop.public.runs import progress_of
from keyhop.sharding.drain import Drain, Next
from keyhop.sharding.io.items import typed, untyped
from keyhop.sharding.key.names import DEFAULT_SEPARATOR, MOST_SHARDS
from keyhop.sharding.key.placement import Placement
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.key.schema import schema_of
from keyhop.sharding.key.shards import DRAINING, PASSING, Phase, Shards, from_item
from keyhop.sharding.logical_keys import KnownShards, check_is_metadata
from keyhop.sharding.manage import (
    KeyShards,
    ShardLook,
    TooEarly,
    add_shards,
    list_keys,
    look_at_shard,
)
from keyhop.sharding.recover import LostKey, LostKeys, has_gaps, look_at_all_shards, recover
from keyhop.sharding.store.listing import all_keys
from keyhop.sharding.store.metadata import MetadataChanged
from keyhop.sharding.store.table_item import TOTAL_KEY
from keyhop.sharding.store.traffic import traffic_of
from keyhop.sharding.table import ShardedTable
from keyhop.storage.store import Memory
from keyhop.tasks import tasks_of
from keyhop.wording import counted, duration

T = TypeVar("T")

MOST_SHOWN = 10
"""Lost keys that are named before the question."""

STEP_SECONDS = 1.0
"""A drain moves items for so long before it checks for Ctrl-C."""

MOST_BAR = 40
BAR, ASCII_BAR = "\u2587", "#"


def run(options: Options) -> int:
    """Run one action on the shards of a table, and return its exit status."""
    advice = "Start the same command again to go on; keyhop shards show tells where the key stands."
    status = StatusLine(getattr(options, "quiet", True))
    with stop_on_signals(advice) as stop, status:
        command = ShardsCommand(options, stop, status)
        try:
            return int(getattr(command, options.action)())
        except (BotoCoreError, ClientError) as error:
            raise explained(error, command.connection.endpoint, options.metadata) from error
    return stop.status


class ShardsCommand(Session):
    """A table with its shard metadata; list_, show, add, drain and recover are the actions."""

    clock: Clock = SystemClock()

    def __init__(self, options: Options, stop: Stop, status: StatusLine) -> None:
        super().__init__(options, stop)
        self.status, self.say = status, status.say
        space = self.table.space
        separator = getattr(options, "separator", DEFAULT_SEPARATOR)
        self.schema = schema_of(space, options.table, separator)
        with suggesting(self.connection, options.metadata):
            check_is_metadata(self.connection, options.metadata, space)

    def list_(self) -> int:
        options = self.options
        keys = [
            key for key in list_keys(self.to_look()) if options.all or _is_worth_a_look(key.shards)
        ]
        keys.sort(key=lambda key: (-key.shards.number, shown(typed(key.key))))
        if not is_text(options.format):
            records = [key_json(key) for key in keys]
            put_out(options.format, records, str, list(map(without_traffic, records)))
        elif keys:
            console = Console(markup=False, highlight=False, emoji=False)
            if not console.is_terminal:
                console.width = UNLIMITED_WIDTH  # a pipe gets the keys uncut
            console.print(keys_table(keys, self.clock.time()))
        else:
            few = "has no key with more than one shard (--all: the rest)"
            print(f"{escaped(options.metadata)} {'is empty' if options.all else few}.")
        return DONE

    def show(self) -> int:
        key = self.get(self.key())
        self._put_out(key)
        return DONE

    def _put_out(self, key: KeyShards) -> None:
        record = key_json(key)
        text = partial(show_text, key, self.clock.time(), _bar())
        put_out(self.options.format, record, text, [without_traffic(record)])

    def _put_out_for_programs(self, key: TypedValue) -> None:
        """Print the state of a key to programs; a person has seen each step."""
        if not is_text(self.options.format):
            self._put_out(self.get(key))

    def add(self) -> int:
        key = self.key()
        before = self.find(key)
        library = self.agreed(before.shards if before else None)
        count = (before.shards.number if before else 1) + self.options.count
        self.confirm(f"give {shown(key)} {shards_word(count)}", self._metadata_facts)
        shards = self._grown(library, key, count)
        self.say(
            f"{shown(key)}: {shards_word(shards.number)} from now on. Readers read them at once; "
            f"writers use them after {shards.settle:g} s, when all readers know."
        )
        if not self.options.no_wait:
            self._wait_for_writers(library, key, count)
            self.say(f"Writers use {shards_word(count)} of {shown(key)} now.")
        self._put_out_for_programs(key)
        return DONE

    def _grown(self, library: ShardedTable, key: TypedValue, count: int) -> Shards:
        """Return the metadata once it has `count` shards; other processes may have added them."""

        def grow() -> Shards:
            stored = library.metadata.of(key, register=True, fresh=True)
            if stored.shards.number >= count:
                return stored.shards
            try:
                return add_shards(library, untyped(key), count - stored.shards.number).shards
            except TooEarly as early:
                if stored.shards.phase not in PASSING and stored.shards.phase is not Phase.STEADY:
                    raise CannotStart(
                        f"{shown(key)} is being drained ({stored.shards.phase}): let that end, or "
                        f"end it with keyhop shards drain --call-off."
                    ) from early
                raise

        return self._settled(grow)

    def _settled(self, change: Callable[[], T]) -> T:
        """Try a change of the metadata until the last one has settled, and nobody interferes."""
        while True:
            try:
                return change()
            except TooEarly as early:
                seconds = f"{early.seconds:.1f} s"
                self.status.now("early", f"waiting {seconds} until the last change has settled")
                self.wait(early.seconds)
            except MetadataChanged:
                self.wait(0)

    def _wait_for_writers(self, library: ShardedTable, key: TypedValue, count: int) -> None:
        while True:
            stored = library.metadata.of(key, fresh=True)
            stored = library.writer.throttle_tracker.pass_on(key, stored)
            if stored.shards.writable >= count or stored.shards.number < count:
                return
            seconds = stored.shards.settle - library.metadata.known_for(stored)
            self.status.now("wait", f"waiting {max(0.0, seconds):.1f} s until writers use them")
            self.wait(min(seconds, STEP_SECONDS))

    def drain(self) -> int:
        options, status = self.options, self.status
        key = self.key()
        before = self.get(key).shards
        library = self.agreed(before)
        work = Drain(library)
        if options.call_off:
            return self._call_off(work, key, before)
        if before.phase not in DRAINING and before.number <= options.shards:
            self.say(f"{shown(key)} has {shards_word(before.number)}: there is nothing to drain.")
            self._put_out_for_programs(key)
            return DONE
        if before.phase in DRAINING and before.number != options.shards:
            raise CannotStart(
                f"{shown(key)} is being drained to {shards_word(before.number)}: go on with "
                f"--shards {before.number}, or end that with --call-off."
            )
        act = f"drain {shown(key)} to {shards_word(options.shards)}"
        self.confirm(act, lambda: self._moves_facts(library, key, before))
        self.say(
            f"Draining {shown(key)} to {shards_word(options.shards)}, with {before.settle:g} s for "
            f"each of four steps and more. Readers and writers go on."
        )
        began, moves, phase, has_begun = self.clock.monotonic(), 0, Phase.STEADY, False
        while True:
            step = work.step(untyped(key), options.shards, STEP_SECONDS, begun=has_begun)
            has_begun = step.begun
            moves += step.moved
            if step.action is Next.DONE:
                break
            if step.action is Next.CALLED_OFF:
                raise GaveUp(
                    f"The drain of {shown(key)} was called off, or the key became hot: it has "
                    f"{shards_word(step.shards.number)} again."
                )
            if step.shards.phase is not phase:
                phase = step.shards.phase
                self.say(f"  {phase}: {phase_text(step.shards)}", phase)
            line = f"  {phase}: {counted(moves, 'item')} moved"
            seconds = step.seconds if step.action is Next.WAIT else 0.0
            while seconds > STEP_SECONDS:
                status.now(phase, f"{line}; {seconds:.0f} s until the next step")
                self.wait(STEP_SECONDS)
                seconds -= STEP_SECONDS
            status.now(phase, line)
            self.wait(seconds)
        units, prices = library.usage.write_units, self.connection.prices
        self.say(
            f"{shown(key)} has {shards_word(step.shards.number)} now: "
            f"{counted(moves, 'item')} moved in "
            f"{duration(self.clock.monotonic() - began)}, for {units:,.0f} WRU: "
            f"${prices.dollars(0.0, units):,.6f} ({prices.on_demand})"
        )
        self._put_out_for_programs(key)
        return DONE

    def _call_off(self, work: Drain, key: TypedValue, before: Shards) -> int:
        if before.phase not in DRAINING:
            raise CannotStart(f"No drain of {shown(key)} is under way ({before.phase}).")
        self.confirm(f"call the drain of {shown(key)} off", self._metadata_facts)
        while (step := work.call_off(untyped(key))).action is not Next.DONE:
            seconds = f"{step.seconds:.1f} s"
            self.status.now("wait", f"waiting {seconds} until the last step has settled")
            self.wait(step.seconds)
        shards = self.get(key).shards
        if shards.phase is Phase.STEADY and shards.number == before.number:
            raise GaveUp(
                f"Too late: the drain of {shown(key)} has ended, with "
                f"{shards_word(before.number)}; keyhop shards add gives it more."
            )
        self.say(f"{shown(key)}: {shards.phase}: {phase_text(shards)}.")
        self._put_out_for_programs(key)
        return DONE

    def recover(self) -> int:
        """Find keys whose metadata is lost, show them, ask, and recover them."""
        options = self.options
        key = None if options.key is None else self.key()
        library = self.agreed(None)
        sure, doubtful = self._lost_keys(library) if key is None else (_lost_key(library, key), [])
        keys = [*sure, *doubtful] if options.with_gaps or key is not None else sure
        self._show_lost(keys, [] if keys is not sure else doubtful)
        if keys and not options.dry_run:
            act = f"recover the metadata of {counted(len(keys), 'key')}"
            self.confirm(act, partial(self._recovery_facts, keys))
        records: list[dict[str, Any]] = []
        for lost in keys:
            error = None if options.dry_run else self._recover(library, lost)
            records.append(
                {
                    "key": dict(lost.key),
                    "shards": lost.shards,
                    "known": lost.known,
                    "recovered": not options.dry_run and error is None,
                    "error": error,
                }
            )
        if records or not is_text(options.format):
            lines = partial(_recovered_lines, records, library.metadata.settle)
            put_out(options.format, records, lambda: "\n".join(lines()))
        return FAILED if any(record["error"] is not None for record in records) else DONE

    def _lost_keys(self, library: ShardedTable) -> tuple[list[LostKey], list[LostKey]]:
        """Return lost keys, and those that may be ordinary keys which end in a number."""
        schema, known_shards, began = library.schema, KnownShards(), self.clock.time()
        known_shards.learn(
            all_keys(library.requests, library.metadata.table, schema.partition), began
        )
        # By then no writer uses metadata any more that was lost before.
        settle = library.metadata.settle
        self.status.now("wait", f"waiting {settle:g} s until nobody goes by what was lost")
        self.wait(settle)
        lost_keys = LostKeys(schema.names, known_shards)
        self._read_keys(Taken(lost_keys, schema.partition.name))
        keys: tuple[list[LostKey], list[LostKey]] = [], []
        for key in lost_keys.all():
            keys[has_gaps(library, key)].append(key)
        return keys

    def _read_keys(self, output: "Taken") -> None:
        """List all physical keys of the table in a run that keeps no files."""
        request = keys_request(self.options.table)
        journal = Journal(Memory())
        job = LocalJob(request, tasks_of(), self.connection, journal, self.stop.event)
        job.approve = self.approve
        job.prepare(self.table)
        job.begin()
        shown = JobProgress(self.status)
        shown.update(progress_of(job))
        if not job.work(lambda: shown.update(progress_of(job)), self.status.say, output=output):
            raise Stopped
        usage, prices = job.reader.usage, self.connection.prices
        self.say(
            f"{counted(job.group.keys, 'physical key')} read, for {usage.read_units:,.1f} RRU: "
            f"${prices.dollars(usage.read_units):,.6f} ({prices.on_demand})"
        )

    def _show_lost(self, keys: Sequence[LostKey], left_out: Sequence[LostKey]) -> None:
        metadata = escaped(self.options.metadata)
        if not keys:
            self.say(f"{metadata} lacks nothing: no key has items in shards beyond it.")
        for lost in keys[:MOST_SHOWN]:
            knows = shards_word(lost.known) if lost.known else "no metadata"
            self.say(f"  {shown(lost.key)}: {shards_word(lost.shards)}; there is {knows}")
        if len(keys) > MOST_SHOWN:
            self.say(f"  and {len(keys) - MOST_SHOWN:,} more")
        if left_out:
            names = ", ".join(shown(lost.key) for lost in left_out[:MOST_SHOWN])
            self.say(
                f"Left out: {counted(len(left_out), 'key')} with nothing in some shards before the "
                f"last ({names}), as ordinary keys look that end in a number: --with-gaps "
                "recovers them, too, and --key one of them."
            )

    def _recovery_facts(self, keys: Sequence[LostKey]) -> Facts:
        units, prices = 2 * len(keys), self.connection.prices
        yield "writes", f"about {units:,} WRU, into {escaped(self.options.metadata)} alone"
        yield "cost", f"about ${prices.dollars(0.0, units):,.6f} ({prices.on_demand})"

    def _recover(self, library: ShardedTable, lost: LostKey) -> str | None:
        """Recover the metadata of a key, or return the reason why that is not possible."""
        try:
            self._settled(partial(recover, library, lost.key, lost.shards))
        except (CannotStart, BrokenPromise) as error:
            return str(error)
        return None

    def _metadata_facts(self) -> Facts:
        """Estimate a change of the metadata alone."""
        yield "writes", f"a few write units, into {escaped(self.options.metadata)} alone"

    def _moves_facts(self, library: ShardedTable, key: TypedValue, before: Shards) -> Facts:
        """Estimate a move of items by the first page of the last shard."""
        last = max(before.number, before.readable)
        look = look_at_shard(library, key, last)
        yield from moves_facts(look, last - self.options.shards, self.connection.prices)

    def opened(self, placement: Placement, separator: str) -> ShardedTable:
        """Return the library's table with a placement that all its users share."""
        return ShardedTable(
            self.options.table,
            metadata=self.options.metadata,
            placement="calculated" if placement.calculated else "random",
            hash=placement.hash,
            append_only=placement.append_only,
            separator=separator,
            policy=Policy(most=MOST_SHARDS),  # what a person asks for is not the policy's to refuse
            endpoint=self.connection.endpoint,
            client=self.connection.client,
            clock=self.clock,
        )

    def to_look(self) -> ShardedTable:
        """Return the library's table for reads of the metadata only."""
        return self.opened(Placement(True), self.schema.names.separator)

    def key(self) -> dict[str, Any]:
        """Return KEY, typed; raise CannotStart."""
        text, type_ = self.options.key, self.schema.partition.type
        content: bytes = text.encode(errors="surrogateescape")
        if self.options.base64:
            try:
                content = base64.b64decode(content, validate=True)
            except binascii.Error as error:
                raise CannotStart(f"KEY {escaped(text)} is not base64.") from error
        elif type_ == "B":
            raise CannotStart("The partition key is binary: give KEY in base64, with --base64.")
        try:
            key = typed(content if type_ == "B" else content.decode())
        except UnicodeDecodeError as error:
            raise CannotStart("KEY is not UTF-8, as a string partition key must be.") from error
        self.schema.names.physical(key, 1)
        if content == TOTAL_KEY.encode():
            raise CannotStart(f"{TOTAL_KEY} is no key of the table: it is about all of them.")
        return key

    def find(self, key: TypedValue) -> KeyShards | None:
        """Return the metadata of a key by a strongly consistent read."""
        requests = self.to_look().requests
        where = {self.schema.partition.name: key}
        item = requests.call(
            "get_item", TableName=self.options.metadata, Key=where, ConsistentRead=True
        ).get("Item")
        if item is None:
            return None
        return KeyShards.judged(key, from_item(item), traffic_of(item), self.clock.time())

    def get(self, key: TypedValue) -> KeyShards:
        """Return the same; raise CannotStart if there is none."""
        metadata = self.find(key)
        if metadata is not None:
            return metadata
        hint = ""
        parsed = self.schema.names.parsed(key)
        if parsed is not None and self.find(parsed[0]) is not None:
            hint = f" It is shard {parsed[1]} of {shown(parsed[0])}: give that, the logical key."
        raise CannotStart(
            f"{escaped(self.options.metadata)} has no shard metadata of {shown(key)}: nothing was "
            f"written to it through the library.{hint}"
        )

    def agreed(self, shards: Shards | None) -> ShardedTable:
        """Return the library's table with the placement of the key's writers, or of all writers.

        Raises:
            CannotStart: Neither the metadata nor the flags contain the placement.
        """
        text = shards.placement if shards is not None else None
        if text is None:
            text = self.to_look().metadata.item.placement()
        if text is None:
            placements = (key.shards.placement for key in list_keys(self.to_look()))
            text = next((known for known in placements if known is not None), None)
        if text is not None:
            try:
                return self.opened(*Placement.parse(text))
            except ValueError as error:
                raise CannotStart(
                    f"The metadata has the placement {escaped(text)!r}, which this version does "
                    "not know."
                ) from error
        options = self.options
        if options.placement is None:
            raise CannotStart(
                "The metadata does not say yet how writers choose shards: give --placement, and "
                "--hash, --append-only and --separator if writers have them."
            )
        is_calculated = options.placement == "calculated"
        placement = Placement(is_calculated, options.hash, options.append_only)
        return self.opened(placement, self.schema.names.separator)


def _is_worth_a_look(shards: Shards) -> bool:
    return shards.number > 1 or shards.readable > 1 or shards.phase is not Phase.STEADY


def _bar() -> str:
    return BAR if encodable(BAR) == BAR else ASCII_BAR


def _lost_key(library: ShardedTable, key: TypedValue) -> list[LostKey]:
    lost = look_at_all_shards(library, key)
    return [] if lost is None or lost.shards <= lost.known else [lost]


def _recovered_lines(records: Sequence[Mapping[str, Any]], settle: float) -> Iterator[str]:
    for record in records:
        key, word = shown(record["key"]), shards_word(record["shards"])
        if record["error"] is not None:
            yield f"{key}: not recovered: {record['error']}"
        elif record["recovered"]:
            yield f"{key}: readers read {word} now; writers use them after {settle:g} s."
        else:
            yield f"{key}: would have {word}."


class Taken:
    """Passes the keys of a run on (jobs.worker.Output)."""

    def __init__(self, lost: LostKeys, partition: str) -> None:
        self._lost, self._partition = lost, partition

    def write(self, segment: int, keys: Sequence[Key]) -> int:
        self._lost.take(key[self._partition] for key in keys)
        return len(keys)

    def close(self) -> tuple[Part, ...]:
        return ()


def shown(value: TypedValue) -> str:
    """Return a key for a person: binary as base64, without control characters."""
    return escaped(_plain(value))


def _plain(value: TypedValue) -> str:
    (content,) = value.values()
    return content if isinstance(content, str) else base64.b64encode(bytes(content)).decode()


def escaped(text: str) -> str:
    """Escape control characters, and those that change the direction of text."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode()
        for c in text.replace("\\", "\\\\")
    )


def shards_word(count: int) -> str:
    """Return one shard, two shards."""
    return counted(count, "shard")


MOVE_UNITS = 4
"""Write units for each KB of an item that is moved: a put and a delete, in a transaction."""


def moves_facts(look: ShardLook, shards: int, prices: Prices) -> Iterator[tuple[str, str]]:
    """Estimate a drain of `shards` shards like this one, for a person."""
    items = look.items * shards
    each = MOVE_UNITS * max(1, math.ceil(look.size / max(1, look.items) / 1024))
    units, more = items * each, "about" if look.whole else "more than"
    yield "moves", f"{more} {counted(items, 'item')}, out of {shards_word(shards)}"
    yield "writes", f"{more} {units:,} WRU, {each} for each item"
    yield "reads", f"{more} {look.size * shards / BLOCK_BYTES:,.0f} RRU"
    dollars = f"{more} ${prices.dollars(0.0, units):,.4f}"
    yield "cost", f"{dollars} ({prices.on_demand})"


def _moment(epoch: float) -> str:
    try:
        return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):  # somebody else has written the item
        return f"epoch {epoch:.0f}"


def _ago(epoch: float, now: float) -> str:
    return f"{duration(max(0.0, now - epoch))} ago"


def _range(first: int, last: int) -> str:
    return f"shard {first}" if first == last else f"shards {first} to {last}"


def phase_text(shards: Shards) -> str:
    """Explain the phase of this key."""
    new = _range(1, shards.writable)
    read = _range(1, shards.readable)
    last = _range(min(shards.writable + 1, shards.readable), shards.readable)
    more = _range(min(shards.writable + 1, shards.number), shards.number)
    return {
        Phase.STEADY: f"nothing is being changed: new items go to {new}",
        Phase.ANNOUNCED: f"readers read {read} already; writers will use {more} when all readers "
        "know",
        Phase.AWAITED: f"readers read {read} already; writers will use {more} when all know; new "
        "items that belong there wait until then",
        Phase.WIDENED: f"writers use {new} from now on; the growth ends with the next write",
        Phase.OPENED: f"writers use {new} from now on; the growth ends with the next write",
        Phase.CLOSING: f"a drain to {shards_word(shards.number)} was begun: all writers are told; "
        "nothing is moved yet",
        Phase.FENCED: f"new items go to {new} only; when all writers know, those in {last} are "
        "moved",
        Phase.MOVING: f"items are being moved from {last} to {new}",
        Phase.MOVED: f"{last} {'is' if shards.readable == shards.writable + 1 else 'are'}"
        " empty; readers read on until all writers know",
        Phase.HALTED: f"a drain was called off: movers are told to stop; items stay where they are "
        f"in {read}",
        Phase.REOPENING: f"a drain was called off: writers will use {read} again when all know",
    }[shards.phase]


def history_chart(shards: Shards, now: float, bar: str = BAR) -> list[str]:
    """Draw the shard counts over time, a line each, with its bar and its duration."""
    steps = shards.history or ((shards.last_updated, shards.number),)
    maximum = max(count for _, count in steps)
    scale = min(1.0, MOST_BAR / maximum)
    width = len(f"{maximum:,}")
    ends = [*(at for at, _ in steps[1:]), None]
    lines, day = [], ""
    for (at, count), end in zip(steps, ends, strict=True):
        date, _, time = _moment(at).partition(" ")
        start = f"{'' if date == day else date:10} {time:8}"
        day = date
        lasted = duration(max(0.0, (now if end is None else end) - at))
        bars = bar * max(1, round(count * scale))
        until = " until now" if end is None else ""
        lines.append(
            f"{start}  {count:>{width},} {bars:<{round(maximum * scale)}}  for {lasted}{until}"
        )
    return lines


def show_text(key: KeyShards, now: float, bar: str = BAR) -> str:
    """Return the metadata of a key for a person."""
    shards = key.shards
    changed = f"{_moment(shards.last_updated)} UTC, {_ago(shards.last_updated, now)}"
    placement = escaped(shards.placement) if shards.placement else "not agreed upon yet"
    facts = [
        ("writable", f"{_range(1, shards.writable)}: where new items go"),
        ("readable", f"{_range(1, shards.readable)}: where readers look; others hold nothing"),
        ("phase", f"{shards.phase}: {phase_text(shards)}"),
        ("changed", changed),
        ("settles", f"{shards.settle:g} s for each step of a change"),
        ("placement", placement),
        ("traffic", _traffic_text(key.traffic)),
    ]
    if key.would_do is not None:
        facts.append(("would do", f"{shards_word(key.would_do)}: {key.reason}"))
    lines = [f"{shown(typed(key.key))}: {shards_word(shards.number)}", *aligned(facts, "  ", 10)]
    lines += ["", "  shards over time (UTC; the 20 latest changes are kept)"]
    lines += [f"    {line}" for line in history_chart(shards, now, bar)]
    return "\n".join(line.rstrip() for line in lines)


def _traffic_text(traffic: Mapping[int, float] | None) -> str:
    if traffic is None:
        return "not readable: remove the attribute traffic of the key's item in the metadata table"
    if not traffic:
        return "unknown: no writer has reported any; writers report keys of several shards"
    minute, units = max(traffic.items(), key=lambda entry: entry[1])
    return (
        f"the busiest minute, {_moment(minute * 60)[:16]} UTC, had {units / 60:,.1f} write units "
        "a second"
    )


def keys_table(keys: Sequence[KeyShards], now: float) -> Table:
    """Return the keys of a table; all cells are Text, so that no key is taken for markup."""
    table = Table(box=None, pad_edge=False)
    table.add_column("key", no_wrap=True, overflow="ellipsis")
    table.add_column("shards", justify="right")
    table.add_column("phase")
    table.add_column("last change (UTC)", no_wrap=True)
    table.add_column("would do", justify="right")
    for key in keys:
        shards = key.shards
        cells = (
            shown(typed(key.key)),
            f"{shards.number:,}",
            shards.phase.value,
            f"{_moment(shards.last_updated)}, {_ago(shards.last_updated, now)}",
            "" if key.would_do is None else f"{key.would_do:,}",
        )
        table.add_row(*map(Text, cells))
    return table


def key_json(metadata: KeyShards) -> dict[str, Any]:
    """Return the metadata of a key for programs, with binary values as base64."""
    shards = metadata.shards
    key = typed(metadata.key)
    (type_,) = key
    return {
        "key": {type_: _plain(key)},
        "shards": shards.number,
        "writable": shards.writable,
        "readable": shards.readable,
        "phase": shards.phase.value,
        "last_updated": shards.last_updated,
        "history": [{"at": at, "shards": count} for at, count in shards.history],
        "settle_seconds": shards.settle,
        "placement": shards.placement,
        "traffic": None
        if metadata.traffic is None
        else {str(minute): units for minute, units in sorted(metadata.traffic.items())},
        "would_do": metadata.would_do,
        "reason": metadata.reason,
    }


def without_traffic(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a key in csv, where each minute would be a column."""
    return {name: value for name, value in record.items() if name != "traffic"}
