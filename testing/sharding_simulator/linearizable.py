"""Whether what many have done to one item could have been done by one after the other.

The search of Wing and Gong (1993, "Testing and Verifying Concurrent Objects"), with the memo of
Lowe (2017): of operations that overlap any may have been first, and a set of them with the content
that they lead to is tried once.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Content = tuple[str | None, int] | None
"""Of an item: what was put, and how often it was counted up since; None: there is none."""
Effect = Callable[[Content], tuple[Content, Mapping[str, Any]]]
"""From the content to that after it, and what may be told of it."""


@dataclass
class Operation:
    """What somebody did to an item. began, ended: by a counter of all events.

    told: what the answer said, of what the effect says. is_certain: it was acknowledged, or refused
    by its condition; others may have taken effect, or not, or will later.
    """

    what: str
    effect: Effect
    began: float
    ended: float = math.inf
    told: Mapping[str, Any] = field(default_factory=dict)
    is_certain: bool = False


def put(value: str, only_new: bool = False) -> Effect:
    def effect(content: Content) -> tuple[Content, Mapping[str, Any]]:
        refused = only_new and content is not None
        after = content if refused else (value, 0)
        return after, {"old": content, "refused": refused}

    return effect


def add(only_of: str | None = None) -> Effect:
    """Count up; only_of: if that was put."""

    def effect(content: Content) -> tuple[Content, Mapping[str, Any]]:
        if only_of is not None and (content is None or content[0] != only_of):
            return content, {"refused": True, "old": content}
        after = (None, 1) if content is None else (content[0], content[1] + 1)
        return after, {"refused": False, "old": content, "new": after, "count": after[1]}

    return effect


def delete(content: Content) -> tuple[Content, Mapping[str, Any]]:
    return None, {"refused": False, "old": content}


def read(content: Content) -> tuple[Content, Mapping[str, Any]]:
    return content, {"content": content}


def is_linearizable(operations: Sequence[Operation]) -> bool:
    """Whether there is an order of all that are certain, and some others, that explains them."""
    ordered = sorted(operations, key=lambda one: one.began)
    certain = sum(1 << n for n, one in enumerate(ordered) if one.is_certain)
    seen: set[tuple[int, Content]] = set()
    stack: list[tuple[int, Content]] = [(0, None)]
    while stack:
        done, content = here = stack.pop()
        if done & certain == certain:
            return True
        if here in seen:
            continue
        seen.add(here)
        until = math.inf
        possible = []
        for n, one in enumerate(ordered):
            if one.began > until:
                break
            if not done >> n & 1:
                until = min(until, one.ended)
                possible.append((n, one))
        for n, one in reversed(possible):
            if one.began > until:
                continue
            after, tells = one.effect(content)
            if not one.is_certain and one.ended < math.inf:
                stack.append((done | 1 << n, content))
            if all(tells.get(word) == told for word, told in one.told.items()):
                stack.append((done | 1 << n, after))
    return False
