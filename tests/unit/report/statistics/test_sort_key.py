"""Tests of sort keys that become numbers, and of numbers that become sort keys again."""

import random
from decimal import Decimal

import pytest
from keyhop.report.statistics.sort_key import FINE, form_of, moment_of, parse, tag_of

KEYS = {
    "ORDER#2026-11-22T10:00:00Z": ("time", "ORDER#"),
    "заказ#2026-11-22": ("time", "заказ#"),
    "2026-11-22": ("time", ""),
    "2026-11-22T10:00:00.123+09:00#abc": ("time", ""),
    "2026-11-22 10:00:00": ("time", ""),
    "v0#ORDER#20261122T101112Z": ("time", "v0#ORDER#"),
    "01ARZ3NDEKTSV4RRFFQ69G5FAV": ("ulid", ""),
    "0ujsswThIGTUYm2K8FjOOfXtY1K": ("ksuid", ""),
    "018f2b3c-5d6e-7abc-9def-0123456789ab": ("uuid7", ""),
    "1b4e28ba-2fa1-41d2-883f-0016d3cca427": ("hex", ""),
    "1732269600": ("integer", ""),
    "1732269600123#a8f1": ("integer", ""),
    "ORDER#0000123": ("integer", "ORDER#"),
    "deadbeef01": ("hex", ""),
    17: ("number", ""),
    Decimal("1700000000.5"): ("number", ""),
}


@pytest.mark.parametrize(
    ("key", "moment"),
    [
        ("2024-11-22", 1732233600),
        ("EVENT#2024-11-22T10:00:00Z#a8f1", 1732269600),
        ("1732269600", 1732269600),
        ("1732269600123-a8f1", 1732269600.123),
        (1732269600, 1732269600),
        (Decimal("1732269600123"), 1732269600.123),
        ("1732269600123456789", 1732269600.123456789),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", 1469922850.259),
        ("0ujsswThIGTUYm2K8FjOOfXtY1K", 1507607557),
        ("018f2b3c-5d6e-7abc-9def-0123456789ab", 1714417327.47),
        ("1b4e28ba-2fa1-41d2-883f-0016d3cca427", None),
        ("LINE#17", None),
        (17, None),
        ("9732269600", None),
        ("PROFILE", None),
    ],
)
def test_the_time_in_a_key(key, moment) -> None:
    assert moment_of(key) == (moment if moment is None else pytest.approx(moment, abs=1))


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_a_key_has_a_form_and_its_number_gives_a_start_before_it(key) -> None:
    parsed = parse(key)
    assert (parsed.kind, parsed.tag) == KEYS[key]
    assert tag_of(key) == parsed.tag
    form = form_of([key])
    number = form.number(key)
    start = form.key(number)
    assert start <= key
    assert form.number(start) == pytest.approx(number, rel=1e-12)


@pytest.mark.parametrize("key", ["/srv/log/12/f.txt", "hello", "", "a/b/c/d/e/1"])
def test_paths_and_words_have_no_number(key: str) -> None:
    assert parse(key) is None
    assert tag_of(key) is None


@pytest.mark.parametrize("key", ["\u0663\u0664", "ORDER#\uff11", "\uff12\uff10\uff12\uff16-01-01"])
def test_digits_of_other_scripts_have_no_number(key: str) -> None:
    """They do not sort among ASCII digits in the order of their values."""
    assert form_of([key]) is None


def test_the_longest_numbers_of_dynamodb_have_a_start() -> None:
    for low, high in (
        (10**19, 10**31 + 7),
        (-(10**38) + 1, 10**38 - 1),
        (Decimal("-1E+125"), Decimal("1E+125")),
        (1_500_000_000_000_000_000, 1_500_000_000_000_000_001),
    ):
        form = form_of([low, high])
        assert form is not None
        for number in (form.number(low), form.number(high), form.number(high) // 3):
            start = form.key(number)
            assert len(start.as_tuple().digits) <= 38
            assert form.number(start) <= number


@pytest.mark.parametrize(
    ("key", "following", "seconds"),
    [
        ("2026-11-22", "2026-11-23", 86_400),
        ("2026-11-22T10", "2026-11-22T11", 3_600),
        ("2026-11-22T10:05", "2026-11-22T10:06", 60),
        ("2026-11-22T10:05:07", "2026-11-22T10:05:08", 1),
        ("2026-11-22T10:05:07.123Z", "2026-11-22T10:05:07.124Z", 0.001),
        ("0000041", "0000042", 1e-9),
    ],
)
def test_a_start_between_two_keys_is_the_lower_one(key, following, seconds) -> None:
    """Check that the step between two keys is a day, an hour, a minute and so on."""
    form = form_of([key, following])
    first, second = form.number(key), form.number(following)
    assert second - first == round(seconds * 1e9) * FINE
    assert form.key(first) == form.key(second - 1) == key
    assert form.key(second) == following
    assert form_of([]) is None


def test_unpadded_numbers_as_text_have_no_form() -> None:
    """They sort as text: 10 before 9."""
    assert form_of(["10", "9"]) is None
    assert form_of(["09", "10"]) is not None


def test_keys_in_another_order_than_their_numbers_have_no_form() -> None:
    assert form_of(["2026-01-02#a", "2026-01-01#b"]) is None


@pytest.mark.parametrize(
    "write",
    [
        lambda at: f"{at:010d}",
        lambda at: f"E#{at:012x}",
        lambda at: f"018f2b3c-{at >> 16 & 0xFFFF:04x}-7{at & 0xFFF:03x}-8000-0123456789ab",
        lambda at: f"2026-{1 + at % 7919 % 12:02d}-{1 + at % 28:02d}#{at:06d}",
        lambda at: at,
    ],
)
def test_numbers_and_starts_have_the_order_of_the_keys(write) -> None:
    chance = random.Random(1)
    keys = sorted({write(chance.randrange(10**6)) for _ in range(300)})
    form = form_of(keys)
    assert form is not None
    numbers = [form.number(key) for key in keys]
    assert numbers == sorted(set(numbers))
    for _ in range(60):
        x = chance.randrange(numbers[0], numbers[-1])
        start = form.key(x)
        assert form.number(start) <= x + 1
        after = sum(1 for number in numbers if number >= form.number(start))
        assert after == sum(1 for key in keys if key >= start)


def test_a_key_with_another_tag_or_without_one_has_no_number() -> None:
    form = form_of(["ORDER#0000123"])
    assert form.number("ORDER#0000124") is not None
    assert form.number("ITEM#0000124") is None
    assert form.number("hello") is None
