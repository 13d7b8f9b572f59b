"""One write of one item, by the protocol: look if need be, then put, change, move or delete it."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.values import TypedValue
from keyhop.errors import GaveUp
from keyhop.sharding import counts, protocol
from keyhop.sharding.calls import (
    THROTTLED,
    Again,
    Calls,
    cancellations,
    code_of,
    is_ambiguous,
    is_throttled,
)
from keyhop.sharding.heat import Thermometer
from keyhop.sharding.items import FENCE, Clause, ItemKey, Schema, physical_key, with_fence
from keyhop.sharding.metadata import Known, Metadata
from keyhop.sharding.placement import Place, place_of
from keyhop.sharding.protocol import Create, Fold, InPlace, Move, Placement, Step

_REFUSED = "ConditionalCheckFailedException"
_CHECK_REFUSED = "ConditionalCheckFailed"
_FENCE_NAMES = {"#kh_fence": FENCE}


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
Answer = tuple[dict[str, Any], dict[str, Any] | None]
"""The service's answer; and the item's attributes to return, where that answer cannot have them."""


@dataclass(slots=True)
class _Attempts:
    """What is remembered from one attempt of a write to the next.

    shard: of an append, chosen and not given up, by the metadata of this version. open: whether an
    attempt may have been made whose answer was lost. physical: what the last request was about.
    """

    number: int = 0
    shard: int | None = None
    version: str = ""
    open: bool = False
    physical: dict[str, TypedValue] = field(default_factory=dict)


@dataclass(slots=True)
class Writer:
    """Writes of single items; for any number of threads."""

    calls: Calls
    metadata: Metadata
    thermometer: Thermometer
    table: str
    schema: Schema
    placement: Placement

    def write(self, key: ItemKey, act: Act, clause: Clause, returns: str | None) -> Answer:
        """Do it, and repeat it while that can help.

        Raises what boto3's client raises, with the user's own condition, when it does not hold;
        a throttling error once patience is at its end; GaveUp if the answer came too late.
        """
        tried = _Attempts()

        def attempt() -> Answer:
            tried.number += 1
            known = self.metadata.of(key.logical, register=True)
            known = self.thermometer.pass_on(key.logical, known)
            try:
                answer = self._attempt(key, act, clause, returns, known, tried)
                self._check_in_time(key, act, known, tried)
            except (ClientError, BotoCoreError, Again) as error:
                tried.open = tried.open or is_ambiguous(error)
                if not tried.open:
                    tried.shard = None  # nothing was written: another shard may be taken
                if isinstance(error, ClientError) and is_throttled(error) and tried.physical:
                    self.thermometer.throttled(
                        key.logical, known, tried.physical, error, tried.number == 1
                    )
                raise
            if tried.number == 1:
                self.thermometer.accepted(key.logical)
            if known.shards.number > 1:
                self.metadata.traffic.wrote(key.logical, _units(answer[0]))
            return answer

        return self.calls.patiently(attempt)

    def _check_in_time(self, key: ItemKey, act: Act, known: Known, tried: _Attempts) -> None:
        """An answer that comes late is believed only if the metadata is still the same.

        The write may have taken effect in a shard that was emptied meanwhile, or in an item that
        a mover had copied. A put, or a delete, is done again then.
        """
        if self.calls.clock.monotonic() <= known.effective_until:
            return
        now = self.metadata.of(key.logical, fresh=True)
        if now.version == known.version:
            return
        if isinstance(act, Update):
            raise GaveUp(
                "The answer to an update came so late that the item may have been moved before: "
                "look whether the update was kept."
            )
        tried.open = True
        self._sweep(tried.physical, now.shards.readable)
        raise Again

    def _sweep(self, physical: dict[str, TypedValue], readable: int) -> None:
        """Delete what was put into a shard that nobody reads: it would come back with the shard."""
        parsed = self.schema.names.parsed(physical[self.schema.partition.name])
        if parsed is not None and parsed[1] > readable:
            self.calls.once("delete_item", TableName=self.table, Key=physical)

    def place_of(self, key: ItemKey) -> Place:
        """Where an item belongs, by each shard count."""
        return place_of(key.logical, key.sort, self.placement.hash)

    def appended_shard(self, key: ItemKey, known: Known) -> int:
        """A shard for an item that is new, by whoever promises that it is."""
        if self.placement.is_random:
            return self.calls.chance.randint(1, known.shards.writable)
        return protocol.home(known.shards, self.place_of(key))

    def only_candidate(self, key: ItemKey, known: Known) -> int | None:
        """The shard to put an item into without a look; None if a look is needed."""
        if self.placement.append_only:
            return self.appended_shard(key, known)
        where = protocol.candidates(known.shards, self.placement, self.place_of(key))
        return None if protocol.needs_look(self.placement, where) else where[0]

    def look(
        self, key: ItemKey, where: tuple[int, ...], whole: bool = False
    ) -> dict[int, dict[str, Any]]:
        """The shards in which the item is, strongly consistent, with the item; whole: all of it."""
        self.calls.counts.add(counts.LOOKS)
        keys = [physical_key(self.schema, key, shard) for shard in where]
        name = self.schema.partition.name
        projection: dict[str, Any] = {}
        if not whole:
            projection = {
                "ProjectionExpression": "#p",
                "ExpressionAttributeNames": {"#p": name},
            }
        items = self.calls.read_items(self.table, keys, True, **projection)
        shards = {_content(k[name]): shard for k, shard in zip(keys, where, strict=True)}
        return {shards[_content(item[name])]: item for item in items}

    def _attempt(
        self,
        key: ItemKey,
        act: Act,
        clause: Clause,
        returns: str | None,
        known: Known,
        tried: _Attempts,
    ) -> Answer:
        self._check_fresh(known)
        if self.placement.append_only and isinstance(act, Put):
            return self._append(key, act, clause, returns, known, tried), None
        place = self.place_of(key)
        where = protocol.candidates(known.shards, self.placement, place)
        if not protocol.needs_look(self.placement, where) and len(where) == 1:
            return self._alone(key, act, clause, returns, where[0], tried), None
        found = self.look(key, where, whole=returns == "ALL_OLD")
        self._check_fresh(known)
        decide = protocol.step_of_put if isinstance(act, Put) else protocol.step_of_update
        step = decide(known.shards, self.placement, place, sorted(found))
        return self._do(step, key, act, clause, returns, found, tried)

    def _check_fresh(self, known: Known) -> None:
        """What took so long that the metadata has expired begins anew."""
        if self.calls.clock.monotonic() >= known.expires:
            raise Again

    def _append(
        self,
        key: ItemKey,
        act: Put,
        clause: Clause,
        returns: str | None,
        known: Known,
        tried: _Attempts,
    ) -> dict[str, Any]:
        if tried.shard is not None and tried.version != known.version:
            # No answer came of an attempt before, or too late; it may have been moved since.
            if any(self.look(key, tuple(range(1, known.shards.readable + 1)))):
                return {}
            tried.shard = None
            self._check_fresh(known)
        if tried.shard is None:
            tried.shard, tried.version = self.appended_shard(key, known), known.version
        return self._alone(key, act, clause, returns, tried.shard, tried)

    def _do(
        self,
        step: Step,
        key: ItemKey,
        act: Act,
        clause: Clause,
        returns: str | None,
        found: Mapping[int, dict[str, Any]],
        tried: _Attempts,
    ) -> Answer:
        exists = {"#kh_p": self.schema.partition.name}
        match step:
            case Create(shard, ()):
                return self._alone(key, act, clause, returns, shard, tried), None
            case Create(shard, unless):
                if isinstance(act, Update) and not act.expression:
                    act = Put({self.schema.sort.name: key.sort})  # a transaction has no such update
                request = self._transact_item(key, act, clause, shard)
                checks = [self._absent(key, other) for other in unless]
                self._transact([request, *checks], (shard, *unless), key, tried, users=0)
                return {}, self._now(key, shard) if returns in ("ALL_NEW", "UPDATED_NEW") else None
            case InPlace(shard, fence):
                guarded = clause.and_("attribute_exists(#kh_p)", exists)
                answer = self._alone(key, act, guarded, returns, shard, tried, fence, guarded=True)
                return answer, None
            case Move(source, target):
                put = self._transact_item(
                    key, act, Clause("attribute_not_exists(#kh_p)", exists), target
                )
                guarded = clause.and_("attribute_exists(#kh_p)", exists)
                delete = self._transact_item(key, Delete(), guarded, source)
                users = 1 if clause.condition else None
                self._transact([put, delete], (target, source), key, tried, users)
                self.calls.counts.add(counts.MOVES)
                return {}, found[source] if returns == "ALL_OLD" else None
            case Fold(keep, drop):
                check = {
                    "ConditionCheck": {
                        "TableName": self.table,
                        "Key": physical_key(self.schema, key, keep),
                        **Clause("attribute_exists(#kh_p)", exists).parameters(),
                    }
                }
                deletes = [self._transact_item(key, Delete(), Clause(), shard) for shard in drop]
                self._transact([check, *deletes], (keep, *drop), key, tried, None)
                raise Again

    def _now(self, key: ItemKey, shard: int) -> dict[str, Any] | None:
        """An item that a transaction has made: it returns none itself."""
        items = self.calls.read_items(
            self.table, [physical_key(self.schema, key, shard)], consistent=True
        )
        return items[0] if items else None

    def _alone(
        self,
        key: ItemKey,
        act: Act,
        clause: Clause,
        returns: str | None,
        shard: int,
        tried: _Attempts,
        fence: bool = False,
        guarded: bool = False,
    ) -> dict[str, Any]:
        """One request for one item. guarded: the clause also demands that the item is there."""
        tried.physical = physical_key(self.schema, key, shard)
        operation, request = self._request(act, tried.physical, clause, fence)
        if returns:
            request["ReturnValues"] = returns
        if guarded:
            request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        try:
            return self.calls.once(operation, TableName=self.table, **request)
        except ClientError as error:
            if guarded and code_of(error) == _REFUSED and not error.response.get("Item"):
                raise Again from error  # it is not there any more
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
                    values = {**(clause.values or {}), ":kh_fence": token}
                    names = {**(clause.names or {}), **_FENCE_NAMES}
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
        kind = type(act).__name__
        _, request = self._request(act, physical_key(self.schema, key, shard), clause)
        request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        return {kind: {"TableName": self.table, **request}}

    def _absent(self, key: ItemKey, shard: int) -> dict[str, dict[str, Any]]:
        clause = Clause("attribute_not_exists(#kh_p)", {"#kh_p": self.schema.partition.name})
        physical = physical_key(self.schema, key, shard)
        return {"ConditionCheck": {"TableName": self.table, "Key": physical, **clause.parameters()}}

    def _transact(
        self,
        requests: list[dict[str, Any]],
        shards: tuple[int, ...],
        key: ItemKey,
        tried: _Attempts,
        users: int | None,
    ) -> None:
        """All of them or none. shards: of each request. users: the one with a user's condition.

        Raises Again if an item is not where it was found.
        """
        tried.physical = physical_key(self.schema, key, shards[0])
        try:
            self.calls.once(
                "transact_write_items",
                TransactItems=requests,
                ClientRequestToken=uuid.uuid4().hex,
            )
        except ClientError as error:
            codes = cancellations(error)
            if is_throttled(error):
                hot = next((n for n, code in enumerate(codes) if code in THROTTLED), 0)
                tried.physical = physical_key(self.schema, key, shards[hot])
                raise
            if _CHECK_REFUSED in codes:
                raise _of_user(error, requests, users) or Again() from error
            if "TransactionConflict" in codes:
                raise Again from error
            raise


def _of_user(
    error: ClientError, requests: list[dict[str, Any]], users: int | None
) -> ClientError | None:
    """The user's own condition that did not hold, as a write without a transaction reports it.

    None if a condition of ours did not hold: then the user's was asked of the wrong item. Joined to
    his, ours holds if the answer has the item.
    """
    reasons = error.response.get("CancellationReasons", ())
    refused = {n for n, reason in enumerate(reasons) if reason.get("Code") == _CHECK_REFUSED}
    if users is None or refused != {users}:
        return None
    ((_, parameters),) = requests[users].items()
    joined = "attribute_exists(#kh_p)" in parameters["ConditionExpression"]
    if joined and not reasons[users].get("Item"):
        return None
    told = {
        **error.response,
        "Error": {"Code": _REFUSED, "Message": "The conditional request failed"},
    }
    told.pop("CancellationReasons", None)
    return ClientError(told, error.operation_name)


def _content(value: TypedValue) -> Any:
    ((_, content),) = value.items()
    return content


def _units(answer: Mapping[str, Any]) -> float:
    return float(answer.get("ConsumedCapacity", {}).get("CapacityUnits", 1.0))
