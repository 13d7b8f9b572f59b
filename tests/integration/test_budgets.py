"""The limits of the read rate and of the read units of a run."""

import json
import re
import time
from pathlib import Path

import pytest

from testing.databases import Database, resuming
from testing.marks import prove
from testing.simulation.service import failure
from testing.standin.server import Hangup, StandIn
from tests.integration.conftest import Scans

SIZES = [1, 3, 10, 1, 7, 1, 1, 30] * 10


@pytest.mark.parametrize("method", ["skip", prove("scan")])
def test_the_rate_holds_over_the_whole_run(
    strict: Database, charged: Scans, table_name: str, tmp_path: Path, method: str
) -> None:
    """The rate is measured as the service measures it: units of its answers, by its clock."""
    strict.collections(table_name, SIZES, filling=3_000)
    rate = 60.0
    began = time.monotonic()
    status, report = strict.report(
        table_name, tmp_path, "--max-read-rate", str(rate), "--method", method
    )
    assert status == 0
    total = 0.0
    for moment, units in charged:
        total += units
        assert total <= rate * (moment - began) * 1.1 + 1.0
    assert report["read_units"] == total
    assert total / rate <= report["seconds"]


@pytest.mark.parametrize("method", ["skip", "scan"])
@pytest.mark.parametrize("allowed", [prove(8), 20, 47.5])
def test_a_run_stays_within_its_units_and_can_be_resumed(
    strict: Database,
    stand_in: StandIn,
    table_name: str,
    tmp_path: Path,
    method: str,
    allowed: float,
) -> None:
    expected = strict.collections(table_name, SIZES, filling=3_000)
    out = ("--output", str(tmp_path / "out"), "--segments", "4", "--method", method)
    arguments = [*out, "--max-read-units", str(allowed)]
    runs = 0
    while True:
        before = stand_in.units
        result = strict.keys(table_name, *arguments)
        assert stand_in.units - before <= allowed
        runs += 1
        if result.status == 0:
            break
        assert result.status == 4
        assert f"Of {allowed:g} read units" in result.err
        assert "Continue with --resume" in result.err
        arguments = resuming(*arguments)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    assert manifest["keys"] == len(expected)
    assert manifest["read_units"] == pytest.approx(stand_in.units)
    assert runs >= stand_in.units / allowed


def test_without_a_directory_the_budget_says_that_it_cannot_be_resumed(
    strict: Database, table_name: str
) -> None:
    strict.collections(table_name, SIZES, filling=3_000)
    result = strict.keys(table_name, "--max-read-units", "10")
    assert result.status == 4
    assert "Without --output a run cannot be continued" in result.err
    assert re.search(r"\d+ keys of .* so far", result.err)


@pytest.mark.parametrize("limit", [("--max-read-units", "20"), prove(("--max-read-rate", "20"))])
def test_items_far_larger_than_reported_do_not_break_the_limits(
    strict: Database, stand_in: StandIn, table_name: str, limit: tuple[str, str]
) -> None:
    """The first page is a single item, whose cost is the estimate from then on."""
    strict.collections(table_name, [40] * 30, filling=60_000)
    stand_in.service.tables[table_name].reported = (10_000_000, 1_000_000_000)
    moments: list[float] = []
    first_second: list[float] = []
    answer = stand_in.answer

    def measured(operation: str, request):
        if operation != "Scan":
            return answer(operation, request)
        moments.append(time.monotonic())
        if limit[0].endswith("rate") and moments[-1] - moments[0] > 1:
            raise failure("ResourceNotFoundException", "enough seen")
        status, body = answer(operation, request)
        first_second.append(body["ConsumedCapacity"]["CapacityUnits"])
        return status, body

    stand_in.answer = measured  # type: ignore[method-assign]
    result = strict.keys(table_name, *limit, "--segments", "16")
    if limit[0].endswith("units"):
        assert result.status == 4
        assert stand_in.units <= 20
    else:
        assert sum(first_second) <= 20 + 8


def test_a_lost_answer_counts_against_the_budget(
    strict: Database, stand_in: StandIn, table_name: str
) -> None:
    """The service has read the items, and charges for them."""
    strict.collections(table_name, SIZES, filling=3_000)

    def lose(operation: str, request, body) -> None:
        if operation == "Scan":
            raise Hangup

    stand_in.alter(lose)
    result = strict.keys(table_name, "--max-read-units", "4", "--segments", "16")
    assert result.status == 4
    assert stand_in.units <= 4
