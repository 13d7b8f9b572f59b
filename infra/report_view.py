"""What is watched of reports on keys: findings by severity, the latest report itself, an alarm."""

from aws_cdk import aws_cloudwatch as cw
from aws_cdk import aws_lambda as lambda_
from keyhop.report.findings import SEVERITIES

from .job import Job
from .machines import Machine
from .monitoring import (
    ANY_TABLE,
    DAY,
    FIVE_MINUTES,
    WIDTH,
    Monitoring,
    errors_of,
    graph,
)
from .views import CAUSE, ends_of, needs_a_person

WIDGET_HEIGHT = 14


def of_reports(
    watch: Monitoring,
    machine: Machine,
    job: Job,
    functions: dict[str, lambda_.Function],
    widget: lambda_.Function,
) -> None:
    """The reports of the table that is shown."""
    watch.alarm(
        "NewHighFinding",
        watch.ours("NewHighFindings", period=DAY),
        1,
        "A report found something of severity high that the report before it on the same table did "
        "not have. The dashboard shows the latest report of each table, with what to do; the page "
        "is in the results bucket, in reports/TABLE/report.html.",
    )
    needs_a_person(
        watch,
        "FailedReportKeys",
        "ReportKeys",
        "A report on the keys of a table did not come to its end, so the latest one is older. "
        f"{CAUSE}.",
    )
    # A run tells the number of each severity, zeros as well: once a report, not once a minute.
    found = [
        watch.ours(
            "Findings",
            severity,
            period=DAY,
            statistic="Maximum",
            table=ANY_TABLE,
            Severity=severity,
        )
        for severity in SEVERITIES
    ]
    watch.row(
        graph("Reports on keys: findings, by severity", found),
        graph(
            "Reports on keys: executions, and errors",
            ends_of(machine, "reports that {}"),
            [
                *errors_of(functions, "{}: errors (right)", FIVE_MINUTES),
                *ends_of(job, "samples that {} (right)"),
            ],
        ),
    )
    # CloudWatch calls it as whoever looks at the dashboard, and asks him first: he needs the right
    # to invoke it, and a policy of the function's own would give that to nobody else.
    watch.row(
        cw.CustomWidget(
            title=f"The latest report on the keys of {ANY_TABLE}",
            function_arn=widget.function_arn,
            params={"table": ANY_TABLE},
            update_on_refresh=True,
            update_on_resize=False,
            update_on_time_range_change=False,
            width=WIDTH,
            height=WIDGET_HEIGHT,
        )
    )
