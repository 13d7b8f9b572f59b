"""A failed request has a reason; a service that is not beside a table is not asked elsewhere."""

import pytest
from botocore.exceptions import EndpointConnectionError
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.errors import AwsRefused
from keyhop.report.facts import Absent
from keyhop.report.sources.absence import client_beside, why_absent, why_denied

from testing.report_cloud import refusal

LOCAL = Endpoint(url="http://127.0.0.1:8000")
IN_A_VPC = Endpoint(url="https://vpce-1.dynamodb.eu-west-1.vpce.amazonaws.com", region="eu-west-1")


def test_an_error_that_was_explained_is_judged_by_what_it_was():
    explained = AwsRefused("DynamoDB refused the request")
    explained.__cause__ = refusal("DescribeTimeToLive", "AccessDeniedException")
    assert why_absent(explained, "DynamoDB", "dynamodb:DescribeTimeToLive") == Absent(
        "dynamodb:DescribeTimeToLive is not allowed", "allow dynamodb:DescribeTimeToLive"
    )


TABLE = "arn:aws:dynamodb:eu-west-1:1:table/Orders"


@pytest.mark.parametrize(
    ("sentence", "action", "resource"),
    [
        (f"Permission is missing: allow dynamodb:Scan on {TABLE}.", "dynamodb:Scan", TABLE),
        (f"Group 3 failed. allow dynamodb:Query on {TABLE}. Add", "dynamodb:Query", TABLE),
        (f"Missing: dynamodb:Scan on {TABLE} is denied to me", "dynamodb:Scan", TABLE),
        ("may not be used: allow kms:Decrypt on its key, which", "kms:Decrypt", None),
    ],
)
def test_a_denial_names_the_missing_action(sentence: str, action: str, resource: str | None):
    told = why_denied(sentence)
    assert told.reason == f"{action} is not allowed"
    assert told.remedy == f"allow {action}" + (f" on {resource}" if resource else "")


def test_a_denial_that_names_no_action_is_still_a_reason():
    assert why_denied("no") == Absent("a permission is missing")


def test_no_answer_is_told_apart_from_a_refusal():
    told = why_absent(EndpointConnectionError(endpoint_url="http://x"), "CloudWatch")
    assert told.reason == "CloudWatch cannot be reached"


def test_a_table_elsewhere_is_not_looked_up_in_the_callers_account(monkeypatch: pytest.MonkeyPatch):
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_CLOUDWATCH"):
        monkeypatch.delenv(name, raising=False)
    docker = Endpoint(url="http://dynamodb:8000", region="eu-central-1")
    told = client_beside("cloudwatch", docker)
    assert isinstance(told, Absent)
    assert told.reason == "http://dynamodb:8000 has no cloudwatch"


@pytest.mark.parametrize(
    ("service", "endpoint", "elsewhere", "address"),
    [
        ("dynamodbstreams", LOCAL, None, "http://127.0.0.1:8000"),
        ("dynamodbstreams", IN_A_VPC, None, "https://streams.dynamodb.eu-west-1.amazonaws.com"),
        (
            "dynamodbstreams",
            IN_A_VPC,
            "https://vpce-2.streams.dynamodb.eu-west-1.vpce.amazonaws.com",
            "https://vpce-2.streams.dynamodb.eu-west-1.vpce.amazonaws.com",
        ),
        ("cloudwatch", IN_A_VPC, None, "https://monitoring.eu-west-1.amazonaws.com"),
        ("cloudwatch", Endpoint(region="us-east-1"), None, "https://monitoring.us-east-1"),
        ("cloudwatch", LOCAL, "http://127.0.0.1:4566", "http://127.0.0.1:4566"),
    ],
)
def test_where_a_service_is(
    service: str,
    endpoint: Endpoint,
    elsewhere: str | None,
    address: str,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    if elsewhere:
        name = {"cloudwatch": "CLOUDWATCH", "dynamodbstreams": "DYNAMODB_STREAMS"}[service]
        monkeypatch.setenv(f"AWS_ENDPOINT_URL_{name}", elsewhere)
    client = client_beside(service, endpoint)
    assert client.meta.endpoint_url.startswith(address)
