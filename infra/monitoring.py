"""The dashboard, the alarms, and the topic of the alarms.

Each construct adds its own rows and alarms. Here are the parts that they share.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from aws_cdk import Aws, CfnCondition, Duration, Fn
from aws_cdk import aws_cloudwatch as cw
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct
from keyhop.dynamodb.units import Prices

from .config import Config, Table
from .functions import SERVICE
from .permissions import acknowledge

MINUTE = Duration.minutes(1)
FIVE_MINUTES = Duration.minutes(5)
QUARTER = Duration.minutes(15)
DAY = Duration.days(1)
CONSOLE = "console.aws.amazon.com"
CONSOLES = {"aws-cn": "console.amazonaws.cn", "aws-us-gov": "console.amazonaws-us-gov.com"}
"""The consoles of China and GovCloud."""
WIDTH = 24
HALF_WIDTH = 12
"""The widths of widgets on a dashboard."""

ANY_TABLE = "TABLE_SHOWN"
"""The placeholder of the dashboard, which CloudWatch replaces with the selected table."""


CAUSE = "Open the execution in the Step Functions console: its cause says why and what to do"
"""The advice in alarms about executions that have failed."""


class States(cw.AlarmStatusWidget):
    """A widget with the states of all alarms, also of alarms that are added later."""

    def __init__(self) -> None:
        super().__init__(title="Alarms", alarms=[], width=WIDTH, height=2)
        self.alarms: list[cw.IAlarm] = []

    def to_json(self) -> list[Any]:
        """Return the widget at synth, when all alarms exist."""
        widget = cw.AlarmStatusWidget(title="Alarms", alarms=self.alarms, width=WIDTH, height=2)
        widget.position(0, 0)  # it is the first row
        return widget.to_json()


BEHIND_MINUTES = 15
BEHIND_PERIODS = 3
"""The number of periods of five minutes after which a high iterator age is not a burst."""


class Measured(Protocol):
    """A resource with metrics: a function, a state machine or a queue."""

    def metric(
        self, metric_name: str, *, label: str | None, period: Duration, statistic: str
    ) -> cw.Metric:
        """Return one of its metrics."""


class Monitoring(Construct):
    """An alarm topic and a dashboard, to which rows and alarms are added.

    Attributes:
        console: The address of the partition's console, without a service.
        url: The address of the dashboard.
    """

    def __init__(
        self, scope: Construct, construct_id: str, config: Config, topic: sns.ITopic | None = None
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
            variables=[_choice_of({table.name: table for table in config.all_tables})],
        )
        self.row(self._states)
        self.console = f"https://{self._host()}"
        self.url = f"{self.console}/cloudwatch/home?region={Aws.REGION}#dashboards/dashboard/{name}"

    def alarm(
        self, name: str, metric: cw.IMetric, threshold: float, description: str, periods: int = 1
    ) -> None:
        """Add an alarm for a metric at or above the threshold in all `periods`.

        `description` says what has happened, and what to do.
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

    def needs_a_person(self, alarm: str, machine: str, description: str) -> None:
        """Add an alarm for executions that the state RaiseAlarm of a machine has counted."""
        self.alarm(alarm, self.ours("NeedsAPerson", machine=machine), 1, description)

    def row(self, *widgets: cw.IWidget) -> None:
        self._dashboard.add_widgets(*widgets)

    @property
    def prices(self) -> Prices:
        """Return the prices of the deployment or list prices, as a template has no region."""
        return Prices.of(None, self.config.prices)

    def _host(self) -> str:
        """Return the host of the console, which depends on the partition."""
        host = CONSOLE
        for partition, its_host in CONSOLES.items():
            is_partition = Fn.condition_equals(Aws.PARTITION, partition)
            condition = CfnCondition(self, f"In-{partition}", expression=is_partition)
            host = Fn.condition_if(condition.logical_id, its_host, host).to_string()
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
        """Return a metric that the functions write, for all tables together."""
        return cw.Metric(
            namespace=self.config.stack_name,
            metric_name=name,
            dimensions_map={"service": SERVICE, **dimensions},
            label=label,
            statistic=statistic,
            period=period,
        )

    def of_table(self, name: str, label: str | None = None, **more: Any) -> cw.Metric:
        """Return a metric that the functions write, for the selected table (see `ours`)."""
        return self.ours(name, label, table=ANY_TABLE, **more)

    def counts(self, *names: str) -> list[cw.IMetric]:
        """Return metrics of the selected table, with labels such as "keys reconciled"."""
        return [
            self.of_table(name, re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()) for name in names
        ]

    @staticmethod
    def metric_of(
        resource: Measured,
        name: str,
        label: str | None = None,
        *,
        statistic: str = "Sum",
        period: Duration = MINUTE,
    ) -> cw.Metric:
        """Return a metric that AWS writes for a resource."""
        return resource.metric(name, label=label, period=period, statistic=statistic)

    def errors_of(
        self, functions: Mapping[str, Measured], label: str, period: Duration = MINUTE
    ) -> list[cw.IMetric]:
        """Return a metric of errors for each function. `label` contains {} for its name."""
        return [
            self.metric_of(function, "Errors", label.format(name), period=period)
            for name, function in functions.items()
        ]

    def ends_of(self, machine: Measured, label: str) -> list[cw.IMetric]:
        """Return how many executions of a state machine succeed and fail. `label` contains {}."""
        return [
            self.metric_of(
                machine, f"Executions{end}", label.format(end.lower()), period=FIVE_MINUTES
            )
            for end in ("Succeeded", "Failed")
        ]

    def at_once(self, worker: Measured, label: str = "workers at once (right)") -> cw.IMetric:
        """Return the number of concurrent invocations of a function."""
        return self.metric_of(worker, "ConcurrentExecutions", label, statistic="Maximum")

    def iterator_age(self, function: Measured, label: str | None = None) -> cw.IMetric:
        """Return how far a function is behind the streams, in milliseconds."""
        return self.metric_of(
            function, "IteratorAge", label, statistic="Maximum", period=FIVE_MINUTES
        )

    def waiting_in(self, queue: Measured, label: str | None = None) -> cw.IMetric:
        """Return the number of messages in a failure queue."""
        name = "ApproximateNumberOfMessagesVisible"
        return self.metric_of(queue, name, label, statistic="Maximum", period=FIVE_MINUTES)

    def alarm_if_behind(self, name: str, function: Measured, description: str) -> None:
        """Add an alarm for a function that is BEHIND_MINUTES or more behind a stream."""
        milliseconds = BEHIND_MINUTES * 60 * 1000
        self.alarm(name, self.iterator_age(function), milliseconds, description, BEHIND_PERIODS)

    @staticmethod
    def expression(
        text: str, label: str, metrics: Mapping[str, cw.IMetric], period: Duration = MINUTE
    ) -> cw.IMetric:
        """Return an expression over metrics, whose names must be unique in a graph."""
        return cw.MathExpression(
            expression=text, using_metrics={**metrics}, label=label, period=period
        )

    @staticmethod
    def number(title: str, metric: cw.IMetric, width: int) -> cw.IWidget:
        """Return a widget with the latest value."""
        return cw.SingleValueWidget(title=title, metrics=[metric], width=width, height=3)

    @staticmethod
    def graph(
        title: str,
        left: Sequence[cw.IMetric],
        right: Sequence[cw.IMetric] = (),
        *,
        stacked: bool = False,
        width: int = HALF_WIDTH,
    ) -> cw.IWidget:
        """Return a graph that begins at zero. Metrics on the right have a separate scale."""
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

    def _new_topic(self) -> sns.Topic:
        topic = sns.Topic(self, "Alarms", enforce_ssl=True)
        # This policy replaces the topic's default one, so it must name CloudWatch.
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


def _choice_of(tables: Mapping[str, Table]) -> cw.DashboardVariable:
    """Return the variable that selects one of the tables, by its name."""
    first, *_ = tables
    return cw.DashboardVariable(
        id="table",
        type=cw.VariableType.PATTERN,
        input_type=cw.VariableInputType.SELECT,
        value=ANY_TABLE,
        label="Table",
        values=cw.Values.from_values(*(cw.VariableValue(value=name) for name in tables)),
        default_value=cw.DefaultValue.value(first),
        visible=True,
    )
