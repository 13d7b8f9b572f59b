"""How a run is shared out: groups, rate, read units."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyhop.jobs.layout import (
    Layout,
    allowances,
    groups_of_layout,
    layout_for_skip,
    segments_to_check,
    spread,
    workers_at_once,
)
from keyhop.jobs.price import FunctionSize, run_cost
from keyhop.jobs.request import Request, wishes_of_fleet
from keyhop.scan.segments import group_of, group_order
from keyhop.scan.statistics import Forecast

HALF_A_UNIT_A_KEY = Forecast(0.5, 1.0)


class Fleet(NamedTuple):
    segments: int
    groups: int
    at_once: int


def fleet_of(layout: Layout, one_worker: bool = False) -> Fleet:
    return Fleet(layout.segments, *groups_of_layout(layout, one_worker))


def fleet_for(keys: float, **wanted) -> Fleet:
    wishes = wishes_of_fleet(Request("Orders", "keys", **wanted), 0, one_worker=False)
    return fleet_of(layout_for_skip(keys, HALF_A_UNIT_A_KEY, wishes))


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


def test_what_the_user_fixes_holds() -> None:
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
    seen = {}
    for group in range(fleet.groups):
        for segment in group_order(group, fleet.groups, segments):
            assert seen.setdefault(segment, group) == group
            assert group_of(segment, segments, fleet.groups) == group
    assert len(seen) == segments


@given(
    left=st.floats(0, 1e6),
    spent=st.dictionaries(st.integers(0, 99), st.floats(0, 1e5)),
    groups=st.sets(st.integers(0, 99)),
)
def test_allowances_never_come_to_more_than_is_left(
    left: float, spent: dict[int, float], groups: set[int]
) -> None:
    shares = allowances(left, spent, sorted(groups))
    more = sum(units - spent.get(group, 0.0) for group, units in shares.items())
    assert more <= left * 1.000001 + 1e-6
    assert set(shares) <= groups
    if left >= 0.5 and groups:
        assert shares
        assert more == pytest.approx(left)


def test_a_run_that_is_to_be_checked_has_segments_that_can_be_read_in_one_go() -> None:
    assert segments_to_check(0, None) == 0
    assert segments_to_check(100 * 10**9, None) == 391
    slow = segments_to_check(100 * 10**9, 100.0)
    assert 100e9 / slow / 8192 / 100 <= 30
    assert segments_to_check(10**15, 1.0) == 1_000_000
    request = Request("Orders", "keys", verify_share=0.01)
    wishes = wishes_of_fleet(request, 10**12, one_worker=False)
    assert layout_for_skip(1e6, HALF_A_UNIT_A_KEY, wishes).segments >= 10**12 / 256e6


def test_a_share_pays_for_a_page_and_a_reservation_is_not_exceeded() -> None:
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
    dearer = run_cost(FunctionSize(1769, "x86_64"), 1_000_000, 913.0, 44, 44, 88)
    assert dearer["lambda"] > cost["lambda"]
