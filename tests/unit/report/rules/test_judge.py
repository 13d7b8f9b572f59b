"""Tests of all rules together: each reports on each target, and none is clear without a source."""

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keyhop.report.facts import (
    Absent,
    Facts,
    HotKey,
    KeyTraffic,
    RequestShape,
    SampleFacts,
    TableFacts,
    TtlFacts,
)
from keyhop.report.rules.judge import RULES, judge, not_assessed
from keyhop.report.rules.rule import Rule

from tests.unit.report.pages.strategies import samples
from tests.unit.report.rules.world import (
    NOW,
    SOURCES,
    TABLE_OF_ORDERS,
    THROTTLES,
    facts,
    gsi,
    lsi,
    sampled,
    share,
)

ALL = [
    *(
        f"{letter}{n}"
        for letter, count in (("A", 19), ("H", 7), ("I", 4))
        for n in range(1, count + 1)
    ),
    *("E1", "E2"),
]
BY_CONTROL_PLANE = {
    "A6": "the table has no LSI",
    "A7": "GSIs are counted",
    "A9": "the table has no GSI whose key differs from the table's",
    "A10": "the table has no GSI",
    "A15": "the table has no sort key",
    "A16": "time to live is off",
    "E1": "the table has no sort key, or it is a number",
    "H2": "the table has no sort key",
    "H3": "the table has no GSI",
    "H5": "the table is warm for the peak that was given",
    "I1": "the table has no GSI",
    "I2": "the table has no GSI, or it holds few attributes",
    "I3": "the table has no GSI",
    "I4": "the table has no GSI",
}
"""The rules that the table's description alone can clear, and why."""


def test_each_rule_is_listed_once() -> None:
    assert [rule.id for rule in RULES] == ALL


def test_each_rule_reports_on_the_table_or_on_its_gsis() -> None:
    table_facts = facts({"indexes": (gsi("one"), gsi("two", partition=("day",)), lsi("three"))})
    for rule in RULES:
        targets = [finding.target for finding in rule(table_facts)]
        assert targets, rule.id
        assert len(targets) == len(set(targets)), rule.id
        assert set(targets) <= {"", "one", "two"}, rule.id


tables = st.builds(
    lambda **fields: replace(TABLE_OF_ORDERS, **fields),
    sort=st.sampled_from([None, "sk"]),
    types=st.sampled_from([{"pk": "S", "sk": "S"}, {"pk": "N", "sk": "N"}]),
    items=st.sampled_from([0, 1, 1_000_000]),
    bytes=st.sampled_from([0, 100, 10**13]),
    created=st.sampled_from([NOW, NOW - 10, NOW - 10**8]),
    throughput=st.sampled_from([None, (5, 5)]),
    warm=st.sampled_from([None, (12_000, 4_000)]),
    ttl=st.sampled_from([None, "expires"]),
    table_class=st.sampled_from(["STANDARD", "STANDARD_INFREQUENT_ACCESS"]),
    indexes=st.lists(
        st.sampled_from(
            [
                gsi("a"),
                gsi("b", items=0, bytes=0),
                gsi("c", projection="ALL"),
                gsi("d", partition=("pk",)),
                lsi("e"),
                lsi("f", bytes=0, items=0),
            ]
        ),
        unique_by=lambda index: index.name,
    ).map(tuple),
)
absent = st.builds(Absent, st.sampled_from(["not looked at", "suppressed"]))


@settings(deadline=None)
@given(table=tables, peak=st.sampled_from([None, 100.0, 10_000.0]), data=st.data())
def test_without_sources_only_the_table_description_clears_a_rule(
    table: TableFacts, peak: float | None, data: st.DataObject
) -> None:
    sources = {name: data.draw(absent) for name in SOURCES}
    for finding in judge(Facts(NOW, table, **sources, peak_writes=peak)):
        if finding.status == "clear":
            assert finding.id in BY_CONTROL_PLANE, finding
        if finding.status == "unknown":
            assert finding.price is not None, finding
            assert finding.price.remedy, finding
            assert finding.severity == "info"
        else:
            assert finding.price is None


@settings(deadline=None)
@given(table=tables, source_names=st.sets(st.sampled_from(sorted(SOURCES))))
def test_sources_with_empty_fields_clear_no_other_rule(
    table: TableFacts, source_names: set[str]
) -> None:
    table_facts = replace(facts(**{name: SOURCES[name] for name in source_names}), table=table)
    clearable = set(BY_CONTROL_PLANE)
    if "metrics" in source_names:
        # Metrics of several days without a throttle show that there was none.
        clearable |= {"H3", "H4"}
    if "code" in source_names:
        clearable |= {"A14"}
    for finding in judge(table_facts):
        if finding.status == "clear":
            assert finding.id in clearable, finding


def test_a_new_empty_table_has_no_findings() -> None:
    table_facts = facts({"items": 0, "bytes": 0, "created": NOW - 5}, **dict(SOURCES))
    assert [finding for finding in judge(table_facts) if finding.status == "found"] == []


def test_a_report_lists_what_it_cannot_assess() -> None:
    text = " ".join(not_assessed(facts()))
    for topic in ("access patterns", "ADD", "consistent reads", "A10", "A14"):
        assert topic in text
    assert "A10" not in " ".join(not_assessed(facts(requests={}, code={})))


def test_vector_indexes_are_listed_as_not_assessed() -> None:
    assert "vector" not in " ".join(not_assessed(facts()))
    with_vectors = facts({"vector_indexes": ("by-meaning",)})
    assert "The vector indexes by-meaning:" in " ".join(not_assessed(with_vectors))


@given(rule=st.sampled_from(RULES), sample=samples, all_lengths=st.booleans())
def test_a_complete_list_of_keys_is_not_reported_as_a_complete_read(
    rule: Rule, sample: SampleFacts, all_lengths: bool
) -> None:
    unseen = share(0.0) if all_lengths else None
    keys_only = replace(sample, all_keys=True, all_items=False, unseen=unseen)
    for finding in rule(facts(sample=keys_only)):
        texts = [finding.summary, finding.price.remedy if finding.price else ""]
        assert not [text for text in texts if "was read" in text], finding


ORDINARY = {
    "metrics": {
        "consumed": {(way, at): 1e6 for way in ("read", "write") for at in ("", "by-status")},
        "peak": {("read", ""): 50.0, ("write", ""): 50.0, ("read", "by-status"): 9.0}
        | {("write", "by-status"): 9.0},
        "throttles": THROTTLES,
        "calls": {"Scan": 0.0, "PutItem": 1e6, "GetItem": 2e6, "TransactWriteItems": 0.0},
        "read_days": {"by-status": 30},
    },
    "insights": {"accessed": {at: (HotKey("k", 9.0, 9.0),) for at in ("", "by-status")}},
    "stream": {
        "traffic": (KeyTraffic("k", 9, 9, 9.0, 1.0, 2),),
        "shards": {f"s{n}": 2500 for n in range(4)},
        "date_share": share(0.0, 0.0, 0.01),
        "tau": share(0.0, -0.1, 0.1),
        "hash_rho": share(0.0, -0.1, 0.1),
        "counter": share(0.0, 0.0, 0.01),
        "reversals": {"status": (1600, 0)},
    },
    "sample": {
        "unseen": share(0.01, 0.0, 0.03),
        "seen_largest": 60.0,
        "mean_items": share(10.0),
        "keys": share(100_000.0, 95_000.0, 105_000.0),
        "item_bytes": {0.99: share(900, 800, 999)},
        "large": share(0.0, 0.0, 0.001),
        "largest_item": 999.0,
        "shapes": {"a,b": share(1.0, 0.99, 1.0)},
        "dated": share(0.0, 0.0, 0.01),
        "tagged": share(1.0, 0.99, 1.0),
        "numbered": share(0.0, 0.0, 0.01),
        "typed": share(1.0, 0.99, 1.0),
        "unpadded": share(0.0, 0.0, 0.01),
        "orphans": share(0.0, 0.0, 0.01),
        "ttl": TtlFacts(*[share(0.0, 0.0, 0.01)] * 4),
        "indexes": sampled(
            "by-status",
            top_share=share(0.1, 0.05, 0.15),
            composed={"": ((), share(0.0, 0.0, 0.01))},
        ),
    },
    "code": {},
    "requests": {
        "shapes": (RequestShape("Query", "", ("pk",), (), 500, 900, 900, 500.0, 9),),
        "followed": {"by-status": (0, 500)},
    },
}
"""Sources with enough data and nothing wrong: they clear each rule that they can clear."""
WHOLE_TABLE = {"ttl": "expires", "indexes": (gsi(projection="ALL", bytes=3 * 10**9),)}

BY_ONE_SOURCE = {
    "sample": "A1 A2 A3 A9 A13 A15 A16 A18 A19 I1 I4 E1 E2",
    "stream": "A8 A11 H2 H6 H7",
    "metrics": "A4 A7 A12 H1 H3 H4 I2 I3",
}
SUFFICES = {
    **{rule: [source] for source, rules in BY_ONE_SOURCE.items() for rule in rules.split()},
    "A5": ["requests"],
    "A10": ["requests"],
    "A14": ["code"],
    "A17": ["requests", "metrics+sample"],
    "A6": [""],
    "H5": [""],
}
"""The sources that clear each rule, alone or joined by +. An empty text means no source.
A7 needs its source for an index only."""


@pytest.mark.parametrize("rule", RULES, ids=[rule.id for rule in RULES])
def test_a_rule_is_clear_only_with_the_sources_that_it_needs(rule: Rule) -> None:
    """Try all 64 sets of sources."""
    for count in range(len(SOURCES) + 1):
        for names in combinations(sorted(SOURCES), count):
            sources = {name: ORDINARY[name] for name in names}
            findings = rule(facts(WHOLE_TABLE, **sources, peak_writes=100.0))
            needs = [set(filter(None, need.split("+"))) for need in SUFFICES[rule.id]]
            is_enough = any(need <= set(names) for need in needs)
            if rule.id in ("A3", "E1"):
                findings = [finding for finding in findings if not finding.target]
            if rule.id == "A7":
                findings = [finding for finding in findings if finding.target]
            expected = {"clear"} if is_enough else {"unknown"}
            assert {finding.status for finding in findings} == expected, names
