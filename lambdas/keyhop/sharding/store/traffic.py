"""The writes to each key, as writers report them in the metadata."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.refusals import CONDITION_FAILED, error_code
from keyhop.dynamodb.values import TypedValue, canonical
from keyhop.sharding.store.requests import Requests

MOST_KEYS = 10_000
REPORT_SECONDS = 60.0
REPORT_UNITS = 1_000.0
"""A writer reports a key after this time, or this number of units, whichever comes first."""
PAUSE_SECONDS = 10.0
PAUSE_UNITS = 25.0
"""The same if the process pauses, and may not continue; a report costs a write unit."""
MOST_AT_A_PAUSE = 25
"""The maximum number of keys that are then reported; the others wait for the next report."""
MINUTES_KEPT = 10
HOURS_KEPT = 25
MOST_OUTDATED = 10
"""The number of outdated minutes after which a writer deletes them, as small items are cheap."""


@dataclass(slots=True)
class _Waiting:
    """The unreported traffic of one key, as write units by epoch minute, since the last report."""

    since: float
    reported: float | None = None
    minutes: dict[int, float] = field(default_factory=dict)

    @property
    def units(self) -> float:
        return sum(self.minutes.values())

    def is_due(self, now: float, seconds: float, units: float) -> bool:
        since = self.since if self.reported is None else self.reported
        return now - since >= seconds or self.units >= units

    def add(self, minutes: Mapping[int, float]) -> None:
        for minute, units in minutes.items():
            self.minutes[minute] = self.minutes.get(minute, 0.0) + units


@dataclass(slots=True)
class Traffic:
    """The reports of one writer, by epoch minute, to the metadata table; for any number of threads.
    One is sent once, and an error never makes a write fail: the next one includes the same data.
    """

    requests: Requests
    table: str
    partition: str
    _waiting: dict[Any, _Waiting] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def wrote(self, logical: TypedValue, units: float) -> None:
        """Record a write to a key with several shards, and report from time to time."""
        now = self.requests.clock.monotonic()
        minute = int(self.requests.clock.time() // 60)
        name, oldest = canonical(logical), None
        with self._lock:
            waiting = self._waiting.setdefault(name, _Waiting(now))
            waiting.add({minute: units})
            due = [name] if waiting.is_due(now, REPORT_SECONDS, REPORT_UNITS) else []
            if len(self._waiting) > MOST_KEYS:
                oldest = next(iter(self._waiting))
                due.append(oldest)
        self._report_all(due)
        if oldest is not None:
            with self._lock:
                self._waiting.pop(oldest, None)

    def pause(self) -> None:
        """Report important traffic, because the process may be stopped and never continue."""
        now = self.requests.clock.monotonic()
        with self._lock:
            due = [
                name
                for name, waiting in self._waiting.items()
                if waiting.reported is None or waiting.is_due(now, PAUSE_SECONDS, PAUSE_UNITS)
            ]
            due.sort(key=lambda name: self._waiting[name].units, reverse=True)
        self._report_all(due[:MOST_AT_A_PAUSE])

    def flush(self) -> None:
        """Report all remaining traffic, if possible."""
        self._report_all(list(self._waiting))

    def prune(self, logical: TypedValue, minutes: Mapping[int, float]) -> None:
        """Delete outdated reports of all writers."""
        old = outdated(minutes, self.requests.clock.time())[: 5 * HOURS_KEPT]
        if old:
            removed = ", ".join(f"traffic.#m{n}" for n in range(len(old)))
            names = {f"#m{n}": str(minute) for n, minute in enumerate(old)}
            self._update(
                logical, UpdateExpression=f"REMOVE {removed}", ExpressionAttributeNames=names
            )

    def _report_all(self, names: list[Any]) -> None:
        now = self.requests.clock.monotonic()
        for name in names:
            with self._lock:
                waiting = self._waiting.get(name)
                if waiting is None or not waiting.minutes:
                    continue
                minutes, waiting.minutes, waiting.reported = waiting.minutes, {}, now
            type_, content = name
            if not self._report({type_: content}, minutes):
                with self._lock:
                    self._waiting.setdefault(name, waiting).add(minutes)

    def _report(self, logical: TypedValue, minutes: Mapping[int, float]) -> bool:
        """Send a report, and return whether it was stored."""
        try:
            for attempt in range(2):
                try:
                    reported = self._added(logical, minutes)
                    break
                except ClientError as error:
                    is_first = error_code(error) in (CONDITION_FAILED, "ValidationException")
                    if attempt or not is_first:
                        raise
                    self._begin(logical)
            if len(outdated(reported, self.requests.clock.time())) > MOST_OUTDATED:
                self.prune(logical, reported)
        except (ClientError, BotoCoreError):
            return False
        return True

    def _added(self, logical: TypedValue, minutes: Mapping[int, float]) -> dict[int, float]:
        """Add to the existing reports, and return all of them."""
        numbered = [*enumerate(minutes.items())]
        answer = self._update(
            logical,
            UpdateExpression="ADD " + ", ".join(f"traffic.#m{n} :u{n}" for n, _ in numbered),
            ConditionExpression="attribute_exists(traffic)",
            ExpressionAttributeNames={f"#m{n}": str(minute) for n, (minute, _) in numbered},
            ExpressionAttributeValues={
                f":u{n}": {"N": f"{units:.0f}"} for n, (_, units) in numbered
            },
            ReturnValues="ALL_NEW",
        )
        return traffic_of(answer.get("Attributes", {})) or {}

    def _begin(self, logical: TypedValue) -> None:
        """Create the map to which reports are added."""
        self._update(
            logical,
            UpdateExpression="SET traffic = if_not_exists(traffic, :none)",
            ConditionExpression="attribute_exists(#n)",
            ExpressionAttributeNames={"#n": "number_of_shards"},
            ExpressionAttributeValues={":none": {"M": {}}},
        )

    def _update(self, logical: TypedValue, **parameters: Any) -> dict[str, Any]:
        key = {self.partition: logical}
        return self.requests.once("update_item", TableName=self.table, Key=key, **parameters)


def outdated(minutes: Mapping[int, float], now: float) -> list[int]:
    """Return the minutes of outdated reports at `now` (epoch seconds), oldest first. Each hour's
    busiest minute is kept, and the latest ones, because reports of them still arrive.
    """
    latest = int(now // 60) - MINUTES_KEPT
    oldest = int(now // 3600) - HOURS_KEPT
    busiest: dict[int, int] = {}
    for minute in sorted(minutes):
        best = busiest.setdefault(minute // 60, minute)
        if minutes[minute] > minutes[best]:
            busiest[minute // 60] = minute
    return [
        minute
        for minute in sorted(minutes)
        if minute // 60 < oldest or (minute < latest and busiest[minute // 60] != minute)
    ]


def traffic_of(item: Mapping[str, TypedValue]) -> dict[int, float] | None:
    """Return write units by epoch minute, as writers reported them; None if they cannot be read."""
    if "traffic" not in item:
        return {}
    try:
        reported = item["traffic"]["M"]
        return {int(minute): float(units["N"]) for minute, units in reported.items()}
    except (KeyError, ValueError, TypeError):
        return None
