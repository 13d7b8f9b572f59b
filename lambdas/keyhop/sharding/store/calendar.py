"""The periods of a table's buckets, which all users of the table have in common.

They are in the metadata, in the item of the table itself. A change applies from a day in the
future: no client has written items of that day yet, and by then every client has read the change.
"""

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from botocore.exceptions import ClientError

from keyhop.dynamodb.refusals import CONDITION_FAILED, error_code
from keyhop.errors import BrokenPromise, CannotStart
from keyhop.sharding.key.buckets import Bucket, Calendar
from keyhop.sharding.store.metadata import Metadata

CACHE_SECONDS = 300.0
"""The maximum age of a cached calendar."""
NOTICE_SECONDS = 3600.0
"""The minimum time before a change may affect a write; clocks may differ by nearly as much."""
_EPOCH = datetime(1970, 1, 1)


@dataclass(slots=True)
class CalendarStore:
    """A table's calendar; for any number of threads. `first` is the period if none is stored yet,
    and users have agreed on the time's attribute, unit and maximum seconds in the future.
    """

    metadata: Metadata
    first: Bucket
    agreed: str
    ahead: float
    _known: Calendar | None = None
    _until: float = 0.0

    def get(self, *, register: bool = False) -> Calendar:
        """Return the calendar. register: store it if there is none yet."""
        clock = self.metadata.requests.clock
        calendar, until = self._known, self._until
        if calendar is not None and clock.monotonic() < until:
            return calendar
        requested = clock.monotonic()
        calendar = self._read()
        if calendar is None and register:
            calendar = self._write(Calendar.of(self.first), None)
        if calendar is None:
            return Calendar.of(self.first)
        self._known, self._until = calendar, requested + CACHE_SECONDS
        return calendar

    def now(self) -> datetime:
        return _EPOCH + timedelta(seconds=self.metadata.requests.clock.time())

    def latest(self, margin: float = 0.0) -> datetime:
        """Return the latest time that may be written now. margin: seconds for clock differences."""
        return self.now() + timedelta(seconds=self.ahead + margin)

    def change(self, bucket: Bucket, since: date) -> Calendar:
        """Change the period from a day on. Raise CannotStart if the day is too early."""
        self._until = 0.0
        calendar = self.get(register=True)
        if (since, bucket) == calendar.changes[-1]:
            return calendar
        earliest = self.latest(NOTICE_SECONDS)
        if datetime.combine(since, datetime.min.time()) < earliest:
            day = earliest.date() + timedelta(days=1)
            raise CannotStart(
                f"Buckets cannot change on {since}: items of that day may have been written. The "
                f"first day on which they can is {day}."
            )
        self._known = self._write(calendar.changed(since, bucket), calendar)
        return self._known

    def _read(self) -> Calendar | None:
        requests, key = self.metadata.requests, self.metadata.item.key
        item = requests.call(
            "get_item", TableName=self.metadata.table, Key=key, ConsistentRead=True
        ).get("Item", {})
        if "calendar" not in item:
            return None
        try:
            calendar, agreed = Calendar.parse(item["calendar"]["S"]), item["calendar_of"]["S"]
        except (KeyError, ValueError) as error:
            raise BrokenPromise(
                "The calendar in the shard metadata cannot be read: a newer version of Keyhop, "
                "or another program, wrote it."
            ) from error
        if agreed != self.agreed:
            raise CannotStart(
                f"The table's times are {agreed!r}, not {self.agreed!r}: all users of a table must "
                "have the same time attribute, time_unit and ahead."
            )
        return calendar

    def _write(self, after: Calendar, before: Calendar | None) -> Calendar:
        """Store a calendar; return it, or the one that another process has stored first."""
        was = {} if before is None else {":was": {"S": before.text}}
        try:
            self.metadata.requests.call(
                "update_item",
                TableName=self.metadata.table,
                Key=self.metadata.item.key,
                UpdateExpression="SET #c = :c, #of = :of",
                ConditionExpression="#c = :was" if was else "attribute_not_exists(#c)",
                ExpressionAttributeNames={"#c": "calendar", "#of": "calendar_of"},
                ExpressionAttributeValues={
                    ":c": {"S": after.text},
                    ":of": {"S": self.agreed},
                    **was,
                },
            )
        except ClientError as error:
            if error_code(error) != CONDITION_FAILED:
                raise
            current = self._read()
            if current is None or (before is not None and current != after):
                raise CannotStart("Another process has changed the buckets.") from error
            return current
        return after
