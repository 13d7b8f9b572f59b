"""The findings of all rules, and what no rule can assess."""

from keyhop.report.facts import Absent, Facts
from keyhop.report.findings import Finding, worst_first
from keyhop.report.rules import collections, heat, indexes, keys, requests
from keyhop.report.rules.rule import REGISTERED

__all__ = ["RULES", "collections", "heat", "indexes", "judge", "keys", "not_assessed", "requests"]

RULES = sorted(REGISTERED, key=lambda rule: ("AHIE".index(rule.id[0]), int(rule.id[1:])))


def judge(facts: Facts) -> list[Finding]:
    """Return the findings of all rules, the worst first."""
    return worst_first([finding for rule in RULES for finding in rule(facts)])


ALWAYS = (
    "Missing access patterns: which questions will be asked of the table is not in the table.",
    "Whether an ADD that is sent again counts twice: nothing marks a repeated request.",
    "Whether consistent reads are meant: only what they cost is seen.",
    "Whether readers rely on time to live to hide expired items.",
    "Which transitions of a status are legal: one that goes back is a suspicion only.",
    "The account's other tables, with which its quotas are shared.",
)


def not_assessed(facts: Facts) -> tuple[str, ...]:
    """Return what this report cannot assess, with the reasons."""
    sentences = list(ALWAYS)
    if names := facts.table.vector_indexes:
        sentences.append(
            f"The vector indexes {', '.join(names)}: the report reads neither what SearchVectors "
            "finds in them, nor what they cost, nor whether anybody uses them."
        )
    if isinstance(facts.requests, Absent):
        sentences.append(
            "Reads of an index right after a write (A10), and what filters drop (A5): only the "
            "application's own requests show them (--requests FILE)."
        )
    if isinstance(facts.code, Absent):
        sentences.append(
            "Whether what a batch leaves undone is sent again (A14): only code shows it (--code "
            "DIR)."
        )
    return tuple(sentences)
