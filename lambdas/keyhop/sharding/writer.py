"""One write of one item, by the protocol: look if need be, then put, change, move or delete it."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from keyhop.keyspace import TypedValue
from keyhop.sharding import counts, protocol
from keyhop.sharding.calls import Again, Calls, cancellations, code_of, is_ambiguous, is_throttled
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


@dataclass(slots=True)
class _Attempts:
    """What is remembered from one attempt of a write to the next."""

    number: int = 0
    shard: int | None = None
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

    def write(
        self, key: ItemKey, act: Act, clause: Clause, returns: str | None
    ) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """The service's answer, and the item as it was found where the answer cannot tell.

        Raises what boto3's client raises, with the user's own condition, when it does not hold;
        a throttling error once patience is at its end.
        """
        tried = _Attempts()

        def attempt() -> tuple[dict[str, Any], dict[str, Any] | None]:
            tried.number += 1
            known = self.metadata.of(key.logical, register=True)
            known = self.thermometer.pass_on(key.logical, known)
            try:
                answer = self._attempt(key, act, clause, returns, known, tried)
            except ClientError as error:
                if not is_ambiguous(error):
                    tried.shard = None  # nothing was written: another shard may be taken
                if is_throttled(error) and tried.physical:
                    self.thermometer.throttled(
                        key.logical, known, tried.physical, error, tried.number == 1
                    )
                raise
            except Again:
                tried.shard = None
                raise
            if tried.number == 1:
                self.thermometer.accepted(key.logical)
            if known.shards.number > 1:
                self.metadata.wrote(key.logical, _units(answer[0]))
            return answer

        return self.calls.patiently(attempt)

    def place_of(self, key: ItemKey) -> Place:
        """Where an item belongs, by each shard count."""
        return place_of(key.logical, key.sort, self.placement.hash)

    def appended_shard(self, key: ItemKey, known: Known) -> int:
        """A shard for an item that is new, by whoever promises that it is."""
        if self.placement.is_random:
            return self.calls.chance.randint(1, known.shards.writable)
        return protocol.home(known.shards, self.place_of(key))

    def only_candidate(self, key: ItemKey, known: Known) -> int | None:
        """The shard of an item that can be in no other; None if a write must look."""
        if self.placement.append_only:
            return self.appended_shard(key, known)
        where = protocol.candidates(known.shards, self.placement, self.place_of(key))
        return where[0] if len(where) == 1 else None

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
    ) -> tuple[dict[str, Any], dict[str, Any] | None]:
        if self.calls.clock.monotonic() >= known.expires:
            raise Again
        place = self.place_of(key)
        if self.placement.append_only and isinstance(act, Put):
            if tried.shard is not None and tried.shard > known.shards.writable:
                # No answer came of the attempt before, and its shard is being emptied since.
                if self.look(key, (tried.shard,)):
                    return {}, None
                tried.shard = None
            if tried.shard is None:
                tried.shard = self.appended_shard(key, known)
            return self._alone(key, act, clause, returns, tried.shard, tried), None
        where = protocol.candidates(known.shards, self.placement, place)
        if len(where) == 1:
            return self._alone(key, act, clause, returns, where[0], tried), None
        found = self.look(key, where, whole=returns == "ALL_OLD")
        if self.calls.clock.monotonic() >= known.expires:
            raise Again  # the look took so long that the metadata may not be acted upon any more
        decide = protocol.step_of_put if isinstance(act, Put) else protocol.step_of_update
        step = decide(known.shards, self.placement, place, sorted(found))
        return self._do(step, key, act, clause, returns, found, tried)

    def _do(
        self,
        step: Step,
        key: ItemKey,
        act: Act,
        clause: Clause,
        returns: str | None,
        found: Mapping[int, dict[str, Any]],
        tried: _Attempts,
    ) -> tuple[dict[str, Any], dict[str, Any] | None]:
        exists = {"#kh_p": self.schema.partition.name}
        match step:
            case Create(shard, ()):
                return self._alone(key, act, clause, returns, shard, tried), None
            case Create(shard, unless):
                checks = [self._absent(key, other) for other in unless]
                request = self._transact_item(key, act, clause, shard)
                self._transact([request, *checks], tried, key, shard)
                return {}, None
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
                self._transact([put, delete], tried, key, source)
                self.calls.counts.add(counts.MOVES)
                return {}, found[source]
            case Fold(keep, drop):
                check = {
                    "ConditionCheck": {
                        "TableName": self.table,
                        "Key": physical_key(self.schema, key, keep),
                        **Clause("attribute_exists(#kh_p)", exists).parameters(),
                    }
                }
                deletes = [self._transact_item(key, Delete(), Clause(), shard) for shard in drop]
                self._transact([check, *deletes], tried, key, keep)
                raise Again

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
        self, requests: list[dict[str, Any]], tried: _Attempts, key: ItemKey, shard: int
    ) -> None:
        """All of them or none. Raises Again if an item is not where it was found."""
        tried.physical = physical_key(self.schema, key, shard)
        try:
            self.calls.once(
                "transact_write_items",
                TransactItems=requests,
                ClientRequestToken=uuid.uuid4().hex,
            )
        except ClientError as error:
            codes = cancellations(error)
            if _CHECK_REFUSED in codes and not is_throttled(error):
                raise _of_user(error, requests) or Again() from error
            if "TransactionConflict" in codes:
                raise Again from error
            raise


def _of_user(error: ClientError, requests: list[dict[str, Any]]) -> ClientError | None:
    """The user's own condition that did not hold, as a write without a transaction reports it.

    A clause that begins with a bracket is a user's, joined to ours; ours alone has none. Of the
    joined ones ours does hold if the answer has the item.
    """
    reasons = error.response.get("CancellationReasons", ())
    for reason, request in zip(reasons, requests, strict=False):
        if reason.get("Code") != _CHECK_REFUSED:
            continue
        ((_, parameters),) = request.items()
        condition = parameters.get("ConditionExpression", "")
        ours_alone = condition in ("attribute_exists(#kh_p)", "attribute_not_exists(#kh_p)")
        joined = condition.endswith("AND attribute_exists(#kh_p)")
        if ours_alone or (joined and not reason.get("Item")):
            return None
        told = {
            **error.response,
            "Error": {"Code": _REFUSED, "Message": "The conditional request failed"},
        }
        told.pop("CancellationReasons", None)
        return ClientError(told, error.operation_name)
    return None


def _content(value: TypedValue) -> Any:
    ((_, content),) = value.items()
    return content


def _units(answer: Mapping[str, Any]) -> float:
    return float(answer.get("ConsumedCapacity", {}).get("CapacityUnits", 1.0))
