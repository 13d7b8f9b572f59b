"""Candidate keys as they are written: what they make of items, and what is said of wrong ones."""

import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keyhop.errors import CannotStart, InvalidInput
from keyhop.report.candidates.template import candidate
from keyhop.report.request import ReportInput

ITEM: dict[str, Any] = {
    "deviceId": {"S": "d-17"},
    "id": {"N": "42.0"},
    "ts": {"S": "2026-11-22T23:30:15+02:00"},
    "epoch": {"N": "1795375815"},
    "ms": {"N": "1795375815000"},
    "day": {"S": "20261122"},
    "raw": {"B": b"\x00\x01"},
    "on": {"BOOL": True},
    "where": {"M": {"city": {"S": "Zurich"}}},
    "a.b": {"S": "dotted"},
    "none": {"S": ""},
}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("PK={deviceId}", "d-17"),
        ("PK=DEVICE#{deviceId}#{ts:day}", "DEVICE#d-17#2026-11-22"),
        ("PK={ts:hour}", "2026-11-22T21"),
        ("PK={ts:minute}", "2026-11-22T21:30"),
        ("PK={epoch:month}", "2026-11"),
        ("PK={ms:year}", "2026"),
        ("PK={day:day}", "2026-11-22"),
        ("PK={ts|date:%d.%m.%Y}", "22.11.2026"),
        ("PK={deviceId:upper}", "D-17"),
        ("PK={deviceId|upper|first:3}", "D-1"),
        ("PK={id|pad:5}", "00042"),
        ("PK={id:N}", "42"),
        ("PK={id:S}", None),
        ("PK={raw}", "AAE="),
        ("PK={on}", None),
        ("PK={where.city}", "Zurich"),
        ("PK={a.b}", "dotted"),
        ("PK={missing}", None),
        ("PK={missing?other}", "other"),
        ("PK={ missing ? other }", "other"),
        ("PK={ where.city ? other }", "Zurich"),
        ("PK={ts : day ? other}", "2026-11-22"),
        ("PK=X#${deviceId}", "X#d-17"),
        ("PK={{{deviceId}}}", "{d-17}"),
        ("PK={none}", None),
        ("pk={deviceId}", "error"),
        ("PK={deviceId} SK={missing}", None),
        ("PK={deviceId} SK={ts}", "d-17"),
        ("PK={deviceId}, SK=A#{ts}", "d-17"),
        ("PK={deviceId:day}", None),
    ],
)
def test_a_candidate_makes_a_key_of_an_item(text: str, key: str | None):
    if key == "error":
        with pytest.raises(CannotStart):
            candidate(text)
    else:
        assert candidate(text).of(ITEM) == key


def test_a_hash_spreads_evenly_and_equal_numbers_alike():
    spread = candidate("PK={hash(id)%4}")
    keys = [spread.of({"id": {"N": str(at)}}) for at in range(4_000)]
    assert {key: 900 < keys.count(key) < 1_100 for key in set(keys)} == dict.fromkeys("0123", True)
    assert spread.of({"id": {"N": "7"}}) == spread.of({"id": {"N": "7.0"}})
    assert candidate("PK={id|shard:4}").of(ITEM) == spread.of(ITEM)
    assert candidate("PK={id|shard:16|pad:2}").of(ITEM) in {f"{at:02}" for at in range(16)}


def test_of_each_field_it_is_known_what_it_is_made_of():
    fields = candidate("PK=A#{deviceId}#{ts:day}#{hash(id)%4}").partition.fields
    assert [(one.attribute, one.kind, one.shards) for one in fields] == [
        ("deviceId", "whole", 1),
        ("ts", "date", 1),
        ("id", "shard", 4),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{deviceId}", "must begin with PK="),
        ("PK=", "names no attribute"),
        ("PK=ALL", "names no attribute"),
        ("PK={deviceId", "has a { without its }"),
        ("PK=deviceId}", "has a } without its {"),
        ("PK={}", "without the name of an attribute"),
        ("PK={where .city?none}", "has a space beside the '.' of 'where .city'"),
        ("PK={where. city?none}", "has a space beside the '.' of 'where. city'"),
        ("PK={ts:dya}", "has 'dya' after a colon"),
        ("PK={ts|trim}", "has the filter 'trim'"),
        ("PK={ts|upper|date:%Y}", "it must be the first"),
        ("PK={ts|date:%Q}", "has the date format '%Q'"),
        ("PK={hash(id)%0}", "1 to 1,000"),
        ("PK={hash(id)%2000}", "1 to 1,000"),
        ("PK={hash(id)}", "a hash is written {hash(id)%4}"),
        ("PK={id|pad:x}", "1 to 100"),
        ("PK=" + "x" * 2_000, "1,000 characters"),
    ],
)
def test_a_wrong_candidate_is_told_in_one_sentence(text: str, said: str):
    with pytest.raises(CannotStart) as caught:
        candidate(text)
    assert said in str(caught.value)
    assert re.fullmatch(r"[^\n]+\.", str(caught.value))


VALUES = st.one_of(
    st.builds(lambda text: {"S": text}, st.text()),
    st.builds(lambda number: {"N": str(number)}, st.integers(-(10**37), 10**37)),
    st.builds(lambda content: {"B": content}, st.binary()),
    st.sampled_from([{"NULL": True}, {"BOOL": False}, {"L": []}, {"M": {}}, {"SS": ["a"]}]),
)


@settings(deadline=None)
@given(value=VALUES)
def test_no_value_makes_it_fail(value: dict[str, Any]):
    whole = candidate("PK={a}#{a:day}#{hash(a)%3}#{a|upper}#{a.b?}#{a:S}")
    assert whole.of({"a": value}) is None or isinstance(whole.of({"a": value}), str)


@settings(deadline=None)
@given(text=st.text("PK=SK {}:|?%()#$adys4hash,", max_size=40))
def test_no_text_fails_otherwise_than_by_a_sentence(text: str):
    with suppress(CannotStart):
        candidate(f"PK={text}").of(ITEM)


def test_a_wrong_candidate_is_refused_before_anything_is_read():
    asked = ReportInput(table="Orders", candidates=("PK={a}", "PK={a"))
    with pytest.raises(InvalidInput, match=r"The candidate 'PK=\{a' has a \{ without its \}\.$"):
        asked.request(str, {})
