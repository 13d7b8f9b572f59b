"""The stream's worker on DynamoDB Local, record by record."""

from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from tests.integration.rekey.worlds import World, batches


def test_what_changes_in_the_source_changes_in_the_destination(world: World) -> None:
    for n in range(5):
        world.put(f"s{n}", f"d{n}", data="first")
    world.put("s1", "d1", data="second")
    world.delete("s2")
    world.put("s3", "elsewhere")
    world.put("left out")
    worked = world.replicator().work(world.records())
    assert (worked.records, worked.keys, worked.left) == (9, 6, 0)
    assert world.there == world.here
    assert len(world.there) == 4
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
    left = 5
    while world.side.claims("forward") and left:
        world.replicator().sweep()
        left -= 1
    world.check()


def test_of_two_that_want_a_place_the_other_gets_it_when_the_first_leaves(world: World) -> None:
    world.put("a", "d")
    world.put("b", "d")
    world.replicator().work(world.records())
    (there,) = world.there
    (claim,) = world.side.claims("forward")
    assert there["id"] != claim.owner["id"], "who has not got it has a claim"
    world.put(there["id"]["S"], "e")
    world.replicator().work(world.records())
    assert world.there == world.here
    assert world.side.claims("forward") == []


def test_an_item_without_a_form_there_is_listed_until_it_has_one(world: World) -> None:
    world.put("s", "d")
    world.put("s", "-")
    worked = world.replicator().work(world.records())
    assert worked.unmapped == 1
    assert world.there == []
    (one,) = world.side.all_unmapped("forward")
    assert one.reason == "attribute 'to' has no key in it"
    world.put("s", "e")
    world.replicator().work(world.records())
    assert world.side.all_unmapped("forward") == []
    assert world.there == world.here
