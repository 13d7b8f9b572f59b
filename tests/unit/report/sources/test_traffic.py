"""What the records of a stream come to."""

import random
from itertools import accumulate, pairwise
from typing import Any

import pytest
from keyhop.report.facts import StreamFacts
from keyhop.report.sources.traffic import Traffic, is_today, number_of, order_of

from tests.unit.report.sources.streams import record
from tests.unit.report.sources.tables import NOW, whole

SECONDS = 900.0
BEGAN = NOW - SECONDS


def facts(records: list[dict[str, Any]], kept: int = 100, **options: Any) -> StreamFacts:
    traffic = Traffic("customer", "placed", kept)
    for one in records:
        traffic.take(one, "s1")
    view = options.pop("view", "NEW_AND_OLD_IMAGES")
    return traffic.facts(BEGAN, SECONDS, view, whole, **options)


def test_traffic_by_key_with_the_busiest_second():
    body = {"body": {"S": "x" * 3000}}
    told = facts(
        [
            record(BEGAN + 1, "a", "1", new=body),
            record(BEGAN + 1, "a", "2", new=body),
            record(BEGAN + 2, "a", "3", new=body),
            record(BEGAN + 2, "b", "1"),
            record(BEGAN + 3, "a", "3", event="REMOVE"),
        ]
    )
    assert (told.records, told.inserts, told.keys) == (5, 4, 2)
    first, second = told.traffic
    assert (first.key, first.records, first.inserts) == ("customer=a", 4, 3)
    assert (first.write_units, first.peak) == (10.0, 6.0)
    assert (second.key, second.write_units, second.peak) == ("customer=b", 1.0, 1.0)
    assert told.shards == {"s1": 5}


def test_inserts_at_the_newest_sort_key():
    told = facts([record(BEGAN, "a", sort) for sort in ("1", "2", "3", "25", "4")])
    assert told.traffic[0].newest == 3


def test_ids_of_one_second_have_no_order():
    ends = ["1a", "2d", "2b", "2c", "3z", "3y", "2e"]
    told = facts([record(BEGAN + int(end[0]), "log", end) for end in ends[:-1]])
    assert told.traffic[0].newest == 5
    late = facts([record(BEGAN + min(at, 4), "log", end) for at, end in enumerate(ends)])
    assert late.traffic[0].newest == 4


def test_sort_keys_are_ordered_as_the_service_does():
    assert order_of({"N": "10"}) > order_of({"N": "9"})
    assert order_of({"S": "\U00010000"}) > order_of({"S": "\uffff"})
    assert order_of({"B": b"\xff"}) > order_of({"B": b"\x00"})


@pytest.mark.parametrize(
    ("key", "is_it"),
    [
        ({"S": "2026-11-22"}, True),
        ({"S": "DAY#2026-11-22"}, True),
        ({"N": "20261122"}, True),
        ({"S": "2026-11"}, True),
        ({"S": "2026-11-21"}, True),  # it is, in Hawaii
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
def test_keys_that_are_today(key: dict[str, Any], is_it: bool):
    assert is_today(key, NOW) == is_it


def test_the_share_of_inserts_of_today():
    keys = ["2026-11-22"] * 60 + ["2020-01-01"] * 40
    told = facts([record(BEGAN, key, str(at)) for at, key in enumerate(keys)])
    assert (told.date_share.value, told.date_share.n) == (0.6, 100)
    assert told.date_share.against(0.5) == "open"
    assert facts([]).date_share is None


def test_numbers_at_the_end_of_keys():
    assert [number_of(key) for key in ({"S": "order-17"}, {"N": "100"}, {"S": "x"})] == [
        *(17, 100),
        None,
    ]


def test_a_date_is_nobodys_number() -> None:
    dates = ("2013-01-05", "DAY#2013-01-05", "20130105", "x-2013-01", "2013-01-05T10:00")
    assert [number_of({"S": text}) for text in dates] == [None] * 5
    assert [number_of({"S": text}) for text in ("10000123", "ORDER#17")] == [10000123, 17]


def test_keys_that_grow_with_time():
    growing = facts([record(BEGAN + at, f"order-{1000 + at}") for at in range(200)])
    assert growing.tau.against(0.7) == "above"
    mixed = facts([record(BEGAN + at, f"order-{at * 7919 % 1000}") for at in range(200)])
    assert mixed.tau.against(0.7) == "below"
    assert facts([record(BEGAN + at, f"{at:x}z") for at in range(200)]).tau is None


def test_a_look_of_seconds_goes_by_the_order_of_records():
    told = facts([record(BEGAN, f"order-{1000 + at}") for at in range(200)])
    assert told.tau.value == 1.0


def test_the_busiest_second_of_all_keys():
    seconds = [0, 1, 1, 2, 1, 0]  # Of several shards, so not in order.
    assert facts([record(BEGAN + at, f"key-{n}") for n, at in enumerate(seconds)]).peak == 3


def test_load_in_the_order_of_hashes():
    records = [record(BEGAN + at, f"key-{at}") for at in range(400)]
    in_order = facts(records, place=lambda key: int(key["customer"]["S"][4:]) / 400)
    assert in_order.hash_rho.against(0.5) == "above"
    shuffled = facts(records, place=lambda key: int(key["customer"]["S"][4:]) * 7919 % 400 / 400)
    assert shuffled.hash_rho.against(0.5) == "below"
    # A backfill changes items, and a purge deletes them.
    for event in ("MODIFY", "REMOVE"):
        changes = [{**each, "eventName": event} for each in records]
        changed = facts(changes, place=lambda key: int(key["customer"]["S"][4:]) / 400)
        assert changed.hash_rho == in_order.hash_rho
    assert facts(records).hash_rho is None
    assert facts(records, place=lambda key: None).hash_rho is None


def test_a_copy_over_the_turn_of_a_minute_of_a_database_that_has_no_seconds():
    minute = BEGAN - BEGAN % 60
    for turn in (1, 58):
        records = [record(minute + 60 * (at >= turn), f"key-{at}") for at in range(60)]
        told = facts(records, place=lambda key: int(key["customer"]["S"][4:]) / 60)
        assert told.hash_rho.value == pytest.approx(1.0, abs=0.001)
        assert told.tau.value == 1.0


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
    told = facts(
        [record(BEGAN + 5, "a"), record(BEGAN + 65, "a"), record(BEGAN + 65, "b")],
        place=lambda key: places[key["customer"]["S"]],
    )
    assert told.heat == ((BEGAN, 128, 1.0), (BEGAN + 60, 128, 1.0))
    assert [one.place for one in told.traffic] == [0.5, None]


def test_a_counter_is_one_item_of_which_one_number_changes():
    def add(at: int) -> dict[str, Any]:
        old, new = {"hits": {"N": str(at)}}, {"hits": {"N": str(at + 1)}}
        return record(BEGAN + at, "totals", "all", "MODIFY", new=new, old=old)

    others = [record(BEGAN, f"order-{at}") for at in range(300)]
    told = facts([*others, *map(add, range(200))])
    assert told.counter.value == 0.4
    assert told.counter.against(0.2) == "above"
    assert told.counter_attribute == "hits"
    none = facts(others)
    assert none.counter.against(0.2) == "below"


def test_a_measured_value_is_no_counter_and_a_stock_is_one():
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
        found = counter(values).counter
        assert found.value == share


def test_without_both_images_a_busy_item_is_not_known_to_be_a_counter():
    told = facts([record(BEGAN + at, "totals", "all", "MODIFY") for at in range(9)], view="KEYS")
    assert told.counter is None


def test_growth_is_inserts_less_removals_a_day():
    records = [record(BEGAN, "a", str(at)) for at in range(10)]
    records += [record(BEGAN, "a", str(at), event="REMOVE") for at in range(4)]
    assert facts(records).growth == {"customer=a": 6 * 96.0}


def test_memory_is_bounded_and_the_busiest_keys_stay():
    records = [record(BEGAN, "giant", str(at)) for at in range(200)]
    records += [record(BEGAN, f"small-{at}") for at in range(1000)]
    told = facts(records, kept=100)
    assert told.traffic[0].key == "customer=giant"
    assert told.traffic[0].records == 200
    assert told.keys == 1001


def test_a_table_without_a_sort_key():
    traffic = Traffic("customer", None)
    one = record(BEGAN, "a")
    del one["dynamodb"]["Keys"]["placed"]
    traffic.take(one)
    told = traffic.facts(BEGAN, SECONDS, "KEYS_ONLY", whole)
    assert told.traffic[0].newest == 0


def test_nothing_of_an_item_is_in_the_facts():
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
    for one in records:
        traffic.take(one)
    told = traffic.facts(BEGAN, SECONDS, "NEW_AND_OLD_IMAGES", lambda key: "digest")
    assert secret not in repr(told)
    assert "4242" not in repr(told)
    assert "status" in told.reversals


@pytest.mark.parametrize(("moments", "peak"), [((60, 120), 0.5), ((61, 120), 30.0), ((60,), 30.0)])
def test_a_stream_that_tells_minutes_has_no_busiest_second(moments, peak):
    told = facts([record(at, "a", f"{at}-{number}") for at in moments for number in range(30)])
    assert told.traffic[0].peak == peak
