"""Check how a throttled writer reacts to each reason, against a scripted client."""

import datetime
import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.store.capacity import Provisioned
from keyhop.sharding.table import ShardedTable

from testing.partitions import ALL_REASONS
from testing.partitions import HOT_KEY as HOT
from testing.virtual_time import EPOCH as BEGIN
from testing.virtual_time import JumpingClock

POLICY = Policy(threshold=3, window=100, cooldown=5, spread=0.5)
TABLE = {
    "TableName": "t",
    "TableArn": "arn:aws:dynamodb:r:1:table/t",
    "TableStatus": "ACTIVE",
    "CreationDateTime": 0,
    "KeySchema": [
        {"AttributeName": "p", "KeyType": "HASH"},
        {"AttributeName": "s", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "p", "AttributeType": "S"},
        {"AttributeName": "s", "AttributeType": "S"},
    ],
}


def throttle(*reasons: str, field: str = "ThrottlingReasons") -> ClientError:
    fields = {field: [{"reason": r, "resource": "arn"} for r in reasons]} if reasons else {}
    code = "ThrottlingException" if field[0] == "t" else "ProvisionedThroughputExceededException"
    return ClientError({"Error": {"Code": code}, **fields}, "PutItem")


class ScriptedClient:
    """A client with one metadata item. `refuse` decides about all other requests."""

    def __init__(self, refuse: Callable[[str, dict[str, Any]], Exception | None]) -> None:
        self.refuse = refuse
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.updated: list[dict[str, Any]] = []
        self.metadata = {
            "p": {"S": "k"},
            "number_of_shards": {"N": "1"},
            "last_updated": {"N": str(int(BEGIN) - 1000)},
            "shard_history": {"SS": [f"{int(BEGIN) - 1000}:1"]},
        }
        self.table = dict(TABLE)

    def call(self, operation: str, **parameters: Any) -> Any:
        self.calls.append((operation, parameters))
        if operation == "describe_table":
            return {"Table": self.table}
        if operation == "update_table":
            self.updated.append(parameters["ProvisionedThroughput"])
            return {}
        if parameters.get("TableName") == "t-shards":
            if operation == "get_item":
                return {"Item": self.metadata}
            values = parameters["ExpressionAttributeValues"]
            if values.get(":seen") != self.metadata["last_updated"]:  # counts are refused too
                raise ClientError(
                    {
                        "Error": {"Code": "ConditionalCheckFailedException"},
                        "Item": self.metadata,
                    },
                    "UpdateItem",
                )
            for name in parameters["ExpressionAttributeNames"].values():
                self.metadata[name] = values[f":{name}"]
            return {}
        error = self.refuse(operation, parameters)
        if error is not None:
            raise error
        return {}

    def requests_of(self, operation: str) -> list[dict[str, Any]]:
        return [parameters for name, parameters in self.calls if name == operation]


def table_of(client: ScriptedClient, **settings: Any) -> ShardedTable:
    return ShardedTable(
        "t",
        metadata="t-shards",
        client=client,
        clock=JumpingClock(),
        chance=random.Random(1),
        patience=settings.pop("patience", 60.0),
        policy=settings.pop("policy", POLICY),
        **{"placement": "random", "append_only": True, **settings},
    )


def always(error: ClientError) -> Callable[[str, dict[str, Any]], Exception | None]:
    return lambda operation, parameters: error


def put(table: ShardedTable) -> None:
    table.put_item(Item={"p": "k", "s": "a"})


def gives_up(client: ScriptedClient, **settings: Any) -> ShardedTable:
    """Put an item until patience ends, and return the table."""
    table = table_of(client, **settings)
    with pytest.raises(ClientError):
        put(table)
    return table


@pytest.mark.parametrize("field", ["ThrottlingReasons", "throttlingReasons"])
@pytest.mark.parametrize("reason", ALL_REASONS)
def test_only_a_hot_key_range_of_the_table_adds_shards(reason: str, field: str) -> None:
    client = ScriptedClient(always(throttle(reason, field=field)))
    table = table_of(client)
    with pytest.raises(ClientError) as refused:
        put(table)
    assert "ThrottlingReasons" in refused.value.response or field in refused.value.response
    number = int(client.metadata["number_of_shards"]["N"])  # type: ignore[call-overload]
    assert (number > 1) == (reason == HOT)
    assert table.usage.throttles[reason] >= 3
    assert (table.usage.counters["hot_throttles"] > 0) == (reason == HOT)
    assert table.usage.counters["probes"] == 0


def test_growth_waits_for_threshold_cooldown_and_the_phases() -> None:
    client = ScriptedClient(always(throttle(HOT)))
    gives_up(client, patience=60)
    history = sorted(
        tuple(map(int, entry.split(":"))) for entry in client.metadata["shard_history"]["SS"]
    )
    moments = [at for at, _ in history][1:]
    assert len(moments) >= 3
    gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
    assert min(gaps) >= 7, "2.5 seconds announced, and five seconds of cooldown"
    counts = [count for _, count in history]
    assert counts[:2] == [1, 2]
    assert all(b <= 2 * a for a, b in itertools.pairwise(counts))
    shards_used = {parameters["Item"]["p"]["S"] for parameters in client.requests_of("put_item")}
    assert len(shards_used) > 2, "it continues to write to the existing shards"


def test_a_lost_race_adopts_the_winners_count_without_another_read() -> None:
    random.seed(0)  # fixes the waits: with others, patience ends before the race
    client = ScriptedClient(always(throttle(HOT)))
    table = table_of(client, patience=2, policy=replace(POLICY, window=1, lasting=0.1))
    table.metadata.of({"S": "k"})
    table.requests.clock.sleep(5.0)
    call = client.call

    def somebody_else_first(operation: str, **parameters: Any) -> Any:
        is_growth = ":number_of_shards" in parameters.get("ExpressionAttributeValues", {})
        if is_growth and client.metadata["number_of_shards"]["N"] == "1":
            at = int(BEGIN) + 1
            client.metadata |= {
                "number_of_shards": {"N": "7"},
                "last_updated": {"N": str(at)},
                "shard_history": {"SS": [f"{at}:7"]},
            }
        return call(operation, **parameters)

    client.call = somebody_else_first  # type: ignore[method-assign]
    with pytest.raises(ClientError):
        put(table)
    assert table.usage.counters["races_lost"] == 1
    assert table.usage.counters["shards_added"] == 0
    assert table.metadata.of({"S": "k"}).shards.number == 7
    reads = [p for p in client.requests_of("get_item") if p["Key"] == {"p": {"S": "k"}}]
    assert len(reads) <= 2, "one read first, and one by the put; none after the race"


def test_without_a_reason_a_delete_that_changes_nothing_probes_one_key() -> None:
    def refuse(operation: str, parameters: dict[str, Any]) -> Exception:
        if operation == "delete_item":
            assert "attribute_exists(#p) AND attribute_not_exists(#p)" in str(parameters)
            return throttle(HOT)
        return throttle()

    client = ScriptedClient(refuse)
    table = gives_up(client, patience=30)
    assert table.usage.counters["probes"] >= 3
    assert int(client.metadata["number_of_shards"]["N"]) > 1  # type: ignore[call-overload]


class CloudWatch:
    def __init__(self, consumed: list[float], provisioned: list[float]) -> None:
        self.values = {"consumed": consumed, "provisioned": provisioned}
        self.request_count = 0

    def get_metric_data(self, **parameters: Any) -> Any:
        self.request_count += 1
        assert parameters["StartTime"] < parameters["EndTime"]
        return {
            "MetricDataResults": [
                {"Id": query["Id"], "Values": self.values[query["Id"]]}
                for query in parameters["MetricDataQueries"]
            ]
        }


@pytest.mark.parametrize(
    ("cloudwatch", "grows"),
    [
        (None, False),
        (CloudWatch([], []), False),
        (CloudWatch([60 * 10.0], []), False),
        (CloudWatch([60 * 10.0], [100.0]), True),
        (CloudWatch([60 * 95.0], [100.0]), False),
        (CloudWatch([60 * 70.0], [100.0]), False),
    ],
)
def test_cloudwatch_is_asked_last_and_unclear_metrics_add_no_shard(
    cloudwatch: CloudWatch | None, grows: bool
) -> None:
    client = ScriptedClient(always(throttle()))
    gives_up(client, patience=30, cloudwatch=cloudwatch)
    assert (client.metadata["number_of_shards"]["N"] != "1") == grows
    if cloudwatch is not None:
        assert cloudwatch.request_count == 1, "CloudWatch has one value a minute"


@pytest.mark.parametrize(
    ("cloudwatch", "says"),
    [
        (CloudWatch([60 * 10.0], [100.0]), "within minutes instead of seconds"),
        (None, "no shards are added, unless cloudwatch= is given"),
    ],
)
def test_a_client_that_reads_no_reasons_is_reported_once(
    cloudwatch: CloudWatch | None, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = gives_up(ScriptedClient(always(throttle())), patience=30, cloudwatch=cloudwatch)
    with pytest.raises(ClientError):
        put(table)
    (warning,) = (record.message for record in caplog.records if "reason" in record.message)
    assert says in warning
    assert "1.40.10" in warning


def test_a_later_throttle_with_a_reason_is_not_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gives_up(ScriptedClient(lambda name, _: throttle(*[HOT] * (name == "delete_item"))), patience=5)
    assert "reason" not in caplog.text


def test_a_table_that_is_too_small_is_raised_once_within_its_bounds() -> None:
    client = ScriptedClient(always(throttle("TableWriteProvisionedThroughputExceeded")))
    client.table["ProvisionedThroughput"] = {"ReadCapacityUnits": 7, "WriteCapacityUnits": 100}
    table = gives_up(client, patience=30, provisioned=Provisioned(50, 140))
    for _ in range(2):
        with pytest.raises(ClientError):
            put(table)
    assert client.updated[0] == {"ReadCapacityUnits": 7, "WriteCapacityUnits": 140}
    assert len(client.updated) <= 2
    assert client.metadata["number_of_shards"]["N"] == "1"


@pytest.mark.parametrize(
    ("present", "raised"),
    [
        ({"ReadCapacityUnits": 1, "WriteCapacityUnits": 10}, 50),
        ({"ReadCapacityUnits": 1, "WriteCapacityUnits": 120}, 140),
        ({"ReadCapacityUnits": 1, "WriteCapacityUnits": 140}, None),
        ({"ReadCapacityUnits": 1, "WriteCapacityUnits": 900}, None),
        ({"ReadCapacityUnits": 0, "WriteCapacityUnits": 0}, None),
        (
            {
                "ReadCapacityUnits": 1,
                "WriteCapacityUnits": 80,
                "LastIncreaseDateTime": datetime.datetime.fromtimestamp(BEGIN - 5, datetime.UTC),
            },
            None,
        ),
    ],
)
def test_capacity_is_never_lowered_and_not_raised_twice(present: Any, raised: Any) -> None:
    client = ScriptedClient(always(throttle("TableWriteProvisionedThroughputExceeded")))
    client.table["ProvisionedThroughput"] = present
    gives_up(client, patience=1, provisioned=Provisioned(50, 140))
    assert [update["WriteCapacityUnits"] for update in client.updated] == (
        [raised] if raised else []
    )


def test_a_write_without_an_answer_is_repeated_to_the_same_shard() -> None:
    """Another shard could duplicate the item. A throttled write was certainly not made."""
    errors: list[Exception | None] = [
        *[ConnectionClosedError(endpoint_url="http://x")] * 6,
        *[ClientError({"Error": {}, "ResponseMetadata": {"HTTPStatusCode": 500}}, "PutItem")] * 6,
        None,
        *[throttle(HOT)] * 2,
        None,
    ]
    client = ScriptedClient(lambda operation, parameters: errors.pop(0))
    client.metadata["number_of_shards"] = {"N": "32"}
    client.metadata["shard_history"] = {"SS": ["1:32"]}
    table = table_of(client)
    put(table)
    assert len({p["Item"]["p"]["S"] for p in client.requests_of("put_item")}) == 1
    client.calls.clear()
    put(table)
    assert len({p["Item"]["p"]["S"] for p in client.requests_of("put_item")}) > 1
    assert table.usage.requests >= 16


def test_other_errors_pass_through_untouched_and_at_once() -> None:
    for code in ("ValidationException", "AccessDeniedException", "ItemCollectionSizeLimitExceeded"):
        error = ClientError({"Error": {"Code": code}}, "PutItem")
        client = ScriptedClient(always(error))
        table = table_of(client)
        with pytest.raises(ClientError) as refused:
            put(table)
        assert refused.value is error
        assert len(client.requests_of("put_item")) == 1
