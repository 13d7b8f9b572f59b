"""Page views and orders, counted: python page_views.py TABLE (page S, part S, and TABLE-shards)."""

import sys

from keyhop.sharding.counter import ShardedCounter
from keyhop.sharding.table import ShardedTable


def count(table: ShardedTable) -> str:
    """Count views, which may count twice if a response is lost, and orders, which must not."""
    counters = ShardedCounter(table)
    for _ in range(5):
        counters.add("/pricing#views")
    for order in ("4711", "4712", "4711"):  # the last message is a duplicate
        added = counters.add("/pricing#euros", 50, token=f"order-{order}")
        if not added.counted:
            print(f"order {order} was counted before")
    views = counters.value("/pricing#views")
    euros = counters.value("/pricing#euros", consistent=True)
    return f"{views} views, {euros} euros"


if __name__ == "__main__":
    name = sys.argv[1]
    print(count(ShardedTable(name, metadata=f"{name}-shards")))
