"""The address of the service, and whose credentials are used for it."""

import re
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

OF_AWS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
TABLE_ARN = re.compile(
    r"arn:aws[a-z-]*:dynamodb:(?P<region>[a-z0-9-]+):[0-9]{12}:table/(?P<name>[a-zA-Z0-9_.-]{3,255})"
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of the service and the credentials for it. None means: as the AWS configuration
    of this machine says.

    Attributes:
        role: The ARN of a role to assume with these credentials, and again whenever its session
            ends.
        session: The session of botocore that has the credentials, if the caller has passed one.
    """

    region: str | None = None
    profile: str | None = None
    url: str | None = None
    role: str | None = None
    session: Any = field(default=None, compare=False, repr=False)

    @property
    def shown(self) -> str:
        """Return the URL for messages, without a password that it may hold."""
        url = urlsplit(self.url or "")
        return url._replace(netloc=url.netloc.rpartition("@")[2]).geturl()

    @property
    def is_loopback(self) -> bool:
        """Return whether the endpoint is on this machine, where credentials mean nothing."""
        host = urlsplit(self.url or "").hostname or ""
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    @property
    def is_of_aws(self) -> bool:
        """Return whether the endpoint belongs to AWS, such as an endpoint of a VPC."""
        return (urlsplit(self.url or "").hostname or "").endswith(OF_AWS)


def table_region(table: str) -> str | None:
    """Return the region of a table that is given by its ARN; None for a name."""
    arn = TABLE_ARN.fullmatch(table)
    return arn["region"] if arn else None
