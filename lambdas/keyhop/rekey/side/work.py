"""The side table's rows of work: batches that have begun, and claims."""

import json
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
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

JOINT = "joint|"
"""How the names of rows begin that several claims share."""

MOST_JOINT = 50
"""The maximum number of claims in such a row: one transaction can make the writes of all of them.
With keys of the greatest length a row then has 300 KB of the 400 KB that an item may have."""


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

    def claim(
        self,
        direction: Direction,
        place: Key,
        owner: Key,
        is_due: bool = False,
        refusal: str = "",
    ) -> Claim:
        """Note that a source item must be settled at a place; repeating it is harmless.

        Args:
            is_due: Whether any batch settles it at once, and not only after SWEEP_SECONDS.
            refusal: See Claim.
        """
        made = replace(self.new_claim(direction, place, owner), refusal=refusal)
        made = replace(made, at=0.0) if is_due else made
        self._put(f"{of.CLAIMS}#{direction}", _row_of(made), _claim_row(made))
        return made

    def claim_together(self, direction: Direction, pairs: Sequence[tuple[Key, Key]]) -> list[Claim]:
        """Note that source items must be settled at places, MOST_JOINT of them in each row.

        One row is written, checked and removed instead of many, so a repair of many places costs
        little more than its writes.

        Args:
            pairs: A source key and a place each.
        """
        claims: list[Claim] = []
        for first in range(0, len(pairs), MOST_JOINT):
            row, token = f"{JOINT}{uuid.uuid4().hex}", uuid.uuid4().hex
            joint = [
                replace(self.new_claim(direction, place, owner), joint=row, token=token)
                for owner, place in pairs[first : first + MOST_JOINT]
            ]
            self._put(f"{of.CLAIMS}#{direction}", row, _joint_row(joint))
            claims += joint
        return claims

    def claims(
        self, direction: Direction, most: int | None = None, after: Claim | None = None
    ) -> list[Claim]:
        """Return all claims, or those of the first `most` rows.

        Args:
            after: The last claim that is left out at the beginning.
        """
        name = "" if after is None else _row_of(after)
        rows = self._rows(f"{of.CLAIMS}#{direction}", most, name)
        return [claim for row in rows for claim in _claims_in(direction, row)]

    def take_claim(self, claim: Claim) -> Claim | None:
        """Put a token of one's own; None if it has been noted, taken or dropped meanwhile."""
        taken = self.new_claim(claim.direction, claim.place, claim.owner)
        taken = replace(taken, refusal=claim.refusal)
        row, seen = _claim_row(taken), {":seen": {"S": claim.token}}
        partition = f"{of.CLAIMS}#{claim.direction}"
        refused = self._put(partition, _row_of(claim), row, "stamp = :seen", seen)
        if refused is None or refused.row.get("stamp") == row["stamp"]:
            return taken
        return None

    def take_joint(self, claim: Claim) -> list[Claim]:
        """Give each claim of a shared row a row of its own, and return these claims, taken.

        Each claim has a row at each moment. Whoever noted the shared row, and may have been killed,
        writes nothing any more once that row is dropped.

        Args:
            claim: One of the claims.

        Returns:
            No claims if the row has been dropped meanwhile.
        """
        row = self._row(f"{of.CLAIMS}#{claim.direction}", claim.joint)
        shared = [] if row is None else _claims_in(claim.direction, row)
        taken = [self.claim(one.direction, one.place, one.owner) for one in shared]
        self.drop_claim(claim)
        return taken

    def note_refusal(self, claim: Claim, refusal: str) -> None:
        """Note why DynamoDB refused a claim's item, unless somebody else has taken the claim."""
        row, seen = _claim_row(replace(claim, refusal=refusal)), {":seen": {"S": claim.token}}
        self._put(f"{of.CLAIMS}#{claim.direction}", _row_of(claim), row, "stamp = :seen", seen)

    def drop_claim(self, claim: Claim) -> bool:
        """Remove a claim's row if it has this token; whether it is gone."""
        seen = {":seen": {"S": claim.token}}
        partition = f"{of.CLAIMS}#{claim.direction}"
        return self._delete(partition, _row_of(claim), ("stamp = :seen", seen))

    def fence(self, claim: Claim) -> tuple[str, str]:
        """Return what `holds` needs to check a claim: its row, and its token."""
        return _row_of(claim), claim.token

    def holds(self, direction: Direction, fence: tuple[str, str]) -> dict[str, Any]:
        """Of a transaction: on condition that the row of a claim has its token."""
        name, token = fence
        check = {
            "TableName": self._table,
            "Key": row_key(f"{of.CLAIMS}#{direction}", name),
            **conditional("stamp = :seen", {":seen": {"S": token}}),
        }
        return {"ConditionCheck": check}

    def claiming(self, claim: Claim) -> dict[str, Any]:
        """Of a transaction: note a claim, one of `new_claim`."""
        name = row_key(f"{of.CLAIMS}#{claim.direction}", _row_of(claim))
        return {"Put": {"TableName": self._table, "Item": {**name, **_claim_row(claim)}}}

    def new_claim(self, direction: Direction, place: Key, owner: Key) -> Claim:
        """With a token of its own; noted nowhere yet."""
        return Claim(direction, place, owner, self._now(), uuid.uuid4().hex)


def _row_of(claim: Claim) -> str:
    """Return the name of the row that holds a claim."""
    return claim.joint or row_name(f"{key_text(claim.place)}|{key_text(claim.owner)}")


def _claim_row(claim: Claim) -> dict[str, Any]:
    told = {"place": to_json(claim.place), "owner": to_json(claim.owner), "at": claim.at}
    told |= {"refusal": claim.refusal} if claim.refusal else {}
    return {"stamp": {"S": claim.token}, "body": {"S": text_of(told)}}


def _joint_row(claims: Sequence[Claim]) -> dict[str, Any]:
    """Return the row of claims that share one; its keys are deflated, as they are much alike."""
    pairs = [[to_json(one.place), to_json(one.owner)] for one in claims]
    told = text_of({"pairs": pairs, "at": claims[0].at})
    return {"stamp": {"S": claims[0].token}, "deflated": {"B": zlib.compress(told.encode())}}


def _claims_in(direction: Direction, row: Mapping[str, Any]) -> Iterator[Claim]:
    """Yield the claims that a row holds."""
    stamp = row["stamp"]["S"]
    if "deflated" not in row:
        told = body_of(row)
        place, owner = from_json(told["place"]), from_json(told["owner"])
        yield Claim(direction, place, owner, told["at"], stamp, told.get("refusal", ""))
        return
    told = json.loads(zlib.decompress(row["deflated"]["B"]))
    for place, owner in told["pairs"]:
        keys = from_json(place), from_json(owner)
        yield Claim(direction, *keys, told["at"], stamp, joint=row["sk"]["S"])
