"""One worker's share of the rates that hold for a whole fleet.

A worker's share is the rate over the *level*: how many workers the run's distributed map may run at
once, or runs. Somebody may change it with UpdateMapRun at any moment, and Step Functions answers
about one question a second, whatever the size of the fleet. So workers ask one for all, by notes in
S3: time is divided into *turns*, and in each only the one asks who created the turn's object. If
that one is throttled, or dies, somebody asks in a later turn. The answer is noted there, for those
that begin; and, unless there is one, as that of the *slot*, of a few turns, for those at work. So,

- whoever is at work hears of each slot's level before its end, and nobody has a larger share than
  by the level of his slot or of the one before;
- a worker that begins goes by an answer that was asked for after it began, so it counts itself. If
  that is above what others have noted of late, they may still take larger shares: it waits until
  the end of the next slot, and asks again;
- a worker that cannot learn the level does not begin; if it is at work, it halves its share with
  every slot that it misses. Too small a share only takes longer.
"""

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import is_transient
from keyhop.errors import AwsRefused, GaveUp, StoreUnavailable
from keyhop.jobs.journal import Journal
from keyhop.storage.store import Store

TURN_SECONDS = 1.0
SLOT_SECONDS = 10.0
CLOCKS_DIFFER_SECONDS = 1.0
MOST_MISSED = 6
"""Slots in a row without a note, after which a worker's share is no further halved."""

SMALLEST_PART = 1 / 2**MOST_MISSED
"""Of its share: what is left to a worker that hears nothing for long."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What Step Functions said in a turn.

    asked: when, by the clock of who asked. noted: the level that counts in that slot. others: by
    what level those at work may still go, at the least; infinite if nobody is.
    """

    level: int
    asked: float
    slot: int
    noted: int
    others: float


class MapLevels:
    """The level of an execution's distributed map, with notes in a run's store.

    name: tells this map from others of the run. client: of Step Functions. The notes hold the map
    run's ARN too, so that it is looked for once.
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
        """As Step Functions says now; None if it does not, for the moment.

        Raises AwsRefused if asking again does not help.
        """
        try:
            told = self._described() if self._arn else None
            if told is None or told["status"] != "RUNNING":  # a retried map is another map run
                begun = self._client.list_map_runs(executionArn=self._execution)["mapRuns"]
                latest = max(begun, key=lambda run: run["startDate"], default=None)
                if latest is None:
                    return None
                if told is None or latest["mapRunArn"] != self._arn:
                    self._arn = latest["mapRunArn"]
                    told = self._described()
        except (BotoCoreError, ClientError) as error:
            if is_transient(error):
                return None
            raise AwsRefused(f"Step Functions does not tell of the map run: {error}") from error
        counts = told["executionCounts"]
        running, waiting = int(counts["running"]), int(counts["pending"])
        # 0 is no limit: then all that wait may begin at any moment.
        return max(1, int(told["maxConcurrency"]) or running + waiting, running)

    def _described(self) -> dict[str, Any]:
        told: dict[str, Any] = self._client.describe_map_run(mapRunArn=self._arn)
        return told

    def noted(self, slot: int) -> int | None:
        """The level that counts in a slot; None if nobody has asked in it."""
        found = self._journal.load(f"{self._folder}/{slot}.json")
        if found is None:
            return None
        self._arn = self._arn or found["mapRun"]
        return int(found["level"])

    def note(self, slot: int, level: int) -> int:
        """Note a slot's level, unless there is one: returns the one that holds."""
        state = {"level": level, "mapRun": self._arn}
        if self._journal.keep_first(f"{self._folder}/{slot}.json", state):
            return level
        return self.noted(slot) or level

    def claim(self, turn: int) -> bool:
        """Whether it is this worker that asks in a turn."""
        return self._journal.keep_first(self._turn(turn), {})

    def answer(self, turn: int, answer: Answer) -> None:
        """For all who look at the turn."""
        self._journal.keep(self._turn(turn), {**asdict(answer), "mapRun": self._arn})

    def answered(self, turn: int) -> tuple[bool, Answer | None]:
        """Whether somebody asks in a turn, and the answer once there is one."""
        found = self._journal.load(self._turn(turn))
        if not found:
            return found is not None, None
        self._arn = self._arn or found.pop("mapRun")
        found.pop("mapRun", None)
        return True, Answer(**found)

    def _turn(self, turn: int) -> str:
        return f"{self._folder}/turns/{turn}.json"


@dataclass(slots=True)
class FleetRate:
    """Keeps a worker at its share.

    limit: takes the share, of 1 for all workers. clock: the wall clock, in seconds.
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
        """Set the share before the first page; False if others must be waited for beyond `until`.

        False too if time was too short for a turn; GaveUp if Step Functions did not answer.
        """
        for seconds, knows in self.opening():
            left = until - self.clock()
            self.wait(max(0.0, min(seconds, left)))
            if seconds >= left:
                if knows:
                    return False
                raise GaveUp("Step Functions did not tell how many workers share maxReadRate.")
        return True

    def opening(self) -> Iterator[tuple[float, bool]]:
        """The waits until the share is set: seconds, and whether Step Functions answers."""
        began = self.clock()
        while True:
            turn = int(self.clock() // TURN_SECONDS)
            answer = self._answer(turn)
            is_fresh = answer is not None and answer.asked >= began
            if answer is None or not is_fresh or answer.slot != self._slot():
                in_next = self.chance.uniform(0.0, 0.8)
                yield (turn + 1 + in_next) * TURN_SECONDS - self.clock(), answer is not None
            elif answer.level > min(answer.noted, answer.others):
                end_of_next = (answer.slot + 2) * SLOT_SECONDS + CLOCKS_DIFFER_SECONDS
                yield end_of_next - self.clock(), True
                began = self.clock()
            else:
                # By what the others go: it may be more than the level by now.
                self._set(answer.slot, answer.noted)
                return

    def tick(self) -> None:
        """Called a few times a second: in each slot, at a moment of its own, sets the share."""
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
        """The level that counts in a slot, asked for if nobody does."""
        try:
            level = self.levels.noted(slot)
            if level is None:
                answer = self._asked(int(self.clock() // TURN_SECONDS))
                if answer is not None and answer.slot == slot:
                    level = answer.noted
        except StoreUnavailable:
            return None
        return level

    def _answer(self, turn: int) -> Answer | None:
        """A turn's answer; asked for now, if nobody does."""
        try:
            is_asked, answer = self.levels.answered(turn)
            if is_asked and answer is not None:
                return replace(answer, asked=answer.asked - CLOCKS_DIFFER_SECONDS)
            return None if is_asked else self._asked(turn)
        except StoreUnavailable:
            return None

    def _asked(self, turn: int) -> Answer | None:
        """Ask in a turn, for all; None if somebody else does, or there is no answer in this slot.

        Raises AwsRefused, StoreUnavailable.
        """
        if not self.levels.claim(turn):
            return None
        asked, slot = self.clock(), self._slot()
        others, noted = self._heard_before(slot), self.levels.noted(slot)
        level = self.levels.current()
        if level is None or slot != self._slot():
            return None
        noted = noted or self.levels.note(slot, level)
        answer = Answer(level, asked, slot, noted, others)
        self.levels.answer(turn, answer)
        return answer

    def _heard_before(self, slot: int) -> float:
        """The level by which those at work go who have not heard of this slot's: as it was noted
        last, and doubled with each slot that they missed.
        """
        for missed in range(MOST_MISSED + 1):
            level = self.levels.noted(slot - 1 - missed)
            if level is not None:
                return float(level << missed)
        return math.inf

    def _set(self, slot: int, level: int) -> None:
        self._least = SMALLEST_PART / level
        self._limit(slot, 1.0 / level)

    def _limit(self, slot: int, share: float) -> None:
        """slot: of which the level was heard of, or missed."""
        self._share = share
        self.limit(share)
        # Not at the same moment as the others, and with time for an answer before the slot ends.
        self._next_slot = slot + 1
        self._next_at = (slot + 1 + self.chance.uniform(0.0, 0.7)) * SLOT_SECONDS

    def _slot(self) -> int:
        return int(self.clock() // SLOT_SECONDS)
