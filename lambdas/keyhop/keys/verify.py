"""The check of a run: read a share of the table with plain Scan pages, and compare.

The check draws whole segments of the run at random. A run within the run reads each of them from
end to end, and its keys are those on which the table and the run differ. These keys are looked at
again, to distinguish a fault from a change of the table during the check:

missing    in the table, not in the run; a second skip-scan of the segment does not find it either
appeared   in the table, not in the run; a second skip-scan finds it: it was probably written since
surplus    in the run, not in the table

A key that was deleted since the run read it is surplus, because nothing of it remains in the table.
A key that is missing at first and gone at the second look was deleted during the check, and counts
as appeared.
"""

import json
import math
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.values import Key, to_json
from keyhop.jobs.journal import Journal
from keyhop.jobs.model import Record, RunPlan
from keyhop.jobs.pages import Pages, TablePages
from keyhop.jobs.rows import Rows
from keyhop.jobs.worker import begun_within, work_within
from keyhop.scan.reader import PageReader
from keyhop.scan.segments import group_of
from keyhop.scan.skip_scan import BEGINNING, PageResult, Position

Reported = Callable[[int], dict[str, Key]]
"""Returns the keys of the run in a drawn segment, by their names. Segments are numbered in the
order of the draw."""

FEWEST_ITEMS = 100

EXAMPLES = 10
"""The maximum number of examples of each kind in a verdict."""


@dataclass(slots=True)
class Verdict(Record):
    """The result of a check.

    Attributes:
        drawn: The number of segments that were drawn.
        share: Their share of the hash space.
        segments: How many of them have been checked.
        keys: The number of keys in them, once every segment is checked.
        missing: The number of missing keys.
        appeared: The number of keys that appeared.
        surplus: The number of surplus keys.
        examples: Up to EXAMPLES keys of each kind.
    """

    drawn: int
    share: float
    segments: int = 0
    keys: int = 0
    missing: int = 0
    appeared: int = 0
    surplus: int = 0
    examples: dict[str, list[Any]] = field(default_factory=dict)

    @classmethod
    def of_none(cls, plan: RunPlan, share: float) -> "Verdict":
        """Return the verdict before a check."""
        count = max(1, round(share * plan.segments))
        return cls(count, count / plan.segments)

    def add(self, kind: str, keys: Iterable[str]) -> None:
        """Count keys of a kind, and keep a few as examples."""
        sorted_keys = sorted(keys)
        setattr(self, kind, getattr(self, kind) + len(sorted_keys))
        if sorted_keys:
            named = self.examples.setdefault(kind, [])
            named.extend(json.loads(key) for key in sorted_keys[: EXAMPLES - len(named)])

    @property
    def is_whole(self) -> bool:
        """Whether all drawn segments have been checked."""
        return self.segments == self.drawn


def verify(
    journal: Journal,
    plan: RunPlan,
    within: Journal,
    reader: PageReader,
    verdict: Verdict,
    threads: int,
    over_at: float = math.inf,
    keep: Callable[[], None] = lambda: None,
) -> bool:
    """Begin or continue the check of a finished run; return whether it made progress.

    Args:
        journal: The files of the run.
        plan: The plan of the run.
        within: The files of the check's own run.
        reader: Reads the table.
        verdict: The result, which is updated. If `is_whole` is false, the next call continues.
        threads: The maximum number of threads.
        over_at: The time, on the monotonic clock, at which to stop.
        keep: Is called after each change of the verdict.

    Raises:
        BrokenPromise: A part of the run is damaged.
    """
    look = within.plan() or _begun(within, plan, verdict.drawn)
    drawn = look.options["drawn"]
    groups = {group_of(segment, plan.segments, plan.groups) for segment in drawn}
    rows = Rows(journal, plan).load(sorted(groups))

    def reported(number: int) -> dict[str, Key]:
        return _by_name(rows.checked(drawn[number]))

    def pages(hop: bool) -> TablePages:
        maximum = _most_items(reader, plan.segments)
        return TablePages(reader, hop, plan.segments, drawn, most_items=maximum)

    totals, has_moved = work_within(
        within, look, lambda: _Differing(pages(hop=False), reported), threads, over_at
    )
    if not totals.finished:
        return has_moved
    differing = [segment for segment, keys in enumerate(totals.segments) if keys]
    verdict.segments = max(verdict.segments, verdict.drawn - len(differing))
    unchecked = verdict.drawn - verdict.segments
    found = Rows(within, look).load([0])
    for segment in differing[len(differing) - unchecked :]:
        keys = set(_by_name(found.checked(segment)))
        try:
            _settle(verdict, segment, keys, reported, pages, plan.method == "skip", over_at)
        except Stopped:
            if reader.stop.is_set():
                raise
            return has_moved
        has_moved = True
        keep()
    keys_reported = sum(map(rows.count, drawn))
    verdict.keys = keys_reported + verdict.missing + verdict.appeared - verdict.surplus
    return True


def _begun(within: Journal, plan: RunPlan, count: int) -> RunPlan:
    return begun_within(
        within,
        plan,
        task="verify",
        method="scan",
        reason="to check the run",
        segments=count,
        options={"drawn": random.Random().sample(range(plan.segments), count)},
    )


def _settle(
    verdict: Verdict,
    segment: int,
    keys: set[str],
    reported: Reported,
    pages: Callable[[bool], TablePages],
    hop: bool,
    over_at: float,
) -> None:
    """Look again at the keys of a segment on which the run and the table seemed to differ."""
    absent = keys - set(reported(segment))
    second_read = _read_through(pages(False), segment, over_at)
    hopped_to = _read_through(pages(True), segment, over_at) if hop else set()
    missing = (absent & second_read) - hopped_to
    verdict.add("missing", missing)
    verdict.add("appeared", absent - missing)
    verdict.add("surplus", keys - absent - second_read)
    verdict.segments += 1


def _read_through(pages: Pages, segment: int, over_at: float) -> set[str]:
    keys: set[str] = set()
    position: Position | None = BEGINNING
    while position is not None:
        if time.monotonic() > over_at:
            raise Stopped
        step = pages.step(segment, position, pages.stop)
        keys.update(map(_name, step.keys))
        position = step.position
    return keys


class _Differing:
    """The pages of a table, with the keys on which the table and the run differ.

    If an earlier slice began a segment, the keys that it read seem to be surplus here. The second
    look corrects that.
    """

    def __init__(self, pages: TablePages, reported: Reported) -> None:
        self.usage = pages.usage
        self.stop = pages.stop
        self.in_flight = pages.in_flight
        self.go_on = pages.go_on
        self.learnt = pages.learnt
        self._pages = pages
        self._reported = reported
        self._unseen: dict[int, dict[str, Key]] = {}

    def step(self, segment: int, position: Position, over: Event) -> PageResult:
        if segment not in self._unseen:
            self._unseen[segment] = self._reported(segment)
        unseen = self._unseen[segment]
        step = self._pages.step(segment, position, over)
        keys = [key for key in step.keys if unseen.pop(_name(key), None) is None]
        if step.position is None:
            keys += self._unseen.pop(segment).values()
        return PageResult(keys, step.position)


def _most_items(reader: PageReader, segments: int) -> int | None:
    """Return the maximum number of items of a page; None for 1 MB.

    With a rate limit, a page waits for its maximum cost, although a segment may be much smaller.
    """
    if reader.budget.max_rate is None or not reader.source.item_count:
        return None
    return max(FEWEST_ITEMS, 2 * reader.source.item_count // segments)


def _name(key: Key) -> str:
    return json.dumps(to_json(key), sort_keys=True)


def _by_name(keys: Iterable[Key]) -> dict[str, Key]:
    return {_name(key): key for key in keys}
