"""ReportKeys: the report, its sample by SampleKeys, and its page in the bucket."""

import json
from typing import Any

from tests.live.fixtures import Fixture
from tests.live.report import Report, expect, expect_equal
from tests.live.runs import Runs

PLANTED = ("A3", "")
"""A rule that the table breaks: its partition keys are dates. The target is the table."""

MAX_READ_UNITS = 1_000


def check_key_report(table: Fixture, runs: Runs, outputs: dict[str, str], report: Report) -> None:
    """outputs: of the stack."""
    report.check("report-run", lambda: reported(table, runs, outputs))


def reported(table: Fixture, runs: Runs, outputs: dict[str, str]) -> str:
    """A report of all sources but Contributor Insights, which the table does not have."""
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
