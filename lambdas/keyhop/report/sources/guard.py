"""Whether a report may read the table's data now. Pure."""

from keyhop.report.facts import TABLE, Absent, MetricFacts
from keyhop.wording import duration

CALM_SECONDS = 3600.0
"""So long a key range has to be without throttles before a report adds reads of its own."""


def why_not(metrics: MetricFacts | Absent, now: float, accepted: bool = False) -> Absent | None:
    """Return why the data is not sampled; None if it may be sampled.

    Only throttles that CloudWatch reports prevent a sample. Without an answer of CloudWatch, the
    report reads at its low rate, and says that it does not know.

    Args:
        accepted: Whether the caller accepts that the table is throttled.
    """
    if accepted or isinstance(metrics, Absent):
        return None
    recent = {
        target: throttles.last
        for (_, cause, target), throttles in metrics.throttles.items()
        if cause == "key range"
        and throttles.last is not None
        and now - throttles.last < CALM_SECONDS
    }
    if not recent:
        return None
    last = max(last for last in recent.values() if last is not None)
    where = " and ".join("the table" if one == TABLE else f"index {one}" for one in sorted(recent))
    ago = duration(max(0.0, now - last))
    return Absent(
        f"DynamoDB throttled a key range of {where} {ago} ago: a sample would add to that load",
        f"wait until there were none for {duration(CALM_SECONDS)}, or give --accept throttled",
    )
