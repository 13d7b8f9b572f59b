"""A script by a user who has read only the reference. mypy checks it like a user's project."""

import sys
from decimal import Decimal
from typing import TYPE_CHECKING

import keyhop

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table


def report(progress: keyhop.Progress) -> None:
    print(f"{progress.share:.0%}", file=sys.stderr)


def main(table: str, endpoint_url: str | None = None) -> int:
    try:
        plan = keyhop.estimate_keys(table, endpoint_url=endpoint_url)
        cost = plan.dollars(plan.method)
        print(f"{plan.method}: ${cost.mean:.6f}, at most ${cost.high:.6f}")
        with keyhop.list_keys(
            table, endpoint_url=endpoint_url, max_cost=0.05, progress=report
        ) as keys:
            texts = [key for key in keys if isinstance(key, str | Decimal)]
        summary = keys.summary
        print(f"{len(texts)} of {summary.keys} keys, {summary.read_units:g} RRU: {summary.reason}")
    except keyhop.errors.TableNotFound as error:
        print(error)
        return 2
    except keyhop.errors.BudgetSpent:
        return 4
    except keyhop.KeyhopError as error:
        print(type(error).__name__, error)
        return 1
    return 0


def reads(sharded: keyhop.ShardedTable) -> int:
    return keyhop.ShardedCounter(sharded).value("/f.txt")


def close(table: keyhop.ItemTable, path: str) -> object:
    """Close a path in boto3's Table or in a sharded table."""
    table.update_item(
        Key={"path": path, "at": "1"},
        UpdateExpression="SET #closed = :true",
        ConditionExpression="attribute_exists(#path)",
        ExpressionAttributeNames={"#closed": "closed", "#path": "path"},
        ExpressionAttributeValues={":true": True},
        ReturnValuesOnConditionCheckFailure="ALL_OLD",
    )
    with table.batch_writer() as batch:
        batch.put_item(Item={"path": path, "at": "2"})
        batch.delete_item(Key={"path": path, "at": "3"})
    count = table.query(
        KeyConditionExpression="#path = :path",
        ExpressionAttributeNames={"#path": "path"},
        ExpressionAttributeValues={":path": path},
        Select="COUNT",
    )["Count"]
    failed = table.meta.client.exceptions.ConditionalCheckFailedException
    assert (count, bool(table.name), issubclass(failed, Exception)) == (2, True, True)
    return table.get_item(Key={"path": path, "at": "1"}, ConsistentRead=True)["Item"]["closed"]


def closes(plain: "Table", sharded: keyhop.ShardedTable) -> list[object]:
    return [close(plain, "a"), close(sharded, "b")]


def spread(shards: keyhop.Shards, key: str) -> float:
    plan = shards.drain(key, shards.show(key).would_do or 1, dry_run=True)
    return plan.dollars


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
