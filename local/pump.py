"""The stream pump of the laptop cloud: DynamoDB Local's stream records, to the deployed functions.

It does what AWS's event source mapping does, under the settings of the mappings in ministack. How
far a mapping is, only the pump knows: another pump begins at the mapping's starting position.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from local.cloud import CREDENTIALS, REGION, Cloud
from local.feed import PAGE, Feed, error_code, is_due
from local.lane import Counts, Shared
from local.mapping import Filter, MappingRefused, Trouble, settings_of
from testing.servers import LOCAL_CREDENTIALS

IDLE_SECONDS = 0.08
SETTLING_SECONDS = 0.02
"""Between two looks at the streams; the latter while somebody waits for `settle`."""

LOOKS = 2
"""So many looks in a row have to find nothing before a pump has settled."""

NO_STREAM = "ResourceNotFoundException"
INVOKE_SECONDS = 900
INVOKE_CONNECTIONS = 64

log = logging.getLogger(__name__)


class Pump:
    """Carries stream records to functions, in threads; it can be started once.

    functions, streams, queues: boto3's clients for lambda, dynamodbstreams and sqs. clock: tells
    the age of records, and the times in messages.
    """

    def __init__(
        self,
        functions: Any,
        streams: Any,
        queues: Any,
        trouble: Trouble | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._functions = functions
        self._streams = streams
        self._shared = Shared(functions, queues, trouble or Trouble(), clock)
        self._changed = threading.Condition(self._shared.lock)
        self._feeds: dict[str, Feed] = {}
        self._problems: dict[str, str] = {}
        self._refreshed: float | None = None
        self._settling = 0
        self._quiet = 0
        self._thread = threading.Thread(target=self._run, name="pump", daemon=True)

    def __enter__(self) -> "Pump":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """End all threads; waits for functions that are at work, not for records."""
        with self._changed:
            self._shared.stopping = True
            self._notify()
        if self._thread.ident is not None:
            self._thread.join()
        for lane in self._shared.lanes:
            lane.thread.join()

    def pause(self) -> None:
        """Begin no more batches; those that are under way end. Records wait in the stream."""
        with self._changed:
            self._shared.paused = True

    def resume(self) -> None:
        """Go on after a pause."""
        with self._changed:
            self._shared.paused = False
            self._notify()

    @property
    def counts(self) -> Counts:
        """What was done so far."""
        with self._changed:
            return Counts(**self._shared.tally)

    @property
    def problems(self) -> list[str]:
        """Sentences: what the pump cannot do at this moment."""
        with self._changed:
            return list(self._problems.values())

    def settle(self, seconds: float) -> None:
        """Wait until all records are delivered, those included that the functions write by that.

        Raises TimeoutError, and RuntimeError if the pump or a mapping cannot work at all.
        """
        with self._changed:
            self._refreshed = None
            # A look that has already begun does not count.
            self._quiet = -1
            self._settling += 1
            self._changed.notify_all()
            try:
                settled = self._changed.wait_for(self._has_settled, seconds)
            finally:
                self._settling -= 1
            if not settled:
                raise TimeoutError(f"Not settled after {seconds:g} seconds: {self._told()}")

    def _has_settled(self) -> bool:
        if self._shared.failure:
            raise RuntimeError(f"The pump has failed: {self._shared.failure!r}") from (
                self._shared.failure
            )
        if not self._thread.is_alive():
            raise RuntimeError("The pump does not run.")
        refused = [self._problems[key] for key in self._problems if key.startswith("refused ")]
        if refused:
            raise RuntimeError(" ".join(refused))
        return self._quiet >= LOOKS

    def _told(self) -> str:
        parts = ["the pump is paused."] if self._shared.paused else []
        for feed in self._feeds.values():
            if feed.settings.enabled and feed.waiting:
                failures = (lane.last_failure for lane in feed.lanes if lane.waiting)
                said = next(filter(None, failures), "")
                parts.append(
                    f"{feed.waiting} records of {feed.settings.table} wait for "
                    f"{feed.settings.function}{f', last failure {said}' if said else ''}."
                )
        parts += self._problems.values()
        return " ".join(parts) or "the streams were still being read."

    def _notify(self) -> None:
        self._changed.notify_all()
        self._shared.notify()

    def _run(self) -> None:
        try:
            while not self._shared.stopping:
                found, quiet = self._look()
                with self._changed:
                    self._quiet = self._quiet + 1 if quiet else 0
                    self._changed.notify_all()
                    if found < PAGE and not self._shared.stopping:
                        self._changed.wait(SETTLING_SECONDS if self._settling else IDLE_SECONDS)
        except BaseException as error:
            self._shared.fail(error)
            with self._changed:
                self._changed.notify_all()

    def _look(self) -> tuple[int, bool]:
        """Read all there is; how many records that was, and whether nothing at all goes on."""
        with self._changed:
            due, self._refreshed = is_due(self._refreshed)
        sure = not due or self._refresh()
        found = 0
        for feed in [feed for feed in self._feeds.values() if feed.settings.enabled]:
            read = self._read(feed)
            sure = sure and read is not None
            found += read or 0
        with self._changed:
            waiting = any(f.waiting for f in self._feeds.values() if f.settings.enabled)
            quiet = sure and not found and not waiting and not self._shared.failure
            return found, quiet and not self._shared.paused

    def _refresh(self) -> bool:
        """Look what mappings there are now; False if that cannot be known."""
        try:
            pages = self._functions.get_paginator("list_event_source_mappings").paginate()
            entries = [entry for page in pages for entry in page["EventSourceMappings"]]
        except (BotoCoreError, ClientError) as error:
            self._problem("mappings", f"The mappings cannot be listed: {error}")
            self._refreshed = None
            return False
        self._problem("mappings", None)
        for entry in entries:
            self._obey(entry)
        for gone in self._feeds.keys() - {entry["UUID"] for entry in entries}:
            self._drop(gone)
        self._forget({entry["UUID"] for entry in entries})
        return True

    def _obey(self, entry: Mapping[str, Any]) -> None:
        key = f"refused {entry['UUID']}"
        try:
            settings = settings_of(entry)
            known = self._feeds.get(entry["UUID"])
            if settings is None or (known and known.settings == settings):
                return
            accepts = Filter(settings.patterns)
        except MappingRefused as error:
            self._problem(key, f"The mapping {entry['UUID']} cannot be obeyed. {error}")
            self._drop(entry["UUID"])
            return
        self._problem(key, None)
        with self._changed:
            if known:
                known.filter = accepts
                known.source.settings = settings
                self._notify()
            elif settings.enabled:
                self._feeds[settings.uuid] = Feed(self._streams, self._shared, settings, accepts)

    def _drop(self, uuid: str) -> None:
        with self._changed:
            feed = self._feeds.pop(uuid, None)
            if feed:
                feed.source.ended = True
                self._notify()

    def _forget(self, present: set[str]) -> None:
        """Leave nothing behind of mappings that are gone, and of lanes that have ended."""
        with self._changed:
            lanes = self._shared.lanes
            self._shared.lanes = [lane for lane in lanes if lane.thread.is_alive()]
            for key in list(self._problems):
                if " " in key and key.split()[1] not in present:
                    del self._problems[key]

    def _problem(self, key: str, sentence: str | None) -> None:
        with self._changed:
            if sentence is None:
                self._problems.pop(key, None)
            elif self._problems.get(key) != sentence:
                log.warning(sentence)
                self._problems[key] = sentence

    def _read(self, feed: Feed) -> int | None:
        """Read a feed; None if it is not certain that there is no more."""
        key = f"stream {feed.settings.uuid}"
        try:
            found = feed.read()
        except (BotoCoreError, ClientError) as error:
            self._problem(key, f"The stream of {feed.settings.table} cannot be read: {error}")
            # No stream, no records: a table that was deleted, or that another database has.
            gone = isinstance(error, ClientError) and error_code(error) == NO_STREAM
            return 0 if gone else None
        self._problem(key, None)
        return found


def pump_for(cloud: Cloud, trouble: Trouble | None = None) -> Pump:
    """A pump for a laptop cloud; it is not started."""
    functions = boto3.client(
        "lambda",
        endpoint_url=cloud.url,
        region_name=REGION,
        config=Config(
            max_pool_connections=INVOKE_CONNECTIONS,
            read_timeout=INVOKE_SECONDS,
            # Whether to try again, the mapping decides.
            retries={"mode": "standard", "total_max_attempts": 1},
        ),
        **CREDENTIALS,
    )
    streams = boto3.client("dynamodbstreams", endpoint_url=cloud.dynamodb, **LOCAL_CREDENTIALS)
    return Pump(functions, streams, cloud.client("sqs"), trouble)
