"""The dashboard, the alarms, and the topic of the alarms. The figures are in views.py."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from aws_cdk import Aws, CfnCondition, Duration, Fn
from aws_cdk import aws_cloudwatch as cw
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from .config import Config
from .functions import SERVICE
from .permissions import acknowledge

MINUTE = Duration.minutes(1)
FIVE_MINUTES = Duration.minutes(5)
QUARTER = Duration.minutes(15)
DAY = Duration.days(1)
CONSOLE = "console.aws.amazon.com"
CONSOLES = {"aws-cn": "console.amazonaws.cn", "aws-us-gov": "console.amazonaws-us-gov.com"}
"""China's and GovCloud's."""
WIDTH = 24
HALF_WIDTH = 12
"""Of a dashboard."""

ANY_TABLE = "TABLE_SHOWN"
"""What the dashboard's body has for a table: CloudWatch puts in the one that is chosen."""


class States(cw.AlarmStatusWidget):
    """The states of all alarms, also of those that are made after it."""

    def __init__(self) -> None:
        super().__init__(title="Alarms", alarms=[], width=WIDTH, height=2)
        self.alarms: list[cw.IAlarm] = []

    def to_json(self) -> list[Any]:
        """Asked for at synth."""
        shown = cw.AlarmStatusWidget(title="Alarms", alarms=self.alarms, width=WIDTH, height=2)
        shown.position(0, 0)  # it is the first row
        return shown.to_json()


class Monitoring(Construct):
    """A topic, or somebody's own, and one dashboard, to which rows and alarms are added.

    console: the address of the partition's console, without a service. url: of the dashboard.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        config: Config,
        topic: sns.ITopic | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.config = config
        self._topic = actions.SnsAction(topic or self._new_topic())
        self._states = States()
        name = config.stack_name
        self._dashboard = cw.Dashboard(
            self,
            "Dashboard",
            dashboard_name=name,
            default_interval=Duration.hours(3),
            variables=[_choice_of(_shown(config))],
        )
        self.row(self._states)
        self.console = f"https://{self._host()}"
        self.url = f"{self.console}/cloudwatch/home?region={Aws.REGION}#dashboards/dashboard/{name}"

    def alarm(
        self, name: str, metric: cw.IMetric, threshold: float, description: str, periods: int = 1
    ) -> None:
        """Raised when all `periods` of the metric are at the threshold or above it.

        description: what has happened, and what to do.
        """
        alarm = cw.Alarm(
            self,
            name,
            alarm_name=f"{self.config.stack_name}-{name}",
            alarm_description=description,
            metric=metric,
            threshold=threshold,
            evaluation_periods=periods,
            comparison_operator=cw.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            # Between runs there is nothing to measure.
            treat_missing_data=cw.TreatMissingData.NOT_BREACHING,
        )
        alarm.add_alarm_action(self._topic)
        self._states.alarms.append(alarm)

    def row(self, *widgets: cw.IWidget) -> None:
        """A row of the dashboard."""
        self._dashboard.add_widgets(*widgets)

    def _host(self) -> str:
        """The console's host, of which each partition has its own."""
        host = CONSOLE
        for partition, other in CONSOLES.items():
            here = Fn.condition_equals(Aws.PARTITION, partition)
            condition = CfnCondition(self, f"In-{partition}", expression=here)
            host = Fn.condition_if(condition.logical_id, other, host).to_string()
        return host

    def ours(
        self,
        name: str,
        label: str | None = None,
        *,
        statistic: str = "Sum",
        period: Duration = MINUTE,
        **dimensions: str,
    ) -> cw.Metric:
        """A metric that the functions write, of all tables together."""
        return cw.Metric(
            namespace=self.config.stack_name,
            metric_name=name,
            dimensions_map={"service": SERVICE, **dimensions},
            label=label,
            statistic=statistic,
            period=period,
        )

    def of_table(
        self,
        name: str,
        label: str | None = None,
        *,
        statistic: str = "Sum",
        period: Duration = MINUTE,
    ) -> cw.Metric:
        """A metric that the functions write, of the table that is shown."""
        return self.ours(name, label, statistic=statistic, period=period, table=ANY_TABLE)

    def _new_topic(self) -> sns.Topic:
        topic = sns.Topic(self, "Alarms", enforce_ssl=True)
        # A policy of its own replaces the topic's first one, so CloudWatch must be named.
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                sid="LetTheAlarmsOfThisAccountPublish",
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            )
        )
        if self.config.alarm_email:
            topic.add_subscription(subscriptions.EmailSubscription(self.config.alarm_email))
            acknowledge(
                topic,
                "An e-mail that cannot be delivered is bounced to its sender; the alarm's history "
                "still has it.",
                "Serverless-SNSRedrivePolicy",
            )
        return topic


def _shown(config: Config) -> list[str]:
    """The names of the tables that can be chosen: those of pairs as well."""
    return list(dict.fromkeys(table.name for table in config.all_tables))


def _choice_of(tables: list[str]) -> cw.DashboardVariable:
    """Return the selection of the table that is shown."""
    return cw.DashboardVariable(
        id="table",
        type=cw.VariableType.PATTERN,
        input_type=cw.VariableInputType.SELECT,
        value=ANY_TABLE,
        label="Table",
        values=cw.Values.from_values(*(cw.VariableValue(value=name) for name in tables)),
        default_value=cw.DefaultValue.value(tables[0]),
        visible=True,
    )


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


def errors_of(
    functions: Mapping[str, Measured], label: str, period: Duration = MINUTE
) -> list[cw.IMetric]:
    """Return a metric of errors for each function. `label` contains {} for its name."""
    return [
        of(function, "Errors", label.format(name), period=period)
        for name, function in functions.items()
    ]


def expression(
    text: str, label: str, metrics: Mapping[str, cw.IMetric], period: Duration = MINUTE
) -> cw.IMetric:
    """An expression over metrics, by the names that it has for them: no two in one graph."""
    return cw.MathExpression(expression=text, using_metrics={**metrics}, label=label, period=period)


def number(title: str, metric: cw.IMetric, width: int) -> cw.IWidget:
    """The latest value."""
    return cw.SingleValueWidget(title=title, metrics=[metric], width=width, height=3)


def graph(
    title: str,
    left: Sequence[cw.IMetric],
    right: Sequence[cw.IMetric] = (),
    *,
    stacked: bool = False,
    width: int = HALF_WIDTH,
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
