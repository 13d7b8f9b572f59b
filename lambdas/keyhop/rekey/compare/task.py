"""The task `rekey_verify`: compare the buckets of digests, and look at all differences.

The digests of both tables are a separate run, which is made first (digests.py). A bucket is a
segment of this run, so buckets are distributed among workers and committed like the segments of a
table. A confirmed difference is repaired, if repair is on, from the current source item.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.values import Key
from keyhop.errors import CannotStart
from keyhop.jobs.journal import Journal, RunPlan
from keyhop.jobs.layout import Layout
from keyhop.jobs.pages import Pages
from keyhop.jobs.request import Request
from keyhop.jobs.task import Ended, Summary, TaskOptions, TaskPlan, noted_examples
from keyhop.rekey.compare.buckets import AT_ONCE, BucketPages
from keyhop.rekey.compare.digests import MOST_EXAMPLES, check_comparable
from keyhop.rekey.compare.looks import PAUSES, Found, Looks, Reads, Settle
from keyhop.rekey.compare.outcome import VERIFY, told_of
from keyhop.rekey.compare.rows import Candidate
from keyhop.rekey.compare.sides import UNMAPPED
from keyhop.rekey.control import Side, other_side
from keyhop.rekey.digest import key_digest
from keyhop.rekey.opening import Rekey, TransformOf
from keyhop.rekey.pace import UNMAPPABLE
from keyhop.rekey.request import digests_of, with_digests
from keyhop.rekey.side.layout import LAG
from keyhop.rekey.side.rows import key_text
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.standing import STALE_SECONDS
from keyhop.rekey.task import RekeyTask
from keyhop.rekey.worker.replicate import Replicator
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader

BUCKETS_PER_GROUP = 16
"""Five minutes of a worker. First it finds its buckets in the commits of the digests: for 1 TB
in items of 1 KB these are some 10 million blocks, of 24 bytes each in memory.
"""

SettleOf = Callable[[Connection, Rekey], Settle]
"""Make the function that repairs."""


def settle_forward(connection: Connection, rekey: Rekey) -> Settle:
    """Return a function for any number of threads that settles as the stream's worker does."""

    def settle(pairs: Sequence[tuple[Key, Key]]) -> list[bool]:
        worker = Replicator.of(  # which serves one caller at a time
            rekey.pair,
            "forward",
            rekey.transform,
            lambda name: connection,
            side=rekey.side,
            usage=rekey.side.usage,
        )
        return worker.settle_all(pairs)

    return settle


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
        settle_of: SettleOf = settle_forward,
        now: Callable[[], float] = time.time,
        pauses: tuple[float, float] = PAUSES,
    ) -> None:
        super().__init__(connection, options, transform_of, now=now)
        self._journal_of = journal_of
        self._settle_of = settle_of
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
            self._settle_of(self._connection, rekey) if plan.options.get("repair") else None,
            sampled=plan.options.get("share") is not None,
            pauses=self._pauses,
            lag=lambda: self._lag(rekey),
            may_settle=partial(without_stragglers, rekey.side),
        )
        digests, _ = self._digests(plan.options)
        journal = self._journal_of(plan.options["digests"])
        return BucketPages(journal, digests, looks, reader.stop, self._note, reader.usage)

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
        side.tell(VERIFY, outcome)
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
                f"The run {options['digests']!r}, which makes the digests, is not finished: go on "
                "with it first."
            )
        return plan, manifest

    def _lag(self, rekey: Rekey) -> float:
        """Return the stream's lag in seconds; 0 without a recent report."""
        lag = rekey.side.told(f"{LAG}.forward") or {"at": 0.0}
        return float(lag["seconds"]) if self._now() - lag["at"] <= STALE_SECONDS else 0.0

    def _note(self, result: Found) -> None:
        place = key_digest(result.candidate.place).hex()
        bypassed = {"straggler": True} if result.is_bypassed else {}
        example = {"place": place, "repaired": result.is_repaired, **bypassed}
        self.note_example(result.finding, example, MOST_EXAMPLES)
