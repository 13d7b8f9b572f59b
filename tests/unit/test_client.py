"""What each failure tells the user."""

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    ProfileNotFound,
    ReadTimeoutError,
    SSLError,
)
from keyhop.dynamodb.client import Endpoint, dynamodb_client, explained, is_transient
from keyhop.errors import CannotStart, NoCredentials, NotPermitted, TableNotFound, Unreachable


def error(code: str, message: str = "", status: int = 400) -> ClientError:
    response = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(response, "Scan")


@pytest.mark.parametrize(
    ("raised", "kind", "says"),
    [
        (
            error("ResourceNotFoundException"),
            TableNotFound,
            "no table 'Orders' at region eu-west-1",
        ),
        (
            error(
                "AccessDeniedException",
                "User: arn:aws:iam::1:user/me is not authorized to perform: dynamodb:Scan on "
                "resource: arn:aws:dynamodb:eu-west-1:1:table/Orders because no policy allows it",
            ),
            NotPermitted,
            "allow dynamodb:Scan on arn:aws:dynamodb:eu-west-1:1:table/Orders.",
        ),
        (error("AccessDeniedException", "explicit deny"), NotPermitted, "explicit deny"),
        (error("UnrecognizedClientException"), NoCredentials, "not accepted"),
        (error("ExpiredTokenException"), NoCredentials, "sign in again"),
        (NoCredentialsError(), NoCredentials, "No AWS credentials were found"),
        (ProfileNotFound(profile="p"), CannotStart, "list-profiles"),
        (NoRegionError(), CannotStart, "--region"),
        (EndpointConnectionError(endpoint_url="https://x"), Unreachable, "https://x"),
        (SSLError(endpoint_url="https://x", error="certificate"), Unreachable, "TLS"),
    ],
)
def test_each_failure_is_one_sentence_that_says_what_to_do(raised, kind, says) -> None:
    told = explained(raised, Endpoint("eu-west-1"), "Orders")
    assert isinstance(told, kind)
    assert says in str(told)
    assert "\n" not in str(told)


@pytest.mark.parametrize(
    "raised",
    [
        error("InternalServerError", status=500),
        error("ServiceUnavailable", status=503),
        error("ThrottlingException"),
        error("ProvisionedThroughputExceededException"),
        error("RequestLimitExceeded"),
        ConnectionClosedError(endpoint_url="x"),
        ConnectTimeoutError(endpoint_url="x"),
        ReadTimeoutError(endpoint_url="x"),
        EndpointConnectionError(endpoint_url="x"),
    ],
)
def test_what_may_pass_is_retried(raised) -> None:
    assert is_transient(raised)


@pytest.mark.parametrize(
    "raised",
    [
        error("ValidationException"),
        error("AccessDeniedException"),
        error("ResourceNotFoundException"),
        error("ExpiredTokenException"),
        SSLError(endpoint_url="x", error="certificate"),
        NoCredentialsError(),
        ValueError("a bug"),
    ],
)
def test_nothing_else_is_retried(raised) -> None:
    assert not is_transient(raised)


@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://localhost:8000", True),
        ("http://[::1]:8000", True),
        ("https://dynamodb.eu-west-1.amazonaws.com", False),
        ("http://127.0.0.1.example.com", False),
        (None, False),
    ],
)
def test_only_this_machine_needs_no_credentials(url: str | None, loopback: bool) -> None:
    assert Endpoint(url=url).is_loopback is loopback


def test_a_loopback_client_works_without_any_configuration(monkeypatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    client = dynamodb_client(Endpoint(url="http://127.0.0.1:1"))
    with pytest.raises(EndpointConnectionError):
        client.describe_table(TableName="Orders")
    with pytest.raises(CannotStart, match="--region"):
        dynamodb_client(Endpoint())


def test_the_region_of_the_environment_by_both_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """boto3 knows AWS_DEFAULT_REGION only; the CDK and other SDKs know AWS_REGION."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "made-up")
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    assert dynamodb_client(Endpoint()).region == "eu-north-1"
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-south-1")
    assert dynamodb_client(Endpoint()).region == "eu-south-1"
    assert dynamodb_client(Endpoint(region="eu-west-3")).region == "eu-west-3"


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://x", "http://", "nonsense"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(CannotStart, match="is not an http"):
        dynamodb_client(Endpoint(url=url))
