"""The side table: strong reads, and writes that are conditional where two may meet.

What it holds is laid out in layout.py.
"""

import json
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.values import Key, from_json, to_json
from keyhop.errors import CannotStart
from keyhop.rekey.control import Control, Direction, Side, direction_from
from keyhop.rekey.digest import key_digest
from keyhop.rekey.pair import Pair
from keyhop.rekey.side import layout as of
from keyhop.rekey.side.figures import LAG, TURNED
from keyhop.rekey.side.layout import Straggler, Unmapped
from keyhop.rekey.side.rows import (
    ABSENT,
    PRESENT,
    body_of,
    conditional,
    key_text,
    row_key,
    row_name,
    text_of,
)
from keyhop.rekey.side.work import Batches, Claims

LAG_SECONDS = 10.0

MOST_CLAIMS_AT_ONCE = 99
"""Of a transaction of 100 items, one of which checks the control item."""

VERSION = 1
"""The version of the layout of a side table, which the item `plan` tells."""

MOST_PLAN_BYTES = 390 * 1024
"""Of the item `plan`, deflated; an item may have 400 KB."""


def table_request(name: str) -> dict[str, Any]:
    """What CreateTable is asked for: the side table of that name."""
    return {
        "TableName": name,
        "AttributeDefinitions": [{"AttributeName": k, "AttributeType": "S"} for k in of.KEYS],
        "KeySchema": [
            {"AttributeName": of.KEYS[0], "KeyType": "HASH"},
            {"AttributeName": of.KEYS[1], "KeyType": "RANGE"},
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }


class SideTable(Batches, Claims):
    """The side table of a pair; for any number of threads at once. now: seconds since 1970.

    The others are those of ItemCalls, whose errors all methods raise.
    """

    def __init__(
        self,
        connection: Connection,
        name: str,
        *,
        now: Callable[[], float] = time.time,
        **more: Any,
    ) -> None:
        super().__init__(connection, name, now=now, **more)
        self._lags: list[tuple[float, float]] = []
        self._lag_told_at = -LAG_SECONDS

    # --- control and plan ---

    def control(self) -> Control:
        """Raises CannotStart if there is none, or none as it was written."""
        row = self._row(of.CONTROL, of.CONTROL)
        if row is None:
            raise CannotStart(
                f"The side table {self._table!r} has no control item: keyhop rekey create writes "
                "it, if there was no cutover yet."
            )
        try:
            return Control.from_json(body_of(row))
        except (KeyError, ValueError) as error:
            raise CannotStart(
                f"The control item of the side table {self._table!r} was not written by Keyhop: "
                "put back what it was (docs/rekey.md)."
            ) from error

    def swap(self, old: Control | None, new: Control) -> bool:
        """Write `new` if the control item still has the revision of `old` (None: if there is none).

        An answer that was lost does not make a success a failure.
        """
        body = text_of(new.to_json())
        row = {"revision": {"N": str(new.revision)}, "body": {"S": body}}
        if old is None:
            refused = self._put(of.CONTROL, of.CONTROL, row, ABSENT)
        else:
            seen = {":seen": {"N": str(old.revision)}}
            refused = self._put(of.CONTROL, of.CONTROL, row, "revision = :seen", seen)
        done = refused is None or (refused.unsure and refused.row.get("body") == {"S": body})
        if done and new.stage == "turned":
            # Whoever is killed before this: complete then counts its window from its first try.
            self.tell(TURNED, {"at": self._now(), "serving": new.serving})
        return done

    def plan(self) -> Pair:
        """Return the pair that the plan is about.

        Raises:
            CannotStart: There is no plan, or the side table has another layout.
        """
        row = self._row(of.PLAN, of.PLAN)
        if row is None:
            raise CannotStart(f"The side table {self._table!r} has no plan: create it.")
        if row.get("version") != {"N": str(VERSION)}:
            told = row.get("version", {}).get("N", "0")
            raise CannotStart(
                f"The side table {self._table!r} has version {told} of its layout, and this Keyhop "
                f"reads version {VERSION}: use the Keyhop that created it."
            )
        return Pair.from_json(json.loads(zlib.decompress(row["deflated"]["B"])))

    def plan_digest(self) -> str:
        """Of the plan that stands there now; empty if there is none."""
        row = self._row(of.PLAN, of.PLAN)
        return "" if row is None else str(row["digest"]["S"])

    def has_plan(self) -> bool:
        """Whether there is one."""
        return self._row(of.PLAN, of.PLAN) is not None

    def put_plan(self, pair: Pair) -> bool:
        """Write the plan down, once; whether it is this one that stands there now.

        Raises CannotStart for one that no item has room for.
        """
        deflated = zlib.compress(text_of(pair.to_json()).encode(), 9)
        if len(deflated) > MOST_PLAN_BYTES:
            raise CannotStart(
                f"The template and its functions have {len(deflated):,} bytes, deflated; "
                f"{MOST_PLAN_BYTES:,} is the most that an item has room for."
            )
        version = {"N": str(VERSION)}
        row = {"version": version, "digest": {"S": pair.digest}, "deflated": {"B": deflated}}
        refused = self._put(of.PLAN, of.PLAN, row, ABSENT)
        return refused is None or refused.row.get("digest") == {"S": pair.digest}

    # --- items without a place ---

    def unmapped(self, direction: Direction, key: Key, reason: str) -> None:
        """Note that an item has no form in the other table."""
        told = {"reason": reason, "at": self._now(), "key": to_json(key)}
        name = key_digest(key).hex()
        self._put(f"{of.UNMAPPED}#{direction}", name, {"body": {"S": text_of(told)}})

    def mapped(self, direction: Direction, key: Key) -> None:
        """It has one now, or is gone."""
        self._delete(f"{of.UNMAPPED}#{direction}", key_digest(key).hex())

    def all_unmapped(self, direction: Direction, most: int | None = None) -> list[Unmapped]:
        """Those noted by the stream's worker; others a backfill or verify finds."""
        rows = self._rows(f"{of.UNMAPPED}#{direction}", most)
        told = [(row["sk"]["S"], body_of(row)) for row in rows]
        return [Unmapped(name, **{**one, "key": from_json(one["key"])}) for name, one in told]

    # --- markers, clients, stragglers, figures ---

    def put_marker(self, marker: str, told: Mapping[str, Any]) -> None:
        """Note a marker that is going to be written."""
        self._put(of.MARKER, marker, {"body": {"S": text_of(told)}})

    def see_marker(self, marker: str, told: Mapping[str, Any]) -> None:
        """Note that the batch with a marker has ended, if the marker is still there."""
        self._write(
            "update_item",
            1.0,
            TableName=self._table,
            Key=row_key(of.MARKER, marker),
            UpdateExpression="SET seen = :told",
            ExpressionAttributeValues={":told": {"S": text_of(told)}},
            ConditionExpression=PRESENT,
        )

    def markers(self) -> dict[str, dict[str, Any]]:
        """What was told of each, and as `seen` where it was seen, if it was."""
        found = {}
        for row in self._rows(of.MARKER):
            seen = {"seen": json.loads(row["seen"]["S"])} if "seen" in row else {}
            found[row["sk"]["S"]] = {**body_of(row), **seen}
        return found

    def drop_marker(self, marker: str) -> None:
        self._delete(of.MARKER, marker)

    def report_client(self, client: str, told: Mapping[str, Any]) -> None:
        """A router tells which revision it goes by, and until when."""
        self._put(of.CLIENT, client, {"body": {"S": text_of(told)}})

    def clients(self) -> dict[str, dict[str, Any]]:
        """What each has told last."""
        return {row["sk"]["S"]: body_of(row) for row in self._rows(of.CLIENT)}

    def straggler(self, side: Side, key: Key, places: Sequence[Key], has_form: bool = True) -> None:
        """Note a write to `side` that bypassed the routers.

        Args:
            places: The keys of its images in the other table. Those of earlier writes to the same
                item that are not settled yet are kept.
            has_form: See Straggler.
        """
        name = row_name(f"{side}|{key_text(key)}")
        condition, values = ABSENT, None
        known: tuple[Key, ...] = ()
        while True:
            both = {key_text(place): to_json(place) for place in (*known, *places)}
            told = {"side": side, "key": to_json(key), "at": self._now()}
            told |= {} if has_form else {"has_form": False}
            row = {"body": {"S": text_of({**told, "places": list(both.values())})}}
            refused = self._put(of.STRAGGLER, name, row, condition, values)
            if refused is None or refused.row.get("body") == row["body"]:
                return
            if not refused.row:
                condition, values = ABSENT, None
                continue
            before = _straggler(refused.row)
            known = () if before.settled is not None else before.places
            condition, values = "body = :seen", {":seen": {"S": before.body}}

    def stragglers(self, most: int | None = None) -> list[Straggler]:
        """Return all stragglers, or the first `most`; also those that are settled."""
        return [_straggler(row) for row in self._rows(of.STRAGGLER, most)]

    def unsettled(self, most: int | None = None) -> list[Straggler]:
        """Return the stragglers that remain to be settled, or the first `most` of them."""
        found = (_straggler(row) for row in self._rows(of.STRAGGLER))
        return list(islice((one for one in found if one.settled is None), most))

    def settle(self, straggler: Straggler, control: Control) -> bool:
        """Have the workers overwrite a straggler's item with what the serving table says.

        Transactions note the claims, on condition that the control item still is `control`: so
        nothing is claimed in favour of a table that no longer serves. Then the row says that it is
        settled, unless the straggler was noted again in the meantime. So the item is protected by
        its row or by its claims at each moment.

        Returns:
            False if the control item has changed.
        """
        direction = direction_from(control.serving)
        is_of_serving = straggler.side == control.serving
        claims = []
        for place in straggler.places:
            here, there = (place, straggler.key) if is_of_serving else (straggler.key, place)
            claim = replace(self.new_claim(direction, here, there), at=0.0)  # due at once
            claims.append(self.claiming(claim))
        still = {
            "TableName": self._table,
            "Key": row_key(of.CONTROL, of.CONTROL),
            **conditional("revision = :seen", {":seen": {"N": str(control.revision)}}),
        }
        for at in range(0, len(claims), MOST_CLAIMS_AT_ONCE):
            whole = [{"ConditionCheck": still}, *claims[at : at + MOST_CLAIMS_AT_ONCE]]
            units = 2.0 * len(whole)
            written = self._write("transact_write_items", units, units, TransactItems=whole)
            if written.refused is not None:
                return False
        self.resolve(straggler)
        return True

    def resolve(self, straggler: Straggler) -> None:
        """Note that a straggler is settled, unless it was noted again in the meantime."""
        told = {**json.loads(straggler.body), "settled": self._now()}
        name = row_name(f"{straggler.side}|{key_text(straggler.key)}")
        seen = {":seen": {"S": straggler.body}}
        self._put(of.STRAGGLER, name, {"body": {"S": text_of(told)}}, "body = :seen", seen)

    def tell(self, name: str, told: Any) -> None:
        """Write a figure down, in place of what it was."""
        self._put(of.TOLD, name, {"body": {"S": text_of(told)}})

    def tell_lag(self, direction: Direction, seconds: float) -> None:
        """How old a batch's newest record was when it was done: the largest of some seconds, of all
        shards of the stream together, as `lag.forward` or `lag.reverse`: {"seconds", "at"}.

        A process tells at most once in LAG_SECONDS: each telling is a write.
        """
        now = self._now()
        self._lags = [one for one in self._lags if now - one[0] < LAG_SECONDS] + [(now, seconds)]
        if now - self._lag_told_at < LAG_SECONDS:
            return
        told = {"seconds": round(max(lag for _, lag in self._lags), 3), "at": now}
        row = {
            "seconds": {"N": str(told["seconds"])},
            "told_at": {"N": str(now)},
            "body": {"S": text_of(told)},
        }
        larger = f"{ABSENT} OR seconds <= :mine OR told_at < :old"
        values = {":mine": row["seconds"], ":old": {"N": str(now - LAG_SECONDS)}}
        self._put(of.TOLD, f"{LAG}.{direction}", row, larger, values)
        self._lags, self._lag_told_at = [], now

    def told(self, name: str) -> Any:
        """A figure as JSON; None if it was never told."""
        row = self._row(of.TOLD, name)
        return None if row is None else body_of(row)

    def all_told(self) -> dict[str, Any]:
        """All figures, by their names."""
        return {row["sk"]["S"]: body_of(row) for row in self._rows(of.TOLD)}


def _straggler(row: Mapping[str, Any]) -> Straggler:
    told = body_of(row)
    places = tuple(from_json(place) for place in told["places"])
    body, has_form = row["body"]["S"], told.get("has_form", True)
    return Straggler(
        told["side"],
        from_json(told["key"]),
        places,
        told["at"],
        told.get("settled"),
        body,
        has_form,
    )
