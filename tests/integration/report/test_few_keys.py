"""Tables of millions of items under few partition keys: what a report says, and never claims."""

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
    return {one.id: one for one in judge(facts)}


def test_few_keys_are_found(facts: Facts) -> None:
    finding = by_id(facts)["A19"]
    assert finding.status == "found"
    assert finding.severity in ("medium", "low")
    assert {"P5", "P17"} & set(finding.advice.patterns)


def test_all_keys_are_known_and_few_items_were_read(facts: Facts) -> None:
    sample = facts.sample
    assert sample.keys.low == sample.keys.high == sample.keys_read
    assert sample.all_keys
    assert not sample.all_items
    assert sample.rru < 100


def test_no_rule_claims_that_all_was_read(facts: Facts) -> None:
    for finding in judge(facts):
        texts = (finding.summary, finding.price.remedy if finding.price else "")
        assert not [text for text in texts if "was read" in text and "all" in text.lower()]


def test_what_a_few_collections_cannot_tell_is_not_clear(facts: Facts) -> None:
    """A16, A5 and the like do not look at the sample; those below do, at shares of its items."""
    said = by_id(facts)
    assert {said[rule].status for rule in ("A15", "A18", "E1")} <= {"found", "unknown"}


def test_the_price_of_knowing_buys_a_sample_of_every_item(facts: Facts) -> None:
    """A larger sample of so few keys reads no more until it may read everything."""
    price = by_id(facts)["A18"].price
    assert price.rru >= facts.table.bytes / 8192
    assert price.remedy == f"--max-read-units {price.rru:.0f}"


def test_the_giant_among_the_tenants_stands_out(world: World) -> None:
    said = by_id(facts_of(BY_NAME[FEW[-1]], world))
    assert said["A15"].status == "found"
