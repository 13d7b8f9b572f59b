"""Each threshold of report-statistics.md from both sides, with figures worked out by hand."""

import math
import random

import pytest
from keyhop.report.estimate import Estimate
from keyhop.report.statistics.lengths import (
    Measured,
    beyond,
    distinct_keys,
    error_of,
    gini,
    lorenz,
    quantiles,
    share_beyond,
    unrepresented,
    unseen,
    without_noise,
)
from keyhop.report.statistics.order import Reservoir, density, kendall, spearman
from keyhop.report.statistics.shares import (
    Item,
    effective,
    share_of,
    top,
    weighted_mean,
    weighted_quantiles,
    weighted_share,
    widened,
)
from keyhop.scan.statistics import Z, count_interval, proportion_limits, rank_limits, t_quantile


def exact(*lengths: float) -> list[Estimate]:
    return [Estimate.exactly(one, 1, "counted") for one in lengths]


def measured(*lengths: float, error: float = 0.0) -> list[Estimate]:
    return [Measured(one, one * 0.9, one * 1.1, 1, "", error=error) for one in lengths]


def cut(at: float, count: int = 1) -> list[Estimate]:
    return [Estimate.at_least(at, 7, "one page")] * count


def keys(value: float, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate(value, low or value, high or value, 9, "")


def is_about(estimate: Estimate | None, value: float, low: float, high: float) -> None:
    figures = (estimate.value, estimate.low, estimate.high)
    assert figures == pytest.approx((value, low, high), rel=1e-6, abs=1e-9)


def test_half_of_the_segments_leave_half_of_the_variance() -> None:
    limits = count_interval([8, 8])
    unread = math.sqrt(0.8)
    low, high = (16 + unread * (end - 16) for end in (limits.low, limits.high))
    is_about(distinct_keys([8, 8], 10), 80, 5 * low, 5 * high)
    assert distinct_keys([3, 4], 2) == Estimate.exactly(7, 7, "complete count")
    assert distinct_keys([], 2) is None
    found = distinct_keys([1, 0], 3)
    assert found.low == 1  # the key that was read


def test_quantiles_need_ten_collections_beyond_them() -> None:
    hundred = exact(*range(1, 101))
    found = quantiles(hundred, (0.5, 0.9, 0.91, 0.1, 0.09))
    assert set(found) == {0.5, 0.9, 0.1}
    is_about(found[0.5], 51, 40, 61)
    assert set(quantiles(exact(*range(20)), (0.5, 0.51))) == {0.5}


def test_measured_lengths_are_right_to_a_quarter_at_best() -> None:
    is_about(quantiles(measured(*[10.0] * 40), (0.5,))[0.5], 10, 8, 12.5)
    is_about(quantiles(exact(*[10.0] * 40), (0.5,))[0.5], 10, 10, 10)
    is_about(quantiles([*exact(*[10.0] * 40), *cut(99, 40)], (0.3,))[0.3], 10, 10, 10)


def test_the_noise_of_measuring_is_taken_from_the_spread_of_ten_lengths() -> None:
    """Logarithms of 1 and -1 vary by 1: without 0.36 of it by 0.64, and the median is raised."""
    ten = measured(*[math.exp(-1)] * 5, *[math.e] * 5, error=0.36)
    smaller = [math.exp(0.18 - 0.8)] * 5 + [math.exp(0.18 + 0.8)] * 5
    empty = Measured(0, 0, 5, 1, "")
    others = [*exact(7), *cut(9), empty]
    assert without_noise([*ten, *others]) == pytest.approx([*smaller, 7, 9, 0])
    nine = measured(*[math.exp(-1)] * 5, *[math.e] * 4, error=0.36)
    assert without_noise(nine) == [length.value for length in nine]
    all_noise = without_noise(measured(*[math.exp(-1)] * 5, *[math.e] * 5, error=2.0))
    assert all_noise == pytest.approx([math.e] * 10)
    assert error_of(Estimate(5, 4, 6, 1, "")) == pytest.approx((math.log(1.5) / (2 * Z)) ** 2)
    assert error_of(Estimate(5, 0, 6, 1, "")) == pytest.approx((math.log(6) / (2 * Z)) ** 2)


def test_a_curve_has_a_hundred_points() -> None:
    points = lorenz(exact(*range(1, 201)), keys(200), 20_100)
    assert len(points) == 101
    assert points[1] == pytest.approx((0.01, 3 / 20_100))
    assert points[-1] == (1, 1)
    assert len(lorenz(exact(*range(1, 202)), keys(201), 0)) == 102
    assert len(lorenz(exact(*range(1, 200)), keys(199), 0)) == 200
    assert lorenz(exact(0, 0), keys(2), 0) == []
    assert lorenz([], keys(2), 9) == []


def test_the_gini_coefficient_of_one_to_ten() -> None:
    """It is (n - 1) / 3n; the jump to what was not sampled raises it."""
    found = gini(exact(*range(1, 11)), keys(10), 0, random.Random(1))
    assert found.value == pytest.approx(0.3)
    assert 0.1 < found.low < 0.25
    assert 0.3 < found.high <= 0.4
    more = gini(exact(*range(1, 11)), keys(10), 110, random.Random(1))
    assert more.value == pytest.approx(0.65)
    assert gini(exact(*range(1, 10)), keys(9), 45, random.Random(1)) is None


@pytest.mark.parametrize(("apart", "may_be_equal"), [(30, True), (31, False)])
def test_measured_lengths_that_may_all_be_equal(apart: int, may_be_equal: bool) -> None:
    """Of 100 intervals of one length, 70 and more contain it; the other lengths vary from 20 on."""
    around = [Estimate(30.0 + at % 20, 20.0, 60.0, 2, "windows") for at in range(100 - apart)]
    other = [Estimate(100.0, 80.0, 120.0, 2, "windows") for _ in range(apart)]
    found = gini([*around, *other], keys(1_000), 0, random.Random(1))
    assert (found.low == 0) is may_be_equal
    assert found.value > 0.05


TENS = exact(*[10.0] * 100)


def test_what_is_left_of_the_count_has_the_errors_of_keys_and_lengths() -> None:
    is_about(unseen(TENS, keys(1000), 20_000), 0.5, 0.5, 0.5)
    factor = math.exp(0.01)
    is_about(unseen(TENS, keys(1000, 990, 1010), 20_000), 0.5, 1 - factor / 2, 1 - 1 / factor / 2)
    factor = math.exp(Z * math.sqrt(4 / 99) / 10)
    uneven = exact(*[8.0] * 50, *[12.0] * 50)
    is_about(unseen(uneven, keys(1000), 20_000), 0.5, 1 - factor / 2, 1 - 1 / factor / 2)
    is_about(unseen(TENS, keys(1000), 20_000, drift=8_000), 0.5, 1 / 6, 1 - 10 / 28)
    is_about(unseen(TENS, keys(1000), 5_000), 0, 0, 0)
    assert unseen(TENS, keys(1000), 0) is None
    assert unseen([*TENS, *cut(10)], keys(1000), 20_000) is None


def test_no_share_where_one_collection_has_more_than_six_hundredths() -> None:
    assert unseen(exact(*[1.0] * 94, 6.0), keys(95), 200) is not None
    assert unseen(exact(*[1.0] * 94, 6.1), keys(95), 200) is None
    beyond_it = share_beyond(exact(*[1.0] * 94, 6.1), keys(95), 200, 5)
    assert beyond_it.value == pytest.approx((200 - 94) / 200)
    assert unseen(exact(*[0.0] * 94), keys(95), 200) is None


def test_a_threshold_is_blurred_by_half_where_lengths_were_measured() -> None:
    def low(of: list[Estimate], threshold: float) -> float:
        found = share_beyond(of, keys(105), 1_250, threshold)
        assert found.value == pytest.approx(0.2)
        return found.low

    for length, is_blurred in ((29.9, True), (30.0, False)):
        assert (low(measured(*[10.0] * 100, *[length] * 5), 20) < 0.1) == is_blurred
        assert low(exact(*[10.0] * 100, *[length] * 5), 20) > 0.1
    assert share_beyond(measured(*[10.0] * 100), keys(100), 1_250, 15) is None
    assert share_beyond(measured(*[10.0] * 100), keys(100), 1_250, 15.1) is not None
    assert share_beyond(TENS, keys(100), 1_250, 10) is None
    assert share_beyond(TENS, keys(100), 1_250, 10.1) is not None


def test_cut_collections_have_to_be_cut_at_the_threshold() -> None:
    of = [*TENS, *cut(50, 3)]
    assert share_beyond(of, keys(103), 1_250, 50) is not None
    assert share_beyond(of, keys(103), 1_250, 51) is None
    assert share_beyond([*measured(*[10.0] * 100), *cut(75)], keys(103), 1_250, 50) is not None
    assert share_beyond([*measured(*[10.0] * 100), *cut(74)], keys(103), 1_250, 50) is None


def test_the_ladder_ends_above_the_largest() -> None:
    assert set(beyond(exact(*[13.0] * 100), keys(100), 2_000)) == {20}
    assert set(beyond(exact(*[13.4] * 100), keys(100), 2_000)) == {20, 50}
    assert set(beyond(exact(*[330.0] * 50), keys(50), 20_000)) == {500}
    assert set(beyond(exact(*[334.0] * 50), keys(50), 20_000)) == {500, 1000}


def test_what_a_sample_does_not_represent() -> None:
    tens, none = [10.0] * 100, [0.0] * 100
    is_about(unrepresented([], [], keys(9), 9), 0, 0, 1)
    is_about(unrepresented(tens, none, keys(100), 0), 0, 0, 1)
    is_about(unrepresented([0.0], [0.0], keys(9), 9), 1, 0, 1)
    is_about(unrepresented(tens, none, keys(100), 1_000), 0, 0, 0)
    is_about(unrepresented(tens, none, keys(200), 4_000), 0.5, 0.5, 0.5)
    # The count of items is too old if a tenth more are seen.
    is_about(unrepresented(tens, none, keys(110), 1_000), 0, 0, 0)
    is_about(unrepresented(tens, none, keys(111), 1_000), 0, 0, 1)
    # One that has more than six hundredths represents itself alone.
    ones = [1.0] * 94
    found = unrepresented([*ones, 7.0], [0.0] * 95, keys(950), 1_912)
    assert found.value == pytest.approx(0.5)
    found = unrepresented([*ones, 6.0], [0.0] * 95, keys(950), 2_000)
    assert found.value == pytest.approx(0.5)
    # All of two collections, or one of many.
    is_about(unrepresented([10.0, 30.0], [0.0, 0.0], keys(2), 80), 0.5, 0.5, 0.5)
    assert unrepresented([10.0], [0.0], keys(1), 20).value == pytest.approx(0.5)
    assert unrepresented([10.0], [0.0], keys(9), 20).value == pytest.approx(0.5)


def test_the_errors_of_what_a_sample_does_not_represent() -> None:
    tens, none = [10.0] * 100, [0.0] * 100
    factor = math.exp(Z * 0.02)  # a hundred errors of a fifth
    is_about(unrepresented(tens, [0.04] * 100, keys(100), 1_000), 0, 0, 1 - 1 / factor)
    is_about(
        unrepresented(tens, [0.04] * 100, keys(200), 4_000), 0.5, 1 - factor / 2, 1 - 1 / factor / 2
    )
    factor = math.exp(0.1)
    found = unrepresented(tens, none, keys(200, 180, 220), 4_000)
    is_about(found, 0.5, 1 - factor / 2, 1 - 1 / factor / 2)
    factor = math.exp(Z * math.sqrt(0.5 * 4 / 99 * 200**2) / 2_000)
    found = unrepresented([8.0] * 50 + [12.0] * 50, none, keys(200), 4_000)
    is_about(found, 0.5, 1 - factor / 2, 1 - 1 / factor / 2)


def test_correlations_need_five_pairs() -> None:
    xs, ys = [1, 2, 3, 4, 5], [1, 3, 2, 5, 4]
    middle, error = math.atanh(0.6), Z * math.sqrt(0.437)
    is_about(kendall(xs, ys), 0.6, math.tanh(middle - error), math.tanh(middle + error))
    middle, error = math.atanh(0.8), Z * math.sqrt((1 + 0.64 / 2) / 2)
    is_about(spearman(xs, ys), 0.8, math.tanh(middle - error), math.tanh(middle + error))
    for correlation in (kendall, spearman):
        assert correlation(xs[:4], ys[:4]) is None
        assert correlation(ys, [2] * 5) is None
        assert correlation([2] * 5, ys) is None
        assert correlation(range(40), range(40)).value == pytest.approx(1)
        assert correlation(range(40), range(40)[::-1]).value == pytest.approx(-1)
    tied = spearman([1, 2, 2, 3, 4], [1, 2, 2, 4, 3])
    assert tied.value == pytest.approx(8.5 / 9.5)
    assert kendall([1, 2, 2, 3, 4], [1, 3, 2, 2, 5]).value == pytest.approx(6 / 9)


def test_a_density_counts_a_gap_on_each_side() -> None:
    tens = range(0, 100, 10)
    is_about(density(tens, keys(100, 90, 110)), 100 / 109, 90 / 145, 110 / 91)
    is_about(density(tens, keys(5)), 5 / 91, 5 / 91, 5 / 91)
    assert density(range(5), keys(5)) is not None
    assert density(range(4), keys(4)) is None


def test_a_share_has_as_many_draws_as_collections_at_most() -> None:
    items = [Item(at, 1.0, float(at < 30)) for at in range(100)]
    draws = 99 * (Z / t_quantile(99)) ** 2
    found = weighted_share(items)
    is_about(found, 0.3, *proportion_limits(0.3 * draws, draws))
    assert effective([1.0, 1.0, 2.0]) == pytest.approx(16 / 6)
    uneven = [Item("a", 1.0, 1.0), Item("b", 1.0, 1.0), Item("c", 2.0, 1.0)]
    is_about(weighted_share(uneven), 1, proportion_limits(16 / 6, 16 / 6)[0], 1)
    is_about(weighted_share([Item("a", 2.0, 1.0)]), 1, *proportion_limits(1, 1))
    with_nothing = [Item("a", 2.0, 1.0), Item("b", 0.0, 0.0)]
    is_about(weighted_share(with_nothing), 1, *proportion_limits(1, 1))
    is_about(weighted_mean(with_nothing), 1, 1, 1)
    assert weighted_share([Item("a", 0.0, 1.0)]) is None
    is_about(widened(Estimate(0.5, 0.4, 0.6, 9, ""), 0.1), 0.5, 0.36, 0.64)


def test_a_mean_has_no_end_by_one_collection() -> None:
    margin = 5 * t_quantile(1)
    two = [Item("a", 1.0, 10.0), Item("b", 1.0, 20.0)]
    is_about(weighted_mean(two), 15, max(0.0, 15 - margin), 15 + margin)
    three = [Item(at, 1.0, 9.0 + at) for at in range(3)]
    margin = t_quantile(2) / math.sqrt(3)
    is_about(weighted_mean(three), 10, 10 - margin, 10 + margin)
    is_about(weighted_mean(two[:1]), 10, 0, math.inf)
    assert weighted_mean([Item("a", 0.0, 1.0)]) is None


HUNDRED = [Item(at, 1.0, float(at)) for at in range(1, 101)]


def test_a_quantile_of_sizes_needs_ten_draws_beyond_it_for_an_end() -> None:
    found = weighted_quantiles(HUNDRED, (0.5, 0.1, 0.09, 0.9, 0.91, 0.99, 0.995))
    assert {level for level in found if math.isinf(found[level].high)} == {0.91, 0.99}
    assert set(found) == {0.5, 0.1, 0.9, 0.91, 0.99}
    is_about(found[0.5], 50, 40, 61)
    assert weighted_quantiles(HUNDRED, (0.9,), beyond=11)[0.9].high == math.inf


def test_what_is_not_represented_may_lie_below_or_above_all_sizes() -> None:
    def half(part: float) -> Estimate:
        return weighted_quantiles(HUNDRED, (0.5,), unrepresented=part)[0.5]

    is_about(half(0.2), 50, 28, 73)
    is_about(half(0.5), 50, 0, 100)
    assert half(0.51).high == math.inf
    is_about(half(1.0), 50, 0, math.inf)


def test_a_key_is_found_by_three_hits() -> None:
    found = top([["a"] * 4 + ["b"] * 3 + ["c"] * 2], 9, "draws")
    assert [*found] == ["a", "b"]
    is_about(found["b"], 3 / 9, *proportion_limits(3, 9))
    assert [*top([["a"] * 4 + ["b"] * 3], 1, "draws")] == ["a"]
    assert top([], 9, "draws") == {}
    apart = top([["a"] * 5, ["b"] * 5], 9, "draws")
    is_about(apart["a"], 0.5, *proportion_limits(0.5, 1))
    mixed = top([["a", "b"] * 5, ["b", "a"] * 5], 9, "draws")
    is_about(mixed["a"], 0.5, *proportion_limits(10, 20))


def test_limits_are_those_of_published_tables() -> None:
    """Rule of three; Clopper and Pearson's 3 of 10; the median of 100 lies in ranks 40 to 61."""
    assert proportion_limits(0, 60)[1] == pytest.approx(0.0596, abs=1e-3)
    assert proportion_limits(3, 10) == pytest.approx((0.0667, 0.6525), abs=1e-4)
    assert rank_limits(100, 0.5) == (40, 61)
    assert rank_limits(5, 0.5) == (0, 6)
    assert t_quantile(4) == pytest.approx(2.776, rel=0.01)
    assert t_quantile(0) == math.inf


def test_no_key_in_a_few_segments_is_not_no_key() -> None:
    found = distinct_keys([0, 0], 1000)
    assert found.value == found.low == 0
    assert found.high > 1000


def test_sixty_without_an_exception_bound_a_share_under_six_hundredths() -> None:
    found = share_of(0, 60)
    assert found.against(0.06) == "below"
    assert share_of(0, 0) is None


def test_a_quantile_among_cut_collections_has_no_upper_end() -> None:
    cut = [Estimate.at_least(7, 7, "one page")] * 60
    found = quantiles([*exact(*[2.0] * 40), *cut], (0.5, 0.1))
    assert found[0.5].value == 7
    assert math.isinf(found[0.5].high)
    assert found[0.1].high == 2


def test_items_count_by_their_weight_and_collections_as_one() -> None:
    items = [Item(at, 1.0, 1.0) for at in range(50) for _ in range(20)]
    assert effective(item.weight for item in items) == 1_000
    found = weighted_share(items)
    assert found.value == 1
    assert found.low == pytest.approx(proportion_limits(50, 50)[0])


def test_equal_collections_have_no_gini_and_a_giant_is_the_last_point() -> None:
    assert gini(exact(*[10.0] * 50), keys(1_000), 10_000, random.Random(1)).value == pytest.approx(
        0
    )
    points = lorenz(exact(*[10.0] * 50), keys(1_000), 20_000)
    assert points[0] == (0, 0)
    assert points[-2:] == [(1, 0.5), (1, 1)]
    half = gini(exact(*[10.0] * 50), keys(1_000), 20_000, random.Random(1))
    assert half.value == pytest.approx(0.5)


def test_a_reservoir_keeps_no_more_than_its_maximum() -> None:
    kept: Reservoir[int] = Reservoir(3)
    for value in range(20):
        kept.offer(value)
        assert len(kept) == min(value + 1, 3)
    assert {*kept} <= {*range(20)}
    assert kept != [0, 1, 2]
