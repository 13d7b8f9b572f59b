"""Formatting of numbers, durations and suggestions for messages. Pure."""

import difflib
from collections.abc import Iterable


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
