"""A counter that accepts more adds than one partition.

    views = ShardedCounter(ShardedTable("Views", metadata="Views-shards"))
    views.add("/f.txt")
    views.add("/f.txt", 3, token="order-4711")  # counts once, however often it is repeated
    views.value("/f.txt", consistent=True)

docs/how-to/sharding-patterns.md describes the costs and the guarantees.
"""

from decimal import Decimal
from typing import Any

from keyhop.checks import number, shown
from keyhop.errors import CannotStart
from keyhop.sharding.io.adder import Added, Adder
from keyhop.sharding.io.items import find_copies, typed
from keyhop.sharding.io.reader import too_slow
from keyhop.sharding.key.counting import COUNT, counter_key, is_folded, reads_of
from keyhop.sharding.store.requests import Overtaken
from keyhop.sharding.table import ShardedTable

TOKEN_SECONDS = 24 * 3600.0
LEAST_TOKEN_SECONDS = 3600.0
"""The clocks of two processes may differ by minutes."""
MOST_DIGITS = 37
"""The maximum number of digits of an amount; a DynamoDB number has 38."""


class ShardedCounter:
    """The counters of a sharded table, one for each logical key; for any number of threads.

        with keyhop.ShardedTable("Views", metadata="Views-shards") as table:
            views = keyhop.ShardedCounter(table)
            views.add("/f.txt")
            print(views.value("/f.txt", consistent=True))

    Args:
        table: The sharded table. Closing it also ends the use of the counter. A counter's key must
            have no other items.
        token_seconds: For how many seconds tokens are remembered, at least 3,600. DynamoDB deletes
            expired ones if the table's time to live is enabled for `keyhop_expires`.

    Raises:
        CannotStart: token_seconds is too small, or no finite number.
    """

    def __init__(self, table: ShardedTable, *, token_seconds: float = TOKEN_SECONDS) -> None:
        if not number(LEAST_TOKEN_SECONDS)(token_seconds):
            raise CannotStart(
                f"token_seconds is {shown(token_seconds)}; it must be a number of at least "
                f"{LEAST_TOKEN_SECONDS:g}, as clocks differ."
            )
        self.table = table
        self._token_seconds = token_seconds

    def add(self, key: Any, n: int = 1, token: str | None = None) -> Added:
        """Add n to the counter of a logical key.

        Without a token this is one write, which is repeated if its answer was lost: the add is
        counted at least once, and `at_most` times at most. With a token this is a transaction of
        two writes, and the add is counted once, even if another call repeats it.

        Args:
            key: The logical key, a str or bytes.
            n: A whole number, which may be negative.
            token: A text that identifies this add, such as the number of an order.

        Raises:
            ClientError: DynamoDB refused it, as boto3's client raises it. If the error has a note
                about it, the add may still have been counted.
        """
        if not isinstance(n, int) or isinstance(n, bool) or abs(n) >= 10**MOST_DIGITS:
            raise CannotStart(f"n must be a whole number of up to {MOST_DIGITS} digits.")
        if token is not None and (not isinstance(token, str) or not token):
            raise CannotStart("A token must be a text that is not empty.")
        writer = self.table.writer
        adder = Adder(writer.metadata, writer.throttle_tracker)
        return adder.add(typed(key), n, token, self._token_seconds)

    def value(self, key: Any, *, consistent: bool = False) -> int:
        """Return the count, the sum of all parts, with one BatchGetItem; 0 if the key has none.

        If it is consistent, each add that was finished before is counted exactly once, and adds in
        flight may be counted. Otherwise the latest adds may be missing, and during a drain the
        parts that it moves may be counted twice or not at all.

        Args:
            key: The logical key, a str or bytes.
            consistent: Read strongly consistently, at twice the price.
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
            copies = find_copies(requests, schema, place, shards, consistent, **only)
            return {shard: int(Decimal(item[COUNT]["N"])) for shard, item in copies.items()}

        def attempt() -> int:
            record = reader.metadata.of(logical)
            readable, folding = reads_of(record.shards)
            if not consistent:
                return sum(read(readable).values())
            above = read(folding) if folding else {}
            below = read(readable[: len(readable) - len(folding)])
            reread = read(folding) if above else {}
            if is_folded(above, reread) or requests.clock.monotonic() >= record.expires:
                raise Overtaken
            return sum(above.values()) + sum(below.values())

        try:
            return requests.patiently(attempt)
        except Overtaken:
            raise too_slow("a counter") from None
