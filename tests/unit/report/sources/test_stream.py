"""Tests that a look at a stream reads its window, and stops if a shard has other readers."""

from dataclasses import replace
from typing import Any

import pytest
from keyhop.report.facts import Absent, StreamFacts
from keyhop.report.sources.stream import ACTIONS, look

from tests.unit.report.sources.streams import FakeStreams, Shard, record
from tests.unit.report.sources.tables import NOW, full_key, orders

ORDERS = orders()
SECONDS = 900.0
BEGAN = NOW - SECONDS


class Clock:
    """A clock that advances only while a caller waits."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


def read(streams: Any, clock: Clock | None = None, **options: Any) -> Any:
    clock = clock or Clock()
    return look(streams, ORDERS, NOW, SECONDS, full_key, clock=clock, pause=clock.wait, **options)


def facts_of(streams: FakeStreams, **options: Any) -> StreamFacts:
    facts = read(streams, **options).facts
    assert isinstance(facts, StreamFacts)
    return facts


def test_only_the_records_of_the_window_are_read():
    records = [record(at, "a") for at in (BEGAN - 1, BEGAN, NOW - 1, NOW, NOW + 1)]
    for by_time in (True, False):
        facts = facts_of(FakeStreams({"s1": Shard(records)}, by_time=by_time))
        assert facts.records == 2
        assert (facts.began, facts.seconds) == (BEGAN, SECONDS)
        assert facts.view == "NEW_AND_OLD_IMAGES"


def test_empty_pages_before_records_are_not_the_end():
    streams = FakeStreams({"s1": Shard([record(NOW - 5, "a")], empty_pages=3)})
    assert facts_of(streams).records == 1


def test_an_idle_stream_has_facts_without_records():
    clock = Clock()
    facts = read(FakeStreams({"s1": Shard([])}), clock).facts
    assert (facts.records, facts.seconds) == (0, SECONDS)
    assert clock.now <= 3


def test_only_parents_that_reach_into_the_window_are_read():
    streams = FakeStreams(
        {
            "old": Shard([record(BEGAN - 9000, "x")], closed=True),
            "a": Shard([record(BEGAN - 5000, "x")], "old", closed=True),
            "b": Shard([record(BEGAN + 10, "b")], "a", closed=True),
            "c": Shard([record(BEGAN + 600, "c")], "b"),
        }
    )
    facts = facts_of(streams)
    assert {traffic.key for traffic in facts.traffic} == {"customer=b", "customer=c"}
    assert "old" not in streams.reads


def test_shards_with_the_same_parent_show_a_split():
    streams = FakeStreams(
        {
            "a": Shard([record(BEGAN + 1, "a")], closed=True),
            "b": Shard([record(BEGAN + 9, "b")], "a"),
            "c": Shard([record(BEGAN + 9, "c")], "a"),
            "d": Shard([], "x"),
        }
    )
    facts = facts_of(streams)
    assert facts.split_shards == 2
    assert sorted(facts.shards.values()) == [1, 1, 1]


def test_a_shard_is_read_at_most_twice_a_second():
    clock = Clock()
    streams = FakeStreams({"s1": Shard([record(BEGAN + at, "a") for at in range(100)])}, page=10)
    read(streams, clock)
    assert len(streams.reads) / max(clock.now, 0.5) <= 2.2


def test_a_shard_with_too_many_readers_ends_the_look():
    streams = FakeStreams({"s1": Shard([record(NOW - 9, "a")]), "s2": Shard([])}, crowded={"s2"})
    absent = read(streams).facts
    assert isinstance(absent, Absent)
    assert "already have as many readers" in absent.reason
    assert streams.reads.count("s2") == 2


def test_a_look_that_is_cut_short_reports_its_seconds():
    shards = {
        name: Shard([record(BEGAN + at, f"{name}-{at}") for at in range(900)])
        for name in ("s1", "s2")
    }
    facts = facts_of(FakeStreams(shards, page=50), most_records=600)
    assert facts.records == 600
    assert facts.seconds == pytest.approx(300, abs=5)


def test_a_look_that_takes_too_long_has_no_facts():
    backlog = [record(BEGAN - 9000 + at, "a") for at in range(5000)]
    streams = FakeStreams({"s1": Shard(backlog)}, by_time=False, page=10)
    absent = read(streams, most_seconds=5).facts
    assert isinstance(absent, Absent)
    assert "1 shard could not be read within 5 seconds" in absent.reason


def test_a_table_without_a_stream():
    absent = look(FakeStreams({}), replace(ORDERS, stream=None), NOW, SECONDS, full_key).facts
    assert isinstance(absent, Absent)
    assert absent.reason == "the table has no stream"


@pytest.mark.parametrize("operation", ["DescribeStream", "GetShardIterator", "GetRecords"])
def test_a_denied_operation_is_the_reason(operation: str):
    streams = FakeStreams({"s1": Shard([])}, refused={operation: "AccessDeniedException"})
    action = f"dynamodb:{operation}"
    assert action in ACTIONS
    assert read(streams).facts == Absent(f"{action} is not allowed", f"allow {action}")


def test_listeners_get_each_record_and_reads_have_a_price():
    records: list[Any] = []
    streams = FakeStreams({"s1": Shard([record(NOW - 5, "a")])})
    spent = read(streams, listeners=(records.append,)).spent
    assert len(records) == 1
    assert spent.requests > 2
    assert 0 < spent.dollars < 0.00001


def test_a_refusal_of_another_kind_names_its_code():
    streams = FakeStreams({"s1": Shard([])}, refused={"GetRecords": "TrimmedDataAccessException"})
    assert read(streams).facts == Absent(
        "the stream refused GetRecords (TrimmedDataAccessException)"
    )
