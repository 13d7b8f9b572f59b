"""Draw docs/in-flight.svg: how a worker adapts when something changes, in the tests' model.

`python docs/draw_in_flight.py`, which `make pictures` does.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "lambdas")]

from keyhop.scan.in_flight import InFlight  # noqa: E402

from testing.dark import for_dark_pages  # noqa: E402
from testing.in_flight_model import Model, always, steps  # noqa: E402

PICTURE = ROOT / "docs" / "in-flight.svg"
SECONDS, BIN_SECONDS = 60, 0.5
FIRST_STEP, SECOND_STEP = 20.0, 40.0
GREEN, ORANGE, GREY = "#1b7f5a", "#c4721b", "#7a7f87"


def changing(usual: float, between: float) -> Callable[[float], float]:
    """Return a function of time that has another value from the first step to the second."""
    return steps((0.0, usual), (FIRST_STEP, between), (SECOND_STEP, usual))


def scenes() -> dict[str, tuple[Model, Callable[[float], float]]]:
    """Return, by the title, a worker whose environment changes, and the possible pages a second."""
    cpu = always(0.0005)
    tables = {
        "the table is 5 ms away, then 50, then 5": Model(
            InFlight(), changing(0.005, 0.05), cpu, jitter=0.4
        ),
        "it gives 400 pages a second, 1,200, then 400": Model(
            InFlight(), always(0.01), cpu, gives=changing(200.0, 600.0), jitter=0.4
        ),
        "a page takes 0.5 ms of CPU, then 2, then 0.5": Model(
            InFlight(), always(0.02), changing(0.0005, 0.002), jitter=0.4
        ),
    }
    return {
        title: (model, lambda now, m=model: min(1 / m.cpu(now), m.gives(now) / m.units))
        for title, model in tables.items()
    }


def draw() -> None:
    """Draw for each scene the pages read, the pages possible, and the number of threads."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "keyhop"
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(2, 3, figsize=(12, 5), sharex=True)
    for (upper, lower), (title, (model, possible)) in zip(panels.T, scenes().items(), strict=True):
        model.run(SECONDS)
        _scene(upper, lower, title, model, possible)
    panels[0][0].set_ylabel("pages a second")
    panels[1][0].set_ylabel("threads")
    panels[1][1].set_xlabel("seconds")
    names = ("read", "possible", "throttled")
    handles = [pyplot.Line2D([], [], color=colour) for colour in (GREEN, GREY, ORANGE)]
    figure.legend(handles, names, loc="upper center", ncols=3, frameon=False)
    figure.subplots_adjust(left=0.06, right=0.99, top=0.86, bottom=0.1, wspace=0.17, hspace=0.12)
    figure.savefig(PICTURE, metadata={"Date": None})
    PICTURE.write_text(for_dark_pages(PICTURE.read_text()))
    pyplot.close(figure)


def _scene(
    upper: Any, lower: Any, title: str, model: Model, possible: Callable[[float], float]
) -> None:
    moments = [number * BIN_SECONDS for number in range(round(SECONDS / BIN_SECONDS))]
    read = [model.pages_a_second(moment, moment + BIN_SECONDS) for moment in moments]
    refused = [
        sum(moment <= at < moment + BIN_SECONDS for at in model.throttled) / BIN_SECONDS
        for moment in moments
    ]
    upper.step(moments, [possible(moment) for moment in moments], color=GREY, where="post")
    upper.step(moments, read, color=GREEN, where="post")
    upper.step(moments, refused, color=ORANGE, where="post", linewidth=1)
    lower.step(*zip(*model.lanes, strict=True), color=GREEN, where="post")
    upper.set_title(title, fontsize=10, loc="left")
    for axes in (upper, lower):
        axes.set_ylim(bottom=0)
        axes.set_xlim(0, SECONDS)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3)


if __name__ == "__main__":
    draw()
