"""What all pictures have: a frame with its title, text, axes, scales, hatching. Pure."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from keyhop.report.pages.markup import Child, Markup, number, tag

Scale = Callable[[float], float]
LEAST = 1e-9
"""Where logarithmic scales begin at the least: half of the smallest float is nothing."""


@dataclass(frozen=True, slots=True)
class Picture:
    """title: what it is called, and desc: what it shows, for who cannot see it. parts: in a box of
    width by height.
    """

    title: str
    desc: str
    width: float
    height: float
    parts: tuple[Markup, ...]

    def svg(self) -> Markup:
        """On its own."""
        box = f"0 0 {number(self.width)} {number(self.height)}"
        words = (tag("title", self.title), tag("desc", self.desc))
        return tag("svg", words, self.parts, view_box=box, role="img", class_="kh-svg")

    def at(self, x: float, y: float) -> Markup:
        """As a part of a larger one."""
        return tag("g", self.parts, transform=f"translate({number(x)} {number(y)})")


def text(x: float, y: float, words: str, class_: str = "kh-t", anchor: str | None = None) -> Markup:
    """anchor: middle, end."""
    return tag("text", words, x=x, y=y, class_=class_, text_anchor=anchor)


def rect(x: float, y: float, width: float, height: float, class_: str, *inner: Child) -> Markup:
    """Never of a negative size, which a browser would not draw."""
    return tag(
        "rect", *inner, x=x, y=y, width=max(0.0, width), height=max(0.0, height), class_=class_
    )


def path(d: str, class_: str) -> Markup:
    """A path, drawn as its class says."""
    return tag("path", d=Markup(d), class_=class_)


def line(points: Iterable[tuple[float, float]]) -> str:
    """The d of a path through points."""
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)


def hatched(x: float, y: float, width: float, height: float, gap: float = 7) -> Markup:
    """Lines that rise to the right, cut at the box."""
    d = ""
    offset = gap
    while width > 0 and height > 0 and offset < width + height:
        x0, y0 = x + max(0.0, offset - height), y + min(offset, height)
        x1, y1 = x + min(offset, width), y + max(0.0, offset - width)
        d += f"M{number(x0)} {number(y0)}L{number(x1)} {number(y1)}"
        offset += gap
    return path(d, "kh-hatch")


def linear(least: float, most: float, start: float, end: float) -> Scale:
    """From [least, most] to [start, end]; what is outside ends at the edge."""
    span = most - least or 1.0

    def scale(value: float) -> float:
        return start + (end - start) * min(1.0, max(0.0, (value - least) / span))

    return scale


def logarithmic(least: float, most: float, start: float, end: float) -> Scale:
    """The same by powers."""
    least = max(least, LEAST)
    scale = linear(math.log10(least), math.log10(max(most, least * 10)), start, end)
    return lambda value: scale(math.log10(max(value, least)))


def powers(least: float, most: float, base: int, most_ticks: int = 6) -> Sequence[float]:
    """Round values between: powers of the base, every so many."""
    least = max(least, LEAST)
    first = math.ceil(math.log(least, base) - 1e-9)
    last = math.floor(math.log(max(most, least), base) + 1e-9)
    step = max(1, math.ceil((last - first + 1) / most_ticks))
    return [float(base) ** power for power in range(first, last + 1, step)]
