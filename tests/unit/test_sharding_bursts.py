"""Check the relief of a hot key in the benchmark's model, in virtual time.

A shard has 100 write units a second. The measure is the demand of sixty seconds, because a burst
that is absorbed permanently need not be simulated to its end.
"""

from dataclasses import replace
from itertools import pairwise

import pytest

from bench.sharding_burst import CALCULATED, LOG, WRITERS, Outcome, Way, burst

NEEDED = 5
SECONDS = 20
COOLDOWN = 5


def lost_of_a_minute(outcome: Outcome) -> float:
    """Return the share of a minute's demand that was not written by the end of the run."""
    demand = outcome.way.rate * outcome.way.seconds
    return (demand - outcome.written) / (outcome.way.rate * 60)


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
    assert all(later - at >= COOLDOWN for (at, _), (later, _) in pairwise(outcome.shards[1:]))
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
    """Processes that wait between attempts report nothing, so the second step is too small."""
    outcome = burst(Way("", settings=settings, times=20, processes=processes, seconds=30))
    assert outcome.absorbed is not None
    assert outcome.absorbed <= seconds
    assert outcome.longest_wait < 6
    assert outcome.shards[-1][1] <= 22, outcome.shards


MANY = Way("", settings=CALCULATED, times=0.8, writers=1_200, processes=1_200, seconds=60, saved=10)
"""Writers with 0.07 writes a second each that begin in the same half second, which is a spike."""


@pytest.mark.prove
def test_a_spike_of_many_slow_writers_causes_no_growth() -> None:
    outcome = burst(MANY)
    assert outcome.throttles > 100
    assert [count for _, count in outcome.shards] == [1]
    assert outcome.reports < 200


@pytest.mark.prove
def test_lasting_throttling_of_many_slow_writers_causes_growth() -> None:
    outcome = burst(replace(MANY, times=1.2))
    assert outcome.shards[-1][1] in (2, 3), outcome.shards
