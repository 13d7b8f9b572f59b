"""A deployment in a VPC without a route to the internet."""

from collections.abc import Callable

from tests.live.deployed import Deployed, find
from tests.live.fixtures import Fixture
from tests.live.report import Report, expect_equal
from tests.live.runs import Runs, whole_run
from tests.live.stack import OwnStack


def check_vpc(
    stack: OwnStack, table: Fixture, runs_of: Callable[[Deployed], Runs], report: Report
) -> None:
    """Deploy, list the keys of a table, and destroy: the deletion of functions in a VPC takes up
    to half an hour. runs_of: makes the runs of a new deployment.
    """
    report.check("vpc-run", lambda: enclosed_run(stack, table, runs_of))


def enclosed_run(stack: OwnStack, table: Fixture, runs_of: Callable[[Deployed], Runs]) -> str:
    """All keys, by functions that reach the services through the VPC's endpoints only."""
    outputs = stack.deploy()
    told = whole_run(runs_of(find(outputs["StateMachineArn"], stack.name)), table, None)
    left = stack.destroy()
    expect_equal(left, [outputs["ResultsBucketName"]], "what is left of the stack")
    return told
