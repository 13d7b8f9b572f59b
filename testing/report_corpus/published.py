"""The page of the documentation with the confusion matrices."""

from collections.abc import Mapping, Sequence
from typing import Any

from keyhop.scan.statistics import proportion_limits

from testing.report_corpus.matrix import Verdict
from testing.report_corpus.tables.all import OWN, PARTS

HEAD = """# What the report finds, and what it only seems to

A report is held against {tables} tables with known faults, without any, and with what only looks
like one. `python -m testing.report_corpus --write` makes them, runs the report on each, and writes
this page; the figures are in `report-corpus.json`.

{kinds}

CloudWatch, Contributor Insights and the stream are stand-ins that answer as AWS documents: they
hold what each table has planted. The request sampler watches a small application, which works on
DynamoDB Local. A few tables of gigabytes are served by the stand-in database, which makes their
items as they are read.

{sums}

A planted fault that the report calls unknown counts as missed. A few findings are neither right
nor wrong, as dense numbers that may be natural ones: they are allowed, up to low, and count for
nothing.
"""
OTHERS = """
# Tables that others declared: {part}

The first tables were declared by people who know the rules. These {tables} tables were declared by
somebody who knew the title and the meaning of each rule, but neither its thresholds nor its code.
`python -m testing.report_corpus --only {part} --write` runs the report on them.

{kinds}

These are **tables for development**: the rules were improved on them, so the figures show how well
the report knows these tables, and not how well it will do on others. Only tables that are closed
until the rules are finished measure that.

{sums}
"""
PUBLISHED = """
# Tables with published schemas: {part}

These {tables} tables have the keys and indexes of schemas that others have published, such as
Terraform's locks and the examples of ElectroDB. Somebody who knew the title and the meaning of each
rule, but neither its thresholds nor its code, said which rules apply. The rules were improved on
them. `python -m testing.report_corpus --only {part} --write` runs the report on them.

{kinds}

{sums}
"""
BEFORE = """
Before the rules were improved on them, nobody who works on the rules had seen these tables:

{sums}
"""
CLOSED = """
# Tables that nobody who works on the rules has seen: {part}

These {tables} tables were declared by others, too. They were closed until the rules were finished,
so **these figures show how well the report does on tables that it has never seen**.
`python -m testing.report_corpus --only {part} --write` runs the report on them.

{kinds}

{sums}
"""
HEADS = {OWN: HEAD, "public": PUBLISHED, "fifth": OTHERS}
"""The heads of the parts; other parts are closed to those who work on the rules."""
UNSEEN = "{}_unseen"
"""The counts of a part before the rules were improved on it, in report-corpus.json."""
SETTLED = """
After a third reader, who saw the tables and neither their declarations nor a report, had settled
the disputes (`testing/report_corpus/others/{part}_settled.json` has each with its reason):

{sums}
"""
TABLE = """
| rule | planted | found | missed | of these unknown | false | allowed |
|---|---|---|---|---|---|---|
"""
NAMES = ("planted", "found", "missed", "unknown", "false", "allowed")


def page(figures: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page of the corpus, from the figures of each part in report-corpus.json."""
    return "".join(
        _part(HEADS.get(part, CLOSED), part, figures[part], figures.get(UNSEEN.format(part)))
        for part in PARTS
        if part in figures
    )


def _part(
    head: str, part: str, figures: Mapping[str, Any], unseen: Mapping[str, int] | None
) -> str:
    rows = figures["rules"]
    total = {name: sum(row[name] for row in rows.values()) for name in NAMES}
    text = head.format(
        part=part, tables=figures["tables"], kinds=_kinds(figures["kinds"]), sums=_sums(total)
    )
    text += _after_a_reader(part, figures)
    if unseen is not None:
        text += BEFORE.format(sums=_sums(unseen)) + _after_a_reader(part, unseen)
    text += f"\nOn clean tables {figures['loud_on_clean'] or 'no'} findings are medium or high.\n"
    text += TABLE
    for rule, row in rows.items():
        text += f"| {rule} | {' | '.join(str(row[name] or '') for name in NAMES)} |\n"
    if figures["wrong"]:
        text += "\n## What goes wrong\n\n" if part == OWN else f"\n## What goes wrong in {part}\n\n"
        for entry in figures["wrong"]:
            text += f"- {entry['outcome']} {entry['rule']}, {entry['case']}: {entry['told']}\n"
    return text


def _after_a_reader(part: str, figures: Mapping[str, Any]) -> str:
    if "settled" not in figures:
        return ""
    return SETTLED.format(part=part, sums=_sums(figures["settled"]))


def _sums(total: Mapping[str, int]) -> str:
    found, planted, false = total["found"], total["planted"], total["false"]
    return (
        f"**Recall {_share(found, planted)}**: of {planted} planted faults {found} are found.\n"
        f"**Precision {_share(found, found + false)}**: of {found + false} findings {false} are "
        f"false.\nThe intervals are of 95 % (Clopper and Pearson)."
    )


def _share(count: int, n: int) -> str:
    low, high = proportion_limits(count, n)
    return f"{count / max(1, n):.1%} [{low:.1%}, {high:.1%}]"


def _kinds(kinds: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in kinds.items()) + "."


def wrong(verdicts: Sequence[Verdict]) -> list[dict[str, str]]:
    """Return the entries of report-corpus.json for missed faults and false findings."""
    return [
        {
            "outcome": verdict.outcome,
            "rule": " ".join(verdict.rule).strip(),
            "case": verdict.case,
            "told": verdict.sentence,
        }
        for verdict in verdicts
        if verdict.outcome in ("missed", "unknown", "false")
    ]
