"""Each feature of the source is copied, set later, listed, left out, or refused."""

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


def features(
    *, other: dict[str, Any] | None = None, arn: str = ARN, **description: Any
) -> Features:
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
    return Features(Table("Orders", table), **(other or {}))


def likeness_of(source: Features, *accepted: str, keys: KeySpace = KEYS) -> Likeness:
    return Likeness(source, "OrdersByTenant", keys, accepted)


def row(likeness: Likeness, feature: str) -> Row:
    (row,) = [row for row in likeness.rows if row.what == feature]
    return row


def test_the_destination_has_its_keys_and_a_stream_with_both_images() -> None:
    request = likeness_of(features()).request
    assert request["TableName"] == "OrdersByTenant"
    assert request["KeySchema"] == schema("tenant", "order")
    assert request["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    assert request["BillingMode"] == "PAY_PER_REQUEST"
    assert [attribute["AttributeName"] for attribute in request["AttributeDefinitions"]] == [
        "tenant",
        "order",
    ]


def test_capacity_class_limits_and_protection_are_copied() -> None:
    request = likeness_of(
        features(
            BillingModeSummary={"BillingMode": "PROVISIONED"},
            ProvisionedThroughput=UNITS,
            TableClassSummary={"TableClass": "STANDARD_INFREQUENT_ACCESS"},
            DeletionProtectionEnabled=True,
            GlobalSecondaryIndexes=[index("by-day", "day", ProvisionedThroughput=UNITS)],
        )
    ).request
    assert request["ProvisionedThroughput"] == UNITS
    assert request["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"] == UNITS
    assert request["TableClass"] == "STANDARD_INFREQUENT_ACCESS"
    assert request["DeletionProtectionEnabled"]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": -1}, None),
        ({"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": 500}, {"MaxWriteRequestUnits": 500}),
    ],
)
def test_a_limit_of_minus_one_is_not_copied(limits: dict[str, int], expected: Any) -> None:
    assert (
        likeness_of(features(OnDemandThroughput=limits)).request.get("OnDemandThroughput")
        == expected
    )


def test_only_warm_throughput_above_that_of_a_new_table_is_copied() -> None:
    usual = {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 4_000, "Status": "ACTIVE"}
    assert "WarmThroughput" not in likeness_of(features(WarmThroughput=usual)).request
    more = {**usual, "WriteUnitsPerSecond": 9_000}
    likeness = likeness_of(features(WarmThroughput=more))
    assert likeness.request["WarmThroughput"] == {
        "ReadUnitsPerSecond": 12_000,
        "WriteUnitsPerSecond": 9_000,
    }
    assert "charges once" in row(likeness, "warm throughput").says


def test_a_provisioned_table_gets_the_warm_throughput_of_the_source() -> None:
    likeness = likeness_of(
        features(
            BillingModeSummary={"BillingMode": "PROVISIONED"},
            ProvisionedThroughput=UNITS,
            WarmThroughput={"ReadUnitsPerSecond": 700, "WriteUnitsPerSecond": 9},
        )
    )
    assert likeness.request["WarmThroughput"] == {
        "ReadUnitsPerSecond": 700,
        "WriteUnitsPerSecond": 9,
    }


def test_an_index_keeps_its_name_keys_and_projection() -> None:
    entry = index("by-day", "day", "number", Projection={"ProjectionType": "KEYS_ONLY"})
    likeness = likeness_of(features(GlobalSecondaryIndexes=[entry]))
    (copied,) = likeness.request["GlobalSecondaryIndexes"]
    assert copied == {name: entry[name] for name in ("IndexName", "KeySchema", "Projection")}
    names = {attribute["AttributeName"] for attribute in likeness.request["AttributeDefinitions"]}
    assert names == {"tenant", "order", "day", "number"}
    assert "destination's keys in the place of" in row(likeness, "index by-day").says


def test_an_index_with_several_key_attributes_is_copied_as_it_is() -> None:
    """This includes an index with both attributes of the new key in its partition key."""
    keys = [
        {"AttributeName": name, "KeyType": kind}
        for name, kind in (("tenant", "HASH"), ("order", "HASH"), ("day", "RANGE"), ("sk", "RANGE"))
    ]
    for key_schema in (keys, keys[:2]):
        entry = index("several") | {"KeySchema": key_schema}
        likeness = likeness_of(features(GlobalSecondaryIndexes=[entry]))
        (copied,) = likeness.request["GlobalSecondaryIndexes"]
        assert copied["KeySchema"] == key_schema


def test_a_projection_does_not_name_the_keys_of_the_destination() -> None:
    includes = {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["order"]}
    likeness = likeness_of(
        features(GlobalSecondaryIndexes=[index("by-day", "day", Projection=includes)])
    )
    (copied,) = likeness.request["GlobalSecondaryIndexes"]
    assert copied["Projection"] == {"ProjectionType": "KEYS_ONLY"}


@pytest.mark.parametrize("name", ["keyhop-keys", "by-tenant"])
def test_an_index_that_the_destination_does_not_need_is_left_out_and_listed(name: str) -> None:
    keys = ("pk", "keyhop") if name == "keyhop-keys" else ("tenant", "order")
    likeness = likeness_of(
        features(types={"keyhop": "N"}, GlobalSecondaryIndexes=[index(name, *keys)])
    )
    assert row(likeness, f"index {name}").fate == "left out"
    assert "GlobalSecondaryIndexes" not in likeness.request
    assert likeness.indexes == ()


def test_an_index_by_a_key_of_another_type_is_refused_until_that_is_accepted() -> None:
    keys = KeySpace((KeyAttribute("tenant", "S"),), KeyAttribute("number", "S"))
    source = features(GlobalSecondaryIndexes=[index("by-number", "number")])
    (refused,) = likeness_of(source, keys=keys).refused
    assert refused.accept == ("drop-indexes",)
    accepted = likeness_of(source, "drop-indexes", keys=keys)
    assert row(accepted, "index by-number").fate == "left out"


def test_local_indexes_are_refused_until_the_user_decides_about_them() -> None:
    source = features(LocalSecondaryIndexes=[index("by-day", "pk", "day")])
    (refused,) = likeness_of(source).refused
    assert refused.accept == ("keep-local-indexes", "drop-local-indexes")
    assert "LocalSecondaryIndexes" not in likeness_of(source, "drop-local-indexes").request
    likeness = likeness_of(source, "keep-local-indexes")
    assert likeness.request["LocalSecondaryIndexes"][0]["KeySchema"] == schema("tenant", "day")
    assert not likeness.refused


def test_without_a_sort_key_there_are_no_local_indexes_to_keep() -> None:
    keys = KeySpace((KeyAttribute("tenant", "S"),))
    source = features(LocalSecondaryIndexes=[index("by-day", "pk", "day")])
    (refused,) = likeness_of(source, "keep-local-indexes", keys=keys).refused
    assert refused.accept == ("drop-local-indexes",)


def test_a_global_table_is_refused_whatever_is_accepted() -> None:
    likeness = likeness_of(features(Replicas=[{"RegionName": "eu-west-1"}]), *ACCEPTS)
    (refused,) = likeness.refused
    assert (refused.what, refused.accept) == ("replicas", ())
    assert "eu-west-1" in refused.says


def test_a_witness_of_a_global_table_is_named_with_the_replicas() -> None:
    replicas = {"Replicas": [{"RegionName": "eu-west-1"}]}
    witness = {"GlobalTableWitnesses": [{"RegionName": "eu-west-3"}]}
    likeness = likeness_of(features(**replicas, **witness), *ACCEPTS)
    assert "eu-west-1, eu-west-3" in row(likeness, "replicas").says


def vector_index(name: str = "by-meaning") -> dict[str, Any]:
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
    source = features(VectorIndexes=[vector_index()])
    (refused,) = likeness_of(source).refused
    assert (refused.what, refused.accept) == ("vector index by-meaning", ("drop-vector-indexes",))
    likeness = likeness_of(source, "drop-vector-indexes")
    assert not likeness.refused
    assert "VectorIndexes" not in likeness.request
    left_out = row(likeness, "vector index by-meaning")
    assert left_out.fate == "left out"
    words = shlex.split(left_out.command)
    options = dict(zip(words[3::2], words[4::2], strict=True))
    assert options["--table-name"] == "OrdersByTenant"
    request = {
        "TableName": options["--table-name"],
        "AttributeDefinitions": json.loads(options["--attribute-definitions"]),
        "VectorIndexUpdates": json.loads(options["--vector-index-updates"]),
    }
    assert request["AttributeDefinitions"] == [{"AttributeName": "tenant", "AttributeType": "S"}]
    service = botocore.session.get_session().get_service_model("dynamodb")
    shape = service.operation_model("UpdateTable").input_shape
    assert not ParamValidator().validate(request, shape).has_errors()


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
        ({"VectorIndexes": [{**vector_index(), "Precision": 64}]}, "VectorIndexes.Precision"),
    ],
)
def test_an_unknown_setting_is_refused_until_it_is_accepted_by_its_name(
    description: dict[str, Any], name: str
) -> None:
    source = features(**description)
    with_all_words = likeness_of(source, *ACCEPTS)
    assert [(row.what, row.accept) for row in with_all_words.refused] == [(name, (name,))]
    likeness = likeness_of(source, *ACCEPTS, name)
    assert not likeness.refused
    assert row(likeness, name).fate == "left out"


def test_an_unknown_setting_without_a_value_is_not_refused() -> None:
    assert not likeness_of(
        features(Telepathy=[], VectorIndexes=[], Echo={}, Hum="", Yawn=None)
    ).refused


def test_an_unknown_setting_in_another_response_is_refused_too() -> None:
    source = features(other={"unknown": ("TimeToLiveDescription.Grace",)})
    (refused,) = likeness_of(source).refused
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
    assert row(likeness_of(features(other={"ttl": "expires"})), "time to live").fate == "later"


def test_tags_of_aws_are_left_out() -> None:
    tags = (("team", "orders"), ("aws:cloudformation:stack-name", "x"))
    likeness = likeness_of(features(other={"tags": tags}))
    assert likeness.request["Tags"] == [{"Key": "team", "Value": "orders"}]
    assert row(likeness, "tags of AWS").fate == "left out"


def test_an_unreadable_feature_is_refused_only_if_it_would_be_copied() -> None:
    hidden = features(other={"unseen": {"tags": "not allowed", "alarms": "not allowed"}})
    (refused,) = likeness_of(hidden).refused
    assert (refused.what, refused.accept) == ("tags", ("unseen",))
    assert row(likeness_of(hidden), "alarms").fate == "listed"
    assert not likeness_of(hidden, "unseen").refused


def test_a_feature_that_a_local_database_lacks_is_listed_and_not_refused() -> None:
    local_arn = ARN.replace("us-east-1:111122223333", "ddblocal:000000000000")
    likeness = likeness_of(features(arn=local_arn, other={"unseen": {"tags": "unknown operation"}}))
    assert row(likeness, "tags").fate == "not here"
    assert not likeness.refused


@pytest.mark.parametrize(
    ("description", "aws_key", "expected"),
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
def test_encryption_uses_the_same_key(
    description: dict[str, str], aws_key: bool, expected: dict[str, Any]
) -> None:
    assert encryption_of(replace(features(SSEDescription=description), aws_key=aws_key)) == expected


def test_names_are_quoted_in_commands() -> None:
    evil = "arn:aws:kinesis:us-east-1:111122223333:stream/x; rm -rf ~"
    stream = row(likeness_of(features(other={"kinesis": (evil,)})), "Kinesis data stream")
    assert f"'{evil}'" in stream.command


def test_an_alarm_in_an_expression_is_found_too() -> None:
    metric = {
        "Namespace": "AWS/DynamoDB",
        "MetricName": "ConsumedReadCapacityUnits",
        "Dimensions": [{"Name": "TableName", "Value": "Orders"}],
    }
    alarm = {"AlarmName": "a", "Metrics": [{"Id": "m", "MetricStat": {"Metric": metric}}]}
    assert names_table(alarm, "Orders")
    assert not names_table(alarm, "Order")
    likeness = likeness_of(features(other={"alarms": (alarm,)}))
    assert '"Value": "OrdersByTenant"' in row(likeness, "alarm").command


def test_a_policy_is_moved_for_this_table_and_not_for_one_whose_name_begins_with_it() -> None:
    policy = f'["{ARN}", "{ARN}/index/*", "{ARN}Old"]'
    new_arn = ARN + "ByTenant"
    assert moved_policy(policy, ARN, new_arn) == f'["{new_arn}", "{new_arn}/index/*", "{ARN}Old"]'


def test_the_command_offers_each_word_that_accepts_something() -> None:
    assert OFFERED == ACCEPTS
