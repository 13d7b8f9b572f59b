"""The partition model: DynamoDB Local behind a server that gives each physical key a write budget.

The service gives a partition about 1,000 write units a second; DynamoDB Local never throttles. Here
each partition key of a limited table has a token bucket. Requests beyond its rate get an error of
the service; its body follows the service model and AWS's documentation.

    with partitions("http://127.0.0.1:8000", rate=20, tables={"Audit"}) as model:
        client = boto3.client("dynamodb", endpoint_url=model.url, ...)

The model differs from the service: the size of an update or a delete is that of the request,
because the model does not know the item; a partition holds one key, and is never split.
"""

import http.client
import json
import math
import random
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from threading import Lock, Thread
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from keyhop.clock import Clock, SystemClock
from keyhop.dynamodb.values import size_of

_LIMITS = ("ProvisionedThroughput", "KeyRangeThroughput", "AccountLimit", "MaxOnDemandThroughput")
ALL_REASONS = tuple(
    f"{scope}{operation}{limit}Exceeded"
    for scope, operation, limit in product(("Table", "Index"), ("Read", "Write"), _LIMITS)
)
"""The reasons of throttling errors in the service."""

HOT_KEY = "TableWriteKeyRangeThroughputExceeded"
TABLE_TOO_SMALL = "TableWriteProvisionedThroughputExceeded"
THROTTLING = "ThrottlingException"
PROVISIONED = "ProvisionedThroughputExceededException"
WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems")

_SERVICE = "com.amazonaws.dynamodb.v20120810#"
_MESSAGES = {
    THROTTLING: "Throughput exceeds the current capacity of your table or index. DynamoDB is "
    "automatically scaling your table or index so please try again shortly. If exceptions persist, "
    "check if you have a hot key: https://docs.aws.amazon.com/amazondynamodb/latest/"
    "developerguide/bp-partition-key-design.html.",
    PROVISIONED: "The level of configured provisioned throughput for the table was exceeded. "
    "Consider increasing your provisioning level with the UpdateTable API.",
}
_IN_A_TRANSACTION = {THROTTLING: "ThrottlingError", PROVISIONED: "ProvisionedThroughputExceeded"}


class Fault(Enum):
    """A fault of a request: (whether the database gets the request, whether there is an answer)."""

    REFUSED = (False, True)
    """The answer is InternalServerError, and nothing was written."""
    LOST = (True, True)
    """The answer is InternalServerError, but the request took effect."""
    HUNG_UP = (False, False)
    CUT_OFF = (True, False)
    """The connection breaks, but the request took effect."""


class Place(NamedTuple):
    """A partition key's budget in one second of the clock."""

    table: str
    key: str
    second: int


class Write(NamedTuple):
    """The write of one item, with its partition key as text."""

    table: str
    key: str
    units: int


@dataclass
class Bucket:
    """A token bucket, which gains `rate` write units a second up to `burst`."""

    rate: float
    burst: float
    tokens: float
    at: float

    def fill(self, now: float) -> None:
        self.tokens = min(self.burst, self.tokens + (now - self.at) * self.rate)
        self.at = now

    def has(self, units: float) -> bool:
        return self.tokens + 1e-9 >= min(units, self.burst)


@dataclass
class Answer:
    """The model's answer, which replaces that of the service, or adds unprocessed items to it."""

    body: dict[str, Any] | None = None
    request: dict[str, Any] | None = None
    leftovers: dict[str, list[Any]] = field(default_factory=dict)


@dataclass
class Partitions:
    """The model. Its settings may be changed at any time.

    Attributes:
        rate: The write units per second of each partition key.
        burst: The write units that may be spent at once; by default those of a second.
        tables: The limited tables; by default all.
        code, reason: The error and its throttling reason, or None for an error without a reason.
        provisioned: The write units per second of whole tables; UpdateTable changes them.
        failing, losing: The shares of writes that fail before and after they take effect.
        fault: Returns the fault of each request, if any.
        requests: The number of requests by operation.
        throttles: The number of throttled requests, or items of a batch, by reason.
        units, refused: The write units of admitted and of throttled writes.
    """

    target: str
    rate: float = 1_000.0
    burst: float | None = None
    tables: Collection[str] | None = None
    clock: Clock = field(default_factory=SystemClock)
    code: str = THROTTLING
    reason: str | None = HOT_KEY
    provisioned: dict[str, float] = field(default_factory=dict)
    failing: float = 0.0
    losing: float = 0.0
    fault: Callable[[str, Mapping[str, Any]], Fault | None] = lambda operation, request: None
    chance: random.Random = field(default_factory=lambda: random.Random(5))
    url: str = ""
    requests: Counter[str] = field(default_factory=Counter)
    throttles: Counter[str] = field(default_factory=Counter)
    faults: Counter[Fault] = field(default_factory=Counter)
    units: Counter[Place] = field(default_factory=Counter)
    refused: Counter[Place] = field(default_factory=Counter)
    schemas: dict[str, tuple[str, str]] = field(default_factory=dict)
    _buckets: dict[tuple[str, str], Bucket] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def is_limited(self, table: str) -> bool:
        return self.tables is None or table in self.tables

    def by_second(self, table: str, refused: bool = False) -> Counter[int]:
        """Return the units written to a table, or refused, by second of the clock."""
        spent = self._of(table, self.refused if refused else self.units)
        return sum((Counter({place.second: units}) for place, units in spent), Counter[int]())

    def by_key(self, table: str) -> Counter[str]:
        """Return the units written to a table by physical key."""
        spent = self._of(table, self.units)
        return sum((Counter({place.key: units}) for place, units in spent), Counter[str]())

    def _of(self, table: str, counted: Counter[Place]) -> list[tuple[Place, int]]:
        with self._lock:
            return [(place, units) for place, units in counted.items() if place.table == table]

    def trouble(self, operation: str, request: Mapping[str, Any]) -> Fault | None:
        """Count a request, and return its fault, if any."""
        with self._lock:
            self.requests[operation] += 1
            fault = None
            if operation in WRITES and (self.failing or self.losing):
                chance = self.chance.random()
                if chance < self.failing:
                    fault = Fault.REFUSED
                elif chance < self.failing + self.losing:
                    fault = Fault.LOST
        fault = self.fault(operation, request) or fault
        if fault is not None:
            with self._lock:
                self.faults[fault] += 1
        return fault

    def judge(self, operation: str, request: dict[str, Any]) -> Answer:
        """Spend the budgets on a request, or return the service's error if they do not suffice."""
        if operation == "UpdateTable" and request["TableName"] in self.provisioned:
            throughput = request.get("ProvisionedThroughput", {})
            units = throughput.get("WriteCapacityUnits", self.provisioned[request["TableName"]])
            self.provisioned[request["TableName"]] = float(units)
        if operation == "BatchWriteItem":
            return self._judge_batch(request)
        if operation == "TransactWriteItems":
            return self._judge_transaction(request)
        if operation not in WRITES or not self.is_limited(request["TableName"]):
            return Answer()
        (reason,) = self._spend([self._write(request["TableName"], request)])
        return Answer(self._throttle(request["TableName"], reason) if reason else None)

    def _judge_batch(self, request: dict[str, Any]) -> Answer:
        passed: dict[str, list[Any]] = {}
        leftovers: dict[str, list[Any]] = {}
        last = ("", "")
        for table, entries in request["RequestItems"].items():
            for entry in entries:
                writes = [self._write(table, *entry.values())] if self.is_limited(table) else []
                (reason,) = self._spend(writes) or (None,)
                if reason is None:
                    passed.setdefault(table, []).append(entry)
                else:
                    last = (table, reason)
                    leftovers.setdefault(table, []).append(entry)
        if not passed and leftovers:
            return Answer(self._throttle(*last))
        return Answer(None, {**request, "RequestItems": passed}, leftovers)

    def _judge_transaction(self, request: dict[str, Any]) -> Answer:
        items = [next(iter(item.values())) for item in request["TransactItems"]]
        writes = [self._write(item["TableName"], item, times=2) for item in items]
        refusals = iter(self._spend([write for write in writes if self.is_limited(write.table)]))
        reasons = [next(refusals) if self.is_limited(write.table) else None for write in writes]
        if not any(reasons):
            return Answer()
        code = _IN_A_TRANSACTION.get(self.code, "ThrottlingError")
        message = _MESSAGES.get(self.code, _MESSAGES[THROTTLING])
        codes = [code if reason else "None" for reason in reasons]
        return Answer(
            {
                "__type": f"{_SERVICE}TransactionCanceledException",
                "CancellationReasons": [
                    {"Code": each} if each == "None" else {"Code": each, "Message": message}
                    for each in codes
                ],
                "Message": "Transaction cancelled, please refer cancellation reasons for specific "
                f"reasons [{', '.join(codes)}]",
            }
        )

    def _write(self, table: str, parameters: Mapping[str, Any], times: int = 1) -> Write:
        """Return the write of a put, update, delete or condition check."""
        key = parameters.get("Item") or parameters["Key"]
        more = {} if "Item" in parameters else parameters.get("ExpressionAttributeValues", {})
        units = times * max(1, math.ceil(size_of({**key, **more}) / 1024))
        if table not in self.schemas:
            return Write(table, "", units)
        ((_, content),) = key[self.schemas[table][0]].items()
        return Write(table, content, units)

    def _spend(self, writes: list[Write]) -> list[str | None]:
        """Spend the units of all writes or of none, and return each write's throttling reason."""
        with self._lock:
            now = self.clock.monotonic()
            needs: Counter[tuple[str, str]] = Counter()
            reasons: list[str | None] = []
            for write in writes:
                needs[write.table, write.key] += write.units
                needs[write.table, ""] += write.units if write.table in self.provisioned else 0
                reason: str | None = None
                if not self._bucket(write.table, write.key, now).has(needs[write.table, write.key]):
                    reason = self.reason or "unknown"
                elif write.table in self.provisioned:
                    bucket = self._bucket(write.table, "", now, self.provisioned[write.table])
                    if not bucket.has(needs[write.table, ""]):
                        reason = TABLE_TOO_SMALL if self.reason else "unknown"
                reasons.append(reason)
            refused = any(reasons)
            self.throttles.update(reason for reason in reasons if reason)
            for write in writes:
                counted = self.refused if refused else self.units
                counted[Place(write.table, write.key, int(self.clock.time()))] += write.units
            if not refused:
                for at, units in needs.items():
                    if units:
                        self._buckets[at].tokens -= units
            return reasons

    def _bucket(self, table: str, key: str, now: float, rate: float | None = None) -> Bucket:
        burst = rate if rate is not None else self.burst if self.burst is not None else self.rate
        rate = rate or self.rate
        bucket = self._buckets.setdefault((table, key), Bucket(rate, burst, burst, now))
        bucket.rate, bucket.burst = rate, burst
        bucket.fill(now)
        return bucket

    def _throttle(self, table: str, reason: str) -> dict[str, Any]:
        space = "com.amazon.coral.availability#" if self.code == THROTTLING else _SERVICE
        body: dict[str, Any] = {
            "__type": f"{space}{self.code}",
            "message": _MESSAGES.get(self.code, _MESSAGES[THROTTLING]),
        }
        if self.reason is not None:
            name = "throttlingReasons" if self.code == THROTTLING else "ThrottlingReasons"
            body[name] = [{"reason": reason, "resource": self.schemas[table][1]}]
        return body


class Upstream:
    """A connection to the database."""

    def __init__(self, target: str) -> None:
        at = urlsplit(target)
        self._connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=60)

    def send(self, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        lower = {name.lower(): value for name, value in headers.items()}
        lower.pop("content-length", None)
        self._connection.request("POST", "/", body, lower)
        response = self._connection.getresponse()
        return response.status, response.read()

    def schema(self, headers: Mapping[str, str], table: str) -> tuple[str, str] | None:
        """Return the partition key's name and the ARN of a table; None if it does not exist."""
        target = headers["X-Amz-Target"].partition(".")[0] + ".DescribeTable"
        body = json.dumps({"TableName": table}).encode()
        lower = {name.lower(): value for name, value in headers.items()}
        status, content = self.send({**lower, "x-amz-target": target}, body)
        if status != 200:
            return None
        description = json.loads(content)["Table"]
        (name,) = (k["AttributeName"] for k in description["KeySchema"] if k["KeyType"] == "HASH")
        return name, description["TableArn"]

    def close(self) -> None:
        self._connection.close()


def tables_of(operation: str, request: Mapping[str, Any]) -> set[str]:
    """Return the tables to which a request writes."""
    if operation == "BatchWriteItem":
        return set(request["RequestItems"])
    if operation == "TransactWriteItems":
        return {next(iter(item.values()))["TableName"] for item in request["TransactItems"]}
    return {request["TableName"]} if operation in WRITES else set()


def handler_of(model: Partitions) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            self.upstream = Upstream(model.target)

        def finish(self) -> None:
            self.upstream.close()
            super().finish()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            operation = self.headers["X-Amz-Target"].rpartition(".")[2]
            request = json.loads(body)
            fault = model.trouble(operation, request)
            status, content = 500, b""
            if fault is None or fault.value[0]:
                status, content = self.passed_on(operation, request, body)
            if fault is not None and not fault.value[1]:
                self.close_connection = True
                return
            if fault is not None and (status == 200 or not content):
                error = {"__type": f"{_SERVICE}InternalServerError", "message": "Internal error"}
                status, content = 500, json.dumps(error).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.0")
            self.send_header("x-amzn-RequestId", uuid.uuid4().hex.upper())
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            self.wfile.flush()

        def passed_on(
            self, operation: str, request: dict[str, Any], body: bytes
        ) -> tuple[int, bytes]:
            for table in tables_of(operation, request) - model.schemas.keys():
                schema = self.upstream.schema(self.headers, table)
                if schema is not None:
                    model.schemas[table] = schema
            answer = model.judge(operation, request)
            if answer.body is not None:
                return 400, json.dumps(answer.body).encode()
            body = json.dumps(answer.request).encode() if answer.leftovers else body
            status, content = self.upstream.send(self.headers, body)
            if status == 200 and answer.leftovers:
                partial = json.loads(content)
                for table, entries in answer.leftovers.items():
                    partial["UnprocessedItems"].setdefault(table, []).extend(entries)
                content = json.dumps(partial).encode()
            return status, content

        def log_message(self, *arguments: object) -> None:
            pass

    return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore broken connections, which are normal at the end; report all other errors."""
        if not isinstance(sys.exception(), OSError | http.client.HTTPException):
            super().handle_error(request, client_address)


@contextmanager
def partitions(target: str, **settings: Any) -> Iterator[Partitions]:
    """Run the model on a free loopback port during the block, with settings of `Partitions`."""
    model = Partitions(target, **settings)
    with _Server(("127.0.0.1", 0), handler_of(model)) as server:
        model.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield model
        finally:
            server.shutdown()
            thread.join()
