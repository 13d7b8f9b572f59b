"""The request sampler, for a user's application: it counts requests to DynamoDB by shape.

    sampler = keyhop.report.sampler.attach(session, "requests.jsonl")

It writes the operation, table, index and names of attributes, with the number of calls, items and
units. It writes no value of an item, a key or a condition. It samples five of a hundred requests.
Each line of the file has the sums of a minute; `keyhop report --requests` reads it.

It imports nothing but Python, and never raises into the application.
"""

import atexit
import json
import logging
import os
import random
import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from keyhop.report.request_shapes import Asked, Shape, answered, asked, key_of, table_name, written

VERSION = 1
SHARE = 0.05
MOST_BYTES = 16 << 20
EVERY = 60.0
"""The seconds between two lines."""
SOON = 1.0
"""The seconds after a write in which a read by an index may miss it."""
MOST_SHAPES = 500
MOST_WRITES = 20_000
"""The maximum number of writes that are remembered, for a second or two."""
MOST_FAILURES = 100
MOST_LOOKED_AT = 25
"""The maximum number of items that are examined on one page of an index."""

FULL = f'{{"keyhop":"requests","version":{VERSION},"full":true}}\n'
NAMES = ("table", "operation", "index", "conditions", "filters")
COUNTS = (
    "calls",
    "count",
    "scanned",
    "units",
    "metered",
    "consistent",
    "one_item_transactions",
    "unprocessed",
)

log = logging.getLogger("keyhop.sampler")

Write = Callable[[str], object]


def attach(
    target: Any,
    path: str | os.PathLike[str] | Write,
    *,
    share: float = SHARE,
    most_bytes: int = MOST_BYTES,
    every: float = EVERY,
    keys: Mapping[str, tuple[str, ...]] | None = None,
) -> "Sampler":
    """Start sampling the requests of a client, or of clients that a session creates from now on.

    Args:
        target: A boto3 session, client or resource.
        path: The file to append lines to; or a function that receives each line.
        share: The share of the requests that are sampled.
        most_bytes: The maximum size of the file.
        every: The seconds between two lines.
        keys: The names of the key attributes, by table. They are learnt for tables of which an item
            is read or updated by its key.

    Returns:
        The sampler.

    Raises:
        TypeError: The target has no events.
        ValueError: The share is not above 0 and at most 1.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share is {share}; it must be above 0, and at most 1.")
    write = path if callable(path) else _File(path, most_bytes).write
    sampler = Sampler(write, share=share, every=every, keys=keys)
    sampler.listen(_events(target))
    atexit.register(sampler.flush)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=sampler.forget)
    return sampler


class Sampler:
    """Counts requests, and writes the sums since the last line.

    Args:
        now: A monotonic clock, in seconds.
        wall: The time in epoch seconds.
        chance: Random numbers in [0, 1).
    """

    def __init__(
        self,
        write: Write,
        *,
        share: float = SHARE,
        every: float = EVERY,
        keys: Mapping[str, tuple[str, ...]] | None = None,
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._write, self._share, self._every = write, share, every
        self._now, self._wall, self._chance = now, wall, chance
        self._keys = {table: tuple(names) for table, names in (keys or {}).items()}
        self._mark = f"keyhop.requests.{id(self)}"
        self._salt = random.SystemRandom().getrandbits(64)
        self._events: Any = None
        self._is_on = True
        self._failures = 0
        self.forget()

    def forget(self) -> None:
        """Start again without earlier requests, which in a forked process are the parent's."""
        self._lock, self._writing = Lock(), Lock()
        self._counts: dict[Shape, list[float]] = {}
        self._followed: dict[tuple[str, str], list[int]] = {}
        self._recent: dict[int, float] = {}
        self._before_that: dict[int, float] = {}
        self._watched: dict[str, float] = {}
        self._turned = self._flushed = self._now()
        self._began = self._wall()

    def listen(self, events: Any) -> None:
        """Register with a botocore event emitter.

        It runs after other handlers of parameters, when these are typed, and before other handlers
        of responses, while these are still typed.
        """
        self._events = events
        events.register_last("before-parameter-build.dynamodb", self._asked)
        events.register_first("after-call.dynamodb", self._answered)

    def detach(self) -> None:
        """Stop sampling, and write the last line.

        This includes clients that a session has created since `attach`.
        """
        self._is_on = False
        if self._events is not None:
            self._events.unregister("before-parameter-build.dynamodb", self._asked)
            self._events.unregister("after-call.dynamodb", self._answered)
        atexit.unregister(self.flush)
        self.flush()

    # In the application's requests

    def _asked(self, params: Any, model: Any, context: Any, **_: Any) -> None:
        try:
            if not self._is_on:
                return
            operation = model.name
            if self._watched and operation in _WRITES:
                if "Key" in params:
                    self._learn(params["TableName"], params["Key"])
                self._note(operation, params)
            if self._chance() < self._share:
                requests = asked(operation, params)
                if requests:
                    context[self._mark] = requests
                    if "Key" in params:
                        self._learn(params["TableName"], params["Key"])
                    elif "IndexName" in params and requests[0].shape.table not in self._watched:
                        self._watched[requests[0].shape.table] = self._now()
        except Exception as error:
            self._failed(error)

    def _answered(self, parsed: Any, context: Any, **_: Any) -> None:
        try:
            if self._mark not in context or not self._is_on or "Error" in parsed:
                return
            for request in context.pop(self._mark):
                self._count(request, parsed)
            if self._now() - self._flushed >= self._every:
                self.flush()
        except Exception as error:
            self._failed(error)

    def _count(self, request: Asked, response: Mapping[str, Any]) -> None:
        shape, figures = request.shape, answered(request.shape, response)
        adds = (
            1,
            figures.returned,
            figures.scanned,
            figures.units,
            figures.metered,
            request.consistent,
            request.alone,
            figures.unprocessed,
        )
        is_followed = (
            self._is_followed(shape, response)
            if shape.index_name and not request.consistent
            else None
        )
        with self._lock:
            if shape not in self._counts and len(self._counts) >= MOST_SHAPES:
                shape = Shape(shape.table, shape.operation, shape.index_name)
            counts = self._counts.setdefault(shape, [0] * len(COUNTS))
            for at, add in enumerate(adds):
                counts[at] += add
            if is_followed is not None:
                followed = self._followed.setdefault((shape.table, shape.index_name), [0, 0])
                followed[0] += is_followed
                followed[1] += 1

    # Reads that follow a write

    def _learn(self, table: str, key: Mapping[str, Any]) -> None:
        if table not in self._keys:
            self._keys[table_name(table)] = tuple(sorted(key))

    def _note(self, operation: str, params: Mapping[str, Any]) -> None:
        """Remember each write, as a later read of an index may miss it.

        Only tables of which an index is read count.
        """
        now = self._now()
        if now - self._turned > SOON:
            self._before_that, self._recent, self._turned = self._recent, {}, now
        if len(self._recent) < MOST_WRITES:
            for table, item in written(operation, params):
                if table in self._watched and (digest := self._digest(table, item)) is not None:
                    self._recent[digest] = now

    def _digest(self, table: str, item: Mapping[str, Any]) -> int | None:
        """Return a hash of an item's key; None if the names of the key or its values are missing.

        It is salted by a number that no other process has.
        """
        names = self._keys.get(table)
        if names is None:
            return None
        try:
            return hash((self._salt, table, *[item[name]["S"] for name in names]))
        except KeyError:
            key = key_of(names, item)
            return None if key is None else hash((self._salt, table, *key))

    def _is_followed(self, shape: Shape, response: Mapping[str, Any]) -> bool | None:
        """Return whether an item on a page was written just before; None if not known."""
        now = self._now()
        if now - self._watched.get(shape.table, now) < SOON:
            return None
        items = response.get("Items", ())[:MOST_LOOKED_AT]
        digests = [self._digest(shape.table, item) for item in items]
        recent, before = self._recent, self._before_that
        hashes = [digest for digest in digests if digest is not None]
        times = [recent.get(digest, before.get(digest)) for digest in hashes]
        return any(at is not None and now - at <= SOON for at in times) if hashes else None

    # The file

    def flush(self) -> None:
        """Write a line with the requests since the last line, if there were any."""
        try:
            with self._writing:
                line = self._line()
                if line and self._write(line) is False:
                    self._is_on = False
        except Exception as error:
            self._failed(error)

    def _line(self) -> str:
        with self._lock:
            counts, self._counts = self._counts, {}
            followed, self._followed = self._followed, {}
            began, self._began = self._began, self._wall()
            self._flushed = self._now()
            ended = self._began
        if not counts:
            return ""
        line = {
            "keyhop": "requests",
            "version": VERSION,
            "began": round(began, 3),
            "ended": round(ended, 3),
            "share": self._share,
            "shapes": [
                dict(zip((*NAMES, *COUNTS), (*shape, *numbers), strict=True))
                for shape, numbers in counts.items()
            ],
            "followed": [[*target, *numbers] for target, numbers in followed.items()],
        }
        return json.dumps(line, separators=(",", ":")) + "\n"

    def _failed(self, error: Exception) -> None:
        """Log an error of the sampler, and stop after many.

        An error here must not become the application's. Only its type is logged, as its message may
        contain a value.
        """
        self._failures += 1
        if self._failures == 1:
            kind = type(error).__name__
            log.warning("The request sampler met %s; the application goes on.", kind)
        if self._failures >= MOST_FAILURES:
            self._is_on = False


_WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"})


class _File:
    """A file to which each line is appended by one write, so that processes may share it."""

    def __init__(self, path: str | os.PathLike[str], most_bytes: int) -> None:
        self.path, self.most_bytes = path, most_bytes

    def write(self, line: str) -> bool:
        """Append a line; return False once the file is full, after a last line about it."""
        opened = os.open(self.path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
        try:
            room = self.most_bytes - os.fstat(opened).st_size - len(FULL)
            fits = len(line.encode()) <= room
            if fits or room >= 0:
                os.write(opened, (line if fits else FULL).encode())
            return fits
        finally:
            os.close(opened)


def _events(target: Any) -> Any:
    """Return the event emitter of a session, a client, a resource or a table."""
    if hasattr(target, "get_component"):
        return target.get_component("event_emitter")
    for way in (("events",), ("meta", "events"), ("meta", "client", "meta", "events")):
        emitter = target
        for name in way:
            emitter = getattr(emitter, name, None)
        if hasattr(emitter, "register_last"):
            return emitter
    raise TypeError(
        f"{type(target).__name__} has no events: attach to a boto3 session, client or resource."
    )
