"""Rules held against tables that are declared by their facts: thresholds from both sides."""

import json
from collections import Counter

import pytest
from keyhop.report.findings import Finding
from keyhop.report.rules.judge import RULES, judge

from testing.report_corpus.__main__ import JSON, PAGE
from testing.report_corpus.case import Case, Schema
from testing.report_corpus.facts_cases import BY_FACTS
from testing.report_corpus.facts_check import problems
from testing.report_corpus.matrix import Matrix, settled, verdicts
from testing.report_corpus.published import page
from testing.report_corpus.tables.all import PARTS, every


@pytest.mark.parametrize("name", BY_FACTS)
def test_rules_say_what_the_facts_allow(name: str) -> None:
    declared = BY_FACTS[name]
    assert [*problems(declared, judge(declared.facts))] == []


def test_the_corpus_is_as_large_and_as_broad_as_it_should_be() -> None:
    """At least 80 tables, 10 clean, 10 decoys, and each rule planted twice over all."""
    kinds = Counter(case.kind for case in every())
    assert sum(kinds.values()) >= 80
    assert kinds["clean"] >= 10
    assert kinds["decoy"] >= 10
    assert kinds["real"] == 3
    planted = Counter(rule for case in every() for rule, _ in case.found)
    planted += Counter(rule.split()[0] for one in BY_FACTS.values() for rule in one.found)
    of_the_brief = {rule.id for rule in RULES if rule.id[0] in "AH"}
    assert {rule: planted[rule] for rule in of_the_brief if planted[rule] < 2} == {}


def test_each_decoy_says_what_it_tempts_to() -> None:
    tempting = {case.name for case in every() if case.traps or case.allowed}
    assert {case.name for case in every() if case.kind == "decoy"} <= tempting


def finding(rule: str, status: str = "found", severity: str = "low", target: str = "") -> Finding:
    return Finding(rule, "", status, severity, target, "told")  # type: ignore[arg-type]


def test_a_verdict_is_of_rule_and_target() -> None:
    case = Case("c", "clean", Schema(), found=frozenset({("A9", "byStatus")}), allowed={"A2": "x"})
    said = [
        finding("A9", target="byCity"),
        finding("A9", "unknown", "info", "byStatus"),
        finding("A2"),
        finding("A3", "clear", "info"),
    ]
    told = verdicts(case, said)
    assert [(one.rule[1], one.outcome) for one in told if one.rule[0] == "A9"] == [
        ("byStatus", "unknown"),
        ("byCity", "false"),
    ]
    matrix = Matrix.of([told])
    assert (matrix.recall, matrix.precision) == (0.0, 0.0)
    assert matrix.rows["A2"].allowed == 1
    assert "A3" not in matrix.rows


def test_a_third_reader_settles_what_is_not_as_declared() -> None:
    case = Case("c", "clean", Schema(), found=frozenset({("A1", ""), ("A2", ""), ("A9", "i")}))
    told = verdicts(case, [finding("A9", target="i"), *map(finding, ("A3", "A4", "A5"))])
    answers = {"A1": "no", "A2": "yes", "A3": "yes", "A4": "either", "A5": "no", "A9 i": "no"}
    settlements = [{"table": "c", "rule": rule, "verdict": one} for rule, one in answers.items()]
    of_another = [{**one, "table": "d"} for one in settlements]
    assert settled(told, of_another) == told
    assert {one.rule[0]: one.outcome for one in settled(told, settlements)} == {
        "A2": "missed",
        "A3": "found",
        "A4": "allowed",
        "A5": "false",
        "A9": "found",
    }


def test_what_is_allowed_is_so_up_to_low_alone() -> None:
    case = Case("c", "clean", Schema(), allowed={"A2": "x"})
    matrix = Matrix.of([verdicts(case, [finding("A2", severity="medium")])])
    assert matrix.rows["A2"].false == 1
    assert len(matrix.loud) == 1


def test_the_published_matrix_holds_the_bar() -> None:
    """What `python -m testing.report_corpus --write` found when it was last run."""
    parts = json.loads(JSON.read_bytes())
    figures = parts["own"]
    assert figures["recall"] >= 0.95
    assert figures["precision"] >= 0.95
    assert figures["loud_on_clean"] == 0
    assert PAGE.read_text(encoding="utf-8") == page(parts)


@pytest.mark.parametrize("part", PARTS)
def test_the_published_matrix_is_of_all_tables(part: str) -> None:
    assert json.loads(JSON.read_bytes())[part]["tables"] == len(every(part))
