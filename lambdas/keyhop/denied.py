"""Explanations of refused requests: missing permissions, and a clock that is wrong. Pure.

The texts are those of IAM ("Troubleshoot access denied error messages" in its documentation). They
name the caller, the action, the resource, and the kind of policy that does not allow the action, or
denies it. Not all services name all of these. If several kinds of policies deny a request, the text
names one of them.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Self

IDENTITY = "identity-based policy"
_KINDS = (
    *(IDENTITY, "resource-based policy", "service control policy", "resource control policy"),
    *("permissions boundary", "session policy", "VPC endpoint policy"),
)
_KIND = "|".join(_KINDS)
_WHO = re.compile(r"User: (?P<who>\S+) is not authorized")
_WHAT = re.compile(r"perform: (?P<action>\S+) on resource: \"?(?P<resource>[^\s\"]+)\"?")
_WHY = re.compile(
    rf"because no (?P<implicit>{_KIND}) allows|with an explicit deny in an? (?P<explicit>{_KIND})"
)
_ASSUMED = re.compile(r"arn:[\w-]+:sts::(?P<account>\d+):assumed-role/(?P<role>[^/]+)/.*")
_WHOSE = {
    "service control policy": "An administrator of the organization has to allow it in",
    "resource control policy": "An administrator of the organization has to allow it in",
    "session policy": "The caller that begins the session passes that policy: add to",
}

_SKEWED = re.compile(
    r"Signature (?:expired|not yet current): (?P<here>\d{8}T\d{6}Z) is .*"
    r"\((?P<there>\d{8}T\d{6}Z) [-+] \d+ min"
)
_TIMES = ("%Y%m%dT%H%M%SZ", "%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class Denied:
    """A denied request.

    Attributes:
        who: The ARN of the caller; empty if it is unknown.
        kind: The kind of policy that is the cause; empty if it is unknown.
        explicit: Whether a statement of that policy denies the action.
    """

    who: str
    action: str
    resource: str
    kind: str = ""
    explicit: bool = False

    @classmethod
    def read(cls, message: str) -> Self | None:
        """Read a message; return None if it does not name an action and a resource."""
        what, who, why = (pattern.search(message) for pattern in (_WHAT, _WHO, _WHY))
        if what is None:
            return None
        kinds = (why["implicit"], why["explicit"]) if why else ("", "")
        kind = next(filter(None, kinds), "")
        whom = who["who"] if who else ""
        return cls(whom, what["action"], what["resource"], kind, bool(kinds[1]))

    @property
    def whom(self) -> str:
        """Return the caller for a message: the role of an assumed-role session."""
        assumed = _ASSUMED.fullmatch(self.who)
        if assumed:
            return f"role {assumed['role']} of account {assumed['account']}"
        return self.who or "the caller"

    @property
    def statement(self) -> str:
        """Return the statement of a policy that allows the action."""
        allowed: dict[str, Any] = {
            "Effect": "Allow",
            "Action": self.action,
            "Resource": self.resource,
        }
        if self.kind == "resource-based policy" and self.who:
            assumed = _ASSUMED.fullmatch(self.who)
            partition = self.who.split(":")[1]
            role = assumed and f"arn:{partition}:iam::{assumed['account']}:role/{assumed['role']}"
            allowed["Principal"] = {"AWS": role or self.who}
        return json.dumps(allowed)

    def __str__(self) -> str:
        """Explain the denial, with the statement that allows the action, if there is one."""
        if self.explicit:
            return (
                f"{self.action} on {self.resource} is denied to "
                f"{self.whom} by a {self.kind}, which outweighs whatever allows it: have that "
                f"Deny taken away, or {self.whom} excepted from it."
            )
        says = f"allow {self.action} on {self.resource}."
        if self.kind:
            says += f" It is denied to {self.whom}, as no {self.kind} allows it."
        elif self.who:
            says += f" It is denied to {self.whom}."
        if self.kind in ("", IDENTITY):
            return f"{says} Add to a policy of {self.whom}: {self.statement}"
        if self.kind in _WHOSE:
            return f"{says} {_WHOSE[self.kind]} the {self.kind}: {self.statement}"
        return f"{says} Add to the {self.kind}: {self.statement}"


def clock_text(response: Mapping[str, Any]) -> str | None:
    """Return how to correct this machine's clock, if it is the reason for a refusal.

    Args:
        response: The response of a ClientError. The time of the service is in its message, or in
            its Date header.
    """
    error = response.get("Error", {})
    match = _SKEWED.search(error.get("Message", ""))
    if match is None and error.get("Code") != "RequestTimeTooSkewed":
        return None
    headers = response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    local_time = _time(match["here"] if match else error.get("RequestTime"))
    aws_time = _time(match["there"] if match else error.get("ServerTime")) or _date(headers)
    by = "is wrong"
    if local_time is not None and aws_time is not None:
        minutes = (aws_time - local_time).total_seconds() / 60
        unit = "minute" if round(abs(minutes)) == 1 else "minutes"
        by = f"is {abs(minutes):,.0f} {unit} {'behind' if minutes > 0 else 'ahead'}"
    at = "" if aws_time is None else f" AWS has {aws_time:%Y-%m-%d %H:%M:%S} UTC."
    return (
        f"The clock of this machine {by}, so AWS does not take its signatures.{at} Set the clock "
        f"(by NTP, or restart the virtual machine that slept), then start again."
    )


def _time(text: str | None) -> datetime | None:
    for format_ in _TIMES:
        try:
            return datetime.strptime(text or "", format_).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def _date(headers: Mapping[str, str]) -> datetime | None:
    try:
        return parsedate_to_datetime(headers.get("date", "")).astimezone(UTC)
    except (TypeError, ValueError):
        return None
