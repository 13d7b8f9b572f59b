"""What an action of the life cycle learns: from the files of its walks, and by looks of its own."""

import math
from collections.abc import Mapping
from itertools import chain
from typing import Any

from keyhop.dynamodb.capacity import UNITS_PER_BLOCK
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.prices import US_EAST_1
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.values import canonical, from_json
from keyhop.errors import CannotStart
from keyhop.jobs.estimate import estimate
from keyhop.jobs.journal import Journal
from keyhop.jobs.layout import Wishes
from keyhop.jobs.model import usage_of
from keyhop.jobs.task import Examples, noted_examples
from keyhop.key_index.collections import Collections
from keyhop.key_index.index import entered_by
from keyhop.key_index.provisioned import Scaling, capacity_of, capacity_plan
from keyhop.key_index.reconcile import wrong
from keyhop.key_index.report import action_cost, walk_report
from keyhop.key_index.request import Order
from keyhop.key_index.sentinel import INDEX, Sentinel
from keyhop.key_index.task import MOST_NAMED, Walk
from keyhop.scan.reader import PageReader

ROWS_AT_ONCE = 50
EXAMPLES = 10
"""Keys of each kind that a report names."""


def manifest_of(journal: Journal) -> Mapping[str, Any]:
    """Of a walk's run; raises CannotStart if it is not finished."""
    manifest = journal.manifest()
    if manifest is None:
        raise CannotStart("The run of the walk is not finished: start again.")
    return manifest


def report_of(walk: Walk, journal: Journal) -> dict[str, Any]:
    """The report of a walk, from the manifest of its run."""
    manifest, plan = manifest_of(journal), journal.plan()
    return walk_report(
        walk,
        usage_of(manifest),
        manifest["seconds"],
        manifest["ended"],
        {kind: keys[:EXAMPLES] for kind, keys in noted_examples(journal).items()},
        US_EAST_1 if plan is None else plan.prices,
    )


def action_estimate(
    reader: PageReader, table: Table, order: Order, scaling: Scaling
) -> dict[str, Any]:
    """What an action would cost, by a sample; reader: of the table, as a walk reads it.

    What an audit will put right nobody knows before: its writes are not in it.
    """
    found = estimate(reader, "skip", "it walks by hops", Wishes())
    keys, walk = found.findings.keys, found.costs["skip"].units
    has_index = table.index(INDEX) is not None
    entered = entered_by(table)
    cost = action_cost(order.action, keys, walk, entered, has_index, reader.connection.prices)
    told = {"table": order.table, "keys": found.to_json()["keys"], **cost}
    if order.action == "build":
        seconds = round(cost["write_units"] / (order.max_write_rate or math.inf), 1)
        capacity = capacity_of(table, order.max_write_rate, scaling)
        told |= {"secondsOfWriting": seconds, "capacity": capacity_plan(capacity, seconds)}
    return {**told, "spent": {"read_units": found.spent_units}}


def remaining(
    connection: Connection, table: Table, sentinel: Sentinel, drift: int, named: Examples
) -> int:
    """Of what an audit found wrong, how much still is, by strongly consistent reads; all of it
    if more was wrong than is looked at again, or not all of it is known by name.
    """
    name = sentinel.partition.name
    keys = {}
    for key in map(from_json, chain(*named.values())):
        keys[canonical(key[name])] = key
    if drift > MOST_NAMED or len(keys) < drift:
        return drift
    source = table.source()
    collections = Collections(connection, table.name, sentinel, item_bytes=source.mean_item_bytes)
    return sum(wrong(collections, key) is not None for key in keys.values())


def has_rows(reader: PageReader) -> bool:
    """Whether there is a row that counts in the index; reads it to the end, or to the first."""
    start = None
    while True:
        page = reader.read(0, 1, start, ROWS_AT_ONCE, UNITS_PER_BLOCK)
        if page.keys:
            return True
        start = page.next
        if start is None:
            return False
