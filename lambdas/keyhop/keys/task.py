"""The task `keys`: every distinct partition key of a table, or of an index, once.

A run that lists logical keys folds the physical keys of its parts in its last step. Several
physical keys may belong to one logical key (`/f.txt_1` and `/f.txt_2` to `/f.txt`), and they may be
in any segments, slices and groups. So such a run reads and commits physical keys like any other
run. When all groups are finished, one process reads the parts again and lists each logical key once
(jobs/worker.py). That is a run within the run, in the folder `logical`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.tables import Source, Table, look_up
from keyhop.dynamodb.values import Key, from_json, has_values, to_json, typed_json
from keyhop.errors import BrokenPromise, CannotStart, NoProgress, StaleIndex
from keyhop.jobs.formats import FIRST
from keyhop.jobs.journal import Journal, RunPlan
from keyhop.jobs.layout import Method
from keyhop.jobs.pages import KEYS_AT_ONCE, PartPages
from keyhop.jobs.request import Request
from keyhop.jobs.task import Ended, Summary, Task, TaskOptions, TaskPlan
from keyhop.jobs.worker import begun_within, too_slow, work_within
from keyhop.key_index.index import Sentinels, SentinelsOf
from keyhop.keys.request import STALE_INDEX
from keyhop.scan.skip_scan import Page
from keyhop.wording import counted

if TYPE_CHECKING:
    from keyhop.key_index.trust import Trust

FOLDER = "logical"

Fold = Callable[[Sequence[Key]], Sequence[Key]]
"""A function that maps physical keys to the keys to list, in the same order."""

DecideTrust = Callable[[Table, str, bool], "Trust"]
"""Decides whether the key index of a table is read, from the table, the method ("auto" or "index"),
and whether the index is read even if it is not trusted."""


@dataclass(slots=True)
class KeysTask(Task):
    """Lists keys.

    Its options are:
        fold: The options of logical keys.
        place: The attributes of rows that count.
        ignores: The attributes of items that do not count alone.
        accept: The words of KeysInput.accept. If an index is read that is not trusted, `doubt` is
            the reason; otherwise `trust` is the token that must be unchanged at the end.
        first: The attributes of the first item of a collection that are stored beside its key.

    Attributes:
        decide_trust: None where no key index can be read.
        folds: Whether the keys are folded when all of them have been read. Otherwise the caller
            folds them.
    """

    connection: Connection
    options: TaskOptions
    decide_trust: DecideTrust | None = None
    sentinels_of: SentinelsOf = lambda table: None
    folds: bool = True
    _sentinel: Key | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.examples = {}
        self.visits = bool(self._first)  # what a first look has found lacks the attributes
        self.rows_of = self._with_first if self._first else None
        ignores = self.options.get("ignores")
        self._sentinel = None if ignores is None else from_json(ignores)
        self.outputs = {"logical": "logical", "doubt": "doubt", "left_out": "leftOut"}

    def plan(self, table: Table, request: Request) -> TaskPlan:
        """Task.plan: decide also whether the key index is read instead of the table."""
        source = table.source(request.index)
        if self._fold is not None:
            check_can_fold(source.space)
            self._folding(source.space)  # checks whether the shard metadata could be read
        trust = None
        if self._first and request.method == "index":
            raise CannotStart("The key index has no attributes of first items: use another method.")
        by_itself = self._first or request.index is not None or request.verify_share is not None
        if request.method in ("auto", "index") and not by_itself and not request.dry_run:
            accepts_stale = STALE_INDEX in self.options.get("accept", ())
            if self.decide_trust is not None:
                trust = self.decide_trust(table, request.method, accepts_stale)
            elif request.method == "index":
                raise CannotStart("Method index needs a key index, but this table has none here.")
        if trust is not None and trust.source is not None:
            place = {"place": to_json(trust.source.only or {})}
            mark = {"trust": trust.token} if trust.doubt is None else {"doubt": trust.doubt}
            source = replace(trust.source, trusted=trust.doubt is None)
            return TaskPlan(source, "index", trust.why, {**self.options, **place, **mark})
        method, reason = choose_method(source.space, source.index, request.method)
        if trust is not None and trust.why:
            reason = f"{reason}; not its key index: {trust.why}"
        sentinels = None if request.index is not None else self.sentinels_of(table)
        if self._first:
            source = self.view(source)
            if sentinels is not None and sentinels.are_known:
                raise CannotStart(
                    "The table has a key index, whose sentinels are the first items of its "
                    "collections: no other item can be used for first."
                )
        if sentinels is None:
            return TaskPlan(source, method, reason, self.options)
        self._sentinel = sentinels.item
        options = {**self.options, "ignores": to_json(sentinels.item)}
        source = without_sentinels(source, sentinels)
        if sentinels.are_known:
            return TaskPlan(source, method, reason, options)
        return TaskPlan(source, method, reason, self.options, if_seen=options)

    def view(self, source: Source) -> Source:
        if self._first:
            source = replace(source, attributes=tuple(self._first))
        source = replace(source, trusted="trust" in self.options)
        ignores = self.options.get("ignores")
        if ignores is not None:
            return replace(source, ignores=from_json(ignores))
        place = self.options.get("place")
        return source if place is None else replace(source, only=from_json(place))

    def settings(self) -> Mapping[str, Any]:
        fold = self._fold or {"separator": None, "metadata": None}
        return {"logical": self._fold is not None, **fold}

    def finish(self, ended: Ended) -> Summary | None:
        plan, usage = ended.plan, ended.totals.usage
        other_rows = usage.counters["rows_elsewhere"]
        if plan.method == "index" and other_rows and other_rows == usage.items:
            raise BrokenPromise(
                f"The key index has {counted(other_rows, 'row')}, but none with the sort key of "
                "sentinels: it was built with another sort key (sentinel=, sentinelSortKey)."
            )
        if "trust" in plan.options:
            self._check_trust(plan.table, plan.options["trust"])
        if "doubt" in plan.options:
            ended = replace(ended, summary={**ended.summary, "doubt": plan.options["doubt"]})
        fold = self._fold
        if fold is None or not self.folds:
            return ended.summary
        return folded(ended, lambda: self._folding(plan.space, plan.started), fold)

    def _folding(self, space: KeySpace, started: str = "") -> Fold:
        """Return the function that folds the keys of a run (see logical_keys.fold_of)."""
        from keyhop.sharding.logical_keys import fold_of  # few runs need it

        return fold_of(self.connection, space, self._fold or {}, started)

    def _check_trust(self, name: str, token: int) -> None:
        """Raise StaleIndex if the index is no longer trusted, or was not always trusted."""
        table = look_up(self.connection, name)
        trust = None if self.decide_trust is None else self.decide_trust(table, "auto", False)
        if trust is None or trust.source is None:
            why = (trust and trust.why) or "there is none"
            raise StaleIndex(f"The key index became out of date while it was read: {why}.")
        if trust.token != token:
            raise StaleIndex("The key index was built or removed while it was read.")

    def _with_first(self, page: Page, keys: Sequence[Key]) -> list[Key]:
        """Return the keys, each with attributes of its collection's first item, as JSON text.

        The sentinel of a collection is not its first item.
        """
        firsts = []
        for run, end in zip(page.runs, accumulate(page.runs), strict=True):
            first, *others = page.items[end - run : min(end, end - run + 2)]
            is_sentinel = self._sentinel is not None and has_values(first, self._sentinel)
            firsts.append(others[0] if is_sentinel and others else first)
        reported = firsts[len(firsts) - len(keys) :]
        stored = ({name: row[name] for name in self._first if name in row} for row in reported)
        return [
            {**key, FIRST: {"S": typed_json(first)}}
            for key, first in zip(keys, stored, strict=True)
        ]

    @property
    def _first(self) -> Sequence[str]:
        first: Sequence[str] = self.options.get("first", ())
        return first

    @property
    def _fold(self) -> TaskOptions | None:
        return self.options.get("fold")


def check_can_fold(space: KeySpace) -> None:
    """Raise CannotStart for a key space whose keys cannot have a shard's suffix."""
    if len(space.partition) != 1 or space.partition[0].type == "N":
        raise CannotStart(
            "Logical keys cannot be listed here: the partition key is a number (N), which cannot "
            "carry a shard's suffix. List the physical keys."
        )


def folded(ended: Ended, fold_of: Callable[[], Fold], options: TaskOptions) -> Summary | None:
    """Fold the keys of a run and return its manifest; None if there was no time to finish.

    Args:
        fold_of: Returns the function that folds, after the last commit of the run.
        options: The fields of the manifest that describe the fold.

    Raises:
        NoProgress: There was no time to commit anything.
        BrokenPromise: A part differs from the committed one.
    """
    parts = ended.totals.parts
    journal = ended.journal.within(FOLDER)
    plan = begun_within(
        journal,
        ended.plan,
        task="fold",
        method="parts",
        reason="to list logical keys",
        segments=max(1, len(parts)),
    )
    totals, has_moved = work_within(
        journal,
        plan,
        lambda: PartPages(ended.journal, ended.plan, parts, fold_of(), ended.stop),
        1,
        ended.over_at,
    )
    if not totals.finished:
        if not has_moved and not ended.stop.is_set():
            raise NoProgress(too_slow(plan, totals.usage.items))
        return None
    journal.sweep(totals.parts)
    *_, last = journal.commits(0)
    assert last.checkpoint.ledger is not None
    counts = {"physical_keys": ended.totals.keys, "folded": last.checkpoint.ledger["changed"]}
    listed = [part.summary() for part in totals.parts]
    return {
        **ended.summary,
        "keys": totals.keys,
        "logical": {**options, **counts},
        "parts": [{**part, "name": f"{FOLDER}/{part['name']}"} for part in listed],
    }


def listed(journal: Journal, plan: RunPlan) -> Iterator[list[Key]]:
    """Yield the logical keys of a run in batches."""
    within = journal.within(FOLDER)
    for commit in within.commits(0):
        for part in commit.parts:
            keys = (key for _, key in within.keys(plan, part))
            while batch := list(islice(keys, KEYS_AT_ONCE)):
                yield batch


def without_sentinels(source: Source, sentinels: Sentinels) -> Source:
    """Return a source in which sentinels do not count alone."""
    if sentinels.are_known:
        return replace(source, ignores=sentinels.item)
    return replace(source, suspects=sentinels.item)


def choose_method(space: KeySpace, index: str | None, method: str) -> tuple[Method, str]:
    """Return the method for `method`, and why; raise CannotStart if it cannot work here."""
    if index is not None:
        why = "an index has no promised order among equal keys, so it is read through"
    elif space.sort is None:
        why = "the table has no sort key, so each item has a different key"
    else:
        why = ""
    if method == "skip" and why:
        raise CannotStart(f"Method skip cannot work here: {why}; use scan or auto.")
    if method == "scan":
        return "scan", "asked for"
    if why:
        return "scan", why
    if method == "skip":
        return "skip", "asked for"
    return "skip", "the table has a sort key, so the rest of a collection can be hopped over"
