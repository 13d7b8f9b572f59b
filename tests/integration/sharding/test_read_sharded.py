"""The first k items of an index over shards, and the number of items that are read for them."""

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.errors import CannotStart
from keyhop.sharding.io.merge import SHARE_MARGIN
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.read_sharded import ReadSharded

from testing.databases import Database
from tests.integration.sharding.hooks import hook, is_operation, once
from tests.integration.sharding.single import Place, index

SHARDS = 8
BY_SCORE = index("by-score", "path", "score", score="N")
SPREADS: dict[str, Callable[[int], tuple[int, int]]] = {
    "evenly": lambda n: (n % SHARDS, n),
    "all of the first in one shard": lambda n: (3 if n >= 250 else n % SHARDS, n),
    "in one shard only": lambda n: (5, n),
    "many are equal": lambda n: (n % SHARDS, n // 60),
    "all are equal": lambda n: (n % SHARDS, 7),
}
"""The shard, counted from 0, and the score of each of 300 items."""


@pytest.fixture
def place(dynamodb: Database, table_name: str) -> Place:
    return Place(dynamodb, table_name, **BY_SCORE)


def create_scores(database: Database, name: str, spread: str) -> list[int]:
    """Create a table of players whose application writes board_1 to board_8. Return the scores."""
    database.create(name, sort=None, **index("by-score", "board", "score", board="S", score="N"))
    items, scores = [], []
    for n in random.Random(4).sample(range(300), 300):
        shard, score = SPREADS[spread](n)
        scores.append(score)
        items.append(
            {
                "pk": {"S": f"player {n}"},
                "board": {"S": f"level-7_{shard + 1}"},
                "score": {"N": str(score)},
            }
        )
    database.fill(name, items)
    return scores


def read_sharded(database: Database, name: str) -> ReadSharded:
    endpoint = Endpoint(url=database.url)
    return ReadSharded(name, index="by-score", shards=SHARDS, endpoint=endpoint)


def count_reads(best: ReadSharded) -> list[int]:
    """Return a list that gets the number of read items of each later response."""
    counts: list[int] = []

    def act(name: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        response = send()
        counts.append(response.get("ScannedCount", 0))
        return response

    hook(best._source().reader, act)
    return counts


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("lowest", [False, True])
def test_the_top_is_exact_and_reads_few_more_items(
    dynamodb: Database, table_name: str, spread: str, lowest: bool
) -> None:
    """It reads at most k items and one more page of each shard, with every distribution."""
    scores = create_scores(dynamodb, table_name, spread)
    best = read_sharded(dynamodb, table_name)
    counts = count_reads(best)
    for k in (1, 2, 10, 50, 299, 300, 301):
        counts.clear()
        items = best.top("level-7", k, least=lowest)
        assert [int(item["score"]) for item in items] == sorted(scores, reverse=not lowest)[:k]
        assert len({item["pk"] for item in items}) == len(items)
        share = math.ceil(k / SHARDS * SHARE_MARGIN) + 1
        assert sum(counts) <= k + (SHARDS + 1) * share
    assert best.top("level-8", 10) == []
    best.close()


@pytest.mark.parametrize("settings", [{}, {"placement": "random"}], ids=str)
def test_the_top_of_a_sharded_table(place: Place, settings: dict[str, Any]) -> None:
    """The shards are those of its metadata, also after a growth."""
    table = place.table(policy=Policy(start_shards={"/f": 4}), **settings)
    best = ReadSharded(table, index="by-score")
    for n in range(60):
        if n == 30:
            place.grow(table, "/f", 3)
        table.put_item(Item={"path": "/f", "at": f"{n:02}", "score": n % 20})
    items = best.top("/f", 7)
    assert [(item["path"], int(item["score"])) for item in items] == [
        ("/f", score) for score in (19, 19, 19, 18, 18, 18, 17)
    ]
    assert [int(item["score"]) for item in best.top("/f", 4, least=True)] == [0, 0, 0, 1]
    assert len({item["at"] for item in best.top("/f", 100)}) == 60
    assert best.usage is table.usage


def test_an_item_in_two_shards_is_returned_once(place: Place) -> None:
    """Both copies have the same keys except for the shard."""
    place.register("/f", 2)
    for shard in (1, 2):
        place.put_physical(f"/f_{shard}", "a", score={"N": "5"})
    assert len(ReadSharded(place.table(), index="by-score").top("/f", 10)) == 1


def test_metadata_that_expires_during_a_query_is_read_again(place: Place) -> None:
    table = place.table()
    table.put_item(Item={"path": "/f", "at": "a", "score": 1})
    once(table, is_operation("query"), lambda: place.clock.sleep(10), after=True)
    assert len(ReadSharded(table, index="by-score").top("/f", 10)) == 1


def test_invalid_arguments_are_refused(place: Place, dynamodb: Database, table_name: str) -> None:
    endpoint = Endpoint(url=dynamodb.url)
    with pytest.raises(CannotStart, match="shards must be given"):
        ReadSharded(table_name, index="by-score")
    with pytest.raises(CannotStart, match="shards must be given"):
        ReadSharded(place.table(), index="by-score", shards=3)
    with pytest.raises(CannotStart, match="1 to 1000"):
        ReadSharded(table_name, index="by-score", shards=1001)
    best = ReadSharded(place.table(), index="by-score")
    with pytest.raises(CannotStart, match="k is 0"):
        best.top("/f", 0)
    with pytest.raises(CannotStart, match="no index 'x'"):
        ReadSharded(table_name, index="x", shards=3, endpoint=endpoint).top("/f", 1)
    other_keys = index("by-score", "at", "score", score="N")
    of_other = Place(dynamodb, f"{table_name}-other", **other_keys)
    with pytest.raises(CannotStart, match="the items of a key are together"):
        ReadSharded(of_other.table(), index="by-score").top("/f", 1)
