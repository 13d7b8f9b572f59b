"""All differences between AWS and the local databases and emulator.

All checks are written for AWS. Each difference of a laptop has a name here, and applies to
endpoints on this machine only: on a real account no check is relaxed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from keyhop.dynamodb.endpoint import Endpoint

from tests.live.report import Refused


@dataclass(frozen=True, slots=True)
class Ways:
    """The behaviour of the service; the defaults are those of AWS.

    Attributes:
        empty_page_units: The read units of a page without items.
        keeps_tags: Whether the tags of tables can be read.
        has_table_id: Whether DescribeTable distinguishes tables with the same name.
        lacks: The capabilities (see catalogue.py) that are missing, with the reason.
        stack_makes_tables: Whether the stack's tables are in the same database as the others.
        settle_seconds: The time until eventually consistent reads show all loaded items.
        poll_seconds: The pause between two polls.
        last_write_seconds: The time until running functions notice that their table is gone.
    """

    where: str
    empty_page_units: float = 0.5
    keeps_tags: bool = True
    has_table_id: bool = True
    lacks: Mapping[str, str] = field(default_factory=dict)
    stack_makes_tables: bool = True
    settle_seconds: float = 15.0
    poll_seconds: float = 2.0
    last_write_seconds: float = 15.0


AWS = Ways("AWS")

LAPTOP = Ways(
    "a laptop: DynamoDB Local and an emulator",
    empty_page_units=0.0,  # DynamoDB Local and dynalite charge nothing for it
    keeps_tags=False,  # "Tagging is not currently supported in DynamoDB Local"
    has_table_id=False,
    lacks={
        "redrive": "ministack has no RedriveExecution",
        "glue": "ministack's Athena knows no Glue table over links",
        "cloudwatch": "ministack makes no metrics of logs, and raises no alarms",
        "kms": "DynamoDB Local does not encrypt",
        "refusals": "ministack goes on deleting what a custom resource, that refuses, depends on",
        "scaling": "DynamoDB Local has no auto scaling",
        "schedules": "ministack starts nothing by a schedule",
        "vpc": "ministack's functions are in no VPC",
        "throttles": "DynamoDB Local throttles nothing",
        "speed": "the functions share the laptop's processor with all else",
        "vectors": "DynamoDB Local has no vector indexes",
        "bulk puts": "DynamoDB Local has no bulk puts",
    },
    stack_makes_tables=False,  # DynamoDB is DynamoDB Local, which CloudFormation does not know
    settle_seconds=0.0,
    poll_seconds=0.2,
    last_write_seconds=2.0,
)


def ways_of(endpoints: Iterable[str]) -> Ways:
    """Return how the service at these endpoints behaves; raise Refused if only some are local."""
    loopback = {Endpoint(url=url).is_loopback for url in endpoints}
    if loopback == {True, False}:
        raise Refused(
            "Some endpoints are on this machine and some are not: set both AWS_ENDPOINT_URL and "
            "AWS_ENDPOINT_URL_DYNAMODB to a laptop cloud, or neither."
        )
    return LAPTOP if loopback == {True} else AWS
