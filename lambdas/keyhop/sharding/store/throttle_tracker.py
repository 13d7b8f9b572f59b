"""The reaction to throttling: find the cause, count, and add shards when necessary.

If many processes have one writer each, none can measure the demand alone. So their observations of
a throttled key are added up in its metadata. Only a writer that is throttled, and needs the demand
to add shards, adds its observations, at most once a second, or four times with new cycles, and
receives the sum. The sum starts again after each change of the metadata, and after POOL_SECONDS.
"""

import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, fields
from threading import Lock, get_ident, local
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.refusals import CONDITION_FAILED, error_code
from keyhop.dynamodb.values import TypedValue, canonical
from keyhop.sharding.key import policy
from keyhop.sharding.key.policy import Action, Cause, Policy, RecentAttempts, Sums
from keyhop.sharding.key.shards import DRAINING, PASSING, Phase
from keyhop.sharding.store.capacity import Capacity
from keyhop.sharding.store.metadata import KeyMetadata, Metadata, MetadataChanged
from keyhop.sharding.store.requests import Requests, is_throttled

logger = logging.getLogger(__name__)

POOL_SECONDS = 10.0
"""By the writers' clocks; writers whose clocks differ more start a new sum, and measure alone."""
_WORDS = [field.name for field in fields(Sums)]
_IS_OURS = "#last_updated = :version AND #pressure.#version = :version AND #pressure.#since"


@dataclass(frozen=True, slots=True)
class Pressure:
    """Sums for the keys of one table. table, partition: the metadata table, and its key's name."""

    requests: Requests
    table: str
    partition: str

    def add(self, logical: TypedValue, version: str, observed: Sums) -> Sums | None:
        """Add observations under this version of the metadata; return the sum, or None if unknown.
        An error here never makes a write fail.
        """
        now = self.requests.clock.time()
        numbers = {
            f":{word}": _number(number)
            for word, number in zip(_WORDS, astuple(observed), strict=True)
        }
        names = {f"#{word}": word for word in ("last_updated", "pressure", "version", "since")}
        ours: dict[str, Any] = {
            "UpdateExpression": "ADD " + ", ".join(f"#pressure.#{word} :{word}" for word in _WORDS),
            "ConditionExpression": f"{_IS_OURS} BETWEEN :oldest AND :newest",
            "ExpressionAttributeNames": {**names, **{f"#{word}": word for word in _WORDS}},
            "ExpressionAttributeValues": {
                **numbers,
                ":version": {"N": version},
                ":oldest": _number(now - POOL_SECONDS),
                ":newest": _number(now + POOL_SECONDS),
            },
        }
        first = {word: numbers[f":{word}"] for word in _WORDS}
        anew: dict[str, Any] = {
            "UpdateExpression": "SET #pressure = :first",
            "ConditionExpression": "#last_updated = :version AND "
            "NOT (#pressure.#version = :version AND #pressure.#since BETWEEN :oldest AND :newest)",
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": {
                **{name: ours["ExpressionAttributeValues"][name] for name in _ENDS},
                ":first": {"M": {**first, "version": {"N": version}, "since": _number(now)}},
            },
        }
        try:
            for update in (ours, anew, ours):  # other processes may start it at the same time
                try:
                    return _sums(self._updated(logical, update))
                except ClientError as error:
                    if error_code(error) != CONDITION_FAILED:
                        raise
        except (ClientError, BotoCoreError):
            pass
        return None

    def _updated(self, logical: TypedValue, update: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = self.requests.once(
            "update_item",
            TableName=self.table,
            Key={self.partition: logical},
            ReturnValues="ALL_NEW",
            **update,
        )
        item: Mapping[str, Any] = answer["Attributes"]
        return item


_ENDS = (":version", ":oldest", ":newest")


def _number(number: float) -> dict[str, str]:
    return {"N": f"{number:.3f}"}


def _sums(item: Mapping[str, Any]) -> Sums:
    pool = item["pressure"]["M"]
    return Sums(*(float(pool[word]["N"]) for word in _WORDS))


MOST_KEYS = 1_000
"""The maximum number of keys whose throttles are counted."""
PROBE_SECONDS = 1.0
"""The minimum time between two probes of one key."""
REFRESH_SECONDS = 0.1
"""The time between two reads of a key's metadata during a change that delays writes."""


@dataclass(slots=True)
class _KeyState:
    """A throttled key, its shard count and whether a drain moved items at its last throttle."""

    recent: RecentAttempts
    situation: tuple[int, bool]
    busy: Lock = field(default_factory=Lock)
    probed: float = float("-inf")


class _Caller(local):
    """A thread: its last write's key and start, and the time since the write before; None if that
    was of another key, or was not accepted at once.
    """

    name: Any = None
    began: float | None = None
    cycle: float | None = None


@dataclass(slots=True)
class ThrottleTracker:
    """Counts the throttles of each key, and adds shards to hot keys; for any number of threads."""

    metadata: Metadata
    capacity: Capacity
    policy: Policy
    requests: Requests = field(init=False)
    pressure: Pressure = field(init=False)
    _warned_of_index: bool = False
    _warned_of_reasons: bool = False
    _here: _Caller = field(default_factory=_Caller)
    _keys: "OrderedDict[Any, _KeyState]" = field(default_factory=OrderedDict)
    _passing: Lock = field(default_factory=Lock)
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.requests = self.metadata.requests
        partition = self.metadata.schema.partition.name
        self.pressure = Pressure(self.requests, self.metadata.table, partition)

    def note_request(self, logical: TypedValue) -> None:
        """Record the start of a write."""
        name, now, thread = canonical(logical), self.requests.clock.monotonic(), self._here
        thread.cycle = None if thread.began is None or thread.name != name else now - thread.began
        thread.name, thread.began = name, None
        state = self._keys.get(name) if self._keys else None
        if state is not None:
            with self._lock:
                if state.recent.demand is not None:
                    state.recent.demand.note_request(get_ident(), now)

    def accepted(self, logical: TypedValue, first: bool, began: float | None) -> None:
        """Record a successful write; `began` is the start of a single write, and not of a batch."""
        if first:
            self._here.began = began
        state = self._keys.get(canonical(logical)) if self._keys else None
        if state is None:
            return
        with self._lock:
            now = self.requests.clock.monotonic()
            if state.recent.demand is not None and began is not None:
                state.recent.demand.answered(get_ident(), began if first else None)
            if first:
                state.recent.note(now, throttled=False, first=True)

    def throttled(
        self,
        logical: TypedValue,
        record: KeyMetadata,
        physical: Mapping[str, TypedValue],
        error: ClientError,
        first: bool,
    ) -> None:
        """Record a throttled write of an item, and add shards if the policy demands it."""
        situation = record.shards.number, record.shards.phase is Phase.MOVING
        state = self._of(logical, situation)
        cause = self._cause_of(error, state, physical)
        if cause is Cause.TABLE_TOO_SMALL:
            self.capacity.raise_if_allowed()
        if cause is Cause.HOT_INDEX_KEY and not self._warned_of_index:
            self._warned_of_index = True
            logger.warning(
                "a key of an index is hot: more shards of the table's key do not help, unless the "
                "index's partition key carries the suffix too"
            )
        if cause is not Cause.HOT_KEY:
            return
        self.requests.usage.count(hot_throttles=1)
        action, number = self._counted(state, record, situation, first)
        if action is Action.ASK:
            action, number = self._asked_others(state, logical, record)
        if action is Action.AT_MAXIMUM:
            self.requests.usage.count(at_maximum=1)
        if action not in (Action.GROW, Action.REOPEN) or not state.busy.acquire(blocking=False):
            return
        try:
            self._change(logical, record, number)
        except MetadataChanged:
            pass  # the new metadata is cached
        except (ClientError, BotoCoreError) as error:
            # An error with the metadata must not fail the write, which backs off and continues.
            logger.warning("no shards were added: %s", type(error).__name__)
        finally:
            state.busy.release()

    def _counted(
        self, state: _KeyState, record: KeyMetadata, situation: tuple[int, bool], first: bool
    ) -> tuple[Action, int]:
        """Count a throttle; return the action and the new shard count."""
        with self._lock:
            if state.situation != situation:
                state.recent.clear()
                state.situation = situation
            if self._is_on_its_way(record):
                state.recent.clear()  # only throttles after the change count
            now = self.requests.clock.monotonic()
            state.recent.note(now, throttled=True, first=first)
            if state.recent.demand is not None:
                state.recent.demand.joined(get_ident(), self._here.cycle)
            return self._decided(state, record)

    def _asked_others(
        self, state: _KeyState, logical: TypedValue, record: KeyMetadata
    ) -> tuple[Action, int]:
        """Decide as `_counted`, by the observations of all processes."""
        with self._lock:
            demand = state.recent.demand
            news = None if demand is None else demand.news(self.requests.clock.monotonic())
        if demand is None or news is None:
            return Action.WAIT, record.shards.number
        pooled = self.pressure.add(logical, record.version, news)
        with self._lock:
            demand.pooled = pooled or Sums()
            decided = self._decided(state, record, has_asked=True)
            demand.pooled = Sums()
            return decided

    def _decided(
        self, state: _KeyState, record: KeyMetadata, has_asked: bool = False
    ) -> tuple[Action, int]:
        now = self.requests.clock.monotonic()
        return policy.decide(
            self.policy,
            record.shards,
            state.recent,
            self.metadata.known_for(record),
            now - record.counted_since,
            now,
            has_asked,
        )

    def pass_on(self, logical: TypedValue, record: KeyMetadata) -> KeyMetadata:
        """End a phase that ends after a time, and return the present metadata. One thread does
        this, and the others do not wait: their writes continue in the present phase.
        """
        if record.shards.phase not in PASSING or self.metadata.unsettled(record) > 0:
            return record
        if not self._passing.acquire(blocking=False):
            return record
        try:
            after = record.shards.advanced(self.requests.clock.time())
            return self.metadata.change(logical, record, after, patiently=False)
        except MetadataChanged as lost:
            return lost.current
        except (ClientError, BotoCoreError) as error:
            logger.warning("the shards' phase goes on for now: %s", type(error).__name__)
            return record
        finally:
            self._passing.release()

    def _is_on_its_way(self, record: KeyMetadata) -> bool:
        """Return whether some writers may not use the new shards yet."""
        if record.shards.phase is Phase.OPENED:
            return self.metadata.known_for(record) < record.shards.settle / 2
        return record.shards.phase in PASSING

    def refresh(self, logical: TypedValue) -> None:
        """Read the metadata early if a phase delays writes, because the phase may have ended."""
        record = self.metadata.of(logical, register=True)
        age = self.requests.clock.monotonic() - record.requested
        may_have_ended = self.metadata.unsettled(record) <= record.shards.settle / 2
        if record.shards.phase in PASSING and may_have_ended and age >= REFRESH_SECONDS:
            self.metadata.of(logical, fresh=True)

    def _change(self, logical: TypedValue, record: KeyMetadata, number: int) -> None:
        self.requests.clock.sleep(self.requests.chance.uniform(0, self.policy.spread))
        if self.metadata.of(logical).version != record.version:
            return  # another process has changed it first
        if record.shards.phase in DRAINING:
            after = record.shards.reopened(self.requests.clock.time())
            self.metadata.change(logical, record, after, patiently=False)
            return
        if self.metadata.grow(logical, record, number, patiently=False) is None:
            self.requests.usage.count(at_maximum=1)

    def _of(self, logical: TypedValue, situation: tuple[int, bool]) -> _KeyState:
        with self._lock:
            new = _KeyState(RecentAttempts(self.policy.window), situation)
            state = self._keys.setdefault(canonical(logical), new)
            if len(self._keys) > MOST_KEYS:
                self._keys.popitem(last=False)
            return state

    def _cause_of(
        self, error: ClientError, state: _KeyState, physical: Mapping[str, TypedValue]
    ) -> Cause:
        cause = policy.cause_of(error.response)
        if cause is not None:
            return cause
        now = self.requests.clock.monotonic()
        with self._lock:
            if now - state.probed < PROBE_SECONDS:
                return Cause.UNKNOWN  # count one throttle for each probe, not for each error
            state.probed = now
        probed = self._probe(physical)
        if probed is None:
            return Cause.UNKNOWN
        cause = policy.cause_of(probed.response)
        if cause is None and not self._warned_of_reasons:
            self._warned_of_reasons = True
            logger.warning(
                "throttling errors give no reason, which boto3's clients read from 1.40.10 on: %s",
                "shards are added within minutes instead of seconds, by the metrics of CloudWatch"
                if self.capacity.cloudwatch is not None
                else "no shards are added, unless cloudwatch= is given, which takes minutes",
            )
        return cause or policy.cause_by_consumption(*self.capacity.consumption())

    def _probe(self, physical: Mapping[str, TypedValue]) -> ClientError | None:
        """Provoke throttling with a reason, by a write that can never change anything."""
        self.requests.usage.count(probes=1)
        schema = self.metadata.schema
        try:
            self.requests.once(
                "delete_item",
                TableName=schema.table,
                Key=dict(physical),
                ConditionExpression="attribute_exists(#p) AND attribute_not_exists(#p)",
                ExpressionAttributeNames={"#p": schema.partition.name},
            )
        except (ClientError, BotoCoreError) as error:
            return error if isinstance(error, ClientError) and is_throttled(error) else None
        return None
