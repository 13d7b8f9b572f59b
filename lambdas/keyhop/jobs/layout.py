"""The layout of a run: its segments, groups, processes and shares of a budget. Pure.

A worker is one process. It reads one group of segments at a time, and several segments of the
group at once. The reader finds the number of requests in flight while it reads
(scan/in_flight.py). This module predicts that number, so that there are enough segments and an
estimate is realistic:

- If one request costs c seconds of CPU time and takes d seconds, a process keeps d / c requests in
  flight. All processes together keep F requests in flight.
- A page of 4 KB costs 0.5 read units, so R * d / 0.5 requests in flight are enough for a rate of
  R read units a second.
- Segments = min(1,000,000, keys / 50, read units / 25, max(9 F, keys * d / 120 s,
  min(2,304, units / 100))).

The end of a segment may cost a request that returns nothing. The limits keep this cost to a few
percent of the run. They also let a segment of a large table end within two minutes, and provide
work for 256 requests at once, if requests are slow and the ends cost at most half a percent.

All workers that run at once share the read units a second. The groups share the total of read
units, and what some groups do not use is shared out again.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from keyhop.dynamodb.units import BLOCK_BYTES, PAGE_BYTES, UNITS_PER_BLOCK
from keyhop.scan.in_flight import MOST
from keyhop.scan.page_size import FIRST_DEPOSIT, Ledger
from keyhop.scan.segments import MOST_SEGMENTS, SERIAL_REQUESTS
from keyhop.scan.statistics import Forecast

Method = Literal["skip", "scan", "index", "parts", "listed"]
"""The way in which a run reads.

"skip" reads by hops, "scan" reads all items, and "index" reads an index that has one row for each
key. "parts" reads another run's parts to map their keys, and "listed" reads the keys that another
run has listed.
"""

DEFAULT_UNITS = 50.0
"""The read units that an estimate may spend by default."""

KEYS_PER_SEGMENT = 50
UNITS_PER_SEGMENT = 25.0
UNITS_PER_FURTHER_SEGMENT = 100.0
"""The read units of each segment beyond the number that is probably enough."""

SEGMENTS_PER_THREAD = 9
"""The number of segments with which the threads end at about the same time."""

LONGEST_SEGMENT_SECONDS = 120.0
REQUESTS_PER_SECOND = 278.0
"""The requests of one segment in a function: a round trip of 3 ms and the client's CPU time."""

REQUEST_SECONDS = 1 / REQUESTS_PER_SECOND
CPU_SECONDS = 1 / 3_800
"""The CPU time of a process for one request and its response.

We measured 264 microseconds, with slices over hops to a stub in C at 3 ms, on 2 busy cores
(2026-11-22). A function of 1,769 MB has one such CPU.
"""

CPU_SECONDS_PER_BYTE = 1.2e-8
"""The CPU time for all items of a page without hops: 12 ms for 1 MB (benchmark.md)."""

MOST_CONCURRENCY = 10_000
"""The maximum number of children that a distributed map runs at once (Step Functions' quota)."""

PROCESS_SECONDS = 15.0
"""The work of one process for which a run gets another process."""

SCAN_BYTES_PER_SEGMENT = 4 * PAGE_BYTES
SCAN_SECONDS_PER_BYTE = 1e-7

FEWEST_SEGMENTS = 4
"""Fewer segments save less than the first look has cost, so the run continues from that look."""

VERIFY_SEGMENTS = 8
"""The number of segments that a check of the result should read."""

FEWEST_TO_VERIFY = 64
"""The minimum segments of a run with a check, which holds the keys of eight in memory."""

ASSUMED_RATE = 12_000.0
"""The read units a second of a new on-demand table. A fleet is not made larger for more."""

SEGMENTS_PER_GROUP = 32
"""The segments that a worker reads at once, so that Step Functions' share of the price is a few
percent."""

CHECKED_BYTES = 256e6
CHECKED_SECONDS = 30.0
"""The longest time to read through a segment that may be checked: a check reads eight at once."""

LEAST_SHARE = 10.0
LEAST_BLIND_SHARE = 50.0
"""The read units below which a group does not begin (RunPlan.least_share)."""

MORE_IF_STUCK = 4.0
"""The factor of a share if no group could read anything, so that fewer groups get more."""

SHARE_OF_ACCOUNT = 0.8
"""The workers' share of the account: keepers, FinishRun and other functions need the rest."""

LEAST_WORKER_RATE = 4.0
"""The minimum read units a second of a worker: an item of 400 KB costs 50 read units."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """The settings that a layout must respect; None leaves the choice to the layout.

    Attributes:
        threads: The maximum number of segments that one process reads at once.
        verify_share: The share of the segments that a check of the result reads.
        most_processes: The maximum number of processes if `processes` is None.
        least_segments: The minimum number of segments of a run with a check, so that a check can
            read each segment in one invocation.
    """

    segments: int | None = None
    threads: int | None = None
    max_rate: float | None = None
    verify_share: float | None = None
    processes: int | None = None
    most_processes: int = 1
    least_segments: int = 1

    @property
    def most_in_flight(self) -> int:
        return self.threads or MOST


@dataclass(frozen=True, slots=True)
class Layout:
    """The number of segments of a run, and of the threads and processes that read them.

    Attributes:
        threads: The predicted number of segments that all processes together read at once.
        groups: The number of groups of a fleet, or None to derive it from the other numbers.
        buckets: See RunPlan.
    """

    segments: int
    threads: int
    processes: int = 1
    groups: int | None = None
    buckets: int = 0


@dataclass(frozen=True, slots=True)
class ReadingSpeed:
    """The speed at which one process reads pages of `page_bytes`, or hops if that is 0."""

    latency: float = REQUEST_SECONDS
    page_bytes: float = 0.0

    @property
    def seconds(self) -> float:
        """Return the seconds that a page takes while no other request is in flight."""
        return self.latency + self.page_bytes * SCAN_SECONDS_PER_BYTE

    @property
    def cpu_seconds(self) -> float:
        return CPU_SECONDS + self.page_bytes * CPU_SECONDS_PER_BYTE

    def in_flight(self, maximum: int = MOST) -> int:
        """Return the requests in flight that the CPU, or `maximum`, allows."""
        return max(1, min(maximum, round(self.seconds / self.cpu_seconds)))


HOPPING = ReadingSpeed()
READING = ReadingSpeed(page_bytes=PAGE_BYTES)


def spread(
    wishes: Wishes, segments: float, pages: float = 0.0, pace: ReadingSpeed = HOPPING
) -> Layout:
    """Return the layout that reads `pages` pages in `segments` segments."""
    per_process = pace.in_flight(wishes.most_in_flight)
    processes = wishes.processes
    if processes is None:
        seconds = pages * pace.seconds / per_process
        processes = min(wishes.most_processes, max(1, math.ceil(seconds / PROCESS_SECONDS)))
        if wishes.max_rate is not None:
            needed = math.ceil(wishes.max_rate / UNITS_PER_BLOCK * pace.latency)
            processes = min(processes, math.ceil(needed / per_process))
            per_process = min(per_process, needed)
    count = int(segments)
    return Layout(count, max(1, min(per_process * processes, count)), processes)


def layout_for_skip(
    keys: float, per_key: Forecast, wishes: Wishes, pace: ReadingSpeed = HOPPING
) -> Layout:
    """Return the layout of a skip-scan over about `keys` keys.

    A run of a few requests gets one segment: more segments would cost more than they save.
    """
    requests = keys * per_key.requests_per_key
    units = keys * per_key.units_per_key
    if wishes.segments is not None:
        return spread(wishes, wishes.segments, requests, pace)
    if requests <= SERIAL_REQUESTS:
        return _finish(1, wishes, keys / KEYS_PER_SEGMENT, requests, pace)
    segments = min(
        MOST_SEGMENTS,
        keys / KEYS_PER_SEGMENT,
        units / UNITS_PER_SEGMENT,
        max(
            _segments_in_flight(wishes, requests, HOPPING),
            keys * REQUEST_SECONDS / LONGEST_SEGMENT_SECONDS,
            min(SEGMENTS_PER_THREAD * wishes.most_in_flight, units / UNITS_PER_FURTHER_SEGMENT),
        ),
    )
    return _finish(segments, wishes, keys / KEYS_PER_SEGMENT, requests, pace)


def layout_for_scan(
    size_bytes: float | None, wishes: Wishes, pace: ReadingSpeed = READING
) -> Layout:
    """Return the layout of a full read of `size_bytes`, or of an unknown size if that is None."""
    pages = (size_bytes or 0.0) / PAGE_BYTES
    if wishes.segments is not None:
        return spread(wishes, wishes.segments, pages, pace)
    enough = _segments_in_flight(wishes, pages, READING)
    if size_bytes is None:
        return _finish(enough, wishes, MOST_SEGMENTS, pages, pace)
    segments = min(
        MOST_SEGMENTS,
        size_bytes / SCAN_BYTES_PER_SEGMENT,
        max(enough, pages * pace.seconds / LONGEST_SEGMENT_SECONDS),
    )
    return _finish(segments, wishes, size_bytes / SCAN_BYTES_PER_SEGMENT, pages, pace)


def _segments_in_flight(wishes: Wishes, pages: float, pace: ReadingSpeed) -> float:
    """Return enough segments for all threads of a function, whatever the latency here is."""
    return SEGMENTS_PER_THREAD * spread(wishes, MOST_SEGMENTS, pages, pace).threads


def _finish(
    segments: float, wishes: Wishes, most_to_verify: float, pages: float, pace: ReadingSpeed
) -> Layout:
    """Raise the number of segments to what a check needs, but not far beyond `most_to_verify`."""
    count = int(segments)
    if count < FEWEST_SEGMENTS:
        count = 1
    if wishes.verify_share is not None:
        # The check draws whole segments, so there must be enough of them to choose from.
        to_check = min(VERIFY_SEGMENTS / wishes.verify_share, most_to_verify, MOST_SEGMENTS)
        count = max(count, FEWEST_TO_VERIFY, math.ceil(to_check), wishes.least_segments)
    return spread(wishes, count, pages, pace)


def most_processes(cores: int, max_rate: float | None, max_units: float | None) -> int:
    """Return the maximum number of processes of a run on one machine.

    More processes than cores are of no use. Neither are more than the run needs to reach the
    allowed rate, or the rate of a new table, or to spend `max_units` while each process has enough
    to do.
    """
    process_rate = UNITS_PER_BLOCK / CPU_SECONDS
    needed = [(max_rate or ASSUMED_RATE) / process_rate]
    if max_units is not None:
        needed.append(max_units / (process_rate * PROCESS_SECONDS))
    return max(1, min(cores, *map(math.ceil, needed)))


def segments_to_check(size_bytes: int, max_rate: float | None) -> int:
    """Return the minimum segments of a run with a check, which reads each in one invocation."""
    segment_bytes = CHECKED_BYTES
    if max_rate is not None:
        readable = max_rate / UNITS_PER_BLOCK * BLOCK_BYTES * CHECKED_SECONDS
        segment_bytes = min(segment_bytes, readable)
    return min(MOST_SEGMENTS, math.ceil(size_bytes / segment_bytes))


def groups_of_layout(layout: Layout, one_worker: bool) -> tuple[int, int]:
    """Return the number of groups, and how many of them workers read at once."""
    if one_worker:
        return 1, 1
    at_once = min(layout.processes, layout.segments)
    groups = layout.groups or max(math.ceil(layout.segments / SEGMENTS_PER_GROUP), at_once)
    return groups, at_once


def learnt_for_each(ledger: Ledger) -> Mapping[str, Any]:
    """Return the ledger that each group begins with.

    It holds all that the first look has learnt, and at most the credit of a fresh ledger.
    """
    state = ledger.to_json()
    return {**state, "bank": min(state["bank"], FIRST_DEPOSIT)}


def workers_at_once(workers: int, max_rate: float | None, maximum: int | None) -> int:
    """Return how many of `workers` may run at once.

    Each worker's share of `max_rate` must pay within a few seconds for the largest page that a
    table can force on it, which is one item of 400 KB. A reservation or the account sets `maximum`.
    """
    if max_rate is not None:
        workers = min(workers, int(max_rate / LEAST_WORKER_RATE))
    if maximum is not None:
        workers = min(workers, maximum)
    return max(1, workers)


def most_of_account(unreserved: int) -> int:
    """Return the workers that may run at once if all functions share `unreserved` executions."""
    return max(1, int(SHARE_OF_ACCOUNT * unreserved))


def allowances(
    remaining: float,
    spent: Mapping[int, float],
    groups: Iterable[int],
    minimum: float = LEAST_SHARE,
) -> dict[int, float]:
    """Return the total of read units that each group may spend, including what it has spent.

    If there is less than `minimum` for each unfinished group, some get nothing. The result is empty
    if the remaining units do not pay for a page.
    """
    unfinished = list(groups)
    if remaining < UNITS_PER_BLOCK or not unfinished:
        return {}
    served = unfinished[: max(1, int(remaining / minimum))]
    return {group: spent.get(group, 0.0) + remaining / len(served) for group in served}


def shared_again(
    remaining: float,
    spent: Mapping[int, float],
    groups: Iterable[int],
    minimum: float,
    is_stuck: bool,
    served: int,
) -> tuple[dict[int, float], float]:
    """Share the unused read units out among the groups that need more than their share.

    Args:
        is_stuck: Whether the previous shares, of `served` groups, were too small to read anything.

    Returns:
        The allowances and the minimum share that they were made with. The allowances are empty if
        the remaining read units are too few to be useful.
    """
    minimum *= MORE_IF_STUCK if is_stuck else 1.0
    shares = allowances(remaining, spent, groups, minimum)
    return ({} if is_stuck and served == 1 else shares), minimum
