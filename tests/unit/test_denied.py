"""Refusals in the service's own words: who was denied what on what, and what mends it.

The texts are those of IAM's documentation ("Troubleshoot access denied error messages") and of
public reports.
"""

import json

import pytest
from botocore.exceptions import ClientError, SSOTokenLoadError, TokenRetrievalError
from keyhop.denied import Denied, clock_text
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.refusals import explained
from keyhop.errors import AwsRefused, NoCredentials, NotPermitted
from keyhop.storage.s3 import Bucket

TABLE = "arn:aws:dynamodb:eu-west-1:123456789012:table/Orders"
ROLE = "arn:aws:sts::123456789012:assumed-role/Reader/ana"
WHO = f"User: {ROLE} is not authorized to perform: dynamodb:Scan on resource: {TABLE}"
ALLOW = {"Effect": "Allow", "Action": "dynamodb:Scan", "Resource": TABLE}


def refusal(code: str, message: str, **more: str) -> ClientError:
    response = {
        "Error": {"Code": code, "Message": message, **more},
        "ResponseMetadata": {
            "HTTPStatusCode": 400,
            "HTTPHeaders": {"date": "Sun, 22 Nov 2026 08:25:00 GMT"},
        },
    }
    return ClientError(response, "Scan")


def told(message: str) -> str:
    found = explained(refusal("AccessDeniedException", message), Endpoint("eu-west-1"), "Orders")
    assert isinstance(found, NotPermitted)
    return str(found)


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
def test_what_nothing_allows_names_the_policy_and_its_statement(kind: str, where: str) -> None:
    says = told(f"{WHO} because no {kind} allows the dynamodb:Scan action")
    assert f"allow dynamodb:Scan on {TABLE}." in says
    assert f"denied to role Reader of account 123456789012, as no {kind} allows it" in says
    assert where in says
    assert json.loads(says[says.index("{") :]) == ALLOW


def test_a_policy_of_the_resource_names_the_role_that_it_is_to_let_in() -> None:
    says = told(f"{WHO} because no resource-based policy allows the dynamodb:Scan action")
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
def test_what_is_denied_by_name_is_not_mended_by_allowing_it(why: str) -> None:
    says = told(f"{WHO} {why}")
    assert "which outweighs whatever allows it" in says
    assert why.partition(":")[0].split(" in a")[1].lstrip("n ") in says
    assert "{" not in says


def test_a_text_that_does_not_say_why_still_names_who_and_what() -> None:
    says = told(
        f"User: arn:aws:iam::1:user/me is not authorized to perform: x:Y on resource: {TABLE}"
    )
    assert (
        "It is denied to arn:aws:iam::1:user/me. Add to a policy of arn:aws:iam::1:user/me" in says
    )
    assert Denied.read("Access Denied") is None


def test_s3_quotes_the_resource() -> None:
    message = (
        f'User: {ROLE} is not authorized to perform: s3:PutObject on resource: "arn:aws:s3:::b/k" '
        "because no identity-based policy allows the s3:PutObject action"
    )
    found = Bucket(None, "b", "runs/r/")._error(refusal("AccessDenied", message))
    says = str(found)
    assert isinstance(found, NotPermitted)
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
    ("error", "says"),
    [
        (refusal("InvalidSignatureException", EXPIRED), "is 25 minutes behind"),
        (refusal("SignatureDoesNotMatch", EARLY), "is 35 minutes ahead"),
        (
            refusal(
                "RequestTimeTooSkewed",
                "The difference between the request time and the current time is too large.",
                RequestTime="20261122T070000Z",
                ServerTime="2026-11-22T08:25:00Z",
            ),
            "is 85 minutes behind",
        ),
        (refusal("RequestTimeTooSkewed", "too large"), "is wrong"),
    ],
)
def test_a_clock_that_is_wrong_is_told_as_that(error: ClientError, says: str) -> None:
    for found in (explained(error, Endpoint("eu-west-1")), Bucket(None, "b", "")._error(error)):
        assert isinstance(found, AwsRefused)
        assert not isinstance(found, NoCredentials)
        assert f"The clock of this machine {says}" in str(found)
        assert "AWS has 2026-11-22 08:25:00 UTC" in str(found)


def test_a_signature_that_is_wrong_for_another_reason_is_none_of_the_clocks() -> None:
    assert clock_text(refusal("InvalidSignatureException", "does not match").response) is None


@pytest.mark.parametrize(
    "raised",
    [
        refusal("ExpiredTokenException", "The security token included in the request is expired"),
        SSOTokenLoadError(error_msg="no such file"),
        TokenRetrievalError(provider="sso", error_msg="Token has expired and refresh failed"),
    ],
)
def test_a_session_that_is_over_is_signed_in_to_again(raised: Exception) -> None:
    found = explained(raised, Endpoint("eu-west-1", profile="work"))
    assert isinstance(found, NoCredentials)
    assert "aws sso login --profile work" in str(found)
