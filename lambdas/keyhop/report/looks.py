"""The looks of a report at all its sources but the data itself: each gives facts, or why not.

The command takes them beside each other in one process, ReportKeys in states of their own.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.values import Key
from keyhop.report.facts import Absent, InsightFacts, MetricFacts, StreamFacts, TableFacts
from keyhop.report.findings import Spent
from keyhop.report.request import ReportInput
from keyhop.report.shown import Shower
from keyhop.report.sources import control_plane, insights, metrics, stream
from keyhop.report.sources.absence import Looked, client_beside
from keyhop.report.sources.metric_facts import Own
from keyhop.report.sources.places import UNITS, Places
from keyhop.report.sources.traffic import Record

T = TypeVar("T")

SHARE_FOR_PLACES = 0.15
"""Of what a report may read; the sample gets the rest."""


def total(spent: Sequence[Spent]) -> Spent:
    """What several looks cost together; the longest of them, as they are beside each other."""
    return Spent(
        sum(one.rru for one in spent),
        sum(one.requests for one in spent),
        sum(one.dollars for one in spent),
        max((one.seconds for one in spent), default=0.0),
    )


@dataclass(slots=True)
class Looks:
    """Of one table. at: when, epoch seconds. ours: what Keyhop itself has done to the table within
    the time that the metrics cover.
    """

    connection: Connection
    asked: ReportInput
    at: float = field(default_factory=time.time)
    ours: Sequence[Own] = ()
    facts: TableFacts = field(init=False)
    table: Table = field(init=False)
    shower: Shower = field(init=False)
    spent: list[Spent] = field(default_factory=list)

    def begin(self) -> TableFacts:
        """The control plane, without which there is no report; raises CannotStart and its kin."""
        self.facts, spent, self.table = control_plane.look(self.connection, self.asked.table)
        self.shower = Shower(self.table.identity, self.asked.show_keys)
        self.spent.append(spent)
        return self.facts

    def metrics(self) -> MetricFacts | Absent:
        """CloudWatch, over --since."""
        client = client_beside("cloudwatch", self.connection.endpoint)
        return self._taken(
            metrics.look(client, self.facts, self.at, self.asked.since_seconds, self.ours)
        )

    def insights(self) -> InsightFacts | Absent:
        """Contributor Insights, where it is on and asked for."""
        if not self.asked.insights:
            remedy = "" if self.facts.insights is None else "--insights"
            return Absent("Contributor Insights was not asked", remedy)
        client = client_beside("cloudwatch", self.connection.endpoint)
        hours = self.asked.since_seconds / 3600
        return self._taken(
            insights.look(
                client, self.connection, self.facts, self.at, self.shower.shown, hours=hours
            )
        )

    def places(self) -> Places | None:
        """What finds the hash places of keys, for a part of what may be read; None if no data may.

        What it has read is part of `Places.usage`, and not of `spent`.
        """
        if self.asked.control_plane_only:
            return None
        units = self.asked.read_units
        most = UNITS if units is None else min(UNITS, SHARE_FOR_PLACES * units)
        return Places(
            self.connection, self.table, units=most, max_read_rate=self.asked.max_read_rate
        )

    def stream(
        self,
        listeners: Sequence[Callable[[Record], None]] = (),
        place: Callable[[Key], float | None] | None = None,
    ) -> StreamFacts | Absent:
        """What the stream has of the last minutes, as many as are asked for."""
        if self.asked.stream is None:
            return Absent("the stream was not read", "--stream 15m" if self.facts.stream else "")
        return self._taken(
            stream.look(
                client_beside("dynamodbstreams", self.connection.endpoint),
                self.facts,
                self.at,
                self.asked.stream,
                self.shower.shown,
                listeners=listeners,
                place=place,
            )
        )

    def _taken(self, looked: Looked[T]) -> T | Absent:
        self.spent.append(looked.spent)
        return looked.facts
