"""A run within the files of another: one group, worked by the process that finishes or checks that.

Its commits make it as safe as any: it may be killed, done twice at once, and take several calls.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from keyhop.dynamodb.usage import Usage
from keyhop.jobs.finish import sum_up
from keyhop.jobs.journal import Journal
from keyhop.jobs.model import RunPlan, Totals
from keyhop.jobs.pages import Pages
from keyhop.jobs.worker import CALM_SLICES, GroupWorker, too_slow


def begun_within(journal: Journal, plan: RunPlan, **own: Any) -> RunPlan:
    """The plan of a run within that of `plan`: written now, or by whoever was first.

    own: its task, method, reason, segments, options.
    """
    journal.begin(
        replace(
            plan,
            groups=1,
            at_once=1,
            planning=Usage(),
            planning_seconds=0.0,
            ledger=None,
            buckets=0,
            **own,
        )
    )
    begun = journal.plan()
    assert begun is not None
    return begun


def work_within(
    journal: Journal,
    plan: RunPlan,
    pages_of: Callable[[], Pages],
    threads: int,
    over_at: float = math.inf,
    too_slow: Callable[[int], str] = too_slow,
) -> tuple[Totals, bool]:
    """Go on with such a run; returns its totals, and whether it has moved.

    pages_of: called if there is anything left to do. too_slow: see GroupWorker. Raises what ended a
    slice, and BrokenPromise if its files are harmed.
    """
    totals, _ = sum_up(journal, plan)
    if totals.finished:
        return totals, False
    group = GroupWorker(
        journal, plan, 0, pages_of(), threads, slices=CALM_SLICES, too_slow=too_slow
    )
    group.run(over_at=over_at)
    return sum_up(journal, plan)[0], group.has_moved
