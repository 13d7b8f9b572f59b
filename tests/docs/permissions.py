"""Generate permissions.md: policies from recorded calls, and the functions' permissions.

policies.json has the same policies for `keyhop permissions`. In the page, `<!-- policy: NAME -->`
precedes each generated policy, and `<!-- functions -->` the generated table. `make sessions`
records the calls of commands and of the library (calls.json) while it plays the documents'
sessions. The end-to-end tests record those of functions (tests/infra/calls.json).
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keyhop.public.deployment import MACHINES as STACK_MACHINES
from keyhop.public.deployment import NOT_STOPPED

from testing.iam.simulator import Call
from testing.servers import ROOT
from tests.infra import recorded
from tests.infra.conftest import deployed, stack_of
from tests.infra.template import ACCOUNT, REGION, states_arn
from tests.infra.unrecorded import ALL_FUNCTIONS, MACHINES, unrecorded_calls

PAGE = ROOT / "docs" / "reference" / "permissions.md"
POLICIES = ROOT / "lambdas" / "keyhop" / "public" / "policies.json"
CALLS = ("calls.json", "calls_of_stacks.json")
POLICY = re.compile(
    r"(?s)(?<=<!-- policy: )(?P<name>[\w ]+)(?P<head> -->\n\n```json\n).*?(?=```\n)"
)
TABLE = re.compile(r"(?s)(?<=<!-- functions -->\n\n).*?(?=\n\n)")

NAMES = (
    (f"dynamodb:{REGION}:{ACCOUNT}:table/Kept", f"dynamodb:{REGION}:{ACCOUNT}:table/Orders"),
    (f"table/{recorded.METADATA}", "table/Audit-shards"),
    ("table/Sharded", "table/Audit"),
    ("table/Reported", "table/Orders"),
    ("the-results", "BUCKET"),
    ("TargetTracking-table/Kept/index/k-0ec5", "TargetTracking-table/Orders*"),
    ("scalable-target/0ec5", "scalable-target/*"),
    ("the-failures", "QUEUE"),
    (":e1", ":*"),
    ("stack/Keyhop/1", "stack/Keyhop/*"),
    (REGION, "REGION"),
    (ACCOUNT, "ACCOUNT"),
)
"""The names in recorded calls, and their replacements in the documents."""


@dataclass(frozen=True)
class PolicySource:
    """The sources of the calls that a policy must allow.

    Attributes:
        sessions: A pattern of the callers in the documents' sessions.
        functions: Functions with the same code, whose calls to `services` count too.
        services: The services that count for `functions`.
        unrecorded: Actions and resources of calls that no session makes.
    """

    sessions: str = ""
    functions: tuple[str, ...] = ()
    services: tuple[str, ...] = ("dynamodb",)
    unrecorded: tuple[tuple[str, str], ...] = ()


KEEPER_SERVICES = ("lambda", "cloudwatch", "sqs")
SCALING_SERVICES = ("application-autoscaling", "cloudwatch")
SOURCES: Mapping[str, PolicySource] = {
    "keys": PolicySource("keyhop keys( --index)?"),
    "keys by a kept index": PolicySource("", ("FinishRun",), KEEPER_SERVICES),
    "logical keys": PolicySource("keyhop keys --logical --metadata"),
    "each": PolicySource("keyhop each"),
    "report": PolicySource("keyhop report", ("ExamineTable",), ("dynamodb", "cloudwatch")),
    "index": PolicySource("keyhop index .*", ("WalkSegments",)),
    "index that scales": PolicySource("", ("ManageIndex",), SCALING_SERVICES),
    "rekey": PolicySource("keyhop rekey .*"),
    "writer": PolicySource("writer", ("WriteSharded",)),
    "reader": PolicySource("reader", ("QuerySharded",)),
    "shards": PolicySource("keyhop shards .*", ("MoveShards",)),
    "deployment": PolicySource(
        "keyhop (keys --remote|runs .*)",
        unrecorded=tuple(
            ("states:StopExecution", states_arn(f"execution:Keyhop-{machine}:e1"))
            for machine in STACK_MACHINES
            if machine not in NOT_STOPPED
        ),
    ),
}

COMMANDS: Mapping[str, str] = {
    **{name: name for name in ("keys", "each", "report", "index", "shards", "rekey")},
    "runs": "deployment",
    "writer": "writer",
    "reader": "reader",
}
"""The names in SOURCES of the policies that `keyhop permissions` prints, by its argument."""

PARAMETERS = (
    ("table/OrdersByDay", "table/{to}"),
    ("table/Audit-shards", "table/{metadata}"),
    ("table/Orders", "table/{table}"),
    ("table/Audit", "table/{table}"),
    ("Keyhop", "{stack}"),
    ("BUCKET", "{bucket}"),
    ("REGION", "{region}"),
    ("ACCOUNT", "{account}"),
)
"""The names in the documents, and the parameters of `keyhop.permissions` that replace them."""


def calls_of(source: PolicySource) -> Iterator[tuple[str, str]]:
    """Yield the action and the resource of each call that a policy must allow."""
    yield from source.unrecorded
    for name in CALLS:
        for caller, calls in json.loads(Path(__file__).with_name(name).read_text()).items():
            if re.fullmatch(source.sessions, caller):
                yield from ((action, resource) for action, resource in calls)
    for call in [*recorded.read(), *(call for call, _ in unrecorded_calls())]:
        if call.caller in source.functions and call.action.partition(":")[0] in source.services:
            yield call.action, call.resource


def policy(calls: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return a policy with one statement per set of actions, for the resources of the calls."""
    by_resource: dict[str, set[str]] = {}
    for action, resource in calls:
        by_resource.setdefault(_named(resource), set()).add(action)
    by_actions: dict[tuple[str, ...], list[str]] = {}
    for resource, actions in sorted(by_resource.items()):
        by_actions.setdefault(tuple(sorted(actions)), []).append(resource)
    statements = [
        {"Effect": "Allow", "Action": [*actions], "Resource": resources}
        for actions, resources in by_actions.items()
    ]
    return {"Version": "2012-10-17", "Statement": statements}


def _named(resource: str) -> str:
    for name, documented in NAMES:
        resource = resource.replace(name, documented)
    resource = re.sub(r"(?<=BUCKET/runs/).*", "*", resource)
    resource = re.sub(r"(?<=/stream/).*|(?<=ContributorInsights).*", "*", resource)
    return re.sub(r"(?<=/index/)[\w-]+$", "*", resource)


def page(text: str) -> str:
    """Return the page with its generated parts renewed."""
    return TABLE.sub(lambda _: "\n".join(_table_rows()), POLICY.sub(_renewed_policy, text))


def _renewed_policy(match: re.Match[str]) -> str:
    renewed = policy(calls_of(SOURCES[match["name"]]))
    return f"{match['name']}{match['head']}{json.dumps(renewed, indent=2)}\n"


# --- the functions of the stack

CONTEXT = {
    "tables": [
        "Orders",
        {"table": "Kept", "keyIndex": True},
        {"table": "Sharded", "sharding": {"partitionKey": "path"}},
        recorded.EACH,
        recorded.REPORTED,
    ],
    "rekey": recorded.REKEY,
    "startDrains": True,
}
TABLES_OF = (
    (re.compile(r"^arn:aws:dynamodb:[^:]+:[^:]+:table/Keyhop-shards-Sharded$"), "metadata"),
    (re.compile(r"^arn:aws:dynamodb:[^:]+:[^:]+:table/Sharded(/index/.*)?$"), "sharded tables"),
    (re.compile(r"^arn:aws:dynamodb:[^:]+:[^:]+:table/Orders(/index/.*)?$"), "all tables"),
    (re.compile(r"^arn:aws:dynamodb:[^:]+:[^:]+:table/Each(/index/.*)?$"), "tables with `each`"),
    (re.compile(r"^arn:aws:dynamodb:[^:]+:[^:]+:table/Reported/stream/.*$"), "their streams"),
    (
        re.compile(r"^arn:aws:dynamodb:[^:]+:[^:]+:table/Reported(/index/.*)?$"),
        "tables with `report`",
    ),
    (re.compile(r"^arn:aws:dynamodb:[^:]+:[^:]+:table/Rekeyed\w*/stream/.*$"), "their streams"),
    (re.compile(r"^arn:aws:dynamodb:[^:]+:[^:]+:table/Rekeyed\w*\.rekey$"), "side tables"),
    (re.compile(r"^arn:aws:dynamodb:[^:]+:[^:]+:table/RekeyedByTenant$"), "destinations of pairs"),
    (re.compile(r"^arn:aws:dynamodb:[^:]+:[^:]+:table/Rekeyed$"), "sources of pairs"),
    (re.compile(r"^arn:aws:lambda:us-east-1:.*:function:on-keys$"), "the functions named there"),
    (re.compile(r"^arn:aws:sqs:us-east-1:.*:keys$"), "the queues named there"),
    (
        re.compile(r"^arn:aws:states:us-east-1:.*:stateMachine:PerBatch$"),
        "the machines named there",
    ),
    (re.compile(r"^arn:aws:dynamodb:[^:]+:[^:]+:table/Kept/stream/.*$"), "their streams"),
    (
        re.compile(r"^arn:aws:dynamodb:[^:]+:[^:]+:table/Kept(/index/.*)?$"),
        "tables with `keyIndex`",
    ),
    (re.compile(r"^arn:aws:s3:::the-results$"), "the bucket"),
    (re.compile(r"^arn:aws:s3:::the-results/(.*)$"), r"`\1`"),
    (re.compile(r"^arn:aws:\w[\w-]*:[^:]*:[^:]*:(.*)$"), r"`\1`"),
)
"""Patterns of resources, and their descriptions in the page."""


def _table_rows() -> Iterator[str]:
    """Yield the rows of the table of actions, resources, purposes and functions."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    template = deployed(stack_of(CONTEXT))
    for owner in (*ALL_FUNCTIONS, *MACHINES):
        for statement in template.statements(owner):
            if why := _words(statement.get("Sid", "")):
                resources = _where(statement["Resource"])
                key = (_actions(statement["Action"]), resources, why)
                rows.setdefault(key, []).append(owner)
    yield "| may | on | in order to | who |"
    yield "|---|---|---|---|"
    for (actions, resource_text, why), owners in rows.items():
        yield f"| {actions} | {resource_text} | {why} | {', '.join(owners)} |"


def _actions(actions: Iterable[str]) -> str:
    services = {action.partition(":")[0] for action in actions}
    (service,) = services
    return f"`{service}:{' '.join(action.partition(':')[2] for action in actions)}`"


def _words(sid: str) -> str:
    """Return a statement's name as words, or nothing for logs, which the page mentions apart."""
    sid = re.sub(r"\d*(And\d+)?$", "", sid)
    if sid == "WriteItsOwnLog":
        return ""
    words = " ".join(re.findall(f"{'|'.join(MACHINES)}|[A-Z][a-z]*", sid))
    return re.sub(r"\b[A-Z][a-z]*\b", lambda match: match[0].lower(), words)


def _where(resources: Iterable[str]) -> str:
    descriptions: list[str] = []
    for resource in resources:
        description = resource
        for pattern, text in TABLES_OF:
            if pattern.match(resource):
                description = pattern.sub(text, resource)
                break
        if description not in descriptions:
            descriptions.append(description)
    if "all tables" in descriptions:
        descriptions = ["all tables"]
    return ", ".join("`*`" if text == "*" else text for text in descriptions)


def policies() -> str:
    """Return the content of policies.json: statements by command, with parameters."""
    lines = []
    for command, name in COMMANDS.items():
        text = json.dumps(policy(calls_of(SOURCES[name]))["Statement"])
        for documented, parameter in PARAMETERS:
            text = text.replace(documented, parameter)
        lines.append(f"{json.dumps(command)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write() -> None:
    """Write the page and the policies of `keyhop permissions`."""
    PAGE.write_text(page(PAGE.read_text()))
    POLICIES.write_text(policies())


def beyond(calls: Iterable[Call], name: str) -> list[Call]:
    """Return the calls that are not in a record."""
    record = json.loads(Path(__file__).with_name(name).read_text())
    return [
        call for call in sorted(calls) if [call.action, call.resource] not in record[call.caller]
    ]


def write_calls(name: str, calls: Iterable[Call]) -> None:
    path = Path(__file__).with_name(name)
    complete = with_others(calls, json.loads(path.read_text()))
    path.write_text(recorded.to_json(complete, ("action", "resource")))


def with_others(calls: Iterable[Call], recorded: Mapping[str, Any]) -> set[Call]:
    """Return the calls, and the recorded calls to state machines that these calls do not name.

    The record may be of a stack with other capabilities. Callers and state machines that no longer
    exist are left out.
    """
    new = {*calls}
    callers, machines = {call.caller for call in new}, {*map(_machine, new)}
    old = (
        Call(caller, *row) for caller, rows in recorded.items() if caller in callers for row in rows
    )
    return new | {call for call in old if _machine(call) in {*STACK_MACHINES} - machines}


def _machine(call: Call) -> str:
    """Return the state machine of a call, or an empty text."""
    match = re.search(r"(?:stateMachine|execution):Keyhop-(\w+)", call.resource)
    return match[1] if match else ""


if __name__ == "__main__":
    write()
