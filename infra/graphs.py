"""What dashboards and alarms are made of: Keyhop's own metrics, and graphs."""

from typing import Protocol

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cw

from infra.config import Config
from infra.functions import SERVICE

MINUTE = Duration.minutes(1)
WIDTH = 12
"""Half of a dashboard's width."""


class MakesAlarms(Protocol):
    """Makes an alarm that tells the deployment's topic."""

    def __call__(
        self,
        name: str,
        metric: cw.IMetric,
        threshold: float,
        description: str,
        periods: int = 1,
    ) -> cw.Alarm:
        """periods: of the metric, all of which must be at or above the threshold."""


def keyhop(
    config: Config,
    name: str,
    label: str | None = None,
    *,
    statistic: str = "Sum",
    period: Duration = MINUTE,
) -> cw.Metric:
    """A metric that the functions write."""
    return cw.Metric(
        namespace=config.stack_name,
        metric_name=name,
        dimensions_map={"service": SERVICE},
        label=label,
        statistic=statistic,
        period=period,
    )


def graph(
    title: str,
    left: list[cw.IMetric],
    *,
    right: list[cw.IMetric] | None = None,
    stacked: bool = False,
    width: int = WIDTH,
) -> cw.IWidget:
    """A graph from zero up; right: what has another scale."""
    axis = cw.YAxisProps(min=0)
    return cw.GraphWidget(
        title=title,
        left=left,
        right=right,
        stacked=stacked,
        width=width,
        height=6,
        left_y_axis=axis,
        right_y_axis=axis,
    )
