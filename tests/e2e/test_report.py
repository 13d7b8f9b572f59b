"""ReportKeys on the laptop cloud: it finds planted faults, and stores its page in the bucket.

ministack has neither Contributor Insights nor metrics of DynamoDB Local; the report says so.
"""

import json

import pytest

from testing.executions import Executions
from tests.e2e.conftest import Deployed

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
    """A table whose partition keys are dates, and whose items all have the same state."""
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


def widget(deployed: Deployed, table: str) -> str:
    """Return the report that the dashboard's widget shows."""
    response = deployed.cloud.client("lambda").invoke(
        FunctionName="Keyhop-ShowReport", Payload=json.dumps({"table": table})
    )
    assert "FunctionError" not in response
    return str(json.loads(response["Payload"].read()))


def test_a_report_finds_planted_faults_and_stores_its_page(
    deployed: Deployed, machine: Executions, table: str
) -> None:
    assert "no report" in widget(deployed, table)
    values = {"table": table, "stream": 600, "insights": True, "maxReadUnits": 1000}
    result = deployed.complete(values, "reported", "ReportKeys").output
    findings = {(finding["rule"], finding["target"]) for finding in result["found"]}
    assert {("A3", ""), ("A9", "byState")} <= findings
    assert 0 < result["read_units"] <= 1000
    assert result["page"] == f"s3://{machine.bucket}/runs/reported/report.html"
    page = machine.read("runs/reported/report.html").decode()
    document = json.loads(machine.read("runs/reported/report.json"))
    rules = {row["id"] for row in document["findings"] if row["status"] == "found"}
    assert rules == {rule for rule, _ in findings}
    assert document["sources"]["stream"] == "looked at"
    assert "Insights" in document["sources"]["insights"]
    latest = machine.read(f"reports/{table}/report.html").decode()
    assert latest == page
    for text in (page, json.dumps(document), json.dumps(result), widget(deployed, table)):
        assert CANARY not in text
        assert "<script" not in text


def test_wrong_input_is_refused_and_an_estimate_reads_nothing(
    deployed: Deployed, table: str
) -> None:
    refused = deployed.run({"table": "Small"}, machine="ReportKeys")
    assert (refused.status, refused.error) == ("FAILED", "InvalidInput")
    assert '"report": true' in str(refused.cause) or "tables of this deployment" in refused.cause
    estimate = deployed.run({"table": table, "dryRun": True}, machine="ReportKeys")
    assert estimate.output["read_units"] == 2000
    strict = {"table": table, "controlPlaneOnly": True, "strict": True}
    failed = deployed.run(strict, machine="ReportKeys")
    assert (failed.status, failed.error) == ("FAILED", "NotGoodEnough")
    assert deployed.alarms("ReportKeys") == 0, "none of them is a fault of the deployment"
