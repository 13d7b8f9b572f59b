"""How a run is shared out among the workers of a fleet. Pure.

A worker is one process with MOST_THREADS threads. It works one group of segments at a time, of as
many as there are. Read units a second are shared by how many workers run at once; read units in all
are shared by group, and what some groups leave over is shared out again.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.dynamodb.capacity import BLOCK_BYTES, UNITS_PER_BLOCK
from keyhop.jobs.formats import Format
from keyhop.jobs.layout import MOST_THREADS, REQUESTS_PER_SECOND, Layout, Wishes
from keyhop.jobs.request import Request
from keyhop.scan.page_size import FIRST_DEPOSIT, Ledger
from keyhop.scan.segments import MOST_SEGMENTS

ASSUMED_RATE = 12_000.0
"""Read units a second that a new on-demand table serves; a fleet is made no larger for more."""

SEGMENTS_PER_GROUP = 32
"""Keeps Step Functions' part of the price to a few hundredths."""

CHECKED_BYTES = 256e6
CHECKED_SECONDS = 30.0
"""A segment that may be checked should not take longer to read through: eight are read at once."""

LEAST_SHARE = 10.0
LEAST_BLIND_SHARE = 50.0
"""Read units below which a group is not begun, if others can have them. Where nothing is known of
items, its first page may cost as much as the largest item of all, of 400 KB."""

MORE_IF_STUCK = 4.0
"""If no group could do anything with its share, fewer groups get larger ones."""

LEAST_WORKER_RATE = 4.0
"""Read units a second that a worker should have: an item of 400 KB costs 50 read units."""


def segments_to_check(size_bytes: int, max_rate: float | None) -> int:
    """Segments, at least, of a run whose check reads each of some through in a function's time."""
    most_bytes = CHECKED_BYTES
    if max_rate is not None:
        most_bytes = min(most_bytes, max_rate / UNITS_PER_BLOCK * BLOCK_BYTES * CHECKED_SECONDS)
    return min(MOST_SEGMENTS, math.ceil(size_bytes / most_bytes))


@dataclass(frozen=True, slots=True)
class Fleet:
    """How a run is spread: segments by groups, and how many groups are worked at once."""

    segments: int
    groups: int
    at_once: int


@dataclass(frozen=True, slots=True)
class ManyWorkers:
    """How a run is spread over workers; see plan.Spread.

    one_worker: where only that can know all keys.
    A layout's `threads` are threads of all processes together.
    """

    gzip: bool = True
    format: Format = "jsonl"

    def wishes(self, request: Request, size_bytes: int, one_worker: bool) -> Wishes:
        """What a layout has to know of a fleet."""
        rate = request.max_read_rate
        in_flight = math.ceil((rate or ASSUMED_RATE) / (UNITS_PER_BLOCK * REQUESTS_PER_SECOND))
        most = request.max_concurrency
        threads = None if most is None else MOST_THREADS * most
        if one_worker:
            in_flight, threads = MOST_THREADS, None
        return Wishes(
            request.segments,
            threads,
            rate,
            request.verify_share,
            max(MOST_THREADS, in_flight),
            segments_to_check(size_bytes, rate),
        )

    def fleet(self, layout: Layout, one_worker: bool) -> Fleet:
        """The groups of a layout."""
        if one_worker:
            return Fleet(layout.segments, 1, 1)
        at_once = math.ceil(layout.threads / MOST_THREADS)
        groups = max(math.ceil(layout.segments / SEGMENTS_PER_GROUP), min(at_once, layout.segments))
        return Fleet(layout.segments, groups, min(at_once, groups))

    def learnt(self, ledger: Ledger) -> Mapping[str, Any]:
        """All that was learnt, and credit as for one process."""
        state = ledger.to_json()
        return {**state, "bank": min(state["bank"], FIRST_DEPOSIT * MOST_THREADS)}


def workers_at_once(wanted: int, max_rate: float | None, most: int | None) -> int:
    """How many workers to run at once of those `wanted`.

    Each share of `max_rate` must pay for the largest page that a table can force on a worker, one
    item of 400 KB, in a few seconds. most: what the deployment's reserved concurrency allows.
    """
    if max_rate is not None:
        wanted = min(wanted, int(max_rate / LEAST_WORKER_RATE))
    if most is not None:
        wanted = min(wanted, most)
    return max(1, wanted)


def allowances(
    left: float, spent: Mapping[int, float], groups: Iterable[int], least: float = LEAST_SHARE
) -> dict[int, float]:
    """Share `left` read units out among unfinished `groups`: what each may spend in all.

    spent: what groups have spent so far. least: what a group needs to be of use: some groups get
    nothing for now if there is too little for all; none is named if nothing can be done with what
    is left.
    """
    waiting = list(groups)
    if left < UNITS_PER_BLOCK or not waiting:
        return {}
    served = waiting[: max(1, int(left / least))]
    return {group: spent.get(group, 0.0) + left / len(served) for group in served}
