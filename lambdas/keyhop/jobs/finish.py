"""The end of a job: from the commits of all groups to the manifest, checked to be complete."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keyhop.errors import BrokenPromise
from keyhop.jobs.clock import now
from keyhop.jobs.completeness import EndedSegments
from keyhop.jobs.journal import Journal
from keyhop.jobs.model import Part, RunPlan, Totals, manifest
from keyhop.jobs.task import Ended, Result, Task

Figures = Callable[[Totals], Mapping[str, Any]]


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
    journal.check_sizes(totals.parts)
    finished = len(totals.finished) == plan.groups
    if finished:
        segments.check_complete()
    return totals, manifest(plan, totals, finished, now())


def recover(journal: Journal, plan: RunPlan) -> None:
    """Before an unfinished run goes on: check what is committed, sweep what is not.

    Raises BrokenPromise if a commit or a part is harmed; then nothing is swept.
    """
    parts = sum_up(journal, plan)[0].parts
    journal.check_content(parts)
    journal.sweep(parts)


def conclude(
    journal: Journal,
    plan: RunPlan,
    task: Task,
    check: Callable[[int], None] = lambda done: None,
    figures: Figures = lambda totals: {},
    index_parts: Callable[[Sequence[Part]], None] = lambda parts: None,
) -> tuple[Totals, Result]:
    """Write the manifest, or how far the run is; returns the totals of reading, and the result.

    check: may raise what ends the task's finish before its time: then the run stays unfinished.
    figures: what the summary has on top. index_parts: gets the parts that count, before there is a
    manifest, which is the last to be written. May be called again; the first manifest stays.
    """
    totals, summary = sum_up(journal, plan)
    if not summary["finished"]:
        journal.write_summary(summary | dict(figures(totals)))
        return totals, Result(summary, totals.parts)
    # No slice can be committed any more, so what no commit names now, none ever will.
    journal.sweep(totals.parts)
    result = task.finish(Ended(journal, plan, totals, summary, check))
    index_parts(result.parts)
    written = journal.manifest()
    if written is None:
        written = {**result.summary, **figures(totals)}
        journal.write_summary(written)
    journal.forget_progress()
    return totals, Result(written, result.parts)
