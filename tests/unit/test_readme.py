"""Figures of the README that follow from formulas, computed again."""

import re
from pathlib import Path

import pytest
from keyhop.checks import names_of
from keyhop.jobs.costs import Worker, run_cost
from keyhop.jobs.groups import ManyWorkers
from keyhop.jobs.layout import MOST_THREADS, REQUESTS_PER_SECOND, layout_for_skip
from keyhop.jobs.request import Request
from keyhop.jobs.work import FIRST_SLICE_SECONDS, LONGEST_SLICE_SECONDS
from keyhop.keys.request import KeysInput
from keyhop.scan.cost_simulation import Forecast

README = (Path(__file__).parents[2] / "README.md").read_text()
WORKER = Worker(1769, "arm64")
REQUESTS_OF_A_WORKER = MOST_THREADS * REQUESTS_PER_SECOND


def slices(seconds: float) -> int:
    """How many commits a group of so many seconds makes."""
    count, length = 0, FIRST_SLICE_SECONDS
    while seconds > 0:
        seconds -= length
        length = min(LONGEST_SLICE_SECONDS, 2 * length)
        count += 1
    return count


def shown(seconds: float) -> str:
    if seconds < 3600:
        return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.0f} s"
    return f"{seconds / 3600:.1f} h"


def row(keys: float) -> str:
    wishes = ManyWorkers().wishes(Request("Orders", "keys"), 0, one_worker=False)
    layout = layout_for_skip(keys, Forecast(0.5, 1.0), wishes)
    fleet = ManyWorkers().fleet(layout, one_worker=False)
    units = 0.5 * keys + 0.5 * fleet.segments
    seconds = keys / REQUESTS_OF_A_WORKER
    commits = fleet.groups * slices(seconds / fleet.groups)
    cost = run_cost(WORKER, units, seconds, fleet.groups, fleet.groups, commits)
    digits = 4 if cost["total"] < 1 else 2
    dollars = [f"${cost[name]:,.{digits}f}" for name in ("dynamodb", "lambda")]
    dollars += [f"${cost[name]:,.{digits}f}" for name in ("step_functions", "s3", "total")]
    cells = [f"{keys:,.0f}", f"{fleet.segments:,}", f"{fleet.groups:,}", *dollars]
    cells += [shown(seconds / fleet.at_once), shown(seconds / 100)]
    return f"| {' | '.join(cells)} |"


@pytest.mark.parametrize("keys", [2e6, 200e6, 10e9])
def test_the_price_of_a_run_is_what_the_formulas_say(keys: float) -> None:
    assert row(keys) in README


def test_the_formulas_of_the_readme_are_those_of_the_code() -> None:
    """A run of one group by hand, by the words of the README."""
    told = run_cost(WORKER, 1_000_000, 100.0, 1, 1, 3)
    assert told["dynamodb"] == pytest.approx(0.125)
    assert told["lambda"] == pytest.approx(100 * 1769 / 1024 * 0.0000133334 + 0.2e-6)
    assert told["step_functions"] == pytest.approx(14 * 0.025 / 1000)
    assert told["s3"] == pytest.approx(2 * 3 * 0.005 / 1000 + (2 * 3 + 2) * 0.0004 / 1000)
    for price in ("$0.125 / 1,000,000", "$0.0000133334", "$0.025 / 1,000", "$0.0004 / 1,000"):
        assert price in README
    assert f"keys / {REQUESTS_OF_A_WORKER:,.0f}" in README


def test_the_input_table_names_every_field() -> None:
    named = re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE)
    assert set(names_of(KeysInput)) <= set(named)
