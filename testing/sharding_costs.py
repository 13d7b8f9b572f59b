"""The expected cost of a look at an item of a sharded table, computed from its placement."""

import itertools
import math
from collections.abc import Iterable

from keyhop.sharding.key.placement import Hash


def expected_candidates(counts: Iterable[int], hash_: Hash) -> float:
    """Return the mean number of shards that may have an item placed by any of these counts.

    A look at the item needs so many reads while all of the counts are remembered. For modulo the
    result is somewhat too large: a place to which an item returns is counted twice.
    """
    ordered = sorted(set(counts))
    expected = 1.0
    for before, after in itertools.pairwise(ordered):
        # Two remainders are equal for `before` of the numbers below the least common multiple.
        stays = before / (after if hash_ == "jump" else math.lcm(before, after))
        expected += 1 - stays
    return expected
