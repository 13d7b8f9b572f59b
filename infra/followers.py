"""Functions that follow the streams of tables: their permissions, failure queue and metrics."""

from collections.abc import Sequence

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cw
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from .config import Table
from .monitoring import FIVE_MINUTES, Monitoring
from .permissions import Owner, acknowledge, allow, table_arn

FAILURE_DAYS = 14
"""The maximum time for which a queue can keep a message."""

BY_LAMBDA = (
    "Lambda itself invokes it with the records of a stream, and sends what fails again and again "
    "to the failure queue."
)
"""Why such a function has no dead letter target."""

BEHIND_MINUTES = 15
BEHIND_PERIODS = 3
"""The number of periods of five minutes after which a high iterator age is not a burst."""


def failure_queue(scope: Construct) -> sqs.Queue:
    """Return a queue for the records that a function has given up."""
    queue = sqs.Queue(
        scope,
        "Failures",
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=Duration.days(FAILURE_DAYS),
    )
    acknowledge(
        queue,
        "It is the dead letter queue itself: what lies in it is looked at by a person, and "
        "nothing receives from it again and again.",
        "AwsSolutions-SQS3",
        "Serverless-SQSRedrivePolicy",
    )
    return queue


def allow_following(function: lambda_.Function, tables: Sequence[Table]) -> None:
    """Allow Lambda to invoke a function with the records of the tables' streams."""
    allow_reading_streams(function, tables)
    allow(
        function,
        "LetLambdaFindTheStreams",
        "dynamodb:ListStreams",
        "*",
        wildcard="A list of streams knows no resources: DynamoDB takes no other than *.",
    )


def allow_giving_up(function: lambda_.Function, queue: sqs.Queue) -> None:
    """Allow Lambda and the function itself to send failed records to the queue."""
    handed = "HandOverRecordsThatFailAgainAndAgain"
    allow(function, handed, "sqs:SendMessage", queue.queue_arn)


def allow_reading_streams(owner: Owner, tables: Sequence[Table]) -> None:
    """Allow reading all streams of the tables, also earlier ones."""
    allow(
        owner,
        "ReadTheStreamsOfTheTables",
        "dynamodb:DescribeStream GetRecords GetShardIterator",
        *(f"{table_arn(owner, table)}/stream/*" for table in tables),
        wildcard="A stream is named by the moment at which it was turned on, which may be "
        "after the deployment, and again and again.",
    )


def iterator_age(function: lambda_.Function, label: str | None = None) -> cw.IMetric:
    """Return how far the function is behind the streams, in milliseconds."""
    return Monitoring.metric_of(
        function, "IteratorAge", label, statistic="Maximum", period=FIVE_MINUTES
    )


def waiting_in(queue: sqs.Queue, label: str | None = None) -> cw.IMetric:
    """Return the number of messages in a failure queue."""
    name = "ApproximateNumberOfMessagesVisible"
    return Monitoring.metric_of(queue, name, label, statistic="Maximum", period=FIVE_MINUTES)


def alarm_if_behind(
    watch: Monitoring, name: str, function: lambda_.Function, description: str
) -> None:
    """Add an alarm for a function that is BEHIND_MINUTES or more behind a stream."""
    milliseconds = BEHIND_MINUTES * 60 * 1000
    watch.alarm(name, iterator_age(function), milliseconds, description, BEHIND_PERIODS)
