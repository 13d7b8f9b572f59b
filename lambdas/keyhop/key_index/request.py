"""What a person asks of BuildKeyIndex, AuditKeyIndex and RemoveKeyIndex: their inputs. Pure."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keyhop.jobs.request import STARTED_BY, InvalidInput
from keyhop.key_index.protocol import GRACE_SECONDS
from keyhop.key_index.task import LONGEST_GRACE_SECONDS, Walk

DEFAULT_WRITE_RATE = 1000.0
"""Write units a second: 500 sentinels."""

_NUMBERS: dict[str, tuple[float, float]] = {
    "maxWriteRate": (2.0, 1e6),
    "maxReadRate": (1.0, 1e6),
    "maxConcurrency": (1, 10_000),
    "graceSeconds": (0.0, LONGEST_GRACE_SECONDS),
}
_TRUTHS = {"build": ("planOnly",), "audit": ("repair", "scheduled"), "remove": ("sweep",)}


@dataclass(frozen=True, slots=True)
class Order:
    """What a person asks of one of the three state machines.

    scheduled: nobody asked, so a table without a key index is none of an audit's business.
    sweep: look for sentinels also where no index is known.
    """

    action: str
    table: str
    plan_only: bool = False
    repair: bool = True
    scheduled: bool = False
    sweep: bool = False
    grace_seconds: float = GRACE_SECONDS
    max_write_rate: float = DEFAULT_WRITE_RATE
    max_read_rate: float | None = None
    max_concurrency: int | None = None

    @classmethod
    def parse(cls, action: str, given: object) -> "Order":
        """From an execution's input; raises InvalidInput, which names all that is wrong."""
        if not isinstance(given, Mapping):
            raise InvalidInput('The input must be a JSON object such as {"table": "Orders"}.')
        known = ["table", *_NUMBERS, *_TRUTHS[action]]
        given = {name: value for name, value in given.items() if name != STARTED_BY}
        problems = []
        for name in given:
            if name not in known:
                close = difflib.get_close_matches(str(name), known, 1)
                hint = f", did you mean {close[0]}?" if close else ""
                problems.append(f"unknown: {name!r}{hint}; the fields are {', '.join(known)}")
        if not isinstance(given.get("table"), str):
            problems.append('table must be the name or the ARN of a table, as {"table": "Orders"}')
        for name, (low, high) in _NUMBERS.items():
            value = given.get(name, low)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                problems.append(f"{name} must be a number")
            elif not low <= value <= high:
                problems.append(f"{name} must be a number from {low:g} to {high:g}")
        for name in _TRUTHS[action]:
            if not isinstance(given.get(name, True), bool):
                problems.append(f"{name} must be true or false")
        if problems:
            raise InvalidInput(f"The input is wrong: {'; '.join(problems)}.")
        concurrency = given.get("maxConcurrency")
        return cls(
            action,
            given["table"],
            plan_only=given.get("planOnly", False),
            repair=given.get("repair", True),
            scheduled=given.get("scheduled", False),
            sweep=given.get("sweep", False),
            grace_seconds=float(given.get("graceSeconds", GRACE_SECONDS)),
            max_write_rate=float(given.get("maxWriteRate", DEFAULT_WRITE_RATE)),
            max_read_rate=given.get("maxReadRate"),
            max_concurrency=None if concurrency is None else int(concurrency),
        )

    def walk(self, kind: str) -> Walk:
        """One walk of it."""
        return Walk(
            kind,  # type: ignore[arg-type]
            repair=self.repair,
            grace_seconds=self.grace_seconds,
            max_write_rate=self.max_write_rate,
        )

    def run_input(self, kind: str, started_by: str) -> dict[str, Any]:
        """The input of EnumerateKeys for a walk."""
        given = {
            "table": self.table,
            "walk": self.walk(kind).to_json(),
            "maxReadRate": self.max_read_rate,
            "maxConcurrency": self.max_concurrency,
            STARTED_BY: started_by,
        }
        return {name: value for name, value in given.items() if value is not None}
