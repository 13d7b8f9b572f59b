"""Check a run: read a share of the table through with plain Scan pages, and compare.

Whole segments of the run are drawn at random, each is read from end to end, and its keys are
compared with those that the run's parts hold for it. What differs is looked at again, to tell a
fault from a table that changes while it is looked at:

missing    in the table, not in the run; and a second skip-scan of the segment misses it too
appeared   in the table, not in the run; but a second skip-scan finds it: written since, most likely
surplus    in the run, not in the table

A key that was deleted since the run read it is surplus: the table keeps no trace of it. One that is
missing at first and gone at the second look was deleted meanwhile, and is counted as appeared.
"""

import json
import random
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.values import Key, to_json
from keyhop.jobs.journal import Journal
from keyhop.jobs.model import Record, RunPlan
from keyhop.scan.page_size import Ledger
from keyhop.scan.reader import PageReader
from keyhop.scan.segments import group_of
from keyhop.scan.skip_scan import BEGINNING, Page, Position, advance

FEWEST_ITEMS = 100

EXAMPLES = 10
"""How many keys of each kind a verdict names."""


@dataclass(slots=True)
class Verdict(Record):
    """What a check found. share: of the hash space, that the `drawn` segments are. examples: up to
    EXAMPLES keys of each kind.
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
        """Before a check."""
        drawn = max(1, round(share * plan.segments))
        return cls(drawn, drawn / plan.segments)

    def add(self, kind: str, keys: Iterable[str]) -> None:
        """Count keys of a kind, and keep a few as examples."""
        found = list(keys)
        setattr(self, kind, getattr(self, kind) + len(found))
        if found:
            named = self.examples.setdefault(kind, [])
            named.extend(json.loads(key) for key in found[: EXAMPLES - len(named)])

    @property
    def is_whole(self) -> bool:
        """Whether all drawn segments have been checked."""
        return self.segments == self.drawn


def verify(
    journal: Journal,
    plan: RunPlan,
    reader: PageReader,
    share: float,
    threads: int,
    chance: random.Random,
    idle: Callable[[int, int], None] = lambda done, of: None,
    verdict: Verdict | None = None,
    over: Event | None = None,
) -> Verdict:
    """Check a finished run; raises what reading can raise, and BrokenPromise for a damaged part.

    idle: called every few segments with how many are done, of how many. verdict: of an earlier call
    with the same share and chance, to go on from. over: when it is set, the check ends where it is;
    then `Verdict.is_whole` tells that segments are left.
    """
    verdict = verdict or Verdict.of_none(plan, share)
    count = verdict.drawn
    drawn = chance.sample(range(plan.segments), count)
    with ThreadPoolExecutor(threads) as pool:
        # A few segments at a time, so that memory holds the keys of those only.
        for at in range(verdict.segments, count, threads):
            batch = drawn[at : at + threads]
            reported = _reported(journal, plan, set(batch))
            read = pool.map(lambda segment: _read_through(reader, plan, segment, over), batch)
            try:
                for segment, present in zip(batch, read, strict=True):
                    _compare(verdict, reader, plan, segment, reported[segment], present, over)
            except Stopped:
                if over is None or not over.is_set():
                    raise
                break
            idle(min(count, at + threads), count)
    return verdict


def _compare(
    verdict: Verdict,
    reader: PageReader,
    plan: RunPlan,
    segment: int,
    reported: set[str],
    present: set[str],
    over: Event | None,
) -> None:
    absent = present - reported
    surplus = reported - present
    if absent or surplus:
        again = _read_through(reader, plan, segment, over)
        surplus -= again
        found = _skip_through(reader, plan, segment, over) if plan.method == "skip" else set()
        missing = (absent & again) - found
        verdict.add("missing", sorted(missing))
        verdict.add("appeared", sorted(absent - missing))
        verdict.add("surplus", sorted(surplus))
    verdict.segments += 1
    verdict.keys += len(present)


def _reported(journal: Journal, plan: RunPlan, segments: set[int]) -> dict[int, set[str]]:
    keys: dict[int, set[str]] = {segment: set() for segment in segments}
    for group in {group_of(segment, plan.segments, plan.groups) for segment in segments}:
        for commit in journal.commits(group):
            for part in commit.parts:
                if any(block.segment in segments for block in part.blocks):
                    for segment, key in journal.keys(plan, part, segments):
                        keys[segment].add(_name(key))
    return keys


def _read_through(reader: PageReader, plan: RunPlan, segment: int, over: Event | None) -> set[str]:
    size = Ledger.for_table(reader.source.mean_item_bytes).size
    most = _most_items(reader, plan.segments)

    def read(position: Position) -> Page:
        limit, units = reader.affordable(most, size)
        return reader.read(segment, plan.segments, position.start, limit, units, over)

    return _walk(plan, read, hop=False)


def _most_items(reader: PageReader, segments: int) -> int | None:
    """Items to ask a page for, None for 1 MB.

    Under a rate, a page waits for all that it may cost, though a segment can hold much less.
    """
    if reader.budget.max_rate is None or not reader.source.item_count:
        return None
    return max(FEWEST_ITEMS, 2 * reader.source.item_count // segments)


def _skip_through(reader: PageReader, plan: RunPlan, segment: int, over: Event | None) -> set[str]:
    ledger = Ledger.for_table(reader.source.mean_item_bytes)

    def read(position: Position) -> Page:
        bet = ledger.bet()
        limit, units = reader.affordable(bet.limit, ledger.size)
        page = reader.read(segment, plan.segments, position.start, limit, units, over)
        ledger.settle(bet, page.runs, page.blocks)
        return page

    return _walk(plan, read, hop=True)


def _walk(plan: RunPlan, read: Callable[[Position], Page], hop: bool) -> set[str]:
    keys: set[str] = set()
    position: Position | None = BEGINNING
    while position is not None:
        step = advance(plan.space, position, read(position), hop)
        keys.update(map(_name, step.keys))
        position = step.position
    return keys


def _name(key: Key) -> str:
    return json.dumps(to_json(key), sort_keys=True)
