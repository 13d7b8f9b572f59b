"""Metadata of answers, summed over the requests of one call. Pure."""

from collections.abc import Mapping
from functools import reduce
from typing import Any

from keyhop.sharding.store.requests import Call


def with_metadata(call: Call, answer: dict[str, Any]) -> dict[str, Any]:
    """Add ResponseMetadata of the last request, and ConsumedCapacity of all, to an answer."""
    answer["ResponseMetadata"] = {**call.metadata, "RetryAttempts": len(call.repeated)}
    if call.consumed:
        answer["ConsumedCapacity"] = reduce(_sum, call.consumed)
    return answer


def _sum(first: Any, second: Any) -> Any:
    """Add numbers by their names; keep the first of two texts."""
    if isinstance(first, Mapping):
        names = [*first, *(name for name in second if name not in first)]
        return {name: _sum(first.get(name), second.get(name)) for name in names}
    if first is None or second is None:
        return second if first is None else first
    return first if isinstance(first, str) else first + second
