"""Tests of the forms that are recognized in the text of a key."""

import pytest
from keyhop.report.facts_json import from_json, to_json
from keyhop.report.forms import KeyForm, is_ahead, is_bucket, kind_in, tag_of, widths_of


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("ORDER#17", "ORDER"),
        ("order:2024", "order"),
        ("cus_9sKx", "cus"),
        ("tenant/7/user/8", "tenant"),
        ("order-item#5", "order-item"),
        ("КЛИЕНТ#17", "КЛИЕНТ"),
        ("注文:17", "注文"),
        ("straße_9", "straße"),
        ("USER-1042", "USER"),
        ("ord-01HX5ZZKBKACTAV9WEVGEMMVRZ", "ord"),
        ("DAY-2024-01-02", "DAY"),
        ("mid-century-chair", ""),
        ("user.1042", "user"),
        ("Order 17", "Order"),
        ("ORDER^17", "ORDER"),
        ("item__9f", "item"),
        ("www.example.com", ""),
        ("Main Street 5", ""),
        ("ana.b2@example.org", ""),
        ("abcdefab-4f89-11d3-9a0c-0305e82c3301", ""),
        ("Nov-2026", ""),
        ("Q4#2026", ""),
        ("year=2026/month=11", ""),
        ("2024-01-02", ""),
        ("ada@example.org", ""),
        ("3f2504e0-4f89-11d3-9a0c-0305e82c3301", ""),
        ("__type", ""),
        ("", ""),
    ],
)
def test_a_tag_is_the_word_before_the_first_delimiter(text: str, tag: str) -> None:
    assert tag_of(text) == tag


@pytest.mark.parametrize(
    "text",
    [
        "2024-01-02",
        "20240102",
        "2024-01",
        "2024",
        "2024-01-02T10",
        "2024-01-02T10:00+02:00",
        "DATE#2024-01-02",
        "2024_01_02",
        "2024-W01",
        "02.01.2024",
        "1/22/2024",
        "2024年1月2日",
        "2024년 1월 2일",
        "DAY-2024-01-02",
        "logs_2024-01-02",
        "2024#01#02",
        "2024-01-02T00:00:00Z",
        "2024-01-02T10:00:00.000+00:00",
        "year=2024/month=01/day=02",
        "y=2024/m=1",
        "Jan-2024",
        "JAN 2024",
        "02-Jan-2024",
        "2024-January-02",
        "Q1-2024",
        "W07#2024",
        "2024-H1",
        "FY2024-Q1",
        "1704153600",
        "DAY#1704153600000",
    ],
)
def test_a_key_that_is_a_date(text: str) -> None:
    assert KeyForm.of({"S": text}).dated


@pytest.mark.parametrize(
    "text",
    [
        *("2024-13-02", "20240102a", "1234", "99999999", "32.01.2024"),
        *("2024-01-02T10:00:01Z", "1704153601", "Jan-17", "ORDER-2024-000123", "2024#01#02#03"),
        *("2026 \u017fep", "dec٣ 2026", "٢٠٢٦-01-02", "9" * 2_000, f"DAY#{'9' * 2_000}"),
    ],
)
def test_a_key_that_is_not_a_date_or_more_than_a_date(text: str) -> None:
    assert not KeyForm.of({"S": text}).dated


def test_a_month_with_a_long_s_is_a_tag() -> None:
    form = KeyForm.of({"S": "\u017fep 2026"})
    assert (form.tag, form.dated) == ("\u017fep", True)


def test_dates_as_numbers() -> None:
    assert KeyForm.of({"N": "20240102"}).dated
    assert KeyForm.of({"N": "20240110"}).dated
    assert not KeyForm.of({"N": "2024"}).dated


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ({"S": "USER#1042"}, 1042),
        ({"S": "user1042"}, 1042),
        ({"S": "0017"}, 17),
        ({"N": "1042"}, 1042),
        ({"N": "1500"}, 1500),
        ({"S": "1042#user"}, 1042),
        ({"S": "заказ№17"}, 17),
        ({"S": "طلب#\u0663\u0664"}, 34),
        ({"S": "17#a4b"}, None),
        ({"N": "10.5"}, None),
        ({"S": "3f2504e0-4f89-11d3-9a0c-030508203301"}, None),
        ({"S": "a1b2c3"}, None),
        ({"S": "2024-01-02"}, None),
        ({"B": b"17"}, None),
    ],
)
def test_the_number_of_a_key(value: dict, number: float | None) -> None:
    assert KeyForm.of(value).number == number


def test_the_year_next_to_a_number() -> None:
    for text, year in (("ORD-2026-000123", 2026), ("INV/2025/0001", 2025), ("R#2026#0042", 2026)):
        assert KeyForm.of({"S": text}).year == year
    for text in ("ORD-2026-12", "ORD-1000-000123", "2026-11-22#0001", "ORD-000123", "2026"):
        assert KeyForm.of({"S": text}).year == 0


def test_a_long_number_is_rounded() -> None:
    assert KeyForm.of({"S": "TEL#4915112345678"}).number == 4_915_110_000_000


def test_a_form_is_unchanged_after_json() -> None:
    for value in ({"S": "A#2024-01-02"}, {"S": "x9"}, {"N": "5"}, {"B": b"1"}):
        form = KeyForm.of(value)
        assert from_json(KeyForm, to_json(form)) == form


@pytest.mark.parametrize(
    ("text", "widths"),
    [
        ("7", [("", 1)]),
        ("ITEM#10", [("ITEM#", 2)]),
        ("007", [("", -3)]),
        ("x", []),
        ("", []),
        ("строка 17", [("строка ", 2)]),
        ("\u0660\u0660\u0661\u0667", [("", -4)]),
        ("v9", [("v", 1)]),
        ("v12", [("v", 2)]),
        ("rev-0012", [("rev-", -4)]),
        ("a1b2", []),
        ("CH#9#VERSE#12", [("CH#", 1), ("CH#9#VERSE#", 2)]),
        ("PRICE#9.99", [("PRICE#", 1)]),
        ("1.10.3", [("", 1), ("9.", 2), ("9.9.", 1)]),
        ("2026-1-12", [("", 4), ("9-", 1), ("9-9-", 2)]),
        ("12345678-1234-4abc-8abc-123456789012", [("", 8), ("9-", 4)]),
        ("01HX5ZZKBKACTAV9WEVGEMMVRZ", []),
        ("05:17#UA1545", [("", -2), ("9:", 2)]),
        ("11:17:09.5#UA9", [("", 2), ("9:", 2), ("9:9:", -2)]),
        ("7:30#9", [("", 1), ("9:", 2), ("9:9#", 1)]),
        ("11:75#9", [("", 2), ("9:", 2), ("9:9#", 1)]),
    ],
)
def test_the_widths_of_numbers_in_a_text(text: str, widths: list[tuple[str, int]]) -> None:
    assert widths_of(text) == widths


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("PROFILE", "PROFILE"),
        ("ORDER#1", "ORDER"),
        ("$book_1#id_7", "book_1"),
        ("v0", ""),
        ("9", ""),
        ("two words", ""),
    ],
)
def test_a_sort_key_that_is_a_word_is_a_tag(text: str, tag: str) -> None:
    assert kind_in(text) == tag


@pytest.mark.parametrize(
    ("number", "dated"),
    [
        ("1700006400", True),
        ("1700006400000", True),
        ("1700006401", False),
        ("1700006400001", False),
        ("3600", False),
    ],
)
def test_full_hours_since_1970_are_dates(number: str, dated: bool) -> None:
    assert KeyForm.of({"N": number}).dated is dated


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ({"S": "2026-11-24"}, True),
        ({"S": "2026-11-23"}, False),  # It is tomorrow here, and today in another time zone.
        ({"S": "DAY#2027-01-01"}, True),
        ({"S": "2026-12"}, True),
        ({"S": "2026-11"}, False),
        ({"S": "2026-W49"}, True),
        ({"S": "2026-W47"}, False),
        ({"S": "2026-Q4"}, False),
        ({"S": "2027-Q1"}, True),
        ({"S": "2027"}, True),
        ({"S": "03/12/2026"}, False),  # It may be the 12th of March.
        ({"S": "24/12/2026"}, True),
        ({"N": "20261224"}, True),
        ({"N": "1795305600"}, False),
        ({"N": "1795651200"}, True),
        ({"N": "1795651200000"}, True),
        ({"S": "USER#17"}, False),
    ],
)
def test_a_date_in_the_future(key: dict, expected: bool) -> None:
    assert is_ahead(key, 1795359600.0) is expected  # 2026-11-22T15:00Z


NOW = 1_795_338_000.0


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("hourBucket", {"N": "498705"}, True),
        ("hourBucket", {"N": "498706"}, True),
        ("hourBucket", {"N": "498707"}, False),
        ("hourBucket", {"N": "411105"}, True),
        ("hourBucket", {"N": "411104"}, False),
        ("pk", {"S": "DAY#20779"}, True),
        ("day", {"N": "22"}, False),
        ("candidateId", {"N": "20779"}, False),
        ("birthdayNumber", {"N": "20779"}, False),
        ("UTCDay", {"N": "20779"}, True),
        ("days_since_1970", {"N": "20779"}, True),
        ("day", {"S": "9" * 1_000}, False),
        ("number", {"N": "498705"}, False),
        ("day", {"B": b"1"}, False),
    ],
)
def test_numbers_of_hours_or_days_are_dates(name: str, value: dict, expected: bool) -> None:
    assert is_bucket(name, value, NOW) == expected
