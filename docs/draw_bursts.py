"""Draw docs/bursts.svg from docs/sharding-seconds.json: a hot key, second by second.

`python docs/draw_bursts.py`, which `make pictures` does.
"""

import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "lambdas")]

from bench.sharding_seconds import FIGURES  # noqa: E402
from testing.dark import for_dark_pages  # noqa: E402

PICTURE = ROOT / "docs" / "bursts.svg"
GREEN, ORANGE, GREY = "#1b7f5a", "#c4721b", "#7a7f87"
TIMES = "5 times, "


def draw() -> None:
    """Draw a panel for each burst of 5 times what a single key accepts."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "keyhop"
    from matplotlib import pyplot

    figures = json.loads(FIGURES.read_text())
    bursts = [each for each in figures["now"] if each["title"].startswith(TIMES)]
    pairs = [*zip(figures["before"], bursts, strict=True)]
    figure, panels = pyplot.subplots(1, len(pairs), figsize=(12, 3.2), sharey=True)
    for panel, (before, now) in zip(panels, pairs, strict=True):
        _draw_panel(panel, before, now)
    panels[0].set_ylabel("accepted writes a second")
    panels[0].set_xlabel("seconds of the burst", loc="left")
    handles = [pyplot.Line2D([], [], color=colour) for colour in (GREEN, ORANGE, GREY)]
    names = ("Keyhop", "Keyhop before new items were claimed", "a single key")
    figure.legend(handles, names, loc="upper center", ncols=3, frameon=False)
    figure.subplots_adjust(left=0.06, right=0.99, top=0.8, bottom=0.16, wspace=0.08)
    figure.savefig(PICTURE, metadata={"Date": None})
    PICTURE.write_text(for_dark_pages(PICTURE.read_text()))
    pyplot.close(figure)


def _draw_panel(axes: Any, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Draw the median of the seeds in each second, and the range of them for Keyhop."""
    axes.axhline(now["wanted"], color=GREY, linestyle=":", linewidth=1)
    curves = ((now["single"], GREY), (before["sharded"], ORANGE), (now["sharded"], GREEN))
    for runs, colour in curves:
        by_second = [*zip(*runs, strict=True)]
        seconds = range(len(by_second))
        axes.plot(seconds, [median(each) for each in by_second], color=colour)
        if colour == GREEN:
            lowest = [min(each) for each in by_second]
            highest = [max(each) for each in by_second]
            axes.fill_between(seconds, lowest, highest, color=colour, alpha=0.2, linewidth=0)
    axes.set_title(now["title"].removeprefix(TIMES), fontsize=10, loc="left")
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, len(now["single"][0]) - 1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)


if __name__ == "__main__":
    draw()
