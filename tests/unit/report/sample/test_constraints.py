"""Tests of constraint items and the primaries that they name, and of the place of a key."""

import pytest
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.report.sample.asks import Answer, Asks
from keyhop.report.sample.examine import is_constraint, is_orphan, is_reserved, place

SPACE = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "S"))
KEY = {"pk": {"S": "unique#email#ada@example.org"}}


Verdict = tuple[bool | None, list[str]]
"""Whether an item is an orphan, and the keys of the primaries that were looked up."""


def look_up(asks: Asks[bool | None], primaries: dict[str, dict]) -> Verdict:
    """Answer the lookups of a verdict from these primaries."""
    keys: list[str] = []
    try:
        ask = next(asks)
        while True:
            (value,) = ask.parameters["ExpressionAttributeValues"].values()
            keys.append(value["S"])
            items = [primaries[keys[-1]]] if keys[-1] in primaries else []
            ask = asks.send(Answer(items, None, 0.5))
    except StopIteration as end:
        return end.value, keys


def orphan(item: dict, primaries: set[str]) -> Verdict:
    asks = is_orphan(SPACE, KEY, [{**KEY, "sk": {"S": "-"}, **item}])
    return look_up(asks, {key: {} for key in primaries})


def reserved(text: str, primaries: dict[str, dict], **item: str) -> Verdict:
    key = {"pk": {"S": text}}
    attributes = {name: {"S": value} for name, value in item.items()}
    return look_up(is_reserved(SPACE, key, {**key, "sk": {"S": text}, **attributes}), primaries)


def test_an_item_that_reserves_a_value_of_its_primary() -> None:
    users = {"USER#1": {"email": {"S": "a@b.c"}}}
    assert reserved("EMAIL#a@b.c", users, user="USER#1") == (False, ["USER#1"])
    assert reserved("EMAIL#a@b.c", users, user="USER#2") == (True, ["USER#2"])
    # The user has another address, so the item is not a constraint of this user.
    assert reserved("SESSION#77", users, user="USER#1") == (None, ["USER#1"])
    tagged = {"USER#1": {"gsi": {"S": "EMAIL#a@b.c"}}}
    assert reserved("EMAIL#a@b.c", tagged, user="USER#1") == (False, ["USER#1"])
    assert reserved("EMAIL#a@b.c", users, name="ada") == (None, [])
    assert reserved("a@b.c", users, user="USER#1") == (None, [])


def test_an_attribute_name_gives_the_tag_of_the_primary() -> None:
    shops = {"shop:7": {"slug": {"S": "x"}}}
    assert reserved("slug:x", shops, shopId="7") == (False, ["shop:7"])
    assert reserved("slug:x", shops, shop_id="8") == (True, ["shop:8"])
    assert reserved("SLUG#x", {}, shopId="7") == (True, ["SHOP#7"])
    assert reserved("Slug#x", {}, shopId="7") == (True, ["Shop#7"])
    assert reserved("slug:x", {}, id="7") == (None, [])


def test_constraints_are_recognized() -> None:
    assert is_constraint(KEY)
    assert is_constraint({"pk": {"S": "UNIQUE#x"}})
    assert is_constraint({"pk": {"S": "UNIQUE_EMAIL#x"}})
    assert is_constraint({"pk": {"S": "uniqueEmail#x"}})
    assert is_constraint({"pk": {"S": "user.uq#x"}})
    assert not is_constraint({"pk": {"S": "UNIQUELY#x"}})
    assert not is_constraint({"pk": {"S": "USER#unique"}})
    email = {"pk": {"S": "EMAIL#x@example.org"}}
    assert is_constraint(email, [{**email, "sk": {"S": "UNIQUE"}}], "sk")
    assert is_constraint(email, [{**email, "Type": {"S": "Constraint"}}])
    assert not is_constraint(
        email, [{**email, "sk": {"S": "PROFILE"}, "Type": {"S": "User"}}], "sk"
    )
    assert not is_constraint({"pk": {"N": "7"}})


def test_a_constraint_without_its_primary_is_an_orphan() -> None:
    assert orphan({"user": {"S": "USER#1"}}, {"USER#1"}) == (False, ["USER#1"])
    assert orphan({"user": {"S": "USER#1"}}, set()) == (True, ["USER#1"])


def test_a_reference_needs_no_tag() -> None:
    assert orphan({"owner_id": {"S": "4711"}}, {"4711"}) == (False, ["4711"])


def test_an_id_in_a_constraint_is_that_of_a_primary_of_its_kind() -> None:
    assert orphan({"userId": {"S": "17"}}, {"User#17"}) == (
        False,
        ["USER#17", "user#17", "User#17"],
    )
    assert orphan({"user_id": {"S": "17"}}, set())[0] is True
    assert orphan({"userId": {"S": "USER#17"}}, set()) == (True, ["USER#17"])


def test_words_joined_by_hyphens_are_not_keys() -> None:
    assert orphan({"agent": {"S": "Version 2"}, "tariff": {"S": "plan-7"}}, set()) == (None, [])


def test_an_item_that_names_no_primary_has_no_verdict() -> None:
    assert orphan({"at": {"S": "2026-11-22"}, "n": {"N": "1"}}, set()) == (None, [])


def test_at_most_three_primaries_are_looked_up() -> None:
    verdict, keys = orphan({f"a{n}": {"S": f"USER#{n}"} for n in range(9)}, set())
    assert verdict
    assert len(keys) == 3


@pytest.mark.parametrize("hidden", [0.0, 0.1, 0.3333, 0.77777, 0.99999])
def test_twelve_requests_find_a_place(hidden: float) -> None:
    requests = []

    def source(asks: Asks[float]) -> float:
        ask = next(asks)
        while True:
            requests.append((ask.parameters["Segment"], ask.parameters["TotalSegments"]))
            segment, segments = requests[-1]
            try:
                ask = asks.send(Answer([], None, refused=int(hidden * segments) != segment))
            except StopIteration as end:
                return end.value

    estimate = source(place(KeySpace((KeyAttribute("pk", "S"),), None), {"pk": {"S": "a"}}))
    assert len(requests) == 12
    assert abs(estimate - hidden) <= 1 / (1 << 12) / 2
    assert requests[0] == (0, 2)
