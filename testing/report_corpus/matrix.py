"""What a report said of the corpus, held against what is there. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from keyhop.report.findings import SEVERITIES, Finding

from testing.report_corpus.case import Case, Rule

Outcome = Literal["found", "missed", "unknown", "false", "allowed"]
LOW = SEVERITIES.index("low")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a report said of one rule in one table, where that counts. told: its sentence."""

    case: str
    kind: str
    rule: Rule
    outcome: Outcome
    severity: str = ""
    told: str = ""
    why: str = ""

    def __str__(self) -> str:
        rule = " ".join(self.rule).strip()
        return f"{self.outcome:7} {rule} [{self.severity}] of {self.case!r}: {self.told}"


def verdicts(case: Case, findings: Sequence[Finding]) -> list[Verdict]:
    """Of all that was to be found, and all that was.

    An expected finding counts for its target alone. What is allowed may be found up to low; what
    was expected to be found and is unknown counts as missed, and is told apart.
    """
    said: dict[Rule, Finding] = {(one.id, one.target): one for one in findings}
    result = []
    for rule in sorted(case.found):
        finding = said.get(rule)
        status = finding.status if finding is not None else "clear"
        outcome: Outcome = (
            "found" if status == "found" else "unknown" if status == "unknown" else "missed"
        )
        result.append(_verdict(case, rule, outcome, finding))
    for rule, finding in sorted(said.items()):
        if finding.status != "found" or rule in case.found:
            continue
        is_low = SEVERITIES.index(finding.severity) >= LOW
        if finding.id in case.allowed and is_low:
            result.append(_verdict(case, rule, "allowed", finding, case.allowed[finding.id]))
        else:
            result.append(_verdict(case, rule, "false", finding, case.traps.get(rule, "")))
    return result


def settled(told: Iterable[Verdict], settlements: Iterable[Mapping[str, str]]) -> list[Verdict]:
    """Return the verdicts as a third reader has settled those that are not as declared.

    The reader sees the table, and neither the declaration nor the report. "yes" means that the rule
    applies, "no" that it does not, and "either" that a finding would be neither right nor wrong.
    """
    by_rule = {(one["table"], one["rule"]): one["verdict"] for one in settlements}
    result = []
    for one in told:
        answer = by_rule.get((one.case, " ".join(one.rule).strip()), "")
        if one.outcome == "false" and answer in ("yes", "either"):
            result.append(replace(one, outcome="found" if answer == "yes" else "allowed"))
        elif one.outcome not in ("missed", "unknown") or answer not in ("no", "either"):
            result.append(one)
    return result


def _verdict(
    case: Case, rule: Rule, outcome: Outcome, finding: Finding | None, why: str = ""
) -> Verdict:
    if finding is None:
        return Verdict(case.name, case.kind, rule, outcome, "", "nothing is said", why)
    return Verdict(case.name, case.kind, rule, outcome, finding.severity, finding.summary, why)


@dataclass(slots=True)
class Row:
    """Of one rule. unknown: of the missed ones, those that were said to be unknown."""

    planted: int = 0
    found: int = 0
    missed: int = 0
    unknown: int = 0
    false: int = 0
    allowed: int = 0


@dataclass(slots=True)
class Matrix:
    """Sums over all tables. loud: findings at or above medium on clean tables."""

    rows: dict[str, Row] = field(default_factory=dict)
    loud: list[Verdict] = field(default_factory=list)
    tables: int = 0

    @classmethod
    def of(cls, tables: Iterable[Sequence[Verdict]]) -> "Matrix":
        matrix = cls()
        for verdict_list in tables:
            matrix.tables += 1
            for one in verdict_list:
                matrix._count(one)
        return matrix

    def _count(self, one: Verdict) -> None:
        row = self.rows.setdefault(one.rule[0], Row())
        if one.outcome in ("found", "missed", "unknown"):
            row.planted += 1
            row.found += one.outcome == "found"
            row.missed += one.outcome != "found"
            row.unknown += one.outcome == "unknown"
        row.false += one.outcome == "false"
        row.allowed += one.outcome == "allowed"
        if one.kind == "clean" and one.severity in ("high", "medium"):
            self.loud.append(one)

    def _sum(self, name: str) -> int:
        return sum(getattr(row, name) for row in self.rows.values())

    @property
    def counts(self) -> dict[str, int]:
        """What recall and precision are made of."""
        return {name: self._sum(name) for name in ("planted", "found", "false")}

    @property
    def recall(self) -> float:
        """Of what was planted, the share that was found."""
        return self._sum("found") / max(1, self._sum("planted"))

    @property
    def precision(self) -> float:
        """Of what was found, and is not allowed either way, the share that was planted."""
        found = self._sum("found")
        return found / max(1, found + self._sum("false"))

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
    """A2 before A10."""
    letters = name.rstrip("0123456789")
    return letters, int(name[len(letters) :] or 0)
