"""Every segment exactly once, by name: what sums alone would let through."""

from itertools import pairwise

import pytest
from keyhop.errors import BrokenPromise
from keyhop.jobs.journal import Checkpoint, Commit, EndedSegments, Part, RunPlan
from keyhop.scan.segments import group_order
from keyhop.scan.skip_scan import BEGINNING

from tests.unit.test_store import commit_of, plan_of

SEGMENTS = 10
GROUPS = 2


def commit(group: int, place: int, still: set[int], ended: int, held: tuple[int, ...] = ()):
    blocks = tuple((segment, 1, 1) for segment in held)
    parts = (Part("p", len(blocks), "", 0, blocks),) if blocks else ()
    checkpoint = Checkpoint(place, dict.fromkeys(still, BEGINNING))
    return commit_of("a", parts, ended, group=group, checkpoint=checkpoint)


def whole_run(plan: RunPlan) -> list[Commit]:
    """Each group in three commits; one segment stays open from each commit to the next."""
    commits = []
    for group in range(plan.groups):
        order = list(group_order(group, plan.groups, plan.segments))
        stands = [0, 2, 4, len(order)]
        still: set[int] = set()
        for before, place in pairwise(stands):
            begun = set(order[before:place])
            worked = still | begun
            still = {order[place - 1]} if place < len(order) else set()
            commits.append(commit(group, place, still, len(worked - still), tuple(worked)))
    return commits


@pytest.fixture
def plan() -> RunPlan:
    return plan_of(SEGMENTS, groups=GROUPS)


def test_a_whole_run_has_each_segment_once(plan: RunPlan) -> None:
    ended = EndedSegments(plan)
    for commit in whole_run(plan):
        ended.add(commit)
    ended.check_complete()


def test_a_missing_end_is_told_by_the_segments_name(plan: RunPlan) -> None:
    ended = EndedSegments(plan)
    for each in whole_run(plan)[:-1]:
        ended.add(each)
    last = list(group_order(1, GROUPS, SEGMENTS))[-1]
    with pytest.raises(BrokenPromise, match=rf"{last} \(0 times\).* Do not use its result"):
        ended.check_complete()


def test_sums_that_are_right_do_not_hide_a_segment_that_was_ended_twice(plan: RunPlan) -> None:
    """A segment that is dropped, and another that is ended again, leave the count as it was."""
    order = list(group_order(0, GROUPS, SEGMENTS))
    ended = EndedSegments(plan)
    ended.add(commit(0, 2, set(), 2))
    with pytest.raises(BrokenPromise, match="does not belong to it"):
        ended.add(commit(0, 5, {order[0]}, 3))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (commit(0, 2, set(), 1), "ended 1 segment by its count, 2 by name"),
        (commit(0, 6, set(), 6), "is at place 6"),
        (commit(2, 0, set(), 0), "is at place 0"),
        (commit(0, 0, {3}, 0), "has read segment 3"),
        (commit(0, 1, set(), 1, held=(7,)), "has read segment 7"),
    ],
)
def test_a_commit_that_cannot_be_is_told(plan: RunPlan, wrong: Commit, told: str) -> None:
    with pytest.raises(BrokenPromise, match=told):
        EndedSegments(plan).add(wrong)


def test_places_do_not_go_back(plan: RunPlan) -> None:
    ended = EndedSegments(plan)
    ended.add(commit(0, 2, set(), 2))
    with pytest.raises(BrokenPromise, match="is at place 1"):
        ended.add(commit(0, 1, set(), 0))
