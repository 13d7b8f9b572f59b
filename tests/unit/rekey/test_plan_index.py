"""The advice of a plan about an index instead of a re-key."""

from dataclasses import replace
from typing import Any

import pytest
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.units import US_EAST_1
from keyhop.dynamodb.values import Item
from keyhop.rekey.plan.trial import Question, Trial, index_question
from keyhop.rekey.template.load import load

ON_DEMAND = {"TableName": "T", "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"}}
TABLE = Table("T", ON_DEMAND)
OLD = KeySpace((KeyAttribute("PK", "S"),), KeyAttribute("SK", "S"))
NEW = KeySpace((KeyAttribute("day", "S"),), KeyAttribute("order", "S"))
KEEP = {"PK": "oldPK", "SK": "oldSK"}
RULE = {"set": {"day": "{day}", "order": "{order}"}, "keep": KEEP}
SIMPLE = {"items": [RULE]}
COMPOSED = {"items": [{"set": {"gk": "{region}#{tenant}", "gs": "{order}"}, "keep": KEEP}]}
OTHER = KeySpace((KeyAttribute("gk", "S"),), KeyAttribute("gs", "S"))


def item(number: int, **more: Any) -> Item:
    words = {"PK": f"u{number}", "SK": "x", "day": f"2026-{number:04}", "order": f"o{number}"}
    words |= {"region": "eu", "tenant": f"t{number}", "kind": "order"}
    return {**{name: {"S": word} for name, word in words.items()}, **more}


def without(number: int, name: str) -> Item:
    return {key: value for key, value in item(number).items() if key != name}


def question_of(
    items: list[Item],
    template: dict[str, Any] = SIMPLE,
    table: Table = TABLE,
    count: float = 1e6,
    size: float = 1e9,
) -> Question:
    new = OTHER if "gk" in str(template) else NEW
    trial = Trial(load(template, OLD, new)).add(items)
    return index_question(trial, table, count, size, US_EAST_1)


def created(question: Question) -> dict[str, Any]:
    (update,) = question.update["GlobalSecondaryIndexUpdates"]
    return update["Create"]


def with_index(schema: list[tuple[str, str]], projection: str = "ALL", **more: Any) -> Table:
    entry = {
        "IndexName": "theirs",
        "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in schema],
        "Projection": {"ProjectionType": projection},
        **more,
    }
    return replace(TABLE, description={**ON_DEMAND, "GlobalSecondaryIndexes": [entry]})


@pytest.mark.parametrize(
    "value",
    [{"N": "20260101"}, {"S": ""}, {"BOOL": True}, {"NULL": True}, {"S": "x" * 2049}],
    ids=["a number", "empty", "a boolean", "null", "2,049 bytes"],
)
def test_an_index_that_would_refuse_writes_to_existing_items_is_not_proposed(
    value: dict[str, Any],
) -> None:
    """DynamoDB rejects writes to items that violate the new index's key schema."""
    question = question_of([item(1), item(2), item(3, day=value)])
    assert question.update == {}
    assert "would refuse writes to some items: day has values" in question.needs


def test_items_that_the_template_skips_count_as_well() -> None:
    rule = {"match": {"kind": "order"}, **RULE}
    skipping = {"items": [rule, {"otherwise": "skip"}]}
    other = item(3, kind={"S": "other"}, day={"N": "1"})
    assert question_of([item(1), item(2), other], skipping).update == {}


def test_the_shares_of_missing_and_additional_items_of_the_index_are_reported() -> None:
    rule = {"match": {"kind": "order"}, **RULE}
    skipping = {"items": [rule, {"otherwise": "skip"}]}
    question = question_of(
        [item(1), item(2), without(3, "day"), item(4, kind={"S": "other"})], skipping
    )
    assert created(question)["KeySchema"][0] == {"AttributeName": "day", "KeyType": "HASH"}
    notes = " | ".join(question.notes)
    assert "is not in the index, as 25.0% of the sample" in notes
    assert "25.0% of the sample would be in the index, but not in the new table" in notes
    assert "refuses a write that gives one of them another type" in notes


def test_only_items_in_the_index_are_paid_for() -> None:
    full = question_of([item(number) for number in range(10)]).costs
    sparse = question_of([item(0), *(without(number, "day") for number in range(1, 10))]).costs
    assert full["dollars"] == pytest.approx(0.625)
    assert sparse["dollars"] == pytest.approx(0.0625)
    assert sparse["dollars_a_million"] == full["dollars_a_million"]
    assert sparse["dollars_a_month"] == pytest.approx(full["dollars_a_month"] / 10, rel=0.5)


def test_provisioned_capacity_of_an_index_is_separate_and_paid_by_the_hour() -> None:
    units = {"ReadCapacityUnits": 5000, "WriteCapacityUnits": 900}
    table = Table("T", {"TableName": "T", "ProvisionedThroughput": units})
    question = question_of([item(1), without(2, "day")], table=table)
    assert created(question)["ProvisionedThroughput"] == {
        "ReadCapacityUnits": 1,
        "WriteCapacityUnits": 450,
    }
    hours = 730 * (450 * 0.00065 + 0.00013)
    assert question.costs["dollars_a_month"] == pytest.approx(hours + 0.125, abs=0.05)
    assert (question.costs["dollars"], question.costs["dollars_a_million"]) == (0, 0)
    assert any("1 read unit, which you must raise" in note for note in question.notes)


def test_the_twenty_first_index_needs_a_higher_quota() -> None:
    entries = [{"IndexName": f"i{n}", "KeySchema": []} for n in range(20)]
    table = replace(TABLE, description={**ON_DEMAND, "GlobalSecondaryIndexes": entries})
    assert "20 is the default quota: remove one" in question_of([item(1)], table=table).needs
    fewer = {**ON_DEMAND, "GlobalSecondaryIndexes": entries[1:]}
    assert "quota" not in question_of([item(1)], table=replace(TABLE, description=fewer)).needs


def test_an_index_with_the_key_is_named_with_its_projection_and_costs_nothing_more() -> None:
    schema = [("day", "HASH"), ("order", "RANGE")]
    question = question_of([item(1)], table=with_index(schema))
    assert (question.needs, question.costs) == ("the index theirs has this key already", {})
    thin = question_of([item(1)], table=with_index(schema, "KEYS_ONLY")).needs
    assert thin.endswith("already, but not all attributes of the items (KEYS_ONLY)")
    leaving = question_of([item(1)], table=with_index(schema, IndexStatus="DELETING"))
    assert created(leaving)["IndexName"] == "by-day-order"


def test_the_order_of_partition_attributes_does_not_matter() -> None:
    """A query needs an equality condition on each of them."""
    hash_first = [("tenant", "HASH"), ("region", "HASH"), ("order", "RANGE")]
    assert question_of([item(1)], COMPOSED, with_index(hash_first)).update == {}
    sort_other = [("region", "HASH"), ("order", "RANGE"), ("tenant", "RANGE")]
    assert question_of([item(1)], COMPOSED, with_index(sort_other)).update != {}


def test_a_hot_key_of_an_index_throttles_the_table() -> None:
    hot = [item(number, day={"S": "today"}) for number in range(40)]
    assert any(
        "throttles the writes to the table itself" in note for note in question_of(hot).notes
    )
    cool = question_of([item(number) for number in range(40)])
    assert not any("throttles" in note for note in cool.notes)


def test_the_reason_why_no_index_has_the_key_is_reported() -> None:
    five = {"set": {"gk": "{a}#{b}#{c}#{d}#{e}", "gs": "{order}"}, "keep": KEEP}
    letters = {name: {"S": name} for name in "abcde"}
    assert "at most 4 attributes" in question_of([item(1, **letters)], {"items": [five]}).needs
    filtered = {"set": {"day": "{day|upper}", "order": "{PK}#{SK}"}, "keep": {**KEEP, "day": "d"}}
    question = question_of([without(1, "order") | {"day": {"S": "a"}}], {"items": [filtered]})
    assert question.needs == (
        "order must first be written to the items, or have another name; the items have another "
        "value or type in day"
    )
