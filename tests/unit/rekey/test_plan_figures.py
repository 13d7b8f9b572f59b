"""The figures of a plan from a trial on items: reasons, collisions, hot keys and dollars."""

import random
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator
from hypothesis import given
from hypothesis import strategies as st
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.units import US_EAST_1
from keyhop.dynamodb.values import Item
from keyhop.rekey.plan.reading import tally
from keyhop.rekey.plan.trial import Question, Trial, costs, estimated, hot_keys, index_question
from keyhop.rekey.template.load import load
from keyhop.rekey.transform import KeyNames, Kind
from keyhop.template import Unmappable

from testing.marks import few
from testing.rekey_pairs import TwoWays
from testing.simulation.tables import Table as Stored
from testing.simulation.tables import keyed

TERABYTE = 1e12


class ByPlace(TwoWays):
    """A transform whose key is the attribute `place`; an item without it cannot be mapped."""

    source, destination = KeyNames("pk", "sk"), KeyNames("place")
    kind: Kind = "recoverable"
    owner_attributes: Sequence[str] = ("pk", "sk")

    def forward(self, item: Item) -> Item | None:
        if "place" not in item:
            raise Unmappable("it has no place")
        return item

    def back(self, item: Item) -> Item | None:
        return item


ON_DEMAND = {"BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"}}
ORDERS = Table("Orders", {"TableName": "Orders", **ON_DEMAND})
SOURCE = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "S"))
NEW = KeySpace((KeyAttribute("gk", "S"),), KeyAttribute("gs", "S"))


def question_of(items: list[Item], *rules: dict[str, Any], table: Table = ORDERS) -> Question:
    """Return whether an index would do, for a template with these rules and the new key gk, gs."""
    template = {"items": [*rules]}
    trial = Trial(load(template, SOURCE, NEW)).add(items)
    return index_question(trial, table, 1e6, 1e9, US_EAST_1)


def order(number: int, **more: Any) -> Item:
    content = {"pk": f"p{number}", "sk": "s", "tenant": f"t{number % 3}", "day": "2026-11-26"}
    typed = {name: {"S": value} for name, value in content.items()}
    return {**typed, "total": {"N": str(number)}, **more}


def keys(question: Question) -> list[tuple[str, str]]:
    (create,) = question.update["GlobalSecondaryIndexUpdates"]
    return [(k["AttributeName"], k["KeyType"]) for k in create["Create"]["KeySchema"]]


RULE = {"name": "all", "match": {}, "set": {"gk": "T#{tenant}#{day}", "gs": "{pk}#{sk}"}}


def test_an_index_has_the_attributes_that_a_composed_key_is_made_of() -> None:
    question = question_of([order(1), order(2)], RULE)
    assert keys(question) == [("tenant", "HASH"), ("day", "HASH"), ("pk", "RANGE"), ("sk", "RANGE")]
    assert question.missing == ["gk", "gs"]
    assert question.needs == (
        "the items have the attributes of its key (tenant, day, pk, sk): UpdateTable makes it"
    )
    assert "equality condition on tenant and day, and takes conditions on pk" in question.notes[0]
    service = botocore.session.get_session().get_service_model("dynamodb")
    ParamValidator().validate(question.update, service.operation_model("UpdateTable").input_shape)
    words = ["aws", "dynamodb", "update-table", "--table-name", "Orders"]
    assert shlex.split(question.command)[:5] == words


def test_the_index_finds_what_the_new_key_finds() -> None:
    """The table is in memory, since DynamoDB Local has no indexes with several key attributes."""
    question = question_of([order(1)], RULE)
    (create,) = question.update["GlobalSecondaryIndexUpdates"]
    table = Stored(
        {
            **keyed({"pk": "S", "sk": "S"}),
            "AttributeDefinitions": question.update["AttributeDefinitions"],
            "GlobalSecondaryIndexes": [create["Create"]],
        }
    )
    items = [order(number) for number in range(30)]
    for item in items:
        table.put(item)
    (view,) = table.indexes.values()
    groups = Counter((i["tenant"]["S"], i["day"]["S"]) for i in view.items.values())
    assert sum(groups.values()) == len(items)
    assert groups == Counter((i["tenant"]["S"], i["day"]["S"]) for i in items)


@pytest.mark.parametrize(
    ("rule", "items"),
    [
        ({"gk": "{day|upper}", "gs": "{pk}#{sk}"}, [order(1)]),
        ({"gk": "{tenant?none}", "gs": "{pk}#{sk}"}, [order(1)]),
        (
            {"gk": "{address.city}", "gs": "{pk}#{sk}"},
            [order(1, address={"M": {"city": {"S": "x"}}})],
        ),
        ({"gk": "all", "gs": "{pk}#{sk}"}, [order(1)]),
        (
            {"gk": "{a}#{b}#{c}#{d}#{e}", "gs": "{pk}#{sk}"},
            [order(1, **{n: {"S": n} for n in "abcde"})],
        ),
    ],
    ids=["a filter", "a default", "a part of a map", "a constant", "five attributes"],
)
def test_no_index_for_a_key_that_is_more_than_attributes(
    rule: dict[str, str], items: list[Item]
) -> None:
    question = question_of(items, {"name": "all", "match": {}, "set": rule})
    assert question.update == {}
    assert "must first be written to the items" in question.needs


def test_a_variable_of_match_is_not_an_attribute_of_the_items() -> None:
    match = {"pk": "TENANT#{of}"}
    rule = {"name": "all", "match": match, "set": {"gk": "{of}", "gs": "{sk}"}}
    assert question_of([order(1, pk={"S": "TENANT#a"})], rule).update == {}


def test_items_whose_attributes_have_several_types_or_are_missing_cannot_be_in_one_index() -> None:
    rule = {"name": "all", "match": {}, "set": {"gk": "{tenant}", "gs": "{total:N|str}#{pk}#{sk}"}}
    assert question_of([order(1)], rule).update == {}, "a filter makes another value of a number"
    rule = {"name": "all", "match": {}, "set": {"gk": "T#{tenant}", "gs": "{pk}#{sk}"}}
    mixed = [order(1), order(2, tenant={"N": "7"})]
    assert question_of(mixed, rule).update == {}
    assert keys(question_of([order(1), order(2)], rule))[0] == ("tenant", "HASH")


def test_rules_that_make_different_keys_have_no_index_in_common() -> None:
    def rule(name: str, tag: str) -> dict[str, Any]:
        keys = {"gk": f"{tag}#{{tenant}}", "gs": "{pk}#{sk}", "kind": name}
        return {"name": name, "match": {"sk": name}, "set": keys}

    assert question_of([order(1, sk={"S": "a"})], rule("a", "A"), rule("b", "B")).update == {}
    assert question_of([order(1, sk={"S": "a"})], rule("a", "A"), rule("b", "A")).update != {}


def test_an_index_that_the_table_has_already_is_named() -> None:
    kinds = {"tenant": "HASH", "day": "HASH", "pk": "RANGE", "sk": "RANGE"}
    schema = [{"AttributeName": name, "KeyType": kind} for name, kind in kinds.items()]
    entry = {"IndexName": "by-tenant", "KeySchema": schema}
    table = replace(ORDERS, description={**ORDERS.description, "GlobalSecondaryIndexes": [entry]})
    question = question_of([order(1)], RULE, table=table)
    assert question.update == {}
    assert question.needs == "the index by-tenant has this key already"
    same_name = {**entry, "IndexName": "by-tenant-day-pk-sk", "KeySchema": entry["KeySchema"][:1]}
    table = replace(
        ORDERS, description={**ORDERS.description, "GlobalSecondaryIndexes": [same_name]}
    )
    (create,) = question_of([order(1)], RULE, table=table).update["GlobalSecondaryIndexUpdates"]
    assert create["Create"]["IndexName"] == "by-tenant-day-pk-sk-2"


def item(pk: int, sk: int, place: str | None, size: int = 0) -> Item:
    key = {"pk": {"S": str(pk)}, "sk": {"S": str(sk)}}
    filling = {"filling": {"S": "x" * size}} if size else {}
    return {**key, **filling, **({} if place is None else {"place": {"S": place}})}


def tried(items: list[Item], **more: object) -> Trial:
    return Trial(ByPlace(), **more).add(items)  # type: ignore[arg-type]


def test_reasons_are_counted_and_hold_no_values() -> None:
    trial = tried([item(1, 1, "a"), item(1, 2, None), item(2, 1, None)])
    assert (trial.items, trial.mapped, trial.collections) == (3, 1, 2)
    assert trial.unmappable == {"it has no place": 2}


def test_items_that_cannot_be_mapped_count_as_items_without_the_new_key() -> None:
    assert index_question(tried([item(1, 1, "a")]), ORDERS, 1, 1, US_EAST_1).missing == []
    assert index_question(tried([item(1, 1, None)]), ORDERS, 1, 1, US_EAST_1).missing == ["place"]


def test_pairs_within_a_collection_and_across_collections_are_counted_separately() -> None:
    trial = tried([item(1, 1, "a"), item(1, 2, "a"), item(2, 1, "a"), item(3, 1, "b")])
    assert trial.pairs == (1, 2)


def test_estimates_of_collisions_are_right_on_average_and_their_limits_hold() -> None:
    chance = random.Random(3)
    items = [item(pk, sk, str(chance.randrange(900))) for pk in range(200) for sk in range(3)]
    truth = sum(tried(items).pairs)
    estimates, correct_limits = [], 0
    for _ in range(200):
        sampled_keys = [pk for pk in range(200) if chance.random() < 0.2]
        sample = [item for item in items if int(item["pk"]["S"]) in sampled_keys]
        estimate = estimated(tried(sample), 0.2)
        estimates.append(estimate["pairs"])
        correct_limits += estimate["at_most"] is not None and estimate["at_most"] >= truth
    assert sum(estimates) / len(estimates) == pytest.approx(truth, rel=0.15)
    assert correct_limits >= 190


@few()
@given(st.lists(st.integers(0, 40), max_size=300))
def test_a_tally_counts_every_pair(places: list[int]) -> None:
    with tally() as counted:
        for place in places:
            counted.add({"place": {"N": str(place)}})
        assert counted.pairs() == sum(n * (n - 1) // 2 for n in Counter(places).values())


def test_different_forms_of_a_number_are_one_place() -> None:
    with tally() as counted:
        for number in ("1", "1.0", "1E0"):
            counted.add({"place": {"N": number}})
        assert counted.pairs() == 3


def test_a_key_is_hot_if_its_share_of_many_items_is_large() -> None:
    few = tried([item(n, 1, "a") for n in range(10)])
    many = tried([item(n, 1, "a" if n < 30 else str(n)) for n in range(300)])
    assert hot_keys(few) == []
    assert hot_keys(many) == [{"share": 0.1, "shards": 4, "most_write_units": 10_000}]


@pytest.mark.parametrize(("size", "dollars"), [(250, 2_607), (1_000, 687), (4_000, 676)])
def test_the_dollars_for_a_terabyte_follow_the_formulas(size: int, dollars: float) -> None:
    """The formulas cover scan, put and second look, but not Lambda (at most a fortieth)."""
    overhead = 24  # names, keys and the place
    trial = tried([item(n % 10, n % 10, f"{n:05}", size - overhead) for n in range(50)])
    assert trial.bytes_before / 50 == pytest.approx(size, abs=3)
    estimate = costs(trial, TERABYTE / size, TERABYTE, US_EAST_1)
    assert estimate["backfill"]["dollars"] == pytest.approx(dollars, rel=0.04)
    assert estimate["verify"]["dollars"] == pytest.approx(62, rel=0.04)
    assert estimate["export_import"]["dollars"] == 250
    assert estimate["bulk_put"]["dollars"] is None
    for word in ("condition", "1,024", "global table", "in the meantime", "price"):
        assert word in estimate["bulk_put"]["says"]


def test_puts_pay_for_each_index_that_an_item_enters() -> None:
    items = [item(n, 1, str(n)) for n in range(10)]
    plain = costs(tried(items), 1e6, 1e8, US_EAST_1)["backfill"]["write_units"]
    indexed = costs(
        tried(items, indexes={"one": ["place"], "other": ["nowhere"]}), 1e6, 1e8, US_EAST_1
    )["backfill"]["write_units"]
    assert indexed == 2 * plain


@pytest.mark.parametrize(("units", "rate"), [(7, 7), (40_000, 1_000), (None, 1_000)])
def test_a_copy_writes_no_faster_than_the_capacity_of_the_table(units: int | None, rate: int):
    throughput = units and {"ReadCapacityUnits": 5, "WriteCapacityUnits": units}
    items = [item(n, 1, str(n)) for n in range(10)]
    estimate = costs(tried(items), 7e6, 1e9, US_EAST_1, throughput=throughput)["backfill"]
    assert (estimate["write_rate"], estimate["seconds"]) == (rate, 7e6 / rate)
