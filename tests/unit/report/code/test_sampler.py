"""The request sampler in an application of boto3, against moto; and what its file says."""

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
        made = boto3.Session(
            **{k: v for k, v in LOCAL_CREDENTIALS.items() if k.startswith(("aws", "region"))}
        )
        made.client("dynamodb").create_table(
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
        yield made


def seen(path: Path, table: str = "Orders") -> RequestFacts:
    facts = read_requests(path, table)
    assert isinstance(facts, RequestFacts)
    return facts


def shapes(path: Path) -> dict[tuple[str, str], RequestShape]:
    return {(one.operation, one.index): one for one in seen(path).shapes}


def fill(table: Any, items: int = 4) -> None:
    for at in range(items):
        table.put_item(Item={"pk": CANARY, "sk": f"{CANARY}{at}", "city": CANARY, "n": at})


def test_conditions_of_a_resource_are_names_and_counts(session: boto3.Session, tmp_path: Path):
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
    found = shapes(path)
    assert found["Query", ""] == RequestShape(
        "Query", "", ("pk", "sk"), ("a", "city", "n"), 1, 4, 4, 0.0, 1
    )
    assert found["Query", "byCity"].conditions == ("city",)
    assert found["GetItem", ""].conditions == ("pk", "sk")
    assert (found["GetItem", ""].metered, found["GetItem", ""].units > 0) == (1, True)
    scan = found["Scan", ""]
    assert (scan.filters, scan.count, scan.scanned) == (("n",), 1, 4)
    assert found["PutItem", ""].calls == 4
    assert seen(path).calls == 8
    assert seen(path).sampled == 1.0
    assert CANARY not in path.read_text()


def test_of_a_client_old_conditions_batches_and_transactions_too(
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
    found = shapes(path)
    assert (found["Query", ""].conditions, found["Query", ""].filters) == (("pk",), ("n",))
    assert (found["BatchGetItem", ""].count, found["BatchGetItem", ""].consistent) == (1, 1)
    assert found["BatchGetItem", ""].conditions == ("pk", "sk")
    assert found["TransactWriteItems", ""].one_item_transactions == 1
    assert found["UpdateItem", ""].calls == 1
    assert isinstance(read_requests(path, "Others"), Absent)
    assert CANARY not in path.read_text()


class Sampled:
    """A table of an application that a sampler watches, the lines that it writes, and its clock."""

    def __init__(self, session: boto3.Session, lines: list[str], **settings: Any) -> None:
        self.at = 1_000.0
        self.lines = lines
        now = {"now": lambda: self.at, "wall": lambda: self.at}
        self.sampler = Sampler(lines.append, **{"share": 1.0, **now, **settings})
        self.sampler.listen(session.events)
        self.table = session.resource("dynamodb").Table("Orders")

    def followed(self) -> list[Any]:
        self.sampler.flush()
        return [one for line in self.lines for one in json.loads(line)["followed"]]


@pytest.mark.parametrize(("wait", "is_followed"), [(0.2, 1), (1.5, 0)])
def test_a_read_by_an_index_just_after_a_write_of_the_item(
    session: boto3.Session, wait: float, is_followed: int
):
    app = Sampled(session, [])
    table = app.table
    table.query(**BY_CITY)  # from here on, writes are remembered
    app.at += 5
    fill(table, 1)
    table.update_item(Key={"pk": CANARY, "sk": f"{CANARY}0"}, UpdateExpression="SET n = n")
    app.at += wait
    table.query(**BY_CITY)
    assert app.followed() == [["Orders", "byCity", is_followed, 1]]


def test_where_it_cannot_be_said_whether_a_read_followed_it_is_not_counted(session: boto3.Session):
    app = Sampled(session, [])
    table = app.table
    fill(table, 1)  # of which the key's names are not known
    app.at += 5
    table.query(**BY_CITY)
    table.get_item(Key={"pk": CANARY, "sk": CANARY})
    table.query(**BY_CITY, ProjectionExpression="city")
    table.query(**BY_CITY, Select="COUNT")
    assert app.followed() == []
    later = Sampled(session, app.lines, keys={"Orders": ("pk", "sk")})
    later.table.query(**BY_CITY)  # a write before it began would not have been seen
    later.at += 5
    later.table.query(**BY_CITY)
    assert later.followed() == [["Orders", "byCity", 0, 1]]


def test_a_new_item_is_known_by_what_all_items_have_where_the_names_of_the_key_are_not(
    session: boto3.Session,
):
    app = Sampled(session, [])
    table = app.table
    fill(table, 1)
    table.query(**BY_CITY)
    app.at += 5
    table.put_item(Item={"pk": CANARY, "sk": f"{CANARY}9", "city": "Oslo", "n": 9})
    table.query(**BY_CITY)  # another city
    table.query(**BY_CITY, ProjectionExpression="city")
    oslo = Key("city").eq("Oslo")
    table.query(IndexName="byCity", KeyConditionExpression=oslo)
    app.at += 5
    table.query(IndexName="byCity", KeyConditionExpression=oslo)
    assert app.followed() == [["Orders", "byCity", 1, 3]]


def test_in_the_first_second_only_reads_that_follow_a_write_are_counted(session: boto3.Session):
    app = Sampled(session, [], keys={"Orders": ("pk", "sk")})
    table = app.table
    fill(table, 1)
    table.query(**BY_CITY)
    app.at += 0.2
    table.query(**BY_CITY)
    fill(table, 1)
    table.query(**BY_CITY)
    assert app.followed() == [["Orders", "byCity", 1, 1]]


def test_a_share_of_the_requests_is_looked_at_and_all_writes_are_remembered(session: boto3.Session):
    chance = iter([0.05, 0.9, 0.9, 0.05]).__next__
    app = Sampled(session, [], share=0.1, chance=chance, keys={"Orders": ("pk", "sk")})
    table = app.table
    table.query(**BY_CITY)
    app.at += 5
    fill(table, 2)
    table.query(**BY_CITY)
    assert app.followed() == [["Orders", "byCity", 1, 1]]
    (line,) = map(json.loads, app.lines)
    assert [one["operation"] for one in line["shapes"]] == ["Query"]
    assert line["share"] == 0.1


def test_a_line_is_written_each_so_many_seconds(session: boto3.Session):
    app = Sampled(session, [], every=60.0)
    table = app.table
    fill(table, 1)
    assert app.lines == []
    app.at += 61
    fill(table, 2)
    assert len(app.lines) == 1
    assert json.loads(app.lines[0])["shapes"][0]["calls"] == 2


def test_a_file_that_is_full_says_so_and_stays_within_its_bytes(
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
    assert seen(path).calls == len(path.read_text().splitlines()) - 1
    again = attach(session, path, share=1.0, most_bytes=1_000)
    fill(session.resource("dynamodb").Table("Orders"), 1)
    again.detach()
    assert path.stat().st_size <= 1_000


def test_after_detach_nothing_is_seen_also_of_clients_made_before(
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
    assert seen(path).calls == 1


def test_what_fails_in_it_is_not_the_applications(
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


def test_many_threads_are_counted_whole(session: boto3.Session, tmp_path: Path):
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
    assert seen(path).calls == 200


@pytest.mark.parametrize("share", [0, -1, 1.1])
def test_a_share_that_is_none_is_refused(session: boto3.Session, share: float):
    with pytest.raises(ValueError, match="share"):
        attach(session, "never", share=share)


def test_what_has_no_events_is_refused():
    with pytest.raises(TypeError, match="boto3 session"):
        attach(object(), "never")


def test_it_imports_nothing_heavy():
    """Of Keyhop itself only what it needs; boto3 is the application's."""
    code = (
        "import sys; before = set(sys.modules); import keyhop.report.sampler;"
        "print(*sorted({one.partition('.')[0] for one in set(sys.modules) - before}"
        "- sys.stdlib_module_names), *(one for one in sys.modules if one.startswith('keyhop')))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(ended.stdout.split()) == {"keyhop", "keyhop.report", "keyhop.report.sampler"}


def test_at_the_end_of_a_process_the_rest_is_written(tmp_path: Path):
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
    assert seen(path).calls == 1
