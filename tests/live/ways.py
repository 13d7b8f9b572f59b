"""What local databases and the local emulator do otherwise: the one place that knows.

All checks are written for AWS. Where a laptop cannot do as AWS does, the difference has a name
here, and only endpoints on this machine get it: nothing is let through on a real account.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from keyhop.dynamodb.endpoint import Endpoint

from tests.live.report import Refused


@dataclass(frozen=True, slots=True)
class Ways:
    """How the other side behaves; AWS is the default.

    empty_page_units: what a page without items is charged. keeps_tags: tables have tags that can be
    read. has_table_id: DescribeTable tells tables of one name apart. lacks: what it cannot do, as
    checks need it (catalogue.py), and why. stack_makes_tables: tables of the stack are where the
    others are. settle_seconds: after loading, until eventually consistent reads see it all.
    poll_seconds: between two looks at something that is on its way. last_write_seconds: after their
    tables are gone, until functions that were at work have noticed it.
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
    """By where the requests go; raises Refused if some leave this machine and some do not."""
    local = {Endpoint(url=url).is_loopback for url in endpoints}
    if local == {True, False}:
        raise Refused(
            "Some endpoints are on this machine and some are not: set both AWS_ENDPOINT_URL and "
            "AWS_ENDPOINT_URL_DYNAMODB to a laptop cloud, or neither."
        )
    return LAPTOP if local == {True} else AWS
