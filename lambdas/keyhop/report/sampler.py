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
import re
import time
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from threading import Lock
from typing import Any, NamedTuple

VERSION = 1
SHARE = 0.05
MOST_BYTES = 16 << 20
EVERY = 60.0
"""The seconds between two lines."""
SOON = 1.0
"""The seconds after a write in which a read by an index may miss it."""
MOST_SHAPES = 500
MOST_NAMES = 20
"""The maximum number of attribute names of one shape."""
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
)

_WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"})
_PARTS = frozenset({"ProjectionExpression", "AttributesToGet"})
_ONE_ITEM = ("GetItem", "UpdateItem", "DeleteItem", "PutItem")
_STATEMENT = re.compile(
    r"\b(?:FROM|INTO|UPDATE)\s+\"?([\w.-]+)\"?(?:\s*\.\s*\"?([\w-]+)\"?)?", re.IGNORECASE
)
_NAME = re.compile(r"(?<![\w:#.\]])(#?[A-Za-z_]\w*+)(?!\s*\()")
_DOT = re.compile(r"\s*\.\s*")
_WORDS = frozenset({"and", "or", "not", "between", "in"})

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
            is read or updated by its key. For others, the attributes that all items of an index
            have are used instead, as the key is among them.

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


class Shape(NamedTuple):
    """The form by which requests are counted.

    Attributes:
        conditions: The names of the attributes of the key condition, sorted.
        filters: The names of the attributes of the filter, sorted.
    """

    table: str
    operation: str
    index_name: str = ""
    conditions: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()


_Request = tuple[Shape, bool, bool]
"""The part of a request about one table, whether it is a consistent read, and whether it is a
transaction of one item."""


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
        self._mark, self._whole = f"keyhop.requests.{id(self)}", f"keyhop.whole.{id(self)}"
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
        self._shared: dict[str, tuple[str, ...]] = {}
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
                requests = _requests(operation, params)
                if requests:
                    context[self._mark] = requests
                    context[self._whole] = "IndexName" in params and not _PARTS & params.keys()
                    if "Key" in params:
                        self._learn(params["TableName"], params["Key"])
                    elif "IndexName" in params and requests[0][0].table not in self._watched:
                        self._watched[requests[0][0].table] = self._now()
        except Exception as error:
            self._failed(error)

    def _answered(self, parsed: Any, context: Any, **_: Any) -> None:
        try:
            if self._mark not in context or not self._is_on or "Error" in parsed:
                return
            requests = context.pop(self._mark)
            if context.pop(self._whole, False):
                self._share_names(requests[0][0].table, parsed.get("Items", ())[:MOST_LOOKED_AT])
            for request in requests:
                self._count(request, parsed)
            if self._now() - self._flushed >= self._every:
                self.flush()
        except Exception as error:
            self._failed(error)

    def _count(self, request: _Request, response: Mapping[str, Any]) -> None:
        shape, is_consistent, is_alone = request
        figures = {
            **_figures(shape, response),
            "calls": 1,
            "consistent": is_consistent,
            "one_item_transactions": is_alone,
        }
        is_followed = (
            self._is_followed(shape, response) if shape.index_name and not is_consistent else None
        )
        with self._lock:
            if shape not in self._counts and len(self._counts) >= MOST_SHAPES:
                shape = Shape(shape.table, shape.operation, shape.index_name)
            counts = self._counts.setdefault(shape, [0] * len(COUNTS))
            for at, name in enumerate(COUNTS):
                counts[at] += figures[name]
            if is_followed is not None:
                followed = self._followed.setdefault((shape.table, shape.index_name), [0, 0])
                followed[0] += is_followed
                followed[1] += 1

    # Reads that follow a write

    def _learn(self, table: str, key: Mapping[str, Any]) -> None:
        if table not in self._keys:
            self._keys[_table_name(table)] = tuple(sorted(key))

    def _note(self, operation: str, params: Mapping[str, Any]) -> None:
        """Remember each write, as a later read of an index may miss it.

        Only tables of which an index is read count.
        """
        now = self._now()
        if now - self._turned > SOON:
            self._before_that, self._recent, self._turned = self._recent, {}, now
        if len(self._recent) < MOST_WRITES:
            for table, item in _written(operation, params):
                if table in self._watched and (digest := self._digest(table, item)) is not None:
                    self._recent[digest] = now

    def _digest(self, table: str, item: Mapping[str, Any]) -> int | None:
        """Return a hash of an item's key; None if the names of the key or its values are missing.

        It is salted by a number that no other process has.
        """
        names = self._keys.get(table) or self._shared.get(table)
        if not names:
            return None
        try:
            return hash((self._salt, table, *[item[name]["S"] for name in names]))
        except KeyError:
            key = _key_of(names, item)
            return None if key is None else hash((self._salt, table, *key))

    def _share_names(self, table: str, items: Iterable[Mapping[str, Any]]) -> None:
        """Keep the names of the attributes that each item of the table's indexes has had."""
        for item in () if table in self._keys else items:
            names = self._shared.get(table)
            if names is None or not item.keys() >= set(names):
                self._shared[table] = tuple(name for name in names or sorted(item) if name in item)

    def _is_followed(self, shape: Shape, response: Mapping[str, Any]) -> bool | None:
        """Return whether an item on a page was written just before; None if not known."""
        now = self._now()
        items = response.get("Items", ())[:MOST_LOOKED_AT]
        digests = [self._digest(shape.table, item) for item in items]
        recent, before = self._recent, self._before_that
        hashes = [digest for digest in digests if digest is not None]
        times = [recent.get(digest, before.get(digest)) for digest in hashes]
        if any(at is not None and now - at <= SOON for at in times):
            return True
        # Writes from before the first read of an index were not remembered.
        is_new = now - self._watched.get(shape.table, now) < SOON
        return None if is_new or not hashes else False

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


def _requests(operation: str, params: Mapping[str, Any]) -> list[_Request]:
    """Return the part of a request for each of its tables; none if it is not about items.

    Values are typed.
    """
    if operation in ("Query", "Scan") or operation in _ONE_ITEM:
        shape = Shape(
            _table_name(params["TableName"]),
            operation,
            params.get("IndexName", ""),
            _names(params.get("Key") or params.get("KeyConditions"))
            or _resolved(params, "KeyConditionExpression"),
            _names(params.get("QueryFilter") or params.get("ScanFilter"))
            or _resolved(params, "FilterExpression"),
        )
        return [(shape, bool(params.get("ConsistentRead")), False)]
    if operation == "BatchGetItem":
        return [
            (
                Shape(_table_name(table), operation, "", _names(next(iter(keys["Keys"]), None))),
                bool(keys.get("ConsistentRead")),
                False,
            )
            for table, keys in params["RequestItems"].items()
        ]
    if operation == "BatchWriteItem":
        tables = map(_table_name, params["RequestItems"])
        return [(Shape(table, operation), False, False) for table in tables]
    if operation in ("TransactWriteItems", "TransactGetItems"):
        parts = [next(iter(item.values())) for item in params["TransactItems"]]
        named = dict.fromkeys(_table_name(part["TableName"]) for part in parts)
        return [(Shape(table, operation), False, len(parts) == 1) for table in named]
    if operation == "ExecuteStatement":
        match = _STATEMENT.search(params["Statement"])
        shape = Shape(match[1] if match else "", operation, (match[2] or "") if match else "")
        return [(shape, bool(params.get("ConsistentRead")), False)]
    return []


def _figures(shape: Shape, response: Mapping[str, Any]) -> dict[str, float]:
    """Return the figures of a response for one shape of its request, by their names in COUNTS."""
    count = response.get("Count")
    if count is None:
        items = response.get("Responses", ())
        of_table = items.get(shape.table, ()) if isinstance(items, Mapping) else items
        count = len(of_table) or len(response.get("Items", ())) or int("Item" in response)
    units, metered = 0.0, False
    capacity = response.get("ConsumedCapacity")
    for consumed in [capacity] if isinstance(capacity, Mapping) else capacity or ():
        if _table_name(consumed.get("TableName", shape.table)) == shape.table:
            units, metered = units + consumed.get("CapacityUnits", 0.0), True
    scanned = response.get("ScannedCount", count)
    return {
        "count": count,
        "scanned": scanned,
        "units": units,
        "metered": metered,
    }


def _written(operation: str, params: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return each write of a request as the table, and the key or the item."""
    if "TableName" in params:
        return [_target(params["TableName"], params)]
    if operation == "BatchWriteItem":
        return [
            _target(table, next(iter(request.values())))
            for table, requests in params["RequestItems"].items()
            for request in requests
        ]
    parts = [part for item in params["TransactItems"] for part in item.items()]
    return [_target(part["TableName"], part) for kind, part in parts if kind != "ConditionCheck"]


def _target(table: str, params: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    return _table_name(table), params["Key"] if "Key" in params else params["Item"]


def _key_of(names: Iterable[str], item: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return the values of a key; None if the item lacks one.

    Equal numbers are returned as equal values.
    """
    values = []
    for name in names:
        if name not in item:
            return None
        ((type_, content),) = item[name].items()
        if type_ != "S":
            content = Decimal(content) if type_ == "N" else bytes(content)
        values.append(content)
    return tuple(values)


def _table_name(name_or_arn: str) -> str:
    """Return the name of a table, also from an ARN, which the service accepts too."""
    return (
        name_or_arn.rpartition(":table/")[2].partition("/")[0]
        if name_or_arn.startswith("arn:")
        else name_or_arn
    )


def _names(names: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(sorted(names)[:MOST_NAMES]) if names else ()


def _resolved(params: Mapping[str, Any], parameter: str) -> tuple[str, ...]:
    """Return the names in an expression, where #name is replaced."""
    expression = params.get(parameter)
    if not isinstance(expression, str):
        return ()
    aliases = params.get("ExpressionAttributeNames") or {}
    return _names({aliases.get(name, name) for name in _parsed(expression)})


def names_in(expression: str) -> tuple[str, ...]:
    """Return the names as the expression contains them, also as #name.

    Values, functions and operators are not included.
    """
    names = _NAME.findall(_DOT.sub(".", expression))
    return tuple(dict.fromkeys(name for name in names if name.lower() not in _WORDS))


_parsed = lru_cache(256)(names_in)
