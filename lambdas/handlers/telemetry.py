"""Logs and metrics that several functions write. Neither ever holds a key of a table."""

from collections.abc import Callable, Mapping
from typing import Any

from aws_lambda_powertools import Logger, Tracer
from aws_lambda_powertools.metrics import Metrics, MetricUnit, single_metric
from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.dynamodb.usage import Usage

Handler = Callable[[dict[str, Any], LambdaContext], Any]
UNKNOWN_REASON = "Unknown"


def function(logger: Logger, metrics: Metrics) -> Callable[[Handler], Handler]:
    """What every function has around its work: its context in the log, a trace of each invocation
    as a whole, and metrics.

    Requests are not traced: a worker sends hundreds a second, from several threads. They are
    counted by metrics.
    """
    tracer = Tracer(auto_patch=False)

    def around(handler: Handler) -> Handler:
        traced = tracer.capture_lambda_handler(metrics.log_metrics(handler), capture_response=False)
        wrapped: Handler = logger.inject_lambda_context(traced)
        return wrapped

    return around


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
