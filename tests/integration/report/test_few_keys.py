"""Tests of reports on tables with millions of items under few partition keys."""

from collections.abc import Iterator

import pytest
from keyhop.report.facts import Facts
from keyhop.report.findings import Finding
from keyhop.report.rules.judge import judge

from testing.report_corpus.live import World, facts_of
from testing.report_corpus.tables.all import every
from testing.standin.server import running

FEW = (
    "five million items under one key",
    "five million items under one key, in no order",
    "five million items under true and false",
    "five million items under five statuses",
    "five million items of ten tenants, 91 % of them one tenant's",
)
BY_NAME = {case.name: case for case in every()}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with running() as stand_in:
        yield World("", stand_in.url, stand_in.service)


@pytest.fixture(scope="module", params=FEW)
def facts(request: pytest.FixtureRequest, world: World) -> Facts:
    return facts_of(BY_NAME[request.param], world)


def by_id(facts: Facts) -> dict[str, Finding]:
    return {finding.id: finding for finding in judge(facts)}


def test_few_keys_are_found(facts: Facts) -> None:
    finding = by_id(facts)["A19"]
    assert finding.status == "found"
    assert finding.severity in ("medium", "low")
    assert {"P5", "P17"} & set(finding.advice.patterns)


def test_the_sample_has_all_keys_and_few_of_the_items(facts: Facts) -> None:
    sample = facts.sample
    assert sample.keys.low == sample.keys.high == sample.keys_read
    assert sample.all_keys
    assert not sample.all_items
    assert sample.rru < 100


def test_no_rule_claims_that_all_items_were_read(facts: Facts) -> None:
    for finding in judge(facts):
        texts = (finding.summary, finding.price.remedy if finding.price else "")
        assert not [text for text in texts if "was read" in text and "all" in text.lower()]


def test_a_rule_on_shares_of_items_is_not_clear_after_a_few_collections(facts: Facts) -> None:
    findings = by_id(facts)
    assert {findings[rule].status for rule in ("A15", "A18", "E1")} <= {"found", "unknown"}


def test_the_price_of_an_answer_is_that_of_reading_all_items(facts: Facts) -> None:
    """Only a budget for the whole table gives a larger sample of so few keys."""
    price = by_id(facts)["A18"].price
    assert price.rru >= facts.table.bytes / 8192
    assert price.remedy == f"--max-read-units {price.rru:.0f}"


def test_the_giant_among_the_tenants_is_found(world: World) -> None:
    assert by_id(facts_of(BY_NAME[FEW[-1]], world))["A15"].status == "found"
