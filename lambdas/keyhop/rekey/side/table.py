"""The side table (layout.py): strong reads, and conditional writes where processes may compete.

A row's content is JSON text in the attribute `body`, so that numbers and names are preserved. The
values that conditions use are separate attributes.
"""

import hashlib
import json
import time
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.requester import ItemCalls, Written
from keyhop.dynamodb.units import MOST_SORT_KEY_BYTES, write_units
from keyhop.dynamodb.values import Key, from_json, to_json
from keyhop.errors import CannotStart
from keyhop.rekey.control import Control, Direction, Side, direction_from
from keyhop.rekey.pair import Pair
from keyhop.rekey.side import layout
from keyhop.rekey.side.layout import LAG, TURNED, Batch, Claim, Straggler, Unmapped
from keyhop.rekey.transform import key_digest, key_text

ABSENT = "attribute_not_exists(pk)"
PRESENT = "attribute_exists(pk)"


@dataclass(frozen=True, slots=True)
class Refused:
    """The existing row that prevented a write; `unsure`: this write itself may have written it."""

    row: dict[str, Any]
    unsure: bool


class Rows(ItemCalls):
    """The rows of one side table, by partition and name; `now` returns the seconds since 1970."""

    def __init__(
        self, connection: Connection, name: str, *, now: Callable[[], float], **more: Any
    ) -> None:
        super().__init__(connection, name, slows=False, **more)
        self._now = now

    def _row(self, partition: str, name: str) -> Any:
        return self._read("get_item", Key=row_key(partition, name)).get("Item")

    def _rows(self, partition: str, most: int | None = None, after: str = "") -> Iterator[Any]:
        """Yield the first `most` rows of a partition by name, after the name `after`."""
        start: dict[str, Any] = {}
        if after:
            start = {"ExclusiveStartKey": row_key(partition, after)}
        remaining = most
        while remaining is None or remaining > 0:
            limit = {} if remaining is None else {"Limit": remaining}
            page = self._read(
                "query",
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": {"S": partition}},
                **limit,
                **start,
            )
            yield from page["Items"]
            remaining = None if remaining is None else remaining - len(page["Items"])
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def _put(
        self,
        partition: str,
        name: str,
        row: Mapping[str, Any],
        condition: str = "",
        values: Mapping[str, Any] | None = None,
    ) -> Refused | None:
        """Write a row if the condition holds; return None if it was written."""
        written = self._written(partition, name, row, condition, values)
        if written.refused is None:
            return None
        return Refused(dict(written.old or {}), written.unsure)

    def _written(
        self,
        partition: str,
        name: str,
        row: Mapping[str, Any],
        condition: str,
        values: Mapping[str, Any] | None,
    ) -> Written:
        item = {**row_key(partition, name), **row}
        size = sum(len(str(value)) for value in row.values())
        return self._write(
            "put_item",
            write_units(size),
            TableName=self._table,
            Item=item,
            **conditional(condition, values),
        )

    def _delete(
        self, partition: str, name: str, only: tuple[str, Mapping[str, Any]] | None = None
    ) -> bool:
        """Delete a row if the condition `only` holds, and return whether it is absent."""
        written = self._write(
            "delete_item",
            1.0,
            TableName=self._table,
            Key=row_key(partition, name),
            **conditional(*(only or ("", None))),
        )
        return written.refused is None or not written.old


def row_name(text: str) -> str:
    """Return a sort key for any text."""
    encoded = text.encode()
    # A longer name of a row is replaced by its SHA-256.
    return text if len(encoded) <= MOST_SORT_KEY_BYTES else hashlib.sha256(encoded).hexdigest()


def row_key(partition: str, name: str) -> dict[str, Any]:
    """Return the primary key of a row."""
    return {"pk": {"S": partition}, "sk": {"S": name}}


def conditional(condition: str, values: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the parameters of a write with a condition; none for an empty condition."""
    if not condition:
        return {}
    attributes: dict[str, Any] = {"ExpressionAttributeValues": values} if values else {}
    return {
        "ConditionExpression": condition,
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        **attributes,
    }


def text_of(content: Any) -> str:
    """Return content as JSON text, which `body_of` reads."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def body_of(row: Mapping[str, Any]) -> Any:
    """Return a row's content."""
    return json.loads(row["body"]["S"])


JOINT = "joint|"
"""The beginning of the names of rows that several claims share."""

MOST_JOINT = 50
"""The maximum number of claims in such a row: one transaction can make the writes of all of them.
With keys of the greatest length a row then has 300 KB of the 400 KB that an item may have."""


class Batches(Rows):
    """The records of batches, from before the read of the control item to after the last write."""

    def begin(self, direction: Direction, shard: str, sequence: str) -> int:
        """Record that a batch has started, and return how many times it had started before: after a
        lost answer one too many, so that the record is not removed too early.
        """
        partition, name = f"{layout.BEGUN}#{direction}", f"{shard}#{sequence}"
        tries = 0
        before: dict[str, Any] = {}
        condition, values = ABSENT, None
        while True:
            row = {**before, **self._batch_row(shard, sequence, tries + 1)}
            written = self._written(partition, name, row, condition, values)
            if written.refused is None:
                if not written.unsure or tries:
                    return tries
                # A write in flight may take effect after the end of this batch: count it.
                current: Mapping[str, Any] = row
            else:
                current = written.old or {}
            if not current:  # the record was removed in between
                condition, values = ABSENT, None
                continue
            before = {name: current[name] for name in ("suspect",) if name in current}
            tries = int(current["tries"]["N"])
            condition, values = "tries = :seen", {":seen": current["tries"]}

    def has_begun(self, direction: Direction, shard: str, sequence: str) -> bool:
        """Return whether a record of the batch exists, such as one of a batch that was killed."""
        return self._row(f"{layout.BEGUN}#{direction}", f"{shard}#{sequence}") is not None

    def suspect(
        self, direction: Direction, shard: str, sequence: str
    ) -> tuple[str, bool, list[str]]:
        """Return the suspect of a batch that has started before, if any: the key, as JSON text, at
        which it ended, whether its places had been computed by then, and the keys that it skips.
        """
        row = self._row(f"{layout.BEGUN}#{direction}", f"{shard}#{sequence}") or {}
        if "suspect" not in row:
            return "", False, []
        suspect = json.loads(row["suspect"]["S"])
        return suspect["key"], suspect["mapped"], suspect["skipped"]

    def suspect_now(
        self,
        direction: Direction,
        shard: str,
        sequence: str,
        key: str,
        mapped: bool,
        skipped: list[str],
    ) -> None:
        """Record the key that is processed next, unless the batch has ended."""
        suspect = {"key": key, "mapped": mapped, "skipped": skipped}
        self._write(
            "update_item",
            1.0,
            TableName=self._table,
            Key=row_key(f"{layout.BEGUN}#{direction}", f"{shard}#{sequence}"),
            UpdateExpression="SET suspect = :told",
            ExpressionAttributeValues={":told": {"S": text_of(suspect)}},
            ConditionExpression=PRESENT,
        )

    def end(self, direction: Direction, shard: str, sequence: str, tries: int = 0) -> None:
        """Remove the record of a batch that has started `tries` times (0: any number of times)."""
        only = None if not tries else ("tries = :seen", {":seen": {"N": str(tries)}})
        self._delete(f"{layout.BEGUN}#{direction}", f"{shard}#{sequence}", only)

    def open_batches(self, direction: Direction) -> list[Batch]:
        """Return the batches that may be in flight."""
        rows = self._rows(f"{layout.BEGUN}#{direction}")
        batches = (
            Batch(
                direction,
                content["shard"],
                content["sequence"],
                content["at"],
                int(row["tries"]["N"]),
            )
            for row in rows
            for content in (body_of(row),)
        )
        return [batch for batch in batches if self._now() - batch.at < layout.LONGEST_BATCH_SECONDS]

    def _batch_row(self, shard: str, sequence: str, tries: int) -> dict[str, Any]:
        content = {"shard": shard, "sequence": sequence, "at": self._now()}
        return {"tries": {"N": str(tries)}, "body": {"S": text_of(content)}}


class Claims(Rows):
    """The claims of each direction."""

    def claim(
        self,
        direction: Direction,
        place: Key,
        owner: Key,
        is_due: bool = False,
        refusal: str = "",
    ) -> Claim:
        """Record that a source item must be settled at a place of the table that is written, by any
        batch if it `is_due`, and otherwise after SWEEP_SECONDS. Repeating it is harmless.
        """
        claim = replace(self.new_claim(direction, place, owner), refusal=refusal)
        claim = replace(claim, at=0.0) if is_due else claim
        self._put(f"{layout.CLAIMS}#{direction}", _row_of(claim), _claim_row(claim))
        return claim

    def claim_together(self, direction: Direction, pairs: Sequence[tuple[Key, Key]]) -> list[Claim]:
        """Record that source items must be settled at places, MOST_JOINT pairs of both in each row.
        One row is written, checked and removed, so a repair costs little more than its writes.
        """
        claims: list[Claim] = []
        for first in range(0, len(pairs), MOST_JOINT):
            row, token = f"{JOINT}{uuid.uuid4().hex}", uuid.uuid4().hex
            joint = [
                replace(self.new_claim(direction, place, owner), joint=row, token=token)
                for owner, place in pairs[first : first + MOST_JOINT]
            ]
            self._put(f"{layout.CLAIMS}#{direction}", row, _joint_row(joint))
            claims += joint
        return claims

    def claims(
        self, direction: Direction, most: int | None = None, after: Claim | None = None
    ) -> list[Claim]:
        """Return all claims, or those of the first `most` rows, from the one behind `after` on."""
        name = "" if after is None else _row_of(after)
        rows = self._rows(f"{layout.CLAIMS}#{direction}", most, name)
        return [claim for row in rows for claim in _claims_in(direction, row)]

    def take_claim(self, claim: Claim) -> Claim | None:
        """Take a claim by a new token; return None if its token has changed."""
        new = self.new_claim(claim.direction, claim.place, claim.owner)
        new = replace(new, refusal=claim.refusal)
        row, values = _claim_row(new), {":seen": {"S": claim.token}}
        partition = f"{layout.CLAIMS}#{claim.direction}"
        refused = self._put(partition, _row_of(claim), row, "stamp = :seen", values)
        return new if refused is None or refused.row.get("stamp") == row["stamp"] else None

    def take_joint(self, claim: Claim) -> list[Claim]:
        """Give each claim of a shared row a separate row, and return these claims, taken; none if
        the row was removed before. Each claim has a row at each moment. The process that recorded
        the shared row, and may have been killed, writes nothing more once that row is removed.
        """
        row = self._row(f"{layout.CLAIMS}#{claim.direction}", claim.joint)
        shared = [] if row is None else _claims_in(claim.direction, row)
        claims = [self.claim(one.direction, one.place, one.owner) for one in shared]
        self.drop_claim(claim)
        return claims

    def note_refusal(self, claim: Claim, refusal: str) -> None:
        """Record why DynamoDB refused a claim's item, unless the claim was taken."""
        row, values = _claim_row(replace(claim, refusal=refusal)), {":seen": {"S": claim.token}}
        self._put(
            f"{layout.CLAIMS}#{claim.direction}", _row_of(claim), row, "stamp = :seen", values
        )

    def drop_claim(self, claim: Claim) -> bool:
        """Remove a claim's row if it has this token; return whether it is absent."""
        values = {":seen": {"S": claim.token}}
        partition = f"{layout.CLAIMS}#{claim.direction}"
        return self._delete(partition, _row_of(claim), ("stamp = :seen", values))

    def fence(self, claim: Claim) -> tuple[str, str]:
        """Return what `holds` needs to check a claim: its row, and its token."""
        return _row_of(claim), claim.token

    def holds(self, direction: Direction, fence: tuple[str, str]) -> dict[str, Any]:
        """Return the check of a transaction that the row of a claim has its token."""
        name, token = fence
        check = {
            "TableName": self._table,
            "Key": row_key(f"{layout.CLAIMS}#{direction}", name),
            **conditional("stamp = :seen", {":seen": {"S": token}}),
        }
        return {"ConditionCheck": check}

    def claiming(self, claim: Claim) -> dict[str, Any]:
        """Return the put of a transaction that records a claim of `new_claim`."""
        name = row_key(f"{layout.CLAIMS}#{claim.direction}", _row_of(claim))
        return {"Put": {"TableName": self._table, "Item": {**name, **_claim_row(claim)}}}

    def new_claim(self, direction: Direction, place: Key, owner: Key) -> Claim:
        """Return a claim with a new token, which is not recorded yet."""
        return Claim(direction, place, owner, self._now(), uuid.uuid4().hex)


def _row_of(claim: Claim) -> str:
    """Return the name of the row that holds a claim."""
    return claim.joint or row_name(f"{key_text(claim.place)}|{key_text(claim.owner)}")


def _claim_row(claim: Claim) -> dict[str, Any]:
    content = {"place": to_json(claim.place), "owner": to_json(claim.owner), "at": claim.at}
    content |= {"refusal": claim.refusal} if claim.refusal else {}
    return {"stamp": {"S": claim.token}, "body": {"S": text_of(content)}}


def _joint_row(claims: Sequence[Claim]) -> dict[str, Any]:
    """Return the row that several claims share; its keys are compressed, as they are much alike."""
    pairs = [[to_json(claim.place), to_json(claim.owner)] for claim in claims]
    content = text_of({"pairs": pairs, "at": claims[0].at})
    return {"stamp": {"S": claims[0].token}, "deflated": {"B": zlib.compress(content.encode())}}


def _claims_in(direction: Direction, row: Mapping[str, Any]) -> Iterator[Claim]:
    """Yield the claims that a row holds."""
    stamp = row["stamp"]["S"]
    if "deflated" not in row:
        content = body_of(row)
        place, owner = from_json(content["place"]), from_json(content["owner"])
        yield Claim(direction, place, owner, content["at"], stamp, content.get("refusal", ""))
        return
    content = json.loads(zlib.decompress(row["deflated"]["B"]))
    for place, owner in content["pairs"]:
        keys = from_json(place), from_json(owner)
        yield Claim(direction, *keys, content["at"], stamp, joint=row["sk"]["S"])


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
                f"The side table {self._table!r} has no control item: keyhop rekey create writes "
                "it, if there was no cutover yet."
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
