"""What each method says of cases that can be worked out by hand."""

import math
import random

import pytest
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.report.estimate import Estimate
from keyhop.report.sample.asks import Answer, Asks
from keyhop.report.sample.examine import place
from keyhop.report.statistics.lengths import (
    distinct_keys,
    gini,
    lorenz,
    quantiles,
    share_beyond,
    unseen,
)
from keyhop.report.statistics.order import Reservoir, density, kendall, spearman
from keyhop.report.statistics.shares import Item, effective, share_of, top, weighted_share
from keyhop.scan.statistics import proportion_limits, rank_limits, t_quantile


def exact(*lengths: float) -> list[Estimate]:
    return [Estimate.exactly(one, 1, "counted") for one in lengths]


def test_limits_are_those_of_published_tables() -> None:
    """Rule of three; Clopper and Pearson's 3 of 10; the median of 100 lies in ranks 40 to 61."""
    assert proportion_limits(0, 60)[1] == pytest.approx(0.0596, abs=1e-3)
    assert proportion_limits(3, 10) == pytest.approx((0.0667, 0.6525), abs=1e-4)
    assert rank_limits(100, 0.5) == (40, 61)
    assert rank_limits(5, 0.5) == (0, 6)
    assert t_quantile(4) == pytest.approx(2.776, rel=0.01)
    assert t_quantile(0) == math.inf


def test_all_segments_are_a_complete_count() -> None:
    assert distinct_keys([3, 4], 2) == Estimate.exactly(7, 7, "complete count")
    assert distinct_keys([], 2) is None


def test_no_key_in_a_few_segments_is_not_no_key() -> None:
    found = distinct_keys([0, 0], 1000)
    assert found is not None
    assert found.value == found.low == 0
    assert found.high > 1000


def test_sixty_without_an_exception_bound_a_share_under_six_hundredths() -> None:
    found = share_of(0, 60)
    assert found is not None
    assert found.against(0.06) == "below"
    assert share_of(0, 0) is None


def test_a_quantile_beyond_which_too_few_were_sampled_is_silent() -> None:
    assert set(quantiles(exact(*range(1, 101)), (0.5, 0.9, 0.99))) == {0.5, 0.9}
    assert quantiles(exact(*range(1, 20)), (0.5,)) == {}


def test_a_quantile_among_cut_collections_has_no_upper_end() -> None:
    cut = [Estimate.at_least(7, 7, "one page")] * 60
    found = quantiles([*exact(*[2.0] * 40), *cut], (0.5, 0.1))
    assert found[0.5].value == 7
    assert math.isinf(found[0.5].high)
    assert found[0.1].high == 2


def test_what_the_sample_leaves_of_the_count_is_unseen() -> None:
    keys = Estimate(1_000, 990, 1_010, 1_000, "")
    found = unseen(exact(*[10.0] * 100), keys, 20_000)
    assert found is not None
    assert found.value == pytest.approx(0.5)
    assert found.low > 0.45


def test_one_that_outweighs_the_others_is_a_reason_for_silence() -> None:
    keys = Estimate(1_000, 990, 1_010, 1_000, "")
    assert unseen(exact(*[10.0] * 100, 500.0), keys, 20_000) is None
    beyond = share_beyond(exact(*[10.0] * 100, 500.0), keys, 20_000, 100)
    assert beyond is not None
    assert beyond.value == pytest.approx(0.5, abs=0.01)


def test_where_no_sampled_collection_is_smaller_nothing_is_certain() -> None:
    keys = Estimate(1_000, 990, 1_010, 1_000, "")
    assert share_beyond(exact(*[10.0] * 100), keys, 20_000, 5) is None


def test_writes_since_the_count_widen_it() -> None:
    keys = Estimate(1_000, 1_000, 1_000, 1_000, "")
    calm = unseen(exact(*[10.0] * 100), keys, 20_000)
    busy = unseen(exact(*[10.0] * 100), keys, 20_000, drift=8_000)
    assert calm is not None
    assert busy is not None
    assert busy.low < calm.low
    assert busy.high > calm.high


def test_items_count_by_their_weight_and_collections_as_one() -> None:
    items = [Item(at, 1.0, 1.0) for at in range(50) for _ in range(20)]
    assert effective(item.weight for item in items) == 1_000
    found = weighted_share(items)
    assert found is not None
    assert found.value == 1
    assert found.low == pytest.approx(proportion_limits(50, 50)[0])


def test_the_commonest_first_and_nobody_without_draws() -> None:
    draws = [["a", "b", "a"], ["a", "c", "b"], ["b", "a", "d"]]
    assert [*top(draws, 10, "draws")] == ["a", "b"]
    assert top([], 10, "draws") == {}


@pytest.mark.parametrize("hidden", [0.0, 0.1, 0.3333, 0.77777, 0.99999])
def test_a_place_is_found_in_twelve_questions(hidden: float) -> None:
    asked = []

    def source(asks: Asks[float]) -> float:
        ask = next(asks)
        while True:
            asked.append((ask.parameters["Segment"], ask.parameters["TotalSegments"]))
            segment, segments = asked[-1]
            try:
                ask = asks.send(Answer([], None, refused=int(hidden * segments) != segment))
            except StopIteration as end:
                return end.value

    found = source(place(KeySpace((KeyAttribute("pk", "S"),), None), {"pk": {"S": "a"}}))
    assert len(asked) == 12
    assert abs(found - hidden) <= 1 / (1 << 12) / 2
    assert asked[0] == (0, 2)


def test_correlations_of_what_grows_falls_and_does_neither() -> None:
    xs = list(range(40))
    chance = random.Random(2)
    for correlation in (kendall, spearman):
        up, down = correlation(xs, xs), correlation(xs, xs[::-1])
        none = correlation(xs, [chance.random() for _ in xs])
        assert up.value == pytest.approx(1)
        assert down.value == pytest.approx(-1)
        assert none.low < 0 < none.high
        assert correlation([1, 2], [1, 2]) is None
        assert correlation([1] * 9, list(range(9))) is None
    assert kendall([1, 2, 2, 3, 4], [1, 3, 2, 2, 5]).value == pytest.approx(6 / 9)


def test_numbers_that_are_all_used_are_dense() -> None:
    chance = random.Random(4)
    keys = Estimate(10_000, 9_500, 10_500, 400, "")
    dense = density(chance.sample(range(10_000), 60), keys)
    sparse = density(chance.sample(range(10**9), 60), keys)
    assert dense.low > 0.5
    assert sparse.high < 0.5


def test_equal_collections_have_no_gini_and_a_giant_is_the_last_point() -> None:
    keys = Estimate(1_000, 1_000, 1_000, 1_000, "")
    assert gini(exact(*[10.0] * 50), keys, 10_000, random.Random(1)).value == pytest.approx(0)
    points = lorenz(exact(*[10.0] * 50), keys, 20_000)
    assert points[0] == (0, 0)
    assert points[-2:] == [(1, 0.5), (1, 1)]
    half = gini(exact(*[10.0] * 50), keys, 20_000, random.Random(1))
    assert half.value == pytest.approx(0.5)


def test_a_reservoir_keeps_no_more_than_its_maximum() -> None:
    kept: Reservoir[int] = Reservoir(3)
    for value in range(20):
        kept.offer(value)
        assert len(kept) == min(value + 1, 3)
    assert {*kept} <= {*range(20)}
    assert kept != [0, 1, 2]
