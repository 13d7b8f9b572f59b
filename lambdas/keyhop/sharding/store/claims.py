"""Claims of new items during a growth, in the shard-metadata table (key/protocol.py, Claims).

A claim is an item of its own, whose key has the growth and a hash of the item's key. So claims are
spread over the metadata table, and those of an earlier growth are never used again.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from keyhop.dynamodb.refusals import CONDITION_FAILED, error_code
from keyhop.dynamodb.schema import KeyAttribute
from keyhop.dynamodb.values import TypedValue, distinct_bytes
from keyhop.sharding.key.protocol import Claim
from keyhop.sharding.key.schema import ItemKey
from keyhop.sharding.store.requests import Overtaken, Requests

CLAIM_KEY = "!keyhop-claim "
"""The start of a claim's key; no logical key may start with it."""
KEPT_SECONDS = 7 * 86_400.0
"""The time until DynamoDB's time to live may delete a claim. No call takes so long."""

_NAMES = {"#shard": "claimed_shard", "#by": "claimed_by"}


def is_claim(key: TypedValue) -> bool:
    """Return whether a key of the metadata table is a claim's."""
    (content,) = key.values()
    text = CLAIM_KEY if isinstance(content, str) else CLAIM_KEY.encode()
    return bool(content[: len(text)] == text)


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims in one metadata table; for any number of threads."""

    requests: Requests
    table: str
    partition: KeyAttribute

    def write(self, key: ItemKey, growth: int, seen: Claim | None, claim: Claim) -> Claim:
        """Write an item's claim instead of the one that was seen, and return it; or return the
        present claim if it is another. Raise Overtaken if there is none.
        """
        item_key = {self.partition.name: self._key(key, growth)}
        condition: dict[str, Any] = {
            "ConditionExpression": "attribute_not_exists(#shard)",
            "ExpressionAttributeNames": {"#shard": _NAMES["#shard"]},
        }
        if seen is not None:
            condition = {
                "ConditionExpression": "#shard = :shard AND #by = :by",
                "ExpressionAttributeNames": _NAMES,
                "ExpressionAttributeValues": {
                    ":shard": {"N": str(seen.shard)},
                    ":by": {"S": seen.owner},
                },
            }
        expires = math.ceil(self.requests.clock.time() + KEPT_SECONDS)
        item = {
            **item_key,
            "claimed_shard": {"N": str(claim.shard)},
            "claimed_by": {"S": claim.owner},
            "keyhop_expires": {"N": str(expires)},
        }
        try:
            self.requests.once(
                "put_item",
                TableName=self.table,
                Item=item,
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                **condition,
            )
        except ClientError as error:
            if error_code(error) != CONDITION_FAILED:
                raise
            present = error.response.get("Item") or self._read(item_key)
            if present is None:
                raise Overtaken from error
            return Claim(int(present["claimed_shard"]["N"]), present["claimed_by"]["S"])
        return claim

    def _read(self, key: Mapping[str, TypedValue]) -> Mapping[str, Any] | None:
        answer = self.requests.once("get_item", TableName=self.table, Key=key, ConsistentRead=True)
        item: Mapping[str, Any] | None = answer.get("Item")
        return item

    def _key(self, key: ItemKey, growth: int) -> dict[str, str | bytes]:
        parts = distinct_bytes(key.logical) + distinct_bytes(key.sort)
        text = f"{CLAIM_KEY}{growth} {hashlib.sha256(parts).hexdigest()}"
        return {self.partition.type: text if self.partition.type == "S" else text.encode()}
