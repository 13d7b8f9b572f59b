"""Reports on the keys of tables: ReportKeys, for the tables that have the setting `report`.

The dashboard shows findings by severity and the latest report itself; there is one alarm.
"""

from collections.abc import Sequence

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_cloudwatch as cw
from aws_cdk import aws_lambda as lambda_
from constructs import Construct
from keyhop.report.findings import SEVERITIES

from .config import Table, which_tables
from .deployment import KeyEnumeration
from .followers import allow_reading_streams
from .functions import which_limit, which_worker
from .machines import Machine, start_regularly
from .monitoring import ANY_TABLE, CAUSE, DAY, FIVE_MINUTES, WIDTH, Monitoring
from .permissions import (
    ALL_RUNS,
    IDS_OF_RUNS,
    REPORTS,
    Owner,
    allow,
    allow_decrypting,
    allow_describing,
    allow_finding_objects,
    allow_reading_metrics,
    table_arns,
)

WIDGET_HEIGHT = 14
DEFINITION = "report"
SHOWING_MB = 512
SHOWING_SECONDS = 30
"""Short, because the dashboard's viewer waits."""

BY_A_DASHBOARD = (
    "CloudWatch invokes it for a viewer of the dashboard, and shows its answer there: nothing "
    "is invoked asynchronously, which is all that a dead letter target serves."
)
OF_ANY_INDEX = "A report is on a table with all its indexes, which are not known at synth."
OF_EACH_TABLE = "There is a folder for each table, named by the table."


class KeyReports(Construct):
    """Reports on those tables of a KeyEnumeration that have `report`.

    It has the state machine ReportKeys with the function of its steps, ExamineTable; SampleKeys,
    the job that reads the sample, with its worker SampleTable; ShowReport, from which the dashboard
    gets the latest report; and the schedules. They only read the tables. Raises ConfigError.
    """

    def __init__(self, scope: Construct, construct_id: str, keys: KeyEnumeration) -> None:
        super().__init__(scope, construct_id)
        self._config = config = keys.config
        self._make = keys.runs.make
        self._tables = config.report_tables
        self._bucket = bucket = keys.results.bucket
        keys.is_extended_by(self, "report", self._tables)
        self._which = {"KEYHOP_BUCKET": bucket.bucket_name, **which_tables(self._tables)}
        self.examine_table = self._examine_table()
        self.show_report = self._show_report()
        plan_run = keys.runs.job.functions["PlanRun"]
        allow(
            plan_run,
            "SeeWhichAttributeEndsItems",
            "dynamodb:DescribeTimeToLive",
            *table_arns(plan_run, self._tables),
        )
        self.samples = keys.runs.another_job(self, "SampleKeys", "report", self._sample_table())
        self.machine = self._report_keys()
        start_regularly(
            self,
            "Report",
            self.machine,
            {
                table.label: (table.report.schedule, {**table.report.given, "table": table.given})
                for table in self._tables
                if table.report
            },
            "A report on the keys of {}",
            "EventBridge tries for a day to start a report; one that is missed is made up for "
            "by the next, and each says when it was made.",
        )
        self._show(keys.watch)
        keys.say(
            (
                "ReportKeysArn",
                self.machine.state_machine_arn,
                'Started with {"table": "..."} it reports the problems of the keys of a table',
            )
        )

    def _sample_table(self) -> lambda_.Function:
        function = self._make.add(
            self,
            "SampleTable",
            "Reads random segments of a table and its indexes, for their sizes and shapes",
            self._which,
            **self._make.of_a_worker,
        )
        _allow_reading_items(function, self._tables)
        return function

    def _examine_table(self) -> lambda_.Function:
        function = self._make.add(
            self,
            "ExamineTable",
            "Asks what a report rests upon, measures large collections, judges, writes the page",
            {**self._which, **which_worker(self._config), **which_limit(self._config)},
        )
        _allow_reading_items(function, self._tables)
        _allow_asking(function, self._tables)
        runs = self._bucket.arn_for_objects(ALL_RUNS)
        keep = "KeepWhatWasSeenAndThePage"
        allow(function, keep, "s3:GetObject PutObject", runs, wildcard=IDS_OF_RUNS)
        allow_finding_objects(function, self._bucket, ALL_RUNS, REPORTS)
        latest = self._bucket.arn_for_objects(REPORTS)
        why = "CompareWithTheLatestReportAndReplaceIt"
        allow(function, why, "s3:GetObject PutObject", latest, wildcard=OF_EACH_TABLE)
        return function

    def _show_report(self) -> lambda_.Function:
        function = self._make.add(
            self,
            "ShowReport",
            "Shows the latest report on a table in the dashboard",
            self._which,
            memory_mb=SHOWING_MB,
            timeout_seconds=SHOWING_SECONDS,
            no_dead_letters=BY_A_DASHBOARD,
        )
        latest = self._bucket.arn_for_objects(REPORTS)
        allow(function, "ReadTheLatestReport", "s3:GetObject", latest, wildcard=OF_EACH_TABLE)
        allow_finding_objects(function, self._bucket, REPORTS)
        return function

    def _report_keys(self) -> Machine:
        """Return the machine: plan, all sources in parallel, probes, advice, the page."""
        examine, samples = self.examine_table.function_arn, self.samples.state_machine_arn
        names = {"ExamineTableArn": examine, "SampleKeysArn": samples}
        machine = Machine(self, "ReportKeys", self._config, DEFINITION, names)
        allow(machine, "TakeEachStep", "lambda:InvokeFunction", examine)
        self.samples.is_waited_for_by(machine, "Sample")
        return machine

    def _show(self, watch: Monitoring) -> None:
        """Add alarms for all reports, and widgets for the selected table."""
        functions = {
            "ExamineTable": self.examine_table,
            "SampleTable": self.samples.worker,
            "ShowReport": self.show_report,
        }
        watch.alarm(
            "NewHighFinding",
            watch.ours("NewHighFindings", period=DAY),
            1,
            "A report found something of severity high that the report before it on the same table "
            "did not have. The dashboard shows the latest report of each table, with what to do; "
            "the page is in the results bucket, in reports/TABLE/report.html.",
        )
        watch.needs_a_person(
            "FailedReportKeys",
            "ReportKeys",
            "A report on the keys of a table did not come to its end, so the latest one is older. "
            f"{CAUSE}.",
        )
        # Each report has one value per severity, also if it is zero.
        findings = [
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
            watch.graph("Reports on keys: findings, by severity", findings),
            watch.graph(
                "Reports on keys: executions, and errors",
                watch.ends_of(self.machine, "reports that {}"),
                [
                    *watch.errors_of(functions, "{}: errors (right)", FIVE_MINUTES),
                    *watch.ends_of(self.samples, "samples that {} (right)"),
                ],
            ),
        )
        # CloudWatch invokes it, after a confirmation, with the permissions of the dashboard's
        # viewer. A policy of the function would give that permission to no other caller.
        watch.row(
            cw.CustomWidget(
                title=f"The latest report on the keys of {ANY_TABLE}",
                function_arn=self.show_report.function_arn,
                params={"table": ANY_TABLE},
                update_on_refresh=True,
                update_on_resize=False,
                update_on_time_range_change=False,
                width=WIDTH,
                height=WIDGET_HEIGHT,
            )
        )


def _allow_reading_items(owner: Owner, tables: Sequence[Table]) -> None:
    """Allow reading whole items, because reports are about their sizes and shapes."""
    allow_describing(owner, tables)
    allow_decrypting(owner, tables)
    arns = table_arns(owner, tables)
    allow(
        owner,
        "ReadASampleOfTheItems",
        "dynamodb:Scan",
        *(each for arn in arns for each in (arn, f"{arn}/index/*")),
        wildcard=OF_ANY_INDEX,
    )
    allow(owner, "ProbeCollectionsForTheirLengths", "dynamodb:Query", *arns)


def _allow_asking(owner: Owner, tables: Sequence[Table]) -> None:
    """Allow requests about the settings, metrics, hot keys and latest writes of tables."""
    arns = table_arns(owner, tables)
    allow(owner, "LookAtTheSettingsOfTheTables", "dynamodb:DescribeTimeToLive", *arns)
    allow(
        owner,
        "SeeWhetherContributorInsightsAreOn",
        "dynamodb:DescribeContributorInsights",
        *(each for arn in arns for each in (arn, f"{arn}/index/*")),
        wildcard=OF_ANY_INDEX,
    )
    allow_reading_metrics(owner, "SeeHowMuchIsReadWrittenAndThrottled", "GetMetricData")
    rules = Stack.of(owner).format_arn(
        service="cloudwatch",
        resource="insight-rule",
        resource_name="DynamoDBContributorInsights-*",
        region="*",  # a table given by its ARN may be in another one
        arn_format=ArnFormat.SLASH_RESOURCE_NAME,
    )
    allow(
        owner,
        "SeeWhichKeysAreAccessedAndThrottledMost",
        "cloudwatch:GetInsightRuleReport",
        rules,
        wildcard="DynamoDB names the rules by table, index and the moment they were turned on.",
    )
    allow_reading_streams(owner, tables)
