"""The logs and metrics of the functions. They never contain a key of a table."""

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aws_lambda_powertools import Logger, Tracer
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext
from keyhop.dynamodb.usage import Usage
from keyhop.jobs.request import table_name
from keyhop.report.findings import Severity

Handler = Callable[[dict[str, Any], LambdaContext], Any]
UNKNOWN_REASON = "Unknown"


def make_logger() -> Logger:
    """Return the logger of a function, with times that Lambda can read and the log level of the
    deployment.

    By default a Powertools logger takes Lambda's own level, which must remain INFO: Lambda treats a
    metric, which is a line without a level, as INFO, and drops lines below its own level.
    """
    logger = Logger(use_rfc3339=True)
    logging.getLogger(logger.name).setLevel(os.environ.get("POWERTOOLS_LOG_LEVEL", "INFO"))
    return logger


logger = make_logger()
"""The logger of all functions of a process."""


def function(handler: Handler) -> Handler:
    """Decorate a function: add the context to its log, and trace each invocation as a whole.

    Requests are not traced, because a worker sends hundreds per second from several threads.
    Metrics count them.
    """
    tracer = Tracer(auto_patch=False)
    traced = tracer.capture_lambda_handler(handler, capture_response=False)
    decorated: Handler = logger.inject_lambda_context(traced)
    return decorated


def report(
    table: str,
    about: Mapping[str, Any] | None = None,
    *,
    by: Mapping[str, str] | None = None,
    of_all: bool = False,
    zeros: bool = False,
    **values: float,
) -> None:
    """Print metrics of a table immediately, because an invocation may take a quarter of an hour.

    Zeros are left out, because a metric is paid for by the hours in which it has values.

    Args:
        table: A name or an ARN, of which the name is used.
        about: Properties by which a search of the log finds the metrics.
        by: Further dimensions.
        of_all: Whether to write the metrics for all tables together as well, which alarms need.
        zeros: Whether to write zeros, for a value that ends an earlier one.
        values: The metrics by their names.
    """
    line = EphemeralMetrics()
    by_table = {"table": table_name(table), **(by or {})}
    if of_all:
        line.add_dimensions(service=line.service or "", **by_table)
    else:
        for name, value in by_table.items():
            line.add_dimension(name, value)
    for name, number in values.items():
        if number or zeros:
            line.add_metric(name=name, unit=MetricUnit.Count, value=number)
    for name, detail in (about or {}).items():
        line.add_metadata(name, detail)
    if line.metric_set:
        line.flush_metrics()


def report_throttles(table: str, throttles: Mapping[str, int], of_all: bool = False) -> None:
    """Report throttles by the reasons of the service."""
    for reason, times in throttles.items():
        report(table, by={"Reason": reason or UNKNOWN_REASON}, of_all=of_all, Throttles=times)


@dataclass(slots=True)
class Reading:
    """The reads of a function for a run. Each unit is reported once, also after an error."""

    usage: Usage
    _reported: Usage = field(default_factory=Usage)

    def report(
        self,
        table: str,
        run: str | None,
        *,
        keys: int = 0,
        done: int = 0,
        planned: int = 0,
        allowed: float = 0.0,
        failed: int = 0,
    ) -> None:
        """Report the usage since the last report, and the results.

        Args:
            run: The run's id; None if it does not exist yet.
            done, planned: The numbers of segments that were finished, and planned.
            allowed: Read units per second of all workers of the run together; 0 for no limit.
            keys, failed: The numbers of keys that were found, and that failed.
        """
        usage = self.usage.copy()
        new, self._reported = usage - self._reported, usage
        report(
            table,
            {"requests": new.requests, "retries": new.retries} | ({"run": run} if run else {}),
            KeysFound=keys,
            ReadUnits=new.read_units,
            WriteUnits=new.write_units,
            SegmentsDone=done,
            SegmentsPlanned=planned,
            AllowedRate=allowed,
            KeysFailed=failed,
        )
        report_throttles(table, new.throttles, of_all=True)


def report_findings(table: str, counts: Mapping[Severity, int], new_high: int) -> None:
    """Report findings by severity, and the number of new ones of severity high."""
    for severity, number in counts.items():
        report(table, by={"Severity": severity}, zeros=True, Findings=number)
    report(table, of_all=True, NewHighFindings=new_high)


def report_rekey(destination: str, **figures: float) -> None:
    """Report metrics of a re-key, under the name of its destination and for all together.

    RecordsReplicated  source keys that a batch of Replicate has processed
    ReplicationLag     seconds: the age of the newest record of a batch when it was done
    RecordsGivenUp     records that Replicate has sent to its failure queue itself
    ClaimsLeft         remaining items that need a place which another item has
    ClaimsSettled      claims that were settled
    Unmappable         items without a form under the other key
    Stragglers         writes that bypassed the router
    Differences        missing, surplus and changed items that RekeyVerify did not correct
    PauseSeconds       how long writes have waited in a cutover or rollback that has ended
    CutoversAborted    1 when a cutover was aborted
    """
    report(destination, None, by=None, of_all=True, zeros=False, **figures)


def report_sharding(table: str, usage: Usage) -> None:
    """Report the requests of a sharded table, with throttles by the reasons of the service."""
    counters = usage.counters
    report(
        table,
        ShardsAdded=counters["shards_added"],
        ShardsRemoved=counters["shards_removed"],
        RacesLost=counters["races_lost"],
        HotKeyThrottles=counters["hot_throttles"],
        ItemsMoved=counters["moves"],
    )
    report(table, of_all=True, KeysAtMaximum=counters["at_maximum"])
    report_throttles(table, usage.throttles)
