"""The status and the results of a re-key: lines for a person, records for a program. Pure.

A process and a deployment report the same counts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from keyhop.jobs.formats import json_text
from keyhop.public.rekey import RekeyResult
from keyhop.rekey.compare.looks import NOT_EQUAL
from keyhop.rekey.control import NO_LIMIT, Control, Stage
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.layout import BACKFILL, DEPLOYMENT, LAG, THROTTLE, VERIFIED, VERIFYING
from keyhop.rekey.standing import RekeyStatus
from keyhop.wording import aligned, cost_facts, counted, duration

WIDTH = 12
"""The columns of the names."""

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
    "foreign": "of the surplus: no key of {source} follows from them; no repair deletes them",
    "repaired": "of these were repaired, which deletes surplus items",
    "unsettled": "were written at every look, and are not settled: verify with repair settles them",
    "in_flight": "were in flight: no difference",
    "bypassed": "of these have a straggler: not repaired; the status with keys names them",
    "unmappable": "have no form under the other key",
    "irreversible": "could not go back as they are",
    "left_out": "left out by the template",
    "ours": "sentinels of a key index",
}
STAGES: Mapping[Stage, str] = {
    "open": "{serves} serves; the gates are checked, and the drain is rehearsed",
    "closing": "closing: routers learn of the change; reads and writes continue, {left} left",
    "frozen": "frozen: writes wait, reads continue; the earlier writes are followed to the end "
    "of the stream",
    "fenced": "fenced: writes wait; what follows has ended",
    "turned": "turned: {serves} serves reads; writes wait for another moment",
}
SERVES = "open: {serves} serves"
"""What a change of the table that serves is doing."""

ALWAYS_SHOWN = ("missing", "surplus", "changed")


def status_lines(
    status: RekeyStatus, show_keys: bool = False, sentence: Callable[[str], str] = str
) -> Iterator[str]:
    """Return the status for a person; `sentence` writes the names of arguments in sentences."""
    yield f"{status.pair.source} -> {status.pair.destination}: {status.phase}"
    yield from aligned(_status_facts(status, show_keys, sentence), "  ", WIDTH)


def _status_facts(
    status: RekeyStatus, show_keys: bool, sentence: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    control = status.control
    examples = status.examples() if show_keys else {}
    yield "means", status.means
    yield "serves", status.serves
    yield "followed by", _followed(status)
    if copied := _copied(status):
        yield "copy", copied
    yield "verified", _verified(status)
    refused = f", {len(status.refused):,} refused by DynamoDB" if status.refused else ""
    yield "claims", f"{len(status.claims):,}{refused}"
    for claim in examples.get("collide", ()):
        why = f": {claim['refusal']}" if "refusal" in claim else ""
        yield "", f"{json_text(claim['owner'])} wants {json_text(claim['place'])}{why}"
    yield "unmappable", f"{status.unmappable:,}{_reasons(status)}"
    for item in examples.get("without_place", ()):
        yield "", f"{json_text(item['key'])}: {item['why']}"
    yield "failures", "not known" if status.failed is None else f"{status.failed:,}"
    if control.shadow or any(status.shadowed.values()):
        counts = ", ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in status.shadowed.items())
        yield "shadow", f"{control.shadow * 100:g} % of reads: {counts}"
    expected = f" of {control.expected_clients:,} expected" if control.expected_clients else ""
    if deployment := status.figure(DEPLOYMENT):
        yield "stack", deployment["stack"]
    unguarded = f", {len(status.unguarded):,} without a guard" if status.unguarded else ""
    yield "clients", f"{len(status.alive):,}{expected}{unguarded}"
    unsettled = f", {len(status.unsettled):,} unsettled" if status.unsettled else ""
    yield "stragglers", f"{len(status.stragglers):,}{unsettled}"
    for straggler in examples.get("bypassed", ()):
        yield "", f"{json_text(straggler['key'])} at {_moment(straggler['at'])} UTC"
    for trouble in status.troubles:
        yield "trouble", sentence(trouble)
    command, reason = status.next_step
    yield "safe", status.safe
    yield "next", command
    yield "", sentence(reason)


def _followed(status: RekeyStatus) -> str:
    direction = status.control.direction
    if direction is None or not status.figure(DEPLOYMENT):
        return "nobody"
    if why := status.mapped.get(direction):
        return f"in doubt: {why}"
    lag = "no lag reported in the last 2 minutes"
    return f"{status.follows}, {lag if status.lag is None else _seconds(status.lag) + ' behind'}"


def _moment(at: float) -> str:
    return datetime.fromtimestamp(float(at), UTC).strftime("%Y-%m-%d %H:%M:%S")


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else duration(seconds)


def _verified(status: RekeyStatus) -> str:
    last, running = status.figure(VERIFIED), ""
    if status.is_begun(VERIFYING):
        run = status.figure(VERIFYING)
        does = "has stopped" if status.has_stopped(VERIFYING) else "is running"
        running = f"; run {run['run']}, begun {_moment(run['began'])} UTC, {does}"
    if not last:
        return f"never{running}"
    at = _moment(last.get("at", 0))
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
    items = counted(last.get("items", 0), "item")
    return f"{at} UTC, {items}{part}: {counts}{repaired}{running}"


def _copied(status: RekeyStatus) -> str:
    copy = status.figure(BACKFILL)
    if not copy:
        return ""
    pace = status.figure(THROTTLE)
    if copy.get("ended") is None:
        limit = pace.get("rate")
        rate = f", under {limit:g} WRU a second" if limit not in (None, NO_LIMIT) else ""
        sign = f"; last sign of life {duration(status.silence(BACKFILL))} ago"
        return f"run {copy['run']}{', paused' if pace.get('paused') else rate}{sign}"
    counts = ", ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in copy["counts"].items())
    return f"finished: {counts}"


def _reasons(status: RekeyStatus) -> str:
    whys = list(dict.fromkeys(item.reason for item in status.unmapped))
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
    differing = difference_count(counts)
    remaining = differing - counts.get("repaired", 0)
    if differing:
        is_left = f"{counted(remaining, 'difference')} left" if remaining else "all repaired"
        yield f"  {is_left}; the status says what comes next"


def difference_count(counts: Mapping[str, int]) -> int:
    """Return how many differences a comparison found, repaired or not."""
    return sum(counts.get(name, 0) for name in NOT_EQUAL)


def cost_line(result: RekeyResult) -> str:
    """Return the cost of a run of this process, on demand."""
    units = f"{result.read_units:,.1f} RRU, {result.write_units:,.1f} WRU"
    (line,) = aligned([("cost", f"{units}: ${result.dollars:,.6f}")], "  ", WIDTH)
    return line


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


def change_lines(pair: Pair, report: Mapping[str, Any]) -> Iterator[str]:
    """Return the result of a change of the table that serves, or its gates (Next.to_json)."""
    if report["action"] == "done":
        yield serves_line(pair, report["control"], report.get("pause"))
        return
    if gates := report["gates"]:
        yield from _gate_lines(gates)
    if report["action"] != "looked":
        serves = serving_of(pair, report["control"])
        yield f"Called off: {serves} serves as before. {report.get('why', '')}".rstrip()


def _gate_lines(gates: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    width = max(len(gate["name"]) for gate in gates)
    for gate in gates:
        yield f"  {'open' if gate['open'] else 'SHUT'}  {gate['name'].ljust(width)}  {gate['says']}"
        if "remedy" in gate:
            yield f"        {' ' * width}  do: {gate['remedy']}"
    shut = sum(not gate["open"] for gate in gates)
    verb = "is" if shut == 1 else "are"
    yield f"{shut} of {len(gates)} gates {verb} shut." if shut else "All gates are open."


def likeness_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Return how the new table would be made, by the dry run of `create`."""
    yield f"{report['destination']} would be made like {report['source']}:"
    width = max((len(row["what"]) for row in report["rows"]), default=0)
    for row in report["rows"]:
        yield f"  {row['what'].ljust(width)}  {row['fate']}: {row['says']}"
        if row["accept"]:
            words = " or ".join(f'accept="{word}"' for word in row["accept"])
            yield f"  {' ' * width}  to go on all the same: {words}"
        if row["command"]:
            yield f"  {' ' * width}  by hand: {row['command']}"


def end_lines(report: Mapping[str, str]) -> Iterator[str]:
    """Return the result of `complete` or `cancel`, or what it would do."""
    if says := report.get("done"):
        yield f"{says[:1].upper()}{says[1:]}."
    else:
        yield from aligned(report.items())


def redriven_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Return what became of the messages of the failure queue."""
    yield f"{counted(report['settled'], 'message')} settled"
    if report["left"]:
        yield f"  {report['left']:,} left, and stay in the queue: {report['why']}"
    if report["others"]:
        yield f"  {report['others']:,} of other pairs, or of no key: left as they are"


def pace_texts(status: RekeyStatus) -> list[str]:
    """Return the lag of the functions, and the reason for a slow copy."""
    lag = status.figures.get(f"{LAG}.forward")
    behind = "" if lag is None else f"live writes {lag['seconds']:.1f} s behind"
    return [text for text in (behind, status.pace.reason) if text]


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
