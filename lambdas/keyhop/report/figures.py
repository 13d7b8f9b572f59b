"""How a report tells its figures: counts, sizes, shares, money, each with its interval. Pure."""

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeGuard

COUNTS = ("", " k", " M", " bn")
SIZES = (" B", " KB", " MB", " GB", " TB", " PB")
"""By 1,024, as DynamoDB counts its limits: an item's 400 KB are 409,600 bytes."""


UNKNOWN = "unknown"


def count(value: float | None) -> str:
    """1,234 or 2.0 M."""
    if not known(value):
        return UNKNOWN
    return _told(value, _unit(value, 1000, COUNTS, 9_999.5), 1000, COUNTS)


def size(value: float | None) -> str:
    """8.6 GB."""
    if not known(value):
        return UNKNOWN
    return _told(value, _unit(value, 1024, SIZES, 999.5), 1024, SIZES)


def share(value: float | None) -> str:
    """40 %; 0.3 % below ten."""
    return f"{_digits(100 * value)} %" if known(value) else UNKNOWN


def dollars(value: float | None) -> str:
    """$0.0004, $12.50, $1,200."""
    if not known(value):
        return UNKNOWN
    if value == 0:
        return "$0"
    if abs(value) < 0.01:
        return f"${value:.{1 - math.floor(math.log10(abs(value)))}f}".rstrip("0")
    return f"${value:,.2f}" if abs(value) < 100 else f"${value:,.0f}"


def units(value: float | None) -> str:
    """Of capacity: 3,000 or 0.5."""
    if not known(value):
        return UNKNOWN
    return f"{value:,.0f}" if value >= 100 or value == round(value) else f"{value:,.1f}"


def known(value: float | None) -> TypeGuard[float]:
    """Whether this is a figure."""
    return value is not None and math.isfinite(value)


def when(at: float | None) -> str:
    """A moment: 2026-11-22 18:50 UTC; empty if it is none that a calendar has."""
    if not known(at):
        return ""
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return ""


def count_within(estimate: Mapping[str, Any]) -> str:
    """2.0 M [1.9, 2.1]; of an estimate as JSON has it (Estimate.to_json)."""
    return _within(estimate, count, lambda top: (_unit(top, 1000, COUNTS, 9_999.5), 1000, COUNTS))


def size_within(estimate: Mapping[str, Any]) -> str:
    """8.6 GB [7.9, 9.4]."""
    return _within(estimate, size, lambda top: (_unit(top, 1024, SIZES, 999.5), 1024, SIZES))


def share_within(estimate: Mapping[str, Any]) -> str:
    """40 % [32, 48]."""
    value, low, high = (estimate.get(name) for name in ("value", "low", "high"))
    if not known(low) or not known(value) or low == value == high:
        return share(value)
    if not known(high):
        return f"at least {share(low)}"
    return f"{share(value)} [{_digits(100 * low)}, {_digits(100 * high)}]"


def _within(
    estimate: Mapping[str, Any],
    told: Callable[[float | None], str],
    unit: Callable[[float], tuple[int, int, tuple[str, ...]]],
) -> str:
    value, low, high = (estimate.get(name) for name in ("value", "low", "high"))
    if not known(low) or not known(value) or low == value == high:
        return told(value)
    if not known(high):
        return f"at least {told(low)}"
    power, base, names = unit(value)
    ends = []
    for end in (low, high):
        # An end that is nothing in the value's unit has its own: 2.0 GB [310 KB, 9.4].
        own = 0 < abs(end) < 0.01 * base**power
        ends.append(told(end) if own else _told(end, power, base, ("",) * len(names)))
    return f"{told(value)} [{ends[0]}, {ends[1]}]"


def _unit(value: float, base: int, names: tuple[str, ...], most: float) -> int:
    power = 0
    while abs(value) >= most and power < len(names) - 1:
        value, power, most = value / base, power + 1, 999.5
    return power


def _told(value: float, power: int, base: int, names: tuple[str, ...]) -> str:
    scaled = value / base**power
    bare = f"{scaled:,.0f}" if power == 0 and value == round(value) else _digits(scaled)
    return f"{bare}{names[power]}"


def _digits(value: float) -> str:
    """Two or three digits that tell."""
    if abs(value) >= 9.95 or value == 0:
        return f"{value:,.0f}"
    if abs(value) >= 0.095:
        return f"{value:.1f}"
    return f"{value:.2g}" if abs(value) >= 0.0001 else f"{value:.0e}"
