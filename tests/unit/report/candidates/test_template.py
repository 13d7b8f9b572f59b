"""Tests of candidate keys as text: the keys that they give to items, and errors in the text."""

import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keyhop.dynamodb.values import text_of
from keyhop.errors import CannotStart, InvalidInput
from keyhop.rekey.template.load import load
from keyhop.report.candidates import candidate
from keyhop.report.request import ReportInput
from keyhop.template import Unmappable

from tests.unit.rekey.templates import keys

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
    "half": {"N": "0.5"},
    "until": {"S": "1795375815000"},
    "places": {"L": [{"S": "x"}, {"M": {"zip": {"N": "8001"}}}]},
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
        ("PK=R#{raw}", None),
        ("PK=R#{raw|hash:md5|first:4}", "R#441018525208457705bf09a8ee3c1093"[:6]),
        ("PK=N#{half}", None),
        ("PK=D#{deviceId}-{id}", None),
        ("PK={id|mod:5}", "2"),
        ("PK={id|pad:1}", None),
        ("PK={deviceId|pad:8}", None),
        ("PK={on}", None),
        ("PK={where.city}", "Zurich"),
        ("PK={a.b}", None),
        ("PK={places[1].zip}", "8001"),
        ("PK={a.b?none}", "none"),
        ("PK={missing}", None),
        ("PK={missing?other}", "other"),
        ("PK={ missing ? other }", "other"),
        ("PK={ where.city ? other }", "Zurich"),
        ("PK={ts : day ? 2026-01-01}", "2026-11-22"),
        ("PK={until:day}", "2026-11-22"),
        ("PK=X#${deviceId}", "X#d-17"),
        ("PK={{{deviceId}}}", "{d-17}"),
        ("PK={none}", None),
        ("pk={deviceId}", "error"),
        ("PK={deviceId} SK={missing}", None),
        ("PK={deviceId} SK={ts}", "d-17"),
        ("PK={deviceId}, SK=A#{ts}", "d-17"),
        ("PK={deviceId:day}", None),
        ("PK={id?none}", None),
        ("PK={id?7}", "42"),
        ("PK={raw?7}", None),
        ("PK=T#{id?none}", "T#42"),
        ("PK={deviceId} SK={id?none}", None),
        ("PK={deviceId} SK={id?7}", "d-17"),
    ],
)
def test_the_key_that_a_candidate_gives_to_an_item(text: str, key: str | None):
    if key == "error":
        with pytest.raises(CannotStart):
            candidate(text)
    else:
        assert candidate(text).of(ITEM) == key


def test_a_hash_spreads_evenly_and_is_the_same_for_equal_numbers():
    spread = candidate("PK={hash(id)%4}")
    keys = [spread.of({"id": {"N": str(at)}}) for at in range(4_000)]
    assert {key: 900 < keys.count(key) < 1_100 for key in set(keys)} == dict.fromkeys("0123", True)
    assert spread.of({"id": {"N": "7"}}) == spread.of({"id": {"N": "7.0"}})
    assert candidate("PK={id|shard:4}").of(ITEM) == spread.of(ITEM)
    assert candidate("PK={id|shard:16|pad:2}").of(ITEM) in {f"{at:02}" for at in range(16)}


FIELDS = [
    "{a}",
    "{b}",
    "{a:N}",
    "{a:day}",
    "{ a : upper }",
    "{a|pad:3}",
    "{b?x}",
    "{c.x}",
    "{c.y[0]}",
]
FIELDS += ["{hash(a)%4}", "{hash( c.x ) % 4}", "{b|shard:16|pad:2}", "{a|date:%Y-%m}", "{a:S}"]
FIELDS += ["{a|hash:md5}", "{b|first:2}", "{a:minute}", "{a|num}", "{b:N|str}", "{a|mod:7}"]
TEXTS = ["x", "a#b", "", "17", "007", "2026-11-22T10:00:00Z", "1795375815000"]
SCALARS = st.one_of(
    st.sampled_from([{"S": text} for text in TEXTS]),
    st.sampled_from([{"N": "7"}, {"N": "-3"}, {"N": "0.5"}, {"N": "1795375815"}, {"N": "1E+12"}]),
    st.sampled_from([{"B": b"x"}, {"BOOL": True}, {"NULL": True}]),
)


@settings(deadline=None, max_examples=400)
@given(
    fields=st.lists(st.sampled_from(FIELDS), min_size=1, max_size=3),
    begin=st.sampled_from(["", "T#", "{{"]),
    between=st.sampled_from(["#", "-", "", "0"]),
    attributes=st.dictionaries(st.sampled_from("ab"), SCALARS),
    inner=SCALARS,
)
def test_a_re_key_makes_of_an_item_the_key_that_its_candidate_has(
    fields: list[str], begin: str, between: str, attributes: dict[str, Any], inner: dict[str, Any]
):
    """So that what the report praises can be handed over as it is."""
    item = {"id": {"S": "1"}, **attributes, "c": {"M": {"x": inner, "y": {"L": [inner]}}}}
    text = begin + between.join(fields)
    rule = {"set": {"PK": text}, "keep": {"id": "oldId"}}
    asked = None
    with suppress(CannotStart):
        asked = candidate(f"PK={text}")
    keys_made = set()
    transforms = []
    for type_ in "SNB":
        with suppress(CannotStart):
            transforms.append(load({"items": [rule]}, keys("id", None), keys("PK", None, type_)))
    assert bool(transforms) == (asked is not None)
    for transform in transforms:
        with suppress(Unmappable):
            keys_made.add(text_of(transform.forward(item)["PK"]))
    made = asked.of(item) if asked else None
    assert keys_made == (set() if made is None else {made})


def test_a_candidate_may_have_many_shards():
    assert candidate("PK={hash(id)%2000}").of(ITEM) is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{deviceId}", "must begin with PK="),
        ("PK=", "names no attribute"),
        ("PK=ALL", "names no attribute"),
        ("PK={deviceId", "a '{' is not closed"),
        ("PK=deviceId}", "a '}' closes nothing"),
        ("PK={}", "{} does not begin with the name of an attribute"),
        ("PK={where .city?none}", "{where .city?none} has a space beside a '.'"),
        ("PK={where. city?none}", "{where. city?none} has a space beside a '.'"),
        ("PK={ts:dya}", "'dya' is not a type of a key: {ts:dya} takes one of S, N, B, year,"),
        ("PK={ts|trim}", "there is no filter 'trim'"),
        ("PK={id|shard:4|upper}", "the filter upper of 'id' cannot take type N"),
        ("PK={a}{b}", "{a} and {b} touch"),
        ("PK={a.b?}", "the default of {a.b} cannot be made"),
        ("PK={ts|date:%Q}", "the filter date has no %Q"),
        ("PK={hash(id)%0}", "shard takes a whole number above 0"),
        ("PK={hash(id)}", "write {hash(id)%4}"),
        ("PK={id|pad:x}", "the filter pad takes a whole number above 0"),
        ("PK=" + "x" * 2_000, "1,000 characters"),
    ],
)
def test_the_error_of_a_wrong_candidate_is_one_sentence(text: str, message: str):
    with pytest.raises(CannotStart) as error:
        candidate(text)
    assert message in str(error.value)
    assert re.fullmatch(r"[^\n]+\.", str(error.value))


VALUES = st.one_of(
    st.builds(lambda text: {"S": text}, st.text()),
    st.builds(lambda number: {"N": str(number)}, st.integers(-(10**37), 10**37)),
    st.builds(lambda content: {"B": content}, st.binary()),
    st.sampled_from([{"NULL": True}, {"BOOL": False}, {"L": []}, {"M": {}}, {"SS": ["a"]}]),
)


@settings(deadline=None)
@given(value=VALUES)
def test_any_value_gives_a_key_or_none(value: dict[str, Any]):
    key = candidate("PK={a}#{a:day}#{hash(a)%3}#{a|upper}#{a.b?-}#{a:S}").of({"a": value})
    assert key is None or isinstance(key, str)


@settings(deadline=None)
@given(text=st.text("PK=SK {}:|?%()#$adys4hash,", max_size=40))
def test_any_text_is_a_candidate_or_an_error(text: str):
    with suppress(CannotStart):
        candidate(f"PK={text}").of(ITEM)


def test_a_wrong_candidate_is_refused_before_anything_is_read():
    arguments = ReportInput(table="Orders", candidates=("PK={a}", "PK={a"))
    with pytest.raises(InvalidInput, match=r"The candidate 'PK=\{a' is not valid: a '\{' is not"):
        arguments.request(str, {})
