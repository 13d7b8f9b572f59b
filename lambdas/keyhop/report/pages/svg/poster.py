"""A report in one picture, for a document: header, findings, key map, sizes, Lorenz curve. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from keyhop.report import figures
from keyhop.report.pages.colours import PICTURES, resolved
from keyhop.report.pages.markup import Markup, number, tag
from keyhop.report.pages.svg.key_map import key_map
from keyhop.report.pages.svg.lorenz import lorenz
from keyhop.report.pages.svg.parts import Picture, path, rect, text
from keyhop.report.pages.svg.sizes import sizes
from keyhop.report.pages.text import fitting, keys_of, sentence

WIDTH, MARGIN = 960, 28
MOST = 8
"""Findings: all of a usual report."""
ROW = 27
GAP = 26
SIZE_OF_LETTER = 7.0
"""Mean width of a letter at 13 px, of the widest of the usual fonts."""


def poster(document: Mapping[str, Any]) -> Markup:
    """Of a ReportJson; light, as the pictures of documents are."""
    parts = [*_head(document)]
    found = [one for one in document["findings"] if one["status"] == "found"]
    y = 96.0
    for one in found[:MOST]:
        parts += _finding(one, y)
        y += ROW
    if len(found) > MOST:
        parts.append(text(MARGIN + 12, y + 17, f"and {len(found) - MOST} more", "kh-s"))
        y += ROW
    drawn, y = _pictures(document["pictures"], y + 18)
    parts += drawn
    words = f"Key report of {document['table'].get('name', '')}"
    styles = tag("style", Markup(resolved(PICTURES, "light") + LETTERS))
    box = f"0 0 {WIDTH} {number(y)}"
    paper = rect(0, 0, WIDTH, y, "kh-paper")
    whole = tag("svg", tag("title", words), styles, paper, parts, view_box=box, class_="kh-svg")
    return Markup(whole.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg" role="img"', 1))


LETTERS = (
    ".kh-1h{font-size:24px;font-weight:700}.kh-13{font-size:13px}"
    ".kh-id{font-size:13px;font-weight:700}"
)


def _head(document: Mapping[str, Any]) -> Iterator[Markup]:
    told, spent = document["table"], document["spent"]
    keys = document["estimates"].get("keys")
    facts = [
        figures.size(told["bytes"]) if told.get("bytes") is not None else "",
        f"{figures.count(told['items'])} items" if told.get("items") is not None else "",
        keys_of(keys) if keys else "",
    ]
    yield text(MARGIN, 44, str(told.get("name", "")), "kh-t kh-1h")
    yield text(MARGIN, 70, " · ".join(one for one in facts if one), "kh-t kh-13")
    cost = f"spent: {figures.units(spent['rru'])} RRU, {figures.dollars(spent['dollars'])}"
    yield text(WIDTH - MARGIN, 70, cost, "kh-s kh-13", "end")
    yield path(f"M{MARGIN} 84H{WIDTH - MARGIN}", "kh-a")


def _finding(one: Mapping[str, Any], y: float) -> Iterator[Markup]:
    """A bar of its severity's colour, its rule, the sentence, and the patterns that help."""
    colour = f"kh-{one['severity']}"
    patterns = one["advice"]["patterns"] if one["advice"] else []
    end = f"→ {', '.join(patterns)}" if patterns else ""
    room = (WIDTH - 2 * MARGIN - 130 - 8 * len(end)) / SIZE_OF_LETTER
    yield rect(MARGIN, y + 4, 3, ROW - 8, colour)
    yield text(MARGIN + 12, y + 18, one["severity"].capitalize(), f"{colour} kh-id")
    yield text(MARGIN + 80, y + 18, one["id"], "kh-s kh-13")
    yield text(
        MARGIN + 116,
        y + 18,
        fitting(sentence(one["target"], one["summary"]), int(room)),
        "kh-t kh-13",
    )
    if end:
        yield text(WIDTH - MARGIN, y + 18, end, "kh-t kh-id", "end")


def _pictures(data: Mapping[str, Any], y: float) -> tuple[list[Markup], float]:
    """The key map to the left and the others beside it; without a map two abreast."""
    right: list[Picture] = []
    if "sizes" in data:
        right.append(sizes(data["sizes"], 400))
    if "lorenz" in data:
        right.append(lorenz(data["lorenz"], 400))
    if "key_map" not in data:
        placed = [_placed(one, MARGIN + 480 * at, y) for at, one in enumerate(right)]
        most = max((one.height for one in right), default=0.0)
        return placed, y + (most + GAP + 16 if right else 0)
    tall = sum(one.height for one in right) + GAP * max(0, len(right) - 1)
    beside = bool(right)
    map_ = key_map(data["key_map"], 480 if beside else WIDTH - 2 * MARGIN, max(tall, 280))
    placed, top = [_placed(map_, MARGIN, y)], y
    for one in right:
        placed.append(_placed(one, WIDTH - MARGIN - one.width, top))
        top += one.height + GAP
    return placed, y + map_.height + 34


def _placed(one: Picture, x: float, y: float) -> Markup:
    heading = text(0, 6, one.title, "kh-t kh-b kh-13")
    inner = tag("g", tag("title", one.title), tag("desc", one.desc), heading, one.at(0, 14))
    return Markup(inner.replace("<g>", f'<g transform="translate({number(x)} {number(y)})">', 1))
