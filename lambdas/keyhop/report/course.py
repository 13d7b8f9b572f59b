"""The course of one report: the sources that are read, the reasons for the others, and the report.

The command follows the course in one process, where it reads sources concurrently. ReportKeys
follows it in separate states, which keep the facts in files (steps.py). The sample itself is
a separate run (task.py).
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.values import Key
from keyhop.report.candidates import Listener, Streamed, candidate, evaluated, listening
from keyhop.report.estimate import Estimate
from keyhop.report.facts import (
    Absent,
    CodeFacts,
    Facts,
    InsightFacts,
    MetricFacts,
    RequestFacts,
    SampleFacts,
    StreamFacts,
    TableFacts,
)
from keyhop.report.findings import LOOKED, Report, Spent
from keyhop.report.forms import Shower
from keyhop.report.pages.document import pictures
from keyhop.report.request import THROTTLED, ReportInput
from keyhop.report.rules.judge import judge, not_assessed
from keyhop.report.sources import control_plane, insights, metrics, stream
from keyhop.report.sources.absence import Looked, client_beside, why_not
from keyhop.report.sources.metrics import Own
from keyhop.report.sources.places import UNITS, Places
from keyhop.report.sources.traffic import Record, moment_of, write_units

T = TypeVar("T")

SHARE_FOR_PLACES = 0.15
"""The part of a report's read units for hash places; the sample gets the rest."""


@dataclass(slots=True)
class Course:
    """The course of one report.

    Attributes:
        connection: The connection to DynamoDB.
        wishes: The input of the report.
        called: Returns the caller's name of a field of the input.
        at: The time of the report in epoch seconds.
        ours: What Keyhop did to the table within the time that the metrics cover.
        facts: The facts of the control plane.
        table: The table.
        shower: The writer of keys.
        spent: The cost of each read.
    """

    connection: Connection
    wishes: ReportInput
    called: Callable[[str], str]
    at: float = field(default_factory=time.time)
    ours: Sequence[Own] = ()
    facts: TableFacts = field(init=False)
    table: Table = field(init=False)
    shower: Shower = field(init=False)
    spent: list[Spent] = field(default_factory=list)

    def begin(self) -> TableFacts:
        """Read the control plane, which every report needs.

        Raises:
            CannotStart: The table cannot be described.
        """
        self.facts, spent, self.table = control_plane.look(self.connection, self.wishes.table)
        self.shower = Shower(self.table.identity, self.wishes.show_keys)
        self.spent.append(spent)
        return self.facts

    def metrics(self) -> MetricFacts | Absent:
        """Read CloudWatch over the time of the input."""
        client = client_beside("cloudwatch", self.connection.endpoint)
        return self._taken(
            metrics.look(client, self.facts, self.at, self.wishes.since_seconds, self.ours)
        )

    def insights(self) -> InsightFacts | Absent:
        """Read Contributor Insights, if it is on and the input includes it."""
        if not self.wishes.insights:
            remedy = "" if self.facts.insights is None else "--insights"
            return Absent("Contributor Insights was not read", remedy)
        client = client_beside("cloudwatch", self.connection.endpoint)
        hours = self.wishes.since_seconds / 3600
        return self._taken(
            insights.look(
                client, self.connection, self.facts, self.at, self.shower.shown, hours=hours
            )
        )

    def why_no_data(self, metrics: MetricFacts | Absent) -> Absent | None:
        """Return why no data of the table is read; None if it is read."""
        if self.wishes.control_plane_only:
            remedy = f"without {self.called('control_plane_only')}"
            return Absent("the data was not read", remedy, self.wishes.read_units or 0.0)
        return why_not(metrics, self.at, THROTTLED in self.wishes.accept)

    def price(self) -> dict[str, Any]:
        """Return the maximum cost of the sample, as an execution's estimate has it.

        If every partition key is read, it follows from the table's size; it is None while the
        service does not know that.
        """
        table, prices, units = self.facts, self.connection.prices, self.wishes.read_units
        if self.wishes.control_plane_only:
            units = 0.0
        elif units is None and table.items:
            units = max(table.bytes / 8192, table.items * 0.5 if table.sort else 0.0)
        return {
            "table": self.wishes.table,
            "read_units": units,
            "dollars": None if units is None else prices.dollars(units, 0.0),
            "items": table.items,
            "bytes": table.bytes,
        }

    def places(self) -> Places:
        """Return a finder of the hash places of keys, which reads data.

        It may use a part of the report's read units. They are in `Places.usage`, and not in
        `spent`.
        """
        units = self.wishes.read_units
        maximum = UNITS if units is None else min(UNITS, SHARE_FOR_PLACES * units)
        return Places(
            self.connection, self.table, units=maximum, max_read_rate=self.wishes.max_read_rate
        )

    def stream(
        self,
        listeners: Sequence[Callable[[Record], None]] = (),
        place: Callable[[Key], float | None] | None = None,
    ) -> tuple[StreamFacts | Absent, list[Streamed | None]]:
        """Read the last records of the stream, for the time that the input gives.

        Returns:
            The facts, and the figures for each candidate key of the input, if it has any.
        """
        if self.wishes.stream is None:
            remedy = "--stream 15m" if self.facts.stream else ""
            return Absent("the stream was not read", remedy), [None] * len(self.wishes.candidates)
        candidates = [Listener(candidate(text)) for text in self.wishes.candidates]
        if candidates:
            listeners = [*listeners, listening(candidates, moment_of, write_units)]
        facts = self._taken(
            stream.look(
                client_beside("dynamodbstreams", self.connection.endpoint),
                self.facts,
                self.at,
                self.wishes.stream,
                self.shower.shown,
                listeners=listeners,
                place=place,
            )
        )
        return facts, [each.facts() if each.writes else None for each in candidates]

    def add_reads(self, read_units: float, requests: int) -> None:
        """Add reads of the table's data to `spent`."""
        dollars = self.connection.prices.dollars(read_units)
        self.spent.append(Spent(read_units, requests, dollars, 0.0))

    def report(
        self,
        *,
        metrics: MetricFacts | Absent,
        insights: InsightFacts | Absent,
        stream: StreamFacts | Absent,
        sample: SampleFacts | Absent,
        code: CodeFacts | Absent,
        requests: RequestFacts | Absent,
        streamed: Sequence[Streamed | None],
        seconds: float,
    ) -> Report:
        """Judge the facts of all sources, without any request.

        Args:
            streamed: The figures of the stream for each candidate key.
            seconds: The time that the report took.
        """
        facts = Facts(
            at=self.at,
            table=self.facts,
            metrics=metrics,
            insights=insights,
            stream=stream,
            sample=sample,
            code=code,
            requests=requests,
            peak_writes=self.wishes.peak_writes,
            prices=self.connection.prices,
        )
        candidates = tuple(map(candidate, self.wishes.candidates))
        facts = replace(facts, candidates=evaluated(candidates, streamed, facts))
        return Report(
            table=_table(facts.table),
            at=facts.at,
            spent=replace(total(self.spent), seconds=seconds),
            estimates={name: estimate.to_json() for name, estimate in _estimates(sample)},
            findings=tuple(judge(facts)),
            pictures=pictures(facts),
            sources=dict(_sources(facts)),
            not_assessed=not_assessed(facts),
            show_keys=self.wishes.show_keys,
            options=self.wishes.settings(),
        )

    def _taken(self, looked: Looked[T]) -> T | Absent:
        self.spent.append(looked.spent)
        return looked.facts


def total(spent: Sequence[Spent]) -> Spent:
    """Return the total cost of several reads, without the time."""
    return Spent(
        sum(part.rru for part in spent),
        sum(part.requests for part in spent),
        sum(part.dollars for part in spent),
        0.0,
    )


def _table(table: TableFacts) -> dict[str, Any]:
    return {
        "name": table.name,
        "arn": table.arn,
        "region": table.region,
        "partition_key": table.partition,
        "sort_key": table.sort,
        "items": table.items,
        "bytes": table.bytes,
        "billing": "on demand" if table.on_demand else "provisioned",
        "class": table.table_class,
        "indexes": [index.name for index in table.indexes],
        "stream": table.stream_view,
        "ttl": table.ttl,
    }


def _estimates(sample: SampleFacts | Absent) -> Iterator[tuple[str, Estimate]]:
    if isinstance(sample, Absent):
        return
    single = {
        "keys": sample.keys,
        "items_per_key": sample.mean_items,
        "share_in_unseen_collections": sample.unseen,
        "large_items": sample.large,
        "gini": sample.gini,
    }
    yield from ((name, estimate) for name, estimate in single.items() if estimate is not None)
    for quantile, estimate in sample.length.items():
        yield f"items_per_key_p{100 * quantile:g}", estimate
    for items, estimate in sample.beyond.items():
        yield f"share_in_collections_of_{items:g}", estimate
    for quantile, estimate in sample.item_bytes.items():
        yield f"item_bytes_p{100 * quantile:g}", estimate


def _sources(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield for each source that it was read, or why not, in words."""
    yield "control plane", LOOKED
    named = {
        "sample": facts.sample,
        "metrics": facts.metrics,
        "insights": facts.insights,
        "stream": facts.stream,
        "code": facts.code,
        "requests": facts.requests,
    }
    for name, source in named.items():
        if not isinstance(source, Absent):
            yield name, LOOKED
        else:
            yield name, f"{source.reason}; {source.remedy}" if source.remedy else source.reason
