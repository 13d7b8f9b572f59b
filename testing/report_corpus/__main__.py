"""Run the report on each table of a part of the corpus, and print the confusion matrix.

python -m testing.report_corpus [--only PART] [--named TEXT] [--write]
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from testing.report_corpus.matrix import Matrix, settled
from testing.report_corpus.published import page, wrong
from testing.report_corpus.run import Result, run
from testing.report_corpus.tables.all import OWN, PARTS, every

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
JSON, PAGE = DOCS / "report-corpus.json", DOCS / "internals" / "report-corpus.md"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name} and {JSON.name}")
    parser.add_argument("--only", default=OWN, choices=PARTS, help="the part of the corpus")
    parser.add_argument("--named", default="", help="tables whose name contains this")
    options = parser.parse_args()
    cases = [case for case in every(options.only) if options.named in case.name]
    began = time.monotonic()
    result = run(cases)
    print(summary(result))
    print(f"{len(cases)} tables in {time.monotonic() - began:.0f} s")
    if options.write:
        figures = json.loads(JSON.read_bytes())
        figures[options.only] = result.matrix.to_json() | {
            "kinds": dict(sorted(Counter(case.kind for case in cases).items())),
            "wrong": wrong(result.verdicts),
            **_settled(options.only, result),
        }
        JSON.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(page(figures), encoding="utf-8")
    return 1 if result.failures else 0


def _settled(part: str, result: Result) -> dict[str, Any]:
    """Return the counts after a third reader has settled disputes; nothing if there was none."""
    file = Path(__file__).parent / "others" / f"{part}_settled.json"
    if not file.exists():
        return {}
    return {"settled": Matrix.of([settled(result.verdicts, json.loads(file.read_bytes()))]).counts}


def summary(result: Result) -> str:
    """Return the wrong verdicts, the failures and the counts."""
    outcomes = ("missed", "unknown", "false")
    lines = [str(verdict) for verdict in result.verdicts if verdict.outcome in outcomes]
    lines += [f"failed  {name}: {error!r}" for name, error in result.failures.items()]
    lines.append(f"{'rule':6} planted found missed unknown false allowed")
    for rule, row in result.matrix.to_json()["rules"].items():
        lines.append(
            f"{rule:6} {row['planted']:7} {row['found']:5} {row['missed']:6} {row['unknown']:7} "
            f"{row['false']:5} {row['allowed']:7}"
        )
    matrix = result.matrix
    lines.append(
        f"recall {matrix.recall:.3f}, precision {matrix.precision:.3f}, "
        f"{len(matrix.loud)} loud on clean tables"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
