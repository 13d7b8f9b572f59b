"""Tests that the tables of the fifth part are valid, and plant and tempt each rule often enough."""

from collections import Counter

import pytest
from keyhop.dynamodb.values import size_of
from keyhop.report.rules.judge import RULES

from testing.report_corpus.case import Case, item_json
from testing.report_corpus.live import table_name
from testing.report_corpus.loading import items_of, table_request, typed_name
from testing.report_corpus.tables.all import every
from testing.report_corpus.virtual import Places

NOW = 1_795_842_000.0
CASES = {case.name: case for case in every("fifth")}
pytestmark = pytest.mark.prove
LARGEST_KEY = {"HASH": 2048, "RANGE": 1024}


@pytest.mark.parametrize("name", CASES)
def test_the_items_of_a_table_are_valid(name: str) -> None:
    case = CASES[name]
    request = table_request(table_name(case), case.schema)
    definitions = request["AttributeDefinitions"]
    types = {attribute["AttributeName"]: attribute["AttributeType"] for attribute in definitions}
    assert all(len(index.name) >= 3 for index in case.schema.indexes)
    if case.virtual is None:
        items = items_of(case, NOW)
    else:
        places = Places(case.virtual, NOW)
        items = [places.item(key, 0) for key in places.keys[:100]]
    assert items
    for row in map(item_json, items[::5]):
        assert size_of(row) < 400 * 1024
        for key in request["KeySchema"]:
            ((type_, value),) = row[key["AttributeName"]].items()
            assert type_ == types[key["AttributeName"]]
            assert 0 < len(value) <= LARGEST_KEY[key["KeyType"]]
        for attribute in types.keys() & row.keys():
            assert [*row[attribute]] == [types[attribute]]
            assert [*row[attribute].values()] != [""]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.stream])
def test_the_stream_of_a_table_has_its_keys_within_its_window(name: str) -> None:
    case = CASES[name]
    assert case.stream is not None
    attributes = (case.schema.partition, case.schema.sort)
    keys = [typed_name(attribute)[0] for attribute in attributes if attribute]
    writes = [*case.stream(case.chance(), NOW, items_of(case, NOW))]
    assert writes
    for write in writes:
        assert 0 < write.ago < 900
        images = [image for image in (write.old, write.new) if image is not None]
        assert len({tuple(image[key] for key in keys) for image in images}) == 1


def test_the_tables_have_different_names() -> None:
    assert len({table_name(case) for case in CASES.values()}) == len(CASES)


def counts(cases: dict[str, Case]) -> tuple[Counter[str], Counter[str]]:
    """Return how many tables plant each rule, and how many tempt it."""
    planted: Counter[str] = Counter()
    tempting: Counter[str] = Counter()
    for case in cases.values():
        planted.update({rule for rule, _ in case.found})
        tempting.update({rule for rule, _ in case.traps})
    return planted, tempting


def test_each_rule_is_planted_and_tempted_often_enough() -> None:
    planted, tempting = counts(CASES)
    rules = {rule.id for rule in RULES}
    assert {rule for rule in rules if planted[rule] < 8 or tempting[rule] < 8} == set()
    assert rules == planted.keys() == tempting.keys()


def test_no_table_both_plants_and_tempts_a_rule() -> None:
    assert [name for name, case in CASES.items() if case.found & case.traps.keys()] == []
