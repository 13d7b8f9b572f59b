"""A redrive sends each message of the failure queue to the function and deletes settled ones."""

import io
import json
import math
from typing import Any

import pytest
from botocore.exceptions import ClientError
from keyhop.errors import AwsRefused
from keyhop.rekey.cutover.deployed import Deployed, Redriven
from keyhop.rekey.pair import Pair

OURS = {"rekey": "New", "direction": "forward", "key": {"id": {"S": "s"}}, "places": []}


class Queue:
    """A queue whose messages are received again and again until they are deleted."""

    def __init__(self, *bodies: str) -> None:
        self.bodies = dict(enumerate(bodies))

    def get_queue_url(self, QueueName: str) -> dict[str, str]:  # noqa: N803
        return {"QueueUrl": f"https://{QueueName}"}

    def receive_message(self, **_: Any) -> dict[str, Any]:
        messages = [
            {"MessageId": str(number), "ReceiptHandle": str(number), "Body": body}
            for number, body in self.bodies.items()
        ]
        return {"Messages": messages}

    def delete_message(self, QueueUrl: str, ReceiptHandle: str) -> None:  # noqa: N803
        assert QueueUrl == "https://failures"
        del self.bodies[int(ReceiptHandle)]


class Function:
    """A function with a list of answers, of which None is an unhandled error."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.payloads: list[dict[str, Any]] = []

    def invoke(self, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803
        self.payloads.append(json.loads(Payload))
        why = self.answers.pop(0)
        if why is None:
            error = io.BytesIO(b'{"errorType": "Timeout"}')
            return {"FunctionError": "Unhandled", "Payload": error}
        return {"Payload": io.BytesIO(json.dumps({"why_not": why}).encode())}


def redrive(function: Any, queue: Any) -> Redriven:
    arn = "arn:aws:sqs:us-east-1:111122223333:failures"
    return Deployed(
        function, queue, "Replicate", arn, Pair("Old", "New", {}), lambda _: None
    ).redrive()


def test_settled_messages_leave_the_queue_and_the_others_stay() -> None:
    bodies = [
        json.dumps(body)
        for body in (OURS, {**OURS, "direction": "reverse"}, {**OURS, "rekey": "Other"}, ["no"])
    ]
    queue = Queue(*bodies, "no JSON", bodies[0])
    function = Function("", "it stays a claim", None)
    result = redrive(function, queue)
    assert result == Redriven(1, 2, 3, "the function failed (Timeout)")
    assert [*queue.bodies] == [1, 2, 3, 4, 5]
    assert function.payloads == [OURS, {**OURS, "direction": "reverse"}, OURS]


@pytest.mark.parametrize(
    ("code", "status"),
    [("CodeArtifactUserPendingException", 409), ("ResourceNotReadyException", 502)],
)
def test_an_idle_function_is_retried_for_a_while(
    code: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function can be idle before a rollback. Each random wait has its mean length here."""
    monkeypatch.setattr("random.uniform", lambda low, high: (low + high) / 2)
    refusal: Any = {
        "Error": {"Code": code, "Message": "It will be ready to invoke shortly."},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }

    waited: list[float] = []

    class Idle(Function):
        ready_after = 40.0

        def invoke(self, **parameters: Any) -> dict[str, Any]:
            if sum(waited) < self.ready_after:
                raise ClientError(refusal, "Invoke")
            return super().invoke(**parameters)

    function = Idle("")
    pair = Pair("Old", "New", {})
    deployed = Deployed(function, None, "Replicate", "", pair, lambda _: None, waited.append)
    assert deployed.way_back("source") == ""
    waited.clear()
    function.ready_after = math.inf
    with pytest.raises(ClientError, match=code):
        deployed.way_back("source")
    assert 60 < sum(waited) < 300


def test_a_queue_without_permission_raises_an_error() -> None:
    class Shut(Queue):
        def receive_message(self, **_: Any) -> dict[str, Any]:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "Receive")

    with pytest.raises(AwsRefused, match="does not respond"):
        redrive(Function(), Shut())
