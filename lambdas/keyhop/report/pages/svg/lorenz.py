"""The Lorenz curve: how unequal collections are, with Gini's coefficient. Pure."""

from bisect import bisect_left
from typing import Any

from keyhop.report import figures
from keyhop.report.pages.svg.parts import Picture, line, linear, path, text

LEFT, TOP, BOTTOM = 44, 10, 34
PERCENTS = (0.0, 0.5, 1.0)


def lorenz(data: dict[str, Any], width: float = 400, height: float = 230) -> Picture:
    """Of a Lorenz."""
    side = height - TOP - BOTTOM
    right, foot = LEFT + side, TOP + side
    across, up = linear(0, 1, LEFT, right), linear(0, 1, foot, TOP)
    known = sorted((x, y) for x, y in data["points"] if figures.known(x) and figures.known(y))
    points = [(across(x), up(y)) for x, y in [(0.0, 0.0), *known, (1.0, 1.0)]]
    parts = []
    for share in PERCENTS:
        parts.append(path(line([(LEFT, up(share)), (right, up(share))]), "kh-g"))
        parts.append(text(LEFT - 5, up(share) + 4, f"{share:.0%}", "kh-s", "end"))
        anchor = "start" if share == 0 else "end" if share == 1 else "middle"
        parts.append(text(across(share), foot + 13, f"{share:.0%}", "kh-s", anchor))
    equal = line([(LEFT, foot), (right, TOP)])
    parts += [
        path(line([*points, (right, TOP), (LEFT, foot)]) + "z", "kh-band"),
        path(equal, "kh-a"),
        path(line(points), "kh-l"),
        text(LEFT, height - 6, "of keys, the smallest collections first", "kh-s"),
    ]
    x = right + 16
    words = _said(known)
    if data["gini"]:
        told = _gini(data["gini"])
        parts += [
            text(x, TOP + 22, "Gini", "kh-s"),
            text(x, TOP + 38, told, "kh-t kh-b"),
            text(x, TOP + 53, "0: all alike", "kh-s"),
            text(x, TOP + 67, "1: one has all", "kh-s"),
        ]
        words = f"Gini {told}. {words}"
    top = _top(known)
    if top is not None:
        parts += [
            text(x, TOP + 98, "The largest 10 %", "kh-t"),
            text(x, TOP + 113, f"of keys have {figures.share(top)}", "kh-t kh-b"),
            text(x, TOP + 128, "of the items.", "kh-t"),
        ]
    return Picture("Lorenz curve of items over keys", words, width, height, tuple(parts))


def _gini(one: dict[str, Any]) -> str:
    value, low, high = one["value"], one["low"], one["high"]
    if not figures.known(value):
        return figures.UNKNOWN
    ends = figures.known(low) and figures.known(high) and low != high
    return f"{value:.2f} [{low:.2f}, {high:.2f}]" if ends else f"{value:.2f}"


def _top(points: list[tuple[float, float]]) -> float | None:
    """Share of items that the largest tenth of keys has."""
    number = bisect_left(points, (0.9, 0.0))
    if not 0 < number < len(points):
        return None
    (x0, y0), (x1, y1) = points[number - 1], points[number]
    return 1 - (y0 + (y1 - y0) * (0.9 - x0) / (x1 - x0) if x1 > x0 else y1)


def _said(points: list[tuple[float, float]]) -> str:
    top = _top(points)
    if top is None:
        return "Share of items by share of keys, the smallest collections first."
    return f"The largest 10 % of keys have {figures.share(top)} of the items."
