"""A sharded table on the laptop cloud: the deployed functions, and the drain while all goes on."""

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
    """The table, and its metadata: DynamoDB is DynamoDB Local here, which nobody deploys to."""
    deployed.database.create(TABLE, partition=("path", "S"), sort=("moment", "N"))
    deployed.database.create(METADATA, partition=("path", "S"), sort=None)
    return deployed


def register(deployed: Deployed, key: str, shards: int, **more: Any) -> None:
    """A key whose steps take as little time as is possible, and which nobody has used for long."""
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
    answer = deployed.database.client.get_item(
        TableName=METADATA, Key={"path": {"S": key}}, ConsistentRead=True
    )
    return from_item(answer["Item"])


def shards_of(deployed: Deployed, key: str) -> Counter[int]:
    """How many items lie in each shard."""
    found: Counter[int] = Counter()
    for item in deployed.database.client.scan(TableName=TABLE)["Items"]:
        parsed = Names().parsed(item["path"])
        assert parsed is not None
        if parsed[0] == {"S": key}:
            found[parsed[1]] += 1
    return found


def invoke(deployed: Deployed, function: str, event: Any) -> Any:
    answer = deployed.cloud.client("lambda").invoke(
        FunctionName=f"Keyhop-{function}", Payload=json.dumps(event)
    )
    return json.loads(answer["Payload"].read())


def drain(deployed: Deployed, given: Any) -> Run:
    return deployed.run(given, machine="DrainShards")


def test_written_read_and_drained_by_what_is_deployed(sharded: Deployed) -> None:
    register(sharded, KEY, 4)
    items: list[Any] = [{"path": KEY, "moment": n, "who": f"u{n}"} for n in range(60)]
    items[3] = {"path": KEY, "who": "nobody"}
    told = invoke(sharded, "WriteSharded", {"table": TABLE, "items": items})
    assert told["written"] == 59
    assert [failed["index"] for failed in told["failed"]] == [3]
    assert "moment" in told["failed"][0]["message"]
    assert len(told["results"]) == 60
    assert set(shards_of(sharded, KEY)) == {1, 2, 3, 4}

    asked = {"table": TABLE, "key": KEY, "descending": True, "limit": 40, "consistent": True}
    page = invoke(sharded, "QuerySharded", asked)
    rest = invoke(sharded, "QuerySharded", {**asked, "pageToken": page["pageToken"]})
    found = [item["moment"] for item in [*page["items"], *rest["items"]]]
    assert found == [n for n in range(59, -1, -1) if n != 3]
    assert rest["pageToken"] is None
    between = {**asked, "between": [10, 12], "descending": False}
    assert [i["who"] for i in invoke(sharded, "QuerySharded", between)["items"]] == [
        *("u10", "u11", "u12")
    ]

    table = ShardedTable(TABLE, metadata=METADATA, endpoint_url=sharded.cloud.dynamodb)
    acknowledged = set(found)
    reads = 0
    with ThreadPoolExecutor(1) as elsewhere:
        draining = elsewhere.submit(drain, sharded, {"table": TABLE, "key": KEY, "shards": 1})
        following = 100
        while not draining.done():
            before = set(acknowledged)
            seen = [int(item["moment"]) for item in table.query(KEY, consistent=True)]
            assert len(seen) == len(set(seen)), "none twice"
            assert before <= set(seen), "none missing"
            reads += 1
            table.put_item(Item={"path": KEY, "moment": following})
            acknowledged.add(following)
            following += 1
    table.close()
    ended = draining.result()
    assert ended.status == "SUCCEEDED", ended
    assert reads > 2
    shards = metadata(sharded, KEY)
    assert (shards.number, shards.readable, shards.phase) == (1, 1, "steady")
    assert shards_of(sharded, KEY) == {1: len(acknowledged)}


def test_what_is_wrong_is_told_and_a_failed_drain_looks_failed(sharded: Deployed) -> None:
    told = invoke(sharded, "WriteSharded", {"table": "Elsewhere", "items": []})
    assert told["errorType"] == "InvalidInput"
    assert "Elsewhere" in told["errorMessage"]
    ended = drain(sharded, {"table": TABLE, "key": "/never/written", "shards": 1})
    assert (ended.status, ended.error) == ("FAILED", "CannotStart")
    assert "never written" in (ended.cause or "")
    ended = drain(sharded, {"table": TABLE, "key": KEY})
    assert (ended.status, ended.error) == ("FAILED", "InvalidInput")


def test_keys_with_more_shards_than_they_need_are_proposed(sharded: Deployed) -> None:
    an_hour_ago = int(time.time() // 60) - 60
    register(sharded, "/quiet", 8, traffic={"M": {str(an_hour_ago): {"N": "1"}}})
    register(sharded, "/unknown", 8)
    proposed = invoke(sharded, "ProposeDrains", {})
    assert "/unknown" not in {proposal["key"] for proposal in proposed}
    (one,) = [proposal for proposal in proposed if proposal["key"] == "/quiet"]
    assert (one["table"], one["from"], one["to"], one["started"]) == (TABLE, 8, 1, False)
    assert one["reason"]


def physical(key: str, shard: int) -> str:
    return str(Names().physical({"S": key}, shard)["S"])


def put(deployed: Deployed, key: str, shard: int, moment: int) -> None:
    """An item where somebody has left it."""
    item = {"path": {"S": physical(key, shard)}, "moment": {"N": str(moment)}}
    deployed.database.client.put_item(TableName=TABLE, Item=item)


def test_items_of_older_shards_are_found_and_of_copies_one_is_kept(sharded: Deployed) -> None:
    """What makes writes look, move and fold, and drains delete copies."""
    key = "/srv/older"
    register(sharded, key, 4)
    for moment in range(8):
        for shard in (1, 2, 3):
            put(sharded, key, shard, moment)
    items = [{"path": key, "moment": moment, "new": True} for moment in range(6)]
    told = invoke(sharded, "WriteSharded", {"table": TABLE, "items": items})
    assert told["written"] == 6, told
    copies = shards_of(sharded, key)
    assert copies.total() == 6 + 2 * 3, "those of two items were not written to"
    ended = drain(sharded, {"table": TABLE, "key": key, "shards": 1})
    assert ended.status == "SUCCEEDED", ended
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
    untold = refusal("ThrottlingException", "Rate of requests exceeds the allowed throughput.")

    def fault(request: Request) -> Answer | None:
        is_write = request.operation == "PutItem" and b'"/srv/hot' in request.body
        if not is_write or f'"{METADATA}"'.encode() in request.body:
            return None
        tried.append(request)
        if metadata(sharded, "/srv/hot").number > 1:
            return None
        return untold if len(tried) < 3 else throttled

    tried: list[Request] = []
    with recorder.answering(fault):
        assert invoke(sharded, "WriteSharded", hot)["written"] == 1
    assert metadata(sharded, "/srv/hot").number == 2


def test_logical_keys_are_folded_by_their_metadata(sharded: Deployed) -> None:
    key = "/srv/folded"
    register(sharded, key, 3)
    for shard in (1, 2, 3):
        put(sharded, key, shard, 7)
    given = {"table": TABLE, "logical": True, "metadata": METADATA}
    sharded.done(given, "folded")
    assert sharded.found("folded", "path")[key] == 1
