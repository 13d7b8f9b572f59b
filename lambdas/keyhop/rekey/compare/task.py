"""The task `rekey_verify`: compare the buckets of digests, and look at all differences.

The digests of both tables are a separate run, which is made first (digests.py). A bucket is a
segment of this run, so buckets are distributed among workers and committed like the segments of a
table. It is read in many steps, which are not committed one by one: a worker that is killed reads
it again. Then the worker looks at its candidates in waves; some waves wait while it looks at or
settles another. A step makes one look at a wave, or settles some candidates of the first wave. Only
settled candidates are committed. A confirmed difference is repaired, if repair is on, from the
current source item.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice
from threading import Event
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.requester import pause
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key
from keyhop.errors import CannotStart
from keyhop.jobs.journal import Journal, RunPlan
from keyhop.jobs.layout import Layout
from keyhop.jobs.pages import Learnt, Pages
from keyhop.jobs.request import Request
from keyhop.jobs.rows import Rows
from keyhop.jobs.task import Ended, Summary, TaskOptions, TaskPlan, noted_examples
from keyhop.rekey.compare.digests import (
    DESTINATION_ITEMS,
    IRREVERSIBLE,
    LEFT_OUT,
    MOST_EXAMPLES,
    OURS,
    SOURCE_ITEMS,
    UNMAPPED,
    check_comparable,
)
from keyhop.rekey.compare.looks import (
    BYPASSED,
    EQUAL,
    FOREIGN,
    IN_FLIGHT,
    NOT_EQUAL,
    PAUSES,
    REPAIRED,
    Looks,
    Reads,
    Settle,
)
from keyhop.rekey.compare.rows import Candidate, Unmatched
from keyhop.rekey.control import Side, other_side
from keyhop.rekey.request import digests_of, with_digests
from keyhop.rekey.side.layout import UNMAPPABLE, VERIFIED, VERIFYING
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.task import Rekey, RekeyTask, SignsOfLife, TransformOf
from keyhop.rekey.transform import key_digest, key_text
from keyhop.rekey.worker.images import Image
from keyhop.rekey.worker.replicate import Replicator, lag_of
from keyhop.scan.in_flight import InFlight
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader
from keyhop.scan.skip_scan import PageResult, Position

_COUNTS = (
    SOURCE_ITEMS,
    DESTINATION_ITEMS,
    *NOT_EQUAL,
    FOREIGN,
    IN_FLIGHT,
    EQUAL,
    REPAIRED,
    BYPASSED,
    UNMAPPED,
    IRREVERSIBLE,
    LEFT_OUT,
    OURS,
)


def told_of(plan: RunPlan, counts: Mapping[str, int], ended: float) -> dict[str, Any]:
    """Return the outcome of a verification that has ended, with all counts, for the side table.

    `left` are differences that were not repaired, and changing places that were not settled. The
    times `began`, that of the digests, and `ended` are in seconds since 1970. The verification is
    clean if everything was compared and no difference remains. Items that cannot be mapped, or
    mapped back, are counted, but a verification can be clean with them.
    """
    totals = {name: counts.get(name, 0) for name in _COUNTS}
    totals[SOURCE_ITEMS] += totals[IRREVERSIBLE]
    share = plan.options.get("share")
    remaining = sum(totals[kind] for kind in NOT_EQUAL) - totals[REPAIRED]
    return {
        "run": plan.id,
        "began": datetime.fromisoformat(plan.options["began"]).timestamp(),
        "ended": ended,
        "at": ended,
        "finished": True,
        "items": totals[SOURCE_ITEMS],
        "share": 1.0 if share is None else share,
        "repair": bool(plan.options.get("repair")),
        **totals,
        "left": remaining,
        "is_clean": share is None and remaining == 0,
    }


AT_ONCE = 2
"""Buckets of a worker. Each is held in memory, and while one waits for looks, another is read."""

ROWS_AT_ONCE = 20_000
"""Rows of a step, which take a fraction of a second."""

GATHERED_AT_ONCE = 20_000
"""Candidates whose keys are held in memory. For each such number of candidates, a bucket is read
once more. A wave has at most as many, or fewer if looking takes long (looks.FIRST_LOOK_SECONDS).
"""

WAITING_AT_ONCE = 2
"""Waves of a bucket that wait for their next look: enough work for the quiet times."""

SETTLED_AT_ONCE = 1_000
"""Candidates that a step settles; it is committed as a whole, and takes some seconds of repairs."""

ROWS = "rows"


@dataclass(slots=True)
class _Wave:
    """Candidates that the worker looks at together, from number `first` of their bucket on, with
    the last look at each, and the remaining looks; `due` is infinite if none remains.
    """

    first: int
    candidates: list[Candidate]
    looks: Iterator[float]
    due: float = 0.0

    @property
    def end(self) -> int:
        """The number of the candidate after the last one."""
        return self.first + len(self.candidates)

    def look_again(self, clock: Callable[[], float]) -> None:
        """Make the look that is due, and compute when the next one is due."""
        seconds = next(self.looks, math.inf)
        self.due = clock() + seconds


@dataclass(slots=True)
class _Open:
    """A bucket that is being verified. Its next candidates are gathered, from number `first` on;
    those before them wait, in waves, for looks or for settling.
    """

    rows: Iterator[Key]
    unmatched: Unmatched = field(default_factory=Unmatched)
    is_read: bool = False
    first: int = 0
    gathered: list[Candidate] = field(default_factory=list)
    waves: list[_Wave] = field(default_factory=list)

    def candidates_from(self, number: int) -> list[Candidate]:
        """Return the candidates to settle next, from this one on; empty if they have to wait."""
        if not self.waves or self.waves[0].due < math.inf:
            return []
        at = number - self.waves[0].first
        return self.waves[0].candidates[at : at + SETTLED_AT_ONCE]

    def waits_until(self) -> float:
        """Return when the next look at a wave is due; infinite if none waits."""
        return min((wave.due for wave in self.waves), default=math.inf)


@dataclass(slots=True)
class BucketPages:
    """The buckets of a finished run of digests (pages.Pages), with its journal and plan."""

    journal: Journal
    plan: RunPlan
    looks: Looks
    stop: Event
    note: Callable[[Candidate], None] = lambda candidate: None
    sign: Callable[[], None] = lambda: None
    look_again_at_unmappable: Callable[[], None] = lambda: None
    usage: Usage = field(default_factory=Usage)
    in_flight: InFlight = field(default_factory=lambda: InFlight(limit=AT_ONCE))
    _open: dict[int, _Open] = field(default_factory=dict)
    _digests: Rows = field(init=False)

    def __post_init__(self) -> None:
        self._digests = Rows(self.journal, self.plan)

    def go_on(self, learnt: Learnt | None) -> None:
        return

    def learnt(self) -> Learnt:
        return {}

    def step(self, segment: int, position: Position, over: Event) -> PageResult:
        """Make a step (Pages.step); a position's `start` counts the earlier candidates."""
        self.sign()
        bucket = self._open.get(segment)
        if bucket is None:
            bucket = self._open[segment] = _Open(self._rows(segment))
        if not bucket.is_read:
            self._read(bucket)
            return PageResult((), position)
        settled_count = int(position.start[ROWS]["N"]) if position.start else 0
        bucket.waves = [wave for wave in bucket.waves if wave.end > settled_count]
        clock, due = self.looks.clock, bucket.waits_until()
        if due <= clock():
            next(wave for wave in bucket.waves if wave.due == due).look_again(clock)
        elif self._begins_wave(segment, bucket, settled_count):
            bucket.waves[-1].look_again(clock)
        elif results := bucket.candidates_from(settled_count):
            return self._settled(results, settled_count)
        elif due < math.inf:
            pause(self.stop, over, due - clock())
        else:
            if segment == 0:  # each verification has this bucket, and commits its end once
                self.look_again_at_unmappable()
            self._open.pop(segment)
            return PageResult((), None)
        return PageResult((), position)

    def _begins_wave(self, segment: int, bucket: _Open, settled_count: int) -> bool:
        """Look at the next candidates, unless enough waves wait, or none remain."""
        first = bucket.waves[-1].end if bucket.waves else settled_count
        waiting = sum(wave.due < math.inf for wave in bucket.waves)
        if waiting == WAITING_AT_ONCE or first - settled_count >= GATHERED_AT_ONCE:
            return False
        candidates = self._next(segment, bucket, first)
        if candidates:
            results = self.looks.look(candidates)
            bucket.waves.append(_Wave(first, results, self.looks.look_again(results)))
        return bool(candidates)

    def _settled(self, results: list[Candidate], settled_count: int) -> PageResult:
        counts, real = self.looks.settled(results)
        for result in real:
            self.note(result)
        position = Position({ROWS: {"N": str(settled_count + len(results))}})
        return PageResult([_row_of(result) for result in real], position, counts=counts)

    def _read(self, bucket: _Open) -> None:
        """Read more rows of a bucket."""
        count = bucket.unmatched.take(islice(bucket.rows, ROWS_AT_ONCE))
        self.usage.count(items=count)
        if count < ROWS_AT_ONCE:
            bucket.unmatched.end()
            bucket.is_read = True

    def _next(self, segment: int, bucket: _Open, number: int) -> list[Candidate]:
        """Return candidates from this number on; empty if there are no more."""
        if number >= len(bucket.unmatched.places):
            return []
        at = number - bucket.first
        if not 0 <= at < len(bucket.gathered):
            rows = self._rows(segment)
            bucket.gathered = bucket.unmatched.candidates(rows, number, GATHERED_AT_ONCE)
            bucket.first, at = number, 0
        return bucket.gathered[at:]

    def _rows(self, bucket: int) -> Iterator[Key]:
        return self._digests.load(range(self.plan.groups)).pieces(bucket)


def _row_of(result: Candidate) -> dict[str, Any]:
    """Return a difference as it is written into the run's parts, with its keys."""
    return {
        "finding": {"S": result.finding},
        "place": {"S": key_text(result.place)},
        "repaired": {"S": str(result.is_repaired).lower()},
        **({"straggler": {"S": "true"}} if result.is_bypassed else {}),
        **{f"owner{number}": {"S": key_text(owner)} for number, owner in enumerate(result.owners)},
    }


BUCKETS_PER_GROUP = 16
"""Five minutes of a worker. First it finds its buckets in the commits of the digests: for 1 TB
in items of 1 KB these are some 10 million blocks, of 24 bytes each in memory.
"""


def settle_forward(connection: Connection, rekey: Rekey) -> Settle:
    """Return a function for any number of threads that settles as the stream's worker does."""

    def settle(pairs: Sequence[tuple[Key, Key]]) -> list[bool]:
        worker = Replicator(  # which serves one caller at a time
            rekey.pair,
            "forward",
            rekey.transform,
            lambda name: connection,
            side=rekey.side,
            usage=rekey.side.usage,
        )
        return worker.settle_all(pairs)

    return settle


def look_again_at_unmappable(rekey: Rekey, source: Reads) -> None:
    """Remove the records of unmappable items that can be mapped now, or do not exist any more.

    The stream's worker removes them, too, but no worker may follow the stream, and a copy may
    record an item after the worker has processed its correction. The records are read before the
    items, and one that was written again since is kept.
    """
    records = rekey.side.all_unmapped("forward")
    items = source.items(record.key for record in records)
    for record in records:
        item = items.get(key_text(record.key))
        if item is None or not Image(item, rekey.transform).why_unmappable:
            rekey.side.mapped("forward", record.key, record)


def without_stragglers(side: SideTable, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates of which neither the place nor an owner has an unsettled straggler.

    A straggler's item exists in two versions, and somebody may rely on either of them. So only the
    person who settles it decides which one is overwritten.
    """
    bypassed: dict[Side, set[str]] = {"source": set(), "destination": set()}
    for straggler in side.unsettled():
        bypassed[straggler.side].add(key_text(straggler.key))
        bypassed[other_side(straggler.side)] |= set(map(key_text, straggler.places))
    return [
        candidate
        for candidate in candidates
        if key_text(candidate.place) not in bypassed["destination"]
        and bypassed["source"].isdisjoint(map(key_text, candidate.owners))
    ]


class VerifyTask(RekeyTask):
    """Compares both tables, with the options of RekeyTask, `repair`, `share` of both tables, and
    `digests`, the run that made the digests; `journal_of` returns the files of a run by its name.
    """

    first = "digests"
    outputs: Mapping[str, str] = {"verify": "compared", "digests": "digests"}

    def __init__(
        self,
        connection: Connection,
        options: TaskOptions,
        transform_of: TransformOf,
        journal_of: Callable[[str], Journal],
        now: Callable[[], float] = time.time,
        pauses: tuple[float, float] = PAUSES,
    ) -> None:
        super().__init__(connection, options, transform_of, now=now)
        self._journal_of = journal_of
        self._pauses = pauses

    def before(self, table: Table, request: Request) -> Request | None:
        """Return the run of the digests (Task.before)."""
        return digests_of(request)

    def after(self, request: Request, run: str) -> Request:
        return with_digests(request, run)

    def plan(self, table: Table, request: Request) -> TaskPlan:
        """Plan the run (Task.plan), which reads only digests and differences."""
        rekey = self._opened()
        check_comparable(rekey.side, bool(self._options.get("repair")))
        digests, manifest = self._digests(self._options)
        rekey.check_same(digests.options)
        groups = math.ceil(digests.buckets / BUCKETS_PER_GROUP)
        options = {**self._options, **rekey.identities(), "began": digests.started}
        return TaskPlan(
            rekey.source.source(),
            "listed",
            f"the digests of run {self._options['digests']}",
            options,
            layout=Layout(digests.buckets, AT_ONCE * groups, groups, groups),
            rows=manifest["keys"],
        )

    def settings(self) -> Mapping[str, Any]:
        return {"repair": self._options.get("repair"), "share": self._options.get("share")}

    def pages(
        self, journal: Journal, plan: RunPlan, reader: PageReader, ledger: Ledger | None = None
    ) -> Pages:
        rekey = self._opened_for(reader, plan.options)
        source, destination = (
            Reads(
                self._connection,
                name,
                patience=reader.patience,
                stop=reader.stop,
                usage=reader.usage,
            )
            for name in (rekey.pair.source, rekey.pair.destination)
        )
        looks = Looks(
            rekey.transform,
            source,
            destination,
            settle_forward(self._connection, rekey) if plan.options.get("repair") else None,
            sampled=plan.options.get("share") is not None,
            pauses=self._pauses,
            lag=lambda: lag_of(rekey.side, "forward", self._now()),
            may_settle=partial(without_stragglers, rekey.side),
        )
        digests, _ = self._digests(plan.options)
        journal = self._journal_of(plan.options["digests"])
        signs = SignsOfLife(rekey.side, VERIFYING, plan, self._now)
        return BucketPages(
            journal,
            digests,
            looks,
            reader.stop,
            self._note,
            signs.give,
            partial(look_again_at_unmappable, rekey, source),
            reader.usage,
        )

    def finish(self, ended: Ended) -> Summary:
        """Record in the side table the counts of both runs (Task.finish)."""
        digests, manifest = self._digests(ended.plan.options)
        counts = Counter(manifest.get("counts", {})) + ended.totals.counts
        examples = {**manifest["examples"], **noted_examples(ended.journal)}
        outcome = told_of(ended.plan, counts, self._now()) | {"turns": digests.options["turns"]}
        side = self._side(stop=ended.stop)
        if outcome["share"] == 1.0:
            without = {"count": outcome[UNMAPPED], "examples": examples.get(UNMAPPED, [])[:10]}
            side.tell(UNMAPPABLE, {**without, "at": outcome["at"], "run": ended.plan.id})
        side.tell(VERIFIED, outcome)
        verifying = side.told(VERIFYING)
        if verifying is not None and verifying["run"] == ended.plan.id:
            side.tell(VERIFYING, {**verifying, "ended": self._now()})
        cost = manifest.get("cost", manifest)  # of a fleet, all services
        return {
            **ended.summary,
            "counts": dict(sorted(counts.items())),
            "verify": outcome,
            "examples": examples,
            "digests": {
                "run": ended.plan.options["digests"],
                "keys": manifest["keys"],
                "buckets": digests.buckets,
                "read_units": manifest["read_units"],
                "dollars": cost.get("total", manifest["dollars"]),
            },
        }

    def _digests(self, options: TaskOptions) -> tuple[RunPlan, dict[str, Any]]:
        """Return the plan and the manifest of the digests, or raise CannotStart."""
        journal = self._journal_of(options["digests"])
        plan, manifest = journal.plan(), journal.manifest()
        if plan is None or manifest is None:
            raise CannotStart(
                f"The run {options['digests']!r}, which makes the digests, is not finished: "
                "continue it first."
            )
        return plan, manifest

    def _note(self, result: Candidate) -> None:
        place = key_digest(result.place).hex()
        bypassed = {"straggler": True} if result.is_bypassed else {}
        example = {"place": place, "repaired": result.is_repaired, **bypassed}
        self.note_example(result.finding, example, MOST_EXAMPLES)
