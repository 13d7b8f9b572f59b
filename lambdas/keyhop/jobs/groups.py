"""How a run is shared out among the workers of a fleet. Pure.

A worker is one process with MOST_WORKERS threads. It works one group of segments at a time, of as
many as there are. Read units a second are shared by how many workers run at once; read units in all
are shared by group, and what some groups leave over is shared out again.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from keyhop.dynamodb.capacity import BLOCK_BYTES, UNITS_PER_BLOCK
from keyhop.jobs.layout import MOST_WORKERS, REQUESTS_PER_SECOND, Layout, Wishes
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


def fleet_wishes(
    segments: int | None,
    max_concurrency: int | None,
    max_rate: float | None,
    verify_share: float | None,
    one_worker: bool,
    size_bytes: int = 0,
) -> Wishes:
    """What a plan needs to know of a fleet. one_worker: where only that can know all keys."""
    in_flight = math.ceil((max_rate or ASSUMED_RATE) / (UNITS_PER_BLOCK * REQUESTS_PER_SECOND))
    workers = None if max_concurrency is None else MOST_WORKERS * max_concurrency
    if one_worker:
        in_flight = MOST_WORKERS
        workers = None
    most = max(MOST_WORKERS, in_flight)
    return Wishes(
        segments, workers, max_rate, verify_share, most, segments_to_check(size_bytes, max_rate)
    )


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


def fleet_of(layout: Layout, one_worker: bool) -> Fleet:
    """The fleet for a layout, whose `workers` are threads of all processes together."""
    if one_worker:
        return Fleet(layout.segments, 1, 1)
    at_once = math.ceil(layout.workers / MOST_WORKERS)
    groups = max(math.ceil(layout.segments / SEGMENTS_PER_GROUP), min(at_once, layout.segments))
    return Fleet(layout.segments, groups, min(at_once, groups))


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
