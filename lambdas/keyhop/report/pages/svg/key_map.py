"""The key map: write units a second, hash place by time. Pure."""

import math
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

from keyhop.report import figures
from keyhop.report.pages.markup import Markup, number, tag
from keyhop.report.pages.svg.parts import Picture, path, rect, text
from keyhop.wording import counted

LEVELS = (0.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Write units a second from which a colour begins; the last is what a partition takes."""
LEFT, TOP, BOTTOM = 30, 8, 44


def key_map(data: dict[str, Any], width: float = 400, height: float = 260) -> Picture:
    """Of a KeyMap; one path a colour."""
    columns, rows = data["columns"], data["rows"]
    x_step = (width - LEFT - 6) / columns
    y_step = (height - TOP - BOTTOM) / rows
    right, foot = LEFT + columns * x_step, TOP + rows * y_step
    parts = [rect(LEFT, TOP, right - LEFT, foot - TOP, "kh-zone")]
    place = f"translate({LEFT} {TOP}) scale({x_step:.4f} {y_step:.4f})"
    parts.append(tag("g", _cells(data["cells"]), class_="kh-cells", transform=place))
    for share, words in ((0, "0"), (0.5, "½"), (1, "1")):
        y = TOP + share * (foot - TOP)
        parts.append(text(LEFT - 5, y + 4 - 4 * (share - 0.5), words, "kh-s", "end"))
    parts.append(_upright(9, (TOP + foot) / 2, "hash place"))
    parts += _times(data, right, foot)
    parts += _legend(width, height)
    return Picture("Key map", _told(data), width, height, tuple(parts))


def _cells(cells: list[list[float]]) -> list[Markup]:
    """In units of cells. A run of neighbours of one colour in a column is one stroke, as wide as a
    column: so thousands of cells weigh a few bytes each.
    """
    by_level: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for x, y, units in cells:
        if units:
            by_level[_level(units)].append((int(x), int(y)))
    found = []
    for level, places in sorted(by_level.items()):
        d, column, foot = "", -1, 0
        for x, y, long in _runs(sorted(places)):
            start = f"m0 {y - foot}" if x == column else f"M{x}.5 {y}"
            d += f"{start}v{long}"
            column, foot = x, y + long
        found.append(path(d, f"kh-{level}"))
    return found


def coarse(data: dict[str, Any], columns: int, rows: int) -> dict[str, Any]:
    """The same with fewer cells, for a small picture: of those that fall together the most, so what
    is hot stays hot.
    """
    across = math.ceil(data["columns"] / columns)
    down = math.ceil(data["rows"] / rows)
    most: dict[tuple[int, int], float] = defaultdict(float)
    for x, y, units in data["cells"]:
        if units:
            place = int(x) // across, int(y) // down
            most[place] = max(most[place], units)
    return {
        "began": data["began"],
        "column_seconds": data["column_seconds"] * across,
        "columns": math.ceil(data["columns"] / across),
        "rows": math.ceil(data["rows"] / down),
        "cells": [[x, y, units] for (x, y), units in sorted(most.items())],
    }


def _runs(places: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    runs: list[tuple[int, int, int]] = []
    for x, y in places:
        if runs and runs[-1][0] == x and runs[-1][1] + runs[-1][2] == y:
            runs[-1] = (x, runs[-1][1], runs[-1][2] + 1)
        else:
            runs.append((x, y, 1))
    return runs


def _level(units: float) -> int:
    return max(number for number, least in enumerate(LEVELS) if units >= least)


def _upright(x: float, y: float, words: str) -> Markup:
    turn = f"rotate(-90 {number(x)} {number(y)})"
    return tag("text", words, x=x, y=y, class_="kh-s", text_anchor="middle", transform=turn)


def _times(data: dict[str, Any], right: float, foot: float) -> list[Markup]:
    """Where it begins, its middle, and its end; the day beside the first."""
    seconds = data["columns"] * data["column_seconds"]
    found = []
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        at = _moment(data["began"] + share * seconds)
        words = (f"{at:%Y-%m-%d %H:%M} UTC" if share == 0 else f"{at:%H:%M}") if at else ""
        found.append(text(LEFT + share * (right - LEFT), foot + 13, words, "kh-s", anchor))
    return found


def _moment(at: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _legend(width: float, height: float) -> list[Markup]:
    step = min(44.0, (width - LEFT - 110) / len(LEVELS))
    found = []
    y = height - 22
    for level, least in enumerate(LEVELS):
        x = LEFT + level * step
        found.append(rect(x, y, step - 1, 7, f"kh-{level}"))
        words = f"{least:,.0f}" if level else "0"
        found.append(text(x, y + 18, words, "kh-mt kh-b" if level == len(LEVELS) - 1 else "kh-s"))
    x = LEFT + len(LEVELS) * step
    return [*found, text(x + 6, y + 7, "WCU/s", "kh-s")]


def _told(data: dict[str, Any]) -> str:
    known = [cell for cell in data["cells"] if cell[2]]
    if not known:
        return "No writes were seen."
    column, row, most = max(known, key=lambda cell: cell[2])
    place = (row + 0.5) / data["rows"]
    minute = column * data["column_seconds"] / 60
    over = sum(cell[2] >= LEVELS[-1] for cell in known)
    return (
        f"Write units a second by hash place and time, over "
        f"{counted(data['columns'] * data['column_seconds'] / 60, 'minute')}. The most is "
        f"{figures.count(most)} at place {place:.2f}, {counted(minute, 'minute')} after the "
        f"beginning; {figures.count(over)} cells are at or above the 1,000 that a partition takes."
    )
