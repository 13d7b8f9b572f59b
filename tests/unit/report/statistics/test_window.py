"""Tests of the length of a collection by windows: right on average, and within its interval."""

import math
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from statistics import fmean

import pytest
from keyhop.report.statistics.lengths import Measured
from keyhop.report.statistics.sort_key import SortKey
from keyhop.report.statistics.window import LengthProber
from keyhop.scan.statistics import t_quantile

from testing.marks import prove
from testing.report_densities import DENSITIES, ratios
from testing.report_population import Collection, Endless, poisson_times, probe

ITEMS = 10_000_000
SECOND = 1_700_000_000
ULID = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def iso(seconds: float) -> str:
    return f"EVENT#{datetime.fromtimestamp(SECOND, UTC) + timedelta(seconds=seconds):%FT%T.%f}Z"


def seconds_of_iso(key: SortKey) -> float:
    text = str(key)[len("EVENT#") :][:26]
    at = datetime.strptime(text + "Z", "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    return (at - datetime.fromtimestamp(SECOND, UTC)).total_seconds()


def ulid(seconds: float) -> str:
    number, text = int((SECOND + seconds) * 1e6) << 60, ""
    for _ in range(26):
        number, digit = divmod(number, 32)
        text = ULID[digit] + text
    return text


def seconds_of_ulid(key: SortKey) -> float:
    number = 0
    for character in str(key):
        number = number * 32 + ULID.index(character)
    return (number >> 60) / 1e6 - SECOND


FORMS: dict[str, tuple[Callable[[float], SortKey], Callable[[SortKey], float]]] = {
    "epoch, N": (lambda at: Decimal(f"{at:.6f}") + SECOND, lambda key: float(key) - SECOND),
    "ISO time behind a tag": (iso, seconds_of_iso),
    "ULID": (ulid, seconds_of_ulid),
}


@pytest.mark.parametrize(
    ("form", "runs"), [("epoch, N", 40), *[prove(form, 200) for form in FORMS]]
)
def test_ten_million_items_by_nine_read_units(form: str, runs: int) -> None:
    """Check bar 5: within 35 % in 90 % of the runs, and inside the interval in 95 %."""
    near = covered = 0
    for seed in range(runs):
        collection = Endless(ITEMS, seed, *FORMS[form])
        prober = LengthProber(random.Random(seed), 7, 9.0)
        spent = 0.0
        while (request := prober.next()) is not None:
            prober.take(collection.page(request))
            spent += 0.5
        length = prober.estimate()
        assert spent <= 9
        near += abs(length.value / ITEMS - 1) <= 0.35
        covered += length.low <= ITEMS <= length.high
    assert near >= 0.9 * runs
    assert covered >= 0.92 * runs


@pytest.mark.parametrize("density", DENSITIES)
def test_the_mean_estimate_is_the_length_for_any_times(density: str) -> None:
    """Check that estimates are unbiased, and that their intervals contain the truth."""
    estimates = ratios(density, 17, 60, 20_000)
    assert fmean(estimate.value for estimate in estimates) == pytest.approx(1, rel=0.12)
    covered = sum(estimate.low <= 1 <= estimate.high for estimate in estimates)
    assert covered >= 0.85 * len(estimates)


def test_three_read_units_count_a_sequence() -> None:
    length = probe(Collection(range(100_000)), random.Random(1), 3).estimate()
    assert length.value == pytest.approx(100_000, rel=0.01)


def test_eight_windows_that_agree_leave_the_assumed_error() -> None:
    """Each has variance 0. Four more windows with variance 0.5 are assumed."""
    length = probe(Collection(range(1_000)), random.Random(1), 9).estimate()
    factor = math.exp(t_quantile(11) * math.sqrt(4 * 0.5 / 11 / 8))
    assert length.value == pytest.approx(1_000, rel=0.01)
    assert length.low == pytest.approx(length.value / factor)
    assert length.high == pytest.approx(length.value * factor)


@pytest.mark.parametrize("items", [1, 3, 4, 7, 20])
def test_half_a_page_of_items_replaces_the_first_page(items: int) -> None:
    request = LengthProber(random.Random(1), 7, head=range(items)).next()
    assert request is not None
    assert (request.start, request.forward) == (None, items < 4)


def test_a_length_is_right_on_average_after_half_a_page() -> None:
    chance, lengths = random.Random(5), []
    for _ in range(200):
        keys = poisson_times(500, chance)
        lengths.append(probe(Collection(keys), chance, 2.5, 7, keys[:4]).estimate())
    assert fmean(length.value for length in lengths) == pytest.approx(500, rel=0.05)
    assert sum(length.low <= 500 <= length.high for length in lengths) >= 190


def test_two_items_show_how_dense_items_are() -> None:
    """Check that the interval does not allow for gaps without items between the windows."""
    length = probe(Collection(range(0, 200_000, 1_000)), random.Random(1), 9, 2).estimate()
    assert length.low > 140


@pytest.mark.parametrize(("tags", "is_known"), [(7, True), (8, False)])
def test_six_tags_are_skipped(tags: int, is_known: bool) -> None:
    keys = [f"{tag}#{at:06d}" for tag in "ABCDEFGH"[:tags] for at in range(300)]
    length = probe(Collection(keys), random.Random(1), 40).estimate()
    assert math.isfinite(length.high) == is_known


@pytest.mark.parametrize("items", [0, 1, 6, 7, 12, 13])
def test_a_collection_of_up_to_two_pages_is_counted(items: int) -> None:
    length = probe(Collection(range(items)), random.Random(1), 9).estimate()
    assert (length.value, length.low, length.high) == (items, items, items)


@pytest.mark.parametrize(
    "write",
    [
        lambda at: f"/srv/{at:06d}/f.txt",
        lambda at: f"name {at:05d} of x",
        lambda at: "a" * at,
        lambda at: f"{at}",  # as text, 10 comes before 9
    ],
)
def test_a_collection_of_paths_has_no_upper_end(write: Callable[[int], str]) -> None:
    keys = sorted(write(at) for at in range(1, 500))
    length = probe(Collection(keys), random.Random(1), 9).estimate()
    assert math.isinf(length.high)
    assert length.low == length.value == 14


def mean_length(keys: list[str]) -> float:
    """Return the mean of forty estimates of a collection's length."""
    return fmean(
        probe(Collection(keys), random.Random(seed), 17).estimate().value for seed in range(40)
    )


def test_each_tag_is_a_stratum_of_its_collection() -> None:
    chance = random.Random(2)
    orders = [f"ORDER#{at:020d}" for at in poisson_times(3_000, chance)]
    visits = [f"VISIT#{at:020d}" for at in poisson_times(9_000, chance)]
    keys = sorted(["META", "PROFILE#1", "PROFILE#2", *orders, *visits])
    assert mean_length(keys) == pytest.approx(len(keys), rel=0.07)


def test_sort_keys_of_one_date_are_distinguished_by_their_suffix() -> None:
    chance = random.Random(2)
    keys = sorted(
        {
            f"2026-11-{chance.randrange(1, 29):02d}#{chance.getrandbits(64):016x}"
            for _ in range(5_000)
        }
    )
    assert mean_length(keys) == pytest.approx(len(keys), rel=0.1)


def test_the_weights_of_keys_add_up_to_the_length() -> None:
    keys = poisson_times(5_000, random.Random(3))
    prober = probe(Collection(keys), random.Random(3), 17)
    length = prober.estimate()
    assert sum(weight for _, weight in prober.weights()) == pytest.approx(length.value)
    assert {key for key, _ in prober.weights()} <= set(keys)
    assert isinstance(length, Measured)
    assert length.scaled(2).error == length.error


@pytest.mark.parametrize(("units", "maximum"), [(0.5, 18), (1.5, 6)])
def test_nine_read_units_buy_fewer_of_the_expensive_pages(units: float, maximum: int) -> None:
    prober = LengthProber(random.Random(1), 7)
    collection, pages = Collection(poisson_times(5_000, random.Random(1))), 0
    while (request := prober.next()) is not None:
        prober.take(collection.page(request), units)
        pages += 1
    assert maximum - 2 <= pages <= maximum
