"""`keyhop shards recover`: metadata that was lost is made anew from the table's keys."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from keyhop.cli.confirm import Facts, confirm, place
from keyhop.cli.display import JobProgress, StatusLine
from keyhop.cli.exit_status import DONE, FAILED
from keyhop.cli.keys_actions import approve
from keyhop.cli.options import Options
from keyhop.cli.output import is_text, put_out
from keyhop.cli.session import Stop
from keyhop.cli.shards_view import escaped, shards_word, shown
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.values import Key, TypedValue
from keyhop.errors import BrokenPromise, CannotStart
from keyhop.jobs.journal import Journal, Part
from keyhop.jobs.local import LocalJob
from keyhop.keys.request import keys_request
from keyhop.sharding.logical_keys import KnownShards
from keyhop.sharding.manage import TooEarly
from keyhop.sharding.recover import LostKey, LostKeys, has_gaps, look_at_all_shards, recover
from keyhop.sharding.store.listing import all_keys
from keyhop.sharding.store.metadata import MetadataChanged
from keyhop.sharding.table import ShardedTable
from keyhop.storage.store import Memory
from keyhop.tasks import tasks_of
from keyhop.wording import counted

MOST_SHOWN = 10
"""Keys that are named before the question."""


@dataclass(slots=True)
class Taken:
    """Where the keys of a run go (jobs.worker.Output)."""

    lost: LostKeys
    partition: str

    def write(self, segment: int, keys: Sequence[Key]) -> int:
        self.lost.take(key[self.partition] for key in keys)
        return len(keys)

    def close(self) -> tuple[Part, ...]:
        return ()


@dataclass(slots=True)
class Recovery:
    """One call of the command. library: the table, as its users have agreed upon it.

    wait: for so many seconds; raises Stopped. key: None for all.
    """

    options: Options
    stop: Stop
    status: StatusLine
    connection: Connection
    table: Table
    library: ShardedTable
    wait: Callable[[float], None]
    key: TypedValue | None

    def run(self) -> int:
        """Find lost keys, show them, ask, and recover them; returns the exit status."""
        options, told = self.options, list[dict[str, Any]]()
        sure, doubtful = self._found()
        keys = [*sure, *doubtful] if options.with_gaps or self.key is not None else sure
        self._show(keys, [] if keys is not sure else doubtful)
        if keys and not options.dry_run:
            act = f"recover the metadata of {counted(len(keys), 'key')}"
            confirm(act, partial(self._told, keys), options.yes, self.stop.event)
        failed = 0
        for lost in keys:
            error = None if options.dry_run else self._recovered(lost)
            failed += error is not None
            told.append(
                {
                    "key": dict(lost.key),
                    "shards": lost.shards,
                    "known": lost.known,
                    "recovered": not options.dry_run and error is None,
                    "error": error,
                }
            )
        if told or not is_text(options.format):
            put_out(options.format, told, lambda: "\n".join(self._lines(told)))
        return FAILED if failed else DONE

    def _found(self) -> tuple[list[LostKey], list[LostKey]]:
        """Lost keys, and those that may be ordinary keys which end in a number."""
        if self.key is not None:
            one = look_at_all_shards(self.library, self.key)
            return [] if one is None or one.shards <= one.known else [one], []
        found: tuple[list[LostKey], list[LostKey]] = [], []
        for lost in self._lost_keys():
            found[has_gaps(self.library, lost)].append(lost)
        return found

    def _lost_keys(self) -> Iterator[LostKey]:
        library, clock = self.library, self.library.requests.clock
        schema, known, began = library.schema, KnownShards(), clock.time()
        known.learn(all_keys(library.requests, library.metadata.table, schema.partition), began)
        # By then nobody writes any more by metadata that was lost before.
        settle = library.metadata.settle
        self.status.now("wait", f"waiting {settle:g} s until nobody goes by what was lost")
        self.wait(settle)
        taken = LostKeys(schema.names, known)
        self._read_keys(Taken(taken, schema.partition.name))
        return taken.all()

    def _read_keys(self, output: Taken) -> None:
        """All physical keys of the table, by a run of the task `keys` that leaves no files."""
        request = keys_request(self.options.table)
        journal = Journal(Memory())
        job = LocalJob(request, tasks_of(), self.connection, journal, self.stop.event)
        job.approve = partial(approve, job, self.stop, self.options.yes)
        job.prepare(self.table)
        job.begin()
        progress = JobProgress(job, self.status)
        if not job.work(progress.update, self.status.say, output=output):
            raise Stopped
        usage, prices = job.reader.usage, self.connection.prices
        self.status.say(
            f"{counted(job.group.keys, 'physical key')} read, for {usage.read_units:,.1f} RRU: "
            f"${prices.dollars(usage.read_units):,.6f} ({prices.on_demand})"
        )

    def _show(self, keys: Sequence[LostKey], left_out: Sequence[LostKey]) -> None:
        metadata = escaped(self.options.metadata)
        if not keys:
            self.status.say(f"{metadata} lacks nothing: no key has items in shards beyond it.")
        for lost in keys[:MOST_SHOWN]:
            knows = shards_word(lost.known) if lost.known else "no metadata"
            self.status.say(f"  {shown(lost.key)}: {shards_word(lost.shards)}; there is {knows}")
        if len(keys) > MOST_SHOWN:
            self.status.say(f"  and {len(keys) - MOST_SHOWN:,} more")
        if left_out:
            names = ", ".join(shown(lost.key) for lost in left_out[:MOST_SHOWN])
            self.status.say(
                f"Left out: {counted(len(left_out), 'key')} with nothing in some shards before the "
                f"last ({names}), as ordinary keys look that end in a number: --with-gaps "
                "recovers them, too, and --key one of them."
            )

    def _told(self, keys: Sequence[LostKey]) -> Facts:
        yield from place(self.table.arn, self.connection.endpoint)
        units, prices = 2 * len(keys), self.connection.prices
        yield "writes", f"about {units:,} WRU, into {escaped(self.options.metadata)} alone"
        yield "cost", f"about ${prices.dollars(0.0, units):,.6f} ({prices.on_demand})"

    def _recovered(self, lost: LostKey) -> str | None:
        """Recover one key; returns why that was not possible, for a person."""
        while True:
            try:
                recover(self.library, lost.key, lost.shards)
            except TooEarly as early:
                left = f"{early.seconds:.1f} s"
                self.status.now("early", f"waiting {left} until the last change has settled")
                self.wait(early.seconds)
            except MetadataChanged:
                self.wait(0)
            except (CannotStart, BrokenPromise) as error:
                return str(error)
            else:
                return None

    def _lines(self, told: Sequence[dict[str, Any]]) -> Iterator[str]:
        settle = self.library.metadata.settle
        for one in told:
            key, word = shown(one["key"]), shards_word(one["shards"])
            if one["error"] is not None:
                yield f"{key}: not recovered: {one['error']}"
            elif one["recovered"]:
                yield f"{key}: readers read {word} now; writers use them after {settle:g} s."
            else:
                yield f"{key}: would have {word}."
