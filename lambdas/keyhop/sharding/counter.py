"""A counter that takes more adds than one partition does.

    views = ShardedCounter(ShardedTable("Views", metadata="Views-shards"))
    views.add("/f.txt")
    views.add("/f.txt", 3, token="order-4711")  # counts once, however often it is repeated
    views.value("/f.txt", consistent=True)

docs/sharding-patterns.md says what each costs, and what is promised.
"""

from decimal import Decimal
from typing import Any

from keyhop.errors import CannotStart
from keyhop.sharding.io.adder import Added, Adder
from keyhop.sharding.io.items import find_copies, typed
from keyhop.sharding.io.reader import too_slow
from keyhop.sharding.key.counting import COUNT, counter_key, is_folded, reads_of
from keyhop.sharding.store.requests import Overtaken
from keyhop.sharding.table import ShardedTable

TOKEN_SECONDS = 24 * 3600.0
LEAST_TOKEN_SECONDS = 3600.0
"""Whoever counts by another clock may be off by minutes."""
MOST_DIGITS = 37
"""Of an amount; a number of DynamoDB has 38."""


class ShardedCounter:
    """The counters of a sharded table, one for each logical key; for any number of threads.

    A key of a counter is for that alone. token_seconds: for how long a token is remembered, at
    least; DynamoDB deletes what has expired if the table's time to live is on for
    `keyhop_expires`.
    """

    def __init__(self, table: ShardedTable, *, token_seconds: float = TOKEN_SECONDS) -> None:
        if token_seconds < LEAST_TOKEN_SECONDS:
            raise CannotStart(
                f"token_seconds is {token_seconds:g}; it must be at least {LEAST_TOKEN_SECONDS:g}, "
                "as clocks differ."
            )
        self.table = table
        self._token_seconds = token_seconds

    def add(self, key: Any, n: int = 1, token: str | None = None) -> Added:
        """Add n to the counter of a logical key.

        Without a token it is one write, which is repeated if its answer was lost: it is counted at
        least once, and `at_most` says how often. With a token it is a transaction of two writes,
        and is counted once, also by another call with the same token. Raises what boto3's client
        raises; then it may have been counted all the same, if the error has a note of it.
        """
        if not isinstance(n, int) or isinstance(n, bool) or abs(n) >= 10**MOST_DIGITS:
            raise CannotStart(f"n must be a whole number of up to {MOST_DIGITS} digits.")
        if token is not None and (not isinstance(token, str) or not token):
            raise CannotStart("A token must be a text that is not empty.")
        writer = self.table.writer
        adder = Adder(writer.metadata, writer.throttle_tracker)
        return adder.add(typed(key), n, token, self._token_seconds)

    def value(self, key: Any, *, consistent: bool = False) -> int:
        """The count: the sum of all parts, by one BatchGetItem; 0 of a key that has none.

        consistent: each add that was finished before is counted, exactly once; those under way may
        be. Else the latest adds may be missing; and, while a drain goes on, what it folds may be
        counted twice or not at all.
        """
        reader, logical = self.table.reader, typed(key)
        requests, schema = reader.requests, reader.schema
        place = counter_key(schema, logical)
        names = {"#kh_p": schema.partition.name, "#kh_s": schema.sort.name, "#kh_c": COUNT}
        only = {
            "ProjectionExpression": "#kh_p, #kh_s, #kh_c",
            "ExpressionAttributeNames": names,
        }

        def read(shards: range) -> dict[int, int]:
            found = find_copies(requests, schema, place, shards, consistent, **only)
            return {shard: int(Decimal(item[COUNT]["N"])) for shard, item in found.items()}

        def attempt() -> int:
            known = reader.metadata.of(logical)
            whole, folding = reads_of(known.shards)
            if not consistent:
                return sum(read(whole).values())
            above = read(folding) if folding else {}
            below = read(whole[: len(whole) - len(folding)])
            again = read(folding) if above else {}
            if is_folded(above, again) or requests.clock.monotonic() >= known.expires:
                raise Overtaken
            return sum(above.values()) + sum(below.values())

        try:
            return requests.patiently(attempt)
        except Overtaken:
            raise too_slow("a counter") from None
