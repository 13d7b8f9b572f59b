"""The shards that a marker covers."""

import random

import pytest
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.values import is_number, size_of
from keyhop.rekey.cutover.markers import Shard, keys_by_open_shard, random_key, uncovered

KEY = {"pk": {"S": "k"}}


def test_a_shard_with_a_known_key_is_covered() -> None:
    assert uncovered([Shard("a"), Shard("b")], ["a"]) == ["b"]


def test_an_only_child_has_its_parents_keys() -> None:
    shards = [Shard("a", is_open=False), Shard("b", "a", is_open=False), Shard("c", "b")]
    assert keys_by_open_shard(shards, {"a": KEY}) == {"c": KEY}


def test_the_child_of_a_trimmed_parent_is_covered_too() -> None:
    assert uncovered([Shard("b", "a")], ["a"]) == []


def test_two_children_are_not_covered_by_the_key_of_their_parent() -> None:
    shards = [Shard("a", is_open=False), Shard("b", "a"), Shard("c", "a")]
    assert uncovered(shards, ["a"]) == ["b", "c"]
    assert uncovered(shards, ["a", "b"]) == ["c"]


def test_closed_shards_need_no_key() -> None:
    assert uncovered([Shard("a", is_open=False)], []) == []


def test_shards_are_read_from_the_services_response() -> None:
    closed = {"ShardId": "a", "SequenceNumberRange": {"EndingSequenceNumber": "9"}}
    opened = {"ShardId": "b", "ParentShardId": "a", "SequenceNumberRange": {}}
    assert Shard.of(closed) == Shard("a", is_open=False)
    assert Shard.of(opened) == Shard("b", "a")


@pytest.mark.parametrize("type_", ["S", "N", "B"])
def test_random_keys_of_each_type_are_valid(type_) -> None:
    space = KeySpace((KeyAttribute("pk", type_),), KeyAttribute("sk", type_))
    chance = random.Random(1)
    keys = [random_key(space, chance) for _ in range(50)]
    assert len({str(key) for key in keys}) == 50
    assert all(size_of(key) < 200 for key in keys)
    if type_ == "N":
        assert all(is_number(key["pk"]["N"]) for key in keys)


def test_a_random_key_keeps_the_partition_key_of_a_known_one() -> None:
    space = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "S"))
    key = random_key(space, random.Random(1), KEY)
    assert key["pk"] == KEY["pk"]
    assert set(key) == {"pk", "sk"}
