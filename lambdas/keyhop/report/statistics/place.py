"""Where in the order of hashes a partition key lies, by what a Scan refuses. Pure.

Segment s of T holds the hashes from s/T to (s+1)/T, and a Scan refuses an ExclusiveStartKey of
another segment. So each answer halves the place.
"""

from dataclasses import dataclass

BITS = 12


@dataclass(frozen=True, slots=True)
class Segment:
    """For a Scan with the key as its start: Segment and TotalSegments, and Limit 1."""

    segment: int
    total: int


class PlaceFinder:
    """Bisection of one key's place: send what `next` says, and tell `take` what came."""

    def __init__(self, bits: int = BITS) -> None:
        self._bits = bits
        self._known = 0
        self._segment = 0

    def next(self) -> Segment | None:
        """None when the place is known to `bits` bits."""
        if self._known == self._bits:
            return None
        return Segment(2 * self._segment, 2 << self._known)

    def take(self, accepted: bool) -> None:
        """Whether the Scan was answered, or refused as of another segment."""
        self._segment = 2 * self._segment + (not accepted)
        self._known += 1

    @property
    def width(self) -> float:
        """Of the part of [0, 1) in which the key is known to lie."""
        return 1 / (1 << self._known)

    @property
    def place(self) -> float:
        """The middle of that part."""
        return (self._segment + 0.5) * self.width
