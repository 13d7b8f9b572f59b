"""Tests of the rules on tables that are declared by their facts, and of the matrix of results."""

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
def test_the_findings_are_those_that_the_facts_declare(name: str) -> None:
    declared = BY_FACTS[name]
    assert [*problems(declared, judge(declared.facts))] == []


def test_the_corpus_is_as_large_and_as_broad_as_it_should_be() -> None:
    """The corpus has 80 tables, 10 of them clean and 10 decoys, and plants each rule twice."""
    kinds = Counter(case.kind for case in every())
    assert sum(kinds.values()) >= 80
    assert kinds["clean"] >= 10
    assert kinds["decoy"] >= 10
    assert kinds["real"] == 3
    planted = Counter(rule for case in every() for rule, _ in case.found)
    planted += Counter(rule.split()[0] for table in BY_FACTS.values() for rule in table.found)
    rules = {rule.id for rule in RULES if rule.id[0] in "AH"}
    assert {rule: planted[rule] for rule in rules if planted[rule] < 2} == {}


def test_each_decoy_declares_the_rules_that_it_tempts() -> None:
    tempting = {case.name for case in every() if case.traps or case.allowed}
    assert {case.name for case in every() if case.kind == "decoy"} <= tempting


def finding(rule: str, status: str = "found", severity: str = "low", target: str = "") -> Finding:
    return Finding(rule, "", status, severity, target, "told")  # type: ignore[arg-type]


def test_each_verdict_has_a_rule_and_a_target() -> None:
    case = Case("c", "clean", Schema(), found=frozenset({("A9", "byStatus")}), allowed={"A2": "x"})
    findings = [
        finding("A9", target="byCity"),
        finding("A9", "unknown", "info", "byStatus"),
        finding("A2"),
        finding("A3", "clear", "info"),
    ]
    results = verdicts(case, findings)
    assert [(row.rule[1], row.outcome) for row in results if row.rule[0] == "A9"] == [
        ("byStatus", "unknown"),
        ("byCity", "false"),
    ]
    matrix = Matrix.of([results])
    assert (matrix.recall, matrix.precision) == (0.0, 0.0)
    assert matrix.rows["A2"].allowed == 1
    assert "A3" not in matrix.rows


def test_a_third_reader_settles_verdicts_that_differ_from_the_declaration() -> None:
    case = Case("c", "clean", Schema(), found=frozenset({("A1", ""), ("A2", ""), ("A9", "i")}))
    results = verdicts(case, [finding("A9", target="i"), *map(finding, ("A3", "A4", "A5"))])
    answers = {"A1": "no", "A2": "yes", "A3": "yes", "A4": "either", "A5": "no", "A9 i": "no"}
    settlements = [
        {"table": "c", "rule": rule, "verdict": answer} for rule, answer in answers.items()
    ]
    of_another_table = [{**settlement, "table": "d"} for settlement in settlements]
    assert settled(results, of_another_table) == results
    assert {row.rule[0]: row.outcome for row in settled(results, settlements)} == {
        "A2": "missed",
        "A3": "found",
        "A4": "allowed",
        "A5": "false",
        "A9": "found",
    }


def test_an_allowed_rule_may_have_at_most_severity_low() -> None:
    case = Case("c", "clean", Schema(), allowed={"A2": "x"})
    matrix = Matrix.of([verdicts(case, [finding("A2", severity="medium")])])
    assert matrix.rows["A2"].false == 1
    assert len(matrix.loud) == 1


def test_the_published_matrix_holds_the_bar() -> None:
    """Check the results of the last run of `python -m testing.report_corpus --write`."""
    parts = json.loads(JSON.read_bytes())
    figures = parts["own"]
    assert figures["recall"] >= 0.95
    assert figures["precision"] >= 0.95
    assert figures["loud_on_clean"] == 0
    assert PAGE.read_text(encoding="utf-8") == page(parts)


@pytest.mark.parametrize("part", PARTS)
def test_the_published_matrix_has_all_tables(part: str) -> None:
    assert json.loads(JSON.read_bytes())[part]["tables"] == len(every(part))
