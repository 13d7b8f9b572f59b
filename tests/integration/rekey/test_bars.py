"""What both jobs cost, by DynamoDB Local's own units, beside what they cannot do without.

A backfill cannot do without a scan, a put of each item, and a second look at the items that it has
put: a strongly consistent scan.
"""

import math

import pytest
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.units import BLOCK_BYTES, US_EAST_1
from keyhop.dynamodb.values import size_of

from testing.databases import Database
from testing.rekey_pairs import create, order
from tests.integration.rekey.conftest import Begin

ITEMS = 3_000
TEXT = 915
"""So that an item has a little under 1 KB, on either side."""


@pytest.mark.prove
def test_a_backfill_costs_a_scan_and_the_puts_and_their_looks_and_a_verify_a_tenth_of_that(
    dynamodb: Database,
    connection: Connection,
    table_name: str,
    backfill: Begin,
    verify: Begin,
) -> None:
    rekey = create(dynamodb, connection, table_name)
    items = [order(number, size=TEXT) for number in range(ITEMS)]
    sizes = [*map(size_of, items)]
    assert 950 < min(sizes) < max(sizes) < 1_024
    rekey.put(items)
    scan = 0.5 * math.ceil(sum(sizes) / BLOCK_BYTES)
    least = US_EAST_1.dollars(3 * scan, ITEMS)
    job = backfill(rekey)
    assert job.work()
    _, copied = job.finish()
    assert copied["write_units"] < 1.001 * ITEMS
    dollars = US_EAST_1.dollars(copied["read_units"], copied["write_units"])
    print(f"backfill {dollars / least:.4f} x ({copied['read_units']} RRU, {least=})")
    assert dollars <= 1.01 * least
    job = verify(rekey)
    assert job.work()
    _, compared = job.finish()
    assert compared["verify"]["is_clean"]
    assert (compared["read_units"], compared.get("write_units", 0)) == (0, 0), (
        "nothing can be confirmed"
    )
    read = compared["digests"]["read_units"]
    whole = dollars + US_EAST_1.dollars(read, 0)
    print(f"with verify {whole / least:.4f} x ({read} RRU)")
    assert whole <= 1.12 * least
