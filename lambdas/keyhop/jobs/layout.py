"""From what is known of a table to how it will be read, and to what that will cost. Pure.

How many requests are under way is found while a run reads (scan/in_flight.py). Here is what that
comes to, so that there are segments enough, and a plan tells the truth: a process's CPU sends a
request every c seconds, each takes d: so d / c are under way, F in all processes; of an allowed
rate of R read units a second, R d / 0.5 suffice, as a page of 4 KB costs 0.5. Segments =
min(1,000,000, keys / 50, read units / 25, max(9 F, keys d / 120 s, min(2,304, units / 100))): a
segment's end may cost a request that finds nothing, which is kept to a few hundredths of the run;
on a large table a segment ends within two minutes; and if requests take long, there is work for 256
at once where the ends cost no more than half a hundredth.
"""

import math
from dataclasses import dataclass
from typing import Literal

from keyhop.dynamodb.capacity import BLOCK_BYTES, PAGE_BYTES, UNITS_PER_BLOCK
from keyhop.scan.in_flight import MOST
from keyhop.scan.segments import MOST_SEGMENTS, SERIAL_REQUESTS
from keyhop.scan.statistics import Findings, Forecast, Interval

Method = Literal["skip", "scan", "index", "parts", "listed"]
"""How a run reads: by hops, all items, an index that has one row for each key; parts of a run whose
keys are mapped, or a run's keys as they were listed.
"""

DEFAULT_UNITS = 50.0
"""Read units that a plan may spend."""

KEYS_PER_SEGMENT = 50
UNITS_PER_SEGMENT = 25.0
UNITS_PER_FURTHER_SEGMENT = 100.0
"""Beyond as many as are thought to suffice."""

SEGMENTS_PER_THREAD = 9
"""Enough for the threads to end at about the same time."""

LONGEST_SEGMENT_SECONDS = 120.0
REQUESTS_PER_SECOND = 278.0
"""Of one segment in flight, in a function: a round trip of 3 ms, and the client's CPU."""

REQUEST_SECONDS = 1 / REQUESTS_PER_SECOND
CPU_SECONDS = 1 / 3_800
"""Of a process, for one request and what it brings: 264 microseconds were measured, by slices over
hops to a stub in C at 3 ms, on 2 busy cores (2026-11-22). A function of 1,769 MB has one such CPU.
"""

CPU_SECONDS_PER_BYTE = 1.2e-8
"""For all items of a page, where nothing is hopped over: 12 ms for 1 MB (docs/benchmark.md)."""

MOST_CONCURRENCY = 10_000
"""Children that a distributed map runs at once, at most (Step Functions' quota)."""

PROCESS_SECONDS = 15.0
"""A fleet gets another process for as much work of one as this."""

SCAN_BYTES_PER_SEGMENT = 4 * PAGE_BYTES
SCAN_SECONDS_PER_BYTE = 1e-7

FEWEST_SEGMENTS = 4
"""Fewer are not worth what a first look at the table has cost: the run goes on from there."""

VERIFY_SEGMENTS = 8
"""How many segments a check of the result should consist of."""

FEWEST_TO_VERIFY = 64
"""Segments of a run that is to be checked: the keys of eight at once are held in memory."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a method would cost."""

    units: Interval
    requests: float
    seconds: float
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user fixed; None leaves the choice to the plan.

    threads: of one process, at most. processes: of a fleet; most_processes: if they are not fixed.
    least_segments: of a run that is to be checked, so that each can be read in one go.
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
    """How a run is spread: the table's segments, how many of them are read at once, as far as can
    be told before, and by how many processes. groups: of a fleet, if they are given. buckets: see
    RunPlan.
    """

    segments: int
    threads: int
    processes: int = 1
    groups: int | None = None
    buckets: int = 0


@dataclass(frozen=True, slots=True)
class Pace:
    """Of one process. latency: seconds that a request takes. page_bytes: that a page reads on, if
    it does not hop.
    """

    latency: float = REQUEST_SECONDS
    page_bytes: float = 0.0

    @property
    def seconds(self) -> float:
        """That a page takes, if it is alone."""
        return self.latency + self.page_bytes * SCAN_SECONDS_PER_BYTE

    @property
    def cpu_seconds(self) -> float:
        return CPU_SECONDS + self.page_bytes * CPU_SECONDS_PER_BYTE

    def in_flight(self, most: int = MOST) -> int:
        """What its CPU, or `most`, allows."""
        return max(1, min(most, round(self.seconds / self.cpu_seconds)))


HOPPING = Pace()
READING = Pace(page_bytes=PAGE_BYTES)


def spread(wishes: Wishes, segments: float, pages: float = 0.0, pace: Pace = HOPPING) -> Layout:
    """So many segments, and what reads them: `pages` in all."""
    of_one = pace.in_flight(wishes.most_in_flight)
    processes = wishes.processes
    if processes is None:
        alone = pages * pace.seconds / of_one
        processes = min(wishes.most_processes, max(1, math.ceil(alone / PROCESS_SECONDS)))
        if wishes.max_rate is not None:
            needed = math.ceil(wishes.max_rate / UNITS_PER_BLOCK * pace.latency)
            processes = min(processes, math.ceil(needed / of_one))
            of_one = min(of_one, needed)
    count = int(segments)
    return Layout(count, max(1, min(of_one * processes, count)), processes)


def layout_for_skip(keys: float, per_key: Forecast, wishes: Wishes, pace: Pace = HOPPING) -> Layout:
    """A skip-scan over about `keys` keys of such a cost.

    What is read in a moment is read serially: segments would cost more than they save.
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
            _enough(wishes, requests, HOPPING),
            keys * REQUEST_SECONDS / LONGEST_SEGMENT_SECONDS,
            min(
                SEGMENTS_PER_THREAD * wishes.most_in_flight,
                units / UNITS_PER_FURTHER_SEGMENT,
            ),
        ),
    )
    return _finish(segments, wishes, keys / KEYS_PER_SEGMENT, requests, pace)


def layout_for_scan(size_bytes: float | None, wishes: Wishes, pace: Pace = READING) -> Layout:
    """A full read of `size_bytes`, None if that is not known."""
    pages = (size_bytes or 0.0) / PAGE_BYTES
    if wishes.segments is not None:
        return spread(wishes, wishes.segments, pages, pace)
    enough = _enough(wishes, pages, READING)
    if size_bytes is None:
        return _finish(enough, wishes, MOST_SEGMENTS, pages, pace)
    segments = min(
        MOST_SEGMENTS,
        size_bytes / SCAN_BYTES_PER_SEGMENT,
        max(enough, pages * pace.seconds / LONGEST_SEGMENT_SECONDS),
    )
    return _finish(segments, wishes, size_bytes / SCAN_BYTES_PER_SEGMENT, pages, pace)


def _enough(wishes: Wishes, pages: float, pace: Pace) -> float:
    """Segments for all that is read at once, in a function: the same wherever a plan is made."""
    return SEGMENTS_PER_THREAD * spread(wishes, MOST_SEGMENTS, pages, pace).threads


def _finish(
    segments: float, wishes: Wishes, most_to_verify: float, pages: float, pace: Pace
) -> Layout:
    """most_to_verify: the check's segments should not be smaller than a table of as many has."""
    count = int(segments)
    if count < FEWEST_SEGMENTS:
        count = 1
    if wishes.verify_share is not None:
        # The check draws whole segments, so there must be enough of them to choose from.
        wanted = min(VERIFY_SEGMENTS / wishes.verify_share, most_to_verify, MOST_SEGMENTS)
        count = max(count, FEWEST_TO_VERIFY, math.ceil(wanted), wishes.least_segments)
    return spread(wishes, count, pages, pace)


def skip_cost(findings: Findings, layout: Layout, max_rate: float | None) -> Cost:
    """What a skip-scan would cost."""
    ends = UNITS_PER_BLOCK * (layout.segments - 1)
    units = findings.keys.scaled(findings.skip.units_per_key)
    units = Interval(units.mean + ends, units.low, units.high + ends)
    requests = findings.keys.mean * findings.skip.requests_per_key + layout.segments
    return Cost(units, requests, _seconds(requests, 0, units.mean, findings, layout, max_rate))


def published_cost(findings: Findings, max_rate: float | None) -> Cost:
    """What the published way would cost: one item a request, one request at a time."""
    units = findings.keys.scaled(findings.published_units_per_key)
    requests = findings.keys.mean
    serial = Layout(1, 1)
    return Cost(units, requests, _seconds(requests, 0, units.mean, findings, serial, max_rate))


def scan_cost(findings: Findings, size_bytes: int, layout: Layout, max_rate: float | None) -> Cost:
    """What reading everything would cost, by the reported size.

    The size can be six hours old; where the sample alone proves more, the cost is "at least" that.
    """
    seen = findings.keys.low * findings.skip.units_per_key / UNITS_PER_BLOCK * BLOCK_BYTES
    at_least = size_bytes < seen
    size = max(float(size_bytes), findings.keys.mean * findings.item_bytes if at_least else 0.0)
    units = UNITS_PER_BLOCK * (size / BLOCK_BYTES + (layout.segments - 1))
    requests = size / PAGE_BYTES + layout.segments
    seconds = _seconds(requests, size, units, findings, layout, max_rate)
    return Cost(Interval(units, units, units), requests, seconds, at_least)


def index_cost(
    findings: Findings, row_bytes: float, layout: Layout, max_rate: float | None
) -> Cost:
    """What reading an index with a row for each key would cost."""
    size = findings.keys.scaled(row_bytes)
    units = size.scaled(UNITS_PER_BLOCK / BLOCK_BYTES)
    ends = UNITS_PER_BLOCK * layout.segments
    units = Interval(units.mean + ends, units.low + ends, units.high + ends)
    requests = size.mean / PAGE_BYTES + layout.segments
    seconds = _seconds(requests, size.mean, units.mean, findings, layout, max_rate)
    return Cost(units, requests, seconds)


def _seconds(
    requests: float,
    bytes_read: float,
    units: float,
    findings: Findings,
    layout: Layout,
    max_rate: float | None,
) -> float:
    busy = (requests * findings.latency + bytes_read * SCAN_SECONDS_PER_BYTE) / layout.threads
    return max(busy, units / max_rate) if max_rate else busy
