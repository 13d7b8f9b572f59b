"""Check how a run is planned and divided: methods, segments, groups, rates, units and costs."""

import random
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.errors import CannotStart
from keyhop.jobs.layout import (
    Layout,
    Wishes,
    allowances,
    groups_of_layout,
    layout_for_scan,
    layout_for_skip,
    segments_to_check,
    spread,
    workers_at_once,
)
from keyhop.jobs.price import FunctionSize, index_cost, run_cost, scan_cost, skip_cost
from keyhop.jobs.request import Request, wishes_of_fleet
from keyhop.keys.task import choose_method
from keyhop.scan.sampling import SIZES
from keyhop.scan.segments import group_of, group_order, is_nearly_done, segment_at
from keyhop.scan.statistics import (
    Findings,
    Forecast,
    Interval,
    SegmentSample,
    count_interval,
    findings_of,
    findings_of_parts,
    forecast,
    rough_keys,
)

WITH_SORT = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "S"))
WITHOUT = KeySpace((KeyAttribute("pk", "S"),))
FREE = Wishes()
HOPS = Forecast(units_per_key=0.5, requests_per_key=1.0)


def findings(keys: float, low: float = 0, high: float = 0) -> Findings:
    return Findings(
        Interval(keys, low or keys, high or keys), Forecast(0.5, 1.0), 0.5, 500.0, 0.004
    )


@pytest.mark.parametrize("segments", [1, 2, 3, 7, 16, 100, 1_000, 4_096])
def test_the_strided_order_visits_each_segment_once(segments: int) -> None:
    assert sorted(segment_at(place, segments) for place in range(segments)) == list(range(segments))


@given(st.integers(8, 1_000_000), st.integers(0, 1_000_000))
def test_segments_that_are_read_at_the_same_time_lie_far_apart(segments: int, begin: int) -> None:
    """Eight segments that are read at the same time are never close neighbours in hash space."""
    together = sorted(segment_at((begin + n) % segments, segments) for n in range(8))
    gaps = [b - a for a, b in pairwise(together)]
    assert min(gaps) >= max(1, segments // 30)


def test_a_table_with_a_sort_key_is_hopped_and_the_reason_is_given() -> None:
    method, reason = choose_method(WITH_SORT, None, "auto")
    assert method == "skip"
    assert "hopped over" in reason


@pytest.mark.parametrize(("space", "index"), [(WITHOUT, None), (WITHOUT, "i"), (WITH_SORT, "i")])
def test_a_source_that_cannot_be_hopped_is_scanned_and_refused_for_skip(
    space: KeySpace, index: str | None
) -> None:
    assert choose_method(space, index, "auto")[0] == "scan"
    with pytest.raises(CannotStart, match="Method skip cannot work here"):
        choose_method(space, index, "skip")


@pytest.mark.parametrize(
    ("keys", "segments"),
    [
        (0, 1),
        (40, 1),
        (100, 1),
        (150, 1),
        (300, 6),
        (1_000, 20),
        (40_000, 200),
        (100_000, 500),
        (1e7, 2_304),
        (1e10, 299_760),
    ],
)
def test_segments_follow_the_number_of_keys(keys: float, segments: int) -> None:
    assert layout_for_skip(keys, HOPS, FREE).segments == segments


def test_segments_stay_few_where_many_keys_share_a_block() -> None:
    """12,000 keys of one small item cost 220 read units: 128 segment ends would add 60."""
    assert layout_for_skip(12_000, Forecast(0.0185, 0.01), FREE).segments <= 18


def test_there_are_never_more_than_a_million_segments() -> None:
    assert layout_for_skip(1e12, HOPS, FREE).segments == 1_000_000
    assert layout_for_scan(1e18, FREE).segments == 1_000_000


def test_the_layout_follows_the_options() -> None:
    assert layout_for_skip(1e6, HOPS, Wishes(segments=3, threads=9)) == Layout(3, 3)
    assert layout_for_scan(None, Wishes(segments=300, threads=4)) == Layout(300, 4)


def test_a_slow_rate_needs_few_threads() -> None:
    assert spread(Wishes(max_rate=100.0), 1_000).threads == 1
    assert spread(Wishes(max_rate=300.0), 1_000).threads == 3
    assert spread(FREE, 1_000).threads == 14


@pytest.mark.parametrize(("size", "segments"), [(None, 72), (1e6, 1), (1e8, 23), (1e12, 861)])
def test_a_scan_is_laid_out_by_size(size: float | None, segments: int) -> None:
    assert layout_for_scan(size, FREE).segments == segments


def test_a_check_has_enough_segments_to_sample() -> None:
    assert layout_for_skip(1e6, HOPS, Wishes(verify_share=0.001)).segments == 8_000
    assert layout_for_skip(1e6, HOPS, Wishes(verify_share=1.0)).segments == 2_304


def test_a_check_does_not_cut_a_small_table_into_many_segments() -> None:
    assert layout_for_skip(10, HOPS, Wishes(verify_share=0.001)).segments == 64
    assert layout_for_scan(1e6, Wishes(verify_share=0.001)).segments == 64


@pytest.mark.parametrize("items", [1, 2, 5])
def test_a_collection_cut_where_the_others_end_is_not_endless(items: int) -> None:
    """Many pages end with the last item of a collection, and do not show that it is the last."""
    complete = [(items, True)] * 300
    cut = [(items, False)] * 30
    expected = forecast(complete, 286.0, random.Random(1))
    assert forecast(complete + cut, 286.0, random.Random(1)) == expected


@pytest.mark.parametrize(
    ("reported", "read", "items_per_page", "is_done"),
    [
        (10, 10, 2, True),
        (190, 100, 20, True),
        (340, 100, 8, False),
        (5_000, 100, 8, False),
        (0, 100, 8, False),
        (50, 100, 8, False),
    ],
)
def test_a_stale_item_count_does_not_end_sampling(
    reported: int, read: int, items_per_page: float, is_done: bool
) -> None:
    assert is_nearly_done(reported, read, items_per_page) is is_done


def test_the_interval_covers_the_truth_at_its_confidence_level() -> None:
    chance = random.Random(11)
    covered = 0
    for _ in range(400):
        keys, segments = 3_000, 500
        hashed = Counter(chance.randrange(segments) for _ in range(keys))
        counts = [hashed[s] for s in chance.sample(range(segments), 30)]
        share = segments / 30
        interval = count_interval(counts).scaled(share)
        covered += interval.low <= keys <= interval.high
    assert 0.92 <= covered / 400 <= 0.99


def test_an_empty_sample_has_an_upper_limit() -> None:
    """The Garwood interval of a Poisson count of zero ends at 3.7 (97.5 %)."""
    interval = count_interval([0, 0, 0])
    assert (interval.mean, interval.low) == (0.0, 0.0)
    assert interval.high == pytest.approx(3.7, abs=0.1)


def sample(segments: int, lengths: list[int], complete: bool = True) -> SegmentSample:
    collections = tuple((n, True) for n in lengths)
    return SegmentSample(segments, complete, collections, pages=1, units=0.5, first_blocks=1.0)


def test_a_sample_of_all_segments_is_exact() -> None:
    result = findings_of([sample(2, [1, 1]), sample(2, [1])], 100.0, 0.004, random.Random(1))
    assert result.exact
    assert result.keys == Interval(3, 3, 3)


def test_a_sample_is_scaled_by_its_share() -> None:
    result = findings_of([sample(100, [1] * 5)] * 4, 100.0, 0.004, random.Random(1))
    assert result.keys.mean == 500
    assert result.keys.low < 500 < result.keys.high


def test_without_a_sample_there_is_only_a_guess() -> None:
    assert findings_of([], 100.0, 0.004, random.Random(1)) is None
    assert rough_keys([], 77) == 77
    assert rough_keys([], 0) > 0
    assert rough_keys([sample(16, [1, 1]), sample(16, [])], 0) == pytest.approx(16, rel=0.06)


def test_incomplete_segments_show_the_cost_of_a_key_if_the_complete_one_is_empty() -> None:
    looks = [sample(256, []), sample(16, [4, 1, 30], complete=False)]
    keys = Interval(600, 500, 700)
    result = findings_of_parts(looks, keys, 350.0, 0.004, random.Random(1))
    assert (result.keys, result.exact) == (keys, False)
    assert result.skip.units_per_key < 0.3
    assert findings_of_parts(looks[1:], keys, 350.0, 0.004, random.Random(1)) is None


@pytest.mark.parametrize("keys", [100, 300, 3_000, 100_000, 2_000_000])
def test_a_few_samples_show_the_order_of_magnitude(keys: int) -> None:
    """Each segment shows up to three keys, until one segment was read to its end."""
    chance = random.Random(keys)
    guesses = []
    for _ in range(50):
        looks: list[SegmentSample] = []
        for sizes in SIZES:
            for segments in sizes:
                count = poisson(keys / segments, chance)
                looks.append(sample(segments, [1] * min(3, count), complete=count < 3))
            if any(look.whole for look in looks):
                break
        guesses.append(rough_keys(looks, 0))
    guesses.sort()
    assert keys / 2.5 <= guesses[25] <= keys * 2.5
    assert keys / 20 <= guesses[1] <= guesses[48] <= keys * 20


def test_a_table_that_is_too_large_to_sample_counts_as_large() -> None:
    looks = [sample(size, [1] * 3, complete=False) for sizes in SIZES for size in sizes]
    assert rough_keys(looks, 0) == pytest.approx(1e7)


def poisson(mean: float, chance: random.Random) -> int:
    """Return a random Poisson number, or about 100 if it is large."""
    count, waited = 0, chance.expovariate(1)
    while waited < mean and count < 100:
        count, waited = count + 1, waited + chance.expovariate(1)
    return count


@pytest.mark.parametrize(
    ("length", "cut", "item_bytes", "units"),
    [(1, False, 150, 0.0185), (10, False, 500, 0.5), (8, True, 500, 0.5), (1, False, 20_000, 2.45)],
)
def test_a_forecast_matches_the_cost_of_the_ledger(
    length: int, cut: bool, item_bytes: int, units: float
) -> None:
    expected = forecast([(length, not cut)] * 20, item_bytes, random.Random(1))
    assert expected.units_per_key == pytest.approx(units, rel=0.05)


def test_a_cut_collection_is_as_long_as_the_longer_ones() -> None:
    """All collections have five items, but every second one was cut after two."""
    collections = [(5, True), (2, False)] * 50
    complete = forecast(collections[::2], 500, random.Random(1))
    assert forecast(collections, 500, random.Random(1)).units_per_key == pytest.approx(
        complete.units_per_key, rel=0.02
    )


def test_costs_include_the_interval_and_the_segment_ends() -> None:
    cost = skip_cost(findings(1_000, 800, 1_200), Layout(20, 8), None)
    assert (cost.units.low, cost.units.mean, cost.units.high) == (400, 509.5, 609.5)
    assert cost.seconds == pytest.approx(1_020 * 0.004 / 8)
    assert skip_cost(findings(1_000), Layout(20, 8), 100.0).seconds == pytest.approx(5.095)


def test_a_stale_size_makes_the_scan_s_cost_a_lower_limit() -> None:
    assert scan_cost(findings(10_000), 0, Layout(1, 1), None).at_least
    cost = scan_cost(findings(10_000), 10**9, Layout(1, 1), None)
    assert not cost.at_least
    assert cost.units.mean == pytest.approx(10**9 / 8192)


def test_an_index_costs_what_its_rows_fill() -> None:
    """10,000 rows of 100 bytes are 244.1 blocks of 4 KB."""
    cost = index_cost(findings(10_000, 8_000, 12_000), 100, Layout(1, 1), None)
    assert cost.units.mean == pytest.approx(0.5 * 1_000_000 / 4096 + 0.5)
    assert cost.units.low == pytest.approx(0.5 * 800_000 / 4096 + 0.5)
    assert cost.requests == pytest.approx(1, abs=1)


class Fleet(NamedTuple):
    segments: int
    groups: int
    at_once: int


def fleet_of(layout: Layout, one_worker: bool = False) -> Fleet:
    return Fleet(layout.segments, *groups_of_layout(layout, one_worker))


def fleet_for(keys: float, **options) -> Fleet:
    wishes = wishes_of_fleet(Request("Orders", "keys", **options), 0, one_worker=False)
    return fleet_of(layout_for_skip(keys, HOPS, wishes))


def test_two_million_keys_take_seven_workers() -> None:
    """12,000 read units a second are 24,000 requests, and a worker's CPU sends 3,800."""
    fleet = fleet_for(2_000_000)
    assert fleet.at_once == 7
    assert fleet.groups >= 4 * fleet.at_once


def test_ten_billion_keys_stay_within_a_million_segments() -> None:
    fleet = fleet_for(1e10, max_read_rate=40_000)
    assert fleet.at_once == 21
    assert 290_000 < fleet.segments < 310_000
    assert fleet.groups < 10_000


def test_a_small_table_has_one_worker() -> None:
    assert fleet_for(50) == Fleet(1, 1, 1)
    assert fleet_for(5_000).at_once == 1


def test_a_low_rate_has_few_workers() -> None:
    assert fleet_for(2_000_000, max_read_rate=1_000).at_once == 1
    assert fleet_for(2_000_000, max_read_rate=2_500).at_once == 2


def test_the_limits_of_the_user_are_kept() -> None:
    assert fleet_for(5_000, max_concurrency=20).at_once <= 20
    assert fleet_for(2_000_000, max_concurrency=40).at_once == 40
    fleet = fleet_for(2_000_000, segments=1_000_000, max_concurrency=100)
    assert fleet == Fleet(1_000_000, 31_250, 100)


def test_an_index_is_read_by_one_worker() -> None:
    request = Request("Orders", "keys", segments=100, max_concurrency=50)
    wishes = wishes_of_fleet(request, 0, one_worker=True)
    assert fleet_of(spread(wishes, 100), one_worker=True) == Fleet(100, 1, 1)


@given(segments=st.integers(1, 5_000), processes=st.integers(1, 50))
def test_every_segment_is_in_one_group(segments: int, processes: int) -> None:
    fleet = fleet_of(Layout(segments, min(8 * processes, segments), processes))
    assert 1 <= fleet.at_once <= fleet.groups <= segments
    group_by_segment = {}
    for group in range(fleet.groups):
        order = list(group_order(group, fleet.groups, segments))
        assert list(group_order(group, fleet.groups, segments, 1)) == order[1:]
        for segment in order:
            assert group_by_segment.setdefault(segment, group) == group
            assert group_of(segment, segments, fleet.groups) == group
    assert len(group_by_segment) == segments


@given(
    remaining=st.floats(0, 1e6),
    spent=st.dictionaries(st.integers(0, 99), st.floats(0, 1e5)),
    groups=st.sets(st.integers(0, 99)),
)
def test_allowances_never_exceed_the_remaining_units(
    remaining: float, spent: dict[int, float], groups: set[int]
) -> None:
    shares = allowances(remaining, spent, sorted(groups))
    more = sum(units - spent.get(group, 0.0) for group, units in shares.items())
    assert more <= remaining * 1.000001 + 1e-6
    assert set(shares) <= groups
    if remaining >= 0.5 and groups:
        assert shares
        assert more == pytest.approx(remaining)


def test_a_run_with_a_check_has_segments_that_one_slice_can_read() -> None:
    assert segments_to_check(0, None) == 0
    assert segments_to_check(100 * 10**9, None) == 391
    slow = segments_to_check(100 * 10**9, 100.0)
    assert 100e9 / slow / 8192 / 100 <= 30
    assert segments_to_check(10**15, 1.0) == 1_000_000
    request = Request("Orders", "keys", verify_share=0.01)
    wishes = wishes_of_fleet(request, 10**12, one_worker=False)
    assert layout_for_skip(1e6, HOPS, wishes).segments >= 10**12 / 256e6


def test_workers_share_the_rate_and_stay_within_the_reservation() -> None:
    assert workers_at_once(100, None, None) == 100
    assert workers_at_once(100, 120.0, None) == 30
    assert workers_at_once(100, 1.0, None) == 1
    assert workers_at_once(100, None, 20) == 20
    assert workers_at_once(10, 1_000.0, 20) == 10


def test_a_cost_is_the_sum_of_its_services() -> None:
    cost = run_cost(FunctionSize(1769, "arm64"), 1_000_000, 913.0, 44, 44, 88)
    assert cost["dynamodb"] == pytest.approx(0.125)
    assert cost["lambda"] == pytest.approx(0.0210, abs=0.0005)
    assert cost["step_functions"] == pytest.approx((10 + 88 + 88) * 0.000025)
    services = ("dynamodb", "lambda", "step_functions", "s3")
    assert cost["total"] == pytest.approx(sum(cost[name] for name in services))
    assert "2026-08" in cost["prices"]
    on_x86 = run_cost(FunctionSize(1769, "x86_64"), 1_000_000, 913.0, 44, 44, 88)
    assert on_x86["lambda"] > cost["lambda"]
