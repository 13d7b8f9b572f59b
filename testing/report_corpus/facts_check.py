"""What the rules say of tables that are declared by their Facts."""

from collections.abc import Iterable, Sequence

from keyhop.report.findings import SEVERITIES, Finding

from testing.report_corpus.facts_cases import Declared


def problems(declared: Declared, findings: Sequence[Finding]) -> Iterable[str]:
    """Sentences on what is not as it was declared."""
    said = {f"{one.id} {one.target}".strip(): one for one in findings}

    def status(rule: str) -> str:
        return said[rule].status if rule in said else "nothing"

    for rule in declared.found:
        if status(rule) != "found":
            yield f"{rule} is {status(rule)}, and was to be found"
    for rule in declared.clear:
        if status(rule) != "clear":
            yield f"{rule} is {status(rule)}, and was to be clear"
    for rule in declared.not_clear:
        if status(rule) == "clear":
            yield f"{rule} is clear, and nothing excludes its threshold"
    for rule in declared.not_found:
        if status(rule) == "found":
            yield f"{rule} is found, and nothing speaks for it"
    for rule, severity in declared.severity.items():
        if rule in said and said[rule].severity != severity:
            yield f"{rule} is {said[rule].severity}, and was to be {severity}"
    for rule, finding in said.items():
        expected = rule in declared.found or rule in declared.severity
        loud = SEVERITIES.index(finding.severity) <= SEVERITIES.index("medium")
        if finding.status == "found" and loud and not expected:
            yield f"{rule} is found, {finding.severity}: {finding.summary}"
        if finding.status == "unknown" and finding.price is None:
            yield f"{rule} is unknown, and does not say what knowing costs"
