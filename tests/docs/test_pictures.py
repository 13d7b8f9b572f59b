"""The pictures show what there is: those that are drawn by hand are compared with it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from testing.servers import ROOT

DOCS = ROOT / "docs"
DRAWN_AS = {
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
"""States that have no box of their own, and the one that stands for them."""


def ways_of(definition: dict[str, Any]) -> set[tuple[str, str]]:
    """From which state to which others, those of a map's children as well."""
    found = set()
    for name, state in definition["States"].items():
        following = [state.get("Next"), state.get("Default")]
        following += [one["Next"] for key in ("Catch", "Choices") for one in state.get(key, ())]
        found |= {(name, one) for one in following if one}
        if "ItemProcessor" in state:
            found |= ways_of(state["ItemProcessor"])
    return found


def test_the_state_machine_has_the_arrows_of_its_definition() -> None:
    definition = json.loads((ROOT / "statemachines" / "job.asl.json").read_text())
    real = {
        (DRAWN_AS.get(begin, begin), DRAWN_AS.get(end, end)) for begin, end in ways_of(definition)
    }
    picture = (DOCS / "state-machine.svg").read_text()
    drawn = re.findall(r'data-way="(\w+) (\w+)"', picture)
    assert set(drawn) == {(begin, end) for begin, end in real if begin != end}
    assert picture.count("marker-end") == len(drawn)
    for name in {state for way in drawn for state in way}:
        assert f">{name}" in picture


def test_no_way_is_better_than_the_least_possible() -> None:
    for row in json.loads((DOCS / "benchmark.json").read_text())["simulated"]:
        for way in row["ways"].values():
            assert way["against_least_units"] >= 1
            assert way["against_optimum"] >= 1


@pytest.mark.parametrize("picture", sorted(DOCS.glob("*.svg")), ids=lambda path: path.name)
def test_a_picture_needs_nothing_from_elsewhere_and_is_shown(picture: Path) -> None:
    assert not re.search(r"(href|src|url)\W+https?:", picture.read_text())
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    assert any(f"{picture.name})" in page.read_text() for page in pages)


@pytest.mark.parametrize("picture", sorted(DOCS.glob("*.svg")), ids=lambda path: path.name)
def test_a_picture_suits_a_dark_page(picture: Path) -> None:
    """A terminal is dark itself."""
    assert "prefers-color-scheme:dark" in picture.read_text() or picture.name == "terminal.svg"


def test_the_terminal_shows_a_plan_and_a_run() -> None:
    shown = (DOCS / "terminal.svg").read_text().replace("&#160;", " ")
    for words in ("--dry-run", "Limit=1", "ETA", "207 keys of FlightsByRoute"):
        assert words in shown
