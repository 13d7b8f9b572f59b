"""What becomes of each feature of the source: copied, later, listed, left out, or refused."""

import json
import shlex
from dataclasses import replace
from typing import Any

import botocore.session
import click
import pytest
from botocore.validate import ParamValidator
from keyhop.cli.rekey import ACCEPTS as OFFERED
from keyhop.cli.rekey import Accepted
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.tables import Table
from keyhop.rekey.life_cycle.features import Features, moved_policy, names_table
from keyhop.rekey.life_cycle.likeness import ACCEPTS, Likeness, Row, encryption_of

ARN = "arn:aws:dynamodb:us-east-1:111122223333:table/Orders"
KEYS = KeySpace((KeyAttribute("tenant", "S"),), KeyAttribute("order", "N"))
UNITS = {"ReadCapacityUnits": 7, "WriteCapacityUnits": 9}


def schema(*names: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": name, "KeyType": kind}
        for name, kind in zip(names, ("HASH", "RANGE"), strict=False)
    ]


def index(name: str, *keys: str, **more: Any) -> dict[str, Any]:
    projection = {"Projection": {"ProjectionType": "ALL"}}
    return {"IndexName": name, "KeySchema": schema(*keys), **projection, **more}


def features(*, seen: dict[str, Any] | None = None, arn: str = ARN, **description: Any) -> Features:
    types = {"pk": "S", "sk": "S", "day": "S", "tenant": "S", "order": "N", "number": "N"}
    types |= description.pop("types", {})
    table = {
        "TableName": "Orders",
        "TableArn": arn,
        "KeySchema": schema("pk", "sk"),
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": type_} for name, type_ in types.items()
        ],
        "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
        **description,
    }
    return Features(Table("Orders", table), **(seen or {}))


def alike(of: Features, *accepted: str, keys: KeySpace = KEYS) -> Likeness:
    return Likeness(of, "OrdersByTenant", keys, accepted)


def row(found: Likeness, what: str) -> Row:
    (one,) = [row for row in found.rows if row.what == what]
    return one


def test_the_destination_has_its_keys_and_a_stream_with_both_images() -> None:
    asked = alike(features()).request
    assert asked["TableName"] == "OrdersByTenant"
    assert asked["KeySchema"] == schema("tenant", "order")
    assert asked["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    assert asked["BillingMode"] == "PAY_PER_REQUEST"
    assert [one["AttributeName"] for one in asked["AttributeDefinitions"]] == ["tenant", "order"]


def test_capacity_class_limits_and_protection_are_copied() -> None:
    asked = alike(
        features(
            BillingModeSummary={"BillingMode": "PROVISIONED"},
            ProvisionedThroughput=UNITS,
            TableClassSummary={"TableClass": "STANDARD_INFREQUENT_ACCESS"},
            DeletionProtectionEnabled=True,
            GlobalSecondaryIndexes=[index("by-day", "day", ProvisionedThroughput=UNITS)],
        )
    ).request
    assert asked["ProvisionedThroughput"] == UNITS
    assert asked["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"] == UNITS
    assert asked["TableClass"] == "STANDARD_INFREQUENT_ACCESS"
    assert asked["DeletionProtectionEnabled"]


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ({"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": -1}, None),
        (
            {"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": 500},
            {"MaxWriteRequestUnits": 500},
        ),
    ],
)
def test_a_limit_of_minus_one_is_none(told: dict[str, int], asked: Any) -> None:
    assert alike(features(OnDemandThroughput=told)).request.get("OnDemandThroughput") == asked


def test_what_a_new_table_has_anyway_is_not_warmed() -> None:
    usual = {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 4_000, "Status": "ACTIVE"}
    assert "WarmThroughput" not in alike(features(WarmThroughput=usual)).request
    more = {**usual, "WriteUnitsPerSecond": 9_000}
    found = alike(features(WarmThroughput=more))
    assert found.request["WarmThroughput"] == {
        "ReadUnitsPerSecond": 12_000,
        "WriteUnitsPerSecond": 9_000,
    }
    assert "charges once" in row(found, "warm throughput").says


def test_of_a_provisioned_table_nothing_is_warmed_beyond_what_the_source_has() -> None:
    found = alike(
        features(
            BillingModeSummary={"BillingMode": "PROVISIONED"},
            ProvisionedThroughput=UNITS,
            WarmThroughput={"ReadUnitsPerSecond": 700, "WriteUnitsPerSecond": 9},
        )
    )
    assert found.request["WarmThroughput"] == {"ReadUnitsPerSecond": 700, "WriteUnitsPerSecond": 9}


def test_an_index_keeps_its_name_keys_and_projection() -> None:
    kept = index("by-day", "day", "number", Projection={"ProjectionType": "KEYS_ONLY"})
    found = alike(features(GlobalSecondaryIndexes=[kept]))
    (made,) = found.request["GlobalSecondaryIndexes"]
    assert made == {name: kept[name] for name in ("IndexName", "KeySchema", "Projection")}
    names = {one["AttributeName"] for one in found.request["AttributeDefinitions"]}
    assert names == {"tenant", "order", "day", "number"}
    assert "destination's keys in the place of" in row(found, "index by-day").says


def test_an_index_with_several_key_attributes_is_copied_as_it_is() -> None:
    """Also if its attributes are those of the new key: both in its partition key is another key."""
    keys = [
        {"AttributeName": name, "KeyType": kind}
        for name, kind in (("tenant", "HASH"), ("order", "HASH"), ("day", "RANGE"), ("sk", "RANGE"))
    ]
    for several in (keys, keys[:2]):
        entry = index("several") | {"KeySchema": several}
        (asked,) = alike(features(GlobalSecondaryIndexes=[entry])).request["GlobalSecondaryIndexes"]
        assert asked["KeySchema"] == several


def test_a_key_of_the_destination_is_in_each_index_without_being_named() -> None:
    includes = {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["order"]}
    found = alike(features(GlobalSecondaryIndexes=[index("by-day", "day", Projection=includes)]))
    (made,) = found.request["GlobalSecondaryIndexes"]
    assert made["Projection"] == {"ProjectionType": "KEYS_ONLY"}


@pytest.mark.parametrize("name", ["keyhop-keys", "by-tenant"])
def test_an_index_that_makes_no_sense_there_is_left_out_and_told(name: str) -> None:
    keys = ("pk", "keyhop") if name == "keyhop-keys" else ("tenant", "order")
    found = alike(features(types={"keyhop": "N"}, GlobalSecondaryIndexes=[index(name, *keys)]))
    assert row(found, f"index {name}").fate == "left out"
    assert "GlobalSecondaryIndexes" not in found.request
    assert found.indexes == ()


def test_an_index_by_a_key_of_another_type_is_refused_until_that_is_accepted() -> None:
    keys = KeySpace((KeyAttribute("tenant", "S"),), KeyAttribute("number", "S"))
    source = features(GlobalSecondaryIndexes=[index("by-number", "number")])
    (refused,) = alike(source, keys=keys).refused
    assert refused.accept == ("drop-indexes",)
    accepted = alike(source, "drop-indexes", keys=keys)
    assert row(accepted, "index by-number").fate == "left out"


def test_local_indexes_are_refused_until_it_is_said_what_becomes_of_them() -> None:
    source = features(LocalSecondaryIndexes=[index("by-day", "pk", "day")])
    (refused,) = alike(source).refused
    assert refused.accept == ("keep-local-indexes", "drop-local-indexes")
    assert "LocalSecondaryIndexes" not in alike(source, "drop-local-indexes").request
    kept = alike(source, "keep-local-indexes")
    assert kept.request["LocalSecondaryIndexes"][0]["KeySchema"] == schema("tenant", "day")
    assert not kept.refused


def test_without_a_sort_key_there_are_no_local_indexes_to_keep() -> None:
    keys = KeySpace((KeyAttribute("tenant", "S"),))
    source = features(LocalSecondaryIndexes=[index("by-day", "pk", "day")])
    (refused,) = alike(source, "keep-local-indexes", keys=keys).refused
    assert refused.accept == ("drop-local-indexes",)


def test_a_global_table_is_refused_whatever_is_accepted() -> None:
    found = alike(features(Replicas=[{"RegionName": "eu-west-1"}]), *ACCEPTS)
    (refused,) = found.refused
    assert (refused.what, refused.accept) == ("replicas", ())
    assert "eu-west-1" in refused.says


def test_a_witness_of_a_global_table_is_named_with_the_replicas() -> None:
    replicas = {"Replicas": [{"RegionName": "eu-west-1"}]}
    witness = {"GlobalTableWitnesses": [{"RegionName": "eu-west-3"}]}
    found = alike(features(**replicas, **witness), *ACCEPTS)
    assert "eu-west-1, eu-west-3" in row(found, "replicas").says


def vectors(name: str = "by-meaning") -> dict[str, Any]:
    return {
        "IndexName": name,
        "VectorAttribute": {"AttributeName": "embedding"},
        "SearchSchema": [{"AttributeName": "tenant", "SearchSchemaElementType": "HASH"}],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
        "Dimensions": 3,
        "DistanceFunction": "COSINE",
        "IndexStatus": "ACTIVE",
        "IndexArn": f"{ARN}/index/{name}",
    }


def test_a_vector_index_is_refused_until_it_is_accepted_with_the_command_that_makes_it() -> None:
    source = features(VectorIndexes=[vectors()])
    (refused,) = alike(source).refused
    assert (refused.what, refused.accept) == ("vector index by-meaning", ("drop-vector-indexes",))
    found = alike(source, "drop-vector-indexes")
    assert not found.refused
    assert "VectorIndexes" not in found.request
    left_out = row(found, "vector index by-meaning")
    assert left_out.fate == "left out"
    words = shlex.split(left_out.command)
    options = dict(zip(words[3::2], words[4::2], strict=True))
    assert options["--table-name"] == "OrdersByTenant"
    asked = {
        "TableName": options["--table-name"],
        "AttributeDefinitions": json.loads(options["--attribute-definitions"]),
        "VectorIndexUpdates": json.loads(options["--vector-index-updates"]),
    }
    assert asked["AttributeDefinitions"] == [{"AttributeName": "tenant", "AttributeType": "S"}]
    service = botocore.session.get_session().get_service_model("dynamodb")
    shape = service.operation_model("UpdateTable").input_shape
    assert not ParamValidator().validate(asked, shape).has_errors()


@pytest.mark.parametrize(
    ("description", "name"),
    [
        ({"Telepathy": {"Enabled": True}}, "Telepathy"),
        ({"Telepathy": False}, "Telepathy"),
        ({"StreamSpecification": {"Retention": 48}}, "StreamSpecification.Retention"),
        (
            {"GlobalSecondaryIndexes": [index("by-day", "day", Order="newest")]},
            "GlobalSecondaryIndexes.Order",
        ),
        ({"VectorIndexes": [{**vectors(), "Precision": 64}]}, "VectorIndexes.Precision"),
    ],
)
def test_what_keyhop_does_not_know_is_refused_until_it_is_accepted_by_its_name(
    description: dict[str, Any], name: str
) -> None:
    source = features(**description)
    every_word = alike(source, *ACCEPTS)
    assert [(one.what, one.accept) for one in every_word.refused] == [(name, (name,))]
    found = alike(source, *ACCEPTS, name)
    assert not found.refused
    assert row(found, name).fate == "left out"


def test_what_holds_nothing_is_not_refused() -> None:
    assert not alike(features(Telepathy=[], VectorIndexes=[], Echo={}, Hum="", Yawn=None)).refused


def test_what_the_other_answers_have_is_refused_too() -> None:
    source = features(seen={"unknown": ("TimeToLiveDescription.Grace",)})
    (refused,) = alike(source).refused
    assert refused.accept == ("TimeToLiveDescription.Grace",)


@pytest.mark.parametrize("text", [*ACCEPTS, "Telepathy", "TimeToLiveDescription.Grace"])
def test_the_command_takes_words_and_names_of_settings(text: str) -> None:
    assert Accepted().convert(text, None, None) == text


@pytest.mark.parametrize(
    "text", ["", "drop-everything", "telepathy", "Tags.", "Tags..Scope", "A B"]
)
def test_the_command_takes_no_other_text(text: str) -> None:
    with pytest.raises(click.BadParameter, match="drop-vector-indexes"):
        Accepted().convert(text, None, None)


def test_items_expire_later() -> None:
    assert row(alike(features(seen={"ttl": "expires"})), "time to live").fate == "later"


def test_tags_of_aws_are_left_out() -> None:
    tags = (("team", "orders"), ("aws:cloudformation:stack-name", "x"))
    found = alike(features(seen={"tags": tags}))
    assert found.request["Tags"] == [{"Key": "team", "Value": "orders"}]
    assert row(found, "tags of AWS").fate == "left out"


def test_what_cannot_be_seen_is_refused_if_it_would_be_copied_and_told_if_it_is_only_listed() -> (
    None
):
    hidden = features(seen={"unseen": {"tags": "not allowed", "alarms": "not allowed"}})
    (refused,) = alike(hidden).refused
    assert (refused.what, refused.accept) == ("tags", ("unseen",))
    assert row(alike(hidden), "alarms").fate == "listed"
    assert not alike(hidden, "unseen").refused


def test_what_a_local_database_does_not_know_is_told_and_stops_nothing() -> None:
    here = ARN.replace("us-east-1:111122223333", "ddblocal:000000000000")
    found = alike(features(arn=here, seen={"unseen": {"tags": "unknown operation"}}))
    assert row(found, "tags").fate == "not here"
    assert not found.refused


@pytest.mark.parametrize(
    ("told", "aws_key", "asked"),
    [
        ({}, False, {}),
        ({"Status": "DISABLED", "SSEType": "KMS"}, False, {}),
        (
            {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": "arn:key"},
            False,
            {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": "arn:key"},
        ),
        (
            {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": "arn:key"},
            True,
            {"Enabled": True, "SSEType": "KMS"},
        ),
    ],
)
def test_encryption_is_by_the_same_key(
    told: dict[str, str], aws_key: bool, asked: dict[str, Any]
) -> None:
    assert encryption_of(replace(features(SSEDescription=told), aws_key=aws_key)) == asked


def test_others_names_are_quoted_in_commands() -> None:
    evil = "arn:aws:kinesis:us-east-1:111122223333:stream/x; rm -rf ~"
    told = row(alike(features(seen={"kinesis": (evil,)})), "Kinesis data stream")
    assert f"'{evil}'" in told.command


def test_an_alarm_in_an_expression_is_found_too() -> None:
    metric = {
        "Namespace": "AWS/DynamoDB",
        "MetricName": "ConsumedReadCapacityUnits",
        "Dimensions": [{"Name": "TableName", "Value": "Orders"}],
    }
    alarm = {"AlarmName": "a", "Metrics": [{"Id": "m", "MetricStat": {"Metric": metric}}]}
    assert names_table(alarm, "Orders")
    assert not names_table(alarm, "Order")
    found = alike(features(seen={"alarms": (alarm,)}))
    assert '"Value": "OrdersByTenant"' in row(found, "alarm").command


def test_a_policy_is_moved_for_this_table_and_not_for_one_whose_name_begins_so() -> None:
    policy = f'["{ARN}", "{ARN}/index/*", "{ARN}Old"]'
    there = ARN + "ByTenant"
    assert moved_policy(policy, ARN, there) == f'["{there}", "{there}/index/*", "{ARN}Old"]'


def test_the_command_offers_each_word_by_which_something_is_accepted() -> None:
    assert OFFERED == ACCEPTS
