"""One write of one item, by the protocol: look if need be, then put, change, move or delete it."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.requester import CONDITION_FAILED, error_code
from keyhop.dynamodb.values import TypedValue
from keyhop.errors import GaveUp
from keyhop.sharding.io.items import (
    FENCE,
    Clause,
    ItemKey,
    Schema,
    find_copies,
    physical_key,
    with_fence,
)
from keyhop.sharding.key import protocol
from keyhop.sharding.key.placement import Place, Placement, place_of
from keyhop.sharding.key.protocol import Create, Fold, InPlace, Move, Step
from keyhop.sharding.store.metadata import KeyMetadata, Metadata
from keyhop.sharding.store.requests import (
    THROTTLED,
    Overtaken,
    Requests,
    cancellations,
    is_ambiguous,
    is_throttled,
)
from keyhop.sharding.store.throttle_tracker import ThrottleTracker

CHECK_FAILED = "ConditionalCheckFailed"
"""A code of a cancelled transaction."""


@dataclass(frozen=True, slots=True)
class Put:
    """A user's put of a whole item (typed, without its partition key)."""

    item: Mapping[str, TypedValue]


@dataclass(frozen=True, slots=True)
class Update:
    """A user's update, by its UpdateExpression."""

    expression: str


@dataclass(frozen=True, slots=True)
class Delete:
    """A user's delete."""


Act = Put | Update | Delete


@dataclass(slots=True)
class _Write:
    """One write, and what is remembered from one attempt to the next.

    returns: ReturnValues. shard: of an append, chosen and not given up, by the metadata of this
    version. maybe_written: whether an attempt may have been made whose answer was lost. physical:
    the key that the last request was about.
    """

    key: ItemKey
    act: Act
    clause: Clause
    returns: str | None
    attempts: int = 0
    shard: int | None = None
    version: str = ""
    maybe_written: bool = False
    physical: dict[str, TypedValue] = field(default_factory=dict)


@dataclass(slots=True)
class Writer:
    """Writes of single items; for any number of threads."""

    requests: Requests
    metadata: Metadata
    throttle_tracker: ThrottleTracker
    table: str
    schema: Schema
    placement: Placement

    def write(self, key: ItemKey, act: Act, clause: Clause, returns: str | None) -> dict[str, Any]:
        """Do it, and repeat it while that can help; the service's answer.

        Raises what boto3's client raises, with the user's own condition, when it does not hold;
        a throttling error once patience is at its end; GaveUp if the answer came too late.
        """
        write = _Write(key, act, clause, returns)
        return self.requests.patiently(lambda: self._attempt(write))

    def place_of(self, key: ItemKey) -> Place:
        """Where an item belongs, by each shard count."""
        return place_of(key.logical, key.sort, self.placement.hash)

    def only_candidate(self, key: ItemKey, known: KeyMetadata) -> int | None:
        """The shard to put an item into without a look; None if a look is needed."""
        if self.placement.append_only:
            return self._appended_shard(key, known)
        where = protocol.candidates(known.shards, self.placement, self.place_of(key))
        return None if protocol.needs_look(self.placement, where) else where[0]

    def _attempt(self, write: _Write) -> dict[str, Any]:
        write.attempts += 1
        logical, first = write.key.logical, write.attempts == 1
        known = self.metadata.of(logical, register=True)
        known = self.throttle_tracker.pass_on(logical, known)
        try:
            answer = self._send(write, known)
            self._check_in_time(write, known)
        except (ClientError, BotoCoreError, Overtaken) as error:
            write.maybe_written = write.maybe_written or is_ambiguous(error)
            if not write.maybe_written:
                write.shard = None  # another shard may be taken
            if isinstance(error, ClientError) and is_throttled(error) and write.physical:
                self.throttle_tracker.throttled(logical, known, write.physical, error, first)
            raise
        if first:
            self.throttle_tracker.accepted(logical)
        if known.shards.number > 1:
            units = answer.get("ConsumedCapacity", {}).get("CapacityUnits", 1.0)
            self.metadata.traffic.wrote(logical, float(units))
        return answer

    def _check_in_time(self, write: _Write, known: KeyMetadata) -> None:
        """An answer that comes late is believed only if the metadata is still the same.

        The write may have taken effect in a shard that was emptied meanwhile, or in an item that
        a mover had copied. A put, or a delete, is done again then.
        """
        if self.requests.clock.monotonic() <= known.effective_until:
            return
        now = self.metadata.of(write.key.logical, fresh=True)
        if now.version == known.version:
            return
        if isinstance(write.act, Update):
            raise GaveUp(
                "The answer to an update came so late that the item may have been moved before: "
                "look whether the update was kept."
            )
        write.maybe_written = True
        self._sweep(write.physical, now.shards.readable)
        raise Overtaken

    def _sweep(self, physical: dict[str, TypedValue], readable: int) -> None:
        """Delete what was put into a shard that nobody reads: it would come back with the shard."""
        parsed = self.schema.names.parsed(physical[self.schema.partition.name])
        if parsed is not None and parsed[1] > readable:
            self.requests.once("delete_item", TableName=self.table, Key=physical)

    def _check_fresh(self, known: KeyMetadata) -> None:
        """What took so long that the metadata has expired begins anew."""
        if self.requests.clock.monotonic() >= known.expires:
            raise Overtaken

    def _send(self, write: _Write, known: KeyMetadata) -> dict[str, Any]:
        self._check_fresh(known)
        is_put = isinstance(write.act, Put)
        if self.placement.append_only and is_put:
            return self._append(write, known)
        place = self.place_of(write.key)
        where = protocol.candidates(known.shards, self.placement, place)
        if not protocol.needs_look(self.placement, where) and len(where) == 1:
            return self._single(write, where[0])
        copies = self._look(write.key, where, whole=write.returns == "ALL_OLD")
        self._check_fresh(known)
        decide = protocol.step_of_put if is_put else protocol.step_of_update
        return self._do(decide(known.shards, self.placement, place, sorted(copies)), write, copies)

    def _append(self, write: _Write, known: KeyMetadata) -> dict[str, Any]:
        if write.shard is not None and write.version != known.version:
            # No answer came of an attempt before, or too late; it may have been moved since.
            if self._look(write.key, tuple(range(1, known.shards.readable + 1))):
                return {}
            write.shard = None
            self._check_fresh(known)
        if write.shard is None:
            write.shard = self._appended_shard(write.key, known)
            write.version = known.version
        return self._single(write, write.shard)

    def _appended_shard(self, key: ItemKey, known: KeyMetadata) -> int:
        """A shard for an item that is new, by whoever promises that it is."""
        if self.placement.is_random:
            return self.requests.chance.randint(1, known.shards.writable)
        return protocol.home(known.shards, self.place_of(key))

    def _look(
        self, key: ItemKey, where: tuple[int, ...], whole: bool = False
    ) -> dict[int, dict[str, Any]]:
        """The shards in which the item is, strongly consistent, with the item; whole: all of it."""
        self.requests.usage.count(looks=1)
        projection: dict[str, Any] = {
            "ProjectionExpression": "#p",
            "ExpressionAttributeNames": {"#p": self.schema.partition.name},
        }
        return find_copies(
            self.requests, self.table, self.schema, key, where, **({} if whole else projection)
        )

    def _do(
        self, step: Step, write: _Write, copies: Mapping[int, dict[str, Any]]
    ) -> dict[str, Any]:
        key, act, schema = write.key, write.act, self.schema
        match step:
            case Create(shard, ()):
                return self._single(write, shard)
            case Create(shard, unless):
                if isinstance(act, Update) and not act.expression:
                    act = Put({schema.sort.name: key.sort})  # a transaction has no such update
                create = self._transact_item(key, act, write.clause, shard)
                checks = [self._check(key, schema.absent, other) for other in unless]
                self._transact(write, [create, *checks], (shard, *unless), users=0)
                # A transaction returns no item itself.
                is_wanted = write.returns in ("ALL_NEW", "UPDATED_NEW")
                return self._get(key, shard) if is_wanted else {}
            case InPlace(shard, fence):
                return self._single(write, shard, must_exist=True, fence=fence)
            case Move(source, target):
                put = self._transact_item(key, act, schema.absent, target)
                guarded = write.clause.and_(schema.exists)
                delete = self._transact_item(key, Delete(), guarded, source)
                users = 1 if write.clause.condition else None
                self._transact(write, [put, delete], (target, source), users)
                self.requests.usage.count(moves=1)
                return {"Attributes": copies[source]} if write.returns == "ALL_OLD" else {}
            case Fold(keep, drop):
                check = self._check(key, schema.exists, keep)
                deletes = [self._transact_item(key, Delete(), Clause(), shard) for shard in drop]
                self._transact(write, [check, *deletes], (keep, *drop), users=None)
                raise Overtaken

    def _get(self, key: ItemKey, shard: int) -> dict[str, Any]:
        copies = find_copies(self.requests, self.table, self.schema, key, (shard,))
        return {"Attributes": copies[shard]} if copies else {}

    def _single(
        self, write: _Write, shard: int, *, must_exist: bool = False, fence: bool = False
    ) -> dict[str, Any]:
        """One request for one item. must_exist: else it is Overtaken."""
        write.physical = physical_key(self.schema, write.key, shard)
        clause = write.clause.and_(self.schema.exists) if must_exist else write.clause
        operation, request = self._request(write.act, write.physical, clause, fence)
        if write.returns:
            request["ReturnValues"] = write.returns
        if must_exist:
            request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        try:
            return self.requests.once(operation, TableName=self.table, **request)
        except ClientError as error:
            refused = error_code(error) == CONDITION_FAILED
            if must_exist and refused and not error.response.get("Item"):
                raise Overtaken from error  # it is not there any more
            error.response.pop("Item", None)
            raise

    def _request(
        self, act: Act, physical: dict[str, TypedValue], clause: Clause, fence: bool = False
    ) -> tuple[str, dict[str, Any]]:
        token = {"S": uuid.uuid4().hex}
        match act:
            case Put(item):
                whole = {**item, **physical, **({FENCE: token} if fence else {})}
                return "put_item", {"Item": whole, **clause.parameters()}
            case Update(expression):
                if fence:
                    expression = with_fence(expression)
                    names = {**(clause.names or {}), "#kh_fence": FENCE}
                    values = {**(clause.values or {}), ":kh_fence": token}
                    clause = Clause(clause.condition, names, values)
                request = {"Key": physical, **clause.parameters()}
                if expression:
                    request["UpdateExpression"] = expression
                return "update_item", request
            case Delete():
                return "delete_item", {"Key": physical, **clause.parameters()}

    def _transact_item(
        self, key: ItemKey, act: Act, clause: Clause, shard: int
    ) -> dict[str, dict[str, Any]]:
        _, request = self._request(act, physical_key(self.schema, key, shard), clause)
        request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        return {type(act).__name__: {"TableName": self.table, **request}}

    def _check(self, key: ItemKey, clause: Clause, shard: int) -> dict[str, dict[str, Any]]:
        return clause.checked(self.table, physical_key(self.schema, key, shard))

    def _transact(
        self,
        write: _Write,
        requests: list[dict[str, Any]],
        shards: tuple[int, ...],
        users: int | None,
    ) -> None:
        """All of them or none. shards: of each request. users: the one with a user's condition.

        Raises Overtaken if an item is not where it was found.
        """
        write.physical = physical_key(self.schema, write.key, shards[0])
        try:
            self.requests.once(
                "transact_write_items",
                TransactItems=requests,
                ClientRequestToken=uuid.uuid4().hex,
            )
        except ClientError as error:
            codes = cancellations(error)
            if is_throttled(error):
                throttled = next((n for n, code in enumerate(codes) if code in THROTTLED), 0)
                write.physical = physical_key(self.schema, write.key, shards[throttled])
                raise
            if CHECK_FAILED in codes:
                raise _of_user(error, requests, users) or Overtaken() from error
            if "TransactionConflict" in codes:
                raise Overtaken from error
            raise


def _of_user(
    error: ClientError, requests: list[dict[str, Any]], users: int | None
) -> ClientError | None:
    """The user's own condition that did not hold, as a write without a transaction reports it.

    None if a condition of ours did not hold: then the user's was checked on the wrong item. Joined
    to his, ours holds if the answer has the item.
    """
    reasons = error.response.get("CancellationReasons", ())
    refused = {n for n, reason in enumerate(reasons) if reason.get("Code") == CHECK_FAILED}
    if users is None or refused != {users}:
        return None
    ((_, parameters),) = requests[users].items()
    joined = "attribute_exists(#kh_p)" in parameters["ConditionExpression"]
    if joined and not reasons[users].get("Item"):
        return None
    response = {
        **error.response,
        "Error": {"Code": CONDITION_FAILED, "Message": "The conditional request failed"},
    }
    response.pop("CancellationReasons", None)
    return ClientError(response, error.operation_name)
