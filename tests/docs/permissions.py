"""permissions.md: policies made of recorded calls, and the functions' rights of the template.

policies.json has the same policies for `keyhop permissions`. In the page,
`<!-- policy: NAME -->` stands before the block that is made, `<!-- functions -->` before the table.
Calls of commands and of the library are recorded while the documents' sessions are played
(calls.json, `make sessions`); those of functions, end to end (tests/infra/calls.json).
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
from tests.infra.unrecorded import ALL_FUNCTIONS, MACHINES, elsewhere

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
"""Names of the recorded calls, and those of the documents."""


@dataclass(frozen=True)
class Way:
    """Who does what. sessions: patterns of those whose calls were recorded.

    functions: whose recorded calls it makes too, as it is the same code; only of these services.
    unrecorded: its calls that no session of the documents makes, with their resources.
    """

    sessions: str = ""
    functions: tuple[str, ...] = ()
    services: tuple[str, ...] = ("dynamodb",)
    unrecorded: tuple[tuple[str, str], ...] = ()


SEEING_KEEPERS = ("lambda", "cloudwatch", "sqs")

WAYS: Mapping[str, Way] = {
    "keys": Way("keyhop keys( --index)?"),
    "keys by a kept index": Way("", ("FinishRun",), SEEING_KEEPERS),
    "logical keys": Way("keyhop keys --logical --metadata"),
    "each": Way("keyhop each"),
    "report": Way("keyhop report", ("ExamineTable",), ("dynamodb", "cloudwatch")),
    "index": Way("keyhop index .*", ("WalkSegments",)),
    "index that scales": Way("", ("ManageIndex",), ("application-autoscaling", "cloudwatch")),
    "rekey": Way("keyhop rekey .*"),
    "writer": Way("writer", ("WriteSharded",)),
    "reader": Way("reader", ("QuerySharded",)),
    "shards": Way("keyhop shards .*", ("MoveShards",)),
    "deployment": Way(
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
"""The ways whose policies `keyhop permissions` prints, by its argument."""

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
"""Names of the documents, and the parameters of `keyhop.permissions` in their places."""


def calls_of(way: Way) -> Iterator[tuple[str, str]]:
    """Action and resource."""
    yield from way.unrecorded
    for name in CALLS:
        for caller, calls in json.loads(Path(__file__).with_name(name).read_text()).items():
            if re.fullmatch(way.sessions, caller):
                yield from ((action, resource) for action, resource in calls)
    for call in [*recorded.read(), *(call for call, _ in elsewhere())]:
        if call.caller in way.functions and call.action.partition(":")[0] in way.services:
            yield call.action, call.resource


def policy(calls: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """A statement for each set of actions, with the resources on which they are asked."""
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
    for name, shown in NAMES:
        resource = resource.replace(name, shown)
    resource = re.sub(r"(?<=BUCKET/runs/).*", "*", resource)
    resource = re.sub(r"(?<=/stream/).*|(?<=ContributorInsights).*", "*", resource)
    return re.sub(r"(?<=/index/)[\w-]+$", "*", resource)


def page(text: str) -> str:
    """The page, with what is made of it made anew."""
    text = POLICY.sub(lambda at: f"{at['name']}{at['head']}{_shown(WAYS[at['name']])}", text)
    return TABLE.sub(lambda _: "\n".join(_table()), text)


def _shown(way: Way) -> str:
    return json.dumps(policy(calls_of(way)), indent=2) + "\n"


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
"""How a resource is told of."""


def _table() -> Iterator[str]:
    """Which function may do what, on what, and why: the name of its statement."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    template = deployed(stack_of(CONTEXT))
    for owner in (*ALL_FUNCTIONS, *MACHINES):
        for statement in template.statements(owner):
            if why := _words(statement.get("Sid", "")):
                told = _where(statement["Resource"])
                key = (_actions(statement["Action"]), told, why)
                rows.setdefault(key, []).append(owner)
    yield "| may | on | in order to | who |"
    yield "|---|---|---|---|"
    for (actions, where, why), owners in rows.items():
        yield f"| {actions} | {where} | {why} | {', '.join(owners)} |"


def _actions(actions: Iterable[str]) -> str:
    services = {action.partition(":")[0] for action in actions}
    (service,) = services
    return f"`{service}:{' '.join(action.partition(':')[2] for action in actions)}`"


def _words(sid: str) -> str:
    """PutAndDeleteSentinels1 as words; nothing for logs, of which the page tells in a sentence."""
    sid = re.sub(r"\d*(And\d+)?$", "", sid)
    if sid == "WriteItsOwnLog":
        return ""
    words = " ".join(re.findall(f"{'|'.join(MACHINES)}|[A-Z][a-z]*", sid))
    return re.sub(r"\b[A-Z][a-z]*\b", lambda word: word[0].lower(), words)


def _where(resources: Iterable[str]) -> str:
    told: list[str] = []
    for resource in resources:
        shown = resource
        for pattern, text in TABLES_OF:
            if pattern.match(resource):
                shown = pattern.sub(text, resource)
                break
        if shown not in told:
            told.append(shown)
    if "all tables" in told:
        told = ["all tables"]
    return ", ".join("`*`" if one == "*" else one for one in told)


def policies() -> str:
    """Return the content of policies.json: statements by command, with parameters."""
    lines = []
    for command, name in COMMANDS.items():
        text = json.dumps(policy(calls_of(WAYS[name]))["Statement"])
        for shown, parameter in PARAMETERS:
            text = text.replace(shown, parameter)
        lines.append(f"{json.dumps(command)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write() -> None:
    """Renew the page and the policies of `keyhop permissions`."""
    PAGE.write_text(page(PAGE.read_text()))
    POLICIES.write_text(policies())


def to_json(calls: Iterable[Call]) -> str:
    """Recorded calls by caller, one line each."""
    told: dict[str, list[list[str]]] = {}
    for call in sorted(calls):
        one = [call.action, call.resource]
        if one not in told.setdefault(call.caller, []):
            told[call.caller].append(one)
    text = ",\n".join(
        f"{json.dumps(who)}: [\n" + ",\n".join(f"  {json.dumps(one)}" for one in ones) + "\n]"
        for who, ones in told.items()
    )
    return f"{{\n{text}\n}}\n"


def beyond(calls: Iterable[Call], name: str) -> list[Call]:
    """The calls that are not in a record."""
    told = json.loads(Path(__file__).with_name(name).read_text())
    return [call for call in sorted(calls) if [call.action, call.resource] not in told[call.caller]]


def write_calls(name: str, calls: Iterable[Call]) -> None:
    path = Path(__file__).with_name(name)
    path.write_text(to_json(with_others(calls, json.loads(path.read_text()))))


def with_others(calls: Iterable[Call], recorded: Mapping[str, Any]) -> set[Call]:
    """The calls, and those of the record about state machines that they do not name: of a stack
    with other capabilities. Callers and state machines that are gone are left out.
    """
    new = {*calls}
    callers, machines = {call.caller for call in new}, {*map(_machine, new)}
    old = (Call(who, *one) for who, ones in recorded.items() if who in callers for one in ones)
    return new | {call for call in old if _machine(call) in {*STACK_MACHINES} - machines}


def _machine(call: Call) -> str:
    """The state machine of a call, or nothing."""
    found = re.search(r"(?:stateMachine|execution):Keyhop-(\w+)", call.resource)
    return found[1] if found else ""


if __name__ == "__main__":
    write()
