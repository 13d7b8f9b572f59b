"""Actions, reports and re-keys, by the functions of the suite's own stack."""

import json
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import boto3
from keyhop import Rekey
from keyhop.public.rekey import RekeyResult

from tests.live.fixtures import FEATURE, ORDERS, Fixture, OfOwnStack, order
from tests.live.report import Report, expect, expect_equal
from tests.live.runs import Runs
from tests.live.stack import NAME

PLANTED = ("A3", "")
"""A rule that the table breaks: its partition keys are dates. The target is the table."""

MAX_READ_UNITS = 1_000


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
"""For the gates of a cutover, some of which wait for the next batch of a stream."""

DETACH_SECONDS = 300.0
"""For Lambda to delete what calls a function; one that is only just made is busy at first."""


def check_features(
    client: Any, tables: OfOwnStack, runs: Runs, outputs: dict[str, str], report: Report
) -> None:
    """Leave the tables as they were. outputs: of the stack."""
    report.check("each-put-undo", lambda: put_and_undo(client, tables.each, runs, outputs))
    report.check("report-run", lambda: reported(tables.days, runs, outputs))
    rekey = OwnRekey(client, tables, runs)
    report.check("rekey-there", rekey.there)
    report.check("rekey-back", rekey.back)


def put_and_undo(client: Any, table: Fixture, runs: Runs, outputs: dict[str, str]) -> str:
    """ForEachKey: put an item for each key, put it again, and undo the first run."""
    before, keys = _items(client, table), len(table.keys)

    def done(what: str, **given: Any) -> dict[str, Any]:
        values = {"table": table.name, **given}
        return runs.output(runs.start(f"each-{what}", values, outputs["ForEachKeyArn"]))

    put = done("put", put=FEATURE)
    expect_equal(put["outcomes"], {"put": keys}, "the outcomes of the put")
    there = [item for item in _items(client, table) if "#feature" in item]
    expect_equal(len(there), keys, "items that were put")
    again = done("again", put=FEATURE)
    expect_equal(again["outcomes"], {"there": keys}, "the outcomes of the same put again")
    undone = done("undo", undo=put["run"])
    expect_equal(undone["outcomes"], {"deleted": keys}, "the outcomes of the undo")
    expect_equal(_items(client, table), before, "the items after the undo")
    return f"{keys} keys"


def _items(client: Any, table: Fixture) -> list[str]:
    """All of them; the table fits into a page."""
    page = client.scan(TableName=table.name, ConsistentRead=True)
    return sorted(map(repr, page["Items"]))


def reported(table: Fixture, runs: Runs, outputs: dict[str, str]) -> str:
    """ReportKeys: all sources but Contributor Insights, which the table does not have."""
    given = {"table": table.name, "maxReadUnits": MAX_READ_UNITS}
    output = runs.output(runs.start("report", given, outputs["ReportKeysArn"]))
    found = {(one["rule"], one["target"]) for one in output["found"]}
    expect(PLANTED in found, f"A3 was not found, but {sorted(found)}")
    units = output["read_units"]
    expect(0 < units <= MAX_READ_UNITS, f"the sample cost {units} read units")
    run = output["run"]
    document: dict[str, Any] = json.loads(runs.read(f"runs/{run}/report.json"))
    shown = {one["id"] for one in document["findings"] if one["status"] == "found"}
    expect_equal(shown, {rule for rule, _ in found}, "the findings of report.json")
    page = runs.read(f"runs/{run}/report.html")
    expect_equal(runs.read(f"reports/{table.name}/report.html"), page, "the latest page")
    sources = ", ".join(f"{name} {state}" for name, state in sorted(document["sources"].items()))
    return f"{len(found)} findings, {units:g} read units; {sources}"


class OwnRekey:
    """The re-key of one start of the suite, from `orders` to `by_tenant`."""

    def __init__(self, client: Any, tables: OfOwnStack, runs: Runs) -> None:
        self._client = client
        self._tables = tables
        self._runs = runs
        self._is_there = False

    @cached_property
    def _rekey(self) -> Rekey:
        return Rekey(self._tables.orders.name, to=self._tables.by_tenant, stack=NAME)

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
        copied = _exactly(self._items(self._tables.by_tenant))
        wanted = _exactly(map(moved, map(order, range(ORDERS + 1))))
        expect_equal(copied, wanted, "the items of the new table")
        pause = self._change(lambda: self._rekey.cutover(expect=0))
        self._is_there = True
        return f"{ORDERS + 1} items, writes waited {pause:.1f} s"

    def back(self) -> str:
        """A write to the new table reaches the old one, and a rollback lets that one serve."""
        expect(self._is_there, "the new table does not serve")
        last = {**order(ORDERS + 1), "tenant": {"S": "x"}}
        self._write(self._tables.by_tenant, moved(last))
        self._wait_for(self._tables.orders.name, ORDERS + 2)
        pause = self._change(lambda: self._rekey.rollback())
        self._rekey.cancel()
        left = [one for one in self._tables.made_by_rekey if self._count(one) is not None]
        expect_equal(left, [], "tables of the re-key after cancel")
        wanted = _exactly([*map(order, range(ORDERS + 1)), last])
        kept = _exactly(self._items(self._tables.orders.name))
        expect_equal(kept, wanted, "the items of the old table at the end")
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

    def _items(self, table: str) -> list[dict[str, Any]]:
        """All of them; the tables fit into a page."""
        page = self._client.scan(TableName=table, ConsistentRead=True)
        return list(page["Items"])

    def _count(self, table: str) -> int | None:
        """Of items; None if there is no such table. The tables fit into a page."""
        try:
            page = self._client.scan(TableName=table, Select="COUNT", ConsistentRead=True)
        except self._client.exceptions.ResourceNotFoundException:
            return None
        return int(page["Count"])


def moved(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item of `orders` as TEMPLATE maps it."""
    return {**item, "pk": {"S": f"TENANT#{item['tenant']['S']}"}, "oldPk": item["pk"]}


def _exactly(items: Iterable[dict[str, Any]]) -> list[str]:
    """Return items, which have texts only, so that two lists of them can be compared."""
    return sorted(json.dumps(item, sort_keys=True) for item in items)


def stop_following(function: str, pause: float = 2.0) -> list[str]:
    """Delete what calls the function Replicate, and return what could not be, and why.

    A stack's deletion leaves it, and the stack refuses to be deleted while it is there.
    """
    functions = boto3.client("lambda")
    deadline = time.monotonic() + DETACH_SECONDS
    while mappings := _mappings(functions, function):
        for one in mappings:
            if one["State"] != "Deleting":
                with suppress(
                    functions.exceptions.ResourceInUseException,
                    functions.exceptions.ResourceNotFoundException,
                ):
                    functions.delete_event_source_mapping(UUID=one["UUID"])
        if time.monotonic() > deadline:
            return [f"what calls {function}: it is still there"]
        time.sleep(pause)
    return []


def _mappings(functions: Any, function: str) -> list[dict[str, Any]]:
    pages = functions.get_paginator("list_event_source_mappings")
    try:
        return list(pages.paginate(FunctionName=function).search("EventSourceMappings[]"))
    except functions.exceptions.ResourceNotFoundException:
        return []  # there is no such function
