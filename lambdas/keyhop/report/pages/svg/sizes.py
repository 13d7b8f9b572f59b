"""Sizes of collections on a logarithmic scale: quantiles, the limit, and what nobody has seen."""

from collections.abc import Mapping
from typing import Any

from keyhop.report import figures
from keyhop.report.pages.markup import Markup, tag
from keyhop.report.pages.svg.parts import (
    Picture,
    Scale,
    hatched,
    logarithmic,
    path,
    powers,
    rect,
    text,
)

NAMES = {0.5: "median", 0.9: "p90", 0.99: "p99", 1.0: "largest seen"}
LEFT, TOP, ROW = 76, 26, 42


def sizes(data: dict[str, Any], width: float = 400) -> Picture:
    """Of a Sizes; in bytes where the table tells them, else in items."""
    rows = [*data["quantiles"], *([data["largest"]] if "largest" in data else [])]
    mean = data["item_bytes"]
    bytes_ = bool(mean) and all(one["bytes"] for one in rows)
    shown = [(one["quantile"], one["bytes"] if bytes_ else one["items"]) for one in rows]
    told = figures.size if bytes_ else figures.count
    within = figures.size_within if bytes_ else figures.count_within
    limit = data["limit"] if bytes_ else None
    seen = _edge(data, mean if bytes_ else 1.0)
    ends = [end for _, one in shown for end in (one["low"], one["value"], one["high"])]
    known = [end for end in (*ends, limit, seen) if figures.known(end) and end > 0] or [1.0]
    least, most = min(known) / 2, max(known) * 3
    height = TOP + ROW * max(1, len(shown)) + 38
    foot = height - 34
    right = width - 12
    scale = logarithmic(least, most, LEFT, right)
    parts: list[Markup] = []
    for value in powers(least, most, 1024 if bytes_ else 10):
        x = scale(value)
        parts += [_line(x, TOP, foot, "kh-g"), text(x, foot + 13, told(value), "kh-s", "middle")]
    if "unseen" in data and seen:
        parts += _unseen(scale(seen), right, foot, data["unseen"]["share"])
    if limit:
        parts += _limit(scale(limit), foot, bool(data["local_indexes"]))
    parts.append(path(f"M{LEFT} {foot:.1f}H{right:.1f}", "kh-a"))
    for number, (quantile, one) in enumerate(shown):
        parts += _row(TOP + ROW * number, NAMES.get(quantile, f"{quantile:g}"), one, scale, within)
    unit = "bytes of a collection" if bytes_ else "items of a collection"
    parts.append(text(LEFT, height - 6, f"{unit}, logarithmic", "kh-s"))
    words = "; ".join(f"{NAMES.get(q, f'{q:g}')} {within(one)}" for q, one in shown)
    desc = f"{unit.capitalize()}: {words or 'no quantile is known'}.{_said(data)}"
    return Picture("Sizes of collections", desc, width, height, tuple(parts))


def _edge(data: Mapping[str, Any], unit: float) -> float | None:
    """From where on no collection was sampled."""
    items = data["unseen"]["items"] if "unseen" in data else None
    return items * unit if figures.known(items) and items > 0 and unit > 0 else None


def _said(data: Mapping[str, Any]) -> str:
    if "unseen" not in data:
        return ""
    share = figures.share_within(data["unseen"]["share"])
    return f" {share} of all items are in collections larger than any that was sampled."


def _unseen(left: float, right: float, foot: float, share: Mapping[str, Any]) -> list[Markup]:
    told = figures.share_within(share)
    inside = right - left > 150
    x, anchor = (left + 6, "start") if inside else (right, "end")
    return [
        rect(left, TOP, right - left, foot - TOP, "kh-zone"),
        hatched(left, TOP, right - left, foot - TOP),
        text(x, TOP - 14, f"unseen: {told} of items", "kh-ht kh-b", anchor),
    ]


def _limit(x: float, foot: float, local: bool) -> list[Markup]:
    dashed = "kh-m" if local else "kh-m kh-dash"
    words = "10 GB" if local else "10 GB with an LSI"
    return [
        _line(x, TOP - 2, foot, dashed),
        text(x - 4, TOP + 10, words, "kh-mt kh-halo", "end"),
    ]


def _line(x: float, top: float, foot: float, class_: str) -> Markup:
    return path(f"M{x:.1f} {top:.1f}V{foot:.1f}", class_)


def _row(y: float, name: str, one: Mapping[str, Any], scale: Scale, within: Any) -> list[Markup]:
    """A dot with its interval; an open end has an arrow."""
    middle = y + ROW - 10
    parts = [text(LEFT - 8, middle + 4, name, "kh-t", "end")]
    value, low, high = one["value"], one["low"], one["high"]
    if not figures.known(value):
        return parts
    x0 = scale(low if figures.known(low) else value)
    x1 = scale(high) if figures.known(high) else scale(float("inf"))
    tip = f"m-5 -4l5 4l-5 4M{x1:.1f} {middle:.1f}" if not figures.known(high) else "m0 -4v8"
    d = f"M{x0:.1f} {middle - 4:.1f}v8M{x0:.1f} {middle:.1f}H{x1:.1f}{tip}"
    x = scale(value)
    words = within(one)
    anchor, at = ("start", min(x0, x) - 2) if x < 240 else ("end", max(x1, x) + 2)
    return [
        *parts,
        path(d, "kh-w"),
        tag("circle", cx=x, cy=middle, r=4.0, class_="kh-d"),
        text(at, middle - 9, words, "kh-t kh-halo", anchor),
    ]
