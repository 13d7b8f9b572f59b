"""A feed of the stream pump: the stream of one mapping, read shard by shard into lanes."""

import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from local.lane import Lane, Shared, Source
from local.mapping import Filter, Record, Settings, lane_of, record_of

REFRESH_SECONDS = 0.5
"""Between two looks at the mappings, and at the shards of a stream."""

PAGE = 1000
MOST_WAITING = 4000
"""Records of a shard that are read ahead of the function, or two batches for each lane if more."""


@dataclass
class Shard:
    """A shard that is read. iterator: None at its end; last: sequence number of the last record."""

    id: str
    start: str
    iterator: str | None
    lanes: list[Lane] = field(default_factory=list)
    last: str | None = None

    @property
    def waiting(self) -> int:
        """Records that were read and are not done."""
        return sum(lane.waiting for lane in self.lanes)


class Feed:
    """Reads for one mapping. One thread calls `read`; the others look on under the lock."""

    def __init__(self, streams: Any, shared: Shared, settings: Settings, accepts: Filter) -> None:
        self.source = Source(settings)
        self.filter = accepts
        self.shards: dict[str, Shard] = {}
        self._streams = streams
        self._shared = shared
        self._passed_over: set[str] = set()
        self._since: float | None = None
        self._complete = False

    @property
    def settings(self) -> Settings:
        """The mapping as it is now."""
        return self.source.settings

    @property
    def lanes(self) -> list[Lane]:
        """The lanes of all shards."""
        return [lane for shard in self.shards.values() for lane in shard.lanes]

    @property
    def waiting(self) -> int:
        """Records that were read and are not done."""
        return sum(lane.waiting for lane in self.lanes)

    def read(self) -> int | None:
        """Read each shard once, unless paused; how many records, or None if more has to be seen.

        Raises botocore's errors.
        """
        self._open()
        if self._shared.paused:
            return 0
        found = sum(self._read_shard(shard) for shard in list(self.shards.values()))
        return found if found or self._complete else None

    def _open(self) -> None:
        """Find new shards; children only when their parent is done."""
        due, since = is_due(self._since)
        if self._complete and not due:
            return
        first = self._since is None
        found = self._shards(self.settings.stream)
        put_off: set[str] = set()
        for shard in found:
            id_, parent = shard["ShardId"], shard.get("ParentShardId", "")
            if id_ in self.shards or id_ in self._passed_over:
                continue
            start = self.settings.starting_position if first else "TRIM_HORIZON"
            if start == "LATEST" and "EndingSequenceNumber" in shard["SequenceNumberRange"]:
                self._passed_over.add(id_)
            elif parent in put_off or not self._is_through(parent):
                put_off.add(id_)
            else:
                iterator = self._iterator(id_, ShardIteratorType=start)
                with self._shared.lock:
                    self.shards[id_] = Shard(id_, start, iterator)
        self._complete = not put_off
        self._since = since

    def _shards(self, stream: str) -> list[dict[str, Any]]:
        """All shards of a stream, parents first."""
        shards: list[dict[str, Any]] = []
        start: dict[str, str] = {}
        while True:
            told = self._streams.describe_stream(StreamArn=stream, **start)["StreamDescription"]
            shards += told["Shards"]
            if "LastEvaluatedShardId" not in told:
                break
            start = {"ExclusiveStartShardId": told["LastEvaluatedShardId"]}
        return _parents_first(shards)

    def _iterator(self, shard: str, **where: str) -> str:
        told = self._streams.get_shard_iterator(
            StreamArn=self.settings.stream, ShardId=shard, **where
        )
        return str(told["ShardIterator"])

    def _read_shard(self, shard: Shard) -> int:
        """Read a page, deal it to the lanes; returns how many records it had."""
        if shard.iterator is None or not self._has_room(shard):
            return 0
        page = self._page(shard, shard.iterator)
        now = self._shared.clock()
        stream = self.settings.stream
        records = [record_of(raw, stream, shard.id, now) for raw in page["Records"]]
        if records:
            shard.last = records[-1].sequence
            self._deal(shard, records)
        shard.iterator = page.get("NextShardIterator")
        if shard.iterator is None:
            self._complete = False
            for lane in shard.lanes:
                lane.close()
        return len(records)

    def _has_room(self, shard: Shard) -> bool:
        """Whether to read on; makes the lanes anew, once all is done, if their number changed."""
        settings = self.settings
        with self._shared.lock:
            waiting = shard.waiting
            if len(shard.lanes) != settings.lanes:
                if waiting:
                    return False
                for lane in shard.lanes:
                    lane.close()
                shard.lanes = [
                    Lane(self._shared, self.source, shard.id, n) for n in range(settings.lanes)
                ]
            return waiting < max(MOST_WAITING, 2 * settings.batch_size * settings.lanes)

    def _page(self, shard: Shard, iterator: str) -> Any:
        """One GetRecords; if the iterator is too old, once more where it was."""
        try:
            return self._streams.get_records(ShardIterator=iterator, Limit=PAGE)
        except ClientError as error:
            if error_code(error) == "ExpiredIteratorException" and shard.last:
                where = {
                    "ShardIteratorType": "AFTER_SEQUENCE_NUMBER",
                    "SequenceNumber": shard.last,
                }
            elif error_code(error) == "ExpiredIteratorException":
                where = {"ShardIteratorType": shard.start}
            elif error_code(error) == "TrimmedDataAccessException":
                where = {"ShardIteratorType": "TRIM_HORIZON"}
            else:
                raise
        renewed = self._iterator(shard.id, **where)
        return self._streams.get_records(ShardIterator=renewed, Limit=PAGE)

    def _deal(self, shard: Shard, records: list[Record]) -> None:
        hands: dict[int, list[Record]] = defaultdict(list)
        for record in records:
            if self.filter.passes(record.text):
                hands[lane_of(record.item, len(shard.lanes))].append(record)
        with self._shared.lock:
            passed = sum(map(len, hands.values()))
            self._shared.tally.update(filtered=len(records) - passed)
            for number, hand in hands.items():
                shard.lanes[number].deal(hand)

    def _is_through(self, shard: str) -> bool:
        """Whether a shard is done; so is one that is no longer there."""
        known = self.shards.get(shard)
        return known is None or (known.iterator is None and not known.waiting)


def _parents_first(shards: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Shards in an order in which each comes after its parent."""
    parents = {shard["ShardId"]: shard.get("ParentShardId") for shard in shards}

    def depth(shard: dict[str, Any]) -> int:
        above, parent = 0, shard.get("ParentShardId")
        while parent in parents:
            above, parent = above + 1, parents[parent]
        return above

    return sorted(shards, key=depth)


def is_due(since: float | None) -> tuple[bool, float]:
    """Whether to look again, and when one has looked then."""
    now = time.monotonic()
    if since is None or now - since >= REFRESH_SECONDS:
        return True, now
    return False, since


def error_code(error: ClientError) -> str:
    """The service's name of an error."""
    return str(error.response.get("Error", {}).get("Code", ""))
