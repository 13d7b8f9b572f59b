"""Tests of the observation of an item, which contains no values."""

import json
from dataclasses import replace
from typing import Any

import pytest
from keyhop.report.facts_json import from_json, to_json
from keyhop.report.forms import Shower
from keyhop.report.sample.rows import Looking, Observation, is_type_name

DAY = 86_400
NOW = 1_800_000_000.0
LOOKING = Looking(Shower("table"), NOW, "sk", "ttl", {"by": (("city", "at"), 1)})


def check_json(observation: Observation) -> str:
    """Return the JSON of an observation, after checking that it gives the same observation."""
    text = json.dumps(to_json(observation, compact=True))
    assert from_json(Observation, json.loads(text), compact=True) == observation
    return text


def item(**attributes: dict) -> dict:
    return {"pk": {"S": "USER#1"}, "sk": {"S": "ORDER#7"}, **attributes}


def test_sizes_are_those_that_the_service_counts() -> None:
    # "DynamoDB item sizes and formats": names and values are in UTF-8. A number has about one byte
    # for two digits, and one more. A map has three bytes, and one for each of its members.
    observation = Observation.of(
        {"pk": {"S": "é"}, "n": {"N": "1234"}, "m": {"M": {"a": {"NULL": True}}}}, LOOKING
    )
    assert observation.bytes == (2 + 2) + (1 + 3) + (1 + 3 + 1 + 1 + 1)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"N": str(int(NOW - 10 * DAY))}, 10.0),
        ({"N": str(int(NOW + DAY))}, -1.0),
        ({"N": str(int(NOW * 1000))}, "ms"),
        ({"S": "2026-01-01"}, "type"),
    ],
)
def test_a_time_of_expiry_is_observed_as_its_age_or_its_error(
    value: dict, expected: object
) -> None:
    assert Observation.of(item(ttl=value), LOOKING).ttl == expected


@pytest.mark.parametrize(
    "name", ["expiresAt", "expires", "expire_at", "Expiry", "expiration", "TTL"]
)
def test_a_time_of_expiry_counts_if_time_to_live_is_off(name: str) -> None:
    off = replace(LOOKING, ttl=None)
    value = {"N": str(int(NOW) - 30 * 86_400)}
    assert Observation.of(item(**{name: value}), off).ttl == 30.0
    on = Observation.of(item(**{name: value}), LOOKING).ttl
    assert on == (30.0 if name == "TTL" else None), "only the attribute of time to live counts"


@pytest.mark.parametrize("name", ["expected", "experience", "expiresIn", "exported_at"])
def test_other_names_are_not_times_of_expiry(name: str) -> None:
    value = {"N": str(int(NOW) - 30 * 86_400)}
    assert Observation.of(item(**{name: value}), replace(LOOKING, ttl=None)).ttl is None


def test_an_item_without_the_attribute_has_no_ttl() -> None:
    assert Observation.of(item(), LOOKING).ttl is None


def test_an_item_is_in_an_index_if_it_has_its_whole_key() -> None:
    indexed = Observation.of(item(city={"S": "Rome"}, at={"N": "1"}), LOOKING)
    assert indexed.entries == {"by": LOOKING.shower.shown({"city": {"S": "Rome"}})}
    assert Observation.of(item(city={"S": "Rome"}), LOOKING).entries == {}


@pytest.mark.parametrize(
    ("names", "dates"), [(("city",), {"by": ""}), (("at",), {}), (("city", "sk"), {})]
)
def test_a_date_that_is_the_whole_partition_key_of_an_index(names: tuple[str, ...], dates) -> None:
    looking = replace(LOOKING, indexes={"by": (names, len(names))})
    assert Observation.of(item(city={"S": "2026-11-22"}), looking).dates == dates


def test_no_value_is_in_the_json_of_an_observation() -> None:
    values = {"city": {"S": "canary"}, "at": {"N": "271828"}, "data": {"S": "canary"}}
    text = check_json(Observation.of(item(**values), LOOKING, 2.5))
    assert "canary" not in text
    assert "271828" not in text


@pytest.mark.parametrize("name", ["type", "Type", "entity_type", "__typename", "#type", "kind"])
def test_a_name_of_a_type_attribute(name: str) -> None:
    assert is_type_name(name)


@pytest.mark.parametrize("name", ["prototype", "typed", "mankind", "mime-typed"])
def test_other_names_are_not_those_of_type_attributes(name: str) -> None:
    assert not is_type_name(name)


LOOKING_AT_GSI1 = Looking(Shower("t"), NOW, "SK", indexes={"GSI1": (("GSI1PK", "GSI1SK"), 1)})


@pytest.mark.parametrize(
    ("key", "attributes", "expected"),
    [
        ("ACTIVE#2026-11-22T09:00", {}, ("status", "placed")),
        ("STATUS#ACTIVE#DATE#2026-11-22T09:00", {}, ("status", "placed")),
        ("ACTIVE_2026-11-22T09:00", {}, ("status", "placed")),
        ("ACTIVE|17", {}, ("status", "number")),
        ("ACTIVE", {}, ()),
        ("STATUS#ACTIVE", {}, ()),
        ("ACTIVE#ACTIVE", {}, ()),
        ("ACTIVE#2026-11-23", {}, ()),
        ("ACTIVE#2026-11-22T09:00#0042", {}, ()),
        ("$shop#status_ACTIVE#placed_2026-11-22T09:00", {}, ("status", "placed")),
        ("active-2026-11-22t09:00", {}, ("status", "placed")),
        ("ACTIVE 17", {}, ("status", "number")),
        ("ACTIVE::000017", {}, ("status", "number")),
        ("ACTIVE#170", {}, ()),
        ("ACTIVES#17", {}, ()),
        ("status=ACTIVE|placed=2026-11-22T09:00", {}, ("status", "placed")),
        ("status_ACTIVE#day_2026-11-22", {}, ()),
        ("s1_ACTIVE#placed_2026-11-22T09:00", {}, ()),
        ("PENDING#2", {"status": {"S": "PENDING"}, "shard": {"N": "7"}}, ()),
    ],
)
def test_a_key_of_an_index_may_join_other_attributes(
    key: str, attributes: dict[str, Any], expected: tuple[str, ...]
) -> None:
    item = {
        "PK": {"S": "ORDER#17"},
        "SK": {"S": "ORDER#17"},
        "status": {"S": "ACTIVE"},
        "placed": {"S": "2026-11-22T09:00"},
        "number": {"N": "17"},
        "GSI1PK": {"S": "ORDERS"},
        "GSI1SK": {"S": key},
        **attributes,
    }
    observation = Observation.of(item, LOOKING_AT_GSI1)
    assert observation.composed.get("GSI1", {}).get("GSI1SK", ()) == expected
    check_json(observation)
    del item["GSI1SK"]
    assert Observation.of(item, LOOKING_AT_GSI1).composed == {}
