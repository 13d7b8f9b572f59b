"""Functions that follow the streams of tables: their permissions, and their failure queue."""

from collections.abc import Sequence

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from .config import Table
from .permissions import Owner, acknowledge, allow, table_arn

FAILURE_DAYS = 14
"""The maximum time for which a queue can keep a message."""

BY_LAMBDA = (
    "Lambda itself invokes it with the records of a stream, and sends what fails again and again "
    "to the failure queue."
)
"""The reason why such a function has no dead letter target."""


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
