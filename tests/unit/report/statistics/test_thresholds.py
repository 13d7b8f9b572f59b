"""Tests of each threshold of report-statistics.md from both sides, with hand-computed figures."""

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
    return [Estimate.exactly(length, 1, "counted") for length in lengths]


def measured(*lengths: float, error: float = 0.0) -> list[Estimate]:
    return [Measured(length, length * 0.9, length * 1.1, 1, "", error=error) for length in lengths]


def cut_lengths(minimum: float, count: int = 1) -> list[Estimate]:
    return [Estimate.at_least(minimum, 7, "one page")] * count


def keys(value: float, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate(value, low or value, high or value, 9, "")


def check(estimate: Estimate | None, value: float, low: float, high: float) -> None:
    figures = (estimate.value, estimate.low, estimate.high)
    assert figures == pytest.approx((value, low, high), rel=1e-6, abs=1e-9)


def test_the_variance_of_keys_shrinks_with_the_unread_segments() -> None:
    limits = count_interval([8, 8])
    unread = math.sqrt(0.8)
    low, high = (16 + unread * (end - 16) for end in (limits.low, limits.high))
    check(distinct_keys([8, 8], 10), 80, 5 * low, 5 * high)
    assert distinct_keys([3, 4], 2) == Estimate.exactly(7, 7, "complete count")
    assert distinct_keys([], 2) is None
    assert distinct_keys([1, 0], 3).low == 1  # the key that was read


def test_quantiles_need_ten_collections_beyond_them() -> None:
    levels = quantiles(exact(*range(1, 101)), (0.5, 0.9, 0.91, 0.1, 0.09))
    assert set(levels) == {0.5, 0.9, 0.1}
    check(levels[0.5], 51, 40, 61)
    assert set(quantiles(exact(*range(20)), (0.5, 0.51))) == {0.5}


def test_quantiles_of_measured_lengths_have_a_margin_of_a_quarter_at_least() -> None:
    check(quantiles(measured(*[10.0] * 40), (0.5,))[0.5], 10, 8, 12.5)
    check(quantiles(exact(*[10.0] * 40), (0.5,))[0.5], 10, 10, 10)
    check(quantiles([*exact(*[10.0] * 40), *cut_lengths(99, 40)], (0.3,))[0.3], 10, 10, 10)


def test_the_spread_of_ten_measured_lengths_is_corrected_for_noise() -> None:
    """The logarithms 1 and -1 have variance 1, and 0.64 without noise. The median rises."""
    ten = measured(*[math.exp(-1)] * 5, *[math.e] * 5, error=0.36)
    smaller = [math.exp(0.18 - 0.8)] * 5 + [math.exp(0.18 + 0.8)] * 5
    empty = Measured(0, 0, 5, 1, "")
    unmeasured = [*exact(7), *cut_lengths(9), empty]
    assert without_noise([*ten, *unmeasured]) == pytest.approx([*smaller, 7, 9, 0])
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
    """It is (n - 1) / 3n, and items that were not sampled raise it."""
    complete = gini(exact(*range(1, 11)), keys(10), 0, random.Random(1))
    assert complete.value == pytest.approx(0.3)
    assert 0.1 < complete.low < 0.25
    assert 0.3 < complete.high <= 0.4
    partial = gini(exact(*range(1, 11)), keys(10), 110, random.Random(1))
    assert partial.value == pytest.approx(0.65)
    assert gini(exact(*range(1, 10)), keys(9), 45, random.Random(1)) is None


@pytest.mark.parametrize(("apart", "may_be_equal"), [(30, True), (31, False)])
def test_measured_lengths_that_may_all_be_equal(apart: int, may_be_equal: bool) -> None:
    """Lengths may be equal if 70 of 100 intervals have a length in common."""
    close = [Estimate(30.0 + at % 20, 20.0, 60.0, 2, "windows") for at in range(100 - apart)]
    far = [Estimate(100.0, 80.0, 120.0, 2, "windows") for _ in range(apart)]
    coefficient = gini([*close, *far], keys(1_000), 0, random.Random(1))
    assert (coefficient.low == 0) is may_be_equal
    assert coefficient.value > 0.05


TENS = exact(*[10.0] * 100)


def test_the_unseen_share_has_the_errors_of_keys_and_lengths() -> None:
    check(unseen(TENS, keys(1000), 20_000), 0.5, 0.5, 0.5)
    factor = math.exp(0.01)
    check(unseen(TENS, keys(1000, 990, 1010), 20_000), 0.5, 1 - factor / 2, 1 - 1 / factor / 2)
    factor = math.exp(Z * math.sqrt(4 / 99) / 10)
    uneven = exact(*[8.0] * 50, *[12.0] * 50)
    check(unseen(uneven, keys(1000), 20_000), 0.5, 1 - factor / 2, 1 - 1 / factor / 2)
    check(unseen(TENS, keys(1000), 20_000, drift=8_000), 0.5, 1 / 6, 1 - 10 / 28)
    check(unseen(TENS, keys(1000), 5_000), 0, 0, 0)
    assert unseen(TENS, keys(1000), 0) is None
    assert unseen([*TENS, *cut_lengths(10)], keys(1000), 20_000) is None


def test_no_unseen_share_is_estimated_if_one_collection_has_over_six_percent() -> None:
    assert unseen(exact(*[1.0] * 94, 6.0), keys(95), 200) is not None
    assert unseen(exact(*[1.0] * 94, 6.1), keys(95), 200) is None
    large = share_beyond(exact(*[1.0] * 94, 6.1), keys(95), 200, 5)
    assert large.value == pytest.approx((200 - 94) / 200)
    assert unseen(exact(*[0.0] * 94), keys(95), 200) is None


def test_a_threshold_is_blurred_by_half_for_measured_lengths() -> None:
    def low(lengths: list[Estimate], threshold: float) -> float:
        beyond_threshold = share_beyond(lengths, keys(105), 1_250, threshold)
        assert beyond_threshold.value == pytest.approx(0.2)
        return beyond_threshold.low

    for length, is_blurred in ((29.9, True), (30.0, False)):
        assert (low(measured(*[10.0] * 100, *[length] * 5), 20) < 0.1) == is_blurred
        assert low(exact(*[10.0] * 100, *[length] * 5), 20) > 0.1
    assert share_beyond(measured(*[10.0] * 100), keys(100), 1_250, 15) is None
    assert share_beyond(measured(*[10.0] * 100), keys(100), 1_250, 15.1) is not None
    assert share_beyond(TENS, keys(100), 1_250, 10) is None
    assert share_beyond(TENS, keys(100), 1_250, 10.1) is not None


def test_partly_read_collections_must_reach_the_threshold() -> None:
    lengths, measured_tens = [*TENS, *cut_lengths(50, 3)], measured(*[10.0] * 100)
    assert share_beyond(lengths, keys(103), 1_250, 50) is not None
    assert share_beyond(lengths, keys(103), 1_250, 51) is None
    assert share_beyond([*measured_tens, *cut_lengths(75)], keys(103), 1_250, 50) is not None
    assert share_beyond([*measured_tens, *cut_lengths(74)], keys(103), 1_250, 50) is None


def test_the_ladder_ends_above_the_largest() -> None:
    assert set(beyond(exact(*[13.0] * 100), keys(100), 2_000)) == {20}
    assert set(beyond(exact(*[13.4] * 100), keys(100), 2_000)) == {20, 50}
    assert set(beyond(exact(*[330.0] * 50), keys(50), 20_000)) == {500}
    assert set(beyond(exact(*[334.0] * 50), keys(50), 20_000)) == {500, 1000}


def test_the_share_that_a_sample_does_not_represent() -> None:
    tens, no_error = [10.0] * 100, [0.0] * 100
    check(unrepresented([], [], keys(9), 9), 0, 0, 1)
    check(unrepresented(tens, no_error, keys(100), 0), 0, 0, 1)
    check(unrepresented([0.0], [0.0], keys(9), 9), 1, 0, 1)
    check(unrepresented(tens, no_error, keys(100), 1_000), 0, 0, 0)
    check(unrepresented(tens, no_error, keys(200), 4_000), 0.5, 0.5, 0.5)
    # The count of items is out of date if the sample shows a tenth more items.
    check(unrepresented(tens, no_error, keys(110), 1_000), 0, 0, 0)
    check(unrepresented(tens, no_error, keys(111), 1_000), 0, 0, 1)
    # A collection with over six percent of the items represents only itself.
    for largest, item_count in ((7.0, 1_912), (6.0, 2_000)):
        lengths = [*[1.0] * 94, largest]
        missing = unrepresented(lengths, [0.0] * 95, keys(950), item_count)
        assert missing.value == pytest.approx(0.5)
    # The sample has both of two collections, or one of several.
    check(unrepresented([10.0, 30.0], [0.0, 0.0], keys(2), 80), 0.5, 0.5, 0.5)
    assert unrepresented([10.0], [0.0], keys(1), 20).value == pytest.approx(0.5)
    assert unrepresented([10.0], [0.0], keys(9), 20).value == pytest.approx(0.5)


def test_the_errors_of_the_share_that_a_sample_does_not_represent() -> None:
    tens, no_error = [10.0] * 100, [0.0] * 100
    factor = math.exp(Z * 0.02)  # a hundred errors of a fifth
    check(unrepresented(tens, [0.04] * 100, keys(100), 1_000), 0, 0, 1 - 1 / factor)
    check(
        unrepresented(tens, [0.04] * 100, keys(200), 4_000), 0.5, 1 - factor / 2, 1 - 1 / factor / 2
    )
    factor = math.exp(0.1)
    missing = unrepresented(tens, no_error, keys(200, 180, 220), 4_000)
    check(missing, 0.5, 1 - factor / 2, 1 - 1 / factor / 2)
    factor = math.exp(Z * math.sqrt(0.5 * 4 / 99 * 200**2) / 2_000)
    missing = unrepresented([8.0] * 50 + [12.0] * 50, no_error, keys(200), 4_000)
    check(missing, 0.5, 1 - factor / 2, 1 - 1 / factor / 2)


def test_correlations_need_five_pairs() -> None:
    xs, ys = [1, 2, 3, 4, 5], [1, 3, 2, 5, 4]
    middle, error = math.atanh(0.6), Z * math.sqrt(0.437)
    check(kendall(xs, ys), 0.6, math.tanh(middle - error), math.tanh(middle + error))
    middle, error = math.atanh(0.8), Z * math.sqrt((1 + 0.64 / 2) / 2)
    check(spearman(xs, ys), 0.8, math.tanh(middle - error), math.tanh(middle + error))
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
    check(density(tens, keys(100, 90, 110)), 100 / 109, 90 / 145, 110 / 91)
    check(density(tens, keys(5)), 5 / 91, 5 / 91, 5 / 91)
    assert density(range(5), keys(5)) is not None
    assert density(range(4), keys(4)) is None


def test_a_share_has_at_most_as_many_draws_as_collections() -> None:
    items = [Item(at, 1.0, float(at < 30)) for at in range(100)]
    draws = 99 * (Z / t_quantile(99)) ** 2
    check(weighted_share(items), 0.3, *proportion_limits(0.3 * draws, draws))
    assert effective([1.0, 1.0, 2.0]) == pytest.approx(16 / 6)
    uneven = [Item("a", 1.0, 1.0), Item("b", 1.0, 1.0), Item("c", 2.0, 1.0)]
    check(weighted_share(uneven), 1, proportion_limits(16 / 6, 16 / 6)[0], 1)
    check(weighted_share([Item("a", 2.0, 1.0)]), 1, *proportion_limits(1, 1))
    with_zero_weight = [Item("a", 2.0, 1.0), Item("b", 0.0, 0.0)]
    check(weighted_share(with_zero_weight), 1, *proportion_limits(1, 1))
    check(weighted_mean(with_zero_weight), 1, 1, 1)
    assert weighted_share([Item("a", 0.0, 1.0)]) is None
    check(widened(Estimate(0.5, 0.4, 0.6, 9, ""), 0.1), 0.5, 0.36, 0.64)


def test_the_mean_of_one_collection_has_no_upper_end() -> None:
    margin = 5 * t_quantile(1)
    two = [Item("a", 1.0, 10.0), Item("b", 1.0, 20.0)]
    check(weighted_mean(two), 15, max(0.0, 15 - margin), 15 + margin)
    three = [Item(at, 1.0, 9.0 + at) for at in range(3)]
    margin = t_quantile(2) / math.sqrt(3)
    check(weighted_mean(three), 10, 10 - margin, 10 + margin)
    check(weighted_mean(two[:1]), 10, 0, math.inf)
    assert weighted_mean([Item("a", 0.0, 1.0)]) is None


HUNDRED = [Item(at, 1.0, float(at)) for at in range(1, 101)]


def test_a_quantile_of_sizes_needs_ten_draws_beyond_it_for_an_end() -> None:
    sizes = weighted_quantiles(HUNDRED, (0.5, 0.1, 0.09, 0.9, 0.91, 0.99, 0.995))
    assert {level for level in sizes if math.isinf(sizes[level].high)} == {0.91, 0.99}
    assert set(sizes) == {0.5, 0.1, 0.9, 0.91, 0.99}
    check(sizes[0.5], 50, 40, 61)
    assert weighted_quantiles(HUNDRED, (0.9,), beyond=11)[0.9].high == math.inf


def test_items_that_are_not_represented_may_have_any_size() -> None:
    def half(part: float) -> Estimate:
        return weighted_quantiles(HUNDRED, (0.5,), unrepresented=part)[0.5]

    check(half(0.2), 50, 28, 73)
    check(half(0.5), 50, 0, 100)
    assert half(0.51).high == math.inf
    check(half(1.0), 50, 0, math.inf)


def test_a_key_needs_three_hits_to_be_among_the_top() -> None:
    shares = top([["a"] * 4 + ["b"] * 3 + ["c"] * 2], 9, "draws")
    assert [*shares] == ["a", "b"]
    check(shares["b"], 3 / 9, *proportion_limits(3, 9))
    assert [*top([["a"] * 4 + ["b"] * 3], 1, "draws")] == ["a"]
    assert top([], 9, "draws") == {}
    clustered = top([["a"] * 5, ["b"] * 5], 9, "draws")
    check(clustered["a"], 0.5, *proportion_limits(0.5, 1))
    mixed = top([["a", "b"] * 5, ["b", "a"] * 5], 9, "draws")
    check(mixed["a"], 0.5, *proportion_limits(10, 20))


def test_limits_are_those_of_published_tables() -> None:
    """Check the rule of three, Clopper and Pearson's 3 of 10, and the median of 100."""
    assert proportion_limits(0, 60)[1] == pytest.approx(0.0596, abs=1e-3)
    assert proportion_limits(3, 10) == pytest.approx((0.0667, 0.6525), abs=1e-4)
    assert rank_limits(100, 0.5) == (40, 61)
    assert rank_limits(5, 0.5) == (0, 6)
    assert t_quantile(4) == pytest.approx(2.776, rel=0.01)
    assert t_quantile(0) == math.inf


def test_a_few_segments_without_keys_do_not_show_an_empty_table() -> None:
    key_count = distinct_keys([0, 0], 1000)
    assert key_count.value == key_count.low == 0
    assert key_count.high > 1000


def test_sixty_without_an_exception_bound_a_share_under_six_hundredths() -> None:
    assert share_of(0, 60).against(0.06) == "below"
    assert share_of(0, 0) is None


def test_a_quantile_among_partly_read_collections_has_no_upper_end() -> None:
    levels = quantiles([*exact(*[2.0] * 40), *cut_lengths(7, 60)], (0.5, 0.1))
    assert levels[0.5].value == 7
    assert math.isinf(levels[0.5].high)
    assert levels[0.1].high == 2


def test_items_count_by_weight_and_each_collection_counts_once() -> None:
    items = [Item(at, 1.0, 1.0) for at in range(50) for _ in range(20)]
    assert effective(item.weight for item in items) == 1_000
    everything = weighted_share(items)
    assert everything.value == 1
    assert everything.low == pytest.approx(proportion_limits(50, 50)[0])


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
    reservoir: Reservoir[int] = Reservoir(3)
    for value in range(20):
        reservoir.offer(value)
        assert len(reservoir) == min(value + 1, 3)
    assert {*reservoir} <= {*range(20)}
    assert reservoir != [0, 1, 2]
