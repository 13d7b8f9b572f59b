"""One worker's share of the rates that hold for a whole fleet.

A worker's share is the rate over the *level*: how many workers the run's distributed map may run at
once, or runs. An operator may change it with UpdateMapRun at any moment, and Step Functions answers
about one request a second, whatever the size of the fleet. So one worker asks for all, and they
share notes in S3. Time is divided into *turns*. In each turn only the worker asks that has created
the object of the turn. If it is throttled or dies, a worker asks in a later turn. The answer is
recorded in the object of the turn, for workers that begin. Unless there is one, it is also recorded
as the level of the *slot*, which lasts a few turns, for running workers. So:

- A running worker reads the level of each slot before the slot ends. No worker has a larger share
  than by the level of this slot or of the one before.
- A worker that begins uses an answer to a request that was sent after it began, which counts it.
  If that level is above the recorded ones, other workers may still have larger shares: the worker
  waits until the end of the next slot, and asks again.
- A worker that cannot learn the level does not begin. If it is already running, it halves its share
  in every slot without a note. Too small a share only takes longer.
"""

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.refusals import is_transient
from keyhop.errors import AwsRefused, GaveUp, StoreUnavailable
from keyhop.jobs.journal import Journal
from keyhop.storage.store import Store

TURN_SECONDS = 1.0
SLOT_SECONDS = 10.0
CLOCKS_DIFFER_SECONDS = 1.0
MOST_MISSED = 6
"""The number of slots in a row without a note after which a worker no longer halves its share."""

SMALLEST_PART = 1 / 2**MOST_MISSED
"""The smallest fraction of its share to which a worker without notes falls."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of Step Functions in a turn.

    Attributes:
        asked_at: The time of the request, by the clock of the worker that sent it.
        recorded: The level that was recorded for that slot.
        others_level: The lowest level that running workers may still use; infinite if none runs.
    """

    level: int
    asked_at: float
    slot: int
    recorded: int
    others_level: float


class MapLevels:
    """The level of an execution's distributed map, with notes in the store of a run.

    The notes also have the ARN of the map run, so that it is looked up once. The `name` identifies
    this map among those of the run.
    """

    def __init__(self, execution: str, name: str, store: Store, client: Any = None) -> None:
        self._execution = execution
        self._folder = f"levels/{name}"
        self._journal = Journal(store)
        self._arn = ""
        self._client = client or boto3.client(
            "stepfunctions",
            config=Config(
                retries={"mode": "standard", "total_max_attempts": 3},
                connect_timeout=2,
                read_timeout=5,
            ),
        )

    def current(self) -> int | None:
        """Ask Step Functions for the level; return None if it does not answer now.

        Raise AwsRefused if it refuses the request, so that a retry does not help.
        """
        try:
            description = self._described() if self._arn else None
            # A retried map is another map run.
            if description is None or description["status"] != "RUNNING":
                map_runs = self._client.list_map_runs(executionArn=self._execution)["mapRuns"]
                latest = max(map_runs, key=lambda run: run["startDate"], default=None)
                if latest is None:
                    return None
                if description is None or latest["mapRunArn"] != self._arn:
                    self._arn = latest["mapRunArn"]
                    description = self._described()
        except (BotoCoreError, ClientError) as error:
            if is_transient(error):
                return None
            raise AwsRefused(f"Step Functions does not describe the map run: {error}") from error
        counts = description["executionCounts"]
        running, waiting = int(counts["running"]), int(counts["pending"])
        # 0 means no limit: then all pending workers may begin at any moment.
        return max(1, int(description["maxConcurrency"]) or running + waiting, running)

    def _described(self) -> dict[str, Any]:
        map_run: dict[str, Any] = self._client.describe_map_run(mapRunArn=self._arn)
        return map_run

    def recorded(self, slot: int) -> int | None:
        """Return the level that was recorded for a slot; None if there is none."""
        stored = self._journal.load(f"{self._folder}/{slot}.json")
        if stored is None:
            return None
        self._arn = self._arn or stored["mapRun"]
        return int(stored["level"])

    def note(self, slot: int, level: int) -> int:
        """Record the level of a slot unless there is one, and return the recorded level."""
        state = {"level": level, "mapRun": self._arn}
        if self._journal.keep_first(f"{self._folder}/{slot}.json", state):
            return level
        return self.recorded(slot) or level

    def claim(self, turn: int) -> bool:
        """Return whether this worker is the one to ask in a turn."""
        return self._journal.keep_first(self._turn(turn), {})

    def answer(self, turn: int, answer: Answer) -> None:
        """Record the answer of a turn for the other workers."""
        self._journal.keep(self._turn(turn), {**asdict(answer), "mapRun": self._arn})

    def answered(self, turn: int) -> tuple[bool, Answer | None]:
        """Return whether a worker asks in a turn, and the answer if there is one."""
        answer = self._journal.load(self._turn(turn))
        if not answer:
            return answer is not None, None
        self._arn = self._arn or answer.pop("mapRun")
        answer.pop("mapRun", None)
        return True, Answer(**answer)

    def _turn(self, turn: int) -> str:
        return f"{self._folder}/turns/{turn}.json"


@dataclass(slots=True)
class FleetRate:
    """The share of a worker.

    Attributes:
        limit: Applies a share, where 1 is the rate of all workers.
        chance: Spreads the requests of the workers over time.
    """

    levels: MapLevels
    limit: Callable[[float], None]
    wait: Callable[[float], object]
    clock: Callable[[], float]
    chance: random.Random = field(default_factory=random.Random)
    _share: float = 0.0
    _least: float = 0.0
    _next_slot: int = 0
    _next_at: float = 0.0

    def open(self, until: float) -> bool:
        """Set the share before the first page; raise GaveUp if Step Functions did not answer.

        Return False if the time until `until` is too short to ask, or to wait for other workers.
        """
        for seconds, knows in self.opening():
            remaining = until - self.clock()
            self.wait(max(0.0, min(seconds, remaining)))
            if seconds >= remaining:
                if knows:
                    return False
                raise GaveUp("Step Functions did not report how many workers share maxReadRate.")
        return True

    def opening(self) -> Iterator[tuple[float, bool]]:
        """Yield each wait until the share is set: its seconds, and whether there was an answer."""
        began = self.clock()
        while True:
            turn = int(self.clock() // TURN_SECONDS)
            answer = self._answer(turn)
            is_fresh = answer is not None and answer.asked_at >= began
            if answer is None or not is_fresh or answer.slot != self._slot():
                in_next = self.chance.uniform(0.0, 0.8)
                yield (turn + 1 + in_next) * TURN_SECONDS - self.clock(), answer is not None
            elif answer.level > min(answer.recorded, answer.others_level):
                end_of_next = (answer.slot + 2) * SLOT_SECONDS + CLOCKS_DIFFER_SECONDS
                yield end_of_next - self.clock(), True
                began = self.clock()
            else:
                # The other workers use this level. It may be above the present level.
                self._set(answer.slot, answer.recorded)
                return

    def tick(self) -> None:
        """Set the share once in each slot, at a random moment. Called a few times a second."""
        if self.clock() < self._next_at:
            return
        slot = self._slot()
        if slot > self._next_slot:  # this process stood still
            missed = slot - self._next_slot
            self._limit(slot - 1, max(self._share / 2.0**missed, self._least))
        level = self._agreed(slot)
        now = self.clock()
        if level is not None:
            self._set(slot, level)
        elif now < (slot + 1) * SLOT_SECONDS - TURN_SECONDS:
            self._next_at = now + self.chance.uniform(0.5, 1.0) * TURN_SECONDS
        else:
            self._limit(slot, max(self._share / 2, self._least))

    def _agreed(self, slot: int) -> int | None:
        """Return the level of a slot, and ask for it if no other worker does."""
        try:
            level = self.levels.recorded(slot)
            if level is None:
                answer = self._asked(int(self.clock() // TURN_SECONDS))
                if answer is not None and answer.slot == slot:
                    level = answer.recorded
        except StoreUnavailable:
            return None
        return level

    def _answer(self, turn: int) -> Answer | None:
        """Return the answer of a turn, and ask for it if no other worker does."""
        try:
            is_asked, answer = self.levels.answered(turn)
            if is_asked and answer is not None:
                return replace(answer, asked_at=answer.asked_at - CLOCKS_DIFFER_SECONDS)
            return None if is_asked else self._asked(turn)
        except StoreUnavailable:
            return None

    def _asked(self, turn: int) -> Answer | None:
        """Ask for the level in a turn, for all workers; None if another one asks, or no answer."""
        if not self.levels.claim(turn):
            return None
        asked_at, slot = self.clock(), self._slot()
        others_level, recorded = self._heard_before(slot), self.levels.recorded(slot)
        level = self.levels.current()
        if level is None or slot != self._slot():
            return None
        recorded = recorded or self.levels.note(slot, level)
        answer = Answer(level, asked_at, slot, recorded, others_level)
        self.levels.answer(turn, answer)
        return answer

    def _heard_before(self, slot: int) -> float:
        """Return the level of workers without the note of this slot: doubled for each without."""
        for missed in range(MOST_MISSED + 1):
            level = self.levels.recorded(slot - 1 - missed)
            if level is not None:
                return float(level << missed)
        return math.inf

    def _set(self, slot: int, level: int) -> None:
        self._least = SMALLEST_PART / level
        self._limit(slot, 1.0 / level)

    def _limit(self, slot: int, share: float) -> None:
        """Apply a share; `slot` is the one whose level was read or missed."""
        self._share = share
        self.limit(share)
        # Not at the same moment as the others, and with time for an answer before the slot ends.
        self._next_slot = slot + 1
        self._next_at = (slot + 1 + self.chance.uniform(0.0, 0.7)) * SLOT_SECONDS

    def _slot(self) -> int:
        return int(self.clock() // SLOT_SECONDS)
