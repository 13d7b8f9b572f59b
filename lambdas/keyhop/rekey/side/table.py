"""The side table (layout.py): strong reads, and conditional writes where processes may compete."""

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
from keyhop.rekey.side import layout
from keyhop.rekey.side.layout import LAG, TURNED, Straggler, Unmapped
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
"""A transaction has 100 items, one of which checks the control item."""

VERSION = 1
"""The version of the layout of a side table, which the item `plan` holds."""

MOST_PLAN_BYTES = 390 * 1024
"""The maximum size of the item `plan`, compressed; an item may have 400 KB."""


def table_request(name: str) -> dict[str, Any]:
    """Return the parameters of CreateTable for a side table."""
    return {
        "TableName": name,
        "AttributeDefinitions": [{"AttributeName": k, "AttributeType": "S"} for k in layout.KEYS],
        "KeySchema": [
            {"AttributeName": layout.KEYS[0], "KeyType": "HASH"},
            {"AttributeName": layout.KEYS[1], "KeyType": "RANGE"},
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }


class SideTable(Batches, Claims):
    """The side table of a pair, for any number of threads, with the arguments of ItemCalls, whose
    errors all methods raise; `now` returns the seconds since 1970.
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
        """Return the control item, or raise CannotStart if it is missing or damaged."""
        row = self._row(layout.CONTROL, layout.CONTROL)
        if row is None:
            raise CannotStart(
                f"The side table {self._table!r} has no control item: create writes it, if "
                "there was no cutover yet."
            )
        try:
            return Control.from_json(body_of(row))
        except (KeyError, ValueError) as error:
            raise CannotStart(
                f"The control item of the side table {self._table!r} was not written by Keyhop: "
                "put back what it was (docs/reference/rekey.md)."
            ) from error

    def swap(self, old: Control | None, new: Control) -> bool:
        """Write `new` if the control item still has the revision of `old` (None: if none exists),
        and return whether it was written, also if the answer was lost.
        """
        body = text_of(new.to_json())
        row = {"revision": {"N": str(new.revision)}, "body": {"S": body}}
        if old is None:
            refused = self._put(layout.CONTROL, layout.CONTROL, row, ABSENT)
        else:
            values = {":seen": {"N": str(old.revision)}}
            refused = self._put(layout.CONTROL, layout.CONTROL, row, "revision = :seen", values)
        is_written = refused is None or (refused.unsure and refused.row.get("body") == {"S": body})
        if is_written and new.stage == "turned":
            # If this process is killed before this line, complete counts from its first try.
            self.tell(TURNED, {"at": self._now(), "serving": new.serving})
        return is_written

    def plan(self) -> Pair:
        """Return the plan. Raise CannotStart if it is missing, or of another layout."""
        row = self._row(layout.PLAN, layout.PLAN)
        if row is None:
            raise CannotStart(f"The side table {self._table!r} has no plan: create it.")
        if row.get("version") != {"N": str(VERSION)}:
            found_version = row.get("version", {}).get("N", "0")
            raise CannotStart(
                f"The side table {self._table!r} has version {found_version} of its layout, and "
                f"this Keyhop reads version {VERSION}: use the Keyhop that created it."
            )
        return Pair.from_json(json.loads(zlib.decompress(row["deflated"]["B"])))

    def plan_digest(self) -> str:
        """Return the digest of the current plan; empty if there is none."""
        row = self._row(layout.PLAN, layout.PLAN)
        return "" if row is None else str(row["digest"]["S"])

    def has_plan(self) -> bool:
        """Return whether there is a plan."""
        return self._row(layout.PLAN, layout.PLAN) is not None

    def put_plan(self, pair: Pair) -> bool:
        """Write the plan, once, and return whether this plan is the current one. Raise CannotStart
        if it is too large for an item.
        """
        deflated = zlib.compress(text_of(pair.to_json()).encode(), 9)
        if len(deflated) > MOST_PLAN_BYTES:
            raise CannotStart(
                f"The template and its functions have {len(deflated):,} bytes, deflated; "
                f"{MOST_PLAN_BYTES:,} is the most that an item has room for."
            )
        version = {"N": str(VERSION)}
        row = {"version": version, "digest": {"S": pair.digest}, "deflated": {"B": deflated}}
        refused = self._put(layout.PLAN, layout.PLAN, row, ABSENT)
        return refused is None or refused.row.get("digest") == {"S": pair.digest}

    # --- items without a place ---

    def unmapped(self, direction: Direction, key: Key, reason: str) -> None:
        """Record that an item cannot be mapped to the other table."""
        content = {"reason": reason, "at": self._now(), "key": to_json(key)}
        name = key_digest(key).hex()
        self._put(f"{layout.UNMAPPED}#{direction}", name, {"body": {"S": text_of(content)}})

    def mapped(self, direction: Direction, key: Key) -> None:
        """Remove the record of an unmappable item that can be mapped now, or was deleted."""
        self._delete(f"{layout.UNMAPPED}#{direction}", key_digest(key).hex())

    def all_unmapped(self, direction: Direction, most: int | None = None) -> list[Unmapped]:
        """Return the items that the stream's worker has recorded as unmappable."""
        rows = self._rows(f"{layout.UNMAPPED}#{direction}", most)
        contents = [(row["sk"]["S"], body_of(row)) for row in rows]
        return [
            Unmapped(name, **{**content, "key": from_json(content["key"])})
            for name, content in contents
        ]

    # --- markers, clients, stragglers, figures ---

    def put_marker(self, marker: str, details: Mapping[str, Any]) -> None:
        """Record a marker before it is written."""
        self._put(layout.MARKER, marker, {"body": {"S": text_of(details)}})

    def see_marker(self, marker: str, details: Mapping[str, Any]) -> None:
        """Record that the batch with a marker has ended, if the marker still exists."""
        self._write(
            "update_item",
            1.0,
            TableName=self._table,
            Key=row_key(layout.MARKER, marker),
            UpdateExpression="SET seen = :told",
            ExpressionAttributeValues={":told": {"S": text_of(details)}},
            ConditionExpression=PRESENT,
        )

    def markers(self) -> dict[str, dict[str, Any]]:
        """Return the details of each marker, with `seen` if its batch has ended."""
        markers = {}
        for row in self._rows(layout.MARKER):
            addition = {"seen": json.loads(row["seen"]["S"])} if "seen" in row else {}
            markers[row["sk"]["S"]] = {**body_of(row), **addition}
        return markers

    def drop_marker(self, marker: str) -> None:
        self._delete(layout.MARKER, marker)

    def report_client(self, client: str, report: Mapping[str, Any]) -> None:
        """Record the revision that a router uses, and until when."""
        self._put(layout.CLIENT, client, {"body": {"S": text_of(report)}})

    def clients(self) -> dict[str, dict[str, Any]]:
        """Return the last report of each router."""
        return {row["sk"]["S"]: body_of(row) for row in self._rows(layout.CLIENT)}

    def straggler(self, side: Side, key: Key, places: Sequence[Key], has_form: bool = True) -> None:
        """Record a write to `side` that bypassed the routers. The places of its images in the other
        table are added to those of earlier unsettled writes to the same item.
        """
        name = row_name(f"{side}|{key_text(key)}")
        condition, values = ABSENT, None
        earlier_places: tuple[Key, ...] = ()
        while True:
            both = {key_text(place): to_json(place) for place in (*earlier_places, *places)}
            content = {"side": side, "key": to_json(key), "at": self._now()}
            content |= {} if has_form else {"has_form": False}
            row = {"body": {"S": text_of({**content, "places": list(both.values())})}}
            refused = self._put(layout.STRAGGLER, name, row, condition, values)
            if refused is None or refused.row.get("body") == row["body"]:
                return
            if not refused.row:
                condition, values = ABSENT, None
                continue
            before = _straggler(refused.row)
            earlier_places = () if before.settled is not None else before.places
            condition, values = "body = :seen", {":seen": {"S": before.body}}

    def stragglers(self, most: int | None = None) -> list[Straggler]:
        """Return all stragglers, including settled ones, or the first `most` of them."""
        return [_straggler(row) for row in self._rows(layout.STRAGGLER, most)]

    def unsettled(self, most: int | None = None) -> list[Straggler]:
        """Return the stragglers that remain to be settled, or the first `most` of them."""
        stragglers = (_straggler(row) for row in self._rows(layout.STRAGGLER))
        return list(
            islice((straggler for straggler in stragglers if straggler.settled is None), most)
        )

    def settle(self, straggler: Straggler, control: Control) -> bool:
        """Have the workers overwrite a straggler's item with that of the serving table.

        Transactions record the claims, on condition that the control item still is `control` (else
        return False): so nothing is claimed in favour of a table that no longer serves. Then the
        row is marked as settled, unless the straggler was recorded again in between. So its row or
        its claims protect the item at each moment.
        """
        direction = direction_from(control.serving)
        is_of_serving = straggler.side == control.serving
        claims = []
        for place in straggler.places:
            target_place, owner = (
                (place, straggler.key) if is_of_serving else (straggler.key, place)
            )
            claim = replace(self.new_claim(direction, target_place, owner), at=0.0)  # due at once
            claims.append(self.claiming(claim))
        still = {
            "TableName": self._table,
            "Key": row_key(layout.CONTROL, layout.CONTROL),
            **conditional("revision = :seen", {":seen": {"N": str(control.revision)}}),
        }
        for at in range(0, len(claims), MOST_CLAIMS_AT_ONCE):
            actions = [{"ConditionCheck": still}, *claims[at : at + MOST_CLAIMS_AT_ONCE]]
            units = 2.0 * len(actions)
            written = self._write("transact_write_items", units, units, TransactItems=actions)
            if written.refused is not None:
                return False
        self.resolve(straggler)
        return True

    def resolve(self, straggler: Straggler) -> None:
        """Record that a straggler is settled, unless it was recorded again in between."""
        content = {**json.loads(straggler.body), "settled": self._now()}
        name = row_name(f"{straggler.side}|{key_text(straggler.key)}")
        values = {":seen": {"S": straggler.body}}
        self._put(layout.STRAGGLER, name, {"body": {"S": text_of(content)}}, "body = :seen", values)

    def tell(self, name: str, content: Any) -> None:
        """Write a figure, replacing its previous value."""
        self._put(layout.TOLD, name, {"body": {"S": text_of(content)}})

    def tell_lag(self, direction: Direction, seconds: float) -> None:
        """Report the age of a batch's newest record, as `lag.forward` or `lag.reverse`.

        The figure {"seconds", "at"} is the largest of some seconds and of all shards of the stream.
        A process writes it at most once in LAG_SECONDS.
        """
        now = self._now()
        self._lags = [entry for entry in self._lags if now - entry[0] < LAG_SECONDS] + [
            (now, seconds)
        ]
        if now - self._lag_told_at < LAG_SECONDS:
            return
        content = {"seconds": round(max(lag for _, lag in self._lags), 3), "at": now}
        row = {
            "seconds": {"N": str(content["seconds"])},
            "told_at": {"N": str(now)},
            "body": {"S": text_of(content)},
        }
        larger = f"{ABSENT} OR seconds <= :mine OR told_at < :old"
        values = {":mine": row["seconds"], ":old": {"N": str(now - LAG_SECONDS)}}
        self._put(layout.TOLD, f"{LAG}.{direction}", row, larger, values)
        self._lags, self._lag_told_at = [], now

    def told(self, name: str) -> Any:
        """Return a figure as JSON; None if it was never written."""
        row = self._row(layout.TOLD, name)
        return None if row is None else body_of(row)

    def all_told(self) -> dict[str, Any]:
        """Return all figures by name."""
        return {row["sk"]["S"]: body_of(row) for row in self._rows(layout.TOLD)}


def _straggler(row: Mapping[str, Any]) -> Straggler:
    content = body_of(row)
    places = tuple(from_json(place) for place in content["places"])
    body, has_form = row["body"]["S"], content.get("has_form", True)
    return Straggler(
        content["side"],
        from_json(content["key"]),
        places,
        content["at"],
        content.get("settled"),
        body,
        has_form,
    )
