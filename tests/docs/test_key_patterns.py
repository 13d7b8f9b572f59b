"""Tests of docs/how-to/key-patterns.md: its examples run in order, with the described results."""

import re
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from keyhop.report.advice import PATTERNS
from moto import mock_aws

from testing.servers import LOCAL_CREDENTIALS
from tests.docs.pages import ROOT, anchors

PAGE = "docs/how-to/key-patterns.md"
TEXT = (ROOT / PAGE).read_text()
SECTIONS = dict(re.findall(r"(?ms)^## (P\d+)\n(.*?)(?=^## |\Z)", TEXT))
BEGINNING = TEXT.partition("\n## ")[0]

EXPECTED = {
    "P1": "[one['SK'] for one in orders] == ['ORDER#0017', 'ORDER#0018']",
    "P2": "taken == ['ConditionalCheckFailed', 'ConditionalCheckFailed']",
    "P3": "[one['PK'] for one in open_tasks] == ['TASK#1'] and still_open == []",
    "P4": "valid == ['SESSION#new']",
    "P5": "[one['SK'] for one in first_page] == ['MESSAGE#098', 'MESSAGE#099']",
    "P6": "followed['Count'] == 1 and {one['PK'] for one in followers} == {'USER#1', 'USER#3'}",
    "P7": "due[0]['PK'] == 'INVOICE#9' and by_serial[0]['PK'] == 'DEVICE#4'",
    "P8": "newest['text'] == 'second' and [one['version'] for one in history] == [1, 2]",
    "P9": "len(early) == 26 and [one['SK'][6:] for one in entries] == [early, late]",
    "P10": "[one['SK'] for one in readings] == ['00:10:00', '09:00:00']",
    "P11": "[one['SK'] for one in two_pages] == ['PAGE#00009', 'PAGE#00010']",
    "P12": "len(offers) == 1 and cheapest[0]['PK'] == 'SHOP#b'",
    "P13": "body == picture",
    "P14": "[one['SK'] for one in open_orders] == ['ORDER#OPEN#2026-11-20'] "
    "and page['ScannedCount'] == 1",
    "P15": "len(whole) == 2 and all(one['Type'] == 'Offer' for one in whole)",
    "P16": "sorted(one['PK'] for one in pending) == ['JOB#18', 'JOB#19']",
    "P17": "[one['SK'][-1] for one in lines] == list('01234567')",
    "P18": "config['version'] == 1",
    "P19": "stats['orders'] == 2 and stats['cents'] == 1780",
    "P20": "views == 42",
}
"""A condition on the names of each example that is true after it has run."""


def examples(text: str) -> list[str]:
    return re.findall(r"(?ms)^```python\n(.*?)^```$", text)


def test_each_pattern_has_a_section_with_keys_queries_and_pitfalls() -> None:
    assert list(SECTIONS) == list(PATTERNS) == [f"P{n}" for n in range(1, 21)]
    for number, text in SECTIONS.items():
        assert text.lstrip().startswith(f"**{PATTERNS[number]}.**"), number
        assert re.search(r"(?m)^\|---\|", text), f"{number} has no table of keys"
        (example,) = examples(text)
        rest = text.partition(example)[2].removeprefix("```").strip()
        assert len(rest) > 100, f"{number} has no pitfalls"


def test_the_links_of_the_advice_lead_to_sections() -> None:
    for pattern in PATTERNS:
        assert pattern.lower() in anchors(ROOT / PAGE)


@pytest.fixture
def app(dynamodb_local_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The table App in DynamoDB Local, and the bucket app-objects in moto."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamodb_local_url)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    host = re.escape(dynamodb_local_url)
    with mock_aws(config={"core": {"passthrough": {"urls": [f"{host}.*"]}}}):
        client = boto3.client("dynamodb", **LOCAL_CREDENTIALS)
        client.create_table(**SCHEMA)
        boto3.client("s3").create_bucket(Bucket="app-objects")
        yield
        client.delete_table(TableName="App")


NAMES = ("PK", "SK", "GSI1PK", "GSI1SK")
SCHEMA: dict[str, Any] = {
    "TableName": "App",
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in NAMES],
    "KeySchema": [
        {"AttributeName": "PK", "KeyType": "HASH"},
        {"AttributeName": "SK", "KeyType": "RANGE"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "GSI1",
            "KeySchema": [
                {"AttributeName": "GSI1PK", "KeyType": "HASH"},
                {"AttributeName": "GSI1SK", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
}


@pytest.mark.prove
@pytest.mark.usefixtures("app")
def test_each_example_runs_with_the_described_result() -> None:
    names: dict[str, Any] = {}
    (beginning,) = examples(BEGINNING)
    exec(beginning, names)
    for number, text in SECTIONS.items():
        (example,) = examples(text)
        exec(compile(example, f"{PAGE} {number}", "exec"), names)
        assert eval(EXPECTED[number], names), number
