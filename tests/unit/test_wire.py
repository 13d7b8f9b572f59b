"""The short way sends and understands what boto3's client does."""

import json
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError, HTTPClientError
from keyhop.dynamodb.client import Endpoint, dynamodb_client, is_transient
from keyhop.dynamodb.schema import GREATEST_SORT_KEY
from keyhop.dynamodb.throttling import ALL_REASONS, reason_names
from keyhop.dynamodb.transport import Wire

URL = "http://127.0.0.1:1"
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
STARTS = [
    None,
    {"pk": {"S": "ü \U0001f600"}, "sk": GREATEST_SORT_KEY["S"]},
    {"pk": {"N": "-1.5"}, "sk": GREATEST_SORT_KEY["N"]},
    {"pk": {"B": b"\x00\xff"}, "sk": GREATEST_SORT_KEY["B"]},
]


class Http:
    """Keeps the request, answers with a canned response."""

    def __init__(self, body: Any, status: int = 200) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.response = AWSResponse(URL, status, {"x-amzn-requestid": "id"}, None)
        self.response._content = content
        self.request: Any = None

    def send(self, request: Any) -> AWSResponse:
        self.request = request
        return self.response


def both(body: Any, status: int = 200, **parameters: Any) -> tuple[Any, Any, Any, Any]:
    """What the wire and boto3's client send, and what they make of the answer."""
    ours, theirs = Http(body, status), Http(body, status)
    wire = Wire(ours, Credentials("AKID", "secret"), URL, "us-east-1", "agent")  # type: ignore[arg-type]
    client = boto3.client(
        "dynamodb",
        endpoint_url=URL,
        region_name="us-east-1",
        config=Config(retries={"mode": "standard", "total_max_attempts": 1}),
        **SECRETS,
    )
    client.meta.events.register(
        "before-send.dynamodb.Scan", lambda request, **_: theirs.send(request)
    )
    outcomes = []
    for scan in (wire.scan, client.scan):
        try:
            outcomes.append(scan(**parameters))
        except ClientError as error:
            outcomes.append(error)
    return ours.request, theirs.request, outcomes[0], outcomes[1]


@pytest.mark.parametrize("start", STARTS)
def test_the_request_is_the_one_that_boto3_sends(start: Any) -> None:
    more = {"ExclusiveStartKey": start} if start else {}
    ours, theirs, *_ = both({"Items": []}, **PARAMETERS, **more)
    assert (ours.method, ours.url) == (theirs.method, theirs.url)
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
    wire = Wire(http, Credentials("AKID", "secret", "token"), URL, "eu-west-1", "agent")  # type: ignore[arg-type]
    wire.scan(TableName="Orders")
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
def test_a_page_means_what_boto3_makes_of_it(body: Any) -> None:
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


@pytest.mark.parametrize("body", [b"", b'{"Items": [{"pk"', b"<html>", b"[]", {"Count": 0}])
def test_an_answer_that_is_no_page_is_taken_for_a_broken_connection(body: Any) -> None:
    wire = Wire(Http(body), Credentials("AKID", "secret"), URL, "us-east-1", "agent")  # type: ignore[arg-type]
    with pytest.raises(HTTPClientError) as raised:
        wire.scan(TableName="Orders")
    assert is_transient(raised.value)


def test_an_error_that_is_json_but_no_object() -> None:
    """boto3's own parser stumbles over it."""
    http = Http(b'"text"', 502)
    wire = Wire(http, Credentials("AKID", "secret"), URL, "us-east-1", "agent")  # type: ignore[arg-type]
    with pytest.raises(ClientError) as raised:
        wire.scan(TableName="Orders")
    assert raised.value.response["Error"]["Code"] == "502"


def test_the_client_takes_the_short_way() -> None:
    """With another botocore the connections may be out of reach; then boto3's own scan is used."""
    assert dynamodb_client(Endpoint(url=URL))._wire is not None  # type: ignore[attr-defined]


KEY = {"pk": {"B": b"\x00\xff"}, "sk": {"S": "ü"}}
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
]


def both_calls(
    operation: str, body: Any, status: int, parameters: dict[str, Any]
) -> tuple[Any, Any, Any, Any]:
    ours, theirs = Http(body, status), Http(body, status)
    wire = Wire(ours, Credentials("AKID", "secret"), URL, "us-east-1", "agent")  # type: ignore[arg-type]
    client = boto3.client(
        "dynamodb",
        endpoint_url=URL,
        region_name="us-east-1",
        config=Config(retries={"mode": "standard", "total_max_attempts": 1}),
        **SECRETS,
    )
    client.meta.events.register("before-send.dynamodb", lambda request, **_: theirs.send(request))
    outcomes = []
    for call in (
        lambda: wire.call(operation, **parameters),
        lambda: getattr(client, operation)(**parameters),
    ):
        try:
            outcomes.append(call())
        except ClientError as error:
            outcomes.append(error)
    return ours.request, theirs.request, outcomes[0], outcomes[1]


@pytest.mark.parametrize(("operation", "parameters", "answer"), CALLS)
def test_other_calls_are_those_of_boto3(
    operation: str, parameters: dict[str, Any], answer: dict[str, Any]
) -> None:
    ours, theirs, understood, by_boto3 = both_calls(operation, answer, 200, parameters)
    assert json.loads(ours.body) == json.loads(theirs.body)
    assert ours.headers["X-Amz-Target"] == theirs.headers["X-Amz-Target"].decode()
    by_boto3.pop("ResponseMetadata")
    assert understood == by_boto3


def test_what_stands_in_the_way_of_a_write_is_told_as_by_boto3() -> None:
    body = {
        "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
        "Message": "The conditional request failed",
        "Item": {"pk": {"B": "AP8="}, "x": {"SS": ["a"]}},
    }
    _, _, ours, theirs = both_calls("put_item", body, 400, {"TableName": "T", "Item": KEY})
    assert ours.response["Item"] == theirs.response["Item"]
    assert ours.response["Error"]["Code"] == theirs.response["Error"]["Code"]
    assert ours.operation_name == theirs.operation_name


@pytest.mark.parametrize("body", [b"<html>", b"", b"[]"])
def test_an_answer_that_is_none_may_be_asked_for_again(body: bytes) -> None:
    wire = Wire(Http(body), Credentials("AKID", "secret"), URL, "us-east-1", "agent")  # type: ignore[arg-type]
    with pytest.raises(HTTPClientError) as raised:
        wire.call("get_item", TableName="T", Key=KEY)
    assert is_transient(raised.value)
