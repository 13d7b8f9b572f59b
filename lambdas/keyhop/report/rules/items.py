"""Rules on items: A13 and A16."""

from collections.abc import Iterable

from keyhop.report.advice.money import money, storing
from keyhop.report.estimate import Estimate
from keyhop.report.facts import Absent, Facts
from keyhop.report.findings import Advice, Evidence
from keyhop.report.rules.limits import (
    HALF,
    ITEM_BYTES,
    KB,
    LARGE_ITEM_BYTES,
    NEAR_ITEM_BYTES,
    TTL_NORMAL_DAYS,
)
from keyhop.report.rules.rule import Said, clear, found, missing, unknown
from keyhop.report.rules.shares import evidence, interval, more, percent

UNITS_OF_ITEMS = 300.0
UNITS_OF_TTL = 150.0
P99 = 0.99
ANY_LARGE = 0.0125
"""The share of large items that 300 items without one exclude."""
TTL_SHARE = 0.02


def large_items(facts: Facts) -> Iterable[Said]:
    """Apply A13: large items.

    One large item in the sample is enough. Only shares show that there is none.
    """
    sample = facts.sample
    if isinstance(sample, Absent):
        return [missing(sample, "sample", UNITS_OF_ITEMS)]
    largest, large, p99 = sample.largest_item, sample.large, sample.item_bytes.get(P99)
    signals: list[Evidence] = []
    if largest is not None:
        signals.append(
            Evidence(
                "sample",
                "bytes of the largest item seen",
                largest,
                threshold=NEAR_ITEM_BYTES,
                n=sample.items_read,
            )
        )
    if large is not None:
        signals.append(evidence("sample", "share of items of 350 KB or more", large, 0.0))
    if p99 is not None:
        what = "bytes that 99 % of the items do not exceed"
        signals.append(evidence("sample", what, p99, LARGE_ITEM_BYTES))
    if largest is not None and largest >= NEAR_ITEM_BYTES:
        summary = f"An item has {largest / KB:,.0f} KB; {ITEM_BYTES // KB} KB is the most."
        return [found("high", summary, *signals, advice=_ELSEWHERE)]
    if p99 is not None and p99.against(LARGE_ITEM_BYTES) == "above":
        near = p99.low >= HALF * ITEM_BYTES
        summary = f"One item in a hundred has {p99.value / KB:,.0f} KB or more."
        return [found("medium" if near else "low", summary, *signals, advice=_ELSEWHERE)]
    if sample.all_items and largest is not None and largest < LARGE_ITEM_BYTES:
        return [clear(f"All was read: no item has more than {largest / KB:,.1f} KB.", *signals)]
    if p99 is None or large is None:
        return [unknown("Too few items were seen.", more(sample, UNITS_OF_ITEMS), *signals)]
    if p99.against(LARGE_ITEM_BYTES) == "below" and large.against(ANY_LARGE) == "below":
        summary = (
            f"99 % of the items have less than {p99.high / KB:,.1f} KB; fewer than "
            f"{percent(large.high)} have 350 KB or more."
        )
        return [clear(summary, *signals)]
    return [unknown("How large items get is open.", more(sample, UNITS_OF_ITEMS), *signals)]


_ELSEWHERE = Advice(
    ("P13",),
    (
        "Put the large value into S3, and where it is into the item; write the object first.",
        "Or divide the item: what is read often stays small, the rest is an item beside it. Each "
        "write pays for the whole item, however little of it changes.",
    ),
)


def time_to_live(facts: Facts) -> Iterable[Said]:
    """Apply A16: time to live that does not work.

    Some days between expiry and deletion are normal. More days, a text or milliseconds are not. The
    report cannot see whether readers rely on time to live.
    """
    table, sample = facts.table, facts.sample
    if (untold := table.untold.get("ttl")) is not None:
        return [missing(untold, "control plane")]
    if table.ttl is None:
        return [clear("Time to live is off.")]
    if isinstance(sample, Absent):
        return [missing(sample, "sample", UNITS_OF_TTL)]
    if sample.ttl is None:
        summary = f"Too few items with {table.ttl} were seen."
        return [unknown(summary, more(sample, UNITS_OF_TTL))]
    ttl = sample.ttl
    kinds: tuple[tuple[str, Estimate, str], ...] = (
        ("are no numbers, so they never expire", ttl.wrong_type, _RIGHT_TYPE),
        ("are milliseconds, so they expire in 50,000 years", ttl.milliseconds, _SECONDS),
        (f"expired over {TTL_NORMAL_DAYS} days ago and are still there", ttl.expired, _LATE),
    )
    signals = [
        evidence("sample", f"values of {table.ttl} that {what}", share, TTL_SHARE)
        for what, share, _ in kinds
    ]
    wrong = [kind for kind in kinds if kind[1].against(TTL_SHARE) == "above"]
    if wrong:
        summary = "; ".join(f"{interval(share)} {what}" for what, share, _ in wrong)
        steps = (*(step for _, _, step in wrong), _FILTER)
        storage = storing(facts, table.bytes * min(1.0, sum(share.value for _, share, _ in wrong)))
        advice = Advice(("P4",), steps, "", money(facts, storage, 0.0))
        return [found("low", f"Of the values of {table.ttl}, {summary}.", *signals, advice=advice)]
    if all(share.against(TTL_SHARE) == "below" for _, share, _ in kinds):
        summary = f"{table.ttl} is a number of seconds, and expired items go."
        return [clear(summary, *signals)]
    summary = f"Whether {table.ttl} does what it is for is open."
    return [unknown(summary, more(sample, UNITS_OF_TTL), *signals)]


_RIGHT_TYPE = "Write the time as a number (N): of a text, time to live takes no notice."
_SECONDS = "Write seconds since 1970, not milliseconds."
_LATE = (
    "Look whether time to live was on all the time, and whether these times are over five years "
    "old: such items are left alone. Delete what is left by a job."
)
_FILTER = "Let readers filter by the time: an expired item is returned until it is deleted."
