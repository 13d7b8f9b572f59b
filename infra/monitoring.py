"""The dashboard, the alarms, and the topic that they tell; what is watched is in views.py."""

from collections.abc import Sequence

from aws_cdk import Aws, Duration
from aws_cdk import aws_cloudwatch as cw
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra.config import Config
from infra.metrics import Alarm, View
from infra.permissions import acknowledge


class Monitoring(Construct):
    """One dashboard and one topic for all views."""

    def __init__(
        self, scope: Construct, construct_id: str, config: Config, views: Sequence[View]
    ) -> None:
        super().__init__(scope, construct_id)
        self._config = config
        topic = actions.SnsAction(self._topic())
        alarms = [self._alarm(alarm, topic) for view in views for alarm in view.alarms]
        states = cw.AlarmStatusWidget(title="Alarms", alarms=alarms, width=24, height=2)
        cw.Dashboard(
            self,
            "Dashboard",
            dashboard_name=config.stack_name,
            default_interval=Duration.hours(3),
            widgets=[[states], *([*row] for view in views for row in view.rows)],
        )

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

    def _alarm(self, what: Alarm, topic: actions.SnsAction) -> cw.Alarm:
        alarm = cw.Alarm(
            self,
            what.name,
            alarm_name=f"{self._config.stack_name}-{what.name}",
            alarm_description=what.description,
            metric=what.metric,
            threshold=what.threshold,
            evaluation_periods=what.periods,
            comparison_operator=cw.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            # Between runs there is nothing to measure.
            treat_missing_data=cw.TreatMissingData.NOT_BREACHING,
        )
        alarm.add_alarm_action(topic)
        return alarm
