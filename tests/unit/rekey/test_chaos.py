"""The chaos test: no acknowledged write is lost, no strong read is stale, the tables end equal."""

import random
import statistics

import pytest

from testing.marks import prove, prove_long
from tests.unit.rekey.chaos import Chaos
from tests.unit.rekey.chaos_world import ChaosWorld


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize(
    ("seed", "keys", "operations", "changes"),
    [
        (1, 300, 600, 2),
        prove(1, 1_000, 2_000, 3),
        prove(2, 6_000, 8_000, 12),
        *(prove_long(seed, 20_000, 50_000, 60) for seed in range(10, 30)),
    ],
)
def test_nothing_is_lost(seed: int, keys: int, operations: int, changes: int) -> None:
    random.seed(seed)  # it decides the waits between attempts
    chaos = Chaos(ChaosWorld(random.Random(seed)), keys, operations, changes, copies=True)
    chaos.run()
    print(dict(chaos.counts), f"{chaos.world.monotonic():.0f} s")
    waited = [pause for pause in chaos.pauses if pause > 1]
    print(f"{len(waited)} writes waited, {max(chaos.pauses, default=0):.1f} s at most")
    if waited:
        print(f"median {statistics.median(waited):.1f} s")
    assert chaos.wrong == []
    control = chaos.world.side().control()
    assert (control.serving, control.stage) == ("source", "open")
    assert chaos.lost_items() == {}
    chaos.sweep_at_rest()
    assert chaos.world.side().open_batches("forward") == []
    assert chaos.world.side().claims("forward") == []
    assert chaos.different_places() == set()
    assert chaos.counts["operations"] == operations
    assert chaos.counts["changes: done"] >= 2
    assert chaos.counts["changes: AwsRefused"] == 0, "a throttled request is sent again"
    assert chaos.counts["copied"] > 0
    assert chaos.counts["verify: left"] == 0
