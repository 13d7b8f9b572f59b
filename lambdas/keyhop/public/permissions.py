"""The permissions that a command needs: `permissions`."""

import json
import re
from pathlib import Path
from typing import Any

from keyhop.errors import CannotStart
from keyhop.jobs.request import DEFAULT_STACK

_POLICIES = Path(__file__).with_name("policies.json")
"""Statements by command, made of the calls that tests have recorded."""

_NAME = re.compile(r"[A-Za-z0-9_.*-]+")


def permissions(
    command: str,
    table: str = "",
    *,
    to: str = "",
    metadata: str = "",
    stack: str = DEFAULT_STACK,
    bucket: str = "",
    region: str = "*",
    account: str = "*",
) -> dict[str, Any]:
    """Return the IAM policy that a command needs, made of the calls that tests have recorded.

    Args:
        command: The first word of a command, such as `keys`; or `writer` or `reader`, for a program
            that uses ShardedTable.
        table: The name of the table. The command `runs` needs no table.
        to: The name of the other table of a re-key.
        metadata: The shard-metadata table (default: the name of the table and `-shards`).
        stack: The deployment, for the command `runs`.
        bucket: The results bucket of the deployment (default: the name of the stack and `-*`, which
            is the name that CloudFormation gives it).
        region: The region of the table or deployment; `*` is any.
        account: The number of the account; `*` is any.

    Returns:
        The policy, as JSON has it: `Version` and `Statement`.

    Raises:
        CannotStart: The command is unknown, or a name is missing or is not a name.
    """
    if command not in (known := _statements()):
        raise CannotStart(
            f"The permissions of {command!r} are not known. Give one of {', '.join(known)}."
        )
    names = {
        "table": table,
        "to": to,
        "metadata": metadata or f"{table}-shards",
        "stack": stack,
        "bucket": bucket or f"{stack.lower()}-*",
        "region": region,
        "account": account,
    }
    text = json.dumps(known[command])
    for name, value in names.items():
        if f"{{{name}}}" not in text:
            continue
        if not _NAME.fullmatch(value) or (name == "metadata" and not table):
            missing = "table" if name == "metadata" and not table else name
            raise CannotStart(f"The permissions of {command} need a name as `{missing}`.")
        text = text.replace(f"{{{name}}}", value)
    text = text.replace('"arn:aws:', f'"arn:{_partition(region)}:')
    return {"Version": "2012-10-17", "Statement": json.loads(text)}


def _statements() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = json.loads(_POLICIES.read_text(encoding="utf-8"))
    return found


def _partition(region: str) -> str:
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"
