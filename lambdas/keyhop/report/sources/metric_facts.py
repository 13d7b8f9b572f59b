"""From CloudWatch's datapoints to what a report says of them. Pure.

CloudWatch has no datapoints of what never happened: a throttle metric without any may mean that
nothing was throttled, or that the metrics of this table are out of sight. What is consumed decides:
those metrics are emitted of an idle table too ("DynamoDB metrics and dimensions", SampleCount of
ConsumedReadCapacityUnits). So where they have datapoints, the absence of others means none; where
they have not, nothing is known.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from keyhop.report.facts import TABLE, Absent, Cause, MetricFacts, TableFacts, Throttles
from keyhop.report.sources.metric_plan import DAY, DIRECTIONS, MINUTE, READ_DAYS, Plan, What
from keyhop.wording import duration

Points = Sequence[tuple[float, float]]
"""(a period's first second, its value), in any order."""

NEGLIGIBLE = 0.02
"""Of a day's reads of an index, beside Keyhop's own: our count of our own is not CloudWatch's."""


@dataclass(frozen=True, slots=True)
class Own:
    """What Keyhop itself did to the table between two moments, epoch seconds: it is taken off.

    calls, returned: by operation, as "Scan". read_units: by index.
    """

    began: float
    ended: float
    calls: Mapping[str, float] = field(default_factory=dict)
    returned: Mapping[str, float] = field(default_factory=dict)
    read_units: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of_report(cls, told: Mapping[str, Any]) -> "Own":
        """An earlier report of the table, by its JSON: else its own Scans would be somebody's.

        It does not tell requests apart: all are taken for Scans, which nearly all are.
        """
        at, spent = float(told["at"]), told["spent"]
        scans = {"Scan": float(spent["requests"])}
        return cls(at - float(spent["seconds"]), at, scans)

    def share(self, began: float, ended: float) -> float:
        """How much of it falls into a window, taken as even."""
        if self.ended <= self.began:
            return float(began <= self.began < ended)
        overlap = min(self.ended, ended) - max(self.began, began)
        return max(0.0, overlap) / (self.ended - self.began)


@dataclass(frozen=True, slots=True)
class Series:
    """What was answered. failed: queries of which CloudWatch says that it could not answer them."""

    points: Mapping[What, Points]
    failed: frozenset[What] = frozenset()

    def of(self, *what: str) -> Points:
        return self.points.get(what, ())

    def is_alive(self, target: str) -> bool:
        """Whether the metrics of the table or a GSI are in sight."""
        return any(self.of("consumed", direction, target) for direction in DIRECTIONS)


def facts_of(
    plan: Plan, series: Series, table: TableFacts, ours: Sequence[Own] = ()
) -> MetricFacts | Absent:
    """Absent if the table's metrics are out of sight."""
    if not series.is_alive(TABLE):
        return Absent(
            f"CloudWatch has no datapoints of the table in {duration(plan.ended - plan.began)}, "
            "not even of an idle one",
            "give a --since in which the table was there, in its own account and region",
        )
    gsis = [one.name for one in table.indexes if one.kind == "GSI"]
    targets = [TABLE, *(name for name in gsis if series.is_alive(name))]
    return MetricFacts(
        began=max(plan.began, min(table.created, plan.ended - plan.period)),
        ended=plan.ended,
        consumed=_of_capacity(series, targets, _total),
        peak=_of_capacity(series, targets, lambda points: _most(points) / plan.period),
        throttles=_throttles(plan, series, targets),
        calls=_by_operation(plan, series, "calls", [(own, own.calls) for own in ours]),
        returned=_by_operation(plan, series, "returned", [(own, own.returned) for own in ours]),
        read_days={name: _read_days(series, name, ours) for name in gsis},
        minutes=tuple(
            (at, value * MINUTE / plan.period)
            for at, value in sorted(series.of("consumed", "write", TABLE))
            if value
        ),
        period=plan.period,
    )


def _total(points: Points) -> float:
    return float(sum(value for _, value in points))


def _most(points: Points) -> float:
    return max((value for _, value in points), default=0.0)


def _of_capacity(
    series: Series, targets: Sequence[str], reduced: Callable[[Points], float]
) -> dict[tuple[str, str], float]:
    return {
        (direction, target): reduced(series.of("consumed", direction, target))
        for target in targets
        for direction in DIRECTIONS
        if ("consumed", direction, target) not in series.failed
    }


def _throttles(
    plan: Plan, series: Series, targets: Sequence[str]
) -> dict[tuple[str, Cause, str], Throttles]:
    """Of what was asked; of a target that is out of sight, only throttles that were seen."""
    found: dict[tuple[str, Cause, str], Throttles] = {}
    for what in plan.asked("throttles"):
        _, direction, cause, target = what
        events = [(at, value) for at, value in series.of(*what) if value]
        if what in series.failed or not (events or target in targets):
            continue
        last = max((at + plan.period for at, _ in events), default=None)
        found[direction, cast(Cause, cause), target] = Throttles(_total(events), last)
    return found


def _by_operation(
    plan: Plan, series: Series, kind: str, ours: Iterable[tuple[Own, Mapping[str, float]]]
) -> dict[str, float]:
    found = {}
    for what in plan.asked(kind):
        _, operation = what
        if what not in series.failed:
            own = sum(
                one.share(plan.began, plan.ended) * counts.get(operation, 0.0)
                for one, counts in ours
            )
            found[operation] = max(0.0, _total(series.of(*what)) - own)
    return found


def _read_days(series: Series, index: str, ours: Sequence[Own]) -> int | None:
    """On how many of the last days an index was read; of none that is known if there are
    datapoints of all of them, reads or writes.
    """
    reads = dict(series.of("days", "read", index))
    count = sum(_is_read(at, units, index, ours) for at, units in reads.items())
    covered = {at for direction in DIRECTIONS for at, _ in series.of("days", direction, index)}
    if count or len(covered) >= READ_DAYS:
        return count
    return None


def _is_read(day: float, units: float, index: str, ours: Sequence[Own]) -> bool:
    own = sum(one.share(day, day + DAY) * one.read_units.get(index, 0.0) for one in ours)
    return units - own > NEGLIGIBLE * own
