"""The side table's rows of work: batches that have begun, and claims."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from keyhop.dynamodb.values import Key, from_json, to_json
from keyhop.rekey.control import Direction
from keyhop.rekey.side import layout as of
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


class Batches(Rows):
    """Of each a note stands from before it looks at the control item until after its last write."""

    def begin(self, direction: Direction, shard: str, sequence: str) -> int:
        """Note that a batch begins; how often it had begun before (so 0: it was not there).

        If an answer was lost this tells once too often: then it is not removed too early.
        """
        partition, name = f"{of.BEGUN}#{direction}", f"{shard}#{sequence}"
        tries = 0
        before: dict[str, Any] = {}
        condition, values = ABSENT, None
        while True:
            row = {**before, **self._batch_row(shard, sequence, tries + 1)}
            written = self._written(partition, name, row, condition, values)
            if written.refused is None:
                if not written.unsure or tries:
                    return tries
                # One that is under way may take effect when this batch has ended: it has begun.
                there: Mapping[str, Any] = row
            else:
                there = written.old or {}
            if not there:  # its end was noted meanwhile
                condition, values = ABSENT, None
                continue
            before = {name: there[name] for name in ("suspect",) if name in there}
            tries = int(there["tries"]["N"])
            condition, values = "tries = :seen", {":seen": there["tries"]}

    def has_begun(self, direction: Direction, shard: str, sequence: str) -> bool:
        """Whether its note is there, as of one that was killed."""
        return self._row(f"{of.BEGUN}#{direction}", f"{shard}#{sequence}") is not None

    def suspect(
        self, direction: Direction, shard: str, sequence: str
    ) -> tuple[str, bool, list[str]]:
        """Of a batch that has begun: the key that was worked when it ended last, as JSON text;
        whether its places were told by then; and those that it skips. Empty if nothing was noted.
        """
        row = self._row(f"{of.BEGUN}#{direction}", f"{shard}#{sequence}") or {}
        if "suspect" not in row:
            return "", False, []
        told = json.loads(row["suspect"]["S"])
        return told["key"], told["mapped"], told["skipped"]

    def suspect_now(
        self,
        direction: Direction,
        shard: str,
        sequence: str,
        key: str,
        mapped: bool,
        skipped: list[str],
    ) -> None:
        """Note the key that is worked next; in vain if the batch has ended meanwhile."""
        told = {"key": key, "mapped": mapped, "skipped": skipped}
        self._write(
            "update_item",
            1.0,
            TableName=self._table,
            Key=row_key(f"{of.BEGUN}#{direction}", f"{shard}#{sequence}"),
            UpdateExpression="SET suspect = :told",
            ExpressionAttributeValues={":told": {"S": text_of(told)}},
            ConditionExpression=PRESENT,
        )

    def end(self, direction: Direction, shard: str, sequence: str, tries: int = 0) -> None:
        """Remove the note of a batch that has begun `tries` times (0: whoever has begun it)."""
        only = None if not tries else ("tries = :seen", {":seen": {"N": str(tries)}})
        self._delete(f"{of.BEGUN}#{direction}", f"{shard}#{sequence}", only)

    def open_batches(self, direction: Direction) -> list[Batch]:
        """Those that may be under way."""
        rows = self._rows(f"{of.BEGUN}#{direction}")
        found = (
            Batch(direction, told["shard"], told["sequence"], told["at"], int(row["tries"]["N"]))
            for row in rows
            for told in (body_of(row),)
        )
        return [one for one in found if self._now() - one.at < of.LONGEST_BATCH_SECONDS]

    def _batch_row(self, shard: str, sequence: str, tries: int) -> dict[str, Any]:
        told = {"shard": shard, "sequence": sequence, "at": self._now()}
        return {"tries": {"N": str(tries)}, "body": {"S": text_of(told)}}


class Claims(Rows):
    """Of each direction."""

    def claim(self, direction: Direction, place: Key, owner: Key, is_due: bool = False) -> Claim:
        """Note that a source item must be settled at a place; repeating it is harmless.

        Args:
            is_due: Whether any batch settles it at once, and not only after SWEEP_SECONDS.
        """
        made = self.new_claim(direction, place, owner)
        made = replace(made, at=0.0) if is_due else made
        self._put(f"{of.CLAIMS}#{direction}", _claim_name(place, owner), _claim_row(made))
        return made

    def claims(
        self, direction: Direction, most: int | None = None, after: Claim | None = None
    ) -> list[Claim]:
        """All, or the first `most`; after: those that come after this one."""
        found = []
        name = "" if after is None else _claim_name(after.place, after.owner)
        for row in self._rows(f"{of.CLAIMS}#{direction}", most, name):
            told = body_of(row)
            place, owner = from_json(told["place"]), from_json(told["owner"])
            stamp, refusal = row["stamp"]["S"], told.get("refusal", "")
            found.append(Claim(direction, place, owner, told["at"], stamp, refusal))
        return found

    def take_claim(self, claim: Claim) -> Claim | None:
        """Put a token of one's own; None if it has been noted, taken or dropped meanwhile."""
        taken = self.new_claim(claim.direction, claim.place, claim.owner)
        taken = replace(taken, refusal=claim.refusal)
        name = _claim_name(claim.place, claim.owner)
        row, seen = _claim_row(taken), {":seen": {"S": claim.token}}
        refused = self._put(f"{of.CLAIMS}#{claim.direction}", name, row, "stamp = :seen", seen)
        if refused is None or refused.row.get("stamp") == row["stamp"]:
            return taken
        return None

    def note_refusal(self, claim: Claim, refusal: str) -> None:
        """Note why DynamoDB refused a claim's item, unless somebody else has taken the claim."""
        name = _claim_name(claim.place, claim.owner)
        row, seen = _claim_row(replace(claim, refusal=refusal)), {":seen": {"S": claim.token}}
        self._put(f"{of.CLAIMS}#{claim.direction}", name, row, "stamp = :seen", seen)

    def drop_claim(self, claim: Claim) -> bool:
        """Remove a claim if it has this token; whether it is gone."""
        seen = {":seen": {"S": claim.token}}
        name = _claim_name(claim.place, claim.owner)
        return self._delete(f"{of.CLAIMS}#{claim.direction}", name, ("stamp = :seen", seen))

    def holds(self, direction: Direction, place: Key, owner: Key, token: str) -> dict[str, Any]:
        """Of a transaction: on condition that the claim has this token."""
        check = {
            "TableName": self._table,
            "Key": row_key(f"{of.CLAIMS}#{direction}", _claim_name(place, owner)),
            **conditional("stamp = :seen", {":seen": {"S": token}}),
        }
        return {"ConditionCheck": check}

    def claiming(self, claim: Claim) -> dict[str, Any]:
        """Of a transaction: note a claim, one of `new_claim`."""
        name = row_key(f"{of.CLAIMS}#{claim.direction}", _claim_name(claim.place, claim.owner))
        return {"Put": {"TableName": self._table, "Item": {**name, **_claim_row(claim)}}}

    def new_claim(self, direction: Direction, place: Key, owner: Key) -> Claim:
        """With a token of its own; noted nowhere yet."""
        return Claim(direction, place, owner, self._now(), uuid.uuid4().hex)


def _claim_name(place: Key, owner: Key) -> str:
    return row_name(f"{key_text(place)}|{key_text(owner)}")


def _claim_row(claim: Claim) -> dict[str, Any]:
    told = {"place": to_json(claim.place), "owner": to_json(claim.owner), "at": claim.at}
    told |= {"refusal": claim.refusal} if claim.refusal else {}
    return {"stamp": {"S": claim.token}, "body": {"S": text_of(told)}}
