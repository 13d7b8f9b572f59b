"""Traffic that writers report. It is the only reason for which a key loses shards."""

from botocore.exceptions import EndpointConnectionError
from keyhop.sharding.key.policy import Sums
from keyhop.sharding.manage import KeyShards, list_keys, proposals
from keyhop.sharding.store.traffic import outdated
from keyhop.sharding.table import ShardedTable

from tests.integration.sharding.hooks import is_operation, once
from tests.integration.sharding.single import BEGIN, Place

DAY = 24 * 3600.0
MINUTE = int(BEGIN // 60)


def log_of(place: Place) -> ShardedTable:
    return place.table(placement="random", append_only=True)


def put(table: ShardedTable, count: int, key: str = "/f", size: int = 1) -> None:
    items = [{"path": key, "at": f"{n}", "what": "x" * size} for n in range(count)]
    assert table.batch_write(items).written == count


def reported_units(place: Place, key: str = "/f") -> float:
    (shards,) = (shards for shards in list_keys(place.table()) if shards.key == key)
    return sum(shards.traffic.values())


def proposed_drains(place: Place) -> list[KeyShards]:
    return list(proposals(place.table()))


def test_writes_are_reported_at_a_pause(place: Place) -> None:
    """A function's invocation ends with a pause, and its process may never run again."""
    place.register("/f", 8)
    for _ in range(3):
        table = log_of(place)
        put(table, 20)
        table.pause()
    assert reported_units(place) == 60


def test_reports_at_frequent_pauses_cost_a_few_units(place: Place) -> None:
    place.register("/f", 8)
    table = log_of(place)
    for _ in range(200):
        put(table, 1)
        table.pause()
    units = table.usage.write_units
    assert 200 + 200 / 25 <= units <= 200 + 10
    assert reported_units(place) > 200 - 25
    place.clock.sleep(10)
    table.pause()
    assert reported_units(place) == 200


def test_writes_are_reported_while_a_process_runs(place: Place) -> None:
    place.register("/f", 8)
    table = log_of(place)
    put(table, 1_990)
    assert reported_units(place) == 1_000
    place.clock.sleep(60)
    put(table, 1)
    assert reported_units(place) == 1_991
    place.register("/g", 2)
    put(table, 10, "/g")
    table.close()
    assert reported_units(place, "/g") == 10


def test_a_batch_of_large_items_is_more_traffic(place: Place) -> None:
    place.register("/f", 4)
    table = log_of(place)
    put(table, 25, size=5_000)
    table.close()
    assert reported_units(place) == 125


def test_a_failed_report_is_repeated_later(place: Place) -> None:
    place.register("/f", 8)
    table = log_of(place)
    put(table, 25)

    def fail() -> None:
        raise EndpointConnectionError(endpoint_url="http://nowhere")

    failed = once(table, is_operation("update_item"), fail)
    table.pause()
    assert failed
    assert reported_units(place) == 0
    put(table, 25)
    table.pause()
    assert reported_units(place) == 50


def test_a_key_without_recent_reports_is_not_drained(place: Place) -> None:
    place.register("/f", 8)
    place.clock.sleep(2 * DAY)
    assert proposed_drains(place) == []
    table = log_of(place)
    put(table, 25)
    table.pause()
    (proposal,) = proposed_drains(place)
    assert proposal.would_do == 1
    place.clock.sleep(1.1 * DAY)
    assert proposed_drains(place) == []


def test_a_busy_minute_of_the_day_keeps_its_shards(place: Place) -> None:
    place.register("/f", 8)
    place.clock.sleep(2 * DAY)
    table = log_of(place)
    table.metadata.traffic.wrote({"S": "/f"}, 60 * 1000.0)
    for _ in range(300):
        place.clock.sleep(60)
        table.metadata.traffic.wrote({"S": "/f"}, 60.0)
        table.pause()
    (proposal,) = proposed_drains(place)
    assert proposal.would_do == 5
    assert proposal.reason == "the busiest minute of 24 h had 1000 write units a second"
    assert max(proposal.traffic.values()) == 60 * 1000.0
    assert len(proposal.traffic) < 40, "the metadata item stays below one write unit"


def test_the_busiest_minute_of_each_hour_is_kept() -> None:
    minutes = {MINUTE - ago: float(ago % 60) for ago in range(60 * 30)}
    remaining = minutes.keys() - set(outdated(minutes, BEGIN))
    older = [minute for minute in remaining if minute < MINUTE - 10]
    hours = [minute // 60 for minute in older]
    assert len(hours) == len(set(hours))
    assert min(hours) >= MINUTE // 60 - 25
    for minute in older[:-1]:
        same_hour = [m for m in minutes if m // 60 == minute // 60]
        assert minutes[minute] == max(minutes[m] for m in same_hour)
    assert {minute for minute in minutes if minute >= MINUTE - 10} <= remaining


def test_earlier_reports_by_the_hour_are_forgotten(place: Place) -> None:
    hours = {str(int(BEGIN // 3600) - ago): {"N": "1"} for ago in range(1, 73)}
    place.register("/f", 4, traffic={"M": hours})
    table = log_of(place)
    put(table, 25)
    table.close()
    assert reported_units(place) == 25


def test_sums_of_throttles_end_with_a_change_or_their_age(place: Place) -> None:
    """Processes that write a throttled key add their observations to the metadata."""
    key, sums, twice = {"S": "/f"}, Sums(1.5, 3.0, 2.0, 0.25), Sums(3.0, 6.0, 4.0, 0.5)
    tables = [place.table(), place.table()]
    metadata = tables[0].metadata
    record = metadata.of(key, register=True)
    first, second = (table.writer.throttle_tracker.pressure for table in tables)
    assert first.add(key, record.version, sums) == sums
    assert second.add(key, record.version, sums) == twice
    place.clock.sleep(11)
    assert first.add(key, record.version, sums) == sums
    grown = metadata.grow(key, metadata.of(key), 2)
    assert grown is not None
    assert second.add(key, record.version, sums) is None, "the metadata has changed"
    assert second.add(key, grown.version, sums) == sums
    assert place.shards("/f").number == 2
