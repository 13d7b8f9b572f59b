"""The check of a run (VerifyRun): read a share of the table with plain Scan pages, and compare.

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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from threading import Event
from typing import TYPE_CHECKING, Any

from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key, key_text
from keyhop.errors import KeysMissing, SegmentsTooLarge, Stopped
from keyhop.jobs.journal import Journal, Record, RunPlan
from keyhop.jobs.lifecycle import begun_task
from keyhop.jobs.pages import Pages, TablePages
from keyhop.jobs.price import FunctionSize, cost_of_check, with_check
from keyhop.jobs.rows import Rows
from keyhop.jobs.task import Tasks
from keyhop.jobs.worker import begun_within, patience_within, work_within, working_seconds
from keyhop.scan.in_flight import MOST
from keyhop.scan.reader import PageReader
from keyhop.scan.segments import group_of
from keyhop.scan.skip_scan import BEGINNING, PageResult, Position
from keyhop.wording import counted

if TYPE_CHECKING:  # the command checks its run without boto3
    from keyhop.jobs.runs import Runs

Reported = Callable[[int], dict[str, Key]]
"""Returns the keys of the run in a drawn segment (by its number in the draw), by their names."""

FEWEST_ITEMS = 100

EXAMPLES = 10
"""The maximum number of examples of each kind in a verdict."""

VERDICT = "verify.json"


@dataclass(slots=True)
class Verdict(Record):
    """The result of a check.

    Attributes:
        drawn: The number of segments that were drawn.
        share: Their share of the hash space.
        segments: How many of them have been checked.
        keys: The number of keys in them, once every segment is checked.
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
        return self.segments == self.drawn


@dataclass(slots=True)
class Check(Record):
    """The check of a run, which is stored with the files of the run.

    Attributes:
        execution: The execution that began it. It continues the check over several invocations,
            and so does an execution that resumes it.
        verdict: The result so far, with examples of keys.
        read_units: The read units of all invocations so far.
        number: The number of the check among those of the run, from 1.
    """

    execution: str
    verdict: Verdict
    read_units: float = 0.0
    seconds: float = 0.0
    invocations: int = 0
    number: int = 1

    @classmethod
    def stored(cls, journal: Journal, plan: RunPlan, share: float, execution: str) -> "Check":
        """Load the check; begin a new one if the share differs or the last one is complete."""
        fresh = Verdict.of_none(plan, share)
        stored_check = journal.load(VERDICT)
        check = cls(execution, fresh) if stored_check is None else cls.from_json(stored_check)
        is_another = check.verdict.drawn != fresh.drawn
        is_over = check.verdict.is_whole and check.execution != execution
        if is_another or is_over:
            number = check.number + 1
            return replace(check, execution=execution, verdict=fresh, number=number)
        return check

    def summary(self) -> dict[str, Any]:
        """Return the counts, for the output of the execution and the manifest."""
        counts = self.verdict.to_json()
        del counts["examples"]
        return {**counts, "read_units": self.read_units, "seconds": round(self.seconds, 3)}


def verify_run(
    state: Mapping[str, Any],
    runs: "Runs",
    tasks: Tasks,
    worker: FunctionSize,
    remaining_seconds: float,
    usage: Usage,
) -> tuple[dict[str, Any], Verdict]:
    """Check a share of the segments; return the next state and the result so far.

    `usage` counts everything that is read, even if this raises.

    Raises:
        KeysMissing: All segments were checked, and keys were missing.
        SegmentsTooLarge: There was no time to read a segment to its end.
    """
    began = time.monotonic()
    journal, plan = runs.open_run(state["run"])
    connection = runs.connect(plan.table, MOST)
    _, source = begun_task(tasks, plan, connection)
    check = Check.stored(journal, plan, state["verifyShare"], state["execution"])
    verdict, units, seconds = check.verdict, check.read_units, check.seconds
    check.invocations += 1
    budget = Budget(state["maxReadRate"])
    if state["readUnitsLimit"] is not None:
        by_this_start = units - state["checkUnitsBefore"]
        budget.allow_more(state["readUnitsLimit"] - state["readUnitsBefore"] - by_this_start)
    patience = patience_within(remaining_seconds)
    reader = PageReader(connection, source, budget, patience=patience, usage=usage)

    def keep() -> None:
        check.read_units = units + usage.read_units
        check.seconds = seconds + time.monotonic() - began
        journal.keep(VERDICT, {**check.to_json(), "seconds": round(check.seconds, 3)})

    within = journal.within(f"verify/{check.number}")
    over_at = began + working_seconds(remaining_seconds)
    try:
        has_moved = verify(journal, plan, within, reader, verdict, MOST, over_at, keep)
    finally:
        keep()
    if not verdict.is_whole:
        if not has_moved:
            took = time.monotonic() - began
            raise SegmentsTooLarge(
                f"The check read for {counted(took, 'second')} and came to the end of no segment."
            )
        return {**state, "next": "verify"}, verdict
    cost = cost_of_check(worker, check.read_units, check.seconds, check.invocations, plan.prices)
    result = with_check(state["result"], check.summary(), cost)
    manifest = journal.manifest()
    if manifest is not None:
        journal.write_summary(with_check(manifest, check.summary(), cost))
    if verdict.missing:
        raise KeysMissing(
            f"The check of {verdict.share:.1%} of the hash space found "
            f"{counted(verdict.missing, 'key')} that the run did not report; examples are in "
            f"{journal.store.url(VERDICT)}.",
            verdict.missing,
        )
    return {**state, "next": "end", "result": result}, verdict


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
        within: The files of the check's own run.
        verdict: The result, which is updated. If `is_whole` is false, the next call continues.
        over_at: The time, on the monotonic clock, at which to stop.
        keep: Is called after each change of the verdict.

    Raises:
        BrokenPromise: A part of the run is damaged.
    """
    look = within.plan()
    if look is None:
        count = verdict.drawn
        options = {"drawn": random.Random().sample(range(plan.segments), count)}
        why = "to check the run"
        look = begun_within(
            within, plan, task="verify", method="scan", reason=why, segments=count, options=options
        )
    sampled = look.options["drawn"]
    groups = {group_of(segment, plan.segments, plan.groups) for segment in sampled}
    rows = Rows(journal, plan).load(sorted(groups))

    def reported(number: int) -> dict[str, Key]:
        return _by_json(rows.checked(sampled[number]))

    def pages(hop: bool) -> TablePages:
        maximum = _most_items(reader, plan.segments)
        return TablePages(reader, hop, plan.segments, sampled, most_items=maximum)

    totals, has_moved = work_within(
        within, look, lambda: _DifferingPages(pages(hop=False), reported), threads, over_at
    )
    if not totals.finished:
        return has_moved
    differing = [segment for segment, keys in enumerate(totals.segments) if keys]
    verdict.segments = max(verdict.segments, verdict.drawn - len(differing))
    unchecked = verdict.drawn - verdict.segments
    differences = Rows(within, look)
    for segment in differing[len(differing) - unchecked :]:
        keys = set(_by_json(differences.load([0]).checked(segment)))
        try:
            _settle(verdict, segment, keys, reported, pages, plan.method == "skip", over_at)
        except Stopped:
            if reader.stop.is_set():
                raise
            return has_moved
        has_moved = True
        keep()
    keys_reported = sum(map(rows.count, sampled))
    verdict.keys = keys_reported + verdict.missing + verdict.appeared - verdict.surplus
    return True


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
        keys.update(map(key_text, step.keys))
        position = step.position
    return keys


class _DifferingPages:
    """The pages of a table, with the keys on which the table and the run differ.

    If an earlier slice began a segment, the keys which that slice read seem to be surplus here. The
    second look corrects that.
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
        page = self._pages.step(segment, position, over)
        differing = [key for key in page.keys if unseen.pop(key_text(key), None) is None]
        if page.position is None:
            differing += self._unseen.pop(segment).values()
        return PageResult(differing, page.position)


def _most_items(reader: PageReader, segments: int) -> int | None:
    """Return the maximum number of items of a page; None for 1 MB.

    With a rate limit, a page waits for its maximum cost, although a segment may be much smaller.
    """
    if reader.budget.max_rate is None or not reader.source.item_count:
        return None
    return max(FEWEST_ITEMS, 2 * reader.source.item_count // segments)


def _by_json(keys: Iterable[Key]) -> dict[str, Key]:
    return {key_text(key): key for key in keys}
