"""The leftovers of a start that was killed, or lost its permissions before its clean-up.

All stacks, tables, buckets, log groups and keys with the tag of the start belong to it.
"""

from collections.abc import Callable, Iterable, Iterator

import boto3

from tests.live.features import stop_following
from tests.live.key_index import forget_scaling
from tests.live.report import Refused
from tests.live.stack import BUCKET, LOGS, NAME, STACKS, OwnStack
from tests.live.ways import Ways
from tests.live.workshop import Workshop, remove_all, remove_key, tagged


class Leftovers:
    """The resources with the tag of a start. The constructor raises Refused if there are none."""

    def __init__(self, suite: str, ways: Ways) -> None:
        self._suite = suite
        self._ways = ways
        arns = tagged(suite)
        self._tables = list(_named(arns, "dynamodb", "table/"))
        self._buckets = list(_named(arns, "s3"))
        self._logs = list(_named(arns, "logs", "log-group:"))
        self._keys = [arn for arn in arns if ":kms:" in arn]
        stacks = [OwnStack(suite, ways, {}, name=name) for name in STACKS]
        self._stacks = [stack for stack in stacks if stack.adopt()]
        if not (self._stacks or self._tables or self._buckets or self._logs or self._keys):
            raise Refused(f"Nothing in this account and region has the tag of start {suite}.")

    def announcement(self) -> str:
        """Return what will be removed. Some may be gone: tags remain visible for a while."""
        lines = [
            *(f"stack {stack.name}" for stack in self._stacks),
            *(f"table {name}" for name in self._tables),
            *(f"bucket {name}, with all that is in it" for name in self._buckets),
            *(f"log group {name}" for name in self._logs),
            *(f"key {arn}" for arn in self._keys),
        ]
        return f"Start {self._suite} has left:" + "".join(f"\n  {line}" for line in lines)

    def remove(self) -> list[str]:
        """Remove all, in the order of Work.clean_up; return what could not be removed, and why."""
        workshop = Workshop(boto3.client("dynamodb"), self._suite, self._ways)
        workshop.expect(self._tables)
        rest = OwnStack(self._suite, self._ways, {})
        rest.adopt_resources((BUCKET, name) for name in self._buckets)
        rest.adopt_resources((LOGS, name) for name in self._logs)
        steps: list[Callable[[], list[str]]] = [
            lambda: stop_following(f"{NAME}-Replicate"),
            workshop.remove,
            lambda: forget_scaling(self._tables),
            *(stack.remove for stack in self._stacks),
            rest.remove_left_over,
            lambda: [failure for arn in self._keys for failure in remove_key(arn)],
        ]
        return remove_all(steps)


def _named(arns: Iterable[str], service: str, prefix: str = "") -> Iterator[str]:
    """Yield the names in the ARNs of a service without a prefix, and without a log group's `:*`."""
    for arn in arns:
        _, _, owner, _, _, name = arn.split(":", 5)
        if owner == service and name.startswith(prefix):
            yield name.removeprefix(prefix).removesuffix(":*")
