"""`plan` on DynamoDB Local describes a table and changes nothing."""

import json
import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import pytest
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.values import Key
from keyhop.errors import BudgetSpent
from keyhop.rekey.plan.planning import RekeyPlan, make_plan
from keyhop.rekey.plan.reading import Readers
from keyhop.rekey.template.load import load

from testing.databases import Database
from tests.integration.rekey.learned import TABLE_SETTING, TTL_SETTING, Learned

SOURCE = KeySpace((KeyAttribute("pk", "S"),), KeyAttribute("sk", "S"))
KEYS = KeySpace((KeyAttribute("tenant", "S"),), KeyAttribute("order", "S"))
BY_TENANT = {
    "items": [
        {
            "name": "order",
            "match": {"pk": "USER#{user}", "sk": "ORDER#{order}"},
            "set": {"tenant": "TENANT#{tenantId}", "order": "{order}"},
            "keep": {"pk": "oldPk", "sk": "oldSk"},
        }
    ]
}
INDEX = {
    "IndexName": "by-state",
    "KeySchema": [{"AttributeName": "state", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "ALL"},
}
STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
Planned = Callable[..., RekeyPlan]
STATE = {"AttributeName": "state", "AttributeType": "S"}


def order(user: int, number: int, **more: str) -> Key:
    values = {"pk": f"USER#{user}", "sk": f"ORDER#{number:04}", "tenantId": f"t{user % 40}", **more}
    return {name: {"S": value} for name, value in values.items()}


def planning(
    database: Database,
    name: str,
    items: Iterable[Key],
    template: Any = BY_TENANT,
    client: Any = None,
    **more: Any,
) -> RekeyPlan:
    database.fill(name, items)
    return make_plan(
        Connection(client or database.client),
        name,
        f"{name}-new",
        KEYS,
        load(template, SOURCE, KEYS),
        chance=random.Random(7),
        **more,
    )


@pytest.fixture
def planned(dynamodb: Database, table_name: str) -> Planned:
    """Return a function that plans a re-key of a table with these items."""
    dynamodb.create(table_name, AttributeDefinitions=[STATE], GlobalSecondaryIndexes=[INDEX])
    return partial(planning, dynamodb, table_name)


def test_the_sample_of_a_small_table_is_the_whole_table_and_nothing_changes(
    planned: Planned, dynamodb: Database
) -> None:
    items = [order(user, user * 10 + n) for user in range(40) for n in range(5)]
    before = dynamodb.tables()
    plan = planned(items)
    assert dynamodb.tables() == before
    content = plan.to_json()
    sample = content["sample"]
    assert (content["items"], sample["items"], sample["whole"]) == (200, 200, True)
    assert (content["class"], content["unmappable"]["share"]) == ("recoverable", 0)
    assert (content["collisions"]["pairs"], sample["not_back"], content["hot"]) == (0, 0, [])
    assert len(plan.examples) == 10
    assert len({item["pk"]["S"] for item, _ in plan.examples}) == 10
    assert plan.blocks == []


def test_unknown_settings_of_the_source_block_the_re_key(
    planned: Planned, dynamodb: Database, table_name: str
) -> None:
    client = Learned(dynamodb.client, table_name)
    plan = planned([order(1, 1)], client=client)
    names = ("drop-vector-indexes", TABLE_SETTING, TTL_SETTING)
    assert len(plan.blocks) == 3
    for name in names:
        assert any(f"accept it by {name}" in why for why in plan.blocks)
    accepting = planned([], client=client, accepted=names)
    assert not accepting.blocks


def test_unmappable_items_are_counted_by_reason_and_block_the_re_key(planned: Planned) -> None:
    lacking = [{n: v for n, v in order(1, n_).items() if n != "tenantId"} for n_ in range(3)]
    plan = planned([*lacking, *(order(2, n) for n in range(9))])
    unmappable = plan.to_json()["unmappable"]
    assert sum(unmappable["reasons"].values()) == 3
    assert unmappable["share"] == unmappable["from"] == 0.25
    assert any("3 items cannot be mapped" in why for why in plan.blocks)


def test_collisions_are_counted_if_the_sample_is_the_whole_table(planned: Planned) -> None:
    items = [order(user, number) for user in (1, 41, 81) for number in range(2)]
    plan = planned(items)
    assert plan.to_json()["collisions"] == {"how": "counted", "pairs": 6, "at_most": 6}
    assert any("want the same place" in why for why in plan.blocks)


def test_a_full_count_finds_every_pair_that_a_sample_may_miss(planned: Planned) -> None:
    items = [order(user, number) for user in range(60) for number in range(5)]
    plan = planned(items, sample=50, full=True)
    content = plan.to_json()
    assert content["collisions"] == {"how": "counted", "pairs": 100, "at_most": 100}
    assert content["sample"]["items"] < content["items"] == 300


def test_sentinels_do_not_count_as_items(planned: Planned) -> None:
    sentinel: Key = {"pk": {"S": "USER#1"}, "sk": {"S": " "}, "keyhop": {"N": "1"}}
    plan = planned([sentinel, order(1, 1)], ours={"keyhop": {"N": "1"}})
    content = plan.to_json()
    assert (content["items"], content["unmappable"]["share"]) == (1, 0)


def test_the_share_of_items_in_an_index_is_reported_before_and_after(planned: Planned) -> None:
    items = [order(1, 1, state="new"), *(order(1, n) for n in range(2, 5))]
    indexes = planned(items).to_json()["indexes"]
    assert indexes == {"by-state": {"before": 0.25, "after": 0.25}}


def test_the_first_question_is_whether_an_index_would_do(planned: Planned) -> None:
    plan = planned([order(1, n) for n in range(30)])
    lines = plan.to_text().splitlines()
    assert lines[0].startswith("Would a global index do?")
    assert plan.question.missing == ["tenant", "order"]
    assert plan.question.collection_share == 1
    assert any("would not cool its writes" in line for line in lines)


def test_a_plan_contains_no_values_of_items_by_default(planned: Planned) -> None:
    plan = planned([order(9_876_543_217, n) for n in range(30)])
    assert "9876543217" not in json.dumps(plan.to_json()) + plan.to_text()
    assert "TENANT#t17" in plan.to_text(show_keys=True)


def test_a_budget_ends_the_sample(planned: Planned) -> None:
    with pytest.raises(BudgetSpent):
        planned([order(1, 1)], max_read_units=0.1)


@pytest.mark.parametrize(
    ("functions", "pipes", "readers"),
    [
        ((), (), ["Replicate", "CutOver"]),
        (("OnOrder",), (), ["OnOrder", "Replicate", "CutOver"]),
        ((), ("orders",), ["orders", "Replicate", "CutOver"]),
        (("KeepIndex", "OnOrder"), (), ["KeepIndex", "OnOrder", "Replicate", "CutOver"]),
    ],
)
def test_the_cutover_counts_as_a_reader_of_the_stream(
    dynamodb: Database,
    table_name: str,
    monkeypatch: pytest.MonkeyPatch,
    functions: Sequence[str],
    pipes: Sequence[str],
    readers: list[str],
) -> None:
    """DynamoDB recommends two readers of a shard as the maximum, and Replicate is one of them."""
    dynamodb.create(table_name, StreamSpecification=STREAM)
    other_readers = Readers(tuple(functions), tuple(pipes))
    monkeypatch.setattr("keyhop.rekey.plan.planning.readers_of", lambda *_: other_readers)
    plan = planning(dynamodb, table_name, [order(1, 1)])
    expected = f"{len(readers)} in a cutover: {', '.join(readers)}"
    assert any(line.endswith(expected) for line in plan.to_text().splitlines())
    assert plan.to_json()["readers"]["during_cutover"] == len(readers)
    notes = [note for note in plan.to_json()["notes"] if "processes read each shard" in note]
    assert len(notes) == (len(readers) > 2)
    for note in notes:
        assert note.startswith(f"during a cutover {len(readers)} processes")
