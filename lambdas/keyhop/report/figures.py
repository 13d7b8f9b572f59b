"""How a report writes figures: counts, sizes, shares, money, each with its interval. Pure."""

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeGuard

COUNTS = ("", " k", " M", " bn")
SIZES = (" B", " KB", " MB", " GB", " TB", " PB")
"""Powers of 1,024, as in DynamoDB's limits: an item's 400 KB are 409,600 bytes."""


UNKNOWN = "unknown"


def count(value: float | None) -> str:
    """Write a count, such as `1,234` or `2.0 M`."""
    if not is_known(value):
        return UNKNOWN
    return _with_unit(value, _unit(value, 1000, COUNTS, 9_999.5), 1000, COUNTS)


def size(value: float | None) -> str:
    """Write a size, such as `8.6 GB`."""
    if not is_known(value):
        return UNKNOWN
    return _with_unit(value, _unit(value, 1024, SIZES, 999.5), 1024, SIZES)


def share(value: float | None) -> str:
    """Write a share, such as `40 %`, or `0.3 %` below ten."""
    return f"{_digits(100 * value)} %" if is_known(value) else UNKNOWN


def dollars(value: float | None) -> str:
    """Write dollars, such as `$0.0004`, `$12.50` or `$1,200`."""
    if not is_known(value):
        return UNKNOWN
    if value == 0:
        return "$0"
    if abs(value) < 0.01:
        return f"${value:.{1 - math.floor(math.log10(abs(value)))}f}".rstrip("0")
    return f"${value:,.2f}" if abs(value) < 100 else f"${value:,.0f}"


def units(value: float | None) -> str:
    """Write units of capacity, such as `3,000` or `0.5`."""
    if not is_known(value):
        return UNKNOWN
    return f"{value:,.0f}" if value >= 100 or value == round(value) else f"{value:,.1f}"


def is_known(value: float | None) -> TypeGuard[float]:
    """Return whether a value is a finite number."""
    return value is not None and math.isfinite(value)


def when(at: float | None) -> str:
    """Write a time, such as `2026-11-22 18:50 UTC`; "" if no calendar has it."""
    if not is_known(at):
        return ""
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return ""


def count_within(estimate: Mapping[str, Any]) -> str:
    """Write a count with its interval, such as `2.0 M [1.9, 2.1]`, from Estimate.to_json."""
    return _within(estimate, count, lambda top: (_unit(top, 1000, COUNTS, 9_999.5), 1000, COUNTS))


def size_within(estimate: Mapping[str, Any]) -> str:
    """Write a size with its interval, such as `8.6 GB [7.9, 9.4]`."""
    return _within(estimate, size, lambda top: (_unit(top, 1024, SIZES, 999.5), 1024, SIZES))


def share_within(estimate: Mapping[str, Any]) -> str:
    """Write a share with its interval, such as `40 % [32, 48]`."""
    value, low, high = (estimate.get(name) for name in ("value", "low", "high"))
    if not is_known(low) or not is_known(value) or low == value == high:
        return share(value)
    if not is_known(high):
        return f"at least {share(low)}"
    return f"{share(value)} [{_digits(100 * low)}, {_digits(100 * high)}]"


def _within(
    estimate: Mapping[str, Any],
    write: Callable[[float | None], str],
    unit: Callable[[float], tuple[int, int, tuple[str, ...]]],
) -> str:
    value, low, high = (estimate.get(name) for name in ("value", "low", "high"))
    if not is_known(low) or not is_known(value) or low == value == high:
        return write(value)
    if not is_known(high):
        return f"at least {write(low)}"
    power, base, names = unit(value)
    ends = []
    for end in (low, high):
        # An end too small for the value's unit has another one: 2.0 GB [310 KB, 9.4].
        is_tiny = 0 < abs(end) < 0.01 * base**power
        ends.append(write(end) if is_tiny else _with_unit(end, power, base, ("",) * len(names)))
    return f"{write(value)} [{ends[0]}, {ends[1]}]"


def _unit(value: float, base: int, names: tuple[str, ...], limit: float) -> int:
    power = 0
    while abs(value) >= limit and power < len(names) - 1:
        value, power, limit = value / base, power + 1, 999.5
    return power


def _with_unit(value: float, power: int, base: int, names: tuple[str, ...]) -> str:
    scaled = value / base**power
    bare = f"{scaled:,.0f}" if power == 0 and value == round(value) else _digits(scaled)
    return f"{bare}{names[power]}"


def _digits(value: float) -> str:
    """Write the two or three significant digits."""
    if abs(value) >= 9.95 or value == 0:
        return f"{value:,.0f}"
    if abs(value) >= 0.095:
        return f"{value:.1f}"
    return f"{value:.2g}" if abs(value) >= 0.0001 else f"{value:.0e}"
