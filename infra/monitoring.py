"""What is seen of the runs, and who is told when one goes wrong."""

from collections.abc import Mapping

from aws_cdk import Aws, Duration
from aws_cdk import aws_cloudwatch as cw
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.config import Config
from infra.functions import SERVICE
from infra.graphs import MINUTE, graph, keyhop
from infra.key_index import KeyIndex
from infra.key_index_monitoring import KeyIndexMonitoring
from infra.permissions import acknowledge
from infra.sharding import ShardedTables
from infra.sharding_monitoring import ShardingMonitoring

SLICE = Duration.minutes(15)
"""A worker hands in its counts when it ends: rates of less time than that would jump."""

MANY_THROTTLES = 1000
"""About one a second; a few are how DynamoDB asks to be given time, and workers give it."""

WORKER_ERRORS = 3


class Monitoring(Construct):
    """The dashboard, the alarms, and the topic that they tell."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        config: Config,
        state_machine: sfn.StateMachine,
        functions: Mapping[str, lambda_.Function],
        key_index: KeyIndex | None = None,
        sharded: ShardedTables | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._config = config
        self._state_machine = state_machine
        self._functions = functions
        self.topic = self._topic()
        self.alarms = [
            self._unfinished_run("FailedRun", "ExecutionsFailed", "was refused or failed"),
            self._unfinished_run("TimedOutRun", "ExecutionsTimedOut", "took too long"),
            self._unfinished_run("StoppedRun", "ExecutionsAborted", "was stopped by somebody"),
            self._throttled_run(),
            self._worker_errors(),
        ]
        self._key_index = key_index and KeyIndexMonitoring(config, key_index, self._alarm)
        if self._key_index:
            self.alarms += self._key_index.alarms
        self._sharding = sharded and ShardingMonitoring(config, sharded, self._alarm)
        if self._sharding:
            self.alarms += self._sharding.alarms
        self.dashboard = self._dashboard()

    @property
    def dashboard_url(self) -> str:
        """Where the console shows the dashboard."""
        return (
            f"https://console.aws.amazon.com/cloudwatch/home?region={Aws.REGION}"
            f"#dashboards/dashboard/{self._config.stack_name}"
        )

    def _topic(self) -> sns.Topic:
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
        if self._config.alarm_email:
            topic.add_subscription(subscriptions.EmailSubscription(self._config.alarm_email))
            acknowledge(
                topic,
                "An e-mail that cannot be delivered is bounced to its sender; the alarm's history "
                "still has it.",
                "Serverless-SNSRedrivePolicy",
            )
        return topic

    def _alarm(
        self,
        name: str,
        metric: cw.IMetric,
        threshold: float,
        description: str,
        periods: int = 1,
    ) -> cw.Alarm:
        alarm = cw.Alarm(
            self,
            name,
            alarm_name=f"{self._config.stack_name}-{name}",
            alarm_description=description,
            metric=metric,
            threshold=threshold,
            evaluation_periods=periods,
            comparison_operator=cw.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            # Between runs there is nothing to measure.
            treat_missing_data=cw.TreatMissingData.NOT_BREACHING,
        )
        alarm.add_alarm_action(actions.SnsAction(self.topic))
        return alarm

    def _unfinished_run(self, name: str, metric: str, what: str) -> cw.Alarm:
        return self._alarm(
            name,
            self._executions(metric, MINUTE),
            1,
            f"A run {what}, so there is no complete list of keys. Open the execution in the Step "
            "Functions console: its cause says what to do. What it read is kept: redrive it, or "
            'start one with "resume" and its id.',
        )

    def _throttled_run(self) -> cw.Alarm:
        return self._alarm(
            "ThrottledRun",
            keyhop(self._config, "Throttles", period=SLICE),
            MANY_THROTTLES,
            f"DynamoDB throttled {MANY_THROTTLES} requests of the runs within a quarter of an "
            "hour; others that read the table are likely throttled as well. The dashboard has the "
            "reasons. Lower the map run's concurrency in the console, or start runs with a "
            'smaller "maxReadRate".',
        )

    def _worker_errors(self) -> cw.Alarm:
        return self._alarm(
            "WorkerErrors",
            self._functions["ScanSegments"].metric_errors(period=SLICE, statistic="Sum"),
            WORKER_ERRORS,
            f"ScanSegments failed {WORKER_ERRORS} times or more in a quarter of an hour. Each is "
            "tried again and loses nothing, but a run ends as failed when it goes on. Search the "
            "function's log for ERROR; if it ran out of memory, raise workerMemoryMb in cdk.json.",
        )

    def _executions(self, name: str, period: Duration) -> cw.Metric:
        return self._state_machine.metric(name, period=period, statistic="Sum")

    def _dashboard(self) -> cw.Dashboard:
        return cw.Dashboard(
            self,
            "Dashboard",
            dashboard_name=self._config.stack_name,
            default_interval=Duration.hours(3),
            widgets=[
                [self._alarm_states()],
                [self._keys_found(), self._read_rate()],
                [self._throttles(), self._work()],
                [self._errors(), self._function_seconds()],
                [self._runs(), self._run_seconds(), self._run_dollars()],
                *(self._key_index.widgets() if self._key_index else []),
                *(self._sharding.widgets() if self._sharding else []),
            ],
        )

    def _alarm_states(self) -> cw.IWidget:
        return cw.AlarmStatusWidget(title="Alarms", alarms=self.alarms, width=24, height=2)

    def _keys_found(self) -> cw.IWidget:
        return graph("Keys found", [keyhop(self._config, "KeysFound", "keys")])

    def _read_rate(self) -> cw.IWidget:
        runs = cw.MathExpression(
            expression="units / PERIOD(units)",
            using_metrics={"units": keyhop(self._config, "ReadUnits", period=SLICE)},
            label="the runs, over 15 minutes",
            period=SLICE,
        )
        budget = keyhop(self._config, "ReadBudget", "budget (maxReadRate)", statistic="Maximum")
        return graph("Read units a second, and the budget", [runs, *self._tables_rates(), budget])

    def _tables_rates(self) -> list[cw.IMetric]:
        """What DynamoDB itself measures each minute, of all who read the tables."""
        return [
            cw.MathExpression(
                expression=f"table{number} / 60",
                using_metrics={
                    f"table{number}": cw.Metric(
                        namespace="AWS/DynamoDB",
                        metric_name="ConsumedReadCapacityUnits",
                        dimensions_map={"TableName": table.name},
                        statistic="Sum",
                        period=MINUTE,
                    )
                },
                label=f"{table.name}, all readers",
                period=MINUTE,
            )
            for number, table in enumerate(self._config.tables)
        ]

    def _throttles(self) -> cw.IWidget:
        namespace = self._config.stack_name
        by_reason = cw.SearchExpression(
            expression=(
                f'SEARCH(\'{{"{namespace}",service,Reason}} MetricName="Throttles" '
                f"service=\"{SERVICE}\"', 'Sum', 60)"
            ),
            label=" ",
            period=MINUTE,
        )
        return graph("Throttles, by DynamoDB's reason", [by_reason], stacked=True)

    def _work(self) -> cw.IWidget:
        return graph(
            "Slices, requests and retries",
            [
                keyhop(self._config, "Slices", "slices"),
                keyhop(self._config, "Retries", "retries"),
            ],
            right=[keyhop(self._config, "Requests", "requests (right)")],
        )

    def _errors(self) -> cw.IWidget:
        errors: list[cw.IMetric] = [
            function.metric_errors(label=name, period=MINUTE, statistic="Sum")
            for name, function in self._functions.items()
        ]
        refused = self._functions["ScanSegments"].metric_throttles(
            label="ScanSegments: no concurrency left", period=MINUTE, statistic="Sum"
        )
        return graph("Errors of the functions", [*errors, refused])

    def _function_seconds(self) -> cw.IWidget:
        scan = self._functions["ScanSegments"]
        at_once = scan.metric(
            "ConcurrentExecutions",
            label="workers at once (right)",
            period=MINUTE,
            statistic="Maximum",
        )
        longest: list[cw.IMetric] = [
            cw.MathExpression(
                expression=f"milliseconds{name} / 1000",
                using_metrics={
                    f"milliseconds{name}": function.metric_duration(
                        period=MINUTE, statistic="Maximum"
                    )
                },
                label=name,
                period=MINUTE,
            )
            for name, function in self._functions.items()
        ]
        return graph("Longest invocation, seconds", longest, right=[at_once])

    def _runs(self) -> cw.IWidget:
        period = Duration.minutes(5)
        return graph(
            "Runs",
            [
                self._executions(f"Executions{end}", period)
                for end in ("Started", "Succeeded", "Failed", "TimedOut", "Aborted")
            ],
            width=8,
        )

    def _run_seconds(self) -> cw.IWidget:
        seconds = keyhop(self._config, "RunSeconds", "seconds", statistic="Maximum")
        return graph("Duration of a run, seconds", [seconds], width=8)

    def _run_dollars(self) -> cw.IWidget:
        dollars = keyhop(self._config, "RunDollars", "dollars", statistic="Maximum")
        return graph("Cost of a run, dollars", [dollars], width=8)
