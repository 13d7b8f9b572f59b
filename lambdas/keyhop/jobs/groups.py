"""How a run is shared out: among the workers of a fleet, or the processes of one machine. Pure.

A worker is one process. It works one group of segments at a time, of as
many as there are. Read units a second are shared by how many workers run at once; read units in all
are shared by group, and what some groups leave over is shared out again.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from keyhop.dynamodb.capacity import BLOCK_BYTES, UNITS_PER_BLOCK
from keyhop.jobs.layout import CPU_SECONDS, PROCESS_SECONDS, Layout, Wishes
from keyhop.jobs.request import Request
from keyhop.scan.page_size import FIRST_DEPOSIT, Ledger
from keyhop.scan.segments import MOST_SEGMENTS

ASSUMED_RATE = 12_000.0
"""Read units a second that a new on-demand table serves; a fleet is made no larger for more."""

SEGMENTS_PER_GROUP = 32
"""Keeps Step Functions' part of the price to a few hundredths; a worker reads no more at once."""

CHECKED_BYTES = 256e6
CHECKED_SECONDS = 30.0
"""A segment that may be checked should not take longer to read through: eight are read at once."""

LEAST_SHARE = 10.0
LEAST_BLIND_SHARE = 50.0
"""Read units below which a group is not begun, if others can have them. Where nothing is known of
items, its first page may cost as much as the largest item of all, of 400 KB."""

MORE_IF_STUCK = 4.0
"""If no group could do anything with its share, fewer groups get larger ones."""

SHARE_OF_ACCOUNT = 0.8
"""The rest is for keepers, for FinishRun, and for what else runs in the account."""

LEAST_WORKER_RATE = 4.0
"""Read units a second that a worker should have: an item of 400 KB costs 50 read units."""


def most_processes(cores: int, max_rate: float | None, max_units: float | None) -> int:
    """Processes of a run on one machine, if there is enough to do for them: one for each core.

    No more than it takes to read as fast as is allowed, or as a new table serves, and to spend
    `max_units` in as long as a process should have to do.
    """
    of_one = UNITS_PER_BLOCK / CPU_SECONDS
    needed = [(max_rate or ASSUMED_RATE) / of_one]
    if max_units is not None:
        needed.append(max_units / (of_one * PROCESS_SECONDS))
    return max(1, min(cores, *map(math.ceil, needed)))


def segments_to_check(size_bytes: int, max_rate: float | None) -> int:
    """Segments, at least, of a run whose check reads each of some through in a function's time."""
    most_bytes = CHECKED_BYTES
    if max_rate is not None:
        most_bytes = min(most_bytes, max_rate / UNITS_PER_BLOCK * BLOCK_BYTES * CHECKED_SECONDS)
    return min(MOST_SEGMENTS, math.ceil(size_bytes / most_bytes))


def wishes_of_fleet(request: Request, size_bytes: int, one_worker: bool) -> Wishes:
    """What a layout has to know.

    size_bytes: of what is read. one_worker: where only that can know all keys.
    """
    rate = request.max_read_rate
    most = math.ceil((rate or ASSUMED_RATE) / UNITS_PER_BLOCK * CPU_SECONDS)
    return Wishes(
        segments=request.segments,
        threads=SEGMENTS_PER_GROUP,
        max_rate=rate,
        verify_share=request.verify_share,
        processes=1 if one_worker else request.max_concurrency,
        most_processes=most,
        least_segments=segments_to_check(size_bytes, rate),
    )


def groups_of_layout(layout: Layout, one_worker: bool) -> tuple[int, int]:
    """How many groups its segments make, and how many of those are worked at once."""
    if one_worker:
        return 1, 1
    at_once = min(layout.processes, layout.segments)
    groups = layout.groups or max(math.ceil(layout.segments / SEGMENTS_PER_GROUP), at_once)
    return groups, at_once


def learnt_for_each(ledger: Ledger) -> Mapping[str, Any]:
    """What each group begins with: all that a first look has learnt, and no more credit than it."""
    state = ledger.to_json()
    return {**state, "bank": min(state["bank"], FIRST_DEPOSIT)}


def workers_at_once(wanted: int, max_rate: float | None, most: int | None) -> int:
    """How many workers to run at once of those `wanted`.

    Each share of `max_rate` must pay for the largest page that a table can force on a worker, one
    item of 400 KB, in a few seconds. most: what a reservation, or the account, allows.
    """
    if max_rate is not None:
        wanted = min(wanted, int(max_rate / LEAST_WORKER_RATE))
    if most is not None:
        wanted = min(wanted, most)
    return max(1, wanted)


def most_of_account(unreserved: int) -> int:
    """Workers at once of a run, of the executions that functions without a reservation share."""
    return max(1, int(SHARE_OF_ACCOUNT * unreserved))


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


def shared_again(
    left: float,
    spent: Mapping[int, float],
    groups: Iterable[int],
    least: float,
    is_stuck: bool,
    served: int,
) -> tuple[dict[int, float], float]:
    """What groups that need more than their share may spend, out of what others left over; and the
    `least` of that. None is named if nothing can be done with what is left.

    is_stuck: with the shares before this, of `served` groups, nothing could be read.
    """
    least *= MORE_IF_STUCK if is_stuck else 1.0
    shares = allowances(left, spent, groups, least)
    return ({} if is_stuck and served == 1 else shares), least
