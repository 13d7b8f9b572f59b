"""What a copy, a comparison and a change of the table that serves have come to, for a person. Pure.

By a process or by a deployment: both tell the same counts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from keyhop.cli.fleet_view import dollars_text
from keyhop.dynamodb.units import Prices
from keyhop.rekey.compare.looks import NOT_EQUAL
from keyhop.rekey.control import Control, Stage
from keyhop.rekey.pair import Pair
from keyhop.wording import counted, duration

BECAME = {
    "copied": "put",
    "there": "there already, and newer: left alone",
    "claimed": "want a place that another item has",
    "left_out": "left out by the template",
    "ours": "sentinels of a key index: never copied",
    "unmappable": "have no form under the other key",
}
FOUND = {
    "missing": "should be in {destination}, and are not",
    "surplus": "are in {destination}, and should not be",
    "changed": "are not as {source} has them",
    "contended": "have a place that several items of {source} want",
    "foreign": "of the surplus: of no item of {source} at all; no repair deletes them",
    "repaired": "of these were repaired",
    "unsettled": "were written at every look, and are not settled: verify with repair settles them",
    "in_flight": "were in flight: no difference",
    "bypassed": "of these have a straggler: not repaired; status --show-keys full names them",
    "unmappable": "have no form under the other key",
    "irreversible": "could not go back as they are",
    "left_out": "left out by the template",
    "ours": "sentinels of a key index",
}
STAGES: Mapping[Stage, str] = {
    "open": "{serves} serves; the gates are looked at, and the drain is rehearsed",
    "closing": "closing: routers hear that a change comes; reads and writes go on, {left} left",
    "frozen": "frozen: writes wait, reads go on; what was written is followed to its end",
    "fenced": "fenced: writes wait; what follows has ended",
    "turned": "turned: {serves} serves reads; writes wait for another moment",
}
SERVES = "open: {serves} serves"
"""Of a change of the table that serves, while it is under way."""

ALWAYS_SHOWN = ("missing", "surplus", "changed")


def copied_lines(
    pair: Pair, counts: Mapping[str, int], unmappable: Sequence[Mapping[str, str]] = ()
) -> Iterator[str]:
    """counts: by what became of an item. unmappable: some, by digests of their keys."""
    yield f"{counted(sum(counts.values()), 'item')} of {pair.source} -> {pair.destination}"
    for name, count in sorted(counts.items(), key=lambda entry: -entry[1]):
        yield _line(name, count, BECAME.get(name, ""))
    for one in unmappable[:5]:
        yield f"  unmappable  {one['key'][:12]} {one['why']}"


def compared_lines(pair: Pair, counts: Mapping[str, int]) -> Iterator[str]:
    """counts: of what was read, and of what was found."""
    here, there = (f"{counts.get(f'{side}_items', 0):,}" for side in ("source", "destination"))
    yield (
        f"{here} {'item' if here == '1' else 'items'} of {pair.source} and {there} of "
        f"{pair.destination}, compared"
    )
    names = {"source": pair.source, "destination": pair.destination}
    for name, says in FOUND.items():
        if counts.get(name) or name in ALWAYS_SHOWN:
            yield _line(name, counts.get(name, 0), says.format(**names))
    differing = sum(counts.get(name, 0) for name in NOT_EQUAL)
    left = differing - counts.get("repaired", 0)
    if differing:
        is_left = f"{counted(left, 'difference')} left" if left else "all repaired"
        yield f"  {is_left}; keyhop rekey status says what comes next"


def cost_line(prices: Prices, read_units: float, write_units: float) -> str:
    """On demand."""
    dollars = prices.dollars(read_units, write_units)
    return f"  cost         {read_units:,.1f} RRU, {write_units:,.1f} WRU: ${dollars:,.6f}"


def cost_lines(cost: Mapping[str, Any]) -> Iterator[str]:
    """Of an execution, with what it paid to Lambda and others."""
    yield f"  cost         ${cost['total']:.6f}: {dollars_text(cost)}"
    yield f"               ({cost['prices']})"


def serving_of(pair: Pair, control: Mapping[str, Any]) -> str:
    """The name of the table that serves. control: Control.to_json."""
    return pair.source if control["serving"] == "source" else pair.destination


def serves_line(pair: Pair, control: Mapping[str, Any], pause: float | None) -> str:
    """Of a change that was made; pause: seconds for which writes were frozen."""
    waited = "" if pause is None else f"; writes waited for {pause:.1f} s"
    return f"{serving_of(pair, control)} serves now{waited}."


class Stages:
    """What Following shows of a change that is under way: its kind, and a line. clock: seconds."""

    def __init__(self, pair: Pair, look: Callable[[], Control], clock: Callable[[], float]) -> None:
        self._pair = pair
        self._look = look
        self._clock = clock
        self._seen: list[Stage] = []
        self._since = clock()

    def __call__(self) -> tuple[str, list[str]]:
        control = self._look()
        stage, now = control.stage, self._clock()
        if not self._seen or stage != self._seen[-1]:
            self._seen.append(stage)
            self._since = now
        is_over = stage == "open" and len(self._seen) > 1
        left = max(0.0, control.settle - (now - self._since))
        says = (SERVES if is_over else STAGES[stage]).format(
            serves=serving_of(self._pair, control.to_json()), left=duration(left)
        )
        return f"{stage} {is_over}", [says]


def _line(name: str, count: int, says: str) -> str:
    return f"  {name.replace('_', ' '):12} {count:>9,}  {says}".rstrip()
