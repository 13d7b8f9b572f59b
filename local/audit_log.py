"""`make audit-log`: a log of the readers of files. One file has many readers, and gets shards.

It runs on this machine alone: DynamoDB Local, behind a model of DynamoDB's partitions that allows
each partition key so few writes per second that it is soon throttled. The three functions are the
example; the traffic and its checks are in audit_traffic.py.
"""

from datetime import UTC, datetime
from functools import partial

from keyhop.sharding.key.policy import Policy
from keyhop.sharding.table import ShardedTable

from local.audit_traffic import run
from local.cloud import exit_with


def audit_log(url: str | None = None) -> ShardedTable:
    """Return the log, for any number of threads. Other processes make their own object."""
    return ShardedTable(
        "Audit",  # partition key: path, sort key: accessed
        metadata="Audit-shards",  # partition key: path
        placement="random",
        append_only=True,  # each access is written once, and never changed
        settle_seconds=2,  # quick to watch; without it: 5
        policy=Policy(cooldown=2),
        endpoint_url=url,
    )


def record_access(log: ShardedTable, path: str, who: str) -> str:
    """Record an access, and return its sort key, which begins with the time."""
    accessed = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}Z {who}"
    log.put_item(Item={"path": path, "accessed": accessed, "who": who})
    return accessed


def accesses(log: ShardedTable, path: str) -> list[str]:
    """Return all accesses to a file so far, the first one first."""
    return [item["accessed"] for item in log.query(key=path, consistent=True)]


if __name__ == "__main__":
    exit_with(partial(run, audit_log, record_access, accesses))
