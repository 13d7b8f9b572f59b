"""One worker's share of a read rate that holds for a whole fleet.

How many workers run at once is what Step Functions says of the run's distributed map, asked again
every while: somebody may change it with UpdateMapRun. See shares.py for the rules.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from keyhop.enumerate.fleet.shares import must_wait_for_others, poll_seconds, rate_share


@dataclass(frozen=True, slots=True)
class AtOnce:
    """How many children a map may run at once (0: any number), and how many it runs."""

    limit: int
    running: int


class MapRun:
    """The distributed map of an execution."""

    def __init__(self, execution: str) -> None:
        self._execution = execution
        self._arn = ""
        self._client: Any = boto3.client(
            "stepfunctions",
            config=Config(
                retries={"mode": "standard", "total_max_attempts": 3},
                connect_timeout=2,
                read_timeout=5,
            ),
        )

    def at_once(self) -> AtOnce | None:
        """As it is now; None if Step Functions does not say."""
        try:
            if not self._arn:
                begun = self._client.list_map_runs(executionArn=self._execution)["mapRuns"]
                latest = max(begun, key=lambda run: run["startDate"], default=None)
                if latest is None:
                    return None
                self._arn = latest["mapRunArn"]
            told = self._client.describe_map_run(mapRunArn=self._arn)
        except (BotoCoreError, ClientError):
            return None
        return AtOnce(int(told["maxConcurrency"]), int(told["executionCounts"]["running"]))


@dataclass(slots=True)
class Valve:
    """Keeps a worker at its share of `max_rate`; `planned` workers were to run at once."""

    max_rate: float
    planned: int
    at_once: Callable[[], AtOnce | None]
    limit: Callable[[float], None]
    wait: Callable[[float], object]
    clock: Callable[[], float]
    _next_at: float = 0.0
    _is_set: bool = False

    def open(self, first: bool) -> None:
        """Set the share before the first page. first: no other invocation has worked the group."""
        told = self._adjust()
        if first and told and must_wait_for_others(self.planned, told.limit, told.running):
            self.wait(poll_seconds(max(told.limit, told.running)))
            self._adjust()

    def tick(self) -> None:
        """Called a few times a second: adjusts the share when it is time."""
        if self.clock() >= self._next_at:
            self._adjust()

    def _adjust(self) -> AtOnce | None:
        told = self.at_once()
        known = told or AtOnce(self.planned, self.planned)
        self._next_at = self.clock() + poll_seconds(max(known.limit, known.running))
        if told is not None or not self._is_set:
            self.limit(rate_share(self.max_rate, known.limit, known.running))
            self._is_set = True
        return told
