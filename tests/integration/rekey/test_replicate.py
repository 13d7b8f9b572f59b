"""The stream's worker on DynamoDB Local."""

from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from tests.integration.rekey.worlds import World, batches


def test_changes_of_the_source_are_replicated_to_the_destination(world: World) -> None:
    for n in range(5):
        world.put(f"s{n}", f"d{n}", data="first")
    world.put("s1", "d1", data="second")
    world.delete("s2")
    world.put("s3", "elsewhere")
    world.put("left out")
    worked = world.replicator().work(world.records())
    assert (worked.records, worked.keys, worked.left) == (9, 6, 0)
    assert world.actual == world.expected
    assert len(world.actual) == 4
    assert world.side.open_batches("forward") == []
    assert world.side.claims("forward") == []


@pytest.mark.prove
def test_batches_at_once_in_any_order_and_twice_end_as_the_source_is(world: World) -> None:
    chance = Random(7)
    for _ in range(150):
        id_ = f"s{chance.randrange(20)}"
        if chance.random() < 0.3:
            world.delete(id_)
        else:
            world.put(id_, f"d{chance.randrange(30)}", data=str(chance.random()))
    parts = list(batches(world.records(), 15)) * 2
    chance.shuffle(parts)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda part: world.replicator().work(part), parts))
    for _ in range(5):
        if world.side.claims("forward"):
            world.replicator().sweep()
    world.check()


def test_of_two_that_want_a_place_the_other_gets_it_when_the_first_leaves(world: World) -> None:
    world.put("a", "d")
    world.put("b", "d")
    world.replicator().work(world.records())
    (image,) = world.actual
    (claim,) = world.side.claims("forward")
    assert image["id"] != claim.owner["id"], "the claim is of the other item"
    world.put(image["id"]["S"], "e")
    world.replicator().work(world.records())
    assert world.actual == world.expected
    assert world.side.claims("forward") == []


def test_an_item_without_an_image_is_listed_until_it_has_one(world: World) -> None:
    world.put("s", "d")
    world.put("s", "-")
    worked = world.replicator().work(world.records())
    assert worked.unmapped == 1
    assert world.actual == []
    (unmapped,) = world.side.all_unmapped("forward")
    assert unmapped.reason == "attribute 'to' has no key in it"
    world.put("s", "e")
    world.replicator().work(world.records())
    assert world.side.all_unmapped("forward") == []
    assert world.actual == world.expected
