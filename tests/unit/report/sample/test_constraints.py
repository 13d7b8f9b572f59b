"""Constraint items, and the primaries that they name."""

from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.report.sample.asks import Answer
from keyhop.report.sample.examine import is_constraint, is_orphan

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


def test_what_is_a_constraint() -> None:
    assert is_constraint(KEY)
    assert is_constraint({"pk": {"S": "UNIQUE#x"}})
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


def test_who_names_none_is_not_judged() -> None:
    assert judged({"at": {"S": "2026-11-22"}, "n": {"N": "1"}}, set()) == (None, [])


def test_a_few_values_are_looked_for() -> None:
    many = {f"a{n}": {"S": f"USER#{n}"} for n in range(9)}
    verdict, asked = judged(many, set())
    assert verdict
    assert len(asked) == 3
