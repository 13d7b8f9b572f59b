"""What the processes that write a throttled key tell each other of it."""

from keyhop.sharding.key.policy import Sums

from testing.databases import Database
from tests.integration.sharding.single import Place

KEY = {"S": "/f"}
SEEN = Sums(1.5, 3.0, 2.0, 0.25)
TWICE = Sums(3.0, 6.0, 4.0, 0.5)


def test_what_was_seen_adds_up_until_the_metadata_changes_or_it_is_old(
    dynamodb: Database, table_name: str
) -> None:
    place = Place(dynamodb, table_name)
    one, other = place.table(), place.table()
    known = one.metadata.of(KEY, register=True)
    told = [table.writer.throttle_tracker.pressure for table in (one, other)]
    assert [each.add(KEY, known.version, SEEN) for each in told] == [SEEN, TWICE]
    place.clock.sleep(11)
    assert told[0].add(KEY, known.version, SEEN) == SEEN
    grown = one.metadata.grow(KEY, one.metadata.of(KEY), 2)
    assert grown is not None
    assert told[1].add(KEY, known.version, SEEN) is None, "that has changed"
    assert told[1].add(KEY, grown.version, SEEN) == SEEN
    assert place.shards("/f").number == 2
