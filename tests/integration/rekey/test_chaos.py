"""Chaos: nothing acknowledged is lost, no strong read is stale, at rest nothing differs."""

import statistics

import pytest

from testing.databases import Database
from testing.key_index_tables import scanned
from testing.marks import prove, prove_long
from tests.integration.rekey.chaos import Chaos


@pytest.mark.parametrize(
    ("seed", "keys", "operations", "changes"),
    [
        (1, 200, 600, 2),
        prove(2, 1_000, 4_000, 6),
        *(prove_long(seed, 20_000, 50_000, 60) for seed in range(10, 30)),
    ],
)
def test_nothing_is_lost(
    dynamodb: Database, table_name: str, seed: int, keys: int, operations: int, changes: int
) -> None:
    chaos = Chaos(dynamodb, table_name, seed, keys, operations)
    chaos.run(changes)
    world = chaos.world
    print(dict(chaos.counts))
    waited = [pause for pause in chaos.pauses if pause > 1]
    print(f"{len(waited)} writes waited, {max(chaos.pauses, default=0):.1f} s at most")
    if waited:
        print(f"median {statistics.median(waited):.1f} s")
    assert chaos.wrong == []
    control = world.side.control()
    assert (control.serving, control.stage) == ("source", "open")
    assert world.side.open_batches("forward") == []
    here = {item["id"]["S"]: item for item in scanned(dynamodb, world.pair.source)}
    lost = {
        key: (here.get(key), may) for key, may in chaos.known.items() if here.get(key) not in may
    }
    assert lost == {}
    for _ in range(5):
        world.replicator().sweep()
    assert world.side.claims("forward") == []
    there = {item["pk"]["S"]: item for item in scanned(dynamodb, world.pair.destination)}
    wanted = {item["to"]["S"]: world.transform.forward(item) for item in here.values()}
    differ = {
        place for place in wanted.keys() | there.keys() if wanted.get(place) != there.get(place)
    }
    assert differ == set()
    assert chaos.counts["operations"] == operations
