"""Signature version 4, for the one shape of request that is sent in great number. Pure.

POST to the root of an endpoint, with a JSON body and the headers below. Whatever is the same for
all requests of a second is made once for that second, and the key that signs them once for a day.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from time import gmtime, strftime
from typing import Any, NamedTuple

ALGORITHM = "AWS4-HMAC-SHA256"
CONTENT_TYPE = "application/x-amz-json-1.0"


class Credentials(NamedTuple):
    """Credentials, in the form in which botocore freezes them."""

    access_key: str
    secret_key: str
    token: str | None


@dataclass(frozen=True, slots=True)
class _Second:
    """The values that requests of one second with the same credentials have in common."""

    number: int
    credentials: Credentials
    key: bytes
    canonical: tuple[str, str]
    to_sign: str
    head: tuple[str, str]


class Signer:
    """Signs the requests to one endpoint; for many threads at once.

    host: as the Host header has it.
    """

    def __init__(self, host: str, region: str, user_agent: str, service: str = "dynamodb") -> None:
        self._host = host
        self._scope = f"{region}/{service}/aws4_request"
        self._user_agent = user_agent
        self._key = _once_a_day(region, service)
        self._second: _Second | None = None

    def head(self, credentials: Any, target: str, body: bytes, now: float) -> bytes:
        """All that goes before `body`. now: in seconds since 1970; target: the X-Amz-Target."""
        second = self._second
        if (
            second is None
            or second.number != int(now)
            or second.credentials.secret_key != credentials.secret_key
            or second.credentials.token != credentials.token
            or second.credentials.access_key != credentials.access_key
        ):
            # Replaced as a whole: another thread may be at the same.
            second = self._second = self._begin(credentials, int(now))
        before, after = second.canonical
        canonical = f"{before}{target}{after}{sha256(body).hexdigest()}"
        to_sign = second.to_sign + sha256(canonical.encode()).hexdigest()
        signature = hmac.digest(second.key, to_sign.encode(), "sha256").hex()
        before, after = second.head
        return (
            f"{before}{target}{after}{signature}\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()

    def _begin(self, credentials: Any, number: int) -> _Second:
        plain = Credentials(credentials.access_key, credentials.secret_key, credentials.token)
        stamp = strftime("%Y%m%dT%H%M%SZ", gmtime(number))
        scope = f"{stamp[:8]}/{self._scope}"
        headers = {"content-type": CONTENT_TYPE, "host": self._host, "x-amz-date": stamp}
        if plain.token:
            headers["x-amz-security-token"] = plain.token
        signed = ";".join((*headers, "x-amz-target"))
        lines = "\n".join(f"{name}:{value}" for name, value in headers.items())
        # Names have no case, but some emulators and proxies know them only as botocore writes them.
        head = "\r\n".join(f"{name.title()}: {value}" for name, value in headers.items())
        return _Second(
            number,
            plain,
            self._key(plain.secret_key, stamp[:8]),
            (f"POST\n/\n\n{lines}\nx-amz-target:", f"\n\n{signed}\n"),
            f"{ALGORITHM}\n{stamp}\n{scope}\n",
            (
                f"POST / HTTP/1.1\r\n{head}\r\nUser-Agent: {self._user_agent}\r\nX-Amz-Target: ",
                f"\r\nAuthorization: {ALGORITHM} Credential={plain.access_key}/{scope}, "
                f"SignedHeaders={signed}, Signature=",
            ),
        )


def _once_a_day(region: str, service: str) -> Callable[[str, str], bytes]:
    """The key of a day, remembered until another is wanted."""
    last: tuple[tuple[str, str], bytes] | None = None

    def key(secret: str, day: str) -> bytes:
        nonlocal last
        if last is None or last[0] != (secret, day):
            derived = f"AWS4{secret}".encode()
            for part in (day, region, service, "aws4_request"):
                derived = hmac.digest(derived, part.encode(), "sha256")
            last = (secret, day), derived
            return derived
        return last[1]

    return key
