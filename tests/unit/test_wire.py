"""Check that Keyhop's transport sends and understands what boto3's client does."""

import json
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import botocore.session
import pytest
from botocore.awsrequest import AWSResponse, HeadersDict
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError, HTTPClientError, ProxyConnectionError
from keyhop.dynamodb.client import _usual_url, dynamodb_client
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.refusals import explained, is_transient
from keyhop.dynamodb.schema import GREATEST_SORT_KEY
from keyhop.dynamodb.throttling import reason_names
from keyhop.dynamodb.transport import Answer, Client

from testing.partitions import ALL_REASONS

URL = "http://127.0.0.1:1"
DATE = "Sun, 22 Nov 2026 08:25:00 GMT"
SECRETS = {"aws_access_key_id": "AKID", "aws_secret_access_key": "secret"}
PARAMETERS = {
    "TableName": "Größe",
    "Segment": 3,
    "TotalSegments": 16,
    "Limit": 8,
    "Select": "SPECIFIC_ATTRIBUTES",
    "ProjectionExpression": "#k0",
    "ExpressionAttributeNames": {"#k0": "日付"},
    "ReturnConsumedCapacity": "TOTAL",
}
KEY = {"pk": {"B": b"\x00\xff"}, "sk": {"S": "ü"}}
STARTS = [
    None,
    {"pk": {"S": "ü \U0001f600"}, "sk": GREATEST_SORT_KEY["S"]},
    {"pk": {"N": "-1.5"}, "sk": GREATEST_SORT_KEY["N"]},
    {"pk": {"B": b"\x00\xff"}, "sk": GREATEST_SORT_KEY["B"]},
]


class Http:
    """A recorder of requests with a canned response, for boto3 (`send`) and for Keyhop (`ask`)."""

    host = "127.0.0.1:1"

    def __init__(self, body: Any, status: int = 200) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.response = AWSResponse(URL, status, {"x-amzn-requestid": "id", "date": DATE}, None)
        self.response._content = content
        self.request: Any = None

    def send(self, request: Any) -> AWSResponse:
        self.request = request
        return self.response

    def ask(self, request: bytes) -> Answer:
        head, _, body = request.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = HeadersDict(dict(line.split(": ", 1) for line in lines))
        assert headers["Content-Length"] == str(len(body))
        self.request = SimpleNamespace(first=first, headers=headers, body=body)
        response_head = b"HTTP/1.1 %d\r\nX-Amzn-RequestId: id\r\nDate: %b\r\n"
        response_head %= self.response.status_code, DATE.encode()
        return Answer(self.response.status_code, response_head, self.response.content)


def client_of(http: Any, *token: str, region: str = "us-east-1") -> Client:
    """Return Keyhop's client with the connections of a test."""
    client = Client(region, lambda: SimpleNamespace(exceptions=exceptions()))
    client.send_by(http, Credentials("AKID", "secret", *token))
    return client


@cache
def exceptions() -> Any:
    return boto3.client("dynamodb", region_name="us-east-1", **SECRETS).exceptions


def both(
    body: Any, status: int = 200, operation: str = "scan", **parameters: Any
) -> tuple[Any, Any, Any, Any]:
    """Return the request of the transport, that of boto3's client, and both results."""
    ours, theirs = Http(body, status), Http(body, status)
    client = boto3.client(
        "dynamodb",
        endpoint_url=URL,
        region_name="us-east-1",
        config=Config(retries={"mode": "standard", "total_max_attempts": 1}),
        **SECRETS,
    )
    client.meta.events.register("before-send.dynamodb", lambda request, **_: theirs.send(request))
    outcomes = []
    for call in (partial(client_of(ours).call, operation), getattr(client, operation)):
        try:
            outcomes.append(call(**parameters))
        except ClientError as error:
            outcomes.append(error)
    return ours.request, theirs.request, outcomes[0], outcomes[1]


@pytest.mark.parametrize("start", STARTS)
def test_the_request_is_the_one_that_boto3_sends(start: Any) -> None:
    more = {"ExclusiveStartKey": start} if start else {}
    ours, theirs, *_ = both({"Items": []}, **PARAMETERS, **more)
    assert ours.first == f"{theirs.method} / HTTP/1.1"
    assert f"http://{ours.headers['Host']}/" == theirs.url
    assert json.loads(ours.body) == json.loads(theirs.body)
    for name in ("X-Amz-Target", "Content-Type"):
        assert as_text(ours.headers[name]) == as_text(theirs.headers[name])
    scope = as_text(ours.headers["Authorization"]).split(", ")[0]
    assert scope == as_text(theirs.headers["Authorization"]).split(", ")[0]
    signed = as_text(ours.headers["Authorization"])
    assert "SignedHeaders=content-type;host;x-amz-date;x-amz-target" in signed


def as_text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def test_a_session_token_is_sent_and_signed() -> None:
    http = Http({"Items": []})
    client_of(http, "token", region="eu-west-1").call("scan", TableName="Orders")
    assert http.request.headers["X-Amz-Security-Token"] == "token"
    assert "x-amz-security-token" in as_text(http.request.headers["Authorization"])


@pytest.mark.parametrize(
    "body",
    [
        {"Items": [], "Count": 0, "ScannedCount": 0},
        {
            "Items": [{"pk": {"S": "ü"}}, {"pk": {"N": "1E+2"}}, {"pk": {"B": "AP8="}}],
            "Count": 3,
            "ScannedCount": 3,
            "LastEvaluatedKey": {"pk": {"B": "AP8="}, "sk": {"S": "x"}},
            "ConsumedCapacity": {"TableName": "T", "CapacityUnits": 0.5},
        },
        {"Items": [{"a": {"B": "AA=="}, "b": {"S": "AA=="}}], "Count": 1, "ScannedCount": 1},
    ],
)
def test_a_page_is_parsed_as_boto3_does(body: Any) -> None:
    *_, ours, theirs = both(body, **PARAMETERS)
    theirs.pop("ResponseMetadata")
    assert ours == theirs


@pytest.mark.parametrize("field", ["ThrottlingReasons", "throttlingReasons"])
@pytest.mark.parametrize("reason", ALL_REASONS)
def test_throttling_reasons_arrive_as_in_boto3(field: str, reason: str) -> None:
    code = "ThrottlingException" if field[0] == "t" else "ProvisionedThroughputExceededException"
    body = {
        "__type": f"com.amazonaws.dynamodb.v20120810#{code}",
        "message": "slow down",
        field: [{"reason": reason, "resource": "arn:x"}],
    }
    *_, ours, theirs = both(body, 400, **PARAMETERS)
    assert reason_names(ours.response) == reason_names(theirs.response) == (reason,)
    assert ours.response["Error"]["Code"] == theirs.response["Error"]["Code"] == code


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"__type": "com.amazon.coral.validate#ValidationException", "message": "m"}, 400),
        ({"__type": "com.amazon.coral.service#AccessDeniedException", "Message": "m"}, 400),
        ({"__type": "InternalServerError", "message": ""}, 500),
        (b"<html>Service Unavailable</html>", 503),
        (b"", 500),
    ],
)
def test_errors_have_the_code_and_status_that_boto3_gives_them(body: Any, status: int) -> None:
    *_, ours, theirs = both(body, status, **PARAMETERS)
    assert ours.response["Error"]["Code"] == theirs.response["Error"]["Code"]
    assert ours.response["ResponseMetadata"]["HTTPStatusCode"] == status


def test_a_wrong_clock_is_reported_with_the_time_of_the_service() -> None:
    """The time is in a header of the response, which boto3 passes on too."""
    body = {
        "__type": "com.amazon.coral.service#InvalidSignatureException",
        "message": "Signature expired: 20261122T070500Z is now earlier than 20261122T082000Z "
        "(20261122T082500Z - 5 min.)",
    }
    *_, ours, theirs = both(body, 400, **PARAMETERS)
    headers = [
        error.response["ResponseMetadata"]["HTTPHeaders"]["date"] for error in (ours, theirs)
    ]
    assert headers == [DATE, DATE]
    assert str(explained(ours, Endpoint())) == str(explained(theirs, Endpoint()))
    assert "The clock of this machine is 80 minutes behind" in str(explained(ours, Endpoint()))


@pytest.mark.parametrize(
    ("operation", "more", "body"),
    [
        *(("scan", {}, body) for body in (b"", b'{"Items": [{"pk"', b"<html>", b"[]")),
        ("scan", {}, {"Count": 0}),
        *(("get_item", {"Key": KEY}, body) for body in (b"", b"<html>", b"[]")),
    ],
)
def test_an_invalid_answer_counts_as_a_broken_connection(
    operation: str, more: dict[str, Any], body: Any
) -> None:
    with pytest.raises(HTTPClientError) as raised:
        client_of(Http(body)).call(operation, TableName="Orders", **more)
    assert is_transient(raised.value)


def test_an_error_that_is_json_but_not_an_object_is_raised() -> None:
    """boto3's parser fails on such an error."""
    with pytest.raises(ClientError) as raised:
        client_of(Http(b'"text"', 502)).call("scan", TableName="Orders")
    assert raised.value.response["Error"]["Code"] == "502"


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set credentials in the environment."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name.upper(), value)


@pytest.mark.usefixtures("secrets")
@pytest.mark.parametrize(
    ("url", "environment", "is_short"),
    [
        (URL, {}, True),
        (URL + "/", {}, True),
        ("http://127.0.0.1:1/behind", {}, False),
        ("http://user:word@127.0.0.1:1", {}, False),
        ("http://example.com", {"http_proxy": "http://127.0.0.1:2"}, False),
        ("http://example.com", {"https_proxy": "http://127.0.0.1:2"}, True),
        ("http://example.com", {"http_proxy": "http://127.0.0.1:2", "no_proxy": "*"}, True),
    ],
)
def test_boto3_is_used_for_addresses_that_need_botocore(
    url: str, environment: dict[str, str], is_short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    client = dynamodb_client(Endpoint(region="us-east-1", url=url))
    assert (client._connections is not None) is is_short


@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov"])
def test_the_address_is_that_of_boto3s_client(partition: str) -> None:
    session = botocore.session.Session()
    for region in session.get_available_regions("dynamodb", partition):
        client = session.create_client("dynamodb", region_name=region, **SECRETS)
        assert _usual_url(session, region) == client.meta.endpoint_url


@pytest.mark.usefixtures("secrets")
@pytest.mark.parametrize(
    "environment",
    [
        {"AWS_USE_FIPS_ENDPOINT": "true"},
        {"AWS_USE_DUALSTACK_ENDPOINT": "true"},
        {"AWS_ENDPOINT_URL": "http://127.0.0.1:3"},
        {"AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:3"},
    ],
)
def test_a_configured_address_is_left_to_boto3(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    session = botocore.session.Session()
    assert _usual_url(session, "us-east-1") is None
    client = session.create_client("dynamodb", region_name="us-east-1", **SECRETS)
    connections = dynamodb_client(Endpoint(region="us-east-1"))._connections
    assert connections.host in client.meta.endpoint_url


@pytest.mark.usefixtures("secrets")
def test_a_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """boto3's client connects to the proxy, where nothing listens."""
    monkeypatch.setenv("http_proxy", URL)
    monkeypatch.setenv("no_proxy", "")
    client = dynamodb_client(Endpoint(region="us-east-1", url="http://example.com"))
    with pytest.raises(ProxyConnectionError):
        client.call("scan", TableName="Orders")


@pytest.mark.usefixtures("secrets")
def test_configured_bundles_are_trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "none.pem"))
    client = dynamodb_client(Endpoint(region="us-east-1", url="https://127.0.0.1:1"))
    assert client._connections.ca_bundle == str(tmp_path / "none.pem")


CALLS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "get_item",
        {"TableName": "T", "Key": KEY, "ConsistentRead": True},
        {"Item": {"pk": {"B": "AP8="}, "sk": {"S": "B"}}, "ConsumedCapacity": {"TableName": "T"}},
    ),
    ("get_item", {"TableName": "T", "Key": KEY}, {}),
    (
        "batch_get_item",
        {"RequestItems": {"T": {"Keys": [KEY]}}},
        {"Responses": {"T": [{"pk": {"B": "AP8="}}]}, "UnprocessedKeys": {}},
    ),
    (
        "query",
        {
            "TableName": "T",
            "KeyConditionExpression": "#p = :p",
            "ExpressionAttributeNames": {"#p": "pk"},
            "ExpressionAttributeValues": {":p": {"B": b"\x01"}},
            "Limit": 2,
        },
        {"Items": [{"pk": {"B": "AQ=="}, "sk": {"N": "1"}}], "Count": 1},
    ),
    (
        "put_item",
        {"TableName": "T", "Item": KEY | {"keyhop": {"N": "1"}}},
        {"ConsumedCapacity": {"TableName": "T", "CapacityUnits": 2.0}},
    ),
    (
        "delete_item",
        {"TableName": "T", "Key": KEY, "ReturnValues": "ALL_OLD"},
        {"Attributes": {"pk": {"B": "AP8="}, "m": {"M": {"B": {"L": [{"B": "AA=="}]}}}}},
    ),
    (
        "describe_table",
        {"TableName": "T"},
        {
            "Table": {
                "CreationDateTime": 1.7e9 + 0.25,
                "ItemCount": 3,
                "BillingModeSummary": {"LastUpdateToPayPerRequestDateTime": 1.7e9},
                "GlobalSecondaryIndexes": [
                    {"IndexName": "i", "ProvisionedThroughput": {"LastDecreaseDateTime": 1.6e9}}
                ],
            }
        },
    ),
]


@pytest.mark.parametrize(("operation", "parameters", "answer"), CALLS)
def test_other_calls_are_those_of_boto3(
    operation: str, parameters: dict[str, Any], answer: dict[str, Any]
) -> None:
    ours, theirs, result, by_boto3 = both(answer, 200, operation, **parameters)
    assert json.loads(ours.body) == json.loads(theirs.body)
    assert ours.headers["X-Amz-Target"] == theirs.headers["X-Amz-Target"].decode()
    by_boto3["ResponseMetadata"].pop("MaxAttemptsReached")  # one is the maximum in this test
    assert result == by_boto3
    assert result["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_a_failed_condition_is_reported_as_boto3_does() -> None:
    body = {
        "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
        "Message": "The conditional request failed",
        "Item": {"pk": {"B": "AP8="}, "x": {"SS": ["a"]}},
    }
    _, _, ours, theirs = both(body, 400, "put_item", TableName="T", Item=KEY)
    assert ours.response["Item"] == theirs.response["Item"]
    assert ours.response["Error"]["Code"] == theirs.response["Error"]["Code"]
    assert ours.operation_name == theirs.operation_name
    assert type(ours).__name__ == type(theirs).__name__ == "ConditionalCheckFailedException"


@pytest.mark.parametrize(
    "wrong", [{"Limit": "8"}, {"Limt": 8}, {"ExclusiveStartKey": {"pk": {"S": 1}}}, {"Limit": 0}]
)
def test_these_tests_validate_parameters_that_production_sends_unchecked(wrong: Any) -> None:
    with pytest.raises(AssertionError, match=f"parameter|range|{next(iter(wrong))}"):
        client_of(Http({"Items": []})).call("scan", TableName="T", **wrong)
