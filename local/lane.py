"""A lane of the stream pump: some items of a shard, in order, one batch at a time."""

import json
import random
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from local.mapping import (
    AGE_EXCEEDED,
    RETRIES_EXHAUSTED,
    Batch,
    Record,
    Reply,
    Settings,
    Trouble,
    event_of,
    failure_message,
    judge,
    next_batch,
    shuffled,
    split_by_age,
)

FIRST_REST = 0.05
LONGEST_REST = 1.0
"""Seconds between failed attempts, doubled each time."""

LONGEST_DELAY_OF_A_DUPLICATE = 20
"""Records of its lane that a duplicate lets go before it."""

QUIET_SECONDS = 0.2
"""When nothing new came for so long, duplicates wait no longer."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What a pump has done. repeated: those of the delivered records that came again on purpose.

    invocations and failed count attempts, given_up counts records, queued messages.
    """

    invocations: int = 0
    delivered: int = 0
    repeated: int = 0
    filtered: int = 0
    failed: int = 0
    given_up: int = 0
    queued: int = 0


@dataclass
class Shared:
    """What all lanes of a pump have in common; `lock` guards all that changes."""

    functions: Any
    queues: Any
    trouble: Trouble
    clock: Callable[[], float]
    lock: threading.RLock = field(default_factory=threading.RLock)
    paused: bool = False
    stopping: bool = False
    tally: Counter[str] = field(default_factory=Counter)
    failure: BaseException | None = None
    lanes: list["Lane"] = field(default_factory=list)

    def notify(self) -> None:
        """Tell all lanes that something has changed. Call it under the lock."""
        for lane in self.lanes:
            lane.changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Keep what ended a thread, for `settle` to tell."""
        with self.lock:
            self.failure = self.failure or error


@dataclass
class Source:
    """A mapping as it is now; ended: it was deleted."""

    settings: Settings
    ended: bool = False


class Lane:
    """Delivers what it is dealt, from a thread of its own; the thread ends with its source."""

    def __init__(self, shared: Shared, source: Source, shard: str, number: int) -> None:
        self.shard = shard
        self.changed = threading.Condition(shared.lock)
        self.last_failure = ""
        self._shared = shared
        self._source = source
        self._closed = False
        self._pending: deque[Record] = deque()
        self._again: deque[Batch] = deque()
        self._duplicates: list[tuple[int, Record]] = []
        self._current: Batch | None = None
        self._strikes = 0
        name = f"{source.settings.table} {source.settings.function} {shard} {number}"
        self._chance = random.Random(f"{shared.trouble.seed} {name}")
        self.thread = threading.Thread(target=self._run, name=f"lane {name}", daemon=True)
        with shared.lock:
            shared.lanes.append(self)
        self.thread.start()

    @property
    def waiting(self) -> int:
        """Records that are not done, with duplicates to come. Call it under the lock."""
        again = sum(len(batch.records) for batch in self._again)
        current = len(self._current.records) if self._current else 0
        return len(self._pending) + again + current + len(self._duplicates)

    def deal(self, records: Iterable[Record]) -> None:
        """More records, younger than those before."""
        with self.changed:
            self._pending.extend(records)
            if self._shared.trouble.shuffled:
                self._pending = deque(shuffled(self._pending, self._chance))
            self.changed.notify()

    def close(self) -> None:
        """Nothing more will come: end when all is done."""
        with self.changed:
            self._closed = True
            self.changed.notify()

    def _run(self) -> None:
        try:
            while batch := self._next():
                self._deliver(batch)
        except BaseException as error:
            self._shared.fail(error)

    def _next(self) -> Batch | None:
        """Wait for a batch, and for the permission to deliver it; None at the end."""
        with self.changed:
            self._current = None
            while not self._over():
                if self._may_work():
                    self._current = self._again.popleft() if self._again else self._new_batch()
                    if self._current:
                        return self._current
                quiet = not self.changed.wait(QUIET_SECONDS if self._duplicates else None)
                if quiet and self._may_work():
                    self._recall(everything=True)
            return None

    def _over(self) -> bool:
        ended = self._shared.stopping or self._source.ended
        return ended or (self._closed and not self.waiting)

    def _may_work(self) -> bool:
        return self._source.settings.enabled and not self._shared.paused

    def _new_batch(self) -> Batch | None:
        return next_batch(self._pending, self._source.settings.batch_size)

    def _deliver(self, batch: Batch) -> None:
        settings = self._source.settings
        old, young = split_by_age(settings, batch, self._shared.clock())
        if old:
            self._give_up(settings, old, AGE_EXCEEDED)
        if not young:
            return
        with self.changed:
            self._current = young
        reply = self._invoke(settings, young)
        if reply is None:
            self._try_again(young)
        else:
            self._obey(settings, young, reply)

    def _invoke(self, settings: Settings, batch: Batch) -> Reply | None:
        """None if the function was not reached, or did not answer: that is no retry."""
        self._count(invocations=1)
        try:
            answer = self._shared.functions.invoke(
                FunctionName=settings.function, Payload=event_of(batch.records)
            )
            payload = answer["Payload"].read()
        except (BotoCoreError, ClientError) as error:
            self.last_failure = str(error)
            return None
        return Reply(
            error=answer.get("FunctionError"),
            answer=_parsed(payload),
            request=answer.get("ResponseMetadata", {}).get("RequestId") or str(uuid.uuid4()),
            status=answer.get("StatusCode", 200),
            version=answer.get("ExecutedVersion", "$LATEST"),
        )

    def _try_again(self, batch: Batch) -> None:
        self._count(failed=1)
        self._strikes += 1
        with self.changed:
            self._again.appendleft(batch)
            self._current = None
        self._rest()

    def _obey(self, settings: Settings, batch: Batch, reply: Reply) -> None:
        verdict = judge(settings, batch, reply)
        if verdict.failed:
            self.last_failure = (
                f"{reply.error or 'it reported failures'}: {str(reply.answer)[:300]}"
            )
            self._count(failed=1)
        if verdict.given_up:
            self._give_up(settings, verdict.given_up, RETRIES_EXHAUSTED)
        with self.changed:
            self._again.extendleft(reversed(verdict.again))
            self._done(verdict.done)
            self._current = None
        self._strikes = 0 if verdict.moved else self._strikes + 1
        if verdict.again:
            self._rest()

    def _done(self, records: tuple[Record, ...]) -> None:
        self._count(delivered=len(records), repeated=sum(record.repeated for record in records))
        self._duplicates = [(left - len(records), each) for left, each in self._duplicates]
        share = self._shared.trouble.duplicates
        for record in records:
            if not record.repeated and self._chance.random() < share:
                left = self._chance.randint(0, LONGEST_DELAY_OF_A_DUPLICATE)
                self._duplicates.append((left, replace(record, repeated=True)))
        self._recall()

    def _recall(self, everything: bool = False) -> None:
        """Put the duplicates whose time has come before what waits."""
        due = [record for left, record in self._duplicates if everything or left <= 0]
        self._duplicates = [
            (left, record) for left, record in self._duplicates if not everything and left > 0
        ]
        self._pending.extendleft(reversed(due))

    def _give_up(self, settings: Settings, batch: Batch, condition: str) -> None:
        if settings.queue:
            url = self._shared.queues.get_queue_url(QueueName=settings.queue)["QueueUrl"]
            body = failure_message(settings, batch, condition, self._shared.clock())
            self._shared.queues.send_message(QueueUrl=url, MessageBody=body)
            self._count(queued=1)
        self._count(given_up=len(batch.records))

    def _rest(self) -> None:
        """Wait before the next attempt, or until the end."""
        until = time.monotonic() + min(
            LONGEST_REST, FIRST_REST * 2 ** min(max(self._strikes - 1, 0), 10)
        )
        with self.changed:
            while not self._over() and (left := until - time.monotonic()) > 0:
                self.changed.wait(left)

    def _count(self, **more: int) -> None:
        with self.changed:
            self._shared.tally.update(more)


def _parsed(payload: bytes) -> Any:
    """A response; text that is not JSON is one too, which makes no sense."""
    try:
        return json.loads(payload) if payload else None
    except ValueError:
        return payload.decode(errors="replace")
