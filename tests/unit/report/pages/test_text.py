"""The terminal's summary: the worst first, each with its rule and advice, and what to do next."""

from dataclasses import replace

import pytest
from hypothesis import given
from keyhop.report.findings import Evidence, Finding, Price, Report
from keyhop.report.pages.text import LEAST_ROOM, fitting, summary, tally

from testing.marks import few
from tests.unit.report.pages.example import FINDINGS, report
from tests.unit.report.pages.made import reports


def lines(width: int, of: Report | None = None) -> list[str]:
    return [line.text for line in summary(of or report(), width)]


def test_the_first_line_says_what_it_is_about_and_what_it_cost() -> None:
    first = lines(100)[0]
    assert first.startswith("Orders  1.0 TB  912 M items  2.0 M keys [1.9, 2.1]  ")
    assert first.endswith("  2,996 RRU, $0.00038")
    assert len(first) == 100


def test_findings_are_the_worst_first_with_rule_sentence_and_advice() -> None:
    told = [
        line for line in summary(report(), 120) if line.tone in ("high", "medium", "low", "info")
    ]
    assert [line.text.split()[:2] for line in told] == [
        ["HIGH", "A6"],
        ["HIGH", "H1"],
        ["MED", "A9"],
        ["MED", "A13"],
        ["MED", "A15"],
        ["LOW", "A7"],
        ["INFO", "A1"],
    ]
    said = lines(120)
    at = said.index("MED  A9 An index with a constant key")
    assert said[at + 1].startswith(
        "     byStatus: 80 % [76, 84] of the index's items have one key;"
    )
    assert said[at + 2].startswith("     Advice: Write status with a bucket of the day")
    assert said[at + 2].endswith(" (P16)")


def test_the_evidence_has_its_interval_unless_the_sentence_has_it() -> None:
    found = Finding("A6", "LSI", "found", "high", "", "A collection has 8.6 GB.", advice=None)
    sized = Evidence("sample", "bytes of the largest", 8.6, 7.9, 9.4, 8.0)
    without, within = replace(found, evidence=(sized,)), replace(found, summary="8.6 [7.9, 9.4].")
    said = lines(0, replace(report(), findings=(without,)))
    assert "     Evidence: bytes of the largest: 8.6 [7.9, 9.4], threshold 8 (sample)" in said
    said = lines(0, replace(report(), findings=(replace(within, evidence=(sized,)),)))
    assert not [line for line in said if "Evidence" in line]


def test_verbose_has_all_evidence_all_steps_and_what_is_not_found() -> None:
    said = [line.text for line in summary(report(), 0, verbose=True)]
    for finding in FINDINGS:
        assert any(f"{finding.id} {finding.title}" in line for line in said)
        assert any(finding.summary in line for line in said)
        for row in finding.evidence:
            assert any(line.startswith(f"     Evidence: {row.signal}") for line in said)
        for step in finding.advice.steps if finding.advice else ():
            assert any(step in line for line in said)
    assert not set(lines(0)) & {line for line in said if line.startswith("     - ")}


def test_the_worst_finding_that_has_a_command_gives_the_next_one() -> None:
    (command,) = [line.text for line in summary(report(), 80) if line.tone == "command"]
    assert command.strip() == FINDINGS[0].advice.command


def test_unknown_rules_are_told_by_what_would_make_them_known_with_the_price() -> None:
    told = [line.text for line in summary(report(), 80) if line.tone == "unknown"]
    assert told == [
        "UNKNOWN A5 Filters that drop; A10 Read after write by an index",
        "        To know more: --requests FILE (no read units).",
        "UNKNOWN A14 UnprocessedItems ignored",
        "        To know more: --code DIR (no read units).",
        "UNKNOWN A16 TTL for correctness",
        "        To know more: --max-read-units 5100 (2,100 RRU).",
        "UNKNOWN H7 Partition heat",
        "        No option of this command answers this.",
    ]


def test_a_rule_that_is_found_of_one_index_is_not_clear() -> None:
    both = (
        Finding("A9", "t", "found", "medium", "byStatus", "byStatus: one key has 80 %."),
        Finding("A9", "t", "clear", "medium", "byCity", "s."),
        Finding("A9", "t", "unknown", "medium", "byDay", "s.", price=Price(250, "--more")),
        Finding("A2", "t", "clear", "medium", "", "s."),
    )
    told = [line.text for line in summary(report(findings=both, not_assessed=()), 80)]
    at = told.index("MED  A9 t")
    assert told[at + 1 :] == [
        "     byStatus: one key has 80 %.",
        "",
        "UNKNOWN A9 t (byDay)",
        "        To know more: --more (250 RRU).",
        "",
        "CLEAR   A2 t",
        "",
        "What each rule means: keyhop help docs/reference/report-rules.md",
    ]


def test_what_was_not_assessed_is_told() -> None:
    told = lines(80)
    assert told[told.index("What the report cannot assess:") + 1].startswith("  Access patterns")


def test_nothing_found_is_said() -> None:
    assert "Nothing was found." in lines(80, report(findings=()))


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_of_a_finding_is_wider_than_the_terminal(width: int) -> None:
    told = [line.text for line in summary(report(), width) if line.tone != "command"]
    assert max(map(len, told)) <= width


def test_what_would_make_a_rule_known_is_never_cut() -> None:
    unknown = tuple(
        Finding(f"A{n}", "t", "unknown", "low", "", "s.", price=Price(9, "--flag " * 9))
        for n in range(1, 19)
    )
    told = [one.text for one in summary(report(findings=unknown), 80) if one.tone == "unknown"]
    assert len(told) > 1
    assert max(map(len, told)) <= 80
    assert told[-1].endswith("(9 RRU).")


def test_without_a_width_nothing_is_cut() -> None:
    told = "\n".join(lines(0))
    assert "…" not in told
    for finding in FINDINGS:
        if finding.status == "found":
            assert finding.summary in told


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
def test_no_text_of_a_user_steers_the_terminal(made: Report) -> None:
    for line in summary(made, 80):
        assert line.text.isprintable() or not line.text
        assert "\n" not in line.text
        if line.tone in ("high", "medium", "low", "info"):
            assert len(line.text) <= 80 + LEAST_ROOM


def test_a_target_is_cut_before_the_sentence_is() -> None:
    finding = Finding("A9", "t", "found", "low", "i" * 255, "80 % of it.")
    assert any("80 % of it." in one.text for one in summary(report(findings=(finding,)), 80))


@pytest.mark.parametrize(("width", "shown"), [(-234, ""), (0, ""), (1, "…"), (2, "a…")])
def test_what_has_no_room_is_cut_to_nothing(width: int, shown: str) -> None:
    assert fitting("ascript", width) == shown
