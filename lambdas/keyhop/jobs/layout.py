"""From what is known of a table to how it will be read, and to what that will cost. Pure.

Formulas: r = requests a second of one segment in flight; a page of 4 KB costs 0.5 read units; R =
read units a second allowed. In flight F = R / (0.5 r). Segments = min(1,000,000, keys / 50, read
units / 12.5, max(16 F, keys / (r * 120 s))): a segment's end may cost a request that finds nothing,
which is kept to a few hundredths of the run; and on a large table a segment ends within two
minutes.
"""

import math
from dataclasses import dataclass
from typing import Literal

from keyhop.dynamodb.capacity import BLOCK_BYTES, PAGE_BYTES, UNITS_PER_BLOCK
from keyhop.scan.cost_simulation import Forecast
from keyhop.scan.segments import MOST_SEGMENTS, SERIAL_REQUESTS
from keyhop.scan.statistics import Findings, Interval

Method = Literal["skip", "scan", "index"]

DEFAULT_UNITS = 50.0
"""Read units that a plan may spend."""

KEYS_PER_SEGMENT = 50
UNITS_PER_SEGMENT = 12.5

SEGMENTS_PER_THREAD = 16
"""Enough for the threads to end at about the same time."""

LONGEST_SEGMENT_SECONDS = 120.0
REQUESTS_PER_SECOND = 278.0
"""Of one segment in flight: a round trip of 3 ms, and the client's CPU."""

MOST_THREADS = 8
"""Threads that one CPU can keep busy; more gain nothing (bench/)."""

PROCESS_SECONDS = 15.0
"""A fleet gets another process of MOST_THREADS threads for as much work as this."""

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

    most_threads: segments in flight at most, if `threads` is not fixed; a fleet can have more than
    one process. least_segments: of a run that is to be checked, so that each can be read in one go.
    """

    segments: int | None = None
    threads: int | None = None
    max_rate: float | None = None
    verify_share: float | None = None
    most_threads: int = MOST_THREADS
    least_segments: int = 1


@dataclass(frozen=True, slots=True)
class Layout:
    """How a run is spread: the table's segments, and how many of them are read at once."""

    segments: int
    threads: int


def choose_threads(wishes: Wishes, segments: int, seconds_alone: float = 0.0) -> int:
    """Segments in flight: as many as the allowed rate needs, and the processes can serve.

    seconds_alone: how long one segment after the other would take.
    """
    if wishes.threads is not None:
        return min(wishes.threads, segments)
    useful = max(MOST_THREADS, math.ceil(seconds_alone / PROCESS_SECONDS))
    useful = min(useful, wishes.most_threads)
    if wishes.max_rate is not None:
        useful = min(useful, math.ceil(wishes.max_rate / (UNITS_PER_BLOCK * REQUESTS_PER_SECOND)))
    return max(1, min(useful, segments))


def layout_for_skip(keys: float, per_key: Forecast, wishes: Wishes) -> Layout:
    """Segments and threads of a skip-scan over about `keys` keys of such a cost.

    What is read in a moment is read serially: segments would cost more than they save.
    """
    requests = keys * per_key.requests_per_key
    seconds_alone = requests / REQUESTS_PER_SECOND
    if wishes.segments is not None:
        return Layout(wishes.segments, choose_threads(wishes, wishes.segments, seconds_alone))
    if requests <= SERIAL_REQUESTS:
        return _finish(1, wishes, keys / KEYS_PER_SEGMENT, seconds_alone)
    in_flight = choose_threads(wishes, MOST_SEGMENTS, seconds_alone)
    segments = min(
        MOST_SEGMENTS,
        keys / KEYS_PER_SEGMENT,
        keys * per_key.units_per_key / UNITS_PER_SEGMENT,
        max(
            SEGMENTS_PER_THREAD * in_flight,
            keys / (REQUESTS_PER_SECOND * LONGEST_SEGMENT_SECONDS),
        ),
    )
    return _finish(segments, wishes, keys / KEYS_PER_SEGMENT, seconds_alone)


def layout_for_scan(size_bytes: float | None, wishes: Wishes) -> Layout:
    """Segments and threads of a full read of `size_bytes`, None if that is not known."""
    page_seconds = 1 / REQUESTS_PER_SECOND + PAGE_BYTES * SCAN_SECONDS_PER_BYTE
    seconds_alone = (size_bytes or 0.0) / PAGE_BYTES * page_seconds
    if wishes.segments is not None:
        return Layout(wishes.segments, choose_threads(wishes, wishes.segments, seconds_alone))
    enough = SEGMENTS_PER_THREAD * choose_threads(wishes, MOST_SEGMENTS, seconds_alone)
    if size_bytes is None:
        return _finish(enough, wishes, MOST_SEGMENTS, seconds_alone)
    segments = min(
        MOST_SEGMENTS,
        size_bytes / SCAN_BYTES_PER_SEGMENT,
        max(enough, seconds_alone / LONGEST_SEGMENT_SECONDS),
    )
    return _finish(segments, wishes, size_bytes / SCAN_BYTES_PER_SEGMENT, seconds_alone)


def _finish(segments: float, wishes: Wishes, most_to_verify: float, seconds_alone: float) -> Layout:
    """most_to_verify: the check's segments should not be smaller than a table of as many has."""
    count = int(segments)
    if count < FEWEST_SEGMENTS:
        count = 1
    if wishes.verify_share is not None:
        # The check draws whole segments, so there must be enough of them to choose from.
        wanted = min(VERIFY_SEGMENTS / wishes.verify_share, most_to_verify, MOST_SEGMENTS)
        count = max(count, FEWEST_TO_VERIFY, math.ceil(wanted), wishes.least_segments)
    return Layout(count, choose_threads(wishes, count, seconds_alone))


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
