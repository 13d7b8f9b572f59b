"""Whether a run is whole: each segment worked by one commit after the other, and ended once. Pure.

A commit says where its group stood when the slice was over. From one commit of a group to the next,
the segments that were open and those that were begun meanwhile are either still open, or ended.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from keyhop.errors import BrokenPromise
from keyhop.jobs.model import Commit, RunPlan
from keyhop.scan.segments import segment_at
from keyhop.wording import counted

MOST_NAMED = 5
MOST_TIMES = 255


@dataclass(slots=True)
class EndedSegments:
    """How often each segment of a run was ended, by the commits of its groups, each in order."""

    plan: RunPlan
    times: bytearray = field(init=False)
    _begun: dict[int, int] = field(default_factory=dict)
    _open: dict[int, set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.times = bytearray(self.plan.segments)

    def add(self, commit: Commit) -> None:
        """Take the next commit of its group; raises BrokenPromise if it cannot be that."""
        group, stands = commit.group, commit.checkpoint
        places = range(group, self.plan.segments, self.plan.groups)
        before = self._begun.get(group, 0)
        if not 0 <= group < self.plan.groups or not before <= stands.place <= len(places):
            raise _wrong(commit, f"stands at place {stands.place} of its group")
        begun = {segment_at(place, self.plan.segments) for place in places[before : stands.place]}
        worked = self._open.get(group, set()) | begun
        still = set(stands.open)
        held: set[int] = set()
        if not self.plan.buckets:
            held = {block.segment for part in commit.parts for block in part.blocks}
        strange = sorted((still | held) - worked)
        if strange:
            raise _wrong(commit, f"has worked segment {strange[0]}, which was not its to work")
        ended = worked - still
        if len(ended) != commit.ended:
            raise _wrong(
                commit,
                f"ended {counted(commit.ended, 'segment')} by its count, {len(ended)} by name",
            )
        for segment in ended:
            self.times[segment] = min(MOST_TIMES, self.times[segment] + 1)
        self._begun[group] = stands.place
        self._open[group] = still

    def watch(self, commits: Iterable[Commit]) -> Iterator[Commit]:
        """The same commits, each added as it passes."""
        for commit in commits:
            self.add(commit)
            yield commit

    def check_complete(self) -> None:
        """Raises BrokenPromise unless every segment was ended exactly once."""
        wrong = [segment for segment, times in enumerate(self.times) if times != 1]
        if wrong:
            named = ", ".join(
                f"{segment} ({self.times[segment]} times)" for segment in wrong[:MOST_NAMED]
            )
            more = "" if len(wrong) <= MOST_NAMED else f" and {len(wrong) - MOST_NAMED:,} more"
            raise BrokenPromise(
                f"The run claims to be finished, but these segments were not ended exactly once: "
                f"{named}{more}. Do not use its result."
            )


def _wrong(commit: Commit, how: str) -> BrokenPromise:
    return BrokenPromise(
        f"Commit {commit.slice} of group {commit.group} {how}: the run's files are harmed, so do "
        f"not use its result."
    )
