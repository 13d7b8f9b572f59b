"""Decide whether concurrent operations on one item could have happened one after the other.

This is the search of Wing and Gong (1993, "Testing and Verifying Concurrent Objects") with the memo
of Lowe (2017): any of several overlapping operations may have been first, and each set of finished
operations is tried once with each content.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Content = tuple[str | None, int] | None
"""The value that was put into an item, and the number of adds since then. None: no item."""
Effect = Callable[[Content], tuple[Content, Mapping[str, Any]]]
"""A function from the content before an operation to the content after it, and its report."""


@dataclass
class Operation:
    """An operation on an item. began, ended: numbers of a counter of all events.

    reported: the values of the effect's report that the response had. is_certain: whether it was
    acknowledged, or refused by its condition. Another one may take effect at any time, or never.
    """

    what: str
    effect: Effect
    began: float
    ended: float = math.inf
    reported: Mapping[str, Any] = field(default_factory=dict)
    is_certain: bool = False


def put(value: str, only_new: bool = False) -> Effect:
    def effect(content: Content) -> tuple[Content, Mapping[str, Any]]:
        refused = only_new and content is not None
        after = content if refused else (value, 0)
        return after, {"old": content, "refused": refused}

    return effect


def add(only_of: str | None = None) -> Effect:
    """Return the effect of an add. only_of: the condition that this value was put."""

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
    """Return whether an order of all certain and some other operations explains the reports."""
    ordered = sorted(operations, key=lambda operation: operation.began)
    certain = sum(1 << n for n, operation in enumerate(ordered) if operation.is_certain)
    visited: set[tuple[int, Content]] = set()
    stack: list[tuple[int, Content]] = [(0, None)]
    while stack:
        done_mask, content = state = stack.pop()
        if done_mask & certain == certain:
            return True
        if state in visited:
            continue
        visited.add(state)
        until = math.inf
        candidates = []
        for n, operation in enumerate(ordered):
            if operation.began > until:
                break
            if not done_mask >> n & 1:
                until = min(until, operation.ended)
                candidates.append((n, operation))
        for n, operation in reversed(candidates):
            if operation.began > until:
                continue
            after, report = operation.effect(content)
            if not operation.is_certain and operation.ended < math.inf:
                stack.append((done_mask | 1 << n, content))
            if all(report.get(name) == value for name, value in operation.reported.items()):
                stack.append((done_mask | 1 << n, after))
    return False
