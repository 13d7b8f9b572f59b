"""The end of a job: from the commits of all groups to the manifest, checked to be complete."""

import math
from collections.abc import Callable, Mapping, Sequence
from threading import Event
from typing import Any

from keyhop.clock import now
from keyhop.errors import BrokenPromise
from keyhop.jobs.journal import Journal
from keyhop.jobs.model import EndedSegments, RunPlan, Totals, manifest
from keyhop.jobs.task import Ended, Summary, Task


def sum_up(journal: Journal, plan: RunPlan) -> tuple[Totals, dict[str, Any]]:
    """The totals and the manifest of a run; raises BrokenPromise if its files are harmed.

    A finished run is checked to be complete.
    """
    listed = journal.commit_files()  # before they are read: a twin may be adding to them
    segments = EndedSegments(plan)
    totals = Totals.of(plan, segments.watch(journal.commits_of(sorted(listed))))
    if listed.total() > totals.commits:
        raise BrokenPromise(
            f"Only {totals.commits} of {listed.total()} commits follow one another, so keys are "
            f"lost: run again into another place."
        )
    journal.check_sizes(part.summary() for part in totals.parts)
    finished = len(totals.finished) == plan.groups
    if finished:
        segments.check_complete()
    return totals, manifest(plan, totals, finished, now())


def recover(journal: Journal, plan: RunPlan) -> Totals:
    """Before an unfinished run goes on: check what is committed, sweep what is not.

    Raises BrokenPromise if a commit or a part is harmed; then nothing is swept.
    """
    totals = sum_up(journal, plan)[0]
    journal.check_content(totals.parts)
    journal.sweep(totals.parts)
    return totals


def conclude(
    journal: Journal,
    plan: RunPlan,
    task: Task,
    over_at: float = math.inf,
    stop: Event | None = None,
    figures: Callable[[Totals], Mapping[str, Any]] = lambda totals: {},
    index_parts: Callable[[Sequence[Summary]], None] = lambda parts: None,
) -> tuple[Totals, Summary | None]:
    """Write the manifest, or how far the run is; returns the totals of reading, and the summary.

    None for a summary: all is read, but the task needs another call to finish; see `Ended`.
    figures: what the summary has on top. index_parts: gets the parts that count, before there is a
    manifest, which is the last to be written. May be called again; the first manifest stays.
    """
    totals, summary = sum_up(journal, plan)
    if not summary["finished"]:
        summary |= figures(totals)
        journal.write_summary(summary)
        return totals, summary
    # No slice can be committed any more, so what no commit names now, none ever will.
    journal.sweep(totals.parts)
    written: Summary | None = journal.manifest()
    if written is None:
        result = task.finish(Ended(journal, plan, totals, summary, over_at, stop or Event()))
        if result is None:
            return totals, None
        index_parts(result["parts"])
        written = {**result, **figures(totals)}
        journal.write_summary(written)
    journal.check_sizes(written["parts"])
    journal.forget_progress()
    return totals, written
