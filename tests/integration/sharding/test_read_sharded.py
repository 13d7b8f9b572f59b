"""The top k of an index over shards: as all items, sorted, begin; and what is read for it."""

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
from tests.integration.sharding.hooks import hook, is_a, once
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
"""Of 300 items: the shard from 0 on, and the score."""


@pytest.fixture
def place(dynamodb: Database, table_name: str) -> Place:
    return Place(dynamodb, table_name, **BY_SCORE)


def plain(database: Database, name: str, spread: str) -> list[int]:
    """A table of players, whose application writes board_1 to board_8; returns the scores."""
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


def of_plain(database: Database, name: str) -> ReadSharded:
    endpoint = Endpoint(url=database.url)
    return ReadSharded(name, index="by-score", shards=SHARDS, endpoint=endpoint)


def counting(best: ReadSharded) -> list[int]:
    """Items of each answer, from now on."""
    read: list[int] = []

    def act(name: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        answer = send()
        read.append(answer.get("ScannedCount", 0))
        return answer

    hook(best._source().reader, act)
    return read


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("least", [False, True])
def test_it_is_exact_and_reads_little_more(
    dynamodb: Database, table_name: str, spread: str, least: bool
) -> None:
    """However the first are spread: at most k, and a page of each shard besides."""
    scores = plain(dynamodb, table_name, spread)
    best = of_plain(dynamodb, table_name)
    read = counting(best)
    for k in (1, 2, 10, 50, 299, 300, 301):
        read.clear()
        found = best.top("level-7", k, least=least)
        assert [int(item["score"]) for item in found] == sorted(scores, reverse=not least)[:k]
        assert len({item["pk"] for item in found}) == len(found)
        share = math.ceil(k / SHARDS * SHARE_MARGIN) + 1
        assert sum(read) <= k + (SHARDS + 1) * share
    assert best.top("level-8", 10) == []
    best.close()


@pytest.mark.parametrize("settings", [{}, {"placement": "random"}], ids=str)
def test_of_a_sharded_table(place: Place, settings: dict[str, Any]) -> None:
    """Its metadata tells the shards, also when there are more of them."""
    table = place.table(policy=Policy(start_shards={"/f": 4}), **settings)
    best = ReadSharded(table, index="by-score")
    for n in range(60):
        if n == 30:
            place.grow(table, "/f", 3)
        table.put_item(Item={"path": "/f", "at": f"{n:02}", "score": n % 20})
    found = best.top("/f", 7)
    assert [(item["path"], int(item["score"])) for item in found] == [
        ("/f", score) for score in (19, 19, 19, 18, 18, 18, 17)
    ]
    assert [int(item["score"]) for item in best.top("/f", 4, least=True)] == [0, 0, 0, 1]
    assert len({item["at"] for item in best.top("/f", 100)}) == 60
    assert best.usage is table.usage


def test_an_item_that_is_moved_meanwhile_is_one_of_the_top(place: Place) -> None:
    """Both copies have the same keys, but for the shard."""
    place.register("/f", 2)
    for shard in (1, 2):
        place.put_physical(f"/f_{shard}", "a", score={"N": "5"})
    assert len(ReadSharded(place.table(), index="by-score").top("/f", 10)) == 1


def test_metadata_that_expires_meanwhile_is_read_anew(place: Place) -> None:
    table = place.table()
    table.put_item(Item={"path": "/f", "at": "a", "score": 1})
    once(table, is_a("query"), lambda: place.clock.sleep(10), answered=True)
    assert len(ReadSharded(table, index="by-score").top("/f", 10)) == 1


def test_what_cannot_be(place: Place, dynamodb: Database, table_name: str) -> None:
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
    elsewhere = index("by-score", "at", "score", score="N")
    of_other = Place(dynamodb, f"{table_name}-other", **elsewhere)
    with pytest.raises(CannotStart, match="the items of a key are together"):
        ReadSharded(of_other.table(), index="by-score").top("/f", 1)
