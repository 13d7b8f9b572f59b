"""One worker's share of the rates that hold for a whole fleet.

A worker's share is the rate over the *level*: how many workers the run's distributed map may run at
once, or runs. Somebody may change it with UpdateMapRun at any moment. So it is looked at anew in
every slot of SLOT_SECONDS of the wall clock, and all workers agree on it: who is first in a slot
asks Step Functions and notes the answer in S3, once; the others read the note. Therefore,

- whatever the level was in slot s, by the end of slot s+1 every worker has heard of it;
- a worker that begins asks for itself. If the level is above what others have noted of late, they
  may still take larger shares: it waits until the end of the next slot, and asks again;
- a worker that cannot learn the level does not begin; if it is at work, it halves its share with
  every slot that it misses. Too small a share only takes longer.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import is_transient
from keyhop.errors import AwsRefused, GaveUp, StoreUnavailable
from keyhop.jobs.journal import Journal
from keyhop.storage.store import Store

SLOT_SECONDS = 10.0
CLOCKS_DIFFER_SECONDS = 1.0
SMALLEST_PART = 1 / 64
"""Of its share: what is left to a worker that hears nothing for long."""


class Levels(Protocol):
    """What is known of the level."""

    def current(self) -> int | None:
        """As Step Functions says now; None if it does not, for the moment."""

    def noted(self, slot: int) -> int | None:
        """What the workers agreed on in a slot; None if nobody has asked in it."""

    def note(self, slot: int, level: int) -> int:
        """Note an answer, unless there is one: returns the one that holds."""


class MapLevels:
    """The level of an execution's distributed map, with notes in a run's store.

    name: tells this map from others of the run.
    """

    def __init__(self, execution: str, name: str, store: Store) -> None:
        self._execution = execution
        self._folder = f"levels/{name}"
        self._journal = Journal(store)
        self._arn = ""
        self._client: Any = boto3.client(
            "stepfunctions",
            config=Config(
                retries={"mode": "standard", "total_max_attempts": 3},
                connect_timeout=2,
                read_timeout=5,
            ),
        )

    def current(self) -> int | None:
        """Levels.current; raises AwsRefused if asking again does not help."""
        try:
            if not self._arn:
                begun = self._client.list_map_runs(executionArn=self._execution)["mapRuns"]
                latest = max(begun, key=lambda run: run["startDate"], default=None)
                if latest is None:
                    return None
                self._arn = latest["mapRunArn"]
            told = self._client.describe_map_run(mapRunArn=self._arn)
        except (BotoCoreError, ClientError) as error:
            if is_transient(error):
                return None
            raise AwsRefused(f"Step Functions does not tell of the map run: {error}") from error
        counts = told["executionCounts"]
        running, waiting = int(counts["running"]), int(counts["pending"])
        # 0 is no limit: then all that wait may begin at any moment.
        return max(1, int(told["maxConcurrency"]) or running + waiting, running)

    def noted(self, slot: int) -> int | None:
        found = self._journal.load(self._name(slot))
        return None if found is None else int(found["level"])

    def note(self, slot: int, level: int) -> int:
        if self._journal.keep_first(self._name(slot), {"level": level}):
            return level
        return self.noted(slot) or level

    def _name(self, slot: int) -> str:
        return f"{self._folder}/{slot}.json"


@dataclass(slots=True)
class FleetRate:
    """Keeps a worker at its share.

    limit: takes the share, of 1 for all workers. clock: the wall clock, in seconds.
    """

    levels: Levels
    limit: Callable[[float], None]
    wait: Callable[[float], object]
    clock: Callable[[], float]
    chance: random.Random = field(default_factory=random.Random)
    _share: float = 0.0
    _least: float = 0.0
    _next_at: float = 0.0

    def open(self, until: float) -> bool:
        """Set the share before the first page; False if others must be waited for beyond `until`.

        Raises GaveUp if Step Functions does not tell the level before `until`.
        """
        while True:
            level = self._current(until)
            slot = self._slot()
            # Whoever is at work has noted something in each slot since it began.
            before, present = self.levels.noted(slot - 1), self.levels.note(slot, level)
            if level <= min(present, before or present):
                self._set(level)
                return True
            end_of_next = (slot + 2) * SLOT_SECONDS + CLOCKS_DIFFER_SECONDS
            if not self._pause(end_of_next - self.clock(), until):
                return False

    def tick(self) -> None:
        """Called a few times a second: in each slot, at a moment of its own, sets the share."""
        if self.clock() < self._next_at:
            return
        level = self._agreed()
        if level is not None:
            self._set(level)
            return
        self._share = max(self._share / 2, self._least)
        self.limit(self._share)
        self._next_at = self._moment_in(self._slot() + 1)

    def _agreed(self) -> int | None:
        slot = self._slot()
        try:
            level = self.levels.noted(slot)
            if level is None:
                level = self.levels.current()
                level = None if level is None else self.levels.note(slot, level)
        except StoreUnavailable:
            return None
        return level

    def _current(self, until: float) -> int:
        while (level := self.levels.current()) is None:
            # Others may be asking at the same moment, which is why there was no answer.
            if not self._pause(self.chance.uniform(1.0, SLOT_SECONDS), until):
                raise GaveUp("Step Functions did not tell how many workers share maxReadRate.")
        return level

    def _pause(self, seconds: float, until: float) -> bool:
        """Wait; False if `until` comes first."""
        left = until - self.clock()
        self.wait(max(0.0, min(seconds, left)))
        return seconds < left

    def _set(self, level: int) -> None:
        self._share = 1.0 / level
        self._least = SMALLEST_PART * self._share
        self.limit(self._share)
        self._next_at = self._moment_in(self._slot() + 1)

    def _slot(self) -> int:
        return int(self.clock() // SLOT_SECONDS)

    def _moment_in(self, slot: int) -> float:
        # Not at the same moment as the others, and with time for an answer before the slot ends.
        return (slot + self.chance.uniform(0.0, 0.7)) * SLOT_SECONDS
