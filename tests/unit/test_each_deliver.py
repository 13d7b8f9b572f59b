"""Check how keys are delivered to a function, a queue or a state machine.

Each key is sent at least once, each failure names its key, and no key is lost. The receivers are
fakes that answer as the API references of the services say: a function that fails has a
FunctionError and status 200, SQS reports on each message, and Step Functions never accepts the name
of a finished execution again.
"""

import hashlib
import io
import itertools
import json
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError
from hypothesis import given
from hypothesis import strategies as st
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.schema import KeyAttribute, KeySpace
from keyhop.dynamodb.tables import Source
from keyhop.dynamodb.usage import Usage
from keyhop.each.deliver import (
    ANSWER_SECONDS,
    MACHINE_BYTES,
    MESSAGE_BYTES,
    REQUEST_BYTES,
    Delivery,
    InvokeEffect,
    KeyBatch,
    MachineEffect,
    Nonsense,
    QueueEffect,
    batches_of,
    delivery,
    failed_of,
    name_of,
    sent_key,
)
from keyhop.each.effect import Batch, Work
from keyhop.errors import AwsRefused, CannotStart, GaveUp, NotPermitted

QUEUE = "https://sqs.us-east-1.amazonaws.com/111122223333/keys"
MACHINE = "arn:aws:states:us-east-1:111122223333:stateMachine:PerBatch"
FUNCTION = "arn:aws:lambda:us-east-1:111122223333:function:OnKeys"
SECRET = "customer-4711@example.org"


class Clock:
    """A clock that advances with each wait, and a little with each reading."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.01
        return self.now


class Waiting(Event):
    """The stop event of a run; waiting for it advances the clock only."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    def wait(self, timeout: float | None = None) -> bool:
        self.clock.now += timeout or 0.0
        return self.is_set()


def work(usage: Usage | None = None, type_: Any = "S", patience: float = 300.0) -> Work:
    clock = Clock()
    space = KeySpace((KeyAttribute("pk", type_),), KeyAttribute("sk", "S"))
    source = Source("Orders", None, "arn", "identity", space, 0, 0)
    connection = Connection(cast(Any, None), clock=clock)
    return Work(
        connection, source, "a run", "2026-11-22", usage or Usage(), Waiting(clock), patience
    )


def page(keys: list[Any], number: int = 0, over: Event | None = None) -> Batch:
    rows = [{"pk": {"N" if isinstance(key, int) else "S": str(key)}} for key in keys]
    return Batch(f"a run.7.{number}", rows, over or Event())


def outcomes(rows: Any) -> dict[str, str]:
    return {next(iter(row["pk"].values())): row["outcome"]["S"] for row in rows}


def refused(code: str, status: int = 400, message: str = "") -> ClientError:
    response: Any = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(response, "Call")


class Function:
    """A Lambda function that calls `work` with each payload and returns its answer or error."""

    def __init__(self, work: Callable[[dict[str, Any]], Any]) -> None:
        self.work = work
        self.payloads: list[dict[str, Any]] = []

    def invoke(self, **arguments: Any) -> dict[str, Any]:
        assert arguments["FunctionName"] == FUNCTION
        assert arguments["InvocationType"] == "RequestResponse"
        assert len(arguments["Payload"]) <= 6 * 1024 * 1024
        assert arguments["Payload"].isascii(), "as many bytes as characters"
        payload = json.loads(arguments["Payload"])
        self.payloads.append(payload)
        try:
            answer, error = self.work(payload), {}
        except (ClientError, ReadTimeoutError, ConnectionClosedError):
            raise
        except Exception as error_:
            answer = {"errorMessage": str(error_), "errorType": type(error_).__name__}
            error = {"FunctionError": "Unhandled"}
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        return {"StatusCode": 200, "Payload": io.BytesIO(content), **error}


def invoke(does: Callable[[dict[str, Any]], Any], size: int = 10, **more: Any) -> tuple[Any, Any]:
    function = Function(does)
    return InvokeEffect(work(**more), FUNCTION, size, function), function


KEYS = [f"customer-{number}" for number in range(30)]
CRASH = ValueError(f"no such customer: {SECRET}")
FULL = refused("TooManyRequestsException", 429)
BROKEN = ConnectionClosedError(endpoint_url="https://lambda")
LATE = ReadTimeoutError(endpoint_url="https://lambda")
DONE = [b"", None, "done", 7, [], {}, {"ok": True}, {"failed": []}]
"""Responses that name no failed key, so all keys are done."""
NONSENSE = [b"<html>", b"\xff"] + [
    {"failed": failed}
    for failed in ("all", {"a": 1}, [4], [-1], ["nobody"], [True], [None], [[0]], [{}])
]
ASLEEP = [
    ("CodeArtifactUserPendingException", 409),
    ("ResourceNotReadyException", 502),
    ("ResourceConflictException", 409),
]
"""Errors of a function that was idle for weeks: Lambda refuses the request before it starts."""


def answering(*steps: Any) -> Callable[[dict[str, Any]], Any]:
    """Return a function that takes the next step for each payload, and repeats the last one.

    A step is an answer, or an exception.
    """
    remaining = [*steps]

    def step(payload: dict[str, Any]) -> Any:
        answer = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return step


def test_a_function_gets_each_key_once_in_batches_with_ids() -> None:
    effect, function = invoke(lambda payload: None)
    keys = [*KEYS[:-1], "ä"]
    assert outcomes(effect.apply(page(keys))) == dict.fromkeys(keys, "sent")
    batches = [KeyBatch("a run.7.0", keys[at : at + 10]) for at in (0, 10, 20)]
    assert function.payloads == [
        {"run": "a run", "batch": batch.id, "table": "Orders", "keys": batch.keys}
        for batch in batches
    ]
    assert len({batch.id for batch in batches}) == 3


@pytest.mark.parametrize(
    ("steps", "invocations", "why"),
    [
        *(([answer], 1, "") for answer in DONE),
        ([CRASH, CRASH, {}], 3, ""),
        # 429 means that Lambda is at its limit: nothing was done, so no key has failed.
        ([*[FULL] * 8, *[BROKEN] * 2, None], 11, ""),
        *(([*[refused(*why, "It will be ready shortly.")] * 4, None], 5, "") for why in ASLEEP),
        *(([answer], 3, "its response") for answer in NONSENSE[:2]),
        *(([answer], 3, '"failed" in its response') for answer in NONSENSE[2:]),
        ([CRASH], 3, "ValueError"),
        ([LATE], 3, f"within {ANSWER_SECONDS:g} seconds"),
    ],
)
def test_a_batch_is_sent_again_unchanged_and_its_keys_fail_after_three_tries(
    steps: list[Any], invocations: int, why: str
) -> None:
    """No error quotes a key, and only a failure of the function itself counts as a try."""
    effect, function = invoke(answering(*steps), usage=(usage := Usage()))
    rows = effect.apply(page(KEYS[:4]))
    assert outcomes(rows) == dict.fromkeys(KEYS[:4], "failed" if why else "sent")
    assert function.payloads == [function.payloads[0]] * invocations
    (error,) = {row["error"]["S"] if "error" in row else "" for row in rows}
    assert (why in error, bool(error)) == (True, bool(why))
    assert not any(key in error for key in (SECRET, "nobody", "customer"))
    if FULL in steps:
        assert usage.throttles.total() == 8


def test_one_key_in_ten_that_fails_is_sent_again_alone_and_then_reported() -> None:
    """The other keys are not sent again. The failed row names its key; its error does not."""
    tried: Counter[str] = Counter()

    def fails_some(payload: dict[str, Any]) -> Any:
        tried.update(payload["keys"])
        is_lucky = any(key.endswith("5") and tried[key] > 1 for key in payload["keys"])
        return {"failed": [] if is_lucky else [k for k in payload["keys"] if k[-1] in "5"]}

    keys = [*KEYS[:10], *KEYS[20:30]]
    effect, function = invoke(fails_some, usage=(usage := Usage()))
    assert outcomes(effect.apply(page(keys))) == dict.fromkeys(keys, "sent")
    assert tried == {key: 2 if key[-1] == "5" else 1 for key in keys}
    ids = [payload["batch"] for payload in function.payloads]
    assert len(set(ids)) == 4, "keys that are sent again form a new batch"
    assert usage.retries == 2

    effect, function = invoke(lambda payload: {"failed": [k for k in payload["keys"] if "5" in k]})
    rows = effect.apply(page(KEYS[:10]))
    assert outcomes(rows) == {key: "failed" if "5" in key else "sent" for key in KEYS[:10]}
    assert [len(payload["keys"]) for payload in function.payloads] == [10, 1, 1]
    assert function.payloads[1] == function.payloads[2], "the same keys under the same id"
    (error,) = [row["error"]["S"] for row in rows if "error" in row]
    assert "3 tries" in error
    assert "customer" not in error


def test_a_function_that_is_throttled_for_long_ends_the_run_and_fails_no_key() -> None:
    effect, _ = invoke(answering(FULL), patience=60.0)
    with pytest.raises(GaveUp, match="60 seconds"):
        effect.apply(page(KEYS[:4]))


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("ResourceNotFoundException", CannotStart),
        ("AccessDeniedException", NotPermitted),
        ("InvalidRequestContentException", AwsRefused),
    ],
)
def test_an_error_that_no_retry_can_solve_ends_the_run(code: str, error: type[Exception]) -> None:
    who = "User: arn:aws:sts::1:assumed-role/R/s is not authorized to perform: "
    why = f"{who}lambda:InvokeFunction on resource: {FUNCTION}"
    effect, function = invoke(answering(refused(code, 403, why)))
    with pytest.raises(error, match=FUNCTION):
        effect.apply(page(KEYS[:4]))
    assert len(function.payloads) == 1


def test_a_slice_that_is_over_ends_after_a_whole_batch() -> None:
    over = Event()
    effect, function = invoke(lambda payload: over.set())
    rows = effect.apply(page(KEYS, over=over))
    assert [*outcomes(rows)] == KEYS[:10]
    assert len(function.payloads) == 1


def test_a_wait_between_tries_ends_when_the_slice_is_over_and_reports_no_key() -> None:
    over = Event()

    def crashes(payload: dict[str, Any]) -> Any:
        over.set()
        raise RuntimeError

    effect, function = invoke(crashes)
    assert effect.apply(page(KEYS, over=over)) == []
    assert len(function.payloads) == 1


def test_a_page_that_is_processed_again_sends_the_same_ids() -> None:
    """A worker that was killed sends uncommitted keys again, and the receiver recognizes them."""
    payloads = []
    for _ in range(2):
        effect, function = invoke(lambda payload: None)
        effect.apply(page(KEYS, number=300))
        payloads.append(function.payloads)
    assert payloads[0] == payloads[1]


def test_number_keys_are_named_by_their_value() -> None:
    effect, _ = invoke(lambda sent: {"failed": [k for k in sent["keys"] if k == 5]}, type_="N")
    rows = effect.apply(page([4, 5, 6]))
    assert outcomes(rows) == {"4": "sent", "5": "failed", "6": "sent"}


def test_a_batch_of_the_longest_keys_fits_into_an_invocation() -> None:
    effect, function = invoke(lambda payload: None, size=1000)
    keys = [f"{number:04d}" + "\U0010ffff" * 511 for number in range(1000)]
    assert len(effect.apply(page(keys))) == 1000
    assert len(function.payloads) == 2, "six bytes in JSON for two of UTF-16"


def test_batches_keep_to_the_rate() -> None:
    effect, _ = invoke(lambda payload: None)
    effect.limit_writes(2.0)
    clock = cast(Clock, effect._work.connection.clock)

    def advance(seconds: float) -> bool:
        clock.now += seconds
        return True

    effect._gate._changed.wait = advance
    for number in range(10):
        effect.apply(page(KEYS, number=number * 30))
    assert 14.0 <= clock.now <= 15.5, "30 batches, two a second"


class Queue:
    """An SQS queue. `answers` has a code and a SenderFault by message number over all requests."""

    def __init__(self, answers: dict[int, tuple[str, bool]] | None = None) -> None:
        self.answers = answers or {}
        self.requests: list[list[dict[str, str]]] = []
        self.accepted: list[dict[str, str]] = []
        self.message_numbers = itertools.count()

    def send_message_batch(self, **arguments: Any) -> dict[str, Any]:
        entries: list[dict[str, str]] = arguments["Entries"]
        assert 1 <= len(entries) <= 10
        assert len({entry["Id"] for entry in entries}) == len(entries)
        sizes = [len(entry["MessageBody"].encode()) for entry in entries]
        assert max(sizes) <= MESSAGE_BYTES
        assert sum(sizes) <= REQUEST_BYTES
        self.requests.append(entries)
        failed = []
        for entry in entries:
            code, is_sender = self.answers.get(next(self.message_numbers), ("", False))
            if code:
                failed.append({"Id": entry["Id"], "Code": code, "SenderFault": is_sender})
            else:
                self.accepted.append(entry)
        return {"Failed": failed} if failed else {}


def test_a_queue_gets_ten_messages_at_a_time() -> None:
    keys, queue = KEYS[:25], Queue()
    effect = QueueEffect(work(), QUEUE, 2, queue)
    assert outcomes(effect.apply(page(keys))) == dict.fromkeys(keys, "sent")
    assert [len(entries) for entries in queue.requests] == [10, 3]
    assert [k for entry in queue.accepted for k in json.loads(entry["MessageBody"])["keys"]] == keys
    assert all("MessageGroupId" not in entry for entry in queue.accepted)
    assert effect.at_once == 20


def test_messages_that_a_queue_rejects_for_the_moment_are_sent_again_alone() -> None:
    queue = Queue({1: ("InternalError", False), 3: ("ThrottlingException", False)})
    rows = QueueEffect(work(), QUEUE, 1, queue).apply(page(KEYS[:5]))
    assert outcomes(rows) == dict.fromkeys(KEYS[:5], "sent")
    assert [len(entries) for entries in queue.requests] == [5, 2]
    assert len(queue.accepted) == 5


def test_keys_of_a_message_that_a_queue_rejects_permanently_have_failed() -> None:
    queue = Queue({1: ("InvalidMessageContents", True)})
    rows = QueueEffect(work(), QUEUE, 2, queue).apply(page(KEYS[:6]))
    assert [*outcomes(rows).values()] == ["sent"] * 2 + ["failed"] * 2 + ["sent"] * 2
    assert "InvalidMessageContents" in rows[2]["error"]["S"]
    assert len(queue.requests) == 1


def test_messages_of_long_keys_are_divided_by_their_bytes() -> None:
    keys = [f"{number:04d}" + "x" * 2000 for number in range(1500)]
    queue = Queue()
    effect = QueueEffect(work(), QUEUE, 150, queue)
    assert len(effect.apply(page(keys))) == 1500
    assert max(len(entries) for entries in queue.requests) < 10


def test_a_fifo_queue_recognizes_duplicates_and_no_batch_waits_for_another() -> None:
    names = []
    for _ in range(2):
        queue = Queue()
        QueueEffect(work(), f"{QUEUE}.fifo", 2, queue).apply(page(KEYS[:6]))
        names.append([entry["MessageDeduplicationId"] for entry in queue.accepted])
        assert len({entry["MessageGroupId"] for entry in queue.accepted}) == 3
    assert names[0] == names[1]
    assert all(len(name) <= 128 for name in names[0])


def test_a_queue_that_is_gone_ends_the_run() -> None:
    error = refused("AWS.SimpleQueueService.NonExistentQueue")
    queue = SimpleNamespace(send_message_batch=Mock(side_effect=error))
    with pytest.raises(CannotStart, match=QUEUE):
        QueueEffect(work(), QUEUE, 2, queue).apply(page(["a"]))


class StepFunctions:
    """Executions by name. A running one accepts the same name with the same input again."""

    def __init__(self, ended: bool = True) -> None:
        self.ended = ended
        self.inputs: dict[str, str] = {}
        self.throttles = itertools.count()

    def start_execution(self, **arguments: str) -> dict[str, Any]:
        assert arguments["stateMachineArn"] == MACHINE
        name, text = arguments["name"], arguments["input"]
        assert len(name) <= 80
        assert len(text.encode()) <= MACHINE_BYTES
        if next(self.throttles) == 0:
            raise refused("ThrottlingException")
        if name in self.inputs and (self.ended or self.inputs[name] != text):
            raise refused("ExecutionAlreadyExists")
        self.inputs[name] = text
        return {"executionArn": "arn"}


@pytest.mark.parametrize("ended", [False, True])
def test_an_execution_is_started_once_for_a_batch_however_often_it_is_sent(ended: bool) -> None:
    machines = StepFunctions(ended)
    for _ in range(3):
        effect = MachineEffect(work(), MACHINE, 10, machines)
        assert outcomes(effect.apply(page(KEYS))) == dict.fromkeys(KEYS, "sent")
    assert len(machines.inputs) == 3
    keys = [key for text in machines.inputs.values() for key in json.loads(text)["keys"]]
    assert sorted(keys) == sorted(KEYS)


def test_the_input_of_an_execution_stays_below_the_limit() -> None:
    machines = StepFunctions()
    keys = [f"{number:04d}" + "x" * 2000 for number in range(400)]
    effect = MachineEffect(work(), MACHINE, 400, machines)
    assert len(effect.apply(page(keys))) == 400
    assert len(machines.inputs) == 4


def test_a_start_is_retried_while_too_many_executions_are_open() -> None:
    start = Mock(side_effect=[*[refused("ExecutionLimitExceeded")] * 3, {}])
    effect = MachineEffect(work(), MACHINE, 10, SimpleNamespace(start_execution=start))
    assert outcomes(effect.apply(page(["a"]))) == {"a": "sent"}


@pytest.mark.parametrize(
    ("kind", "target", "class_"),
    [
        ("invoke", FUNCTION, InvokeEffect),
        ("queue", QUEUE, QueueEffect),
        ("machine", MACHINE, MachineEffect),
    ],
)
def test_an_effect_is_made_of_its_options(
    kind: str, target: str, class_: type[Delivery], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    effect = delivery({"kind": kind, "target": target, "batch": 25}, work())
    assert isinstance(effect, class_)
    config = effect._requester.client.meta.config
    assert config.read_timeout == ANSWER_SECONDS
    assert config.retries["total_max_attempts"] == 1


def at_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "local")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)


class Emulator(BaseHTTPRequestHandler):
    """An SQS emulator that knows SendMessageBatch only."""

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append(json.loads(content))  # type: ignore[attr-defined]
        entries = json.loads(content)["Entries"]
        successful = [
            {
                "Id": entry["Id"],
                "MessageId": "m",
                "MD5OfMessageBody": hashlib.md5(entry["MessageBody"].encode()).hexdigest(),
            }
            for entry in entries
        ]
        answer = json.dumps({"Successful": successful, "Failed": []}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments: Any) -> None:
        return


def test_a_queue_outside_aws_gets_its_messages_at_its_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_aws(monkeypatch)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Emulator)
    server.requests = []  # type: ignore[attr-defined]
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        queue = f"http://127.0.0.1:{server.server_port}/000000000000/keys"
        effect = delivery({"kind": "queue", "target": queue, "batch": 25}, work())
        assert outcomes(effect.apply(page(["a", "b"]))) == {"a": "sent", "b": "sent"}
        (request,) = server.requests  # type: ignore[attr-defined]
        assert request["QueueUrl"] == queue
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("queue", "environment", "address"),
    [
        (QUEUE, {}, "https://sqs.us-east-1.amazonaws.com"),
        (QUEUE.replace("amazonaws.com", "api.aws"), {}, "https://sqs.us-east-1.amazonaws.com"),
        ("http://queues.example/111122223333/keys", {}, "http://queues.example"),
        (
            "https://sqs.amazonaws.com.example/111122223333/keys",
            {},
            "https://sqs.amazonaws.com.example",
        ),
        (
            "http://queues.example/111122223333/keys",
            {"AWS_ENDPOINT_URL_SQS": "http://127.0.0.1:9"},
            "http://127.0.0.1:9",
        ),
    ],
)
def test_the_address_of_a_queue(
    queue: str, environment: dict[str, str], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_aws(monkeypatch)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    effect = delivery({"kind": "queue", "target": queue, "batch": 25}, work())
    assert effect._requester.client.meta.endpoint_url == address


PAGE = "run.3.500"


@given(st.integers(1, 40), st.integers(1, 400), st.lists(st.text(max_size=30), max_size=60))
def test_a_page_is_cut_into_batches_that_lose_no_key_and_are_small_enough(
    size: int, maximum: int, keys: list[str]
) -> None:
    batches = list(batches_of(PAGE, keys, size, maximum))
    assert [key for batch in batches for key in batch.keys] == keys
    for batch in batches:
        assert 1 <= len(batch.keys) <= size
        text = json.dumps(batch.keys, separators=(",", ":"))
        assert len(text) <= maximum + 1 or len(batch.keys) == 1
    assert batches == list(batches_of(PAGE, keys, size, maximum)), "the cut is repeatable"


@given(st.lists(st.integers(0, 50), min_size=1, unique=True), st.data())
def test_an_id_identifies_its_keys(keys: list[int], data: st.DataObject) -> None:
    batch = KeyBatch(PAGE, keys)
    places = data.draw(st.lists(st.sampled_from(range(len(keys))), unique=True))
    part = batch.part(sorted(places))
    assert batch.part(range(len(keys))).id == batch.id
    assert (part.id == batch.id) is (len(places) == len(keys))
    assert part.id == batch.part(sorted(places)).id
    assert KeyBatch("run.3.600", keys).id != batch.id
    assert batch.id.startswith(f"{PAGE}-")


def test_failed_keys_are_named_by_value_or_by_index() -> None:
    assert failed_of({"failed": ["c", "a"]}, ["a", "b", "c"]) == [0, 2]
    assert failed_of({"failed": [2, 0, 0]}, ["a", "b", "c"]) == [0, 2]
    assert failed_of({"failed": [5, 7.0]}, [7, 6, 5]) == [0, 2], "of numbers, the key itself"
    assert failed_of({"failed": [1e21]}, [10**21]) == [0]
    assert failed_of({"failed": [0.1]}, [0.1, 1]) == [0]


def test_number_keys_are_not_named_by_index() -> None:
    with pytest.raises(Nonsense):
        failed_of({"failed": [0]}, [1, 2])


def test_keys_are_sent_in_plain_json() -> None:
    assert sent_key({"pk": {"S": "a"}}) == "a"
    assert sent_key({"pk": {"N": "5"}}) == 5
    assert sent_key({"pk": {"N": "9007199254740993"}}) == "9007199254740993"
    assert sent_key({"pk": {"B": b"\x00\xff"}}) == "AP8="
    assert sent_key({"a": {"S": "x"}, "b": {"N": "1"}}) == {"a": {"S": "x"}, "b": {"N": "1"}}


@given(st.text(max_size=200), st.text(max_size=50))
def test_a_name_is_valid_for_the_services_and_identifies_its_content(id_: str, text: str) -> None:
    name = name_of(id_, text, 80)
    assert 17 <= len(name) <= 80
    assert all(c.isascii() and (c.isalnum() or c in "-_") for c in name)
    assert name == name_of(id_, text, 80) != name_of(id_, text + "x", 80)
