"""One worker's share of a read rate that holds for a whole fleet.

How many workers run at once is what Step Functions says of the run's distributed map, asked again
every while: somebody may change it with UpdateMapRun. A worker that cannot learn it does not read:
shares that are too large would break the rate, and shares that are too small only take longer. See
shares.py for the rules.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from keyhop.client import is_transient
from keyhop.enumerate.fleet.shares import (
    LEAST_POLL_SECONDS,
    must_wait_for_others,
    poll_seconds,
    rate_share,
)
from keyhop.errors import AwsRefused

FEWEST_SECONDS_TO_ASK_AGAIN = 1.0


@dataclass(frozen=True, slots=True)
class AtOnce:
    """How many children a map may run at once (0: any number), and how many it runs."""

    limit: int
    running: int


class MapRun:
    """The distributed map of an execution."""

    def __init__(self, execution: str) -> None:
        self._execution = execution
        self.arn = ""
        self._client: Any = boto3.client(
            "stepfunctions",
            config=Config(
                retries={"mode": "standard", "total_max_attempts": 3},
                connect_timeout=2,
                read_timeout=5,
            ),
        )

    def at_once(self) -> AtOnce | None:
        """As it is now; None if Step Functions does not say for the moment. Raises AwsRefused."""
        try:
            if not self.arn:
                begun = self._client.list_map_runs(executionArn=self._execution)["mapRuns"]
                latest = max(begun, key=lambda run: run["startDate"], default=None)
                if latest is None:
                    return None
                self.arn = latest["mapRunArn"]
            told = self._client.describe_map_run(mapRunArn=self.arn)
        except (BotoCoreError, ClientError) as error:
            if is_transient(error):
                return None
            raise AwsRefused(f"Step Functions does not tell of the map run: {error}") from error
        return AtOnce(int(told["maxConcurrency"]), int(told["executionCounts"]["running"]))


@dataclass(slots=True)
class Valve:
    """Keeps a worker at its share of `max_rate`; `planned` workers were to run at once.

    raised_for: seconds since a worker first met a limit that is greater than planned.
    """

    max_rate: float
    planned: int
    at_once: Callable[[], AtOnce | None]
    raised_for: Callable[[int], float]
    limit: Callable[[float], None]
    wait: Callable[[float], object]
    clock: Callable[[], float]
    _next_at: float = 0.0
    _poll: float = LEAST_POLL_SECONDS
    _share: float = 0.0

    def open(self, first: bool, until: float) -> bool:
        """Set the share before the first page; False if it was not known by `until`.

        first: no other invocation has worked the group in this map.
        """
        told = self._asked(until)
        if first and told and must_wait_for_others(self.planned, told.limit, told.running):
            # Those of the fleet as planned look again after so many seconds at the latest.
            seconds = poll_seconds(self.planned) - self.raised_for(told.limit)
            told = self._asked(until) if self._pause(seconds, until) else None
        if told is None:
            return False
        self._set(told)
        return True

    def tick(self) -> None:
        """Called a few times a second: adjusts the share when it is time."""
        if self.clock() < self._next_at:
            return
        told = self.at_once()
        if told is not None:
            self._set(told)
            return
        # There may be more workers than at the last answer. Those that began since have waited for
        # this worker to hear of them: it must not go on as before.
        self._share /= 2
        self.limit(self._share)
        self._next_at = self.clock() + self._poll

    def _asked(self, until: float) -> AtOnce | None:
        while (told := self.at_once()) is None:
            # Others may be asking at the same moment, which is why there was no answer.
            seconds = random.uniform(FEWEST_SECONDS_TO_ASK_AGAIN, LEAST_POLL_SECONDS)
            if not self._pause(seconds, until):
                return None
        return told

    def _pause(self, seconds: float, until: float) -> bool:
        """Wait; False if `until` comes first."""
        left = until - self.clock()
        self.wait(max(0.0, min(seconds, left)))
        return seconds < left

    def _set(self, told: AtOnce) -> None:
        self._poll = poll_seconds(max(told.limit, told.running))
        self._next_at = self.clock() + self._poll
        self._share = rate_share(self.max_rate, told.limit, told.running)
        self.limit(self._share)
