"""The stream (R): what was written to a table in the last minutes, as its stream tells.

A look is a guest: two readers a shard are what the service promises ("DynamoDB Streams"), and the
user's own come first. So each shard is asked twice a second at most, and a shard that refuses for
its readers ends the look. Shards are read abreast, always the one that is furthest behind in time,
so that a look that is cut off has seen about the same time of each.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError, ParamValidationError

from keyhop.dynamodb.refusals import error_code
from keyhop.dynamodb.throttling import is_throttling
from keyhop.dynamodb.values import Key
from keyhop.report.facts import Absent, Shown, StreamFacts, TableFacts
from keyhop.report.findings import Spent
from keyhop.report.sources.absence import FAILURES, STREAM_ARN, Looked, why_absent
from keyhop.report.sources.traffic import Record, Seen, Traffic, moment_of
from keyhop.wording import counted

ACTIONS: Mapping[str, tuple[str, ...]] = {
    "dynamodb:DescribeStream": (STREAM_ARN,),
    "dynamodb:GetShardIterator": (STREAM_ARN,),
    "dynamodb:GetRecords": (STREAM_ARN,),
}
DOLLARS_PER_READ = 0.02 / 100_000
"""GetRecords (DynamoDB pricing, us-east-1, 2026-08), without the free ones of a month."""

PAUSE_SECONDS = 0.5
"""Between two requests to a shard."""
AFTER_REFUSAL_SECONDS = 2.0
QUIET_PAGES = 4
"""So many empty pages in a row end an open shard. One says little: it may take several requests to
come to where records are (API Reference, GetRecords)."""
PAGE_RECORDS = 1000


@dataclass(frozen=True, slots=True)
class Limits:
    """When a look ends though there is more to read."""

    records: int = 200_000
    seconds: float = 120.0


@dataclass(slots=True, eq=False)
class _Shard:
    """One that is being read. reached: up to when it has been, epoch seconds. ready: from when on
    it may be asked again, by the clock.
    """

    id: str
    parent: str | None
    reached: float
    iterator: str | None = None
    ready: float = 0.0
    quiet: int = 0
    records: int = 0
    refusals: int = 0


class _Crowded(Exception):
    """A shard has too many readers."""


class _TooMuch(Exception):
    """The look was over before each shard was at the window's begin."""


def look(
    client: Any | Absent,
    table: TableFacts,
    now: float,
    seconds: float,
    show: Callable[[Key], Shown],
    *,
    place: Callable[[Key], float | None] | None = None,
    listeners: Sequence[Callable[[Record], None]] = (),
    limits: Limits | None = None,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Looked[StreamFacts]:
    """What was written in the last `seconds`; it does not wait for more.

    client: boto3's of dynamodbstreams. place: finds the hash place of a key (places.Places, which
    counts by itself what that costs); None if it is not to be found out. listeners: who else wants
    each record, with values; nothing of it may be kept.
    """
    if table.stream is None:
        return Looked(
            Absent(
                "the table has no stream",
                "turn one on, best with new and old images, and look again after a while",
            )
        )
    if isinstance(client, Absent):
        return Looked(client)
    traffic = Traffic(table.partition, table.sort)
    reading = _Reading(client, table.stream, now - seconds, now, limits or Limits(), clock, pause)
    try:
        for shard, record in reading.records():
            traffic.take(record, shard)
            for listen in listeners:
                listen(record)
    except _Crowded:
        told = Absent(
            "the stream's shards have readers enough, and refused one more",
            "look again at another time; the report reads no stream that others wait for",
        )
        return Looked(told, reading.spent)
    except _TooMuch:
        told = Absent(
            f"its {counted(len(reading.shards), 'shard')} could not be read within "
            f"{reading.limits.seconds:g} seconds",
            "look at another time, or with a shorter --stream",
        )
        return Looked(told, reading.spent)
    except FAILURES as error:
        titles = {action.rpartition(":")[2]: action for action in ACTIONS}
        action = titles.get(getattr(error, "operation_name", ""), "")
        return Looked(why_absent(error, "the stream", action), reading.spent)
    seen = Seen(now - seconds, reading.covered, table.stream_view or "", reading.splits)
    return Looked(traffic.facts(seen, show, place), reading.spent)


@dataclass(slots=True)
class _Reading:
    """The records of a stream of [began, ended), in about their order."""

    client: Any
    stream: str
    began: float
    ended: float
    limits: Limits
    clock: Callable[[], float]
    pause: Callable[[float], None]
    by_id: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    shards: dict[str, _Shard] = field(default_factory=dict)
    pages: int = 0
    others: int = 0
    by_time: bool = True

    @property
    def spent(self) -> Spent:
        return Spent(0.0, self.pages + self.others, self.pages * DOLLARS_PER_READ, 0.0)

    @property
    def splits(self) -> int:
        """Shards whose parent has another child too. That a split of a partition shows so is
        observed by many, and nowhere promised.
        """
        parents = [one.get("ParentShardId") for one in self.by_id.values()]
        return sum(bool(parent) and parents.count(parent) > 1 for parent in parents)

    @property
    def covered(self) -> float:
        """Seconds in which as many records are written as were read: of a look that was cut off,
        shards are not equally far.
        """
        read = [one for one in self.shards.values() if one.records]
        rate = sum(one.records / max(1.0, one.reached - self.began) for one in read)
        whole = self.ended - self.began
        return min(whole, sum(one.records for one in read) / rate) if rate else whole

    def records(self) -> Iterator[tuple[str, Record]]:
        """Each with its shard's id; raises _Crowded, _TooMuch, and what the client raises."""
        self.by_id = {one["ShardId"]: one for one in self._describe()}
        parents = {one.get("ParentShardId") for one in self.by_id.values()}
        waiting: list[_Shard] = []
        for id_, one in self.by_id.items():
            if id_ not in parents:
                waiting += [self._shard(id_), *self._parent(one.get("ParentShardId"))]
        deadline = self.clock() + self.limits.seconds
        count = 0
        while waiting and count < self.limits.records and self.clock() < deadline:
            shard = self._next(waiting)
            page, is_over = self._page(shard)
            if page and shard.records == 0:
                waiting += self._parent(shard.parent)
            shard.records += len(page)
            count += len(page)
            if is_over:
                shard.reached = self.ended
                waiting.remove(shard)
            yield from ((shard.id, record) for record in page)
        if any(one.reached <= self.began for one in waiting):
            raise _TooMuch

    def _describe(self) -> Iterator[Mapping[str, Any]]:
        where: dict[str, str] = {}
        while True:
            self.others += 1
            told = self.client.describe_stream(StreamArn=self.stream, **where)
            told = told["StreamDescription"]
            yield from told["Shards"]
            if not (last := told.get("LastEvaluatedShardId")):
                return
            where = {"ExclusiveStartShardId": last}

    def _shard(self, id_: str) -> _Shard:
        parent = self.by_id[id_].get("ParentShardId")
        self.shards[id_] = _Shard(id_, parent, self.began)
        return self.shards[id_]

    def _parent(self, id_: str | None) -> Iterable[_Shard]:
        """The parent, if it is still there and not being read; it may hold the window's begin."""
        return [self._shard(id_)] if id_ in self.by_id and id_ not in self.shards else []

    def _next(self, waiting: Sequence[_Shard]) -> _Shard:
        """The shard that is furthest behind of those that may be asked; waits for the first."""
        now = self.clock()
        ready = [one for one in waiting if one.ready <= now]
        if not ready:
            first = min(waiting, key=lambda one: one.ready)
            self.pause(first.ready - now)
            return first
        return min(ready, key=lambda one: (one.reached, one.id))

    def _page(self, shard: _Shard) -> tuple[list[Record], bool]:
        """The records of the window in the next page, and whether the shard has no more of it."""
        if shard.iterator is None:
            shard.iterator = self._iterator(shard.id)
        self.pages += 1
        try:
            answer = self.client.get_records(ShardIterator=shard.iterator, Limit=PAGE_RECORDS)
        except ClientError as error:
            is_crowded = error_code(error) == "LimitExceededException"
            if not is_crowded and not is_throttling(error.response):
                raise
            shard.refusals += 1
            if shard.refusals > 1:
                raise _Crowded from error
            shard.ready = self.clock() + AFTER_REFUSAL_SECONDS
            return [], False
        shard.iterator = answer.get("NextShardIterator")
        shard.ready = self.clock() + PAUSE_SECONDS
        page = answer["Records"]
        shard.quiet = 0 if page else shard.quiet + 1
        if page:
            shard.reached = max(shard.reached, min(self.ended, moment_of(page[-1])))
        wanted = [one for one in page if self.began <= moment_of(one) < self.ended]
        is_late = bool(page) and moment_of(page[-1]) >= self.ended
        return wanted, shard.iterator is None or is_late or shard.quiet >= QUIET_PAGES

    def _iterator(self, shard: str) -> str:
        """At the window's begin; where the service, or boto3, knows no begin by time, at the first
        record that is left.
        """
        wanted = {"StreamArn": self.stream, "ShardId": shard}
        if self.by_time:
            try:
                return self._begin(
                    **wanted,
                    ShardIteratorType="AT_TIMESTAMP",
                    Timestamp=datetime.fromtimestamp(self.began, UTC),
                )
            except ParamValidationError:
                self.by_time = False
            except ClientError as error:
                if error_code(error) != "ValidationException":
                    raise
                self.by_time = False
        return self._begin(**wanted, ShardIteratorType="TRIM_HORIZON")

    def _begin(self, **where: Any) -> str:
        self.others += 1
        return str(self.client.get_shard_iterator(**where)["ShardIterator"])
