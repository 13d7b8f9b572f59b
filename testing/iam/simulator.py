"""The decisions of IAM as npm's iam-simulate makes them, in a node process that answers by line.

The licence of iam-simulate is AGPL-3.0. Only tests use it: `make test` installs it separately, into
.cache/iam, and it is not part of the package or of a deployment. A decision takes about 3 ms.
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
"""The default key policy of KMS, which lets the account's policies decide."""

LIKE = "states:DescribeStateMachine"
JUDGED_LIKE = {"states:SendTaskSuccess": LIKE, "states:SendTaskFailure": LIKE}
"""Actions that are judged like another one, because the reference of iam-simulate is wrong.

It says that they have no resources, but the service checks the ARN of the task's state machine
(aws-cdk, pull request 8486; grantTaskResponse). The substitute has resources, and no role here has
its permission.
"""

Statement = Mapping[str, Any]


@dataclass(frozen=True, order=True)
class Call:
    """A request of a role. The context, values by condition key, is JSON to be hashable."""

    caller: str
    action: str
    resource: str
    context: str = "{}"

    @classmethod
    def of(cls, caller: str, action: str, resource: str, **context: Any) -> "Call":
        """Return a call; a context key has `__` for its colon, and None stands for no value."""
        values = {key.replace("__", ":"): v for key, v in context.items() if v is not None}
        return cls(caller, action, resource, json.dumps(values, sort_keys=True))


@dataclass(frozen=True)
class Decision:
    """A decision about a call.

    Attributes:
        by: The Sids of the statements that allow it.
        ignored: The condition keys that the call does not have.
    """

    allowed: bool
    by: tuple[str, ...]
    ignored: tuple[str, ...]


class NotAsked(AssertionError):
    """The action does not exist, or does not have such a resource."""


class Simulator:
    """A node process for all decisions; it ends with this process, which closes its input."""

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
        """Decide whether the statements of the caller's role allow a call. Raise NotAsked.

        For a resource of another account, the decision is that of the role's account only.

        A call with the resource `*` names no resource, so only statements on `*` allow it. Without
        this rule, iam-simulate allows it if any resource of the action's kind is allowed.
        """
        if call.resource == "*":
            statements = [each for each in statements if "*" in each["Resource"]]
        action = JUDGED_LIKE.get(call.action, call.action)
        relevant = [  # the others neither allow nor deny it, and would cost time
            statement
            for statement in map(_read, statements)
            if any(each == action or "*" in each for each in statement["Action"])
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
                    "policy": {"Version": "2012-10-17", "Statement": relevant},
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
    """Return a statement with the substitutes of JUDGED_LIKE."""
    actions = [JUDGED_LIKE.get(action, action) for action in statement["Action"]]
    return {**statement, "Action": actions}


@cache
def simulator() -> Simulator:
    """Return the simulator of this process."""
    return Simulator()
