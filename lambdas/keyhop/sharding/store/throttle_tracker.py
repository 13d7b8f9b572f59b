"""What a throttled writer does: finds out why, counts, and adds shards when it is time to."""

import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.values import TypedValue, canonical
from keyhop.sharding.key import policy
from keyhop.sharding.key.policy import Action, Cause, Decision, Policy, RecentAttempts
from keyhop.sharding.key.shards import PASSING, Phase
from keyhop.sharding.store.capacity import Capacity
from keyhop.sharding.store.metadata import KeyMetadata, Metadata, MetadataChanged
from keyhop.sharding.store.requests import Requests, is_throttled

logger = logging.getLogger(__name__)

MOST_KEYS = 1_000
"""Keys whose throttles are remembered at most."""
PROBE_SECONDS = 1.0
"""Between two probes of one key."""


@dataclass(slots=True)
class _KeyState:
    """A key that was throttled. number: the shard count at which that was counted."""

    recent: RecentAttempts
    number: int
    busy: Lock = field(default_factory=Lock)
    probed: float = float("-inf")


@dataclass(slots=True)
class ThrottleTracker:
    """Counts the throttles of each key, and lets the hot ones grow; for any number of threads."""

    requests: Requests
    metadata: Metadata
    table: str
    capacity: Capacity
    policy: Policy
    warned_of_index: bool = False
    _keys: "OrderedDict[Any, _KeyState]" = field(default_factory=OrderedDict)
    _passing: tuple[Lock, ...] = field(default_factory=lambda: tuple(Lock() for _ in range(64)))
    _lock: Lock = field(default_factory=Lock)

    def accepted(self, logical: TypedValue) -> None:
        """A first attempt of a write has succeeded; only keys that were throttled are counted."""
        state = self._keys.get(canonical(logical))
        if state is not None:
            with self._lock:
                state.recent.note(self.requests.clock.monotonic(), throttled=False, first=True)

    def throttled(
        self,
        logical: TypedValue,
        known: KeyMetadata,
        physical: Mapping[str, TypedValue],
        error: ClientError,
        first: bool,
    ) -> None:
        """A write of a key was refused: count it, and add shards when the policy says so.

        physical: the key of the item. first: whether it was the write's first attempt.
        """
        state = self._of(logical, known.shards.number)
        cause = self._cause_of(error, state, physical)
        if cause is Cause.TABLE_TOO_SMALL:
            self.capacity.raise_if_allowed()
        if cause is Cause.HOT_INDEX_KEY and not self.warned_of_index:
            self.warned_of_index = True
            logger.warning(
                "a key of an index is hot: more shards of the table's key do not help, unless the "
                "index's partition key carries the suffix too"
            )
        if cause is not Cause.HOT_KEY:
            return
        self.requests.usage.count(hot_throttles=1)
        clock = self.requests.clock
        with self._lock:
            if state.number != known.shards.number:
                state.recent.clear()
                state.number = known.shards.number
            if self._is_on_its_way(known):
                state.recent.clear()  # what counts is whether the relief suffices
            state.recent.note(clock.monotonic(), throttled=True, first=first)
            decision = policy.decide(
                self.policy,
                known.shards,
                state.recent,
                clock.time(),
                self.metadata.known_for(known),
            )
        if decision.action is Action.AT_MAXIMUM:
            self.requests.usage.count(at_maximum=1)
        if decision.action not in (Action.GROW, Action.REOPEN):
            return
        if not state.busy.acquire(blocking=False):
            return
        try:
            self._change(logical, known, decision)
        except MetadataChanged:
            pass  # what won is known now
        except (ClientError, BotoCoreError) as error:
            # Trouble with the metadata is not the write's, which backs off and goes on.
            logger.warning("no shards were added: %s", type(error).__name__)
        finally:
            state.busy.release()

    def pass_on(self, logical: TypedValue, known: KeyMetadata) -> KeyMetadata:
        """End a phase for which nothing but time had to pass; returns what is known then.

        One thread does it, and nobody waits for it: the write goes on in the phase that there is.
        """
        if known.shards.phase not in PASSING:
            return known
        if self.metadata.known_for(known) < known.shards.settle:
            return known
        if known.shards.phase is Phase.OPENED and self._is_hot(logical):
            return known  # not enough: the next growth may begin from here
        passing = self._passing[hash(canonical(logical)) % len(self._passing)]
        if not passing.acquire(blocking=False):
            return known
        try:
            after = known.shards.advanced(self.requests.clock.time())
            return self.metadata.change(logical, known, after, patiently=False)
        except MetadataChanged as lost:
            return lost.current
        except (ClientError, BotoCoreError) as error:
            logger.warning("the shards' phase goes on for now: %s", type(error).__name__)
            return known
        finally:
            passing.release()

    def _is_hot(self, logical: TypedValue) -> bool:
        state = self._keys.get(canonical(logical))
        return state is not None and len(state.recent.throttles) >= self.policy.threshold

    def _is_on_its_way(self, known: KeyMetadata) -> bool:
        """Whether not all writers use the new shards yet, or write new items at twice the cost."""
        placement = self.metadata.placement
        if known.shards.phase is Phase.OPENED and placement and placement.append_only:
            return self.metadata.known_for(known) < known.shards.settle / 2
        return known.shards.phase in PASSING

    def _change(self, logical: TypedValue, known: KeyMetadata, decision: Decision) -> None:
        self.requests.clock.sleep(self.requests.chance.uniform(0, self.policy.spread))
        if self.metadata.of(logical).version != known.version:
            return  # somebody else was quicker
        now = self.requests.clock.time()
        if decision.action is Action.REOPEN:
            self.metadata.change(logical, known, known.shards.reopened(now), patiently=False)
            return
        grown = self.metadata.grow(
            logical, known, decision.number, self.policy.most_in_all, patiently=False
        )
        if grown is None:
            self.requests.usage.count(at_maximum=1)

    def _of(self, logical: TypedValue, number: int) -> _KeyState:
        name = canonical(logical)
        with self._lock:
            state = self._keys.get(name)
            if state is None:
                state = self._keys[name] = _KeyState(RecentAttempts(self.policy.window), number)
                if len(self._keys) > MOST_KEYS:
                    self._keys.popitem(last=False)
            return state

    def _cause_of(
        self, error: ClientError, state: _KeyState, physical: Mapping[str, TypedValue]
    ) -> Cause:
        if policy.has_reasons(error.response):
            return policy.cause_of(error.response)
        now = self.requests.clock.monotonic()
        with self._lock:
            if now - state.probed < PROBE_SECONDS:
                return Cause.UNKNOWN  # one throttle is counted for each probe, not for each error
            state.probed = now
        probed = self._probe(physical)
        if probed is None:
            return Cause.UNKNOWN
        if policy.has_reasons(probed.response):
            return policy.cause_of(probed.response)
        return policy.cause_by_consumption(*self.capacity.consumption())

    def _probe(self, physical: Mapping[str, TypedValue]) -> ClientError | None:
        """Provoke a throttle with its reason, by a write that can never change anything."""
        self.requests.usage.count(probes=1)
        name = next(iter(physical))
        try:
            self.requests.once(
                "delete_item",
                TableName=self.table,
                Key=dict(physical),
                ConditionExpression="attribute_exists(#p) AND attribute_not_exists(#p)",
                ExpressionAttributeNames={"#p": name},
            )
        except ClientError as error:
            return error if is_throttled(error) else None
        except BotoCoreError:
            return None
        return None
