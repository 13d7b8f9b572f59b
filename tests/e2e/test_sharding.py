"""A sharded table on the laptop cloud: the functions, and a drain during reads and writes."""

import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from keyhop.public.deployment import Run
from keyhop.sharding.key.schema import Names
from keyhop.sharding.key.shards import Shards, from_item
from keyhop.sharding.table import ShardedTable

from tests.e2e.conftest import Deployed
from tests.infra.recorded import METADATA, SHARDED
from tests.recording.proxy import Answer, Request, refusal
from tests.recording.recorder import Recorder

TABLE = SHARDED["table"]
KEY = "/srv/share/budget.xlsx"


@pytest.fixture(scope="module")
def sharded(deployed: Deployed) -> Deployed:
    """Create the table and its metadata, because nothing is deployed to DynamoDB Local."""
    deployed.database.create(TABLE, partition=("path", "S"), sort=("moment", "N"))
    deployed.database.create(METADATA, partition=("path", "S"), sort=None)
    return deployed


def register(deployed: Deployed, key: str, shards: int, **more: Any) -> None:
    """Register a key that has not been used for long, and whose steps take the minimum time."""
    long_ago = int(time.time()) - 200_000
    deployed.database.client.put_item(
        TableName=METADATA,
        Item={
            "path": {"S": key},
            "number_of_shards": {"N": str(shards)},
            "last_updated": {"N": str(long_ago)},
            "shard_history": {"SS": [f"{long_ago}:{shards}"]},
            "settle_seconds": {"N": "2"},
            **more,
        },
    )


def metadata(deployed: Deployed, key: str) -> Shards:
    response = deployed.database.client.get_item(
        TableName=METADATA, Key={"path": {"S": key}}, ConsistentRead=True
    )
    return from_item(response["Item"])


def shards_of(deployed: Deployed, key: str) -> Counter[int]:
    """Count the items of each shard."""
    counts: Counter[int] = Counter()
    for item in deployed.database.client.scan(TableName=TABLE)["Items"]:
        parsed = Names().parsed(item["path"])
        assert parsed is not None
        if parsed[0] == {"S": key}:
            counts[parsed[1]] += 1
    return counts


def invoke(deployed: Deployed, function: str, event: Any) -> Any:
    response = deployed.cloud.client("lambda").invoke(
        FunctionName=f"Keyhop-{function}", Payload=json.dumps(event)
    )
    return json.loads(response["Payload"].read())


def drain(deployed: Deployed, key: str, **options: Any) -> Run:
    return deployed.run({"table": TABLE, "key": key, **options}, machine="DrainShards")


def test_the_deployed_functions_write_query_and_drain(sharded: Deployed) -> None:
    register(sharded, KEY, 4)
    items: list[Any] = [{"path": KEY, "moment": n, "who": f"u{n}"} for n in range(60)]
    items[3] = {"path": KEY, "who": "nobody"}
    output = invoke(sharded, "WriteSharded", {"table": TABLE, "items": items})
    assert output["written"] == 59
    assert [failed["index"] for failed in output["failed"]] == [3]
    assert "moment" in output["failed"][0]["message"]
    assert len(output["results"]) == 60
    assert set(shards_of(sharded, KEY)) == {1, 2, 3, 4}

    query = {"table": TABLE, "key": KEY, "descending": True, "limit": 40, "consistent": True}
    page = invoke(sharded, "QuerySharded", query)
    rest = invoke(sharded, "QuerySharded", {**query, "pageToken": page["pageToken"]})
    moments = [item["moment"] for item in [*page["items"], *rest["items"]]]
    assert moments == [n for n in range(59, -1, -1) if n != 3]
    assert rest["pageToken"] is None
    page = invoke(sharded, "QuerySharded", {**query, "between": [10, 12], "descending": False})
    assert [item["who"] for item in page["items"]] == ["u10", "u11", "u12"]

    table = ShardedTable(TABLE, metadata=METADATA, endpoint_url=sharded.cloud.dynamodb)
    acknowledged = set(moments)
    reads = 0
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(drain, sharded, KEY, shards=1)
        moment = 100
        while not future.done():
            before = set(acknowledged)
            moments = [int(item["moment"]) for item in table.query(KEY, consistent=True)]
            assert len(moments) == len(set(moments)), "none twice"
            assert before <= set(moments), "none missing"
            reads += 1
            table.put_item(Item={"path": KEY, "moment": moment})
            acknowledged.add(moment)
            moment += 1
    table.close()
    run = future.result()
    assert run.status == "SUCCEEDED", run
    assert reads > 2
    shards = metadata(sharded, KEY)
    assert (shards.number, shards.readable, shards.phase) == (1, 1, "steady")
    assert shards_of(sharded, KEY) == {1: len(acknowledged)}


def test_wrong_input_is_refused_and_fails_a_drain(sharded: Deployed) -> None:
    output = invoke(sharded, "WriteSharded", {"table": "Elsewhere", "items": []})
    assert output["errorType"] == "InvalidInput"
    assert "Elsewhere" in output["errorMessage"]
    run = drain(sharded, "/never/written", shards=1)
    assert (run.status, run.error) == ("FAILED", "CannotStart")
    assert "never written" in (run.cause or "")
    run = drain(sharded, KEY)
    assert (run.status, run.error) == ("FAILED", "InvalidInput")


def test_keys_with_more_shards_than_they_need_are_proposed(sharded: Deployed) -> None:
    an_hour_ago = int(time.time() // 60) - 60
    register(sharded, "/quiet", 8, traffic={"M": {str(an_hour_ago): {"N": "1"}}})
    register(sharded, "/unknown", 8)
    proposals = invoke(sharded, "ProposeDrains", {})
    assert "/unknown" not in {proposal["key"] for proposal in proposals}
    (quiet,) = (proposal for proposal in proposals if proposal["key"] == "/quiet")
    assert (quiet["table"], quiet["from"], quiet["to"], quiet["started"]) == (TABLE, 8, 1, False)
    assert quiet["reason"]


def physical(key: str, shard: int) -> str:
    return str(Names().physical({"S": key}, shard)["S"])


def put(deployed: Deployed, key: str, shard: int, moment: int) -> None:
    """Put an item into a shard."""
    item = {"path": {"S": physical(key, shard)}, "moment": {"N": str(moment)}}
    deployed.database.client.put_item(TableName=TABLE, Item=item)


def test_items_of_older_shards_are_moved_and_copies_deleted(sharded: Deployed) -> None:
    """Write and drain a key with copies in several shards."""
    key = "/srv/older"
    register(sharded, key, 4)
    for moment in range(8):
        for shard in (1, 2, 3):
            put(sharded, key, shard, moment)
    items = [{"path": key, "moment": moment, "new": True} for moment in range(6)]
    output = invoke(sharded, "WriteSharded", {"table": TABLE, "items": items})
    assert output["written"] == 6, output
    copies = shards_of(sharded, key)
    assert copies.total() == 6 + 2 * 3, "two items, which were not written, keep three copies"
    run = drain(sharded, key, shards=1)
    assert run.status == "SUCCEEDED", run
    assert shards_of(sharded, key) == {1: 8}


def test_a_new_key_is_written_in_batches_and_a_hot_one_gets_shards(
    sharded: Deployed, recorder: Recorder
) -> None:
    cold = [{"path": "/srv/new", "moment": moment} for moment in range(10)]
    assert invoke(sharded, "WriteSharded", {"table": TABLE, "items": cold})["written"] == 10
    register(sharded, "/srv/hot", 1)
    hot = {"table": TABLE, "items": [{"path": "/srv/hot", "moment": 1}]}
    reason = {"reason": "TableWriteKeyRangeThroughputExceeded", "resource": "arn:t"}
    throttled = refusal("ThrottlingException", "Slow down", throttlingReasons=[reason])
    without_reason = refusal(
        "ThrottlingException", "Rate of requests exceeds the allowed throughput."
    )

    def fault(request: Request) -> Answer | None:
        is_write = request.operation == "PutItem" and b'"/srv/hot' in request.body
        if not is_write or f'"{METADATA}"'.encode() in request.body:
            return None
        attempts.append(request)
        if metadata(sharded, "/srv/hot").number > 1:
            return None
        return without_reason if len(attempts) < 3 else throttled

    attempts: list[Request] = []
    with recorder.answering(fault):
        assert invoke(sharded, "WriteSharded", hot)["written"] == 1
    assert metadata(sharded, "/srv/hot").number == 2


def test_logical_keys_are_folded_by_their_metadata(sharded: Deployed) -> None:
    key = "/srv/folded"
    register(sharded, key, 3)
    for shard in (1, 2, 3):
        put(sharded, key, shard, 7)
    sharded.complete({"table": TABLE, "logical": True, "metadata": METADATA}, "folded")
    assert sharded.listed_keys("folded", "path")[key] == 1
