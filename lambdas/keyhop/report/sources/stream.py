"""The stream (R): the writes to a table in the last minutes.

The service allows two readers for each shard ("DynamoDB Streams"), and the user's readers come
first. So a shard gets up to two requests a second, and the read ends if a shard refuses because of
its readers. The next shard to read is always the one that is furthest behind in time, so a read
that is cut off has covered about the same time of each shard.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError, ParamValidationError

from keyhop.dynamodb.refusals import error_code
from keyhop.dynamodb.throttling import is_throttling
from keyhop.dynamodb.values import Key
from keyhop.report.facts import Absent, Shown, StreamFacts, TableFacts
from keyhop.report.findings import Spent
from keyhop.report.sources.absence import FAILURES, STREAM_ARN, Looked, why_absent
from keyhop.report.sources.traffic import Record, Traffic, moment_of
from keyhop.wording import counted

ACTIONS: Mapping[str, tuple[str, ...]] = {
    "dynamodb:DescribeStream": (STREAM_ARN,),
    "dynamodb:GetShardIterator": (STREAM_ARN,),
    "dynamodb:GetRecords": (STREAM_ARN,),
}
DOLLARS_PER_READ = 0.02 / 100_000
"""The price of a GetRecords (DynamoDB pricing, us-east-1, 2026-08) above the free ones."""

PAUSE_SECONDS = 0.5
"""The time between two requests to a shard."""
AFTER_REFUSAL_SECONDS = 2.0
QUIET_PAGES = 4
"""The number of consecutive empty pages after which an open shard counts as read. It may take
several requests to reach records (API Reference, GetRecords)."""
PAGE_RECORDS = 1000
MOST_RECORDS = 200_000
MOST_SECONDS = 120.0
"""The time after which a read ends although there are more records."""


@dataclass(slots=True, eq=False)
class _Shard:
    """A shard that is being read.

    Attributes:
        reached: The time in epoch seconds up to which it has been read.
        ready: The time of the clock from which on it can have another request.
        quiet: The number of consecutive empty pages.
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
    """The read ended before it reached the beginning of the window in each shard."""


def look(
    client: Any | Absent,
    table: TableFacts,
    now: float,
    seconds: float,
    show: Callable[[Key], Shown],
    *,
    place: Callable[[Key], float | None] | None = None,
    listeners: Sequence[Callable[[Record], None]] = (),
    most_records: int = MOST_RECORDS,
    most_seconds: float = MOST_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Looked[StreamFacts]:
    """Return the writes of the last `seconds`, without waiting for more.

    Args:
        client: The client of boto3 for DynamoDB Streams.
        table: The table.
        now: The time in epoch seconds.
        seconds: The seconds to look back.
        show: Writes a key.
        place: Finds the hash place of a key (places.Places); None without places.
        listeners: Receive each record, with values; they must not keep any of them.
        most_records: The number of records after which the read ends.
        most_seconds: The time after which the read ends.
        clock: A monotonic clock.
        pause: Waits for some seconds.
    """
    if table.stream is None:
        return Looked(
            Absent(
                "the table has no stream",
                "turn one on, preferably with new and old images, and run the report again later",
            )
        )
    if isinstance(client, Absent):
        return Looked(client)
    traffic = Traffic(table.partition, table.sort)
    reader = _StreamReader(client, table.stream, now - seconds, now, clock, pause)
    try:
        for shard, record in reader.records(most_records, most_seconds):
            traffic.take(record, shard)
            for listen in listeners:
                listen(record)
    except _Crowded:
        absent = Absent(
            "the stream's shards already have as many readers as they allow",
            "run the report again at another time; it does not slow down other readers",
        )
        return Looked(absent, reader.spent)
    except _TooMuch:
        absent = Absent(
            f"its {counted(len(reader.shards), 'shard')} could not be read within "
            f"{most_seconds:g} seconds",
            "run the report at another time, or with a shorter --stream",
        )
        return Looked(absent, reader.spent)
    except FAILURES as error:
        titles = {action.rpartition(":")[2]: action for action in ACTIONS}
        action = titles.get(getattr(error, "operation_name", ""), "")
        return Looked(why_absent(error, "the stream", action), reader.spent)
    view = table.stream_view or ""
    facts = traffic.facts(now - seconds, reader.covered, view, show, place, reader.split_shards)
    return Looked(facts, reader.spent)


class _StreamReader:
    """Reads the records of a stream in [began, ended), in approximate order.

    Attributes:
        shards: The shards that were read, by id.
    """

    def __init__(
        self,
        client: Any,
        stream: str,
        began: float,
        ended: float,
        clock: Callable[[], float],
        pause: Callable[[float], None],
    ) -> None:
        self.shards: dict[str, _Shard] = {}
        self._client = client
        self._stream = stream
        self._began, self._ended = began, ended
        self._clock, self._pause = clock, pause
        self._descriptions: dict[str, Mapping[str, Any]] = {}
        self._page_count = 0
        self._request_count = 0
        self._finds_times = True

    @property
    def spent(self) -> Spent:
        dollars = self._page_count * DOLLARS_PER_READ
        return Spent(0.0, self._page_count + self._request_count, dollars, 0.0)

    @property
    def split_shards(self) -> int:
        """Return the number of shards whose parent has another child as well.

        Many have observed that a split of a partition shows in this way. It is not documented.
        """
        parents = [shard.get("ParentShardId") for shard in self._descriptions.values()]
        return sum(bool(parent) and parents.count(parent) > 1 for parent in parents)

    @property
    def covered(self) -> float:
        """Return the seconds in which as many records are written as were read.

        The shards of a read that was cut off have not reached the same time.
        """
        shards = [shard for shard in self.shards.values() if shard.records]
        rate = sum(shard.records / max(1.0, shard.reached - self._began) for shard in shards)
        window = self._ended - self._began
        return min(window, sum(shard.records for shard in shards) / rate) if rate else window

    def records(self, most_records: int, most_seconds: float) -> Iterator[tuple[str, Record]]:
        """Yield each record with the id of its shard.

        Raises:
            _Crowded: A shard has too many readers.
            _TooMuch: The time was too short.
            Exception: Any error of the client.
        """
        self._descriptions = {shard["ShardId"]: shard for shard in self._describe()}
        parents = {shard.get("ParentShardId") for shard in self._descriptions.values()}
        waiting: list[_Shard] = []
        for id_, shard_description in self._descriptions.items():
            if id_ not in parents:
                parent = self._parent(shard_description.get("ParentShardId"))
                waiting += [self._shard(id_), *parent]
        deadline = self._clock() + most_seconds
        count = 0
        while waiting and count < most_records and self._clock() < deadline:
            shard = self._next(waiting)
            page, is_over = self._page(shard)
            if page and shard.records == 0:
                waiting += self._parent(shard.parent)
            shard.records += len(page)
            count += len(page)
            if is_over:
                shard.reached = self._ended
                waiting.remove(shard)
            yield from ((shard.id, record) for record in page)
        if any(shard.reached <= self._began for shard in waiting):
            raise _TooMuch

    def _describe(self) -> Iterator[Mapping[str, Any]]:
        where: dict[str, str] = {}
        while True:
            self._request_count += 1
            response = self._client.describe_stream(StreamArn=self._stream, **where)
            description = response["StreamDescription"]
            yield from description["Shards"]
            if not (last := description.get("LastEvaluatedShardId")):
                return
            where = {"ExclusiveStartShardId": last}

    def _shard(self, id_: str) -> _Shard:
        parent = self._descriptions[id_].get("ParentShardId")
        self.shards[id_] = _Shard(id_, parent, self._began)
        return self.shards[id_]

    def _parent(self, id_: str | None) -> Iterable[_Shard]:
        """Return the parent, unless it no longer exists or is already being read.

        It may contain the beginning of the window.
        """
        return [self._shard(id_)] if id_ in self._descriptions and id_ not in self.shards else []

    def _next(self, waiting: Sequence[_Shard]) -> _Shard:
        """Return the shard that is furthest behind among those that are ready.

        Wait for the first one if none is ready.
        """
        now = self._clock()
        ready = [shard for shard in waiting if shard.ready <= now]
        if not ready:
            first = min(waiting, key=lambda shard: shard.ready)
            self._pause(first.ready - now)
            return first
        return min(ready, key=lambda shard: (shard.reached, shard.id))

    def _page(self, shard: _Shard) -> tuple[list[Record], bool]:
        """Return the next page's records in the window, and whether these are the last ones."""
        if shard.iterator is None:
            shard.iterator = self._iterator(shard.id)
        self._page_count += 1
        try:
            answer = self._client.get_records(ShardIterator=shard.iterator, Limit=PAGE_RECORDS)
        except ClientError as error:
            is_crowded = error_code(error) == "LimitExceededException"
            if not is_crowded and not is_throttling(error.response):
                raise
            shard.refusals += 1
            if shard.refusals > 1:
                raise _Crowded from error
            shard.ready = self._clock() + AFTER_REFUSAL_SECONDS
            return [], False
        shard.iterator = answer.get("NextShardIterator")
        shard.ready = self._clock() + PAUSE_SECONDS
        page = answer["Records"]
        shard.quiet = 0 if page else shard.quiet + 1
        if page:
            shard.reached = max(shard.reached, min(self._ended, moment_of(page[-1])))
        records = [record for record in page if self._began <= moment_of(record) < self._ended]
        is_late = bool(page) and moment_of(page[-1]) >= self._ended
        return records, shard.iterator is None or is_late or shard.quiet >= QUIET_PAGES

    def _iterator(self, shard: str) -> str:
        """Return an iterator at the beginning of the window.

        It is at the first remaining record if the service, or boto3, cannot find a time.
        """
        parameters = {"StreamArn": self._stream, "ShardId": shard}
        if self._finds_times:
            try:
                return self._begin(
                    **parameters,
                    ShardIteratorType="AT_TIMESTAMP",
                    Timestamp=datetime.fromtimestamp(self._began, UTC),
                )
            except ParamValidationError:
                self._finds_times = False
            except ClientError as error:
                if error_code(error) != "ValidationException":
                    raise
                self._finds_times = False
        return self._begin(**parameters, ShardIteratorType="TRIM_HORIZON")

    def _begin(self, **where: Any) -> str:
        self._request_count += 1
        return str(self._client.get_shard_iterator(**where)["ShardIterator"])
