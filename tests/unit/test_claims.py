"""Check claims.md: each claim says how it is known, and the live ones name a live check."""

import re
from dataclasses import dataclass

import pytest

from testing.servers import ROOT
from tests.live import report
from tests.live.catalogue import CHECKS

CLAIMS = ROOT / "docs" / "internals" / "claims.md"
KINDS = {"live", "oracle", "documentation", "assumption"}
HEAD = "| claim | known by | where |"


@dataclass(frozen=True)
class Claim:
    says: str
    known_by: str
    where: str


def rows_below(head: str) -> list[str]:
    """Return the rows of all tables with this header line."""
    tables = re.findall(r"(?:^\|.*\n)+", CLAIMS.read_text(), re.MULTILINE)
    return [
        row for table in tables if table.startswith(f"{head}\n") for row in table.splitlines()[2:]
    ]


def claims() -> list[Claim]:
    rows = [re.fullmatch(r"\| (.+) \| (\w+) \| (.+) \|", row) for row in rows_below(HEAD)]
    return [Claim(*row.groups()) for row in rows if row]


def test_each_row_of_the_tables_is_a_claim_of_a_kind() -> None:
    assert len(claims()) == len(rows_below(HEAD)) > 0
    assert {claim.known_by for claim in claims()} == KINDS
    assert len({claim.says for claim in claims()}) == len(claims())


def test_live_claims_and_checks_of_the_suite_are_the_same() -> None:
    names = {claim.where.strip("`") for claim in claims() if claim.known_by == "live"}
    assert names == CHECKS.keys()


def test_results_belong_to_checks() -> None:
    """The table that the suite prints is pasted unchanged."""
    rows = [row.strip("| ").split(" | ") for row in rows_below(report.HEAD)]
    assert {name.strip("`") for name, *_ in rows} <= CHECKS.keys()
    assert {len(row) for row in rows} <= {len(report.HEAD.strip("| ").split(" | "))}


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_a_check_is_made_by_the_suite(name: str) -> None:
    """A module names each check. tests/e2e/test_live_suite.py shows that it runs."""
    sources = (ROOT / "tests" / "live").glob("*.py")
    modules = [path.stem for path in sources if f'"{name}"' in path.read_text()]
    assert len(modules) >= 2, f"only in {modules}"
    assert "catalogue" in modules


def test_documentation_is_a_page_of_aws() -> None:
    for claim in claims():
        if claim.known_by == "documentation":
            assert re.fullmatch(r"https://(docs\.)?aws\.amazon\.com/\S+", claim.where), claim.says


def test_an_oracle_is_a_file_of_this_repository() -> None:
    for claim in claims():
        if claim.known_by == "oracle":
            assert (ROOT / claim.where).exists(), claim.where


def test_an_assumption_says_where_it_is_made_and_why_it_is_not_checked() -> None:
    for claim in claims():
        if claim.known_by == "assumption":
            file, _, heading = claim.where.partition(", ")
            page = (ROOT / file).read_text()
            assert not heading or f"## {heading}" in page, claim.where
            assert ", because " in claim.says
