"""Draw docs/report.svg, a picture of a report: `python -m docs.draw_report REPORT.json`.

REPORT.json is the output of `keyhop report TABLE --format json`. The charts are drawn by the same
code as those of a report's page.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "lambdas")]

from keyhop.report import figures  # noqa: E402
from keyhop.report.pages.markup import Markup, number, tag  # noqa: E402
from keyhop.report.pages.pictures import (  # noqa: E402
    PICTURES,
    Picture,
    key_map,
    lorenz,
    path,
    rect,
    resolved,
    sizes,
    text,
)
from keyhop.report.pages.text import fitting, keys_of, sentence  # noqa: E402

PICTURE = ROOT / "docs" / "report.svg"

WIDTH, MARGIN = 960, 28
MOST = 8
"""The maximum number of findings, more than a usual report has."""
ROW = 27
GAP = 26
SIZE_OF_LETTER = 7.0
"""The mean width of a letter at 13 px in the widest of the usual fonts."""
LETTERS = (
    ".kh-1h{font-size:24px;font-weight:700}.kh-13{font-size:13px}"
    ".kh-id{font-size:13px;font-weight:700}"
)


def main(words: list[str]) -> None:
    """Write the picture."""
    if len(words) != 1:
        raise SystemExit("usage: python -m docs.draw_report REPORT.json")
    document = json.loads(Path(words[0]).read_text(encoding="utf-8"))
    PICTURE.write_text(f"{poster(document)}\n", encoding="utf-8")


def poster(document: Mapping[str, Any]) -> Markup:
    """Draw a ReportJson in one picture: header, findings, key map, sizes, Lorenz curve."""
    parts = [*_head(document)]
    findings = [finding for finding in document["findings"] if finding["status"] == "found"]
    y = 96.0
    for finding in findings[:MOST]:
        parts += _finding(finding, y)
        y += ROW
    if len(findings) > MOST:
        parts.append(text(MARGIN + 12, y + 17, f"and {len(findings) - MOST} more", "kh-s"))
        y += ROW
    pictures, y = _pictures(document["pictures"], y + 18)
    parts += pictures
    words = f"Key report of {document['table'].get('name', '')}"
    dark = f"@media(prefers-color-scheme:dark){{{resolved(PICTURES, 'dark')}}}"
    styles = tag("style", Markup(resolved(PICTURES, "light") + dark + LETTERS))
    box = f"0 0 {WIDTH} {number(y)}"
    paper = rect(0, 0, WIDTH, y, "kh-paper")
    svg = tag("svg", tag("title", words), styles, paper, parts, view_box=box, class_="kh-svg")
    return Markup(svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg" role="img"', 1))


def _head(document: Mapping[str, Any]) -> Iterator[Markup]:
    table, spent = document["table"], document["spent"]
    keys = document["estimates"].get("keys")
    facts = [
        figures.size(table["bytes"]) if table.get("bytes") is not None else "",
        f"{figures.count(table['items'])} items" if table.get("items") is not None else "",
        keys_of(keys) if keys else "",
    ]
    yield text(MARGIN, 44, str(table.get("name", "")), "kh-t kh-1h")
    yield text(MARGIN, 70, " · ".join(fact for fact in facts if fact), "kh-t kh-13")
    cost = f"spent: {figures.units(spent['rru'])} RRU, {figures.dollars(spent['dollars'])}"
    yield text(WIDTH - MARGIN, 70, cost, "kh-s kh-13", "end")
    yield path(f"M{MARGIN} 84H{WIDTH - MARGIN}", "kh-a")


def _finding(finding: Mapping[str, Any], y: float) -> Iterator[Markup]:
    """Draw a bar in the colour of the severity, the rule, the sentence, and the patterns."""
    colour = f"kh-{finding['severity']}"
    patterns = finding["advice"]["patterns"] if finding["advice"] else []
    end = f"→ {', '.join(patterns)}" if patterns else ""
    room = (WIDTH - 2 * MARGIN - 130 - 8 * len(end)) / SIZE_OF_LETTER
    yield rect(MARGIN, y + 4, 3, ROW - 8, colour)
    yield text(MARGIN + 12, y + 18, finding["severity"].capitalize(), f"{colour} kh-id")
    yield text(MARGIN + 80, y + 18, finding["id"], "kh-s kh-13")
    yield text(
        MARGIN + 116,
        y + 18,
        fitting(sentence(finding["target"], finding["summary"]), int(room)),
        "kh-t kh-13",
    )
    if end:
        yield text(WIDTH - MARGIN, y + 18, end, "kh-t kh-id", "end")


def _pictures(data: Mapping[str, Any], y: float) -> tuple[list[Markup], float]:
    """Draw the key map with the other charts on its right; without a map, all side by side."""
    right: list[Picture] = []
    if "sizes" in data:
        right.append(sizes(data["sizes"], 400))
    if "lorenz" in data:
        right.append(lorenz(data["lorenz"], 400))
    if "key_map" not in data:
        placed = [_placed(picture, MARGIN + 480 * at, y) for at, picture in enumerate(right)]
        tallest = max((picture.height for picture in right), default=0.0)
        return placed, y + (tallest + GAP + 16 if right else 0)
    tall = sum(picture.height for picture in right) + GAP * max(0, len(right) - 1)
    beside = bool(right)
    map_ = key_map(data["key_map"], 480 if beside else WIDTH - 2 * MARGIN, max(tall, 280))
    placed, top = [_placed(map_, MARGIN, y)], y
    for picture in right:
        placed.append(_placed(picture, WIDTH - MARGIN - picture.width, top))
        top += picture.height + GAP
    return placed, y + map_.height + 34


def _placed(picture: Picture, x: float, y: float) -> Markup:
    heading = text(0, 6, picture.title, "kh-t kh-b kh-13")
    parts = tag("g", picture.parts, transform="translate(0 14)")
    inner = tag("g", tag("title", picture.title), tag("desc", picture.desc), heading, parts)
    return Markup(inner.replace("<g>", f'<g transform="translate({number(x)} {number(y)})">', 1))


if __name__ == "__main__":
    main(sys.argv[1:])
