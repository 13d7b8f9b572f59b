"""Tests of the reasons of failed requests, and of the endpoints of the services of a table."""

import pytest
from botocore.exceptions import EndpointConnectionError
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.errors import AwsRefused
from keyhop.report.facts import Absent
from keyhop.report.sources.absence import client_beside, why_absent, why_denied

from testing.report_cloud import refusal

LOCAL = Endpoint(url="http://127.0.0.1:8000")
IN_A_VPC = Endpoint(url="https://vpce-1.dynamodb.eu-west-1.vpce.amazonaws.com", region="eu-west-1")


def test_an_explained_error_is_judged_by_its_cause():
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
    absent = why_denied(sentence)
    assert absent.reason == f"{action} is not allowed"
    assert absent.remedy == f"allow {action}" + (f" on {resource}" if resource else "")


def test_a_denial_that_names_no_action_is_still_a_reason():
    assert why_denied("no") == Absent("a permission is missing")


def test_a_service_without_a_response_cannot_be_reached():
    absent = why_absent(EndpointConnectionError(endpoint_url="http://x"), "CloudWatch")
    assert absent.reason == "CloudWatch cannot be reached"


def test_a_table_of_another_service_has_no_cloudwatch(monkeypatch: pytest.MonkeyPatch):
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_CLOUDWATCH"):
        monkeypatch.delenv(name, raising=False)
    docker = Endpoint(url="http://dynamodb:8000", region="eu-central-1")
    absent = client_beside("cloudwatch", docker)
    assert isinstance(absent, Absent)
    assert absent.reason == "http://dynamodb:8000 has no cloudwatch"


@pytest.mark.parametrize(
    ("service", "endpoint", "override", "address"),
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
def test_the_endpoint_of_a_service(
    service: str,
    endpoint: Endpoint,
    override: str | None,
    address: str,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    if override:
        name = {"cloudwatch": "CLOUDWATCH", "dynamodbstreams": "DYNAMODB_STREAMS"}[service]
        monkeypatch.setenv(f"AWS_ENDPOINT_URL_{name}", override)
    client = client_beside(service, endpoint)
    assert client.meta.endpoint_url.startswith(address)
