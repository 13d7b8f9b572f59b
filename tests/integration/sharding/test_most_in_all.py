"""The shards of all keys together: counted with each growth and each drain, whatever fails."""

from itertools import count

import pytest
from botocore.exceptions import ClientError
from keyhop.errors import CannotStart
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.manage import add_shards, list_keys, proposals
from keyhop.sharding.store.metadata import MetadataChanged

from tests.integration.sharding.hooks import once, refused
from tests.integration.sharding.single import Place

POLICY = Policy(most=8, most_in_all=3)


def counted(place: Place) -> int:
    """What the metadata says of all keys."""
    return int(place.item_of().get("shards_added", {"N": "0"})["N"])


def true(place: Place) -> int:
    """What there is."""
    return sum(one.shards.readable - 1 for one in list_keys(place.table()))


def test_a_drain_gives_its_shards_back_whoever_drains(place: Place) -> None:
    table = place.table(policy=POLICY)
    place.grow(table, "/f", 2)
    place.grow(table, "/g", 1)
    with pytest.raises(CannotStart, match="maximum number of shards"):
        place.grow(table, "/h", 1)
    place.drain(place.table(), "/f", 1)
    assert counted(place) == true(place) == 1
    place.grow(table, "/h", 2)
    assert counted(place) == true(place) == 3


def test_who_has_no_maximum_counts_for_those_who_have(place: Place) -> None:
    """Or a drain would give back what was never counted."""
    table, other = place.table(policy=POLICY), place.table()
    place.grow(other, "/f", 1)
    assert counted(place) == 0, "nobody counts yet"
    place.grow(table, "/g", 1)
    place.grow(other, "/g", 4)
    assert counted(place) == 5
    place.drain(other, "/g", 2)
    assert counted(place) == 2 - 1
    place.grow(table, "/g", 2)
    with pytest.raises(CannotStart, match="maximum number of shards"):
        place.grow(table, "/g", 1)


def test_a_drain_under_way_has_its_shards_still(place: Place) -> None:
    """It may be called off, and then they are used again."""
    table = place.table(policy=POLICY)
    place.grow(table, "/f", 3)
    place.clock.sleep(60)
    known = table.metadata.of({"S": "/f"}, fresh=True)
    table.metadata.change({"S": "/f"}, known, known.shards.shrunk(1, place.clock.time()))
    assert counted(place) == true(place) == 3
    place.drain(table, "/f", 1)
    assert counted(place) == true(place) == 0


@pytest.mark.parametrize("after", [False, True])
def test_a_growth_that_fails_anywhere_leaks_nothing(place: Place, after: bool) -> None:
    table = place.table(policy=Policy(most_in_all=100))
    client = table.requests.client

    def fail() -> None:
        raise refused("AccessDeniedException")

    failed = 0
    for number in range(1, 5):
        place.register(f"/{number}", 1)
        table.metadata.of({"S": f"/{number}"})
        place.clock.sleep(5.0)
        numbers = count(1)
        once(table, lambda *_: next(numbers) == number, fail, answered=after)  # noqa: B023
        try:
            add_shards(table, f"/{number}")
        except ClientError:
            failed += 1
        table.requests.client = client
        assert counted(place) == true(place)
    assert failed == 2


def test_who_loses_a_race_counts_nothing(place: Place) -> None:
    first, second = place.table(policy=POLICY), place.table(policy=POLICY)
    place.register("/f", 1)
    known, seen = (one.metadata.of({"S": "/f"}) for one in (first, second))
    first.metadata.grow({"S": "/f"}, known, 2)
    with pytest.raises(MetadataChanged) as lost:
        second.metadata.grow({"S": "/f"}, seen, 3)
    assert lost.value.current.shards.number == 2
    assert counted(place) == true(place) == 1


def test_a_recount_is_given_up_if_anybody_has_grown_meanwhile(place: Place) -> None:
    table = place.table(policy=Policy(most_in_all=100))
    place.register("/a", 3)
    list(proposals(table))
    assert counted(place) == true(place) == 2
    place.clock.sleep(30 * 3600)
    little = {"M": {str(int(place.clock.time() // 60) - 60): {"N": "1"}}}
    for key in "bcd":
        place.register(f"/{key}", 8, traffic=little)
    looking = proposals(table)
    next(looking)
    place.grow(place.table(policy=Policy(most_in_all=100)), "/z", 5)
    list(looking)
    assert counted(place) == 2 + 5, "what was counted before the growth is not written over it"
    list(proposals(table))
    assert counted(place) == true(place) == 2 + 5 + 21
