"""Tests of figures and tables in the documents that follow from the code."""

import json
import re
from statistics import median_low

import pytest
from keyhop.checks import names_of
from keyhop.cli.progress import progress_text
from keyhop.jobs.layout import CPU_SECONDS, groups_of_layout, layout_for_skip
from keyhop.jobs.price import FunctionSize, run_cost
from keyhop.jobs.request import Request, wishes_of_fleet
from keyhop.jobs.worker import CALM_SLICES
from keyhop.keys.request import KeysInput
from keyhop.scan.statistics import Forecast

from bench import sharding_seconds
from testing.servers import ROOT

COSTS = (ROOT / "docs" / "reference" / "costs.md").read_text()
RUNS = (ROOT / "docs" / "reference" / "run-input.md").read_text()
WORKER = FunctionSize(1769, "arm64")
REQUESTS_OF_A_WORKER = 1 / CPU_SECONDS


def slices(seconds: float) -> int:
    """Return the number of commits of a group that runs for so many seconds."""
    length, longest = CALM_SLICES
    count = 0
    while seconds > 0:
        seconds -= length
        length = min(longest, 2 * length)
        count += 1
    return count


def duration(seconds: float) -> str:
    if seconds < 3600:
        return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.0f} s"
    return f"{seconds / 3600:.1f} h"


def row(keys: float) -> str:
    wishes = wishes_of_fleet(Request("Orders", "keys"), 0, one_worker=False)
    layout = layout_for_skip(keys, Forecast(0.5, 1.0), wishes)
    groups, concurrency = groups_of_layout(layout, one_worker=False)
    units = 0.5 * keys + 0.5 * layout.segments
    seconds = keys / REQUESTS_OF_A_WORKER
    commits = groups * slices(seconds / groups)
    cost = run_cost(WORKER, units, seconds, groups, groups, commits)
    digits = 4 if cost["total"] < 1 else 2
    dollars = [f"${cost[name]:,.{digits}f}" for name in ("dynamodb", "lambda")]
    dollars += [f"${cost[name]:,.{digits}f}" for name in ("step_functions", "s3", "total")]
    cells = [f"{keys:,.0f}", f"{layout.segments:,}", f"{groups:,}", *dollars]
    cells += [duration(seconds / concurrency), duration(seconds / 100)]
    return f"| {' | '.join(cells)} |"


@pytest.mark.parametrize("keys", [2e6, 200e6, 10e9])
def test_the_price_of_a_run_follows_from_the_formulas(keys: float) -> None:
    assert row(keys) in COSTS


def test_the_formulas_on_costs_match_the_code() -> None:
    """Compute the cost of a run of one group by the formulas of docs/reference/costs.md."""
    cost = run_cost(WORKER, 1_000_000, 100.0, 1, 1, 3)
    assert cost["dynamodb"] == pytest.approx(0.125)
    assert cost["lambda"] == pytest.approx(100 * 1769 / 1024 * 0.0000133334 + 0.2e-6)
    assert cost["step_functions"] == pytest.approx(14 * 0.025 / 1000)
    assert cost["s3"] == pytest.approx(2 * 3 * 0.005 / 1000 + (2 * 3 + 2) * 0.0004 / 1000)
    for price in ("$0.125 / 1,000,000", "$0.0000133334", "$0.025 / 1,000", "$0.0004 / 1,000"):
        assert price in COSTS
    assert f"keys / {REQUESTS_OF_A_WORKER:,.0f}" in COSTS


def test_the_page_shows_a_progress_line_of_the_command() -> None:
    line = ", ".join(progress_text(658, 351.0, 69.0, (30, 64), 6.0, 0))
    assert f"\n{line}\n" in (ROOT / "docs" / "reference" / "command.md").read_text()


def test_the_input_table_names_every_field() -> None:
    fields = re.findall(r"^\| `(\w+)` \|", RUNS, re.MULTILINE)
    assert set(names_of(KeysInput)) <= set(fields)


def test_the_pages_on_sharding_have_the_measured_figures_of_bursts() -> None:
    figures = json.loads(sharding_seconds.FIGURES.read_text())
    report = sharding_seconds.REPORT.read_text()
    assert "\n".join(sharding_seconds.section(figures)) in report
    bursts = [burst for burst in figures["now"] if burst["title"].startswith("5 times")]
    reliefs = [median_low(sharding_seconds.reliefs(burst)) for burst in bursts]
    page = " ".join((ROOT / "docs" / "how-to" / "sharding.md").read_text().split())
    assert f"accepted after {min(reliefs)} to {max(reliefs)} s (median)" in page
    wait = max(wait for burst in bursts for wait in burst["waits"])
    assert f"the longest wait of a call was {wait} s" in page
    protocol = " ".join((ROOT / "docs/internals/sharding-protocol.md").read_text().split())
    assert f"the longest wait of a call was {wait} s in the" in protocol
