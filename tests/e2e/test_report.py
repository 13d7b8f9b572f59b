"""ReportKeys on the laptop cloud: what is planted is found, and the page lies in the bucket.

ministack has no Contributor Insights, and no metrics of DynamoDB Local: both are told as such.
"""

import json
from typing import Any

import pytest

from testing.executions import Executions
from tests.e2e.conftest import LONGEST_SECONDS, Deployed

TABLE = "Reported"
CANARY = "canary-51c0"
STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
INDEX = {
    "IndexName": "byState",
    "KeySchema": [{"AttributeName": "state", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "KEYS_ONLY"},
}


@pytest.fixture(scope="module")
def table(deployed: Deployed) -> str:
    """Its partition keys are dates, all items are of one state, and two are very large."""
    client = deployed.database.client
    client.create_table(
        TableName=TABLE,
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "state")
        ],
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        GlobalSecondaryIndexes=[INDEX],
        StreamSpecification=STREAM,
        BillingMode="PAY_PER_REQUEST",
    )
    deployed.database.fill(
        TABLE,
        (
            {
                "pk": {"S": f"2025-{month:02}-{day:02}"},
                "sk": {"S": f"{CANARY}-{number}"},
                "state": {"S": "PENDING"},
                "secret": {"S": CANARY},
            }
            for month in range(1, 13)
            for day in range(1, 29)
            for number in range(2)
        ),
    )
    return TABLE


@pytest.fixture
def machine(deployed: Deployed) -> Executions:
    return deployed.machine("ReportKeys")


def shown(deployed: Deployed, **given: Any) -> str:
    """By the dashboard's widget."""
    answer = deployed.cloud.client("lambda").invoke(
        FunctionName="Keyhop-ShowReport", Payload=json.dumps(given)
    )
    assert "FunctionError" not in answer
    return str(json.loads(answer["Payload"].read()))


def test_a_report_finds_what_is_planted_and_its_page_lies_in_the_bucket(
    deployed: Deployed, machine: Executions, table: str
) -> None:
    assert "no report" in shown(deployed, table=table)
    given = {"table": table, "stream": 600, "insights": True, "maxReadUnits": 1000}
    ended = machine.follow(machine.start(given, "reported"), LONGEST_SECONDS)
    assert ended.status == "SUCCEEDED", ended
    result = ended.output
    found = {(one["rule"], one["target"]) for one in result["found"]}
    assert {("A3", ""), ("A9", "byState")} <= found
    assert 0 < result["read_units"] <= 1000
    assert result["page"] == f"s3://{machine.bucket}/runs/reported/report.html"
    page = machine.read("runs/reported/report.html").decode()
    document = json.loads(machine.read("runs/reported/report.json"))
    assert {one["id"] for one in document["findings"] if one["status"] == "found"} == {
        rule for rule, _ in found
    }
    assert document["sources"]["stream"] == "looked at"
    assert "Insights" in document["sources"]["insights"]
    latest = machine.read(f"reports/{table}/report.html").decode()
    widget = shown(deployed, table=table)
    assert latest == page
    for text in (page, json.dumps(document), json.dumps(result), widget):
        assert CANARY not in text
        assert "<script" not in text


def test_what_is_asked_wrongly_is_refused_and_an_estimate_reads_nothing(
    deployed: Deployed, machine: Executions, table: str
) -> None:
    refused = machine.follow(machine.start({"table": "Small"}), LONGEST_SECONDS)
    assert (refused.status, refused.error) == ("FAILED", "InvalidInput")
    assert '"report": true' in str(refused.cause) or "tables of this deployment" in refused.cause
    planned = machine.follow(machine.start({"table": table, "dryRun": True}), LONGEST_SECONDS)
    assert planned.output["read_units"] == 2000
    strict = {"table": table, "controlPlaneOnly": True, "strict": True}
    failed = machine.follow(machine.start(strict), LONGEST_SECONDS)
    assert (failed.status, failed.error) == ("FAILED", "NotGoodEnough")
    assert deployed.alarms("ReportKeys") == 0, "nothing is broken"
