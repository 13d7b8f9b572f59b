"""A re-key from its creation to a cutover and back, by the functions of the suite's own stack."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import boto3
from keyhop import Rekey
from keyhop.public.rekey import RekeyResult

from tests.live.fixtures import ORDERS, OfOwnStack, order
from tests.live.report import Report, expect, expect_equal
from tests.live.runs import Runs
from tests.live.stack import NAME

TEMPLATE = {
    "items": [
        {
            "name": "order",
            "match": {"pk": "USER#{user}", "sk": "ORDER#{order}"},
            "set": {"pk": "TENANT#{tenant}", "sk": "ORDER#{order}"},
            "keep": {"pk": "oldPk"},
        }
    ]
}
FOLLOW_SECONDS = 300.0
"""For the function that follows the streams: a new mapping takes up to a minute or two to begin."""

GATE_SECONDS = 600.0
"""For the gates of a cutover, some of which wait for metrics that come minutes late."""


class OwnRekey:
    """The re-key of one start of the suite, from `orders` to `by_tenant`."""

    def __init__(self, client: Any, tables: OfOwnStack, runs: Runs) -> None:
        self._client = client
        self._tables = tables
        self._runs = runs
        self._rekey = Rekey(tables.orders.name, to=tables.by_tenant, stack=NAME)
        self._is_there = False

    def there(self) -> str:
        """Create, copy, follow, verify and cut over: the new table serves."""
        with TemporaryDirectory(prefix="keyhop-live-") as folder:
            template = Path(folder) / "template.json"
            template.write_text(json.dumps(TEMPLATE))
            self._rekey.create(template)
        self._done(self._rekey.start(remote=True))
        self._write(self._tables.orders.name, order(ORDERS))
        self._wait_for(self._tables.by_tenant, ORDERS + 1)
        verified = self._done(self._rekey.verify())["compared"]
        expect_equal(verified["left"], 0, "differences after the verification")
        pause = self._change(lambda: self._rekey.cutover(expect=0))
        self._is_there = True
        return f"{ORDERS + 1} items, writes waited {pause:.1f} s"

    def back(self) -> str:
        """A write to the new table reaches the old one, and a rollback lets that one serve."""
        expect(self._is_there, "the new table does not serve")
        moved = {**order(ORDERS + 1), "pk": {"S": "TENANT#x"}, "tenant": {"S": "x"}}
        self._write(self._tables.by_tenant, {**moved, "oldPk": {"S": "USER#9"}})
        self._wait_for(self._tables.orders.name, ORDERS + 2)
        pause = self._change(lambda: self._rekey.rollback())
        self._rekey.cancel()
        left = [one for one in self._tables.made_by_rekey if self._count(one) is not None]
        expect_equal(left, [], "tables of the re-key after cancel")
        return f"writes waited {pause:.1f} s"

    def _done(self, result: RekeyResult) -> dict[str, Any]:
        """The output of the execution that a call has started."""
        assert result.run is not None
        return self._runs.output(self._runs.note(result.run.execution))

    def _change(self, change: Callable[[], RekeyResult]) -> float:
        """Change which table serves, as soon as all gates are open; returns the pause of writes."""
        deadline = time.monotonic() + GATE_SECONDS
        while True:
            result = change()
            if result.run is not None:
                outcome = self._runs.outcome(self._runs.note(result.run.execution))
                if outcome["status"] == "SUCCEEDED":
                    return float(json.loads(outcome["output"])["pause"])
                told = f"{outcome.get('error')}: {outcome.get('cause')}"
            else:
                told = f"shut gates: {', '.join(result.obstacles)}"
            expect(time.monotonic() < deadline, told)
            time.sleep(self._runs.ways.poll_seconds)

    def _write(self, table: str, item: dict[str, Any]) -> None:
        self._client.put_item(TableName=table, Item=item)

    def _wait_for(self, table: str, count: int) -> None:
        deadline = time.monotonic() + FOLLOW_SECONDS
        while (found := self._count(table)) != count:
            expect(time.monotonic() < deadline, f"{table} has {found} items, and not {count}")
            time.sleep(self._runs.ways.poll_seconds)

    def _count(self, table: str) -> int | None:
        """Of items; None if there is no such table. The tables fit into a page."""
        try:
            page = self._client.scan(TableName=table, Select="COUNT", ConsistentRead=True)
        except self._client.exceptions.ResourceNotFoundException:
            return None
        return int(page["Count"])


def check_rekey(rekey: OwnRekey, report: Report) -> None:
    """There, and back."""
    report.check("rekey-there", rekey.there)
    report.check("rekey-back", rekey.back)


def stop_following(function: str) -> None:
    """Delete what calls the function Replicate: a stack's deletion leaves it."""
    functions = boto3.client("lambda")
    pages = functions.get_paginator("list_event_source_mappings")
    for page in pages.paginate(FunctionName=function):
        for one in page["EventSourceMappings"]:
            functions.delete_event_source_mapping(UUID=one["UUID"])
