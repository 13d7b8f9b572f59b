"""What somebody writes who has read the reference only; mypy checks it as a user's project."""

import sys
from decimal import Decimal

import keyhop


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


def spread(shards: keyhop.Shards, key: str) -> float:
    plan = shards.drain(key, shards.show(key).would_do or 1, dry_run=True)
    return plan.dollars


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
