"""The address of the service, and whose credentials are used for it."""

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

OF_AWS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the client talks to. None means: as the AWS configuration of the machine says.

    role: the ARN of one to assume, by the credentials that there are, and again whenever it ends.
    """

    region: str | None = None
    profile: str | None = None
    url: str | None = None
    role: str | None = None

    @property
    def shown(self) -> str:
        """The URL for messages, without a password that it may hold."""
        url = urlsplit(self.url or "")
        return url._replace(netloc=url.netloc.rpartition("@")[2]).geturl()

    @property
    def is_loopback(self) -> bool:
        """Whether the endpoint is on this machine, where credentials mean nothing."""
        host = urlsplit(self.url or "").hostname or ""
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    @property
    def is_of_aws(self) -> bool:
        """Tell whether the endpoint is one of AWS, such as an endpoint of a VPC."""
        return (urlsplit(self.url or "").hostname or "").endswith(OF_AWS)
