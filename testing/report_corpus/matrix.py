"""The comparison of reports on the corpus with the faults that are planted in its tables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from keyhop.report.findings import SEVERITIES, Finding

from testing.report_corpus.case import Case, Rule

Outcome = Literal["found", "missed", "unknown", "false", "allowed"]
LOW = SEVERITIES.index("low")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one rule in one table, with the sentence of the report."""

    case: str
    kind: str
    rule: Rule
    outcome: Outcome
    severity: str = ""
    sentence: str = ""
    why: str = ""

    def __str__(self) -> str:
        rule = " ".join(self.rule).strip()
        return f"{self.outcome:7} {rule} [{self.severity}] of {self.case!r}: {self.sentence}"


def verdicts(case: Case, findings: Sequence[Finding]) -> list[Verdict]:
    """Return a verdict for each expected finding, and for each finding that was not expected.

    An expected finding counts for its target only. An allowed finding may have the severity `low`
    at most. An expected finding that is unknown counts as missed, and has a separate outcome.
    """
    by_target: dict[Rule, Finding] = {(finding.id, finding.target): finding for finding in findings}
    result = []
    for rule in sorted(case.found):
        finding = by_target.get(rule)
        status = finding.status if finding is not None else "clear"
        outcome: Outcome = (
            "found" if status == "found" else "unknown" if status == "unknown" else "missed"
        )
        result.append(_verdict(case, rule, outcome, finding))
    for rule, finding in sorted(by_target.items()):
        if finding.status != "found" or rule in case.found:
            continue
        is_low = SEVERITIES.index(finding.severity) >= LOW
        if finding.id in case.allowed and is_low:
            result.append(_verdict(case, rule, "allowed", finding, case.allowed[finding.id]))
        else:
            result.append(_verdict(case, rule, "false", finding, case.traps.get(rule, "")))
    return result


def settled(verdicts: Iterable[Verdict], settlements: Iterable[Mapping[str, str]]) -> list[Verdict]:
    """Return the verdicts after a third reader has settled those that contradict the declaration.

    The reader sees the table, and neither the declaration nor the report. "yes" means that the rule
    applies, "no" that it does not, and "either" that a finding would be neither right nor wrong.
    """
    answers = {(each["table"], each["rule"]): each["verdict"] for each in settlements}
    result = []
    for verdict in verdicts:
        answer = answers.get((verdict.case, " ".join(verdict.rule).strip()), "")
        if verdict.outcome == "false" and answer in ("yes", "either"):
            result.append(replace(verdict, outcome="found" if answer == "yes" else "allowed"))
        elif verdict.outcome not in ("missed", "unknown") or answer not in ("no", "either"):
            result.append(verdict)
    return result


def _verdict(
    case: Case, rule: Rule, outcome: Outcome, finding: Finding | None, why: str = ""
) -> Verdict:
    if finding is None:
        return Verdict(case.name, case.kind, rule, outcome, "", "nothing is said", why)
    return Verdict(case.name, case.kind, rule, outcome, finding.severity, finding.summary, why)


@dataclass(slots=True)
class Row:
    """The counts of one rule; `missed` includes `unknown`."""

    planted: int = 0
    found: int = 0
    missed: int = 0
    unknown: int = 0
    false: int = 0
    allowed: int = 0


@dataclass(slots=True)
class Matrix:
    """The counts of all tables; `loud` has the medium and high findings on clean tables."""

    rows: dict[str, Row] = field(default_factory=dict)
    loud: list[Verdict] = field(default_factory=list)
    tables: int = 0

    @classmethod
    def of(cls, tables: Iterable[Sequence[Verdict]]) -> "Matrix":
        matrix = cls()
        for verdict_list in tables:
            matrix.tables += 1
            for verdict in verdict_list:
                matrix._count(verdict)
        return matrix

    def _count(self, verdict: Verdict) -> None:
        row = self.rows.setdefault(verdict.rule[0], Row())
        if verdict.outcome in ("found", "missed", "unknown"):
            row.planted += 1
            row.found += verdict.outcome == "found"
            row.missed += verdict.outcome != "found"
            row.unknown += verdict.outcome == "unknown"
        row.false += verdict.outcome == "false"
        row.allowed += verdict.outcome == "allowed"
        if verdict.kind == "clean" and verdict.severity in ("high", "medium"):
            self.loud.append(verdict)

    def _sum(self, name: str) -> int:
        return sum(getattr(row, name) for row in self.rows.values())

    @property
    def counts(self) -> dict[str, int]:
        """The counts from which recall and precision follow."""
        return {name: self._sum(name) for name in ("planted", "found", "false")}

    @property
    def recall(self) -> float:
        """The share of planted faults that were found."""
        return self._sum("found") / max(1, self._sum("planted"))

    @property
    def precision(self) -> float:
        """The share of true findings, without those that are allowed."""
        true = self._sum("found")
        return true / max(1, true + self._sum("false"))

    def to_json(self) -> dict[str, Any]:
        return {
            "tables": self.tables,
            "recall": round(self.recall, 4),
            "precision": round(self.precision, 4),
            "loud_on_clean": len(self.loud),
            "rules": {
                name: {field_: getattr(self.rows[name], field_) for field_ in Row.__slots__}
                for name in sorted(self.rows, key=by_rule)
            },
        }


def by_rule(name: str) -> tuple[str, int]:
    """Return a sort key that puts A2 before A10."""
    letters = name.rstrip("0123456789")
    return letters, int(name[len(letters) :] or 0)
