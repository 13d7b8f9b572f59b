"""Tests of the facts that the records of a stream give."""

import random
from itertools import accumulate, pairwise
from typing import Any

import pytest
from keyhop.report.facts import StreamFacts
from keyhop.report.sources.traffic import Traffic, is_today, number_of, order_of

from tests.unit.report.sources.streams import record
from tests.unit.report.sources.tables import NOW, full_key

SECONDS = 900.0
BEGAN = NOW - SECONDS


def facts(records: list[dict[str, Any]], capacity: int = 100, **options: Any) -> StreamFacts:
    traffic = Traffic("customer", "placed", capacity)
    for change in records:
        traffic.take(change, "s1")
    view = options.pop("view", "NEW_AND_OLD_IMAGES")
    return traffic.facts(BEGAN, SECONDS, view, full_key, **options)


def number_in(key: dict[str, Any]) -> int:
    """Return the number of a key such as `key-17`."""
    return int(key["customer"]["S"][4:])


def test_traffic_by_key_with_the_busiest_second():
    body = {"body": {"S": "x" * 3000}}
    stream = facts(
        [
            record(BEGAN + 1, "a", "1", new=body),
            record(BEGAN + 1, "a", "2", new=body),
            record(BEGAN + 2, "a", "3", new=body),
            record(BEGAN + 2, "b", "1"),
            record(BEGAN + 3, "a", "3", event="REMOVE"),
        ]
    )
    assert (stream.records, stream.inserts, stream.keys) == (5, 4, 2)
    first, second = stream.traffic
    assert (first.key, first.records, first.inserts) == ("customer=a", 4, 3)
    assert (first.write_units, first.peak) == (10.0, 6.0)
    assert (second.key, second.write_units, second.peak) == ("customer=b", 1.0, 1.0)
    assert stream.shards == {"s1": 5}


def test_inserts_at_the_newest_sort_key():
    stream = facts([record(BEGAN, "a", sort) for sort in ("1", "2", "3", "25", "4")])
    assert stream.traffic[0].newest == 3


def test_the_order_of_ids_within_a_second_does_not_matter():
    ids = ["1a", "2d", "2b", "2c", "3z", "3y", "2e"]
    in_order = facts([record(BEGAN + int(sort[0]), "log", sort) for sort in ids[:-1]])
    assert in_order.traffic[0].newest == 5
    late = facts([record(BEGAN + min(at, 4), "log", sort) for at, sort in enumerate(ids)])
    assert late.traffic[0].newest == 4


def test_sort_keys_are_ordered_as_the_service_does():
    assert order_of({"N": "10"}) > order_of({"N": "9"})
    assert order_of({"S": "\U00010000"}) > order_of({"S": "\uffff"})
    assert order_of({"B": b"\xff"}) > order_of({"B": b"\x00"})


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ({"S": "2026-11-22"}, True),
        ({"S": "DAY#2026-11-22"}, True),
        ({"N": "20261122"}, True),
        ({"S": "2026-11"}, True),
        ({"S": "2026-11-21"}, True),  # the local date in Hawaii
        ({"S": "2026-11-22T10:00Z"}, True),
        ({"S": "2026-W47"}, True),
        ({"S": "2026-Q4"}, True),
        ({"S": "22.11.2026"}, True),
        ({"S": "11/22/2026"}, True),
        ({"S": "2026年11月22日"}, True),
        ({"S": "2026-Q3"}, False),
        ({"S": "2026-11-19T10"}, False),
        ({"N": "2026"}, False),
        ({"S": "2026-11-19"}, False),
        ({"S": "customer-2026-11-22-17"}, False),
        ({"S": "17"}, False),
        ({"B": b"2026-11-22"}, False),
    ],
)
def test_keys_that_are_the_date_of_today(key: dict[str, Any], expected: bool):
    assert is_today(key, NOW) == expected


def test_the_share_of_inserts_with_the_date_of_today():
    keys = ["2026-11-22"] * 60 + ["2020-01-01"] * 40
    share = facts([record(BEGAN, key, str(at)) for at, key in enumerate(keys)]).date_share
    assert (share.value, share.n) == (0.6, 100)
    assert share.against(0.5) == "open"
    assert facts([]).date_share is None


def test_numbers_at_the_end_of_keys():
    assert number_of({"S": "order-17"}) == 17
    assert number_of({"N": "100"}) == 100
    assert number_of({"S": "x"}) is None


def test_a_date_is_not_the_number_of_a_key() -> None:
    dates = ("2013-01-05", "DAY#2013-01-05", "20130105", "x-2013-01", "2013-01-05T10:00")
    assert [number_of({"S": text}) for text in dates] == [None] * 5
    assert [number_of({"S": text}) for text in ("10000123", "ORDER#17")] == [10000123, 17]


def test_keys_that_grow_with_time():
    growing = facts([record(BEGAN + at, f"order-{1000 + at}") for at in range(200)])
    assert growing.tau.against(0.7) == "above"
    mixed = facts([record(BEGAN + at, f"order-{at * 7919 % 1000}") for at in range(200)])
    assert mixed.tau.against(0.7) == "below"
    assert facts([record(BEGAN + at, f"{at:x}z") for at in range(200)]).tau is None


def test_records_of_one_second_are_compared_in_their_order():
    assert facts([record(BEGAN, f"order-{1000 + at}") for at in range(200)]).tau.value == 1.0


def test_the_busiest_second_of_all_keys():
    seconds = [0, 1, 1, 2, 1, 0]  # Records of several shards are not in order.
    assert facts([record(BEGAN + at, f"key-{n}") for n, at in enumerate(seconds)]).peak == 3


def test_load_in_the_order_of_hashes():
    records = [record(BEGAN + at, f"key-{at}") for at in range(400)]
    in_order = facts(records, place=lambda key: number_in(key) / 400)
    assert in_order.hash_rho.against(0.5) == "above"
    shuffled = facts(records, place=lambda key: number_in(key) * 7919 % 400 / 400)
    assert shuffled.hash_rho.against(0.5) == "below"
    # A backfill modifies items, and a purge removes them.
    for event in ("MODIFY", "REMOVE"):
        changes = [{**change, "eventName": event} for change in records]
        changed = facts(changes, place=lambda key: number_in(key) / 400)
        assert changed.hash_rho == in_order.hash_rho
    assert facts(records).hash_rho is None
    assert facts(records, place=lambda key: None).hash_rho is None


def test_a_copy_in_hash_order_is_recognized_if_record_times_have_minutes_only():
    """The copy continues over the turn of a minute."""
    minute = BEGAN - BEGAN % 60
    for turn in (1, 58):
        records = [record(minute + 60 * (at >= turn), f"key-{at}") for at in range(60)]
        stream = facts(records, place=lambda key: number_in(key) / 60)
        assert stream.hash_rho.value == pytest.approx(1.0, abs=0.001)
        assert stream.tau.value == 1.0


@pytest.mark.parametrize(
    ("shard_of", "in_turn"),
    [
        (lambda at: at // 100, 1.0),
        (lambda at: at % 5, 0.0),
        (lambda at: 3 * (at % 100 > 0), 0.0),
        (lambda at: 0, None),
    ],
)
def test_stream_shards_that_are_written_one_after_the_other(shard_of, in_turn):
    traffic = Traffic("customer", "placed")
    for at in range(400):
        traffic.take(record(BEGAN + at // 50, f"key-{at}"), f"shard-{shard_of(at)}")
    assert traffic.facts(BEGAN, 8.0, "NEW_AND_OLD_IMAGES", str).in_turn == in_turn


def test_places_make_the_key_map():
    places = {"a": 0.5, "b": None}
    stream = facts(
        [record(BEGAN + 5, "a"), record(BEGAN + 65, "a"), record(BEGAN + 65, "b")],
        place=lambda key: places[key["customer"]["S"]],
    )
    assert stream.heat == ((BEGAN, 128, 1.0), (BEGAN + 60, 128, 1.0))
    assert [traffic.place for traffic in stream.traffic] == [0.5, None]


def test_a_counter_is_one_item_with_one_number_that_changes():
    def add(at: int) -> dict[str, Any]:
        old, new = {"hits": {"N": str(at)}}, {"hits": {"N": str(at + 1)}}
        return record(BEGAN + at, "totals", "all", "MODIFY", new=new, old=old)

    orders = [record(BEGAN, f"order-{at}") for at in range(300)]
    stream = facts([*orders, *map(add, range(200))])
    assert stream.counter.value == 0.4
    assert stream.counter.against(0.2) == "above"
    assert stream.counter_attribute == "hits"
    assert facts(orders).counter.against(0.2) == "below"


def test_a_stock_is_a_counter_and_a_measured_value_is_not():
    chance = random.Random(1)

    def counter(values: list[float]) -> StreamFacts:
        pairs = [({"n": {"N": str(a)}}, {"n": {"N": str(b)}}) for a, b in pairwise(values)]
        return facts(
            [
                record(BEGAN + at, "one", "all", "MODIFY", new=new, old=old)
                for at, (old, new) in enumerate(pairs)
            ]
        )

    stock = [1000.0 - at for at in range(400)]
    balance = list(accumulate(chance.choice([-7.0, 3.0, 12.0]) for _ in range(400)))
    for values, share in (
        (stock, 1.0),
        (balance, 1.0),
        ([chance.uniform(1190, 1260) for _ in range(400)], 0.0),
        ([float(at % 2) for at in range(400)], 0.0),
    ):
        assert counter(values).counter.value == share


def test_without_both_images_counters_are_unknown():
    stream = facts([record(BEGAN + at, "totals", "all", "MODIFY") for at in range(9)], view="KEYS")
    assert stream.counter is None


def test_growth_is_inserts_minus_removals_per_day():
    records = [record(BEGAN, "a", str(at)) for at in range(10)]
    records += [record(BEGAN, "a", str(at), event="REMOVE") for at in range(4)]
    assert facts(records).growth == {"customer=a": 6 * 96.0}


def test_memory_is_bounded_and_the_busiest_keys_remain():
    records = [record(BEGAN, "giant", str(at)) for at in range(200)]
    records += [record(BEGAN, f"small-{at}") for at in range(1000)]
    stream = facts(records, capacity=100)
    assert stream.traffic[0].key == "customer=giant"
    assert stream.traffic[0].records == 200
    assert stream.keys == 1001


def test_a_table_without_a_sort_key():
    traffic = Traffic("customer", None)
    change = record(BEGAN, "a")
    del change["dynamodb"]["Keys"]["placed"]
    traffic.take(change)
    stream = traffic.facts(BEGAN, SECONDS, "KEYS_ONLY", full_key)
    assert stream.traffic[0].newest == 0


def test_the_facts_contain_no_values_of_items():
    secret = "canary-7f3a"
    records = [
        record(
            BEGAN + at,
            f"{secret}-{at}",
            secret,
            "MODIFY",
            new={"status": {"S": f"{secret}{at % 3}"}, "hits": {"N": "424242"}},
            old={"status": {"S": f"{secret}{at % 2}"}, "hits": {"N": "424241"}},
        )
        for at in range(50)
    ]
    traffic = Traffic("customer", "placed")
    for change in records:
        traffic.take(change)
    stream = traffic.facts(BEGAN, SECONDS, "NEW_AND_OLD_IMAGES", lambda key: "digest")
    assert secret not in repr(stream)
    assert "4242" not in repr(stream)
    assert "status" in stream.reversals


@pytest.mark.parametrize(("times", "peak"), [((60, 120), 0.5), ((61, 120), 30.0), ((60,), 30.0)])
def test_a_stream_with_times_in_minutes_has_no_busiest_second(times, peak):
    stream = facts([record(at, "a", f"{at}-{number}") for at in times for number in range(30)])
    assert stream.traffic[0].peak == peak
