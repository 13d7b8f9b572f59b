"""The status and the results of a re-key: lines for a person, records for a program. Pure.

A process and a deployment report the same counts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from keyhop.cli.output import aligned, cost_facts
from keyhop.dynamodb.units import Prices
from keyhop.dynamodb.values import to_json
from keyhop.jobs.formats import json_text
from keyhop.rekey.compare.looks import NOT_EQUAL
from keyhop.rekey.control import Control, Stage, other_side
from keyhop.rekey.pace import BACKFILL, NO_LIMIT, THROTTLE
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.layout import DEPLOYMENT, VERIFIED
from keyhop.rekey.standing import Standing
from keyhop.wording import counted, duration

WIDTH = 12
"""The columns of the names."""

MOST_SHOWN = 10

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
"""What a change of the table that serves is doing."""

ALWAYS_SHOWN = ("missing", "surplus", "changed")


def standing_json(standing: Standing, show_keys: bool = False) -> dict[str, Any]:
    """Return the status for programs, with the keys of some items if `show_keys`."""
    examples = {
        "collide": _collide(standing),
        "bypassed": _bypassed(standing),
        "without_place": _unmapped(standing),
    }
    examples = examples if show_keys else {}
    return {
        **examples,
        "source": standing.pair.source,
        "destination": standing.pair.destination,
        "phase": standing.phase,
        "serving": standing.control.serving,
        "stage": standing.control.stage,
        "direction": standing.control.direction,
        "revision": standing.control.revision,
        "shadow": standing.control.shadow,
        "lag_seconds": standing.lag,
        "claims": len(standing.claims),
        "refused_claims": len(standing.refused),
        "unmappable": standing.unmappable,
        "failures": standing.failed,
        "clients": len(standing.alive),
        "unguarded_clients": len(standing.unguarded),
        "shadowed": standing.shadowed,
        "expected_clients": standing.control.expected_clients,
        "stragglers": len(standing.stragglers),
        "unsettled_stragglers": len(standing.unsettled),
        "open_batches": len(standing.open_batches),
        "figures": dict(standing.figures),
        "troubles": standing.troubles,
        "next": standing.todo,
    }


def standing_lines(standing: Standing, show_keys: bool = False) -> Iterator[str]:
    """Return the status for a person."""
    yield f"{standing.pair.source} -> {standing.pair.destination}: {standing.phase}"
    yield from aligned(_standing_facts(standing, show_keys), "  ", WIDTH)


def _standing_facts(standing: Standing, show_keys: bool) -> Iterator[tuple[str, str]]:
    control = standing.control
    serves, follows = (
        standing.pair.table(s) for s in (control.serving, other_side(control.serving))
    )
    yield "means", standing.means
    yield "serves", serves
    behind = "" if standing.lag is None else f", {_seconds(standing.lag)} behind"
    is_followed = control.direction is not None and bool(standing.figure(DEPLOYMENT))
    yield "followed by", f"{follows if is_followed else 'nobody'}{behind}"
    if copied := _copied(standing):
        yield "copy", copied
    yield "verified", _verified(standing)
    refused = f", {len(standing.refused):,} refused by DynamoDB" if standing.refused else ""
    yield "claims", f"{len(standing.claims):,}{refused}"
    for claim in _collide(standing) if show_keys else ():
        why = f": {claim['refusal']}" if "refusal" in claim else ""
        yield "", f"{json_text(claim['owner'])} wants {json_text(claim['place'])}{why}"
    yield "unmappable", f"{standing.unmappable:,}{_reasons(standing)}"
    for item in _unmapped(standing) if show_keys else ():
        yield "", f"{json_text(item['key'])}: {item['why']}"
    yield "failures", f"{standing.failed:,}"
    if control.shadow or any(standing.shadowed.values()):
        counts = ", ".join(
            f"{name.replace('_', ' ')} {n:,}" for name, n in standing.shadowed.items()
        )
        yield "shadow", f"{control.shadow * 100:g} % of reads: {counts}"
    expected = f" of {control.expected_clients:,} expected" if control.expected_clients else ""
    if deployment := standing.figure(DEPLOYMENT):
        yield "stack", deployment["stack"]
    unguarded = f", {len(standing.unguarded):,} without a guard" if standing.unguarded else ""
    yield "clients", f"{len(standing.alive):,}{expected}{unguarded}"
    unsettled = f", {len(standing.unsettled):,} unsettled" if standing.unsettled else ""
    yield "stragglers", f"{len(standing.stragglers):,}{unsettled}"
    for straggler in _bypassed(standing) if show_keys else ():
        yield "", f"{json_text(straggler['key'])} at {_moment(straggler['at'])} UTC"
    for trouble in standing.troubles:
        yield "trouble", trouble
    yield "next", standing.todo


def _collide(standing: Standing) -> list[dict[str, Any]]:
    return [
        {
            "owner": to_json(claim.owner),
            "place": to_json(claim.place),
            **({"refusal": claim.refusal} if claim.refusal else {}),
        }
        for claim in [
            *standing.refused,
            *(claim for claim in standing.claims if not claim.refusal),
        ][:MOST_SHOWN]
    ]


def _unmapped(standing: Standing) -> list[dict[str, Any]]:
    items = standing.unmapped[:MOST_SHOWN]
    return [{"key": to_json(item.key), "why": item.reason} for item in items]


def _bypassed(standing: Standing) -> list[dict[str, Any]]:
    stragglers = standing.unsettled[:MOST_SHOWN]
    return [
        {"key": to_json(straggler.key), "at": straggler.at, "side": straggler.side}
        for straggler in stragglers
    ]


def _moment(at: float) -> str:
    return datetime.fromtimestamp(float(at), UTC).strftime("%Y-%m-%d %H:%M:%S")


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else duration(seconds)


def _verified(standing: Standing) -> str:
    last = standing.figure(VERIFIED)
    if not last:
        return "never"
    at = _moment(last.get("at", 0))
    if not last.get("finished", True):
        return f"begun {at} UTC, not finished"
    counts = ", ".join(
        f"{name} {last.get(name, 0):,}" for name in ("missing", "surplus", "changed")
    )
    share = last.get("share", 1)
    part = "" if share >= 1 else f" of {share * 100:g} %"
    if last.get("contended"):
        counts += f", contended {last['contended']:,}"
    if last.get("unsettled"):
        counts += f", unsettled {last['unsettled']:,}"
    repaired = f", repaired {last['repaired']:,}" if last.get("repaired") else ""
    return f"{at} UTC, {counted(last.get('items', 0), 'item')}{part}: {counts}{repaired}"


def _copied(standing: Standing) -> str:
    copy = standing.figure(BACKFILL)
    if not copy:
        return ""
    pace = standing.figure(THROTTLE)
    if copy.get("ended") is None:
        limit = pace.get("rate")
        rate = f", under {limit:g} WRU a second" if limit not in (None, NO_LIMIT) else ""
        return f"run {copy['run']}{', paused' if pace.get('paused') else rate}"
    counts = ", ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in copy["counts"].items())
    return f"finished: {counts}"


def _reasons(standing: Standing) -> str:
    whys = list(dict.fromkeys(item.reason for item in standing.unmapped))
    return f" ({'; '.join(whys[:3])})" if whys else ""


def copied_lines(
    pair: Pair, counts: Mapping[str, int], unmappable: Sequence[Mapping[str, str]] = ()
) -> Iterator[str]:
    """Return the result of a copy.

    Args:
        counts: The number of items by what became of them.
        unmappable: Some items that cannot be mapped, by digests of their keys.
    """
    yield f"{counted(sum(counts.values()), 'item')} of {pair.source} -> {pair.destination}"
    for name, count in sorted(counts.items(), key=lambda entry: -entry[1]):
        yield _line(name, count, BECAME.get(name, ""))
    for item in unmappable[:5]:
        yield f"  unmappable  {item['key'][:12]} {item['why']}"


def compared_lines(pair: Pair, counts: Mapping[str, int]) -> Iterator[str]:
    """Return the result of a comparison, by its counts."""
    items, counterparts = (counts.get(f"{side}_items", 0) for side in ("source", "destination"))
    compared = (
        f"{counted(items, 'item')} of {pair.source} and {counterparts:,} of {pair.destination}"
    )
    yield f"{compared}, compared"
    names = {"source": pair.source, "destination": pair.destination}
    for name, says in FOUND.items():
        if counts.get(name) or name in ALWAYS_SHOWN:
            yield _line(name, counts.get(name, 0), says.format(**names))
    differing = sum(counts.get(name, 0) for name in NOT_EQUAL)
    remaining = differing - counts.get("repaired", 0)
    if differing:
        is_left = f"{counted(remaining, 'difference')} left" if remaining else "all repaired"
        yield f"  {is_left}; keyhop rekey status says what comes next"


def cost_lines(summary: Mapping[str, Any], prices: Prices) -> Iterator[str]:
    """Return the cost of a run of this process, on demand."""
    reads, writes = summary.get("read_units", 0.0), summary.get("write_units", 0.0)
    dollars = prices.dollars(reads, writes)
    cost = f"{reads:,.1f} RRU, {writes:,.1f} WRU: ${dollars:,.6f}"
    return aligned([("cost", cost)], "  ", WIDTH)


def execution_cost_lines(cost: Mapping[str, Any]) -> Iterator[str]:
    """Return the cost of an execution, with what it paid to Lambda and others."""
    return aligned(cost_facts(cost), "  ", WIDTH)


def serving_of(pair: Pair, control: Mapping[str, Any]) -> str:
    """Return the name of the table that serves, by Control.to_json."""
    return pair.source if control["serving"] == "source" else pair.destination


def serves_line(pair: Pair, control: Mapping[str, Any], pause: float | None) -> str:
    """Return the result of a change; `pause` is for how many seconds writes waited."""
    waited = "" if pause is None else f"; writes waited for {pause:.1f} s"
    return f"{serving_of(pair, control)} serves now{waited}."


class Stages:
    """The stages of a change that is under way, for runs_actions.follow: the kind, and a line."""

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
        remaining = max(0.0, control.settle - (now - self._since))
        says = (SERVES if is_over else STAGES[stage]).format(
            serves=serving_of(self._pair, control.to_json()), left=duration(remaining)
        )
        return f"{stage} {is_over}", [says]


def _line(name: str, count: int, says: str) -> str:
    return f"  {name.replace('_', ' '):12} {count:>9,}  {says}".rstrip()
