"""What writers report of their traffic: by it, and by nothing else, a key loses shards."""

from botocore.exceptions import EndpointConnectionError
from keyhop.sharding.key.policy import Sums
from keyhop.sharding.manage import KeyShards, list_keys, proposals
from keyhop.sharding.store.traffic import outdated
from keyhop.sharding.table import ShardedTable

from tests.integration.sharding.hooks import is_a, once
from tests.integration.sharding.single import BEGIN, Place

DAY = 24 * 3600.0
MINUTE = int(BEGIN // 60)


def log_of(place: Place) -> ShardedTable:
    return place.table(placement="random", append_only=True)


def put(table: ShardedTable, count: int, key: str = "/f", size: int = 1) -> None:
    items = [{"path": key, "at": f"{n}", "what": "x" * size} for n in range(count)]
    assert table.batch_write(items).written == count


def reported(place: Place, key: str = "/f") -> float:
    (one,) = (one for one in list_keys(place.table()) if one.key == key)
    return sum(one.traffic.values())


def proposed(place: Place) -> list[KeyShards]:
    return list(proposals(place.table()))


def test_what_is_written_is_reported_where_a_process_pauses(place: Place) -> None:
    """As at the end of an invocation: it may be the process's last moment."""
    place.register("/f", 8)
    for _ in range(3):
        table = log_of(place)
        put(table, 20)
        table.pause()
    assert reported(place) == 60


def test_a_report_at_each_pause_would_cost_as_much_as_the_writes(place: Place) -> None:
    place.register("/f", 8)
    table = log_of(place)
    for _ in range(200):
        put(table, 1)
        table.pause()
    units = table.usage.write_units
    assert 200 + 200 / 25 <= units <= 200 + 10
    assert reported(place) > 200 - 25
    place.clock.sleep(10)
    table.pause()
    assert reported(place) == 200


def test_what_is_written_is_reported_on_the_way(place: Place) -> None:
    place.register("/f", 8)
    table = log_of(place)
    put(table, 1_990)
    assert reported(place) == 1_000
    place.clock.sleep(60)
    put(table, 1)
    assert reported(place) == 1_991
    place.register("/g", 2)
    put(table, 10, "/g")
    table.close()
    assert reported(place, "/g") == 10


def test_a_batch_of_large_items_is_more_traffic(place: Place) -> None:
    place.register("/f", 4)
    table = log_of(place)
    put(table, 25, size=5_000)
    table.close()
    assert reported(place) == 125


def test_a_report_that_fails_is_made_later(place: Place) -> None:
    place.register("/f", 8)
    table = log_of(place)
    put(table, 25)

    def fail() -> None:
        raise EndpointConnectionError(endpoint_url="http://nowhere")

    failed = once(table, is_a("update_item"), fail)
    table.pause()
    assert failed
    assert reported(place) == 0
    put(table, 25)
    table.pause()
    assert reported(place) == 50


def test_no_report_is_unknown_and_unknown_drains_nothing(place: Place) -> None:
    place.register("/f", 8)
    place.clock.sleep(2 * DAY)
    assert proposed(place) == []
    table = log_of(place)
    put(table, 25)
    table.pause()
    (one,) = proposed(place)
    assert one.would_do == 1
    place.clock.sleep(1.1 * DAY)
    assert proposed(place) == []


def test_a_busy_minute_of_the_day_keeps_its_shards(place: Place) -> None:
    place.register("/f", 8)
    place.clock.sleep(2 * DAY)
    table = log_of(place)
    table.metadata.traffic.wrote({"S": "/f"}, 60 * 1000.0)
    for _ in range(300):
        place.clock.sleep(60)
        table.metadata.traffic.wrote({"S": "/f"}, 60.0)
        table.pause()
    (one,) = proposed(place)
    assert one.would_do == 5
    assert one.reason == "the busiest minute of 24 h had 1000 write units a second"
    assert max(one.traffic.values()) == 60 * 1000.0
    assert len(one.traffic) < 40, "an item of a kilobyte is written by one unit"


def test_of_each_hour_the_busiest_minute_is_kept() -> None:
    minutes = {MINUTE - ago: float(ago % 60) for ago in range(60 * 30)}
    left = minutes.keys() - set(outdated(minutes, BEGIN))
    older = [minute for minute in left if minute < MINUTE - 10]
    hours = [minute // 60 for minute in older]
    assert len(hours) == len(set(hours))
    assert min(hours) >= MINUTE // 60 - 25
    for minute in older[:-1]:
        same = [m for m in minutes if m // 60 == minute // 60]
        assert minutes[minute] == max(minutes[m] for m in same)
    assert {minute for minute in minutes if minute >= MINUTE - 10} <= left


def test_earlier_reports_by_the_hour_are_forgotten(place: Place) -> None:
    hours = {str(int(BEGIN // 3600) - ago): {"N": "1"} for ago in range(1, 73)}
    place.register("/f", 4, traffic={"M": hours})
    table = log_of(place)
    put(table, 25)
    table.close()
    assert reported(place) == 25


def test_what_was_seen_adds_up_until_the_metadata_changes_or_it_is_old(place: Place) -> None:
    """What the processes that write a throttled key tell each other of it."""
    key, seen, twice = {"S": "/f"}, Sums(1.5, 3.0, 2.0, 0.25), Sums(3.0, 6.0, 4.0, 0.5)
    one, other = place.table(), place.table()
    known = one.metadata.of(key, register=True)
    told = [table.writer.throttle_tracker.pressure for table in (one, other)]
    assert [each.add(key, known.version, seen) for each in told] == [seen, twice]
    place.clock.sleep(11)
    assert told[0].add(key, known.version, seen) == seen
    grown = one.metadata.grow(key, one.metadata.of(key), 2)
    assert grown is not None
    assert told[1].add(key, known.version, seen) is None, "that has changed"
    assert told[1].add(key, grown.version, seen) == seen
    assert place.shards("/f").number == 2
