"""Which shards a marker tells of."""

import random

import pytest
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.values import is_number, size_of
from keyhop.rekey.cutover.markers import Shard, keys_by_open_shard, random_key, uncovered

KEY = {"pk": {"S": "k"}}


def test_a_shard_in_which_a_key_was_seen_is_covered() -> None:
    assert uncovered([Shard("a"), Shard("b")], ["a"]) == ["b"]


def test_an_only_child_has_its_parents_keys() -> None:
    shards = [Shard("a", is_open=False), Shard("b", "a", is_open=False), Shard("c", "b")]
    assert keys_by_open_shard(shards, {"a": KEY}) == {"c": KEY}


def test_of_a_parent_that_is_trimmed_the_child_is_known_all_the_same() -> None:
    assert uncovered([Shard("b", "a")], ["a"]) == []


def test_of_two_children_nobody_knows_which_has_the_key() -> None:
    shards = [Shard("a", is_open=False), Shard("b", "a"), Shard("c", "a")]
    assert uncovered(shards, ["a"]) == ["b", "c"]
    assert uncovered(shards, ["a", "b"]) == ["c"]


def test_closed_shards_need_none() -> None:
    assert uncovered([Shard("a", is_open=False)], []) == []


def test_shards_as_the_service_tells_them() -> None:
    closed = {"ShardId": "a", "SequenceNumberRange": {"EndingSequenceNumber": "9"}}
    opened = {"ShardId": "b", "ParentShardId": "a", "SequenceNumberRange": {}}
    assert Shard.of(closed) == Shard("a", is_open=False)
    assert Shard.of(opened) == Shard("b", "a")


@pytest.mark.parametrize("type_", ["S", "N", "B"])
def test_keys_of_any_type_are_such_as_the_service_takes(type_) -> None:
    space = KeySpace((KeyAttribute("pk", type_),), KeyAttribute("sk", type_))
    chance = random.Random(1)
    keys = [random_key(space, chance) for _ in range(50)]
    assert len({str(key) for key in keys}) == 50
    assert all(size_of(key) < 200 for key in keys)
    if type_ == "N":
        assert all(is_number(key["pk"]["N"]) for key in keys)


def test_a_key_beside_one_that_was_seen() -> None:
    space = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "S"))
    found = random_key(space, random.Random(1), KEY)
    assert found["pk"] == KEY["pk"]
    assert set(found) == {"pk", "sk"}
