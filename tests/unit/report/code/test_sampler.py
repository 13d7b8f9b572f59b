"""Tests of the request sampler in an application of boto3, against moto, and of its file."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import boto3
import pytest
from boto3.dynamodb.conditions import Attr, Key
from keyhop.report.facts import Absent, RequestFacts, RequestShape
from keyhop.report.sampler import Sampler, attach
from keyhop.report.sources.requests import read_requests
from moto import mock_aws

from testing.servers import LOCAL_CREDENTIALS

CANARY = "canary-7f3a"
BY_CITY: dict[str, Any] = {"IndexName": "byCity", "KeyConditionExpression": Key("city").eq(CANARY)}


@pytest.fixture
def session() -> Iterator[boto3.Session]:
    with mock_aws():
        session = boto3.Session(
            **{k: v for k, v in LOCAL_CREDENTIALS.items() if k.startswith(("aws", "region"))}
        )
        session.client("dynamodb").create_table(
            TableName="Orders",
            KeySchema=[
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[
                {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "city")
            ],
            GlobalSecondaryIndexes=[
                {
                    "IndexName": "byCity",
                    "KeySchema": [{"AttributeName": "city", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                }
            ],
            BillingMode="PAY_PER_REQUEST",
        )
        yield session


def facts_of(path: Path) -> RequestFacts:
    facts = read_requests(path, "Orders")
    assert isinstance(facts, RequestFacts)
    return facts


def shapes_of(path: Path) -> dict[tuple[str, str], RequestShape]:
    return {(shape.operation, shape.index): shape for shape in facts_of(path).shapes}


def fill(table: Any, items: int = 4) -> None:
    for at in range(items):
        table.put_item(Item={"pk": CANARY, "sk": f"{CANARY}{at}", "city": CANARY, "n": at})


def test_requests_of_a_resource_are_recorded_without_values(session: boto3.Session, tmp_path: Path):
    path = tmp_path / "requests.jsonl"
    sampler = attach(session, path, share=1.0)
    table = session.resource("dynamodb").Table("Orders")
    fill(table)
    table.query(
        KeyConditionExpression=Key("pk").eq(CANARY) & Key("sk").begins_with(CANARY),
        FilterExpression=Attr("n").gt(1) & Attr("a.b").not_exists() | Attr("city").eq(CANARY),
        ConsistentRead=True,
    )
    table.query(IndexName="byCity", KeyConditionExpression=Key("city").eq(CANARY))
    table.get_item(Key={"pk": CANARY, "sk": CANARY}, ReturnConsumedCapacity="TOTAL")
    table.scan(FilterExpression=Attr("n").gt(2))
    sampler.flush()
    shapes = shapes_of(path)
    assert shapes["Query", ""] == RequestShape(
        "Query", "", ("pk", "sk"), ("a", "city", "n"), 1, 4, 4, 0.0, 1
    )
    assert shapes["Query", "byCity"].conditions == ("city",)
    assert shapes["GetItem", ""].conditions == ("pk", "sk")
    assert (shapes["GetItem", ""].metered, shapes["GetItem", ""].units > 0) == (1, True)
    scan = shapes["Scan", ""]
    assert (scan.filters, scan.count, scan.scanned) == (("n",), 1, 4)
    assert shapes["PutItem", ""].calls == 4
    assert facts_of(path).calls == 8
    assert facts_of(path).sampled == 1.0
    assert CANARY not in path.read_text()


def test_old_conditions_batches_and_transactions_of_a_client_are_recorded(
    session: boto3.Session, tmp_path: Path
):
    path = tmp_path / "requests.jsonl"
    client = session.client("dynamodb")
    sampler = attach(client, path, share=1.0)
    key = {"pk": {"S": CANARY}, "sk": {"S": "1"}}
    condition = {"AttributeValueList": [{"S": CANARY}], "ComparisonOperator": "EQ"}
    client.query(TableName="Orders", KeyConditions={"pk": condition}, QueryFilter={"n": condition})
    client.batch_write_item(RequestItems={"Orders": [{"PutRequest": {"Item": key}}]})
    client.batch_get_item(RequestItems={"Orders": {"Keys": [key], "ConsistentRead": True}})
    client.transact_write_items(TransactItems=[{"Put": {"TableName": "Orders", "Item": key}}])
    client.update_item(
        TableName="arn:aws:dynamodb:us-east-1:123456789012:table/Orders",
        Key=key,
        UpdateExpression="SET n = :n",
        ExpressionAttributeValues={":n": {"N": "1"}},
    )
    client.describe_table(TableName="Orders")
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.get_item(TableName="Others", Key=key)
    sampler.flush()
    shapes = shapes_of(path)
    assert (shapes["Query", ""].conditions, shapes["Query", ""].filters) == (("pk",), ("n",))
    assert (shapes["BatchGetItem", ""].count, shapes["BatchGetItem", ""].consistent) == (1, 1)
    assert shapes["BatchGetItem", ""].conditions == ("pk", "sk")
    assert shapes["TransactWriteItems", ""].one_item_transactions == 1
    assert shapes["UpdateItem", ""].calls == 1
    assert isinstance(read_requests(path, "Others"), Absent)
    assert CANARY not in path.read_text()


class SampledTable:
    """A table that a sampler watches, with the lines of the sampler and its clock."""

    def __init__(self, session: boto3.Session, lines: list[str], **settings: Any) -> None:
        self.at = 1_000.0
        self.lines = lines
        now = {"now": lambda: self.at, "wall": lambda: self.at}
        self.sampler = Sampler(lines.append, **{"share": 1.0, **now, **settings})
        self.sampler.listen(session.events)
        self.table = session.resource("dynamodb").Table("Orders")

    def followed(self) -> list[Any]:
        self.sampler.flush()
        return [row for line in self.lines for row in json.loads(line)["followed"]]


@pytest.mark.parametrize(("wait", "count"), [(0.2, 1), (1.5, 0)])
def test_a_read_from_an_index_just_after_a_write_of_the_item_is_counted(
    session: boto3.Session, wait: float, count: int
):
    app = SampledTable(session, [])
    table = app.table
    table.query(**BY_CITY)  # The sampler remembers writes from now on.
    app.at += 5
    fill(table, 1)
    table.update_item(Key={"pk": CANARY, "sk": f"{CANARY}0"}, UpdateExpression="SET n = n")
    app.at += wait
    table.query(**BY_CITY)
    assert app.followed() == [["Orders", "byCity", count, 1]]


def test_a_read_is_not_counted_if_its_order_after_a_write_is_unknown(session: boto3.Session):
    app = SampledTable(session, [])
    table = app.table
    fill(table, 1)  # The sampler does not know the names of the key attributes.
    app.at += 5
    table.query(**BY_CITY)
    table.get_item(Key={"pk": CANARY, "sk": CANARY})
    table.query(**BY_CITY, ProjectionExpression="city")
    table.query(**BY_CITY, Select="COUNT")
    assert app.followed() == []
    later = SampledTable(session, app.lines, keys={"Orders": ("pk", "sk")})
    later.table.query(**BY_CITY)  # A write may precede the start of the sampler.
    later.at += 5
    later.table.query(**BY_CITY)
    assert later.followed() == [["Orders", "byCity", 0, 1]]


def test_without_the_names_of_the_key_an_item_is_identified_by_attributes_of_all_items(
    session: boto3.Session,
):
    app = SampledTable(session, [])
    table = app.table
    fill(table, 1)
    table.query(**BY_CITY)
    app.at += 5
    table.put_item(Item={"pk": CANARY, "sk": f"{CANARY}9", "city": "Oslo", "n": 9})
    table.query(**BY_CITY)  # This reads another city.
    table.query(**BY_CITY, ProjectionExpression="city")
    oslo = Key("city").eq("Oslo")
    table.query(IndexName="byCity", KeyConditionExpression=oslo)
    app.at += 5
    table.query(IndexName="byCity", KeyConditionExpression=oslo)
    assert app.followed() == [["Orders", "byCity", 1, 3]]


def test_in_the_first_second_only_reads_that_follow_a_write_are_counted(session: boto3.Session):
    app = SampledTable(session, [], keys={"Orders": ("pk", "sk")})
    table = app.table
    fill(table, 1)
    table.query(**BY_CITY)
    app.at += 0.2
    table.query(**BY_CITY)
    fill(table, 1)
    table.query(**BY_CITY)
    assert app.followed() == [["Orders", "byCity", 1, 1]]


def test_a_share_of_the_requests_is_recorded_and_all_writes_are_remembered(session: boto3.Session):
    chance = iter([0.05, 0.9, 0.9, 0.05]).__next__
    app = SampledTable(session, [], share=0.1, chance=chance, keys={"Orders": ("pk", "sk")})
    table = app.table
    table.query(**BY_CITY)
    app.at += 5
    fill(table, 2)
    table.query(**BY_CITY)
    assert app.followed() == [["Orders", "byCity", 1, 1]]
    (line,) = map(json.loads, app.lines)
    assert [shape["operation"] for shape in line["shapes"]] == ["Query"]
    assert line["share"] == 0.1


def test_a_line_is_written_once_per_interval(session: boto3.Session):
    app = SampledTable(session, [], every=60.0)
    table = app.table
    fill(table, 1)
    assert app.lines == []
    app.at += 61
    fill(table, 2)
    assert len(app.lines) == 1
    assert json.loads(app.lines[0])["shapes"][0]["calls"] == 2


def test_a_full_file_ends_with_a_note_and_stays_within_its_maximum(
    session: boto3.Session, tmp_path: Path
):
    path = tmp_path / "requests.jsonl"
    sampler = attach(session, path, share=1.0, most_bytes=1_000)
    table = session.resource("dynamodb").Table("Orders")
    for _ in range(20):
        fill(table, 1)
        sampler.flush()
    assert 500 < path.stat().st_size <= 1_000
    assert json.loads(path.read_text().splitlines()[-1]) == {
        "keyhop": "requests",
        "version": 1,
        "full": True,
    }
    assert facts_of(path).calls == len(path.read_text().splitlines()) - 1
    second = attach(session, path, share=1.0, most_bytes=1_000)
    fill(session.resource("dynamodb").Table("Orders"), 1)
    second.detach()
    assert path.stat().st_size <= 1_000


def test_after_detach_no_request_is_recorded_even_of_earlier_clients(
    session: boto3.Session, tmp_path: Path
):
    path = tmp_path / "requests.jsonl"
    sampler = attach(session, path, share=1.0)
    table = session.resource("dynamodb").Table("Orders")
    fill(table, 1)
    sampler.detach()
    fill(table, 1)
    fill(session.resource("dynamodb").Table("Orders"), 1)
    sampler.flush()
    assert facts_of(path).calls == 1


def test_an_error_of_the_sampler_does_not_reach_the_application(
    session: boto3.Session, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    def write(line: str) -> None:
        raise OSError(CANARY)

    sampler = attach(session, write, share=1.0, every=0.0)
    attach(session, tmp_path / "none" / "requests.jsonl", share=1.0, every=0.0)
    table = session.resource("dynamodb").Table("Orders")
    fill(table, 200)
    assert table.scan()["Count"] == 200
    sampler.detach()
    assert len(caplog.records) == 2
    assert CANARY not in caplog.text


def test_all_requests_of_many_threads_are_counted(session: boto3.Session, tmp_path: Path):
    path = tmp_path / "requests.jsonl"
    sampler = attach(session, path, share=1.0, every=0.001)
    client = session.client("dynamodb")

    def work() -> None:
        for _ in range(25):
            client.get_item(TableName="Orders", Key={"pk": {"S": "a"}, "sk": {"S": "b"}})

    threads = [Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sampler.detach()
    assert facts_of(path).calls == 200


@pytest.mark.parametrize("share", [0, -1, 1.1])
def test_an_impossible_share_is_refused(session: boto3.Session, share: float):
    with pytest.raises(ValueError, match="share"):
        attach(session, "never", share=share)


def test_an_object_without_events_is_refused():
    with pytest.raises(TypeError, match="boto3 session"):
        attach(object(), "never")


def test_the_sampler_imports_only_the_standard_library():
    code = (
        "import sys; before = set(sys.modules); import keyhop.report.sampler;"
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}"
        "- sys.stdlib_module_names), *(name for name in sys.modules if name.startswith('keyhop')))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert set(process.stdout.split()) == {"keyhop", "keyhop.report", "keyhop.report.sampler"}


def test_the_remaining_requests_are_written_at_the_end_of_a_process(tmp_path: Path):
    path = tmp_path / "requests.jsonl"
    code = f"""
from botocore.hooks import HierarchicalEmitter
from keyhop.report.sampler import attach
from types import SimpleNamespace
events = HierarchicalEmitter()
attach(SimpleNamespace(events=events), {str(path)!r}, share=1.0)
context = {{}}
params = {{"TableName": "Orders", "Key": {{"pk": {{"S": "{CANARY}"}}}}}}
model = SimpleNamespace(name="GetItem")
events.emit("before-parameter-build.dynamodb.GetItem", params=params, model=model, context=context)
events.emit("after-call.dynamodb.GetItem", parsed={{}}, model=model, context=context)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert facts_of(path).calls == 1
