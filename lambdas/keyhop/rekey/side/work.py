"""The side table's rows of work: started batches, and claims."""

import json
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from keyhop.dynamodb.values import Key, from_json, to_json
from keyhop.rekey.control import Direction
from keyhop.rekey.side import layout
from keyhop.rekey.side.layout import Batch, Claim
from keyhop.rekey.side.rows import (
    ABSENT,
    PRESENT,
    Rows,
    body_of,
    conditional,
    key_text,
    row_key,
    row_name,
    text_of,
)

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
