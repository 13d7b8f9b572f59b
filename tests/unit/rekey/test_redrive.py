"""What the functions gave up is settled by them, message by message, and then leaves the queue."""

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
    """Messages that stay until they are deleted, and are brought again and again."""

    def __init__(self, *bodies: str) -> None:
        self.bodies = dict(enumerate(bodies))

    def get_queue_url(self, QueueName: str) -> dict[str, str]:  # noqa: N803
        return {"QueueUrl": f"https://{QueueName}"}

    def receive_message(self, **_: Any) -> dict[str, Any]:
        told = [
            {"MessageId": str(number), "ReceiptHandle": str(number), "Body": body}
            for number, body in self.bodies.items()
        ]
        return {"Messages": told}

    def delete_message(self, QueueUrl: str, ReceiptHandle: str) -> None:  # noqa: N803
        assert QueueUrl == "https://failures"
        del self.bodies[int(ReceiptHandle)]


class Function:
    """Answers from a list; None is an error of its own."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []

    def invoke(self, FunctionName: str, Payload: bytes) -> dict[str, Any]:  # noqa: N803
        self.asked.append(json.loads(Payload))
        why = self.answers.pop(0)
        if why is None:
            told = io.BytesIO(b'{"errorType": "Timeout"}')
            return {"FunctionError": "Unhandled", "Payload": told}
        return {"Payload": io.BytesIO(json.dumps({"why_not": why}).encode())}


def redrive(function: Any, queue: Any) -> Redriven:
    arn = "arn:aws:sqs:us-east-1:111122223333:failures"
    return Deployed(
        function, queue, "Replicate", arn, Pair("Old", "New", {}), lambda _: None
    ).redrive()


def test_what_is_settled_leaves_the_queue_and_all_else_stays() -> None:
    bodies = [
        json.dumps(one)
        for one in (OURS, {**OURS, "direction": "reverse"}, {**OURS, "rekey": "Other"}, ["no"])
    ]
    queue = Queue(*bodies, "no JSON", bodies[0])
    function = Function("", "it stays a claim", None)
    done = redrive(function, queue)
    assert done == Redriven(1, 2, 3, "the function failed (Timeout)")
    assert [*queue.bodies] == [1, 2, 3, 4, 5]
    assert function.asked == [OURS, {**OURS, "direction": "reverse"}, OURS]


@pytest.mark.parametrize(
    ("code", "status"),
    [("CodeArtifactUserPendingException", 409), ("ResourceNotReadyException", 502)],
)
def test_a_function_that_was_idle_is_asked_again_for_a_while(
    code: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As before a rollback, after weeks without a write. Each random wait has its mean length."""
    monkeypatch.setattr("random.uniform", lambda low, high: (low + high) / 2)
    refusal: Any = {
        "Error": {"Code": code, "Message": "It will be ready to invoke shortly."},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }

    waited: list[float] = []

    class Idle(Function):
        ready_after = 40.0

        def invoke(self, **given: Any) -> dict[str, Any]:
            if sum(waited) < self.ready_after:
                raise ClientError(refusal, "Invoke")
            return super().invoke(**given)

    function = Idle("")
    pair = Pair("Old", "New", {})
    deployed = Deployed(function, None, "Replicate", "", pair, lambda _: None, waited.append)
    assert deployed.way_back("source") == ""
    waited.clear()
    function.ready_after = math.inf
    with pytest.raises(ClientError, match=code):
        deployed.way_back("source")
    assert 60 < sum(waited) < 300


def test_a_queue_that_may_not_be_read_is_told() -> None:
    class Shut(Queue):
        def receive_message(self, **_: Any) -> dict[str, Any]:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "Receive")

    with pytest.raises(AwsRefused, match="does not respond"):
        redrive(Function(), Shut())
