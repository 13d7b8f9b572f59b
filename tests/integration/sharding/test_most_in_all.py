"""The number of shards of all keys: each growth and each drain counts, even with failures."""

from itertools import count

import pytest
from botocore.exceptions import ClientError
from keyhop.errors import CannotStart
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.manage import add_shards, list_keys, proposals
from keyhop.sharding.store.metadata import MetadataChanged

from tests.integration.sharding.hooks import client_error, once
from tests.integration.sharding.single import Place

POLICY = Policy(most=8, most_in_all=3)


def counted_shards(place: Place) -> int:
    """Return the stored number of added shards of all keys."""
    return int(place.item_of().get("shards_added", {"N": "0"})["N"])


def real_shards(place: Place) -> int:
    """Return the real number of added shards of all keys."""
    return sum(key.shards.readable - 1 for key in list_keys(place.table()))


def test_a_drain_by_any_table_subtracts_its_shards(place: Place) -> None:
    table = place.table(policy=POLICY)
    place.grow(table, "/f", 2)
    place.grow(table, "/g", 1)
    with pytest.raises(CannotStart, match="maximum number of shards"):
        place.grow(table, "/h", 1)
    place.drain(place.table(), "/f", 1)
    assert counted_shards(place) == real_shards(place) == 1
    place.grow(table, "/h", 2)
    assert counted_shards(place) == real_shards(place) == 3


def test_a_table_without_a_maximum_counts_for_others(place: Place) -> None:
    """Otherwise a drain would subtract shards that were never counted."""
    table, peer = place.table(policy=POLICY), place.table()
    place.grow(peer, "/f", 1)
    assert counted_shards(place) == 0, "no table with a maximum counts yet"
    place.grow(table, "/g", 1)
    place.grow(peer, "/g", 4)
    assert counted_shards(place) == 5
    place.drain(peer, "/g", 2)
    assert counted_shards(place) == 2 - 1
    place.grow(table, "/g", 2)
    with pytest.raises(CannotStart, match="maximum number of shards"):
        place.grow(table, "/g", 1)


def test_the_shards_of_a_running_drain_count(place: Place) -> None:
    """It may be called off, and then its shards are used again."""
    table = place.table(policy=POLICY)
    place.grow(table, "/f", 3)
    place.clock.sleep(60)
    record = table.metadata.of({"S": "/f"}, fresh=True)
    table.metadata.change({"S": "/f"}, record, record.shards.shrunk(1, place.clock.time()))
    assert counted_shards(place) == real_shards(place) == 3
    place.drain(table, "/f", 1)
    assert counted_shards(place) == real_shards(place) == 0


@pytest.mark.parametrize("after", [False, True])
def test_a_failed_growth_leaves_the_count_correct(place: Place, after: bool) -> None:
    table = place.table(policy=Policy(most_in_all=100))
    client = table.requests.client

    def fail() -> None:
        raise client_error("AccessDeniedException")

    failed = 0
    for number in range(1, 5):
        place.register(f"/{number}", 1)
        table.metadata.of({"S": f"/{number}"})
        place.clock.sleep(5.0)
        numbers = count(1)
        once(table, lambda *_: next(numbers) == number, fail, after=after)  # noqa: B023
        try:
            add_shards(table, f"/{number}")
        except ClientError:
            failed += 1
        table.requests.client = client
        assert counted_shards(place) == real_shards(place)
    assert failed == 2


def test_a_lost_race_counts_nothing(place: Place) -> None:
    first, second = place.table(policy=POLICY), place.table(policy=POLICY)
    place.register("/f", 1)
    record, stale = (table.metadata.of({"S": "/f"}) for table in (first, second))
    first.metadata.grow({"S": "/f"}, record, 2)
    with pytest.raises(MetadataChanged) as caught:
        second.metadata.grow({"S": "/f"}, stale, 3)
    assert caught.value.current.shards.number == 2
    assert counted_shards(place) == real_shards(place) == 1


def test_a_recount_does_not_overwrite_a_concurrent_growth(place: Place) -> None:
    table = place.table(policy=Policy(most_in_all=100))
    place.register("/a", 3)
    list(proposals(table))
    assert counted_shards(place) == real_shards(place) == 2
    place.clock.sleep(30 * 3600)
    little = {"M": {str(int(place.clock.time() // 60) - 60): {"N": "1"}}}
    for key in "bcd":
        place.register(f"/{key}", 8, traffic=little)
    looking = proposals(table)
    next(looking)
    place.grow(place.table(policy=Policy(most_in_all=100)), "/z", 5)
    list(looking)
    assert counted_shards(place) == 2 + 5, "the recount does not overwrite the growth"
    list(proposals(table))
    assert counted_shards(place) == real_shards(place) == 2 + 5 + 21
