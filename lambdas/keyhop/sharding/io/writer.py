"""Writes of one item by the protocol: a read if necessary, then a put, update, move or delete."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.refusals import (
    CHECK_FAILED,
    CONDITION_FAILED,
    INVALID,
    cancellations,
    error_code,
)
from keyhop.dynamodb.requester import units_of
from keyhop.dynamodb.throttling import TRANSACTION_THROTTLED
from keyhop.dynamodb.values import TypedValue
from keyhop.errors import CannotStart, GaveUp
from keyhop.sharding.io.items import (
    FENCE,
    Clause,
    absent,
    exists,
    find_copies,
    key_only,
    with_fence,
)
from keyhop.sharding.key import protocol
from keyhop.sharding.key.counting import counter_key
from keyhop.sharding.key.placement import Place, place_of
from keyhop.sharding.key.protocol import (
    ByClaim,
    Claim,
    Create,
    Fold,
    Hold,
    InPlace,
    Late,
    Move,
    Step,
)
from keyhop.sharding.key.schema import ItemKey
from keyhop.sharding.key.shards import Shards
from keyhop.sharding.store.metadata import KeyMetadata, Metadata
from keyhop.sharding.store.requests import Overtaken, is_ambiguous, is_throttled
from keyhop.sharding.store.throttle_tracker import ThrottleTracker


@dataclass(frozen=True, slots=True)
class Act:
    """An operation on an item, by a user or as a part of a transaction: all typed attributes of a
    Put, whose keys are replaced, or the expression of an Update.
    """

    kind: Literal["Put", "Update", "Delete", "ConditionCheck"]
    item: Mapping[str, TypedValue] = field(default_factory=dict)
    expression: str = ""


DELETE, CHECK = Act("Delete"), Act("ConditionCheck")
Part = tuple[int, Act, Clause]
"""A part of a transaction: a shard, the operation there, and its condition."""


@dataclass(slots=True)
class Write:
    """One write, with its ReturnValues, and its state between attempts.

    With `shows_failed` an error has the item that did not meet the condition. An append has a
    chosen shard, and the version of the metadata by which it was chosen. `maybe_written` means that
    the answer to an attempt was lost. The physical key is that of the last request. `claim` is the
    latest known claim of the item in a `growth`, and `owner` names this write in claims.
    """

    key: ItemKey
    act: Act
    clause: Clause
    returns: str | None
    shows_failed: bool = False
    attempts: int = 0
    shard: int | None = None
    version: str = ""
    maybe_written: bool = False
    physical: dict[str, TypedValue] = field(default_factory=dict)
    claim: Claim | None = None
    growth: int = 0
    owner: str = field(default_factory=lambda: uuid.uuid4().hex)


class Writer:
    """Writes single items; for any number of threads."""

    def __init__(self, metadata: Metadata, throttle_tracker: ThrottleTracker) -> None:
        self.metadata = metadata
        self.throttle_tracker = throttle_tracker
        self.requests = metadata.requests
        self.schema = metadata.schema
        self.placement = metadata.placement

    def write(
        self,
        key: ItemKey,
        act: Act,
        clause: Clause,
        returns: str | None,
        shows_failed: bool = False,
    ) -> dict[str, Any]:
        """Write an item, and retry while this can help. Return the service's answer.

        Raises the errors of boto3's client, with the user's condition if that is not met; a
        throttling error when the patience is used up; GaveUp if the answer came too late.
        """
        write = Write(key, act, clause, returns, shows_failed)
        return self.requests.patiently(lambda: self._attempt(write))

    def record_of(self, logical: TypedValue) -> KeyMetadata:
        """Return the metadata to use for a write; a new key is registered."""
        record = self.metadata.of(logical, register=True)
        return self.throttle_tracker.pass_on(logical, record)

    def written(
        self,
        logical: TypedValue,
        record: KeyMetadata,
        units: float,
        first: bool,
        began: float | None = None,
    ) -> None:
        """Report a write, to detect when a key needs more shards (`first`) or fewer (`units`)."""
        self.throttle_tracker.accepted(logical, first, began)
        if record.shards.number > 1:
            self.metadata.traffic.wrote(logical, units)

    def place_of(self, key: ItemKey) -> Place:
        """Return an item's shard for each shard count."""
        return place_of(key.logical, key.sort, self.placement.hash)

    def candidates(self, key: ItemKey, record: KeyMetadata, is_put: bool) -> tuple[int, ...]:
        """Return the shards that may have an item; if it is only one, a write needs no read."""
        if self.placement.append_only and is_put:
            return (self._appended_shard(key, record),)
        return protocol.candidates(record.shards, self.placement, self.place_of(key))

    def shard_of_new(self, key: ItemKey, record: KeyMetadata) -> int | None:
        """Return the shard for a new item; None if more shards must be checked first."""
        shards = self.metadata.usable(record)
        step = protocol.step_of_update(shards, self.placement, self.place_of(key), ())
        return step.shard if isinstance(step, Create) and not step.unless else None

    def _attempt(self, write: Write) -> dict[str, Any]:
        write.attempts += 1
        logical, first = write.key.logical, write.attempts == 1
        began = self.requests.clock.monotonic()
        if first:
            self.throttle_tracker.note_request(logical)
        else:
            self.throttle_tracker.refresh(logical)
        record = self.record_of(logical)
        try:
            answer = self._send(write, record)
            if not self.stands(write.key, write.physical, record, write.act.kind == "Update"):
                raise Overtaken
        except (ClientError, BotoCoreError, Overtaken) as error:
            write.maybe_written = write.maybe_written or is_ambiguous(error)
            if not write.maybe_written:
                write.shard = None  # the next attempt may use another shard
            if isinstance(error, ClientError) and is_throttled(error) and write.physical:
                self.throttle_tracker.throttled(logical, record, write.physical, error, first)
            raise
        units = answer.get("ConsumedCapacity", {}).get("CapacityUnits", 1.0)
        self.written(logical, record, float(units), first, began)
        return answer

    def stands(
        self,
        key: ItemKey,
        physical: dict[str, TypedValue],
        record: KeyMetadata,
        is_update: bool = False,
    ) -> bool:
        """Return whether a write that succeeded counts; if not, it has been deleted again. Raises
        GaveUp if its answer came too late to decide.
        """
        if self.requests.clock.monotonic() <= record.effective_until:
            return True
        parsed = self.schema.names.parsed(physical[self.schema.partition.name])
        assert parsed is not None
        word = "update" if is_update else "write"
        unknown = (
            f"The answer to the {word} of an item came so late that it may have been moved before: "
            f"look whether the {word} was kept."
        )
        is_there = False

        def attempt() -> bool:
            nonlocal is_there
            now = self.metadata.of(key.logical, fresh=True)
            if now.version == record.version:
                return True
            late = protocol.after_a_late_answer(now.shards, parsed[1], is_update)
            if late is Late.LOST_IF_THERE:
                is_there = is_there or bool(self._look(key, (parsed[1],)))
                if is_there:
                    self._check_fresh(now)
                    self.requests.once("delete_item", TableName=self.schema.table, Key=physical)
                return not is_there
            if late is Late.UNKNOWN or is_there:
                raise GaveUp(unknown)
            return True

        try:
            return self.requests.patiently(attempt)
        except (ClientError, BotoCoreError, Overtaken) as error:
            raise GaveUp(unknown) from error

    def _check_fresh(self, record: KeyMetadata) -> None:
        """Raise Overtaken if the metadata has expired, so that the attempt is repeated."""
        if self.requests.clock.monotonic() >= record.expires:
            raise Overtaken

    def _send(self, write: Write, record: KeyMetadata) -> dict[str, Any]:
        self._check_fresh(record)
        is_put = write.act.kind == "Put"
        if self.placement.append_only and is_put:
            return self._append(write, record)
        place = self.place_of(write.key)
        where = protocol.candidates(record.shards, self.placement, place)
        if len(where) == 1:
            return self._single(write, where[0])
        holders = self._look(write.key, where)
        self._check_fresh(record)
        # A transaction does not return the item that it replaces; a change in place does.
        may_move = is_put and write.returns != "ALL_OLD"
        decide = protocol.step_of_put if may_move else protocol.step_of_update
        shards = self.metadata.usable(record)
        step = decide(shards, self.placement, place, holders)
        if isinstance(step, ByClaim):
            shard = self._claimed_shard(write, shards, place)
            self._check_fresh(record)
            return self._single(write, shard)
        return self._do(step, write)

    def _claimed_shard(self, write: Write, shards: Shards, place: Place) -> int:
        """Return the shard in which a new item is created, by its claim, or raise Overtaken."""
        write.physical = {}  # if a claim is throttled, more shards do not help
        if write.growth != shards.counted_at:
            write.claim, write.growth = None, shards.counted_at
        while True:
            step = protocol.step_by_claim(
                shards, place, write.claim, write.owner, write.maybe_written
            )
            match step:
                case Create(shard):
                    return shard
                case Hold():
                    write.claim = None
                    raise Overtaken
                case Claim():
                    previous, write.claim = write.claim, None
                    claims = self.metadata.claims
                    write.claim = claims.write(write.key, write.growth, previous, step)

    def _append(self, write: Write, record: KeyMetadata) -> dict[str, Any]:
        if write.shard is not None and write.version != record.version:
            # An earlier attempt had no answer in time, and its item may have been moved since.
            if self._look(write.key, tuple(range(1, record.shards.readable + 1))):
                return {}
            write.shard = None
            self._check_fresh(record)
        if write.shard is None:
            write.shard = self._appended_shard(write.key, record)
            write.version = record.version
        return self._single(write, write.shard)

    def _appended_shard(self, key: ItemKey, record: KeyMetadata) -> int:
        if self.placement.is_random:
            return self.requests.chance.randint(1, record.shards.writable)
        return protocol.home(record.shards, self.place_of(key))

    def _look(self, key: ItemKey, where: tuple[int, ...]) -> list[int]:
        """Return the shards that have the item, ascending, by strongly consistent reads."""
        self.requests.usage.count(looks=1)
        only = key_only(self.schema)
        return sorted(find_copies(self.requests, self.schema, key, where, **only))

    def _do(self, step: Step, write: Write) -> dict[str, Any]:
        act, clause = write.act, write.clause
        is_there, is_absent = exists(self.schema), absent(self.schema)
        match step:
            case Create(shard, ()):
                return self._single(write, shard)
            case Create(shard, unless):
                if write.returns in ("ALL_NEW", "UPDATED_NEW"):
                    raise Overtaken(
                        f"{write.returns} of a new item is not known while the shard count "
                        "changes: ask for it later, or create the item first, without it."
                    )
                if act.kind == "Update" and not act.expression:  # a transaction has no such update
                    act = Act("Put", {self.schema.sort.name: write.key.sort})
                checks = [(holder, CHECK, is_absent) for holder in unless]
                users = 0 if clause.condition else None
                self._transact(write, [(shard, act, clause.and_(is_absent)), *checks], users)
                return {}
            case InPlace(shard, fence):
                return self._single(write, shard, must_exist=True, fence=fence)
            case Move(source, target):
                delete = (source, DELETE, clause.and_(is_there))
                users = 1 if clause.condition else None
                self._transact(write, [(target, act, is_absent), delete], users)
                self.requests.usage.count(moves=1)
                return {}
            case ByClaim():
                raise AssertionError("the claim is written first")
            case Fold(keep, drop):
                if write.key == counter_key(self.schema, write.key.logical):
                    raise CannotStart(
                        "This is a counter, which has a part in each shard: use ShardedCounter "
                        "to add to it and to read it."
                    )
                deletes = [(shard, DELETE, Clause()) for shard in drop]
                self._transact(write, [(keep, CHECK, is_there), *deletes], users=None)
                raise Overtaken

    def _single(
        self, write: Write, shard: int, *, must_exist: bool = False, fence: bool = False
    ) -> dict[str, Any]:
        """Send one request for one item. must_exist: raise Overtaken if the item does not exist."""
        write.physical = self.schema.physical(write.key, shard)
        clause = write.clause.and_(exists(self.schema)) if must_exist else write.clause
        request = self._request(write.act, write.physical, clause, fence)
        if write.returns:
            request["ReturnValues"] = write.returns
        if must_exist or write.shows_failed:
            request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        try:
            operation = f"{write.act.kind.lower()}_item"
            return self.requests.once(operation, TableName=self.schema.table, **request)
        except ClientError as error:
            refused = error_code(error) == CONDITION_FAILED
            if must_exist and refused and not error.response.get("Item"):
                raise Overtaken from error  # it no longer exists
            if not write.shows_failed:
                error.response.pop("Item", None)
            raise

    def _request(
        self, act: Act, physical: dict[str, TypedValue], clause: Clause, fence: bool = False
    ) -> dict[str, Any]:
        token = {"S": uuid.uuid4().hex}
        if act.kind == "Put":
            item = {**act.item, **physical, **({FENCE: token} if fence else {})}
            return {"Item": item, **clause.parameters()}
        expression = act.expression
        if fence and act.kind == "Update":
            expression = with_fence(expression)
            names = {**clause.names, "#kh_fence": FENCE}
            clause = Clause(clause.condition, names, {**clause.values, ":kh_fence": token})
        request = {"Key": physical, **clause.parameters()}
        if expression:
            request["UpdateExpression"] = expression
        return request

    def together(self, key: ItemKey, parts: Sequence[Part]) -> float:
        """Write all parts or none in one transaction; return its write units."""
        items = []
        for shard, act, clause in parts:
            request = self._request(act, self.schema.physical(key, shard), clause)
            request["TableName"] = self.schema.table
            request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
            items.append({act.kind: request})
        token = uuid.uuid4().hex
        return units_of(
            self.requests.once(
                "transact_write_items", TransactItems=items, ClientRequestToken=token
            )
        )

    def _transact(self, write: Write, parts: Sequence[Part], users: int | None) -> None:
        """Write parts in a transaction, `users` with the user's condition; raise Overtaken if an
        item is no longer where it was found.
        """
        physical = [self.schema.physical(write.key, shard) for shard, _, _ in parts]
        write.physical = physical[0]
        try:
            self.together(write.key, parts)
        except ClientError as error:
            codes = cancellations(error)
            if is_throttled(error):
                throttled = next(
                    (n for n, code in enumerate(codes) if code in TRANSACTION_THROTTLED), 0
                )
                write.physical = physical[throttled]
                raise
            refused = [n for n, code in enumerate(codes) if code == CHECK_FAILED]
            if users is not None and refused == [users]:
                raise self._of_user(error, write, users, parts[users][2]) or Overtaken() from error
            if refused or "TransactionConflict" in codes:
                raise Overtaken from error
            if INVALID in codes:
                raise self._invalid(error, write, codes.index(INVALID)) from error
            raise

    def _invalid(self, error: ClientError, write: Write, part: int) -> ClientError:
        """Return the error for an invalid value, as a write without a transaction raises it."""
        message = error.response["CancellationReasons"][part].get("Message", "")
        more = {"ResponseMetadata": error.response["ResponseMetadata"]}
        operation = f"{write.act.kind}Item"
        return self.requests.refusal("ValidationException", message, operation, **more)

    def _of_user(
        self, error: ClientError, write: Write, part: int, clause: Clause
    ) -> ClientError | None:
        """Return the error for the user's condition, as a write without a transaction raises it, or
        None if our condition failed, which is joined to it: the item's existence shows which one.
        """
        item = error.response["CancellationReasons"][part].get("Item")
        ours = "attribute_not_exists(#kh_p)" if item else "attribute_exists(#kh_p)"
        if ours in clause.condition:
            return None
        more = {"ResponseMetadata": error.response["ResponseMetadata"]}
        if item and write.shows_failed:
            more["Item"] = item
        return self.requests.refusal(
            CONDITION_FAILED, "The conditional request failed", f"{write.act.kind}Item", **more
        )
