"""How fine a table's buckets of time are, as all users of the table have agreed.

It is in the metadata, in the item of the table itself. A change is for a day that is so far ahead
that nobody has written anything of it yet, and that everybody has read of the change by then.
"""

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from botocore.exceptions import ClientError

from keyhop.dynamodb.refusals import CONDITION_FAILED, error_code
from keyhop.errors import BrokenPromise, CannotStart
from keyhop.sharding.key.buckets import Bucket, Calendar
from keyhop.sharding.store.metadata import Metadata

CACHE_SECONDS = 300.0
"""For so long it is believed."""
NOTICE_SECONDS = 3600.0
"""Before anything of a changed day may be written; clocks may differ by nearly as much."""
_EPOCH = datetime(1970, 1, 1)


@dataclass(slots=True)
class CalendarStore:
    """For any number of threads. first: how fine buckets are if nobody has agreed upon it yet.

    agreed: attribute and unit of the time, and for how many seconds it may lie ahead of now.
    """

    metadata: Metadata
    first: Bucket
    agreed: str
    ahead: float
    _known: Calendar | None = None
    _until: float = 0.0

    def get(self, *, register: bool = False) -> Calendar:
        """What holds. register: if there is nothing yet, agree upon it."""
        clock = self.metadata.requests.clock
        known, until = self._known, self._until
        if known is not None and clock.monotonic() < until:
            return known
        sent = clock.monotonic()
        known = self._read()
        if known is None and register:
            known = self._write(Calendar.of(self.first), None)
        if known is None:
            return Calendar.of(self.first)
        self._known, self._until = known, sent + CACHE_SECONDS
        return known

    def now(self) -> datetime:
        return _EPOCH + timedelta(seconds=self.metadata.requests.clock.time())

    def latest(self, margin: float = 0.0) -> datetime:
        """The latest time that may be written now; margin: seconds by which clocks may differ."""
        return self.now() + timedelta(seconds=self.ahead + margin)

    def change(self, bucket: Bucket, since: date) -> Calendar:
        """Another granularity from a day on. Raises CannotStart if that is too soon."""
        self._until = 0.0
        known = self.get(register=True)
        if (since, bucket) == known.changes[-1]:
            return known
        earliest = self.latest(NOTICE_SECONDS)
        if datetime.combine(since, datetime.min.time()) < earliest:
            day = earliest.date() + timedelta(days=1)
            raise CannotStart(
                f"Buckets cannot change on {since}: items of that day may have been written. The "
                f"first day on which they can is {day}."
            )
        self._known = self._write(known.changed(since, bucket), known)
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
                "The calendar in the shard metadata is not readable: a newer version has written "
                "it, or somebody else."
            ) from error
        if agreed != self.agreed:
            raise CannotStart(
                f"The table's times are {agreed!r}, not {self.agreed!r}: all users of a table must "
                "have the same time attribute, time_unit and ahead."
            )
        return calendar

    def _write(self, after: Calendar, before: Calendar | None) -> Calendar:
        """What holds then: this, or what somebody else has written first."""
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
                raise CannotStart("Somebody else has changed the buckets meanwhile.") from error
            return current
        return after
