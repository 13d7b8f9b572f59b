"""Tests that the pictures which are drawn by hand match the code and the figures."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from testing.servers import ROOT

DOCS = ROOT / "docs"
BOXES = {
    "WasItScheduled": "PlanRun",
    "WhyItFailed": "Refused",
    "NotSummedUp": "Refused",
    "ExplainRefusal": "Refused",
    "Broken": "Refused",
    "BrokenOff": "Refused",
    "CountRedrives": "RaiseAlarm",
    "IsThereARun": "RaiseAlarm",
    "GroupFailed": "NoteFailure",
}
"""The box that shows each state without a separate box."""


def arrows_of(definition: dict[str, Any]) -> set[tuple[str, str]]:
    """Return the transitions between states, including those of a map's children."""
    arrows = set()
    for name, state in definition["States"].items():
        following = [state.get("Next"), state.get("Default")]
        following += [rule["Next"] for key in ("Catch", "Choices") for rule in state.get(key, ())]
        arrows |= {(name, target) for target in following if target}
        if "ItemProcessor" in state:
            arrows |= arrows_of(state["ItemProcessor"])
    return arrows


def test_the_state_machine_has_the_arrows_of_its_definition() -> None:
    definition = json.loads((ROOT / "statemachines" / "job.asl.json").read_text())
    expected = {
        (BOXES.get(source, source), BOXES.get(target, target))
        for source, target in arrows_of(definition)
    }
    picture = (DOCS / "state-machine.svg").read_text()
    drawn = re.findall(r'data-way="(\w+) (\w+)"', picture)
    assert set(drawn) == {(source, target) for source, target in expected if source != target}
    assert picture.count("marker-end") == len(drawn)
    for name in {state for arrow in drawn for state in arrow}:
        assert f">{name}" in picture


def test_no_method_of_the_benchmark_is_better_than_the_optimum() -> None:
    for row in json.loads((DOCS / "benchmark.json").read_text())["simulated"]:
        for way in row["ways"].values():
            assert way["against_least_units"] >= 1
            assert way["against_optimum"] >= 1


@pytest.mark.parametrize("picture", sorted(DOCS.glob("*.svg")), ids=lambda path: path.name)
def test_a_picture_loads_no_other_file_and_a_page_shows_it(picture: Path) -> None:
    assert not re.search(r"(href|src|url)\W+https?:", picture.read_text())
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    assert any(f"{picture.name})" in page.read_text() for page in pages)


@pytest.mark.parametrize("picture", sorted(DOCS.glob("*.svg")), ids=lambda path: path.name)
def test_a_picture_has_a_dark_mode(picture: Path) -> None:
    """The terminal is dark in both modes."""
    assert "prefers-color-scheme:dark" in picture.read_text() or picture.name == "terminal.svg"


def test_the_terminal_shows_a_plan_and_a_run() -> None:
    text = (DOCS / "terminal.svg").read_text().replace("&#160;", " ")
    for words in ("--dry-run", "Limit=1", "ETA", "207 keys of FlightsByRoute"):
        assert words in text
