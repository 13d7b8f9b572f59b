"""Check that each signature equals botocore's, byte for byte."""

from datetime import UTC, datetime
from functools import partial

import botocore.auth
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials, ReadOnlyCredentials
from hypothesis import given
from hypothesis import strategies as st
from keyhop.dynamodb.transport import Signer

HOST = "dynamodb.eu-west-1.amazonaws.com"
TARGET = "DynamoDB_20120810.Scan"
NOW = 1_795_000_000
visible = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=40)
credentials = st.builds(
    ReadOnlyCredentials, visible, visible, st.none() | st.text(max_size=0) | visible
)
moments = st.integers(0, 4_000_000_000)


def headers_of(head: bytes) -> dict[str, str]:
    first, *lines = head.decode().removesuffix("\r\n\r\n").split("\r\n")
    assert first == "POST / HTTP/1.1"
    return {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}


def by_botocore(head: bytes, keys: ReadOnlyCredentials, region: str, body: bytes, now: int) -> str:
    """Return the Authorization header that botocore makes for the same request."""
    headers = headers_of(head)
    signed = {name: headers[name] for name in ("content-type", "x-amz-target")}
    request = AWSRequest("POST", f"https://{headers['host']}/", headers=signed, data=body)
    with pytest.MonkeyPatch.context() as patched:
        moment = partial(datetime.fromtimestamp, now, UTC)
        patched.setattr(botocore.auth, "get_current_datetime", moment)
        SigV4Auth(keys, "dynamodb", region).add_auth(request)
    assert headers["x-amz-date"] == request.headers["X-Amz-Date"]
    assert headers.get("x-amz-security-token") == request.headers.get("X-Amz-Security-Token")
    return str(request.headers["Authorization"])


@given(
    keys=credentials,
    region=st.sampled_from(["us-east-1", "eu-west-1", "cn-north-1", "us-gov-west-1"]),
    host=st.sampled_from([HOST, "127.0.0.1:8000", "[::1]:8000", "localhost"]),
    body=st.binary(max_size=200),
    operation=st.sampled_from(["Scan", "Query", "PutItem"]),
    now=moments,
)
def test_a_request_is_signed_as_by_botocore(
    keys: ReadOnlyCredentials, region: str, host: str, body: bytes, operation: str, now: int
) -> None:
    head = Signer(host, region, "keyhop").head(keys, f"DynamoDB_20120810.{operation}", body, now)
    assert headers_of(head)["authorization"] == by_botocore(head, keys, region, body, now)
    assert f"Content-Length: {len(body)}".encode() in head


@given(steps=st.lists(st.tuples(credentials, moments), min_size=1, max_size=8))
def test_the_cache_of_a_signer_depends_on_credentials_and_time(
    steps: list[tuple[ReadOnlyCredentials, int]],
) -> None:
    """Credentials rotate, and days and clocks change, also backwards."""
    signer = Signer(HOST, "eu-west-1", "keyhop")
    for keys, now in (*steps, *steps):
        head = signer.head(keys, TARGET, b"{}", now)
        assert headers_of(head)["authorization"] == by_botocore(head, keys, "eu-west-1", b"{}", now)


@pytest.mark.parametrize("seconds", [0, 1, 86_399, 86_400])
@pytest.mark.parametrize(
    "changed",
    [
        ReadOnlyCredentials("a", "s", None),
        ReadOnlyCredentials("b", "s", None),
        ReadOnlyCredentials("a", "t", None),
        ReadOnlyCredentials("a", "s", "token"),
    ],
)
def test_each_change_invalidates_the_cache(seconds: int, changed: ReadOnlyCredentials) -> None:
    signer = Signer(HOST, "eu-west-1", "keyhop")
    signer.head(ReadOnlyCredentials("a", "s", None), TARGET, b"{}", NOW)
    head = signer.head(changed, TARGET, b"{}", NOW + seconds)
    expected = by_botocore(head, changed, "eu-west-1", b"{}", NOW + seconds)
    assert headers_of(head)["authorization"] == expected


def test_additional_fields_of_frozen_credentials_are_accepted() -> None:
    frozen = Credentials("a", "s", "t", account_id="111122223333").get_frozen_credentials()
    head = Signer(HOST, "eu-west-1", "keyhop").head(frozen, TARGET, b"{}", NOW)
    assert headers_of(head)["authorization"] == by_botocore(head, frozen, "eu-west-1", b"{}", NOW)
