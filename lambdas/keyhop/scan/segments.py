"""The segments of a table: how many there can be, and in which order they are worked. Pure."""

import math
from collections.abc import Iterator
from functools import lru_cache

MOST_SEGMENTS = 1_000_000

SERIAL_REQUESTS = 100
"""A run of fewer requests than this is read as one segment."""

FEW_PAGES = 12
"""The rest of a small table is read serially if it can be at most this number of pages."""


def segment_at(place: int, segments: int) -> int:
    """Return the segment at `place` of the strided order (0 <= place < segments).

    Each segment comes once, and segments that are worked at the same time lie far apart: neighbours
    in hash space often share a partition of the service, which serves 3,000 read units a second.
    The stride is the one next to the golden section of `segments` that shares no divisor with it.
    """
    return place * _stride(segments) % segments


@lru_cache(maxsize=1)
def _stride(segments: int) -> int:
    stride = max(1, round(segments * 0.6180339887498949))
    while math.gcd(stride, segments) != 1:
        stride += 1
    return stride


def place_of(segment: int, segments: int) -> int:
    """Return the place of a segment; the inverse of `segment_at`."""
    return segment * pow(_stride(segments), -1, segments) % segments


def group_of(segment: int, segments: int, groups: int) -> int:
    """Return the group that holds a segment."""
    return place_of(segment, segments) % groups


def group_order(group: int, groups: int, segments: int, skipped: int = 0) -> Iterator[int]:
    """Return the segments of one of `groups`, in strided order, without the first `skipped`."""
    places = range(group, segments, groups)[skipped:]
    return (segment_at(place, segments) for place in places)


def is_nearly_done(item_count: int, items_read: int, keys_per_page: float) -> bool:
    """Return whether the rest of a table fits into a few pages, by its reported item count."""
    remaining = item_count - items_read
    return item_count > 0 and 0 <= remaining <= max(SERIAL_REQUESTS, FEW_PAGES * keys_per_page)
