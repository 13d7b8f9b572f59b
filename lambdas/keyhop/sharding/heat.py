"""What a throttled writer does: finds out why, counts, and adds shards when it is time to."""

import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.values import TypedValue
from keyhop.sharding import counts, policy
from keyhop.sharding.calls import Calls, is_throttled
from keyhop.sharding.metadata import Known, Lost, Metadata
from keyhop.sharding.policy import Action, Cause, Decision, Heat, Policy
from keyhop.sharding.provisioned import Capacity
from keyhop.sharding.shards import PASSING, Phase
from keyhop.sharding.traffic import name_of

logger = logging.getLogger(__name__)

HOT_KEYS = 1_000
"""Keys whose throttles are remembered at most."""
PROBE_SECONDS = 1.0
"""Between two probes of one key."""


@dataclass(slots=True)
class _Hot:
    """A key that was throttled. number: the shard count at which that was counted."""

    heat: Heat
    number: int
    busy: Lock = field(default_factory=Lock)
    probed: float = float("-inf")
    cause: Cause = Cause.UNKNOWN


@dataclass(slots=True)
class Thermometer:
    """Counts the throttles of each key, and lets the hot ones grow; for any number of threads."""

    calls: Calls
    metadata: Metadata
    table: str
    capacity: Capacity
    policy: Policy
    told_of_index: bool = False
    _keys: "OrderedDict[Any, _Hot]" = field(default_factory=OrderedDict)
    _passing: tuple[Lock, ...] = field(default_factory=lambda: tuple(Lock() for _ in range(64)))
    _lock: Lock = field(default_factory=Lock)

    def accepted(self, logical: TypedValue) -> None:
        """A first attempt of a write has succeeded; only keys that were throttled are counted."""
        hot = self._keys.get(name_of(logical))
        if hot is not None:
            with self._lock:
                hot.heat.note(self.calls.clock.monotonic(), throttled=False, first=True)

    def throttled(
        self,
        logical: TypedValue,
        known: Known,
        physical: Mapping[str, TypedValue],
        error: ClientError,
        first: bool,
    ) -> None:
        """A write of a key was refused: count it, and add shards when the policy says so.

        physical: the key of the item. first: whether it was the write's first attempt.
        """
        hot = self._of(logical, known.shards.number)
        cause = self._cause_of(error, hot, physical)
        if cause is Cause.TABLE_TOO_SMALL:
            self.capacity.raise_if_allowed()
        if cause is Cause.HOT_INDEX_KEY and not self.told_of_index:
            self.told_of_index = True
            logger.warning(
                "a key of an index is hot: more shards of the table's key do not help, unless the "
                "index's partition key carries the suffix too"
            )
        if cause is not Cause.HOT_KEY:
            return
        self.calls.counts.add(counts.HOT_THROTTLES)
        clock = self.calls.clock
        with self._lock:
            if hot.number != known.shards.number:
                hot.heat.clear()
                hot.number = known.shards.number
            if self._is_on_its_way(known):
                hot.heat.clear()  # what counts is whether the relief suffices
            hot.heat.note(clock.monotonic(), throttled=True, first=first)
            decision = policy.decide(
                self.policy,
                known.shards,
                hot.heat,
                clock.time(),
                self.metadata.known_for(known),
            )
        if decision.action is Action.AT_MAXIMUM:
            self.calls.counts.add(counts.AT_MAXIMUM)
        if decision.action not in (Action.GROW, Action.REOPEN):
            return
        if not hot.busy.acquire(blocking=False):
            return
        try:
            self._change(logical, known, decision)
        except Lost:
            pass  # what won is known now
        except (ClientError, BotoCoreError) as error:
            # Trouble with the metadata is not the write's, which backs off and goes on.
            logger.warning("no shards were added: %s", type(error).__name__)
        finally:
            hot.busy.release()

    def pass_on(self, logical: TypedValue, known: Known) -> Known:
        """End a phase for which nothing but time had to pass; returns what is known then.

        One thread does it, and nobody waits for it: the write goes on in the phase that there is.
        """
        if known.shards.phase not in PASSING:
            return known
        if self.metadata.known_for(known) < known.shards.settle:
            return known
        if known.shards.phase is Phase.OPENED and self._is_hot(logical):
            return known  # not enough: the next growth may begin from here
        passing = self._passing[hash(name_of(logical)) % len(self._passing)]
        if not passing.acquire(blocking=False):
            return known
        try:
            after = known.shards.advanced(self.calls.clock.time())
            return self.metadata.change(logical, known, after, patiently=False)
        except Lost as lost:
            return lost.current
        except (ClientError, BotoCoreError) as error:
            logger.warning("the shards' phase goes on for now: %s", type(error).__name__)
            return known
        finally:
            passing.release()

    def _is_hot(self, logical: TypedValue) -> bool:
        hot = self._keys.get(name_of(logical))
        return hot is not None and len(hot.heat.hits) >= self.policy.threshold

    def _is_on_its_way(self, known: Known) -> bool:
        """Whether not all writers use the new shards yet, or write new items at twice the cost."""
        placement = self.metadata.placement
        if known.shards.phase is Phase.OPENED and placement and placement.append_only:
            return self.metadata.known_for(known) < known.shards.settle / 2
        return known.shards.phase in PASSING

    def _change(self, logical: TypedValue, known: Known, decision: Decision) -> None:
        self.calls.clock.sleep(self.calls.chance.uniform(0, self.policy.spread))
        if self.metadata.of(logical).version != known.version:
            return  # somebody else was quicker
        now = self.calls.clock.time()
        if decision.action is Action.REOPEN:
            self.metadata.change(logical, known, known.shards.reopened(now), patiently=False)
            return
        most = self.policy.most_in_all
        added = decision.number - known.shards.number
        if most is not None and not self.metadata.reserve(added, most):
            self.calls.counts.add(counts.AT_MAXIMUM)
            return
        try:
            after = known.shards.grown(decision.number, now)
            self.metadata.change(logical, known, after, patiently=False)
        except Lost:
            if most is not None:
                self.metadata.give_back(added)
            raise

    def _of(self, logical: TypedValue, number: int) -> _Hot:
        name = name_of(logical)
        with self._lock:
            hot = self._keys.get(name)
            if hot is None:
                hot = self._keys[name] = _Hot(Heat(self.policy.window), number)
                if len(self._keys) > HOT_KEYS:
                    self._keys.popitem(last=False)
            return hot

    def _cause_of(self, error: ClientError, hot: _Hot, physical: Mapping[str, TypedValue]) -> Cause:
        if policy.has_reasons(error.response):
            return policy.cause_of(error.response)
        now = self.calls.clock.monotonic()
        with self._lock:
            if now - hot.probed < PROBE_SECONDS:
                return Cause.UNKNOWN  # one throttle is counted for each probe, not for each error
            hot.probed = now
        probed = self._probe(physical)
        if probed is None:
            return Cause.UNKNOWN
        if policy.has_reasons(probed.response):
            return policy.cause_of(probed.response)
        return policy.cause_by_consumption(*self.capacity.consumption())

    def _probe(self, physical: Mapping[str, TypedValue]) -> ClientError | None:
        """Ask for a throttle with its reason, by a write that can never change anything."""
        self.calls.counts.add(counts.PROBES)
        name = next(iter(physical))
        try:
            self.calls.once(
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
