"""Tests of the summary in the terminal: findings with advice, the worst first, and next steps."""

from dataclasses import replace

import pytest
from hypothesis import given
from keyhop.report.findings import Evidence, Finding, Price, Report
from keyhop.report.pages.text import LEAST_ROOM, fitting, summary, tally

from testing.marks import few
from tests.unit.report.pages.example import FINDINGS, report
from tests.unit.report.pages.strategies import reports


def lines(width: int, source: Report | None = None) -> list[str]:
    return [line.text for line in summary(source or report(), width)]


def lines_of_tone(tone: str, source: Report | None = None) -> list[str]:
    return [line.text for line in summary(source or report(), 80) if line.tone == tone]


def test_the_first_line_has_the_table_and_the_cost() -> None:
    first = lines(100)[0]
    assert first.startswith("Orders  1.0 TB  912 M items  2.0 M keys [1.9, 2.1]  ")
    assert first.endswith("  2,996 RRU, $0.00038")
    assert len(first) == 100


def test_each_finding_has_its_rule_sentence_and_advice_and_the_worst_is_first() -> None:
    titles = [
        line for line in summary(report(), 120) if line.tone in ("high", "medium", "low", "info")
    ]
    assert [line.text.split()[:2] for line in titles] == [
        ["HIGH", "A6"],
        ["HIGH", "H1"],
        ["MED", "A9"],
        ["MED", "A13"],
        ["MED", "A15"],
        ["LOW", "A7"],
        ["INFO", "A1"],
    ]
    texts = lines(120)
    at = texts.index("MED  A9 An index with a constant key")
    assert texts[at + 1].startswith(
        "     byStatus: 80 % [76, 84] of the index's items have one key;"
    )
    assert texts[at + 2].startswith("     Advice: Write status with a bucket of the day")
    assert texts[at + 2].endswith(" (P16)")


def test_the_evidence_has_its_interval_unless_the_sentence_has_it() -> None:
    size = Evidence("sample", "bytes of the largest", 8.6, 7.9, 9.4, 8.0)
    finding = Finding("A6", "LSI", "found", "high", "", "A collection has 8.6 GB.", (size,))
    texts = lines(0, report(findings=(finding,)))
    assert "     Evidence: bytes of the largest: 8.6 [7.9, 9.4], threshold 8 (sample)" in texts
    texts = lines(0, report(findings=(replace(finding, summary="8.6 [7.9, 9.4]."),)))
    assert not [line for line in texts if "Evidence" in line]


def test_verbose_has_all_evidence_all_steps_and_rules_without_findings() -> None:
    texts = [line.text for line in summary(report(), 0, verbose=True)]
    for finding in FINDINGS:
        assert any(f"{finding.id} {finding.title}" in line for line in texts)
        assert any(finding.summary in line for line in texts)
        for row in finding.evidence:
            assert any(line.startswith(f"     Evidence: {row.signal}") for line in texts)
        for step in finding.advice.steps if finding.advice else ():
            assert any(step in line for line in texts)
    assert not set(lines(0)) & {line for line in texts if line.startswith("     - ")}


def test_the_command_of_the_worst_finding_is_shown() -> None:
    (command,) = lines_of_tone("command")
    assert command.strip() == FINDINGS[0].advice.command


def test_unknown_rules_are_grouped_by_the_option_that_answers_them_with_its_price() -> None:
    assert lines_of_tone("unknown") == [
        "UNKNOWN A5 Filters that drop; A10 Read after write by an index",
        "        To know more: --requests FILE (no read units).",
        "UNKNOWN A14 UnprocessedItems ignored",
        "        To know more: --code DIR (no read units).",
        "UNKNOWN A16 TTL for correctness",
        "        To know more: --max-read-units 5100 (2,100 RRU).",
        "UNKNOWN H7 Partition heat",
        "        No option of this command answers this.",
    ]


def test_a_rule_with_a_finding_for_one_index_is_not_listed_as_clear() -> None:
    findings = (
        Finding("A9", "t", "found", "medium", "byStatus", "byStatus: one key has 80 %."),
        Finding("A9", "t", "clear", "medium", "byCity", "s."),
        Finding("A9", "t", "unknown", "medium", "byDay", "s.", price=Price(250, "--more")),
        Finding("A2", "t", "clear", "medium", "", "s."),
    )
    texts = lines(80, report(findings=findings, not_assessed=()))
    assert texts[texts.index("MED  A9 t") + 1 :] == [
        "     byStatus: one key has 80 %.",
        "",
        "UNKNOWN A9 t (byDay)",
        "        To know more: --more (250 RRU).",
        "",
        "CLEAR   A2 t",
        "",
        "What each rule means: keyhop help docs/reference/report-rules.md",
    ]


def test_the_summary_lists_what_the_report_cannot_assess() -> None:
    texts = lines(80)
    assert texts[texts.index("What the report cannot assess:") + 1].startswith("  Access patterns")


def test_a_summary_without_findings_says_so() -> None:
    assert "Nothing was found." in lines(80, report(findings=()))


@pytest.mark.parametrize("width", [80, 120])
def test_only_a_command_is_wider_than_the_terminal(width: int) -> None:
    texts = [line.text for line in summary(report(), width) if line.tone != "command"]
    assert max(map(len, texts)) <= width


def test_the_option_that_answers_a_rule_is_never_cut() -> None:
    unknown = tuple(
        Finding(f"A{n}", "t", "unknown", "low", "", "s.", price=Price(9, "--flag " * 9))
        for n in range(1, 19)
    )
    texts = lines_of_tone("unknown", report(findings=unknown))
    assert len(texts) > 1
    assert max(map(len, texts)) <= 80
    assert texts[-1].endswith("(9 RRU).")


def test_without_a_width_nothing_is_cut() -> None:
    text = "\n".join(lines(0))
    assert "…" not in text
    for finding in FINDINGS:
        if finding.status == "found":
            assert finding.summary in text


def test_a_line_is_cut_at_a_word() -> None:
    assert fitting("a word, and another", 12) == "a word, and…"
    assert fitting("a word, and another", 10) == "a word…"
    assert fitting("x" * 20, 10) == "x" * 9 + "…"
    assert fitting(" a\n b ", 10) == "a b"


def test_the_tally() -> None:
    assert tally(FINDINGS) == "2 high, 3 medium, 1 low, 1 info, 5 unknown, 7 clear"
    assert tally(()) == "nothing found"


@few()
@given(reports())
def test_no_text_of_a_user_controls_the_terminal(source: Report) -> None:
    for line in summary(source, 80):
        assert line.text.isprintable() or not line.text
        assert "\n" not in line.text
        if line.tone in ("high", "medium", "low", "info"):
            assert len(line.text) <= 80 + LEAST_ROOM


def test_a_target_is_cut_before_the_sentence() -> None:
    finding = Finding("A9", "t", "found", "low", "i" * 255, "80 % of it.")
    assert any("80 % of it." in line for line in lines(80, report(findings=(finding,))))


@pytest.mark.parametrize(("width", "text"), [(-234, ""), (0, ""), (1, "…"), (2, "a…")])
def test_a_text_without_room_is_cut_to_nothing(width: int, text: str) -> None:
    assert fitting("ascript", width) == text
