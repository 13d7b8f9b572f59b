"""Check the message of each failure: who was denied which action on which resource, and what to do.

The texts are those of IAM's documentation ("Troubleshoot access denied error messages") and of
public reports.
"""

import json
from collections.abc import Callable
from typing import Any

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
    SSOTokenLoadError,
    TokenRetrievalError,
)
from keyhop.denied import Denied, clock_text
from keyhop.dynamodb import client
from keyhop.dynamodb.client import dynamodb_client
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.refusals import explained, is_transient
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.throttling import NO_REASON, is_throttling, reason_names
from keyhop.errors import (
    AwsRefused,
    CannotStart,
    NoCredentials,
    NotPermitted,
    TableNotFound,
    Unreachable,
)
from keyhop.key_index.index import check_can_have_one
from keyhop.storage.s3 import Bucket

from testing.partitions import ALL_REASONS

TABLE = "arn:aws:dynamodb:eu-west-1:123456789012:table/Orders"
ROLE = "arn:aws:sts::123456789012:assumed-role/Reader/ana"
WHO = f"User: {ROLE} is not authorized to perform: dynamodb:Scan on resource: {TABLE}"
ALLOW = {"Effect": "Allow", "Action": "dynamodb:Scan", "Resource": TABLE}
ROLE_TO_ASSUME = "arn:aws:iam::111122223333:role/reads-orders"


def error(code: str, message: str = "", status: int = 400, **more: str) -> ClientError:
    response = {
        "Error": {"Code": code, "Message": message, **more},
        "ResponseMetadata": {
            "HTTPStatusCode": status,
            "HTTPHeaders": {"date": "Sun, 22 Nov 2026 08:25:00 GMT"},
        },
    }
    return ClientError(response, "Scan")


def kms_error(message: str) -> ClientError:
    cause = "KMS key access denied error: com.amazonaws.services.kms.model.AWSKMSException: "
    return error("AccessDeniedException", cause + message)


OF_THE_SERVICE = (
    "(Service: AWSKMS; Status Code: 400; Error Code: AccessDeniedException; Request ID: 0e35; "
    "Proxy: null)"
)


@pytest.mark.parametrize(
    ("raised", "kind", "text"),
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
        (
            kms_error(
                "User: arn:aws:sts::1:assumed-role/R/F is not authorized to perform: kms:Decrypt "
                "on resource: arn:aws:kms:eu-west-1:1:key/2c3d because no identity-based policy "
                f"allows the kms:Decrypt action {OF_THE_SERVICE}"
            ),
            NotPermitted,
            "'Orders' is encrypted with a KMS key that may not be used: allow kms:Decrypt on "
            "arn:aws:kms:eu-west-1:1:key/2c3d, which",
        ),
        (
            kms_error(
                "The ciphertext refers to a customer master key that does not exist, does not "
                f"exist in this region, or you are not allowed to access. {OF_THE_SERVICE}"
            ),
            NotPermitted,
            "allow kms:Decrypt on its key, which DescribeTable names as SSEDescription",
        ),
        (
            kms_error(
                "User: arn:aws:sts::1:assumed-role/R/F is not authorized to perform: "
                "kms:DescribeKey on this resource because the resource does not exist in this "
                "Region, no resource-based policies allow access, or a resource-based policy "
                "explicitly denies access"
            ),
            NotPermitted,
            "'Orders' is encrypted with a KMS key that may not be used",
        ),
        (error("AccessDeniedException", "explicit deny"), NotPermitted, "explicit deny"),
        (error("UnrecognizedClientException"), NoCredentials, "not accepted"),
        (error("ExpiredTokenException"), NoCredentials, "sign in again"),
        (NoCredentialsError(), NoCredentials, "No AWS credentials were found"),
        (ProfileNotFound(profile="p"), CannotStart, "list-profiles"),
        (NoRegionError(), CannotStart, "AWS_REGION"),
        (EndpointConnectionError(endpoint_url="https://x"), Unreachable, "https://x"),
        (SSLError(endpoint_url="https://x", error="certificate"), Unreachable, "TLS"),
    ],
)
def test_each_failure_is_one_sentence_that_says_what_to_do(raised, kind, text) -> None:
    message = explained(raised, Endpoint("eu-west-1"), "Orders")
    assert isinstance(message, kind)
    assert text in str(message)
    assert "\n" not in str(message)


PASSING = [
    error("InternalServerError", status=500),
    error("ServiceUnavailable", status=503),
    error("ThrottlingException"),
    error("ProvisionedThroughputExceededException"),
    error("RequestLimitExceeded"),
    ConnectionClosedError(endpoint_url="x"),
    ConnectTimeoutError(endpoint_url="x"),
    ReadTimeoutError(endpoint_url="x"),
    EndpointConnectionError(endpoint_url="x"),
]
LASTING = [
    error("ValidationException"),
    error("AccessDeniedException"),
    error("ResourceNotFoundException"),
    error("ExpiredTokenException"),
    SSLError(endpoint_url="x", error="certificate"),
    NoCredentialsError(),
    ValueError("a bug"),
]


@pytest.mark.parametrize("raised", [*PASSING, *LASTING])
def test_only_transient_errors_are_retried(raised) -> None:
    assert is_transient(raised) is (raised in PASSING)


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
def test_only_a_local_endpoint_needs_no_credentials(url: str | None, loopback: bool) -> None:
    assert Endpoint(url=url).is_loopback is loopback


def test_a_loopback_client_works_without_any_configuration(monkeypatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    client = dynamodb_client(Endpoint(url="http://127.0.0.1:1"))
    with pytest.raises(EndpointConnectionError):
        client.call("describe_table", TableName="Orders")
    with pytest.raises(CannotStart, match="No AWS region is set"):
        dynamodb_client(Endpoint())


def test_the_region_is_read_from_two_environment_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
def test_an_invalid_address_is_refused(url: str) -> None:
    with pytest.raises(CannotStart, match="is not an http"):
        dynamodb_client(Endpoint(url=url))


def test_a_table_with_an_inaccessible_kms_key_is_not_awaited() -> None:
    key = "arn:aws:kms:eu-west-1:1:key/2c3d"
    locked = {
        "TableName": "Orders",
        "TableStatus": "INACCESSIBLE_ENCRYPTION_CREDENTIALS",
        "SSEDescription": {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": key},
    }
    with pytest.raises(CannotStart, match=f"DynamoDB may not use {key} any more: enable"):
        Table("Orders", locked).source()


@pytest.mark.parametrize("check", [Table.source, check_can_have_one])
@pytest.mark.parametrize(
    ("status", "advice"),
    [
        ("DELETING", r"^Table 'Orders' is being deleted\.$"),
        ("ARCHIVED", "Restore that backup"),
        ("CREATING", "wait until it is ACTIVE"),
    ],
)
def test_only_a_table_that_will_be_active_is_awaited(
    check: Callable[[Table], Any], status: str, advice: str
) -> None:
    with pytest.raises(CannotStart, match=advice):
        check(Table("Orders", {"TableName": "Orders", "TableStatus": status}))


def test_an_index_that_is_being_deleted_is_not_awaited() -> None:
    index = {"IndexName": "ByDay", "IndexStatus": "DELETING"}
    described = {"TableName": "Orders", "GlobalSecondaryIndexes": [index]}
    with pytest.raises(CannotStart, match=r"^Index 'ByDay' is being deleted\.$"):
        Table("Orders", described).source("ByDay")


def test_a_vector_index_is_refused() -> None:
    vectors = {"IndexName": "by-meaning", "IndexStatus": "ACTIVE"}
    with pytest.raises(CannotStart, match="'by-meaning' of table 'Orders' is a vector index"):
        Table("Orders", {"TableName": "Orders", "VectorIndexes": [vectors]}).source("by-meaning")


def test_a_role_is_assumed_again_when_its_credentials_expire(monkeypatch) -> None:
    """botocore renews the credentials some minutes before they expire."""
    for name, value in (("AWS_ACCESS_KEY_ID", "own"), ("AWS_SECRET_ACCESS_KEY", "own")):
        monkeypatch.setenv(name, value)
    moments = iter(("2026-01-01T00:00:00Z", "2126-01-01T00:00:00Z"))
    requests: list[dict] = []

    def assume_role(_client, operation: str, parameters: dict) -> dict:
        assert operation == "AssumeRole"
        requests.append(parameters)
        names = ("AccessKeyId", "SecretAccessKey", "SessionToken")
        issued = {name: f"{name}{len(requests)}" for name in names}
        return {"Credentials": {**issued, "Expiration": next(moments)}}

    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", assume_role)
    session = client._session(Endpoint("eu-west-1", role=ROLE_TO_ASSUME))
    credentials = session.get_credentials()
    assert requests == [], "no role is assumed before the first request"
    with pytest.raises(RuntimeError, match="still expired"):
        credentials.get_frozen_credentials()
    assert credentials.get_frozen_credentials().access_key == "AccessKeyId2"
    assert credentials.get_frozen_credentials().token == "SessionToken2"
    assert requests == 2 * [{"RoleArn": ROLE_TO_ASSUME, "RoleSessionName": "keyhop"}]
    assert session.get_config_variable("region") == "eu-west-1"


def test_a_role_that_may_not_be_assumed_is_named() -> None:
    action = f"sts:AssumeRole on resource: {ROLE_TO_ASSUME}"
    refused = error(
        "AccessDenied", f"User: arn:aws:iam::1:user/me is not authorized to perform: {action}"
    )
    message = str(explained(refused, Endpoint(role=ROLE_TO_ASSUME)))
    assert f"allow sts:AssumeRole on {ROLE_TO_ASSUME}." in message


def test_a_role_cannot_be_assumed_without_credentials(monkeypatch, tmp_path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(NoCredentials, match="No AWS credentials"):
        client.connect(Endpoint("eu-west-1", role=ROLE_TO_ASSUME))


def denial_text(message: str) -> str:
    denial = explained(error("AccessDeniedException", message), Endpoint("eu-west-1"), "Orders")
    assert isinstance(denial, NotPermitted)
    return str(denial)


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        ("identity-based policy", "Add to a policy of role Reader of account 123456789012"),
        ("permissions boundary", "Add to the permissions boundary"),
        ("VPC endpoint policy", "Add to the VPC endpoint policy"),
        (
            "session policy",
            "The caller that begins the session passes that policy: add to the session",
        ),
        ("service control policy", "An administrator of the organization has to allow it in the"),
        ("resource control policy", "An administrator of the organization has to allow it in the"),
    ],
)
def test_an_implicit_deny_names_the_policy_and_its_statement(kind: str, where: str) -> None:
    says = denial_text(f"{WHO} because no {kind} allows the dynamodb:Scan action")
    assert f"allow dynamodb:Scan on {TABLE}." in says
    assert f"denied to role Reader of account 123456789012, as no {kind} allows it" in says
    assert where in says
    assert json.loads(says[says.index("{") :]) == ALLOW


def test_the_statement_for_a_resource_policy_names_the_role() -> None:
    says = denial_text(f"{WHO} because no resource-based policy allows the dynamodb:Scan action")
    principal = {"AWS": "arn:aws:iam::123456789012:role/Reader"}
    assert json.loads(says[says.index("{") :]) == {**ALLOW, "Principal": principal}


@pytest.mark.parametrize(
    "why",
    [
        "with an explicit deny in an identity-based policy",
        "with an explicit deny in a service control policy",
        "with an explicit deny in a resource control policy: arn:aws:organizations::1:policy/p",
        "with an explicit deny in a permissions boundary",
    ],
)
def test_an_explicit_deny_comes_without_a_statement_to_allow_it(why: str) -> None:
    says = denial_text(f"{WHO} {why}")
    assert "which outweighs whatever allows it" in says
    assert why.partition(":")[0].split(" in a")[1].lstrip("n ") in says
    assert "{" not in says


def test_a_denial_without_a_reason_names_the_user_and_the_policy() -> None:
    me = "arn:aws:iam::1:user/me"
    says = denial_text(f"User: {me} is not authorized to perform: x:Y on resource: {TABLE}")
    assert f"It is denied to {me}. Add to a policy of {me}" in says
    assert Denied.read("Access Denied") is None


def test_s3_quotes_the_resource() -> None:
    message = (
        f'User: {ROLE} is not authorized to perform: s3:PutObject on resource: "arn:aws:s3:::b/k" '
        "because no identity-based policy allows the s3:PutObject action"
    )
    explanation = Bucket(None, "b", "runs/r/")._error(error("AccessDenied", message))
    says = str(explanation)
    assert isinstance(explanation, NotPermitted)
    assert json.loads(says[says.index("{") :])["Resource"] == "arn:aws:s3:::b/k"


EXPIRED = (
    "Signature expired: 20261122T080000Z is now earlier than 20261122T081000Z "
    "(20261122T082500Z - 15 min.)"
)
EARLY = (
    "Signature not yet current: 20261122T090000Z is still later than 20261122T083000Z "
    "(20261122T082500Z + 5 min.)"
)


@pytest.mark.parametrize(
    ("raised", "says"),
    [
        (error("InvalidSignatureException", EXPIRED), "is 25 minutes behind"),
        (error("SignatureDoesNotMatch", EARLY), "is 35 minutes ahead"),
        (
            error(
                "RequestTimeTooSkewed",
                "The difference between the request time and the current time is too large.",
                RequestTime="20261122T070000Z",
                ServerTime="2026-11-22T08:25:00Z",
            ),
            "is 85 minutes behind",
        ),
        (error("RequestTimeTooSkewed", "too large"), "is wrong"),
    ],
)
def test_a_wrong_clock_is_reported(raised: ClientError, says: str) -> None:
    for error in (explained(raised, Endpoint("eu-west-1")), Bucket(None, "b", "")._error(raised)):
        assert isinstance(error, AwsRefused)
        assert not isinstance(error, NoCredentials)
        assert f"The clock of this machine {says}" in str(error)
        assert "AWS has 2026-11-22 08:25:00 UTC" in str(error)


def test_another_signature_error_does_not_blame_the_clock() -> None:
    assert clock_text(error("InvalidSignatureException", "does not match").response) is None


@pytest.mark.parametrize(
    "raised",
    [
        error("ExpiredTokenException", "The security token included in the request is expired"),
        SSOTokenLoadError(error_msg="no such file"),
        TokenRetrievalError(provider="sso", error_msg="Token has expired and refresh failed"),
    ],
)
def test_an_expired_session_says_how_to_sign_in(raised: Exception) -> None:
    explanation = explained(raised, Endpoint("eu-west-1", profile="work"))
    assert isinstance(explanation, NoCredentials)
    assert "aws sso login --profile work" in str(explanation)


def test_there_are_sixteen_reasons() -> None:
    assert len(set(ALL_REASONS)) == 16
    assert "TableReadKeyRangeThroughputExceeded" in ALL_REASONS
    assert "IndexWriteMaxOnDemandThroughputExceeded" in ALL_REASONS


@pytest.mark.parametrize("field", ["ThrottlingReasons", "throttlingReasons"])
@pytest.mark.parametrize("reason", ALL_REASONS)
def test_each_reason_is_read_in_both_casings_with_any_code(reason: str, field: str) -> None:
    response = {"Error": {"Code": "Whatever"}, field: [{"reason": reason, "resource": "arn"}]}
    assert is_throttling(response)
    assert reason_names(response) == (reason,)


def test_a_throttle_without_a_reason_is_counted_as_unknown() -> None:
    response = error("ProvisionedThroughputExceededException").response
    assert is_throttling(response)
    assert reason_names(response) == (NO_REASON,)


@pytest.mark.parametrize("code", ["ValidationException", "InternalServerError", ""])
def test_other_errors_are_not_throttles(code: str) -> None:
    assert not is_throttling(error(code).response)
