"""Shadow reads: make the same read on the table that does not serve, and compare the results.

The serving table answers, whatever the other one does. A difference may be a change in flight. A
later read of the application compares again, after the lag, as a router has no thread. The
difference is *real* only if the serving side has not changed, and the other still differs.
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
"""Differences that wait for another comparison; further ones are counted as in flight."""

_FAILED = object()
"""The result of a read that has raised."""

_TOLD_BESIDE = ("ResponseMetadata", "ConsumedCapacity")


@dataclass(frozen=True, slots=True)
class Difference:
    """A real difference; `key` is the SHA-256 of the read's name, in hexadecimal; empty if none."""

    key: str
    serving: str


@dataclass(slots=True)
class _Doubt:
    """A difference that waits for another comparison, with the first answer of the serving table,
    and the strongest available reads of this (`serves`) and of the other table (`candidate`).
    """

    about: Difference
    serves: Callable[[], Any]
    candidate: Callable[[], Any]
    same: Callable[[Any, Any], bool]
    was: Any
    due: float
    revision: int
    looks: int = 0


def same_answers(first: Any, second: Any) -> bool:
    """Return whether two results are equal, ignoring boto3's metadata."""
    return bool(_content(first) == _content(second))


def hashed(key: object) -> str:
    """Return the form of a key for logs."""
    return "" if key is None else hashlib.sha256(repr(key).encode()).hexdigest()


@dataclass(slots=True, eq=False)
class Shadow:
    """Makes shadow reads and counts shadow_reads, shadow_equal, shadow_in_flight, shadow_real and
    shadow_failed, and the seconds of both sides: serving_seconds, candidate_seconds.
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
        """Return the serving side's result; `again` has the same reads, strongly consistent."""
        candidate_side = next(side for side in sides if side != serving)
        is_first = self.chance.random() < 0.5
        result = self._tried(sides[candidate_side]) if is_first else None
        began = self.clock.monotonic()
        answer = sides[serving]()
        self.usage.count(serving_seconds=self.clock.monotonic() - began, shadow_reads=1)
        if not is_first:
            result = self._tried(sides[candidate_side])
        if result is _FAILED:
            self.usage.count(shadow_failed=1)
        elif self._agree(same, answer, result):
            self.usage.count(shadow_equal=1)
        elif len(self._waiting) >= MOST_WAITING:
            self.usage.count(shadow_in_flight=1)
        else:
            about = Difference(hashed(key), serving)
            due = self.clock.monotonic() + LAG_SECONDS
            doubt = _Doubt(
                about, again[serving], again[candidate_side], same, answer, due, revision
            )
            self._waiting.append(doubt)
        return answer

    def look_again(self, revision: int) -> None:
        """Compare again for one difference that is older than the lag, if there is one."""
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
        if candidate is _FAILED or now is _FAILED:
            self.usage.count(shadow_failed=1)
        elif self._agree(doubt.same, now, candidate):
            self.usage.count(shadow_in_flight=1)
        elif doubt.looks and not same_answers(doubt.was, now):
            self.usage.count(shadow_in_flight=1)  # the item changes constantly
        elif doubt.looks + 1 < LOOKS:
            # The first answer may have been eventually consistent, so this one replaces it.
            doubt.was, doubt.looks = now, doubt.looks + 1
            doubt.due = self.clock.monotonic() + LAG_SECONDS
            self._waiting.append(doubt)
        else:
            self.usage.count(shadow_real=1)
            self.on_difference(doubt.about)

    def _tried(self, read: Callable[[], Any]) -> Any:
        began = self.clock.monotonic()
        try:
            return read()
        except Exception:  # must not reach the caller
            return _FAILED
        finally:
            self.usage.count(candidate_seconds=self.clock.monotonic() - began)

    @staticmethod
    def _agree(
        same: Callable[[Any, Any], bool], serving_answer: Any, candidate_answer: Any
    ) -> bool:
        try:
            return bool(same(serving_answer, candidate_answer))
        except Exception:
            return False


def _content(answer: Any) -> Any:
    if not isinstance(answer, Mapping):
        return answer
    return {name: value for name, value in answer.items() if name not in _TOLD_BESIDE}
