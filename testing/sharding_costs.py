"""What looks cost in a sharded table, by the arithmetic of its placement."""

import itertools
import math
from collections.abc import Iterable

from keyhop.sharding.key.placement import Hash


def expected_candidates(counts: Iterable[int], hash_: Hash) -> float:
    """In how many shards an item may be on average, that was placed by any of these counts.

    So many reads a look at the item costs while all of the counts are remembered. For modulo it is
    somewhat more than the truth: a place that an item comes back to is counted twice.
    """
    ordered = sorted(set(counts))
    expected = 1.0
    for before, after in itertools.pairwise(ordered):
        # Two remainders are alike for `before` of the numbers below the least common multiple.
        stays = before / (after if hash_ == "jump" else math.lcm(before, after))
        expected += 1 - stays
    return expected
