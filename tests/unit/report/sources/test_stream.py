"""A look at a stream takes what there is, and steps back where others read."""

from dataclasses import replace
from typing import Any

import pytest
from keyhop.report.facts import Absent, StreamFacts
from keyhop.report.sources.stream import ACTIONS, look

from tests.unit.report.sources.streams import FakeStreams, Shard, record
from tests.unit.report.sources.tables import NOW, orders, whole

ORDERS = orders()
SECONDS = 900.0
BEGAN = NOW - SECONDS


class Time:
    """A clock that goes by being waited for."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


def looked(streams: Any, time: Time | None = None, **options: Any) -> Any:
    own = time or Time()
    return look(streams, ORDERS, NOW, SECONDS, whole, clock=own, pause=own.wait, **options)


def seen(streams: FakeStreams, **options: Any) -> StreamFacts:
    facts = looked(streams, **options).facts
    assert isinstance(facts, StreamFacts)
    return facts


def test_the_records_of_the_window_and_no_others():
    records = [record(at, "a") for at in (BEGAN - 1, BEGAN, NOW - 1, NOW, NOW + 1)]
    for by_time in (True, False):
        facts = seen(FakeStreams({"s1": Shard(records)}, by_time=by_time))
        assert facts.records == 2
        assert (facts.began, facts.seconds) == (BEGAN, SECONDS)
        assert facts.view == "NEW_AND_OLD_IMAGES"


def test_empty_pages_before_records_are_not_the_end():
    assert seen(FakeStreams({"s1": Shard([record(NOW - 5, "a")], before=3)})).records == 1


def test_an_idle_stream_is_looked_at_and_nothing_was_written():
    time = Time()
    looked_at = looked(FakeStreams({"s1": Shard([])}), time)
    assert (looked_at.facts.records, looked_at.facts.seconds) == (0, SECONDS)
    assert time.now <= 3


def test_parents_are_read_as_far_as_they_reach_into_the_window():
    streams = FakeStreams(
        {
            "old": Shard([record(BEGAN - 9000, "x")], closed=True),
            "a": Shard([record(BEGAN - 5000, "x")], "old", closed=True),
            "b": Shard([record(BEGAN + 10, "b")], "a", closed=True),
            "c": Shard([record(BEGAN + 600, "c")], "b"),
        }
    )
    facts = seen(streams)
    assert {one.key for one in facts.traffic} == {"customer=b", "customer=c"}
    assert "old" not in streams.reads


def test_splits_show_as_children_of_one_parent():
    streams = FakeStreams(
        {
            "a": Shard([record(BEGAN + 1, "a")], closed=True),
            "b": Shard([record(BEGAN + 9, "b")], "a"),
            "c": Shard([record(BEGAN + 9, "c")], "a"),
            "d": Shard([], "x"),
        }
    )
    facts = seen(streams)
    assert facts.split_shards == 2
    assert sorted(facts.shards.values()) == [1, 1, 1]


def test_a_shard_is_asked_twice_a_second_at_most():
    time = Time()
    streams = FakeStreams({"s1": Shard([record(BEGAN + at, "a") for at in range(100)])}, page=10)
    looked(streams, time)
    assert len(streams.reads) / max(time.now, 0.5) <= 2.2


def test_a_shard_with_readers_enough_ends_the_look():
    streams = FakeStreams({"s1": Shard([record(NOW - 9, "a")]), "s2": Shard([])}, crowded={"s2"})
    told = looked(streams).facts
    assert isinstance(told, Absent)
    assert "already have as many readers" in told.reason
    assert streams.reads.count("s2") == 2


def test_a_look_that_is_cut_off_says_how_long_it_has_seen():
    shards = {
        name: Shard([record(BEGAN + at, f"{name}-{at}") for at in range(900)])
        for name in ("s1", "s2")
    }
    facts = seen(FakeStreams(shards, page=50), most_records=600)
    assert facts.records == 600
    assert facts.seconds == pytest.approx(300, abs=5)


def test_a_look_that_comes_to_nothing_in_time_is_absent():
    backlog = [record(BEGAN - 9000 + at, "a") for at in range(5000)]
    streams = FakeStreams({"s1": Shard(backlog)}, by_time=False, page=10)
    told = looked(streams, most_seconds=5).facts
    assert isinstance(told, Absent)
    assert "1 shard could not be read within 5 seconds" in told.reason


def test_a_table_without_a_stream():
    told = look(FakeStreams({}), replace(ORDERS, stream=None), NOW, SECONDS, whole).facts
    assert isinstance(told, Absent)
    assert told.reason == "the table has no stream"


@pytest.mark.parametrize("operation", ["DescribeStream", "GetShardIterator", "GetRecords"])
def test_what_is_not_allowed_is_a_reason(operation: str):
    streams = FakeStreams({"s1": Shard([])}, refused={operation: "AccessDeniedException"})
    action = f"dynamodb:{operation}"
    assert action in ACTIONS
    assert looked(streams).facts == Absent(f"{action} is not allowed", f"allow {action}")


def test_listeners_get_each_record_and_reads_have_a_price():
    heard: list[Any] = []
    found = looked(FakeStreams({"s1": Shard([record(NOW - 5, "a")])}), listeners=(heard.append,))
    assert len(heard) == 1
    assert found.spent.requests > 2
    assert 0 < found.spent.dollars < 0.00001


def test_refusal_of_another_kind_names_its_code():
    streams = FakeStreams({"s1": Shard([])}, refused={"GetRecords": "TrimmedDataAccessException"})
    assert looked(streams).facts == Absent(
        "the stream refused GetRecords (TrimmedDataAccessException)"
    )
