"""The reads of all sources of a report but the sample: each returns facts, or why not.

The command reads the sources concurrently in one process, ReportKeys in separate states.
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
from keyhop.report.sources.metrics import Own
from keyhop.report.sources.places import UNITS, Places
from keyhop.report.sources.traffic import Record

T = TypeVar("T")

SHARE_FOR_PLACES = 0.15
"""The part of a report's read units for hash places; the sample gets the rest."""


def total(spent: Sequence[Spent]) -> Spent:
    """Return the total cost of several reads.

    The time is that of the longest, as they run concurrently.
    """
    return Spent(
        sum(part.rru for part in spent),
        sum(part.requests for part in spent),
        sum(part.dollars for part in spent),
        max((part.seconds for part in spent), default=0.0),
    )


@dataclass(slots=True)
class Looks:
    """The reads of one table's sources.

    Attributes:
        connection: The connection to DynamoDB.
        asked: The input of the report.
        at: The time of the report in epoch seconds.
        ours: What Keyhop did to the table within the time that the metrics cover.
        facts: The facts of the control plane.
        table: The table.
        shower: The writer of keys.
        spent: The cost of each read.
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
        """Read the control plane, which every report needs.

        Raises:
            CannotStart: The table cannot be described.
        """
        self.facts, spent, self.table = control_plane.look(self.connection, self.asked.table)
        self.shower = Shower(self.table.identity, self.asked.show_keys)
        self.spent.append(spent)
        return self.facts

    def metrics(self) -> MetricFacts | Absent:
        """Read CloudWatch over the time of --since."""
        client = client_beside("cloudwatch", self.connection.endpoint)
        return self._taken(
            metrics.look(client, self.facts, self.at, self.asked.since_seconds, self.ours)
        )

    def insights(self) -> InsightFacts | Absent:
        """Read Contributor Insights, if it is on and the input includes it."""
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
        """Return a finder of the hash places of keys; None if no data may be read.

        It may use a part of the report's read units. They are in `Places.usage`, and not in
        `spent`.
        """
        if self.asked.control_plane_only:
            return None
        units = self.asked.read_units
        maximum = UNITS if units is None else min(UNITS, SHARE_FOR_PLACES * units)
        return Places(
            self.connection, self.table, units=maximum, max_read_rate=self.asked.max_read_rate
        )

    def stream(
        self,
        listeners: Sequence[Callable[[Record], None]] = (),
        place: Callable[[Key], float | None] | None = None,
    ) -> StreamFacts | Absent:
        """Read the last records of the stream, as many minutes as the input says."""
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
