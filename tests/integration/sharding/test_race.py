"""Concurrent additions of shards to one key: one wins, and the others adopt its change."""

import multiprocessing
from collections.abc import Callable
from itertools import pairwise

import pytest
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.key.shards import Phase, Shards, to_item

from testing.databases import Database
from testing.virtual_time import EPOCH
from tests.integration.sharding.racer import BARRIER_SECONDS, Outcome, race
from tests.integration.sharding.tables import KEY, Setup, sharded

PROCESSES = 20
ROUNDS = 3
THREADS = 20


@pytest.mark.prove
def test_of_twenty_processes_one_adds_a_shard(dynamodb: Database, table_name: str) -> None:
    with sharded(dynamodb, table_name) as setup:
        placement = setup.table().metadata.agreed
        shards = Shards.registered(EPOCH - 1000, 2.0, placement)
        item = {"path": {"S": KEY}, **to_item(shards)}
        dynamodb.client.put_item(TableName=setup.metadata, Item=item)
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["tests.integration.sharding.racer"])
        barrier, results = context.Barrier(PROCESSES), context.Queue()
        arguments = (dynamodb.url, table_name, KEY, ROUNDS, EPOCH, barrier, results)
        processes = [
            context.Process(target=race, args=arguments, daemon=True) for _ in range(PROCESSES)
        ]
        for process in processes:
            process.start()
        outcomes_by_process = [results.get(timeout=BARRIER_SECONDS) for _ in processes]
        for process in processes:
            process.join()
        assert not [text for text in outcomes_by_process if isinstance(text, str)], (
            outcomes_by_process
        )
        for number in range(ROUNDS):
            outcomes: list[Outcome] = [rounds[number] for rounds in outcomes_by_process]
            assert sum(outcome.won for outcome in outcomes) == 1
            assert {outcome.number for outcome in outcomes} == {number + 2}
            assert sum(outcome.lost for outcome in outcomes) == PROCESSES - 1
            assert all(outcome.reads_after == 0 for outcome in outcomes)
            assert all(outcome.refused_in_the_cooldown for outcome in outcomes)
        after = setup.shards()
        assert (after.number, after.phase) == (ROUNDS + 1, Phase.STEADY)
        assert [count for _, count in after.history] == [*range(1, ROUNDS + 2)]


def hot_writer(setup: Setup, number: int, ends: float) -> Callable[[], None]:
    policy = Policy(threshold=2, cooldown=4.0, spread=0.0, most_added=1)
    table = setup.table(
        placement="random",
        append_only=True,
        policy=policy,
        settle_seconds=2.0,
        patience=1000,
    )

    def write() -> None:
        item = 0
        while setup.clock.time() < ends:
            table.put_item(Item={"path": KEY, "at": f"{number:02}-{item:04}"})
            item += 1
            setup.clock.sleep(0.5)

    return write


@pytest.mark.prove
@pytest.mark.parametrize("seed", [1, 2])
def test_threads_add_one_shard_in_each_cooldown(
    dynamodb: Database, table_name: str, seed: int
) -> None:
    limits = {"rate": 2.0, "burst": 2.0, "seed": seed}
    with sharded(dynamodb, table_name, together=True, **limits) as setup:
        ends = setup.clock.time() + 20
        setup.clock.run([hot_writer(setup, number, ends) for number in range(THREADS)])
        history = setup.shards().history
        assert [count for _, count in history] == [*range(1, len(history) + 1)]
        assert len(history) >= 4
        assert all(later - at >= 4 for (at, _), (later, _) in pairwise(history[1:])), history
        tally = setup.tally()
        assert tally["shards_added"] == len(history) - 1  # each has exactly one winner
        assert tally["races_lost"] > 0
        setup.clock.sleep(2.0)  # settle_seconds: then no table uses older metadata
        (version,) = {table.metadata.of({"S": KEY}).version for table in setup.tables}
        assert int(version) == setup.shards().last_updated
