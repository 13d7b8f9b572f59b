"""The confusion matrix as the document shows it. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from testing.report_corpus.matrix import Verdict

HEAD = """# What the report finds, and what it only seems to

A report is held against {tables} tables with known faults, without any, and with what only looks
like one. `python -m testing.report_corpus --write` makes them, runs the report on each, and writes
this page; the figures are in `report-corpus.json`.

{kinds}

CloudWatch, Contributor Insights and the stream are stand-ins that answer as AWS documents: they
hold what each table has planted. The request sampler watches a small application, which works on
DynamoDB Local. A few tables of gigabytes are served by the stand-in database, which makes their
items as they are read.

**Recall {recall:.1%}**: of {planted} planted faults {found} are found.
**Precision {precision:.1%}**:
of {reported} findings {false} are false. On clean tables {loud} findings are medium or high.

A planted fault that the report calls unknown counts as missed. A few findings are neither right
nor wrong, as dense numbers that may be natural ones: they are allowed, up to low, and count for
nothing.

| rule | planted | found | missed | of these unknown | false | allowed |
|---|---|---|---|---|---|---|
"""


def page(figures: Mapping[str, Any], wrong: Sequence[Mapping[str, str]]) -> str:
    """docs/internals/report-corpus.md, of what is in report-corpus.json."""
    rows = figures["rules"]
    total = {
        name: sum(row[name] for row in rows.values()) for name in ("planted", "found", "false")
    }
    text = HEAD.format(
        tables=figures["tables"],
        kinds=_kinds(figures["kinds"]),
        recall=figures["recall"],
        precision=figures["precision"],
        planted=total["planted"],
        found=total["found"],
        reported=total["found"] + total["false"],
        false=total["false"],
        loud=figures["loud_on_clean"] or "no",
    )
    names = ("planted", "found", "missed", "unknown", "false", "allowed")
    for rule, row in rows.items():
        text += f"| {rule} | {' | '.join(str(row[name] or '') for name in names)} |\n"
    if wrong:
        text += "\n## What goes wrong\n\n"
        for one in wrong:
            text += f"- {one['outcome']} {one['rule']}, {one['case']}: {one['told']}\n"
    return text


def _kinds(kinds: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in kinds.items()) + "."


def wrong(verdicts: Sequence[Verdict]) -> list[dict[str, str]]:
    """What was missed, or false."""
    return [
        {
            "outcome": one.outcome,
            "rule": " ".join(one.rule).strip(),
            "case": one.case,
            "told": one.told,
        }
        for one in verdicts
        if one.outcome in ("missed", "unknown", "false")
    ]
