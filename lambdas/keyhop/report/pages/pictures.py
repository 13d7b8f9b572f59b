"""The pictures of a report as SVG, with their colours: no script, no reference and no id.

CloudWatch removes script, use and iframe from a widget's HTML, and keeps SVG and CSS
(docs.aws.amazon.com, AmazonCloudWatch, add_custom_widget_dashboard_security). Hatching is a path
instead of a pattern, because a pattern needs an id, which two pictures of a page would share.

The styles name a colour as var(--ink). `resolved` replaces the names by values, for a picture in a
document and for a widget, whose theme is an argument.
"""

import math
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from keyhop.report import figures
from keyhop.report.pages.markup import Markup, number, tag
from keyhop.wording import counted

Scale = Callable[[float], float]
Theme = Literal["light", "dark"]

LEVELS = (0.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""The write units a second from which a colour begins; a partition accepts the last of them."""
QUANTILES = {0.5: "median", 0.9: "p90", 0.99: "p99", 1.0: "largest seen"}
SMALLEST = 1e-9
"""The minimum of logarithmic scales: half of the smallest float is 0."""

LIGHT: Final[Mapping[str, str]] = {
    "paper": "#ffffff",
    "panel": "#f7f8fa",
    "ink": "#1f2933",
    "soft": "#52606d",
    "rule": "#d9dee4",
    "grid": "#e9ecf0",
    "data": "#1b7f5a",
    "band": "#bfe0d1",
    "high": "#b3261e",
    "medium": "#9a5a12",
    "low": "#2b62a3",
    "info": "#5b6672",
    "unknown": "#6b5b95",
    "clear": "#1b7f5a",
    "h0": "#e6f1ec",
    "h1": "#c3e0d3",
    "h2": "#8fc8ae",
    "h3": "#55a884",
    "h4": "#1b7f5a",
    "h5": "#0d4f38",
    "h6": "#c8102e",
}
DARK: Final[Mapping[str, str]] = {
    "paper": "#14191e",
    "panel": "#1c2329",
    "ink": "#e6eaee",
    "soft": "#a3afba",
    "rule": "#333d47",
    "grid": "#262f37",
    "data": "#4cc093",
    "band": "#23513f",
    "high": "#ff8a80",
    "medium": "#f0b060",
    "low": "#86b7f0",
    "info": "#a9b4bf",
    "unknown": "#c0aee8",
    "clear": "#4cc093",
    "h0": "#1a2b26",
    "h1": "#1d4034",
    "h2": "#1f5c47",
    "h3": "#2a8263",
    "h4": "#4cc093",
    "h5": "#c4f5dd",
    "h6": "#ff5a52",
}
PALETTES: Final[Mapping[Theme, Mapping[str, str]]] = {"light": LIGHT, "dark": DARK}

PICTURES: Final = """
.kh-svg{font:11px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:var(--ink)}
.kh-t{fill:var(--ink)}.kh-s{fill:var(--soft)}.kh-b{font-weight:600}
.kh-g{stroke:var(--grid);fill:none}.kh-a{stroke:var(--rule);fill:none}
.kh-d{fill:var(--data)}.kh-l{stroke:var(--data);fill:none;stroke-width:1.8}
.kh-w{stroke:var(--ink);fill:none;stroke-width:1.4}.kh-m{stroke:var(--high);fill:none}
.kh-mt{fill:var(--high)}.kh-band{fill:var(--band)}
.kh-hatch{stroke:var(--medium);fill:none;stroke-width:.9;opacity:.75}.kh-ht{fill:var(--medium)}
.kh-zone{fill:var(--panel);stroke:none}.kh-cells path{stroke-width:1.04}
.kh-cells .kh-0{stroke:var(--h0)}.kh-cells .kh-1{stroke:var(--h1)}
.kh-cells .kh-2{stroke:var(--h2)}.kh-cells .kh-3{stroke:var(--h3)}
.kh-cells .kh-4{stroke:var(--h4)}.kh-cells .kh-5{stroke:var(--h5)}
.kh-cells .kh-6{stroke:var(--h6)}
.kh-0{fill:var(--h0)}.kh-1{fill:var(--h1)}.kh-2{fill:var(--h2)}.kh-3{fill:var(--h3)}
.kh-4{fill:var(--h4)}.kh-5{fill:var(--h5)}.kh-6{fill:var(--h6)}
.kh-halo{paint-order:stroke;stroke:var(--paper);stroke-width:3.5px;stroke-linejoin:round}
.kh-high{fill:var(--high)}.kh-medium{fill:var(--medium)}
.kh-low{fill:var(--low)}.kh-info{fill:var(--info)}.kh-unknown{fill:var(--unknown)}
.kh-paper{fill:var(--paper)}
"""
"""The styles of the pictures, which are the same on the page, in a widget and in the documents."""


def variables(theme: Theme) -> str:
    """Return the colours as declarations for the page's root, such as `--paper:#ffffff;`."""
    return "".join(f"--{name}:{value};" for name, value in PALETTES[theme].items())


def resolved(styles: str, theme: Theme) -> str:
    """Return the styles with values in place of the names of colours."""
    palette = PALETTES[theme]
    return re.sub(r"var\(--(\w+)\)", lambda match: palette[match[1]], styles)


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture in a box of width by height.

    Attributes:
        title: Its title.
        desc: What it shows, for a reader who cannot see it.
    """

    title: str
    desc: str
    width: float
    height: float
    parts: tuple[Markup, ...]

    def svg(self) -> Markup:
        """Return the picture as an element."""
        box = f"0 0 {number(self.width)} {number(self.height)}"
        words = (tag("title", self.title), tag("desc", self.desc))
        return tag("svg", words, self.parts, view_box=box, role="img", class_="kh-svg")


def key_map(data: Mapping[str, Any], width: float = 400, height: float = 260) -> Picture:
    """Draw a KeyMap: the write units a second by hash place and time, with one path per colour."""
    left, top, bottom = 30, 8, 44
    x_step = (width - left - 6) / data["columns"]
    y_step = (height - top - bottom) / data["rows"]
    right, foot = left + data["columns"] * x_step, top + data["rows"] * y_step
    place = f"translate({left} {top}) scale({x_step:.4f} {y_step:.4f})"
    parts = [
        rect(left, top, right - left, foot - top, "kh-zone"),
        tag("g", _cells(data["cells"]), class_="kh-cells", transform=place),
    ]
    for share, words in ((0, "0"), (0.5, "½"), (1, "1")):
        y = top + share * (foot - top)
        parts.append(text(left - 5, y + 4 - 4 * (share - 0.5), words, "kh-s", "end"))
    middle = (top + foot) / 2
    turn = f"rotate(-90 9 {number(middle)})"
    parts.append(
        tag(
            "text", "hash place", x=9, y=middle, class_="kh-s", text_anchor="middle", transform=turn
        )
    )
    seconds = data["columns"] * data["column_seconds"]
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        words = _time(data["began"] + share * seconds, with_day=share == 0)
        parts.append(text(left + share * (right - left), foot + 13, words, "kh-s", anchor))
    step = min(44.0, (width - left - 110) / len(LEVELS))
    for level, minimum in enumerate(LEVELS):
        x = left + level * step
        class_ = "kh-mt kh-b" if level == len(LEVELS) - 1 else "kh-s"
        words = f"{minimum:,.0f}" if level else "0"
        parts.append(rect(x, height - 22, step - 1, 7, f"kh-{level}"))
        parts.append(text(x, height - 4, words, class_))
    parts.append(text(left + len(LEVELS) * step + 6, height - 15, "WCU/s", "kh-s"))
    return Picture("Key map", _description(data), width, height, tuple(parts))


def coarse(data: Mapping[str, Any], columns: int, rows: int) -> dict[str, Any]:
    """Return a KeyMap with fewer cells, for a small picture.

    A cell has the maximum of the cells that it replaces, so hot places stay hot.
    """
    across = math.ceil(data["columns"] / columns)
    down = math.ceil(data["rows"] / rows)
    cells: dict[tuple[int, int], float] = defaultdict(float)
    for x, y, units in data["cells"]:
        if units:
            place = int(x) // across, int(y) // down
            cells[place] = max(cells[place], units)
    return {
        "began": data["began"],
        "column_seconds": data["column_seconds"] * across,
        "columns": math.ceil(data["columns"] / across),
        "rows": math.ceil(data["rows"] / down),
        "cells": [[x, y, units] for (x, y), units in sorted(cells.items())],
    }


def _cells(cells: Iterable[Sequence[float]]) -> list[Markup]:
    """Draw the cells in units of cells.

    A run of neighbours of one colour in a column is one stroke, as wide as a column: so thousands
    of cells take a few bytes each.
    """
    by_level: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for x, y, units in cells:
        if units:
            level = max(level for level, minimum in enumerate(LEVELS) if units >= minimum)
            by_level[level].append((int(x), int(y)))
    paths = []
    for level, places in sorted(by_level.items()):
        d, column, foot = "", -1, 0
        for x, y, length in _runs(sorted(places)):
            start = f"m0 {y - foot}" if x == column else f"M{x}.5 {y}"
            d += f"{start}v{length}"
            column, foot = x, y + length
        paths.append(path(d, f"kh-{level}"))
    return paths


def _runs(places: Iterable[tuple[int, int]]) -> list[tuple[int, int, int]]:
    runs: list[tuple[int, int, int]] = []
    for x, y in places:
        if runs and runs[-1][0] == x and runs[-1][1] + runs[-1][2] == y:
            runs[-1] = (x, runs[-1][1], runs[-1][2] + 1)
        else:
            runs.append((x, y, 1))
    return runs


def _time(at: float, with_day: bool) -> str:
    try:
        moment = datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return f"{moment:%Y-%m-%d %H:%M} UTC" if with_day else f"{moment:%H:%M}"


def _description(data: Mapping[str, Any]) -> str:
    cells = [cell for cell in data["cells"] if cell[2]]
    if not cells:
        return "No writes were seen."
    column, row, maximum = max(cells, key=lambda cell: cell[2])
    place = (row + 0.5) / data["rows"]
    minute = column * data["column_seconds"] / 60
    full = sum(cell[2] >= LEVELS[-1] for cell in cells)
    return (
        f"Write units a second by hash place and time, over "
        f"{counted(data['columns'] * data['column_seconds'] / 60, 'minute')}. The most is "
        f"{figures.count(maximum)} at place {place:.2f}, {counted(minute, 'minute')} after the "
        f"beginning; {figures.count(full)} cells are at or above the 1,000 that a partition takes."
    )


def lorenz(data: Mapping[str, Any], width: float = 400, height: float = 230) -> Picture:
    """Draw a Lorenz: how unequal collections are, with the Gini coefficient."""
    left, top, bottom = 44, 10, 34
    side = height - top - bottom
    right, foot = left + side, top + side
    across, up = linear(0, 1, left, right), linear(0, 1, foot, top)
    shares = sorted(
        (x, y) for x, y in data["points"] if figures.is_known(x) and figures.is_known(y)
    )
    points = [(across(x), up(y)) for x, y in [(0.0, 0.0), *shares, (1.0, 1.0)]]
    parts = []
    for share in (0.0, 0.5, 1.0):
        parts.append(path(line([(left, up(share)), (right, up(share))]), "kh-g"))
        parts.append(text(left - 5, up(share) + 4, f"{share:.0%}", "kh-s", "end"))
        anchor = "start" if share == 0 else "end" if share == 1 else "middle"
        parts.append(text(across(share), foot + 13, f"{share:.0%}", "kh-s", anchor))
    parts += [
        path(line([*points, (right, top), (left, foot)]) + "z", "kh-band"),
        path(line([(left, foot), (right, top)]), "kh-a"),
        path(line(points), "kh-l"),
        text(left, height - 6, "of keys, the smallest collections first", "kh-s"),
    ]
    x = right + 16
    words = "Share of items by share of keys, the smallest collections first."
    tenth = _largest_tenth(shares)
    if tenth is not None:
        words = f"The largest 10 % of keys have {figures.share(tenth)} of the items."
    if data["gini"]:
        gini = _gini(data["gini"])
        parts += [
            text(x, top + 22, "Gini", "kh-s"),
            text(x, top + 38, gini, "kh-t kh-b"),
            text(x, top + 53, "0: all alike", "kh-s"),
            text(x, top + 67, "1: one has all", "kh-s"),
        ]
        words = f"Gini {gini}. {words}"
    if tenth is not None:
        parts += [
            text(x, top + 98, "The largest 10 %", "kh-t"),
            text(x, top + 113, f"of keys have {figures.share(tenth)}", "kh-t kh-b"),
            text(x, top + 128, "of the items.", "kh-t"),
        ]
    return Picture("Lorenz curve of items over keys", words, width, height, tuple(parts))


def _gini(estimate: Mapping[str, Any]) -> str:
    value, low, high = estimate["value"], estimate["low"], estimate["high"]
    if not figures.is_known(value):
        return figures.UNKNOWN
    ends = figures.is_known(low) and figures.is_known(high) and low != high
    return f"{value:.2f} [{low:.2f}, {high:.2f}]" if ends else f"{value:.2f}"


def _largest_tenth(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the share of items that the largest tenth of keys has."""
    position = bisect_left(points, (0.9, 0.0))
    if not 0 < position < len(points):
        return None
    (x0, y0), (x1, y1) = points[position - 1], points[position]
    return 1 - (y0 + (y1 - y0) * (0.9 - x0) / (x1 - x0) if x1 > x0 else y1)


SIZES_LEFT, SIZES_TOP, SIZES_ROW = 76, 26, 42
HATCHED = 0.005
"""A share of unseen items that is written as 0 % is not drawn."""


def sizes(data: Mapping[str, Any], width: float = 400) -> Picture:
    """Draw a Sizes on a logarithmic scale, in bytes if the table reports them, otherwise in items.

    The picture has the quantiles, DynamoDB's limit if the table has an LSI, and the range that no
    sample has seen if items are expected in it.
    """
    rows = [*data["quantiles"], *([data["largest"]] if "largest" in data else [])]
    mean = data["item_bytes"]
    in_bytes = bool(mean) and all(row["bytes"] for row in rows)
    estimates = [
        (
            QUANTILES.get(row["quantile"], f"{row['quantile']:g}"),
            row["bytes" if in_bytes else "items"],
        )
        for row in rows
    ]
    write = figures.size if in_bytes else figures.count
    within = figures.size_within if in_bytes else figures.count_within
    limit = data["limit"] if in_bytes and data["local_indexes"] else None
    edge = _edge(data, mean if in_bytes else 1.0)
    ends = [end for _, each in estimates for end in (each["low"], each["value"], each["high"])]
    values = [end for end in (*ends, limit, edge) if figures.is_known(end) and end > 0] or [1.0]
    minimum, maximum = min(values) / 2, max(values) * 3
    height = SIZES_TOP + SIZES_ROW * max(1, len(estimates)) + 38
    foot, right = height - 34, width - 12
    scale = logarithmic(minimum, maximum, SIZES_LEFT, right)
    parts: list[Markup] = []
    for value in powers(minimum, maximum, 1024 if in_bytes else 10):
        x = scale(value)
        parts += [_vertical(x, SIZES_TOP, foot, "kh-g")]
        parts += [text(x, foot + 13, write(value), "kh-s", "middle")]
    description = ""
    if "unseen" in data:
        share = figures.share_within(data["unseen"]["share"])
        description = f" {share} of all items are in collections larger than any that was sampled."
        if edge and data["unseen"]["share"]["value"] >= HATCHED:
            parts += _unseen(scale(edge), right, foot, share)
    if limit:
        x = scale(limit)
        parts.append(_vertical(x, SIZES_TOP - 2, foot, "kh-m"))
        parts.append(text(x - 4, SIZES_TOP + 10, "10 GB", "kh-mt kh-halo", "end"))
    parts.append(path(f"M{SIZES_LEFT} {foot:.1f}H{right:.1f}", "kh-a"))
    for position, (name, estimate) in enumerate(estimates):
        middle = SIZES_TOP + SIZES_ROW * (position + 1) - 10
        parts.append(text(SIZES_LEFT - 8, middle + 4, name, "kh-t", "end"))
        parts += _interval(middle, estimate, scale, within)
    unit = "bytes of a collection" if in_bytes else "items of a collection"
    parts.append(text(SIZES_LEFT, height - 6, f"{unit}, logarithmic", "kh-s"))
    words = "; ".join(f"{name} {within(estimate)}" for name, estimate in estimates)
    description = f"{unit.capitalize()}: {words or 'no quantile is known'}.{description}"
    return Picture("Sizes of collections", description, width, height, tuple(parts))


def _edge(data: Mapping[str, Any], unit: float) -> float | None:
    """Return the size above which no collection was sampled."""
    items = data["unseen"]["items"] if "unseen" in data else None
    return items * unit if figures.is_known(items) and items > 0 and unit > 0 else None


def _unseen(left: float, right: float, foot: float, share: str) -> list[Markup]:
    x, anchor = (left + 6, "start") if right - left > 150 else (right, "end")
    return [
        rect(left, SIZES_TOP, right - left, foot - SIZES_TOP, "kh-zone"),
        hatched(left, SIZES_TOP, right - left, foot - SIZES_TOP),
        text(x, SIZES_TOP - 14, f"unseen: {share} of items", "kh-ht kh-b", anchor),
    ]


def _vertical(x: float, top: float, foot: float, class_: str) -> Markup:
    return path(f"M{x:.1f} {top:.1f}V{foot:.1f}", class_)


def _interval(
    y: float, estimate: Mapping[str, Any], scale: Scale, within: Callable[[Mapping[str, Any]], str]
) -> list[Markup]:
    """Draw a dot with its interval; an open end has an arrow."""
    value, low, high = estimate["value"], estimate["low"], estimate["high"]
    if not figures.is_known(value):
        return []
    x = scale(value)
    x0 = scale(low if figures.is_known(low) else value)
    x1 = scale(high) if figures.is_known(high) else scale(float("inf"))
    tip = f"m-5 -4l5 4l-5 4M{x1:.1f} {y:.1f}" if not figures.is_known(high) else "m0 -4v8"
    d = f"M{x0:.1f} {y - 4:.1f}v8M{x0:.1f} {y:.1f}H{x1:.1f}{tip}"
    anchor, at = ("start", min(x0, x) - 2) if x < 240 else ("end", max(x1, x) + 2)
    return [
        path(d, "kh-w"),
        tag("circle", cx=x, cy=y, r=4.0, class_="kh-d"),
        text(at, y - 9, within(estimate), "kh-t kh-halo", anchor),
    ]


def bar(estimate: Mapping[str, Any], scale: Scale, mark: float | None = None) -> Markup:
    """Draw a bar with its interval, for a row of a table; it stretches, so it has no text.

    An estimate without an upper end is open, and one without ends is a point.

    Args:
        scale: The scale to [0, 100].
        mark: A limit to draw.
    """
    value, low, high = (estimate.get(name) for name in ("value", "low", "high"))
    parts = [rect(0, 3, 100, 8, "kh-zone")]
    if figures.is_known(value):
        parts.append(rect(0, 3, scale(value), 8, "kh-band"))
        x0 = scale(low) if figures.is_known(low) else scale(value)
        x1 = scale(high) if figures.is_known(high) else 100.0 if "high" in estimate else x0
        d = f"M{x0:.2f} 7H{x1:.2f}M{x0:.2f} 4v6M{x1:.2f} 4v6"
        parts.append(_sharp(d if x1 > x0 else f"M{x0:.2f} 2v10", "kh-w"))
    if mark is not None:
        parts.append(_sharp(f"M{scale(mark):.2f} 0V14", "kh-m"))
    return tag(
        "svg",
        parts,
        view_box="0 0 100 14",
        keep_ratio="none",
        class_="kh-bar",
        aria_hidden="true",
    )


def _sharp(d: str, class_: str) -> Markup:
    """Return a path with lines that stay thin when the bar is stretched."""
    return Markup(path(d, class_).replace("<path", '<path vector-effect="non-scaling-stroke"', 1))


def shares() -> Scale:
    """Return the scale for bars of shares of a whole."""
    return linear(0, 1, 0, 100)


def up_to(estimates: Iterable[Mapping[str, Any]], *others: float) -> Scale:
    """Return the scale for bars from 0 to the highest value or end."""
    ends = [estimate.get(name) for estimate in estimates for name in ("value", "high")]
    return linear(
        0, max([end for end in (*ends, *others) if figures.is_known(end)] or [1.0]), 0, 100
    )


def by_powers(estimates: Iterable[Mapping[str, Any]], *others: float) -> Scale:
    """Return the logarithmic scale for bars, from a little below the lowest end to the highest."""
    ends = [estimate.get(name) for estimate in estimates for name in ("low", "value", "high")]
    values = [end for end in (*ends, *others) if figures.is_known(end) and end > 0] or [1.0]
    return logarithmic(min(values) / 3, max(values), 0, 100)


def linear(minimum: float, maximum: float, start: float, end: float) -> Scale:
    """Return the scale from [minimum, maximum] to [start, end]; values outside are at the edge."""
    span = maximum - minimum or 1.0

    def scale(value: float) -> float:
        return start + (end - start) * min(1.0, max(0.0, (value - minimum) / span))

    return scale


def logarithmic(minimum: float, maximum: float, start: float, end: float) -> Scale:
    """Return the logarithmic scale from [minimum, maximum] to [start, end]."""
    minimum = max(minimum, SMALLEST)
    scale = linear(math.log10(minimum), math.log10(max(maximum, minimum * 10)), start, end)
    return lambda value: scale(math.log10(max(value, minimum)))


def powers(minimum: float, maximum: float, base: int, max_ticks: int = 6) -> Sequence[float]:
    """Return evenly chosen powers of the base in a range, as ticks of an axis."""
    minimum = max(minimum, SMALLEST)
    first = math.ceil(math.log(minimum, base) - 1e-9)
    last = math.floor(math.log(max(maximum, minimum), base) + 1e-9)
    step = max(1, math.ceil((last - first + 1) / max_ticks))
    return [float(base) ** power for power in range(first, last + 1, step)]


def text(x: float, y: float, words: str, class_: str = "kh-t", anchor: str | None = None) -> Markup:
    """Return a text; `anchor` is middle or end, and None is start."""
    return tag("text", words, x=x, y=y, class_=class_, text_anchor=anchor)


def rect(x: float, y: float, width: float, height: float, class_: str) -> Markup:
    """Return a rectangle, never of a negative size, which a browser would not draw."""
    return tag("rect", x=x, y=y, width=max(0.0, width), height=max(0.0, height), class_=class_)


def path(d: str, class_: str) -> Markup:
    """Return a path in the style of its class."""
    return tag("path", d=Markup(d), class_=class_)


def line(points: Iterable[tuple[float, float]]) -> str:
    """Return the attribute d of a path through points."""
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)


def hatched(x: float, y: float, width: float, height: float, gap: float = 7) -> Markup:
    """Return lines that rise to the right, cut at the box."""
    d = ""
    offset = gap
    while width > 0 and height > 0 and offset < width + height:
        x0, y0 = x + max(0.0, offset - height), y + min(offset, height)
        x1, y1 = x + min(offset, width), y + max(0.0, offset - width)
        d += f"M{number(x0)} {number(y0)}L{number(x1)} {number(y1)}"
        offset += gap
    return path(d, "kh-hatch")
