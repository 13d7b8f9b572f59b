"""The check of the findings on tables that are declared by their Facts."""

from collections.abc import Iterable, Sequence

from keyhop.report.findings import SEVERITIES, Finding

from testing.report_corpus.facts_cases import Declared


def problems(declared: Declared, findings: Sequence[Finding]) -> Iterable[str]:
    """Yield a sentence for each finding that contradicts the declaration."""
    by_rule = {f"{finding.id} {finding.target}".strip(): finding for finding in findings}

    def status(rule: str) -> str:
        return by_rule[rule].status if rule in by_rule else "nothing"

    for rule in declared.found:
        if status(rule) != "found":
            yield f"{rule} is {status(rule)}, and should be found"
    for rule in declared.clear:
        if status(rule) != "clear":
            yield f"{rule} is {status(rule)}, and should be clear"
    for rule in declared.not_clear:
        if status(rule) == "clear":
            yield f"{rule} is clear, but its threshold may be exceeded"
    for rule in declared.not_found:
        if status(rule) == "found":
            yield f"{rule} is found without evidence"
    for rule, severity in declared.severity.items():
        if rule in by_rule and by_rule[rule].severity != severity:
            yield f"{rule} is {by_rule[rule].severity}, and should be {severity}"
    for rule, finding in by_rule.items():
        is_expected = rule in declared.found or rule in declared.severity
        is_loud = SEVERITIES.index(finding.severity) <= SEVERITIES.index("medium")
        if finding.status == "found" and is_loud and not is_expected:
            yield f"{rule} is found, {finding.severity}: {finding.summary}"
        if finding.status == "unknown" and finding.price is None:
            yield f"{rule} is unknown, without the price of an answer"
