"""Constraint items, and the primaries that they name; the place of a key among the hashes."""

import pytest
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.report.sample.asks import Answer, Asks
from keyhop.report.sample.examine import is_constraint, is_orphan, is_reserved, place

SPACE = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "S"))
KEY = {"pk": {"S": "unique#email#ada@example.org"}}


def judged(item: dict, there: set[str]) -> tuple[bool | None, list[str]]:
    """The verdict, and the keys that were asked for."""
    asks, asked = is_orphan(SPACE, KEY, [{**KEY, "sk": {"S": "-"}, **item}]), []
    try:
        ask = next(asks)
        while True:
            (key,) = ask.parameters["ExpressionAttributeValues"].values()
            asked.append(key["S"])
            ask = asks.send(Answer([{}] if key["S"] in there else [], None, 0.5))
    except StopIteration as end:
        return end.value, asked


def reserved(key: str, there: dict[str, dict], **item: str) -> tuple[bool | None, list[str]]:
    """The verdict of is_reserved, and the keys that were asked for."""
    named = {"pk": {"S": key}}
    texts = {name: {"S": text} for name, text in item.items()}
    asks, asked = is_reserved(SPACE, named, {**named, "sk": {"S": key}, **texts}), []
    try:
        ask = next(asks)
        while True:
            (primary,) = ask.parameters["ExpressionAttributeValues"].values()
            asked.append(primary["S"])
            ask = asks.send(Answer([there[asked[-1]]] if asked[-1] in there else [], None, 0.5))
    except StopIteration as end:
        return end.value, asked


def test_an_item_that_reserves_a_value_of_its_primary() -> None:
    users = {"USER#1": {"email": {"S": "a@b.c"}}}
    assert reserved("EMAIL#a@b.c", users, user="USER#1") == (False, ["USER#1"])
    assert reserved("EMAIL#a@b.c", users, user="USER#2") == (True, ["USER#2"])
    # The user has another address, so the item is no constraint of it.
    assert reserved("SESSION#77", users, user="USER#1") == (None, ["USER#1"])
    tagged = {"USER#1": {"gsi": {"S": "EMAIL#a@b.c"}}}
    assert reserved("EMAIL#a@b.c", tagged, user="USER#1") == (False, ["USER#1"])
    assert reserved("EMAIL#a@b.c", users, name="ada") == (None, [])
    assert reserved("a@b.c", users, user="USER#1") == (None, [])


def test_a_reference_by_the_name_of_its_attribute() -> None:
    shops = {"shop:7": {"slug": {"S": "x"}}}
    assert reserved("slug:x", shops, shopId="7") == (False, ["shop:7"])
    assert reserved("slug:x", shops, shop_id="8") == (True, ["shop:8"])
    assert reserved("SLUG#x", {}, shopId="7") == (True, ["SHOP#7"])
    assert reserved("Slug#x", {}, shopId="7") == (True, ["Shop#7"])
    assert reserved("slug:x", {}, id="7") == (None, [])


def test_what_is_a_constraint() -> None:
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


def test_a_primary_that_is_there_or_not() -> None:
    assert judged({"user": {"S": "USER#1"}}, {"USER#1"}) == (False, ["USER#1"])
    assert judged({"user": {"S": "USER#1"}}, set()) == (True, ["USER#1"])


def test_a_reference_needs_no_tag() -> None:
    assert judged({"owner_id": {"S": "4711"}}, {"4711"}) == (False, ["4711"])


def test_an_id_in_a_constraint_means_the_key_of_its_kind() -> None:
    assert judged({"userId": {"S": "17"}}, {"User#17"}) == (
        False,
        ["USER#17", "user#17", "User#17"],
    )
    assert judged({"user_id": {"S": "17"}}, set())[0] is True
    assert judged({"userId": {"S": "USER#17"}}, set()) == (True, ["USER#17"])


def test_words_joined_by_hyphens_name_no_key() -> None:
    assert judged({"agent": {"S": "Version 2"}, "tariff": {"S": "plan-7"}}, set()) == (None, [])


def test_who_names_none_is_not_judged() -> None:
    assert judged({"at": {"S": "2026-11-22"}, "n": {"N": "1"}}, set()) == (None, [])


def test_a_few_values_are_looked_for() -> None:
    many = {f"a{n}": {"S": f"USER#{n}"} for n in range(9)}
    verdict, asked = judged(many, set())
    assert verdict
    assert len(asked) == 3


@pytest.mark.parametrize("hidden", [0.0, 0.1, 0.3333, 0.77777, 0.99999])
def test_a_place_is_found_in_twelve_questions(hidden: float) -> None:
    asked = []

    def source(asks: Asks[float]) -> float:
        ask = next(asks)
        while True:
            asked.append((ask.parameters["Segment"], ask.parameters["TotalSegments"]))
            segment, segments = asked[-1]
            try:
                ask = asks.send(Answer([], None, refused=int(hidden * segments) != segment))
            except StopIteration as end:
                return end.value

    found = source(place(KeySpace((KeyAttribute("pk", "S"),), None), {"pk": {"S": "a"}}))
    assert len(asked) == 12
    assert abs(found - hidden) <= 1 / (1 << 12) / 2
    assert asked[0] == (0, 2)
