"""Checks of actions, reports and re-keys by the functions of the suite's own stack."""

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
"""The rule and the target of a finding: the table's partition keys are dates."""

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
"""The limit for the function that follows the streams: a new mapping starts in a minute or two."""

GATE_SECONDS = 600.0
"""The limit for the gates of a cutover, some of which wait for the next batch of a stream."""

DETACH_SECONDS = 300.0
"""The limit for the deletion of event source mappings; a new one cannot be deleted at once."""


def check_features(
    client: Any, tables: OfOwnStack, runs: Runs, outputs: dict[str, str], report: Report
) -> None:
    """Make the checks, and leave the tables as they were. `outputs` are those of the stack."""
    report.check("each-put-undo", lambda: put_and_undo(client, tables.each, runs, outputs))
    report.check("report-run", lambda: run_report(tables.days, runs, outputs))
    rekey = OwnRekey(client, tables, runs)
    report.check("rekey-there", rekey.cut_over)
    report.check("rekey-back", rekey.roll_back)


def put_and_undo(client: Any, table: Fixture, runs: Runs, outputs: dict[str, str]) -> str:
    """Let ForEachKey put an item for each key, put it again, and undo the first run."""
    before, keys = _items(client, table), len(table.keys)

    def run_action(name: str, **action: Any) -> dict[str, Any]:
        values = {"table": table.name, **action}
        return runs.output(runs.start(f"each-{name}", values, outputs["ForEachKeyArn"]))

    first = run_action("put", put=FEATURE)
    expect_equal(first["outcomes"], {"put": keys}, "the outcomes of the put")
    added = [item for item in _items(client, table) if "#feature" in item]
    expect_equal(len(added), keys, "items that were put")
    second = run_action("again", put=FEATURE)
    expect_equal(second["outcomes"], {"there": keys}, "the outcomes of the same put again")
    undo = run_action("undo", undo=first["run"])
    expect_equal(undo["outcomes"], {"deleted": keys}, "the outcomes of the undo")
    expect_equal(_items(client, table), before, "the items after the undo")
    return f"{keys} keys"


def _items(client: Any, table: Fixture) -> list[str]:
    """Return all items of a table that fits into a page."""
    page = client.scan(TableName=table.name, ConsistentRead=True)
    return sorted(map(repr, page["Items"]))


def run_report(table: Fixture, runs: Runs, outputs: dict[str, str]) -> str:
    """Run ReportKeys with all sources but Contributor Insights, which the table does not have."""
    values = {"table": table.name, "maxReadUnits": MAX_READ_UNITS}
    output = runs.output(runs.start("report", values, outputs["ReportKeysArn"]))
    findings = {(finding["rule"], finding["target"]) for finding in output["found"]}
    expect(PLANTED in findings, f"A3 was not found, but {sorted(findings)}")
    units = output["read_units"]
    expect(0 < units <= MAX_READ_UNITS, f"the sample cost {units} read units")
    run = output["run"]
    document: dict[str, Any] = json.loads(runs.read(f"runs/{run}/report.json"))
    rules = {row["id"] for row in document["findings"] if row["status"] == "found"}
    expect_equal(rules, {rule for rule, _ in findings}, "the findings of report.json")
    page = runs.read(f"runs/{run}/report.html")
    expect_equal(runs.read(f"reports/{table.name}/report.html"), page, "the latest page")
    sources = ", ".join(f"{name} {state}" for name, state in sorted(document["sources"].items()))
    return f"{len(findings)} findings, {units:g} read units; {sources}"


class OwnRekey:
    """The re-key of one start of the suite, from `orders` to `by_tenant`."""

    def __init__(self, client: Any, tables: OfOwnStack, runs: Runs) -> None:
        self._client = client
        self._tables = tables
        self._runs = runs
        self._is_cut_over = False

    @cached_property
    def _rekey(self) -> Rekey:
        return Rekey(self._tables.orders.name, to=self._tables.by_tenant, stack=NAME)

    def cut_over(self) -> str:
        """Create, copy, follow, verify and cut over, so that the new table serves."""
        with TemporaryDirectory(prefix="keyhop-live-") as folder:
            template = Path(folder) / "template.json"
            template.write_text(json.dumps(TEMPLATE))
            self._rekey.create(template)
        self._output(self._rekey.start(remote=True))
        self._write(self._tables.orders.name, order(ORDERS))
        self._wait_for(self._tables.by_tenant, ORDERS + 1)
        comparison = self._output(self._rekey.verify())["compared"]
        expect_equal(comparison["left"], 0, "differences after the verification")
        copied = _exactly(self._items(self._tables.by_tenant))
        expected = _exactly(map(mapped, map(order, range(ORDERS + 1))))
        expect_equal(copied, expected, "the items of the new table")
        pause = self._change(lambda: self._rekey.cutover(expect=0))
        self._is_cut_over = True
        return f"{ORDERS + 1} items, writes waited {pause:.1f} s"

    def roll_back(self) -> str:
        """Check that a write to the new table reaches the old one, and roll back."""
        expect(self._is_cut_over, "the new table does not serve")
        last = {**order(ORDERS + 1), "tenant": {"S": "x"}}
        self._write(self._tables.by_tenant, mapped(last))
        self._wait_for(self._tables.orders.name, ORDERS + 2)
        pause = self._change(lambda: self._rekey.rollback())
        self._rekey.cancel()
        remaining = [name for name in self._tables.made_by_rekey if self._count(name) is not None]
        expect_equal(remaining, [], "tables of the re-key after cancel")
        expected = _exactly([*map(order, range(ORDERS + 1)), last])
        items = _exactly(self._items(self._tables.orders.name))
        expect_equal(items, expected, "the items of the old table at the end")
        return f"writes waited {pause:.1f} s"

    def _output(self, result: RekeyResult) -> dict[str, Any]:
        """Return the output of the execution that a call has started."""
        assert result.run is not None
        return self._runs.output(self._runs.note(result.run.execution))

    def _change(self, change: Callable[[], RekeyResult]) -> float:
        """Call `change` until all gates are open and it succeeds; return the pause of writes."""
        deadline = time.monotonic() + GATE_SECONDS
        while True:
            result = change()
            if result.run is not None:
                outcome = self._runs.outcome(self._runs.note(result.run.execution))
                if outcome["status"] == "SUCCEEDED":
                    return float(json.loads(outcome["output"])["pause"])
                message = f"{outcome.get('error')}: {outcome.get('cause')}"
            else:
                message = f"shut gates: {', '.join(result.obstacles)}"
            expect(time.monotonic() < deadline, message)
            time.sleep(self._runs.ways.poll_seconds)

    def _write(self, table: str, item: dict[str, Any]) -> None:
        self._client.put_item(TableName=table, Item=item)

    def _wait_for(self, table: str, count: int) -> None:
        deadline = time.monotonic() + FOLLOW_SECONDS
        while (current := self._count(table)) != count:
            expect(time.monotonic() < deadline, f"{table} has {current} items, and not {count}")
            time.sleep(self._runs.ways.poll_seconds)

    def _items(self, table: str) -> list[dict[str, Any]]:
        """Return all items of a table that fits into a page."""
        page = self._client.scan(TableName=table, ConsistentRead=True)
        return list(page["Items"])

    def _count(self, table: str) -> int | None:
        """Count the items of a table that fits into a page; return None if it does not exist."""
        try:
            page = self._client.scan(TableName=table, Select="COUNT", ConsistentRead=True)
        except self._client.exceptions.ResourceNotFoundException:
            return None
        return int(page["Count"])


def mapped(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item of `orders` as TEMPLATE maps it."""
    return {**item, "pk": {"S": f"TENANT#{item['tenant']['S']}"}, "oldPk": item["pk"]}


def _exactly(items: Iterable[dict[str, Any]]) -> list[str]:
    """Return items, whose values are strings, in a form in which two lists can be compared."""
    return sorted(json.dumps(item, sort_keys=True) for item in items)


def stop_following(function: str, pause: float = 2.0) -> list[str]:
    """Delete the event source mappings of the function Replicate; return what could not be deleted.

    A stack does not delete them, and refuses its deletion while they exist.
    """
    functions = boto3.client("lambda")
    deadline = time.monotonic() + DETACH_SECONDS
    while mappings := _mappings(functions, function):
        for mapping in mappings:
            if mapping["State"] != "Deleting":
                with suppress(
                    functions.exceptions.ResourceInUseException,
                    functions.exceptions.ResourceNotFoundException,
                ):
                    functions.delete_event_source_mapping(UUID=mapping["UUID"])
        if time.monotonic() > deadline:
            return [f"what calls {function}: it is still there"]
        time.sleep(pause)
    return []


def _mappings(functions: Any, function: str) -> list[dict[str, Any]]:
    pages = functions.get_paginator("list_event_source_mappings")
    try:
        return list(pages.paginate(FunctionName=function).search("EventSourceMappings[]"))
    except functions.exceptions.ResourceNotFoundException:
        return []  # the function does not exist
