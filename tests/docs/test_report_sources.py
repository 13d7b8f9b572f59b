"""Tests that the example and the templates in report-sources.md work."""

import re
from pathlib import Path

import pytest
from keyhop.report import sampler
from keyhop.report.candidates import candidate
from keyhop.report.facts import RequestFacts
from keyhop.report.sources.requests import read_requests
from moto import mock_aws

from testing.servers import LOCAL_CREDENTIALS
from tests.docs.pages import ROOT

TEXT = (ROOT / "docs" / "reference" / "report-sources.md").read_text()


def test_the_example_samples_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (example,) = re.findall(r"(?ms)^```python\n(.*?)^```$", TEXT)
    monkeypatch.chdir(tmp_path)
    for name, value in LOCAL_CREDENTIALS.items():
        monkeypatch.setenv(name.replace("region_name", "aws_default_region").upper(), value)
    with mock_aws():
        names: dict = {}
        exec(example.replace('"requests.jsonl")', '"requests.jsonl", share=1.0)'), names)
        names["session"].client("dynamodb").create_table(
            TableName="Orders",
            KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "PK", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        names["orders"].get_item(Key={"PK": "a"})
        names["sampling"].detach()
    facts = read_requests(tmp_path / "requests.jsonl", "Orders")
    assert isinstance(facts, RequestFacts)
    assert facts.shapes[0].conditions == ("PK",)


def test_the_page_has_the_limits_of_the_sampler():
    assert f"one request of {round(1 / sampler.SHARE)}".replace("20", "twenty") in TEXT
    assert f"({sampler.MOST_BYTES >> 20} MiB)" in TEXT
    assert f"first {sampler.MOST_LOOKED_AT} items" in " ".join(TEXT.split())
    assert sampler.EVERY == 60
    assert sampler.SOON == 1


def test_each_template_is_valid():
    templates = re.findall(r"\{[^{}`<\n]+\}", TEXT.partition("## Candidate keys")[2])
    assert len(templates) > 8
    for template in templates:
        candidate(f"PK={template.replace('&#124;', '|')}")
