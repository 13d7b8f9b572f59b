"""Tests of the length of the first pages, the order of how-to pages, and the README's status."""

import re
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from testing.servers import ROOT
from tests.docs.pages import PAGES, README, name_of, prose
from tests.unit.test_claims import claims

LONGEST = 120
MOST_WORDS = 20_000
DOCS = ROOT / "docs"
ORDER = [
    "## When to use it",
    "## Before you begin",
    "## The shortest path",
    "## Variations",
    "## When something goes wrong",
    "## How to undo it",
]
COLLECTIONS = ("key-patterns.md", "sharding-patterns.md")
"""The how-to pages that are collections of patterns, which have no common order."""
HOW_TO = [page for page in sorted((DOCS / "how-to").glob("*.md")) if page.name not in COLLECTIONS]


def test_the_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= LONGEST


def test_the_pages_that_people_read_first_are_short() -> None:
    pages = [README, DOCS / "index.md", *DOCS.glob("tutorials/*.md"), *DOCS.glob("how-to/*.md")]
    assert sum(len(page.read_text().split()) for page in pages) <= MOST_WORDS


@pytest.mark.parametrize("page", HOW_TO, ids=name_of)
def test_each_how_to_page_has_the_same_order(page: Path) -> None:
    headings = re.findall(r"^## .*", prose(page), re.MULTILINE)
    assert [heading for heading in headings if heading in ORDER] == ORDER


def test_the_status_of_the_readme_counts_the_claims() -> None:
    kinds = Counter(claim.known_by for claim in claims())
    readme = " ".join(README.read_text().replace("\n> ", " ").split())
    for text in (
        f"Of {kinds.total()} statements",
        f"{kinds['documentation']} are from AWS's documentation",
        f"{kinds['oracle']} are confirmed by other programs",
        f"{kinds['assumption']} are assumptions",
        f"and {kinds['live']} wait",
    ):
        assert text in readme


def test_the_pages_mention_only_existing_targets_of_make() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        mentioned = re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), re.MULTILINE)
        assert set(mentioned) <= targets, page


def test_the_help_of_make_lists_every_target_and_fits_a_screen() -> None:
    command = ["make", "--no-print-directory", "help"]
    help_ = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = help_.stdout.splitlines()
    assert len(lines) <= 23
    assert max(map(len, lines)) < 80
    text = (ROOT / "Makefile").read_text().replace("\\\n", "")
    targets = re.search(r"^\.PHONY: help (.*)$", text, re.MULTILINE)
    assert targets
    assert set(targets[1].split()) == set(re.findall(r"make ([a-z-]+)", help_.stdout))


def test_every_link_to_the_project_has_the_address_of_pyproject_toml() -> None:
    """Before it is published, no page suggests to install a name that may belong to others."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    address = project["urls"]["Repository"]
    for path in (*PAGES, *ROOT.glob("examples/**/*.py"), *ROOT.glob(".github/**/*.yml")):
        text = path.read_text()
        urls = re.findall(r"https?://[^\s)\"'>]*keyhop[^\s)\"'>]*", text)
        assert all(url.startswith(address) for url in urls), path
        if ".invalid/" in address:
            assert not re.search(r"install '?keyhop", text), path


def test_the_first_screen_has_the_audience_the_requirements_and_the_status() -> None:
    first = " ".join(prose(README).splitlines()[:20])
    assert "For people with" in first
    assert "needs a **sort key**" in first
    assert "ever run on AWS" in first
