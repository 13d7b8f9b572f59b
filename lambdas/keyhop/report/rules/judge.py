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
    "Missing access patterns: the table does not show which queries your application will need.",
    "Whether an ADD that is retried counts twice: nothing marks a request as a retry.",
    "Whether consistent reads are intended: the report sees only their cost.",
    "Whether readers rely on time to live to hide expired items.",
    "Which changes of a status are allowed: a status that goes back is only a suspicion.",
    "The account's other tables, which share its quotas.",
)


def not_assessed(facts: Facts) -> tuple[str, ...]:
    """Return what this report cannot assess, with the reasons."""
    sentences = list(ALWAYS)
    if names := facts.table.vector_indexes:
        sentences.append(
            f"The vector indexes {', '.join(names)}: the report does not see what SearchVectors "
            "returns from them, what they cost, or whether they are used."
        )
    if isinstance(facts.requests, Absent):
        sentences.append(
            "Reads of an index right after a write (A10), and the items that filters drop (A5): "
            "only a record of the application's requests shows them (--requests FILE)."
        )
    if isinstance(facts.code, Absent):
        sentences.append(
            "Whether the unprocessed items of a batch are sent again (A14): only the application's "
            "code shows it (--code DIR)."
        )
    return tuple(sentences)
