"""Write to the target table, each time on a condition about the owner of the existing item.

A write whose answer was lost is not repeated (requester.Unanswered): the protocol waits, and reads.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from botocore.exceptions import ClientError

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.refusals import CHECK_FAILED, cancellations
from keyhop.dynamodb.requester import ItemCalls
from keyhop.dynamodb.units import write_units
from keyhop.dynamodb.values import Item, Key, size_of
from keyhop.errors import GaveUp
from keyhop.rekey.control import Direction
from keyhop.rekey.side.layout import Claim
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.transform import Transform
from keyhop.rekey.worker.images import FrozenKey, Image, Values, frozen, owner_values, thawed
from keyhop.rekey.worker.protocol import Call, Kind, Outcome

MOST_TRIES = 50
"""The tries of one write, each of which was refused because its owner has changed the item."""

Answer = FrozenKey | Outcome | None


class Target(ItemCalls):
    """Makes the requests of one direction's protocol, for any number of threads, with the arguments
    of ItemCalls. `claims` has the claims that were recorded when places were taken over.
    """

    def __init__(
        self,
        connection: Connection,
        table: str,
        transform: Transform,
        direction: Direction,
        side: SideTable,
        **more: Any,
    ) -> None:
        # A slow target slows the backfill, and never the stream.
        super().__init__(connection, table, slows=False, **more)
        self.claims: list[Claim] = []
        self._transform = transform
        self._direction = direction
        self._side = side
        self._is_bijective = transform.kind == "bijective"
        self._absent = "attribute_not_exists(#p)"
        self._seen: dict[tuple[Any, Any], Values] = {}

    def write(self, call: Call) -> Answer:
        """Put an image at an empty place or over its own item; else return the owner."""
        image = call.image
        assert isinstance(image, Image)
        assert image.there is not None
        item = image.there
        if self._is_bijective:
            return self._sent(call, item)[0]
        values = image.owner_values
        for _ in range(MOST_TRIES):
            answer, old = self._sent(call, item, values, or_absent=True)
            if answer is not Outcome.REFUSED:
                return answer
            if old is None:
                continue
            owner, values = self._owner_of(old), owner_values(old, self._transform)
            if owner is None:
                return Outcome.FOREIGN
            if owner != call.source:
                self._seen[call.source, call.place] = values
                return owner
        raise GaveUp(f"An item of table {self._table!r} changes all the time.")

    def remove(self, call: Call, values: Values | None) -> Answer:
        """Delete the item at a place if it is of the source, as its `values` show."""
        if self._is_bijective:
            return self._sent(call)[0]
        for _ in range(MOST_TRIES):
            if values is None:
                old = self.get(thawed(call.place))
            else:
                answer, old = self._sent(call, None, values)
                if answer is not Outcome.REFUSED:
                    return answer
            if old is None or self._owner_of(old) != call.source:
                return None
            values = owner_values(old, self._transform)
        raise GaveUp(f"An item of table {self._table!r} changes all the time.")

    def take_over(self, call: Call) -> Answer:
        """Put an image in the place of another owner's item, and record a claim of that owner."""
        image = call.image
        assert isinstance(image, Image)
        claim = self._side.new_claim(self._direction, thawed(call.place), thawed(call.owner))
        values = self._seen[call.source, call.place]
        answer, _ = self._sent(call, image.there, values, claim=claim)
        if answer is None:
            self.claims.append(claim)
        return answer

    def write_together(self, calls: Sequence[Call]) -> list[Outcome | None]:
        """Write and remove at distinct places in one transaction, by claims that share a row. Try
        the others again if some are refused. Return for each call None if it is done, OVERTAKEN
        (then for all) if the fence does not hold any more, and REFUSED if it must be tried alone.
        """
        answers: list[Outcome | None] = [None] * len(calls)
        parts = {number: part for number, part in enumerate(self._parts(calls)) if part is not None}
        while parts:
            fence = self._side.holds(self._direction, cast(tuple[str, str], calls[0].fence))
            units = 2 * (sum(units for _, units in parts.values()) + 1)
            actions = [*(part for part, _ in parts.values()), fence]
            written = self._write(
                "transact_write_items", units, units, once=True, TransactItems=actions
            )
            if written.refused is None:
                break
            *reasons, of_fence = cancellations(written.refused)
            if of_fence == CHECK_FAILED:
                return [Outcome.OVERTAKEN] * len(calls)
            for number, reason in zip([*parts], reasons, strict=True):
                if reason == CHECK_FAILED:
                    answers[number] = Outcome.REFUSED
                    del parts[number]
        return answers

    def _parts(self, calls: Sequence[Call]) -> Iterator[tuple[dict[str, Any], float] | None]:
        """Yield the part of a transaction for each call; None if it has nothing to remove."""
        items_there: dict[FrozenKey, Item] = {}
        removed = [thawed(call.place) for call in calls if call.kind is Kind.REMOVE]
        if removed and not self._is_bijective:
            names = self._transform.destination
            items_there = {frozen(names.of(old)): old for old in self.get_many(removed)}
        for call in calls:
            if call.kind is Kind.WRITE:
                image = call.image
                assert isinstance(image, Image)
                assert image.there is not None
                values = None if self._is_bijective else image.owner_values
                yield self._part(call, image.there, values, or_absent=True)
            elif self._is_bijective:
                yield self._part(call)
            else:
                old = items_there.get(cast(FrozenKey, call.place))
                is_its_own = old is not None and self._owner_of(old) == call.source
                values = owner_values(old, self._transform) if old and is_its_own else None
                yield self._part(call, None, values) if is_its_own else None

    def get(self, key: Key) -> Item | None:
        """Read an item, strongly consistent."""
        item: Item | None = self._read("get_item", Key=key).get("Item")
        return item

    def get_many(self, keys: Sequence[Key]) -> list[Key]:
        """Read up to MOST_KEYS_AT_ONCE items, strongly consistent; return those that exist."""
        return self._read_batch(keys, {})

    def _owner_of(self, old: Item) -> FrozenKey | None:
        try:
            owner = self._transform.owner_of(old)
        except Exception:  # a user's function
            return None
        return None if owner is None else frozen(owner)

    def _part(
        self,
        call: Call,
        item: Item | None = None,
        values: Values | None = None,
        or_absent: bool = False,
    ) -> tuple[dict[str, Any], float]:
        """Return the part of a transaction for a Put or a Delete, and its write units."""
        place = thawed(call.place)
        write: dict[str, Any] = {"TableName": self._table}
        write |= {"Key": place} if item is None else {"Item": item}
        if values is not None:
            write |= self._condition(values, next(iter(place)), or_absent)
        kind = "Delete" if item is None else "Put"
        return {kind: write}, write_units(0 if item is None else size_of(item))

    def _sent(
        self,
        call: Call,
        item: Item | None = None,
        values: Values | None = None,
        or_absent: bool = False,
        claim: Claim | None = None,
    ) -> tuple[Answer, Item | None]:
        """Send a Put or a Delete; return the answer, and the item that refused it."""
        part, units = self._part(call, item, values, or_absent)
        ((kind, write),) = part.items()
        beside = [] if claim is None else [self._side.claiming(claim)]
        if call.fence is not None:
            fence = cast(tuple[str, str], call.fence)
            beside.append(self._side.holds(self._direction, fence))
        if not beside:
            written = self._write(f"{kind.lower()}_item", units, once=True, **write)
            if written.refused is None:
                return None, None
            return Outcome.REFUSED, written.old
        actions = [part, *beside]
        units = 2 * (units + len(beside))
        written = self._write(
            "transact_write_items", units, units, once=True, TransactItems=actions
        )
        if written.refused is None:
            return None, None
        return _cancelled(written.refused)

    def _condition(self, values: Values, partition: str, or_absent: bool) -> dict[str, Any]:
        """Return the condition that an item's owner attributes have these values."""
        names, content, clauses = {}, {}, []
        for number, (name, value) in enumerate(values.items()):
            names[f"#o{number}"] = name
            if value is None:
                clauses.append(f"attribute_not_exists(#o{number})")
            else:
                content[f":o{number}"] = value
                clauses.append(f"#o{number} = :o{number}")
        if or_absent or None in values.values() or not clauses:
            names["#p"] = partition
        owned = " AND ".join(clauses) or "attribute_exists(#p)"
        if not or_absent and "#p" in names and clauses:
            owned += " AND attribute_exists(#p)"  # a missing item lacks all attributes too
        condition = f"{self._absent} OR ({owned})" if or_absent else owned
        more: Mapping[str, Any] = {"ExpressionAttributeValues": content} if content else {}
        return {
            "ConditionExpression": condition,
            "ExpressionAttributeNames": names,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            **more,
        }


def _cancelled(error: ClientError) -> tuple[Answer, Item | None]:
    """Return the answer of a cancelled transaction: its first part is the write."""
    first, *rest = cancellations(error)
    if CHECK_FAILED in rest:
        return Outcome.OVERTAKEN, None
    assert first == CHECK_FAILED
    item: Item | None = error.response["CancellationReasons"][0].get("Item")
    return Outcome.REFUSED, item
