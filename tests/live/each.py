"""ForEachKey: an item for each key of a table, and the way back."""

from typing import Any

from tests.live.fixtures import FEATURE, Fixture
from tests.live.report import Report, expect_equal
from tests.live.runs import Runs


def check_each(
    client: Any, table: Fixture, runs: Runs, outputs: dict[str, str], report: Report
) -> None:
    """Leave the table as it was. outputs: of the stack."""
    report.check("each-put-undo", lambda: put_and_undo(client, table, runs, outputs))


def put_and_undo(client: Any, table: Fixture, runs: Runs, outputs: dict[str, str]) -> str:
    """Put the item, put it again, and undo the first run."""
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
