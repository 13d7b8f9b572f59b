"""What IAM would decide, by npm's iam-simulate: a process of node that answers line by line.

iam-simulate is AGPL-3.0. It is a tool of the tests, set up apart from everything else (`make test`,
into .cache/iam), and no part of what is shipped or deployed. Some 3 ms a question.
"""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any

from testing.servers import ROOT

SCRIPT = ROOT / "testing" / "iam" / "simulate.cjs"
SET_UP = ROOT / ".cache" / "iam"
PRINCIPAL_ACCOUNT = "111122223333"

KEY_POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{PRINCIPAL_ACCOUNT}:root"},
            "Action": "kms:*",
            "Resource": "*",
        }
    ],
}
"""As KMS itself makes it: the account's policies decide. Without any, they do not count."""

LIKE = "states:DescribeStateMachine"
JUDGED_LIKE = {"states:SendTaskSuccess": LIKE, "states:SendTaskFailure": LIKE}
"""Of these the reference that iam-simulate goes by says that they know no resources. The service
checks the ARN of the task's state machine (aws-cdk, pull request 8486; its grantTaskResponse names
that). So they are judged as one that does, which nobody here has."""

Statement = Mapping[str, Any]


@dataclass(frozen=True, order=True)
class Call:
    """A request of a role. context: values by condition key, as JSON: so calls can be in a set."""

    caller: str
    action: str
    resource: str
    context: str = "{}"

    @classmethod
    def of(cls, caller: str, action: str, resource: str, **context: Any) -> "Call":
        """context: with `__` for the colon of a key; None for one that the request has not."""
        given = {key.replace("__", ":"): v for key, v in context.items() if v is not None}
        return cls(caller, action, resource, json.dumps(given, sort_keys=True))


@dataclass(frozen=True)
class Decision:
    """by: the Sids of the statements that allow it. ignored: condition keys that it has not."""

    allowed: bool
    by: tuple[str, ...]
    ignored: tuple[str, ...]


class NotAsked(AssertionError):
    """Nobody can ask this: there is no such action, or it knows no such resource."""


class Simulator:
    """One process for all questions; it ends with this one, whose end closes its input."""

    def __init__(self) -> None:
        if not (SET_UP / ".ready").exists():
            raise SystemExit("iam-simulate is not set up: run make .cache/iam/.ready.")
        self._lock = Lock()
        self._node = subprocess.Popen(
            ["node", str(SCRIPT), str(SET_UP)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def decide(self, statements: Sequence[Statement], call: Call) -> Decision:
        """Whether the statements of the caller's role allow it; raises NotAsked.

        Of a resource of another account it says what the role's own side says: the other one's
        policy is not known here.

        A call of the resource `*` names no resource, so only statements on `*` allow it. Without
        this rule iam-simulate allows it if any resource of the action's kind is allowed.
        """
        if call.resource == "*":
            statements = [one for one in statements if "*" in one["Resource"]]
        action = JUDGED_LIKE.get(call.action, call.action)
        about = [  # the others neither allow nor deny it, and take long to judge
            one
            for one in map(_read, statements)
            if any(each == action or "*" in each for each in one["Action"])
        ]
        simulation: dict[str, Any] = {
            "request": {
                "principal": f"arn:aws:iam::{PRINCIPAL_ACCOUNT}:role/{call.caller}",
                "action": action,
                "resource": {"resource": call.resource, "accountId": PRINCIPAL_ACCOUNT},
                "contextVariables": json.loads(call.context),
            },
            "identityPolicies": [
                {
                    "name": "role",
                    "policy": {"Version": "2012-10-17", "Statement": about},
                }
            ],
            "serviceControlPolicies": [],
            "resourceControlPolicies": [],
        }
        if call.action.startswith("kms:"):
            simulation["resourcePolicy"] = KEY_POLICY
        answer = self._ask(simulation)
        if answer["error"]:
            raise NotAsked(f"{call}: {answer['error']}")
        return Decision(answer["allowed"], tuple(answer["by"]), tuple(answer["ignored"]))

    def _ask(self, simulation: Mapping[str, Any]) -> dict[str, Any]:
        assert self._node.stdin is not None
        assert self._node.stdout is not None
        with self._lock:
            self._node.stdin.write(json.dumps(simulation) + "\n")
            self._node.stdin.flush()
            return dict(json.loads(self._node.stdout.readline()))


def _read(statement: Statement) -> dict[str, Any]:
    """A statement as it is judged."""
    actions = [JUDGED_LIKE.get(action, action) for action in statement["Action"]]
    return {**statement, "Action": actions}


@cache
def simulator() -> Simulator:
    """The one of this process."""
    return Simulator()
