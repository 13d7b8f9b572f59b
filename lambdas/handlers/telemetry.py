"""Logs and metrics that several functions write. Neither ever holds a key of a table."""

from collections.abc import Mapping

from aws_lambda_powertools import Tracer
from aws_lambda_powertools.metrics import Metrics, MetricUnit, single_metric
from keyhop.dynamodb.usage import Usage

UNKNOWN_REASON = "Unknown"


def function_tracer() -> Tracer:
    """A trace of each invocation as a whole.

    Its requests are not in it: a worker sends hundreds a second, from several threads. They are
    counted by metrics.
    """
    return Tracer(auto_patch=False)


def count(metrics: Metrics, **values: float) -> None:
    """Add counts to a function's metrics, by name."""
    for name, value in values.items():
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=value)


def count_reads(metrics: Metrics, usage: Usage) -> None:
    """What reading has come to, with throttles by the service's reasons."""
    count(
        metrics,
        ReadUnits=usage.read_units,
        Requests=usage.requests,
        Retries=usage.retries,
        Throttles=sum(usage.throttles.values()),
    )
    count_throttles(metrics, usage.throttles)


def count_sharding(metrics: Metrics, usage: Usage) -> None:
    """What the calls of a sharded table have come to, with throttles by the service's reasons."""
    counters = usage.counters
    count(
        metrics,
        ShardsAdded=counters["shards_added"],
        ShardsRemoved=counters["shards_removed"],
        RacesLost=counters["races_lost"],
        HotKeyThrottles=counters["hot_throttles"],
        KeysAtMaximum=counters["at_maximum"],
        ItemsMoved=counters["moves"],
    )
    count_throttles(metrics, usage.throttles)


def count_throttles(metrics: Metrics, throttles: Mapping[str, int]) -> None:
    """Throttles, each under the service's reason."""
    for reason, times in throttles.items():
        with single_metric(
            name="Throttles",
            unit=MetricUnit.Count,
            value=times,
            default_dimensions={
                "service": metrics.service or "",
                "Reason": reason or UNKNOWN_REASON,
            },
        ):
            pass
