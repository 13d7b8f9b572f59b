"""The observations of all processes for a throttled key, added up in its metadata.

If many processes have one writer each, none can measure the demand alone. Only a writer that is
throttled, and needs the demand to add shards, adds its observations, at most once a second, and
receives the sum. The sum starts again after each change of the metadata, and after POOL_SECONDS.
"""

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.refusals import CONDITION_FAILED, error_code
from keyhop.dynamodb.values import TypedValue
from keyhop.sharding.key.demand import Sums
from keyhop.sharding.store.requests import Requests

POOL_SECONDS = 10.0
"""By the writers' clocks; writers whose clocks differ more start a new sum, and measure alone."""
_WORDS = [field.name for field in fields(Sums)]
_IS_OURS = "#last_updated = :version AND #pressure.#version = :version AND #pressure.#since"


@dataclass(frozen=True, slots=True)
class Pressure:
    """Sums for the keys of one table. table, partition: the metadata table, and its key's name."""

    requests: Requests
    table: str
    partition: str

    def add(self, logical: TypedValue, version: str, observed: Sums) -> Sums | None:
        """Add observations under this version of the metadata; return the sum, or None if unknown.
        An error here never makes a write fail.
        """
        now = self.requests.clock.time()
        numbers = {
            f":{word}": _number(number)
            for word, number in zip(_WORDS, astuple(observed), strict=True)
        }
        names = {f"#{word}": word for word in ("last_updated", "pressure", "version", "since")}
        ours: dict[str, Any] = {
            "UpdateExpression": "ADD " + ", ".join(f"#pressure.#{word} :{word}" for word in _WORDS),
            "ConditionExpression": f"{_IS_OURS} BETWEEN :oldest AND :newest",
            "ExpressionAttributeNames": {**names, **{f"#{word}": word for word in _WORDS}},
            "ExpressionAttributeValues": {
                **numbers,
                ":version": {"N": version},
                ":oldest": _number(now - POOL_SECONDS),
                ":newest": _number(now + POOL_SECONDS),
            },
        }
        first = {word: numbers[f":{word}"] for word in _WORDS}
        anew: dict[str, Any] = {
            "UpdateExpression": "SET #pressure = :first",
            "ConditionExpression": "#last_updated = :version AND "
            "NOT (#pressure.#version = :version AND #pressure.#since BETWEEN :oldest AND :newest)",
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": {
                **{name: ours["ExpressionAttributeValues"][name] for name in _ENDS},
                ":first": {"M": {**first, "version": {"N": version}, "since": _number(now)}},
            },
        }
        try:
            for update in (ours, anew, ours):  # other processes may start it at the same time
                try:
                    return _sums(self._updated(logical, update))
                except ClientError as error:
                    if error_code(error) != CONDITION_FAILED:
                        raise
        except (ClientError, BotoCoreError):
            pass
        return None

    def _updated(self, logical: TypedValue, update: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = self.requests.once(
            "update_item",
            TableName=self.table,
            Key={self.partition: logical},
            ReturnValues="ALL_NEW",
            **update,
        )
        item: Mapping[str, Any] = answer["Attributes"]
        return item


_ENDS = (":version", ":oldest", ":newest")


def _number(number: float) -> dict[str, str]:
    return {"N": f"{number:.3f}"}


def _sums(item: Mapping[str, Any]) -> Sums:
    pool = item["pressure"]["M"]
    return Sums(*(float(pool[word]["N"]) for word in _WORDS))
