"""What is noted of an item: never a value."""

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


def item(**more: dict) -> dict:
    return {"pk": {"S": "USER#1"}, "sk": {"S": "ORDER#7"}, **more}


def test_sizes_are_those_that_the_service_counts() -> None:
    # "DynamoDB item sizes and formats": names and values in UTF-8; a number has about one byte for
    # two digits, and one more; a map three bytes, and one for each of its members.
    seen = Observation.of(
        {"pk": {"S": "é"}, "n": {"N": "1234"}, "m": {"M": {"a": {"NULL": True}}}}, LOOKING
    )
    assert seen.bytes == (2 + 2) + (1 + 3) + (1 + 3 + 1 + 1 + 1)


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        ({"N": str(int(NOW - 10 * DAY))}, 10.0),
        ({"N": str(int(NOW + DAY))}, -1.0),
        ({"N": str(int(NOW * 1000))}, "ms"),
        ({"S": "2026-01-01"}, "type"),
    ],
)
def test_what_ttl_makes_of_a_value(value: dict, seen: object) -> None:
    assert Observation.of(item(ttl=value), LOOKING).ttl == seen


@pytest.mark.parametrize(
    "name", ["expiresAt", "expires", "expire_at", "Expiry", "expiration", "TTL"]
)
def test_a_time_of_expiry_counts_if_time_to_live_is_off(name: str) -> None:
    off = replace(LOOKING, ttl=None)
    value = {"N": str(int(NOW) - 30 * 86_400)}
    assert Observation.of(item(**{name: value}), off).ttl == 30.0
    on = Observation.of(item(**{name: value}), LOOKING).ttl
    assert on == (30.0 if name == "TTL" else None), "another attribute is the one of time to live"


@pytest.mark.parametrize("name", ["expected", "experience", "expiresIn", "exported_at"])
def test_other_names_are_no_times_of_expiry(name: str) -> None:
    value = {"N": str(int(NOW) - 30 * 86_400)}
    assert Observation.of(item(**{name: value}), replace(LOOKING, ttl=None)).ttl is None


def test_an_item_without_the_attribute_has_no_ttl() -> None:
    assert Observation.of(item(), LOOKING).ttl is None


def test_an_item_is_in_an_index_with_all_of_its_key() -> None:
    inside = Observation.of(item(city={"S": "Rome"}, at={"N": "1"}), LOOKING)
    assert inside.entries == {"by": LOOKING.shower.shown({"city": {"S": "Rome"}})}
    assert Observation.of(item(city={"S": "Rome"}), LOOKING).entries == {}


@pytest.mark.parametrize(
    ("names", "dates"), [(("city",), {"by": ""}), (("at",), {}), (("city", "sk"), {})]
)
def test_a_date_that_is_the_whole_partition_key_of_an_index(names: tuple[str, ...], dates) -> None:
    looking = replace(LOOKING, indexes={"by": (names, len(names))})
    assert Observation.of(item(city={"S": "2026-11-22"}), looking).dates == dates


def test_no_value_is_in_what_is_written_down() -> None:
    seen = Observation.of(
        item(city={"S": "canary"}, at={"N": "271828"}, data={"S": "canary"}), LOOKING, 2.5
    )
    written = json.dumps(to_json(seen, compact=True))
    assert "canary" not in written
    assert "271828" not in written
    assert from_json(Observation, json.loads(written), compact=True) == seen


@pytest.mark.parametrize("name", ["type", "Type", "entity_type", "__typename", "#type", "kind"])
def test_names_of_type_attributes(name: str) -> None:
    assert is_type_name(name)


@pytest.mark.parametrize("name", ["prototype", "typed", "mankind", "mime-typed"])
def test_other_names(name: str) -> None:
    assert not is_type_name(name)


LOOKING_AT_GSI1 = Looking(Shower("t"), NOW, "SK", indexes={"GSI1": (("GSI1PK", "GSI1SK"), 1)})


@pytest.mark.parametrize(
    ("key", "more", "expected"),
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
def test_a_key_of_an_index_that_joins_other_attributes(
    key: str, more: dict[str, Any], expected: tuple[str, ...]
) -> None:
    item = {
        "PK": {"S": "ORDER#17"},
        "SK": {"S": "ORDER#17"},
        "status": {"S": "ACTIVE"},
        "placed": {"S": "2026-11-22T09:00"},
        "number": {"N": "17"},
        "GSI1PK": {"S": "ORDERS"},
        "GSI1SK": {"S": key},
        **more,
    }
    observation = Observation.of(item, LOOKING_AT_GSI1)
    assert observation.composed.get("GSI1", {}).get("GSI1SK", ()) == expected
    assert (
        from_json(
            Observation, json.loads(json.dumps(to_json(observation, compact=True))), compact=True
        )
        == observation
    )
    del item["GSI1SK"]
    assert Observation.of(item, LOOKING_AT_GSI1).composed == {}
