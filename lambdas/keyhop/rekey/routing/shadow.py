"""Shadow reads: the same read on the table that does not serve, and what the two differ in.

The table that serves answers, whatever the other one does. A difference may be a change that is on
its way. It is looked at again, past the lag, by a later read of the application, as there is no
thread of our own; it is *real* only if the one side has stayed as it was, and the other still
differs.
"""

import hashlib
import random
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from keyhop.clock import Clock
from keyhop.dynamodb.usage import Usage

LAG_SECONDS = 2.0
LOOKS = 3
MOST_WAITING = 100
"""Differences to be looked at again; further ones are counted as in flight."""

_TOLD_BESIDE = ("ResponseMetadata", "ConsumedCapacity")


@dataclass(frozen=True, slots=True)
class Difference:
    """key: SHA-256 of what the caller named the read by, in hexadecimal; empty if he did not."""

    key: str
    serving: str


@dataclass(slots=True)
class _Doubt:
    """serves, candidate: the strongest reads there are. was: what the serving one said first."""

    about: Difference
    serves: Callable[[], Any]
    candidate: Callable[[], Any]
    same: Callable[[Any, Any], bool]
    was: Any
    due: float
    revision: int
    looks: int = 0


def same_answers(one: Any, other: Any) -> bool:
    """Whether two results are equal, but for what an answer of boto3's tells beside items."""
    return bool(_content(one) == _content(other))


def hashed(key: object) -> str:
    """For logs: what a key is called there."""
    return "" if key is None else hashlib.sha256(repr(key).encode()).hexdigest()


@dataclass(slots=True, eq=False)
class Shadow:
    """Counts shadow_reads, shadow_equal, shadow_in_flight, shadow_real, shadow_failed, and the
    seconds that both sides took: serving_seconds, candidate_seconds.
    """

    clock: Clock
    usage: Usage
    on_difference: Callable[[Difference], None] = lambda difference: None
    chance: random.Random = field(default_factory=random.SystemRandom)
    _waiting: deque[_Doubt] = field(default_factory=deque)

    def is_drawn(self, share: float) -> bool:
        return share > 0 and self.chance.random() < share

    def read(
        self,
        sides: Mapping[str, Callable[[], Any]],
        serving: str,
        revision: int,
        *,
        key: object,
        same: Callable[[Any, Any], bool],
        again: Mapping[str, Callable[[], Any]],
    ) -> Any:
        """What the serving side says, or raises. again: strongly consistent reads of the same."""
        other = next(side for side in sides if side != serving)
        first = self.chance.random() < 0.5
        found = self._tried(sides[other]) if first else None
        began = self.clock.monotonic()
        answer = sides[serving]()
        self.usage.count(serving_seconds=self.clock.monotonic() - began, shadow_reads=1)
        found = found or self._tried(sides[other])
        if isinstance(found, _Failed):
            self.usage.count(shadow_failed=1)
        elif self._agree(same, answer, found.value):
            self.usage.count(shadow_equal=1)
        elif len(self._waiting) >= MOST_WAITING:
            self.usage.count(shadow_in_flight=1)
        else:
            about = Difference(hashed(key), serving)
            due = self.clock.monotonic() + LAG_SECONDS
            doubt = _Doubt(about, again[serving], again[other], same, answer, due, revision)
            self._waiting.append(doubt)
        return answer

    def look_again(self, revision: int) -> None:
        """At one difference that is past the lag, if there is one."""
        try:
            doubt = self._waiting.popleft()
        except IndexError:
            return
        if self.clock.monotonic() < doubt.due:
            self._waiting.appendleft(doubt)
            return
        if doubt.revision != revision:  # the sides may have changed places
            self.usage.count(shadow_in_flight=1)
            return
        candidate, now = self._tried(doubt.candidate), self._tried(doubt.serves)
        if isinstance(candidate, _Failed) or isinstance(now, _Failed):
            self.usage.count(shadow_failed=1)
        elif self._agree(doubt.same, now.value, candidate.value):
            self.usage.count(shadow_in_flight=1)
        elif doubt.looks and not same_answers(doubt.was, now.value):
            self.usage.count(shadow_in_flight=1)  # it changes all the time
        elif doubt.looks + 1 < LOOKS:
            # The first answer may have been an eventually consistent one: this is what counts.
            doubt.was, doubt.looks = now.value, doubt.looks + 1
            doubt.due = self.clock.monotonic() + LAG_SECONDS
            self._waiting.append(doubt)
        else:
            self.usage.count(shadow_real=1)
            self.on_difference(doubt.about)

    def _tried(self, read: Callable[[], Any]) -> "_Found | _Failed":
        began = self.clock.monotonic()
        try:
            return _Found(read())
        except Exception:  # whatever it is, it is not the caller's
            return _Failed()
        finally:
            self.usage.count(candidate_seconds=self.clock.monotonic() - began)

    @staticmethod
    def _agree(same: Callable[[Any, Any], bool], one: Any, other: Any) -> bool:
        try:
            return bool(same(one, other))
        except Exception:
            return False


@dataclass(frozen=True, slots=True)
class _Found:
    value: Any


@dataclass(frozen=True, slots=True)
class _Failed:
    pass


def _content(answer: Any) -> Any:
    if not isinstance(answer, Mapping):
        return answer
    return {name: value for name, value in answer.items() if name not in _TOLD_BESIDE}
