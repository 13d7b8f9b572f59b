"""Relief of a hot key, in the benchmark's model: virtual time, 100 write units a second and shard.

What is wanted in sixty seconds is the measure; a burst that is absorbed for good need not be
simulated to its end.
"""

from dataclasses import replace
from itertools import pairwise

import pytest

from bench.sharding_burst import CALCULATED, LOG, WRITERS, Outcome, Way, burst

NEEDED = 5
SECONDS = 20
COOLDOWN = 5


def lost_of_a_minute(outcome: Outcome) -> float:
    """The share of what is wanted within sixty seconds that was not written, by the end of it."""
    wanted = outcome.way.rate * outcome.way.seconds
    return (wanted - outcome.written) / (outcome.way.rate * 60)


@pytest.mark.prove
@pytest.mark.parametrize(
    ("settings", "processes", "lost"),
    [
        (CALCULATED, WRITERS, 0.11),
        (LOG, WRITERS, 0.06),
        (CALCULATED, 1, 0.10),
        (LOG, 1, 0.05),
        (CALCULATED, 4, 0.10),
    ],
    ids=str,
)
def test_five_times_a_partition_is_absorbed_in_ten_seconds(
    settings: dict[str, object], processes: int, lost: float
) -> None:
    outcome = burst(Way("", settings=settings, processes=processes, seconds=SECONDS))
    assert outcome.absorbed is not None
    assert outcome.absorbed <= 10
    assert lost_of_a_minute(outcome) < lost
    counts = [count for _, count in outcome.shards]
    assert NEEDED <= counts[-1] <= NEEDED + 2, outcome.shards
    # A new key may grow at once.
    assert all(then - at >= COOLDOWN for (at, _), (then, _) in pairwise(outcome.shards[1:]))
    assert outcome.read == sorted(outcome.acknowledged)
    assert outcome.given_up == 0
    assert outcome.reports < 200, "a few from each process until it grows"


@pytest.mark.parametrize(
    ("settings", "processes", "seconds"),
    [
        pytest.param(CALCULATED, WRITERS, 26, id="calculated-many", marks=pytest.mark.prove),
        pytest.param(LOG, 1, 20, id="log-1", marks=pytest.mark.prove),
        pytest.param(CALCULATED, 1, 20, id="calculated-1", marks=pytest.mark.prove_long),
        pytest.param(LOG, WRITERS, 20, id="log-many", marks=pytest.mark.prove_long),
    ],
)
def test_twenty_times_a_partition_is_absorbed_in_seconds(
    settings: dict[str, object], processes: int, seconds: int
) -> None:
    """Processes that wait between attempts report nothing, so the second step is a bit small."""
    outcome = burst(Way("", settings=settings, times=20, processes=processes, seconds=30))
    assert outcome.absorbed is not None
    assert outcome.absorbed <= seconds
    assert outcome.longest_wait < 6
    assert outcome.shards[-1][1] <= 22, outcome.shards


MANY = Way("", settings=CALCULATED, times=0.8, writers=1_200, processes=1_200, seconds=60, saved=10)
"""Writers of 0.07 a second each, who begin in the same half second: a spike, and no more."""


@pytest.mark.prove
def test_many_slow_writers_set_off_no_growth_by_a_spike() -> None:
    outcome = burst(MANY)
    assert outcome.throttles > 100
    assert [count for _, count in outcome.shards] == [1]
    assert outcome.reports < 200


@pytest.mark.prove
def test_many_slow_writers_set_off_growth_by_throttling_that_lasts() -> None:
    outcome = burst(replace(MANY, times=1.2))
    assert outcome.shards[-1][1] in (2, 3), outcome.shards
