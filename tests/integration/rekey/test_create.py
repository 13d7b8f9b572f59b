"""`create` on DynamoDB Local makes the tables once, also if several processes run or are killed."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.tables import Table
from keyhop.errors import CannotStart, NotPermitted, RunConflict
from keyhop.rekey.control import Control
from keyhop.rekey.life_cycle import create
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.layout import TURNED

from testing.databases import Database
from tests.integration.rekey.learned import TABLE_SETTING, TTL_SETTING, Learned
from tests.integration.rekey.lives import (
    KEYS,
    SETS_TTL,
    Dying,
    Life,
    client_at,
    is_killed,
    until_done,
)

INDEX = {
    "IndexName": "by-day",
    "KeySchema": [{"AttributeName": "day", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "KEYS_ONLY"},
}
DAY = {"AttributeName": "day", "AttributeType": "S"}


@pytest.fixture
def life(dynamodb: Database, table_name: str) -> Life:
    dynamodb.create(table_name, AttributeDefinitions=[DAY], GlobalSecondaryIndexes=[INDEX])
    return Life(dynamodb, Pair(table_name, f"{table_name}-new", {"items": []}))


def test_the_destination_has_the_plan_s_keys_the_source_s_indexes_and_a_stream(life: Life) -> None:
    until_done(life.creation().step)
    table = life.described(life.pair.destination)
    assert [key["AttributeName"] for key in table["KeySchema"]] == ["tenant", "order"]
    assert [index["IndexName"] for index in table["GlobalSecondaryIndexes"]] == ["by-day"]
    for name in (life.pair.source, life.pair.destination):
        stream = life.described(name)["StreamSpecification"]
        assert stream["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    side = life.side
    assert (side.plan(), side.control()) == (life.pair, Control())


@pytest.mark.prove
@pytest.mark.parametrize("after", [False, True])
def test_a_create_that_is_killed_at_each_change_can_be_repeated(
    dynamodb: Database, table_name: str, after: bool
) -> None:
    for dies_at in count(1):
        name = f"{table_name}-{dies_at}"
        dynamodb.create(name)
        life = Life(dynamodb, Pair(name, f"{name}-new", {"items": []}))
        dying = Dying(client_at(dynamodb.url), dies_at, after)
        if not is_killed(life.creation(dying).step):
            break
        until_done(life.creation().step)
        side = life.side
        assert side.told("stream")["arn"] == life.described(name)["LatestStreamArn"]
        assert life.described(life.pair.destination)["TableStatus"] == "ACTIVE"
    assert dies_at > 8


NEW_SETTINGS = ("drop-vector-indexes", TABLE_SETTING, TTL_SETTING)


@pytest.mark.parametrize("unaccepted", NEW_SETTINGS)
def test_nothing_is_created_while_the_source_has_unknown_settings(
    life: Life, unaccepted: str
) -> None:
    before = life.database.tables()
    accepted = [name for name in NEW_SETTINGS if name != unaccepted]
    client = Learned(client_at(life.database.url), life.pair.source)
    with pytest.raises(CannotStart, match=f"accept it by {unaccepted}"):
        life.creation(client, accepted=accepted).step()
    assert life.database.tables() == before


def test_unknown_settings_are_left_out_if_they_are_accepted_by_name(life: Life) -> None:
    client = Learned(client_at(life.database.url), life.pair.source)
    until_done(life.creation(client, accepted=NEW_SETTINGS).step)
    fates = {row["what"]: row["fate"] for row in life.side.told("copied")}
    names = (TABLE_SETTING, TTL_SETTING, "vector index by-meaning")
    assert [fates[name] for name in names] == ["left out"] * 3


@dataclass
class Scaling:
    """Application Auto Scaling, with a policy of a kind that Keyhop does not know."""

    table: str
    calls: list[str] = field(default_factory=list)

    def client_of(self, service: str) -> "Scaling":
        if service != "application-autoscaling":
            raise NotPermitted(f"There is no {service} here.")
        return self

    def get_paginator(self, operation: str) -> "Scaling":
        return replace(self, calls=[operation])

    def paginate(self, **_: Any) -> "Scaling":
        return self

    def search(self, _: str) -> list[dict[str, Any]]:
        of_table = {"ResourceId": f"table/{self.table}"}
        return {
            "describe_scalable_targets": [of_table],
            "describe_scaling_policies": [
                {**of_table, "PolicyName": "seer", "PredictiveScalingPolicyConfiguration": {"a": 1}}
            ],
        }.get(self.calls[0], [])

    def register_scalable_target(self, **parameters: Any) -> None:
        self.calls.append(parameters["ResourceId"])


def test_an_unknown_scaling_policy_is_named_and_left_out_if_it_is_accepted(life: Life) -> None:
    scaling = Scaling(life.pair.source)
    name = "ScalingPolicies.PredictiveScalingPolicyConfiguration"
    with pytest.raises(CannotStart, match=f"accept it by {name}"):
        life.creation(client_of=scaling.client_of).step()
    until_done(life.creation(client_of=scaling.client_of, accepted=[name]).step)
    assert scaling.calls == [f"table/{life.pair.destination}"]


def test_two_creations_at_once_make_one_destination(life: Life) -> None:
    first, second = (life.creation() for _ in range(2))
    until_done(lambda: (first.step(), second.step())[1])
    assert life.side.told("destination")["identity"]


def test_four_processes_at_once_make_one_destination(life: Life) -> None:
    with ThreadPoolExecutor(4) as pool:
        results = pool.map(lambda _: until_done(life.creation().step, 500).done, range(4))
        assert list(results) == [True] * 4
    assert life.side.told("destination")["identity"]
    assert life.side.told("stream")["arn"] == life.described(life.pair.source)["LatestStreamArn"]


def test_a_table_that_another_process_makes_between_two_reads_is_not_missing(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A paused process reads that the table is missing, and later the record of its creation."""
    read, paused = create.find_table, []

    def find_table(connection: Connection, name: str) -> Table | None:
        table = read(connection, name)
        if name == life.pair.destination and not paused:
            paused.append(table)
            until_done(life.creation().step)
        return table

    life.creation().step()  # the side table
    monkeypatch.setattr(create, "find_table", find_table)
    assert until_done(life.creation().step).done
    assert paused == [None]


def test_a_second_create_turns_streams_on_again(life: Life) -> None:
    until_done(life.creation().step)
    tables = (life.pair.source, life.pair.destination)
    for table in tables:
        off = {"StreamEnabled": False}
        life.database.client.update_table(TableName=table, StreamSpecification=off)
    with pytest.raises(CannotStart, match="run create again"):
        until_done(life.starting().step)
    until_done(life.creation().step)
    until_done(life.starting().step)
    assert {life.described(table)["StreamSpecification"]["StreamEnabled"] for table in tables} == {
        True
    }


def test_a_destination_that_was_made_and_deleted_is_named(life: Life) -> None:
    until_done(life.creation().step)
    life.database.client.delete_table(TableName=life.pair.destination)
    with pytest.raises(RunConflict, match="was made, but does not exist"):
        until_done(life.creation().step)


def test_an_existing_table_is_refused_and_left_alone(life: Life) -> None:
    life.database.create(life.pair.destination)
    before = life.database.tables()
    with pytest.raises(RunConflict, match="exists, and was not made for this re-key"):
        life.creation().step()
    assert life.database.tables() == before


def test_a_deleted_control_item_is_not_created_again_after_a_cutover(life: Life) -> None:
    """A new control item would say that the source serves."""
    until_done(life.creation().step)
    life.side.tell(TURNED, {"at": 1.0, "serving": "destination"})
    until_done(life.creation().step)
    key = {"pk": {"S": "control"}, "sk": {"S": "control"}}
    life.database.client.delete_item(TableName=life.pair.side, Key=key)
    with pytest.raises(CannotStart, match="no control item"):
        until_done(life.creation().step)


def test_another_plan_is_refused(life: Life) -> None:
    until_done(life.creation().step)
    pair = Pair(life.pair.source, life.pair.destination, {"items": [{"otherwise": "copy"}]})
    with pytest.raises(RunConflict, match="another plan"):
        replace(life, pair=pair).creation().step()


def test_other_keys_and_another_lease_are_refused_once_the_table_exists(life: Life) -> None:
    until_done(life.creation(lease=60.0).step)
    with pytest.raises(
        RunConflict, match=r"different keys from the plan: .* and not tenant \(S\)\."
    ):
        replace(life.creation(lease=60.0), keys=KeySpace(KEYS.partition, None)).step()
    with pytest.raises(RunConflict, match=r"lease of 60 seconds, and not .*: give lease=60, or"):
        life.creation().step()
    until_done(life.creation(lease=60.0).step)


def test_an_existing_table_with_the_name_of_the_side_table_is_left_alone(life: Life) -> None:
    life.database.create(life.pair.side)
    life.database.fill(life.pair.side, [{"pk": {"S": "plan"}, "sk": {"S": "mine"}}])
    with pytest.raises(RunConflict, match="not empty, and has no plan"):
        life.creation().step()


def create_destination(life: Life) -> None:
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    life.database.create(
        life.pair.destination, ("tenant", "S"), ("order", "N"), StreamSpecification=stream
    )


def test_an_empty_table_with_the_keys_is_adopted_on_request(life: Life) -> None:
    create_destination(life)
    until_done(life.creation(adopt=True).step)
    assert life.side.told("destination")["adopted"]


def test_a_table_whose_items_expire_already_is_not_adopted(life: Life) -> None:
    create_destination(life)
    life.database.client.update_time_to_live(
        TableName=life.pair.destination, TimeToLiveSpecification=SETS_TTL
    )
    with pytest.raises(CannotStart, match="off until the cutover"):
        life.creation(adopt=True).step()
