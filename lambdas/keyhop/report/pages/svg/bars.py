"""A bar with its interval, for a row of a table: it stretches, so it has no text. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from keyhop.report import figures
from keyhop.report.pages.markup import Markup, tag
from keyhop.report.pages.svg.parts import Scale, linear, logarithmic, path, rect


def bar(estimate: Mapping[str, Any], scale: Scale, mark: float | None = None) -> Markup:
    """scale: to [0, 100]. mark: a limit to draw. The figure itself stands beside it in words.

    A high end of null is endless; what has no ends at all is a point.
    """
    value, low, high = (estimate.get(name) for name in ("value", "low", "high"))
    parts = [rect(0, 3, 100, 8, "kh-zone")]
    if figures.known(value):
        parts.append(rect(0, 3, scale(value), 8, "kh-band"))
        x0 = scale(low) if figures.known(low) else scale(value)
        x1 = scale(high) if figures.known(high) else 100.0 if "high" in estimate else x0
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


def shares() -> Scale:
    """Of a whole."""
    return linear(0, 1, 0, 100)


def up_to(estimates: Sequence[Mapping[str, Any]], *others: float) -> Scale:
    """From nothing to the highest end there is."""
    ends = [one.get(name) for one in estimates for name in ("value", "high")]
    return linear(0, max([end for end in (*ends, *others) if figures.known(end)] or [1.0]), 0, 100)


def by_powers(estimates: Sequence[Mapping[str, Any]], *others: float) -> Scale:
    """Logarithmic, from a little below the lowest end to the highest."""
    ends = [one.get(name) for one in estimates for name in ("low", "value", "high")]
    known = [end for end in (*ends, *others) if figures.known(end) and end > 0] or [1.0]
    return logarithmic(min(known) / 3, max(known), 0, 100)


def _sharp(d: str, class_: str) -> Markup:
    """A line that stays as thin when the bar is stretched."""
    return Markup(path(d, class_).replace("<path", '<path vector-effect="non-scaling-stroke"', 1))
