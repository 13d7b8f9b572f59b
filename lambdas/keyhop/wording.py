"""Formatting of numbers, durations, facts and suggestions for messages. Pure."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

SERVICES = {
    "dynamodb": "dynamodb",
    "lambda": "lambda",
    "step_functions": "step functions",
    "s3": "s3",
    "verify": "check",
}
"""The names in a report of what an execution paid for, and the words for them."""


def counted(count: float, noun: str, nouns: str = "") -> str:
    """Format a count as "1 key" or "1,234 keys"; `nouns` is an irregular plural."""
    return f"{count:,.0f} {noun if round(count) == 1 else nouns or noun + 's'}"


def duration(seconds: float) -> str:
    """Format a duration, such as "45 min" or "3 days"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 2 * 86_400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86_400:,.0f} days"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a question with the most similar known names; "" if none is similar."""
    originals = {each.casefold(): each for each in sorted(names)}
    near = [repr(originals[each]) for each in difflib.get_close_matches(name.casefold(), originals)]
    return f" Did you mean {' or '.join(near)}?" if near else ""


def aligned(
    facts: Iterable[tuple[str, str]], margin: str = "", width: int | None = None
) -> Iterator[str]:
    """Return lines of names and values, with the values below each other.

    The names are as wide as the longest one and a space, or have this width.
    """
    facts = list(facts)
    if width is None:
        width = 1 + max((len(name) for name, _ in facts), default=0)
    return (f"{margin}{name:{width}} {value}" for name, value in facts)


def cost_facts(cost: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return the cost of an execution, with that of each service, and the prices."""
    shares = ", ".join(
        f"{words} ${cost[name]:.6f}" for name, words in SERVICES.items() if name in cost
    )
    yield "cost", f"${cost['total']:.6f}: {shares}"
    yield "", f"({cost['prices']})"
