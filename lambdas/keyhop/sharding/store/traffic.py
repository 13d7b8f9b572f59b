"""What writers have written to each key, as they report it in the metadata."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.requester import CONDITION_FAILED, error_code
from keyhop.dynamodb.values import TypedValue, canonical
from keyhop.sharding.store.requests import Requests

REPORT_SECONDS = 60.0
"""How often a writer reports what it has written to a key."""
HOURS_KEPT = 48
MOST_HOURS = 72
"""With more of them in an item, a writer forgets the oldest."""


@dataclass(slots=True)
class _Waiting:
    units: float = 0.0
    reported: float = 0.0


@dataclass(slots=True)
class Traffic:
    """Reports of one writer, by epoch hour; for any number of threads.

    table, partition: the metadata table, and the name of its key. A report is made once, and never
    fails a write: what cannot be reported is added to the next report.
    """

    requests: Requests
    table: str
    partition: str
    most_keys: int
    _waiting: dict[Any, _Waiting] = field(default_factory=dict)
    _old_hours: dict[Any, list[str]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def saw(self, logical: TypedValue, item: Mapping[str, TypedValue]) -> None:
        """Metadata was read: if its reports have become many, the oldest go with the next one."""
        hours = sorted(item.get("traffic", {}).get("M", ()))
        if len(hours) > MOST_HOURS:
            with self._lock:
                if len(self._old_hours) < self.most_keys:
                    self._old_hours[canonical(logical)] = hours[:-HOURS_KEPT]

    def wrote(self, logical: TypedValue, units: float) -> None:
        """Remember what was written to a key of several shards, and report it from time to time.

        Shrinking goes by it.
        """
        now = self.requests.clock.monotonic()
        name = canonical(logical)
        with self._lock:
            traffic = self._waiting.get(name)
            if traffic is None:
                if len(self._waiting) >= self.most_keys:
                    self._waiting.pop(next(iter(self._waiting)))
                traffic = self._waiting[name] = _Waiting(reported=now)
            traffic.units += units
            if now - traffic.reported < REPORT_SECONDS:
                return
            units, traffic.units, traffic.reported = traffic.units, 0.0, now
        if not self._reported(logical, units):
            with self._lock:
                traffic.units += units  # with the next report

    def flush(self) -> None:
        """Report all that was written and not yet reported, if that is possible."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for (type_, content), traffic in waiting.items():
            if traffic.units:
                self._reported({type_: content}, traffic.units)

    def prune(
        self, logical: TypedValue, hours: Mapping[int, float], kept: int = HOURS_KEPT
    ) -> None:
        """Forget all reports of these hours but the latest ones."""
        old = sorted(hours)[: max(0, len(hours) - kept)][:MOST_HOURS]
        if old:
            removed = ", ".join(f"traffic.#h{n}" for n in range(len(old)))
            names = {f"#h{n}": str(hour) for n, hour in enumerate(old)}
            self._update(logical, f"REMOVE {removed}", names)

    def _reported(self, logical: TypedValue, units: float) -> bool:
        """Whether a report of traffic has been taken; it must not hold a write up, nor fail it."""
        hour = str(int(self.requests.clock.time() // 3600))
        written = {"N": f"{units:.0f}"}
        try:
            if not self._added(logical, hour, written):
                self._begun(logical, hour, written)
            old = self._old_hours.pop(canonical(logical), ())
            if old:
                self.prune(logical, dict.fromkeys(map(int, old), 0.0), kept=0)
        except (ClientError, BotoCoreError):
            return False
        return True

    def _added(self, logical: TypedValue, hour: str, units: TypedValue) -> bool:
        there = "attribute_exists(traffic)"
        try:
            self._update(logical, "ADD traffic.#h :u", {"#h": hour}, {":u": units}, there)
        except ClientError as error:
            if error_code(error) not in (CONDITION_FAILED, "ValidationException"):
                raise
            return False
        return True

    def _begun(self, logical: TypedValue, hour: str, units: TypedValue) -> None:
        absent = "attribute_exists(#n) AND attribute_not_exists(traffic)"
        values = {":t": {"M": {hour: units}}}
        self._update(logical, "SET traffic = :t", {"#n": "number_of_shards"}, values, absent)

    def _update(self, logical: TypedValue, *expressions: Any) -> None:
        self.requests.update(self.table, {self.partition: logical}, *expressions)


def traffic_of(item: Mapping[str, TypedValue]) -> dict[int, float]:
    """Write units by epoch hour, as writers have reported them."""
    reported = item.get("traffic", {}).get("M", {})
    return {int(hour): float(units["N"]) for hour, units in reported.items()}
