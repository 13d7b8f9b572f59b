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
from dataclasses import replace
from itertools import islice
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.own_table import OwnTable, When, expressions
from keyhop.dynamodb.requester import Written
from keyhop.dynamodb.units import MOST_SORT_KEY_BYTES
from keyhop.dynamodb.values import Key, from_json, to_json
from keyhop.errors import CannotStart
from keyhop.rekey.control import Control, Direction, Side, direction_from
from keyhop.rekey.pair import Pair
from keyhop.rekey.side import layout
from keyhop.rekey.side.layout import LAG, TURNED, Claim, Straggler, Unmapped
from keyhop.rekey.transform import key_digest, key_text

JOINT = "joint|"
"""The beginning of the names of rows that several claims share."""

MOST_JOINT = 50
"""The maximum number of claims in such a row: one transaction can make the writes of all of them.
With keys of the greatest length a row then has 300 KB of the 400 KB that an item may have."""

LAG_SECONDS = 10.0

MOST_CLAIMS_AT_ONCE = 99
"""A transaction has 100 items, one of which checks the control item."""

VERSION = 1
"""The version of the layout of a side table, which the item `plan` holds."""

MOST_PLAN_BYTES = 390 * 1024
"""The maximum size of the item `plan`, compressed; an item may have 400 KB."""

ABSENT: When = {layout.KEYS[0]: None}
"""The condition that the row does not exist yet."""


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


class SideTable(OwnTable):
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
        super().__init__(connection, name, slows=False, **more)
        self._now = now
        self._lags: list[tuple[float, float]] = []
        self._lag_told_at = -LAG_SECONDS

    def _rows(self, partition: str, maximum: int | None = None, after: str = "") -> Iterator[Any]:
        """Yield the first `maximum` rows of a partition by name, after the name `after`."""
        start = _key(partition, after) if after else None
        return self.query({"pk": {"S": partition}}, maximum, start)

    def _put(self, partition: str, name: str, row: Key, when: When | None = None) -> Written:
        return self.put_if({**_key(partition, name), **row}, when or {})

    # --- control and plan ---

    def control(self, default: Control | None = None) -> Control:
        """Return the control item, or raise CannotStart if it is missing or damaged. If `create`
        has not written it yet, return the default, if there is one.
        """
        row = self.get(_key(layout.CONTROL, layout.CONTROL))
        if row is None:
            if default is not None and self.told(TURNED) is None:
                return default
            raise CannotStart(
                f"The side table {self._table!r} has no control item: create writes it, if "
                "there was no cutover yet."
            )
        try:
            return Control.from_json(_content(row))
        except (KeyError, ValueError) as error:
            raise CannotStart(
                f"The control item of the side table {self._table!r} was not written by Keyhop: "
                "restore its earlier content (docs/reference/rekey.md)."
            ) from error

    def swap(self, old: Control | None, new: Control) -> bool:
        """Write `new` if the control item still has the revision of `old` (None: if none exists),
        and return whether it was written, also if the answer was lost.
        """
        body = _body(new.to_json())
        row = {"revision": {"N": str(new.revision)}, **body}
        when = ABSENT if old is None else _is_at(old.revision)
        written = self._put(layout.CONTROL, layout.CONTROL, row, when)
        is_written = written.refused is None or (
            written.unsure and (written.old or {}).get("body") == body["body"]
        )
        if is_written and new.stage == "turned":
            # If this process is killed before this line, complete counts from its first try.
            self.tell(TURNED, {"at": self._now(), "serving": new.serving})
        return is_written

    def plan(self) -> Pair:
        """Return the plan. Raise CannotStart if it is missing, or of another layout."""
        row = self.get(_key(layout.PLAN, layout.PLAN))
        if row is None:
            raise CannotStart(
                f"The side table {self._table!r} has no plan yet: if create was interrupted, run "
                "it again with the same arguments, and it continues."
            )
        if row.get("version") != {"N": str(VERSION)}:
            found_version = row.get("version", {}).get("N", "0")
            raise CannotStart(
                f"The side table {self._table!r} has version {found_version} of its layout, and "
                f"this Keyhop reads version {VERSION}. End the re-key with that version, and "
                "begin it again with this version."
            )
        try:
            return Pair.from_json(json.loads(zlib.decompress(row["deflated"]["B"])))
        except (KeyError, TypeError, ValueError, zlib.error) as error:
            raise CannotStart(
                f"The plan of the side table {self._table!r} was not written by Keyhop: restore "
                f"the earlier content of the row {layout.PLAN}."
            ) from error

    def plan_digest(self) -> str:
        """Return the digest of the current plan; empty if there is none."""
        row = self.get(_key(layout.PLAN, layout.PLAN))
        return "" if row is None else str(row["digest"]["S"])

    def has_plan(self) -> bool:
        """Return whether there is a plan."""
        return self.get(_key(layout.PLAN, layout.PLAN)) is not None

    def put_plan(self, pair: Pair) -> bool:
        """Write the plan, once, and return whether this plan is the current one. Raise CannotStart
        if it is too large for an item.
        """
        deflated = zlib.compress(_text(pair.to_json()).encode(), 9)
        if len(deflated) > MOST_PLAN_BYTES:
            raise CannotStart(
                f"The template and its functions have {len(deflated):,} bytes, deflated; "
                f"{MOST_PLAN_BYTES:,} is the maximum that fits into an item."
            )
        version = {"N": str(VERSION)}
        row: Key = {"version": version, "digest": {"S": pair.digest}, "deflated": {"B": deflated}}
        written = self._put(layout.PLAN, layout.PLAN, row, ABSENT)
        return written.refused is None or (written.old or {}).get("digest") == row["digest"]

    # --- started batches: from before the read of the control item to after the last write ---

    def begin(self, direction: Direction, shard: str, sequence: str) -> int:
        """Record that a batch has started, and return how many times it had started before: after a
        lost answer one too many, so that the record is not removed too early.
        """
        tries = 0
        suspect: Key = {}
        when: When = ABSENT
        while True:
            body = _body({"shard": shard, "sequence": sequence, "at": self._now()})
            row = {**suspect, "tries": {"N": str(tries + 1)}, **body}
            written = self.put_if({**_batch_key(direction, shard, sequence), **row}, when)
            if written.refused is None:
                if not written.unsure or tries:
                    return tries
                # A write in flight may take effect after the end of this batch: count it.
                current: Key = row
            else:
                current = written.old or {}
            if not current:  # the record was removed in between
                when = ABSENT
                continue
            suspect = {name: current[name] for name in ("suspect",) if name in current}
            tries = int(current["tries"]["N"])
            when = {"tries": current["tries"]}

    def has_begun(self, direction: Direction, shard: str, sequence: str) -> bool:
        """Return whether a record of the batch exists, such as one of a batch that was killed."""
        return self.get(_batch_key(direction, shard, sequence)) is not None

    def suspect(
        self, direction: Direction, shard: str, sequence: str
    ) -> tuple[str, bool, list[str]]:
        """Return the suspect of a batch that has started before, if any: the key, as JSON text, at
        which it ended, whether its places had been computed by then, and the keys that it skips.
        """
        row = self.get(_batch_key(direction, shard, sequence)) or {}
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
        suspect = _text({"key": key, "mapped": mapped, "skipped": skipped})
        row = _batch_key(direction, shard, sequence)
        self.update_if(row, {"suspect": {"S": suspect}}, row)

    def end(self, direction: Direction, shard: str, sequence: str, tries: int = 0) -> None:
        """Remove the record of a batch that has started `tries` times (0: any number of times)."""
        when: When = {"tries": {"N": str(tries)}} if tries else {}
        self.delete_if(_batch_key(direction, shard, sequence), when)

    def open_batches(self, direction: Direction) -> list[float]:
        """Return when each batch that may be in flight has last started, in seconds since 1970."""
        starts = [_content(row)["at"] for row in self._rows(f"{layout.BEGUN}#{direction}")]
        return [at for at in starts if self._now() - at < layout.LONGEST_BATCH_SECONDS]

    # --- claims ---

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
        self.put_if(_claim_item(claim), {})
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
            self.put_if({**_claim_key(joint[0]), **_joint_row(joint)}, {})
            claims += joint
        return claims

    def claims(
        self, direction: Direction, maximum: int | None = None, after: Claim | None = None
    ) -> list[Claim]:
        """Return all claims, or those of the first `maximum` rows, from that behind `after` on."""
        name = "" if after is None else _claim_key(after)["sk"]["S"]
        rows = self._rows(f"{layout.CLAIMS}#{direction}", maximum, name)
        return [claim for row in rows for claim in _claims_in(direction, row)]

    def take_claim(self, claim: Claim) -> Claim | None:
        """Take a claim by a new token; return None if its token has changed."""
        new = self.new_claim(claim.direction, claim.place, claim.owner)
        new = replace(new, refusal=claim.refusal)
        written = self.put_if(_claim_item(new), _held(claim.token))
        is_taken = written.refused is None or (written.old or {}).get("stamp") == {"S": new.token}
        return new if is_taken else None

    def take_joint(self, claim: Claim) -> list[Claim]:
        """Give each claim of a shared row a separate row, and return these claims, taken; none if
        the row was removed before. Each claim has a row at each moment. The process that recorded
        the shared row, and may have been killed, writes nothing more once that row is removed.
        """
        row = self.get(_claim_key(claim))
        shared = [] if row is None else _claims_in(claim.direction, row)
        claims = [self.claim(each.direction, each.place, each.owner) for each in shared]
        self.drop_claim(claim)
        return claims

    def note_refusal(self, claim: Claim, refusal: str) -> None:
        """Record why DynamoDB refused a claim's item, unless the claim was taken."""
        self.put_if(_claim_item(replace(claim, refusal=refusal)), _held(claim.token))

    def drop_claim(self, claim: Claim) -> bool:
        """Remove a claim's row if it has this token; return whether it is absent."""
        written = self.delete_if(_claim_key(claim), _held(claim.token))
        return written.refused is None or not written.old

    def fence(self, claim: Claim) -> tuple[str, str]:
        """Return what `holds` needs to check a claim: its row, and its token."""
        return _claim_key(claim)["sk"]["S"], claim.token

    def holds(self, direction: Direction, fence: tuple[str, str]) -> dict[str, Any]:
        """Return the check of a transaction that the row of a claim has its token."""
        name, token = fence
        return self._condition_check(_key(f"{layout.CLAIMS}#{direction}", name), _held(token))

    def _condition_check(self, key: Key, when: When) -> dict[str, Any]:
        return {"ConditionCheck": {"TableName": self._table, "Key": key, **expressions(when)}}

    def claiming(self, claim: Claim) -> dict[str, Any]:
        """Return the put of a transaction that records a claim of `new_claim`."""
        return {"Put": {"TableName": self._table, "Item": _claim_item(claim)}}

    def new_claim(self, direction: Direction, place: Key, owner: Key) -> Claim:
        """Return a claim with a new token, which is not recorded yet."""
        return Claim(direction, place, owner, self._now(), uuid.uuid4().hex)

    # --- items without a place ---

    def unmapped(self, direction: Direction, key: Key, reason: str) -> None:
        """Record that an item cannot be mapped to the other table."""
        row = _unmapped_row(key, reason, self._now())
        self._put(f"{layout.UNMAPPED}#{direction}", key_digest(key).hex(), row)

    def mapped(self, direction: Direction, key: Key, record: Unmapped | None = None) -> None:
        """Remove the record of an unmappable item that can be mapped now, or was deleted; if
        `record` is given, only if the item was not recorded again since that was read.
        """
        when = {} if record is None else _unmapped_row(key, record.reason, record.at)
        self.delete_if(_key(f"{layout.UNMAPPED}#{direction}", key_digest(key).hex()), when)

    def all_unmapped(self, direction: Direction, maximum: int | None = None) -> list[Unmapped]:
        """Return the items that are recorded as unmappable, by workers, copies and comparisons."""
        rows = self._rows(f"{layout.UNMAPPED}#{direction}", maximum)
        contents = [(row["sk"]["S"], _content(row)) for row in rows]
        return [
            Unmapped(name, **{**content, "key": from_json(content["key"])})
            for name, content in contents
        ]

    # --- markers, clients, stragglers, figures ---

    def put_marker(self, marker: str, details: Mapping[str, Any]) -> None:
        """Record a marker before it is written."""
        self._put(layout.MARKER, marker, _body(details))

    def see_marker(self, marker: str, details: Mapping[str, Any]) -> None:
        """Record that the batch with a marker has ended, if the marker still exists."""
        row = _key(layout.MARKER, marker)
        self.update_if(row, {"seen": {"S": _text(details)}}, row)

    def markers(self) -> dict[str, dict[str, Any]]:
        """Return the details of each marker, with `seen` if its batch has ended."""
        markers = {}
        for row in self._rows(layout.MARKER):
            addition = {"seen": json.loads(row["seen"]["S"])} if "seen" in row else {}
            markers[row["sk"]["S"]] = {**_content(row), **addition}
        return markers

    def drop_marker(self, marker: str) -> None:
        self.delete_if(_key(layout.MARKER, marker), {})

    def report_client(self, client: str, report: Mapping[str, Any]) -> None:
        """Record the revision that a router uses, and until when."""
        self._put(layout.CLIENT, client, _body(report))

    def clients(self) -> dict[str, dict[str, Any]]:
        """Return the last report of each router."""
        return {row["sk"]["S"]: _content(row) for row in self._rows(layout.CLIENT)}

    def straggler(self, side: Side, key: Key, places: Sequence[Key], has_form: bool = True) -> None:
        """Record a write to `side` that bypassed the routers. The places of its images in the other
        table are added to those of earlier unsettled writes to the same item.
        """
        when: When = ABSENT
        earlier_places: tuple[Key, ...] = ()
        while True:
            both = {key_text(place): to_json(place) for place in (*earlier_places, *places)}
            content = {"side": side, "key": to_json(key), "at": self._now()}
            content |= {} if has_form else {"has_form": False}
            row = _body({**content, "places": list(both.values())})
            written = self.put_if({**_straggler_key(side, key), **row}, when)
            current = written.old or {}
            if written.refused is None or current.get("body") == row["body"]:
                return
            if not current:
                when = ABSENT
                continue
            before = _straggler(current)
            earlier_places = () if before.settled is not None else before.places
            when = {"body": current["body"]}

    def stragglers(self, maximum: int | None = None) -> list[Straggler]:
        """Return all stragglers, including settled ones, or the first `maximum` of them."""
        return [_straggler(row) for row in self._rows(layout.STRAGGLER, maximum)]

    def unsettled(self, maximum: int | None = None) -> list[Straggler]:
        """Return the stragglers that remain to be settled, or the first `maximum` of them."""
        stragglers = map(_straggler, self._rows(layout.STRAGGLER))
        return list(islice((each for each in stragglers if each.settled is None), maximum))

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
        still = self._condition_check(
            _key(layout.CONTROL, layout.CONTROL), _is_at(control.revision)
        )
        for at in range(0, len(claims), MOST_CLAIMS_AT_ONCE):
            actions = [still, *claims[at : at + MOST_CLAIMS_AT_ONCE]]
            units = 2.0 * len(actions)
            written = self._write("transact_write_items", units, units, TransactItems=actions)
            if written.refused is not None:
                return False
        self.resolve(straggler)
        return True

    def resolve(self, straggler: Straggler) -> None:
        """Record that a straggler is settled, unless it was recorded again in between."""
        row = _body({**json.loads(straggler.body), "settled": self._now()})
        key = _straggler_key(straggler.side, straggler.key)
        self.put_if({**key, **row}, {"body": {"S": straggler.body}})

    def tell(self, name: str, content: Any) -> None:
        """Write a figure, replacing its previous value."""
        self._put(layout.TOLD, name, _body(content))

    def tell_lag(self, direction: Direction, seconds: float) -> None:
        """Report the age of a batch's newest record, as `lag.forward` or `lag.reverse`.

        The figure {"seconds", "at"} is the largest of some seconds and of all shards of the stream.
        A process writes it at most once in LAG_SECONDS.
        """
        now = self._now()
        lags = [entry for entry in self._lags if now - entry[0] < LAG_SECONDS]
        self._lags = [*lags, (now, seconds)]
        if now - self._lag_told_at < LAG_SECONDS:
            return
        content = {"seconds": round(max(lag for _, lag in self._lags), 3), "at": now}
        figures = {"seconds": {"N": str(content["seconds"])}, "told_at": {"N": str(now)}}
        key = _key(layout.TOLD, f"{LAG}.{direction}")
        self._write(
            "put_item",
            1.0,
            TableName=self._table,
            Item={**key, **figures, **_body(content)},
            ConditionExpression="attribute_not_exists(pk) OR seconds <= :mine OR told_at < :old",
            ExpressionAttributeValues={
                ":mine": figures["seconds"],
                ":old": {"N": str(now - LAG_SECONDS)},
            },
        )
        self._lags, self._lag_told_at = [], now

    def told(self, name: str) -> Any:
        """Return a figure as JSON; None if it was never written."""
        row = self.get(_key(layout.TOLD, name))
        return None if row is None else _content(row)

    def all_told(self) -> dict[str, Any]:
        """Return all figures by name. Raise CannotStart for one that Keyhop has not written."""
        return {row["sk"]["S"]: self._checked_figure(row) for row in self._rows(layout.TOLD)}

    def _checked_figure(self, row: Mapping[str, Any]) -> Any:
        name = row["sk"]["S"]
        try:
            content = _content(row)
            for field in () if content is None else layout.FIELDS.get(name, ()):
                content[field]
        except (KeyError, TypeError, ValueError) as error:
            raise CannotStart(
                f"The row {layout.TOLD}, {name} of the side table {self._table!r} was not written "
                "by Keyhop: restore its earlier content."
            ) from error
        return content


def _key(partition: str, name: str) -> Key:
    """Return the primary key of a row."""
    return {"pk": {"S": partition}, "sk": {"S": name}}


def _batch_key(direction: Direction, shard: str, sequence: str) -> Key:
    return _key(f"{layout.BEGUN}#{direction}", f"{shard}#{sequence}")


def _straggler_key(side: Side, key: Key) -> Key:
    return _key(layout.STRAGGLER, _short(f"{side}|{key_text(key)}"))


def _claim_key(claim: Claim) -> Key:
    """Return the primary key of the row that holds a claim."""
    name = claim.joint or _short(f"{key_text(claim.place)}|{key_text(claim.owner)}")
    return _key(f"{layout.CLAIMS}#{claim.direction}", name)


def _short(name: str) -> str:
    """Return a sort key for any text: its SHA-256, if it is too long for one."""
    encoded = name.encode()
    return name if len(encoded) <= MOST_SORT_KEY_BYTES else hashlib.sha256(encoded).hexdigest()


def _held(token: str) -> When:
    """Return the condition that a claim has this token."""
    return {"stamp": {"S": token}}


def _is_at(revision: int) -> When:
    """Return the condition that the control item has this revision."""
    return {"revision": {"N": str(revision)}}


def _text(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _body(content: Any) -> Key:
    """Return content as the attribute `body` of a row, which `_content` reads."""
    return {"body": {"S": _text(content)}}


def _content(row: Mapping[str, Any]) -> Any:
    return json.loads(row["body"]["S"])


def _unmapped_row(key: Key, reason: str, at: float) -> Key:
    return _body({"reason": reason, "at": at, "key": to_json(key)})


def _claim_item(claim: Claim) -> Key:
    content = {"place": to_json(claim.place), "owner": to_json(claim.owner), "at": claim.at}
    content |= {"refusal": claim.refusal} if claim.refusal else {}
    return {**_claim_key(claim), "stamp": {"S": claim.token}, **_body(content)}


def _joint_row(claims: Sequence[Claim]) -> dict[str, Any]:
    """Return the row that several claims share; its keys are compressed, as they are much alike."""
    pairs = [[to_json(claim.place), to_json(claim.owner)] for claim in claims]
    content = _text({"pairs": pairs, "at": claims[0].at})
    return {"stamp": {"S": claims[0].token}, "deflated": {"B": zlib.compress(content.encode())}}


def _claims_in(direction: Direction, row: Mapping[str, Any]) -> Iterator[Claim]:
    """Yield the claims that a row holds."""
    stamp = row["stamp"]["S"]
    if "deflated" not in row:
        content = _content(row)
        place, owner = from_json(content["place"]), from_json(content["owner"])
        yield Claim(direction, place, owner, content["at"], stamp, content.get("refusal", ""))
        return
    content = json.loads(zlib.decompress(row["deflated"]["B"]))
    for place, owner in content["pairs"]:
        keys = from_json(place), from_json(owner)
        yield Claim(direction, *keys, content["at"], stamp, joint=row["sk"]["S"])


def _straggler(row: Mapping[str, Any]) -> Straggler:
    content = _content(row)
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
