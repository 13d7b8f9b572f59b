"""What answers tell besides items, summed over the requests of one call. Pure."""

from collections.abc import Mapping
from functools import reduce
from typing import Any

from keyhop.sharding.store.requests import Call


def told(call: Call, answer: dict[str, Any]) -> dict[str, Any]:
    """An answer with ResponseMetadata, of the last request, and ConsumedCapacity, of all."""
    answer["ResponseMetadata"] = {**call.metadata, "RetryAttempts": len(call.repeated)}
    if call.consumed:
        answer["ConsumedCapacity"] = reduce(_sum, call.consumed)
    return answer


def _sum(one: Any, other: Any) -> Any:
    """Numbers are added, by their names; of texts the first stays."""
    if isinstance(one, Mapping):
        names = [*one, *(name for name in other if name not in one)]
        return {name: _sum(one.get(name), other.get(name)) for name in names}
    if one is None or other is None:
        return other if one is None else one
    return one if isinstance(one, str) else one + other
