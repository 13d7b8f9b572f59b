"""What dashboards and alarms are made of: metrics, graphs, and what an alarm says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cw

from infra.config import Config
from infra.functions import SERVICE

MINUTE = Duration.minutes(1)
FIVE_MINUTES = Duration.minutes(5)
QUARTER = Duration.minutes(15)
DAY = Duration.days(1)
WIDTH = 12
"""Half of a dashboard's width."""


@dataclass(frozen=True)
class Alarm:
    """Raised when all `periods` of the metric are at the threshold or above it."""

    name: str
    metric: cw.IMetric
    threshold: float
    description: str
    """What has happened, and what to do."""
    periods: int = 1


@dataclass(frozen=True)
class View:
    """What is watched of one part of the deployment. rows: of the dashboard."""

    alarms: Sequence[Alarm]
    rows: Sequence[Sequence[cw.IWidget]]


class Measured(Protocol):
    """A function, a state machine or a queue."""

    def metric(
        self, metric_name: str, *, label: str | None, period: Duration, statistic: str
    ) -> cw.Metric:
        """One of its metrics."""


def of(
    resource: Measured,
    name: str,
    label: str | None = None,
    *,
    statistic: str = "Sum",
    period: Duration = MINUTE,
) -> cw.Metric:
    """A metric that the service writes of a resource."""
    return resource.metric(name, label=label, period=period, statistic=statistic)


def of_each(
    resources: Mapping[str, Measured], name: str, label: str, period: Duration = MINUTE
) -> list[cw.IMetric]:
    """The same of several; label: with {} for the resource's name."""
    return [
        of(resource, name, label.format(called), period=period)
        for called, resource in resources.items()
    ]


def keyhop(
    config: Config,
    name: str,
    label: str | None = None,
    *,
    statistic: str = "Sum",
    period: Duration = MINUTE,
    **dimensions: str,
) -> cw.Metric:
    """A metric that the functions write."""
    return cw.Metric(
        namespace=config.stack_name,
        metric_name=name,
        dimensions_map={"service": SERVICE, **dimensions},
        label=label,
        statistic=statistic,
        period=period,
    )


def divided(metric: cw.IMetric, name: str, by: str, label: str, period: Duration) -> cw.IMetric:
    """A metric, called `name`, divided by an expression in which {} is that name."""
    return cw.MathExpression(
        expression=f"{name} / {by.format(name)}",
        using_metrics={name: metric},
        label=label,
        period=period,
    )


def graph(
    title: str,
    left: Sequence[cw.IMetric],
    right: Sequence[cw.IMetric] = (),
    *,
    stacked: bool = False,
    width: int = WIDTH,
) -> cw.IWidget:
    """A graph from zero up; right: what has another scale."""
    axis = cw.YAxisProps(min=0)
    return cw.GraphWidget(
        title=title,
        left=[*left],
        right=[*right],
        stacked=stacked,
        width=width,
        height=6,
        left_y_axis=axis,
        right_y_axis=axis,
    )
