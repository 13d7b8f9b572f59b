"""What the request sampler takes of an application's CPU, per request of boto3's client.

    python -m bench.report_sampler [--share 0.05]

A request is answered before it is sent, so the network's milliseconds count for nothing. Beside it
the two events that the sampler hears are sent, without it, and with one that leaves the request
out or looks at it: by turns, the least of some rounds, as other programs can only add to that.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import boto3
from botocore.awsrequest import AWSResponse
from keyhop.report.sampler import SHARE, SOON, Sampler

ROUNDS = 30
REQUESTS = 40
"""Of a round."""
EVENTS = 10
"""So many times as many."""
CREDENTIALS = {
    "aws_access_key_id": "local",
    "aws_secret_access_key": "local",
    "region_name": "us-east-1",
}
ITEM = {
    "pk": {"S": "CUSTOMER#000017"},
    "sk": {"S": "ORDER#2026-11-22#000001"},
    "city": {"S": "Zurich"},
    **{f"attribute{at}": {"S": "x" * 40} for at in range(8)},
}
KEY = {name: ITEM[name] for name in ("pk", "sk")}
REQUESTED: dict[str, dict[str, Any]] = {
    "GetItem": {"TableName": "Orders", "Key": KEY},
    "PutItem": {"TableName": "Orders", "Item": ITEM},
    "Query": {
        "TableName": "Orders",
        "IndexName": "byCity",
        "KeyConditionExpression": "#c = :c",
        "FilterExpression": "attribute1 = :a",
        "ExpressionAttributeNames": {"#c": "city"},
        "ExpressionAttributeValues": {":c": {"S": "Zurich"}, ":a": {"S": "x"}},
    },
}
"""The query is of an index, so that writes are remembered; it answers 20 items."""
METHODS = {"GetItem": "get_item", "PutItem": "put_item", "Query": "query"}
ANSWERS: dict[str, Any] = {
    "GetItem": {"Item": ITEM},
    "PutItem": {},
    "Query": {"Items": [ITEM] * 20, "Count": 20, "ScannedCount": 20},
}


class _Raw:
    """A response's body."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    def stream(self) -> Any:
        yield self.body


def client() -> Any:
    """One that gets its answers at once."""
    made = boto3.Session().client("dynamodb", **CREDENTIALS)
    bodies = {name: json.dumps(answer).encode() for name, answer in ANSWERS.items()}

    def answer(request: Any, event_name: str, **_: Any) -> AWSResponse:
        body = bodies[event_name.rpartition(".")[2]]
        return AWSResponse(request.url, 200, {"x-amzn-requestid": "1"}, _Raw(body))

    made.meta.events.register("before-send.dynamodb", answer)
    return made


def events(of: Any, name: str) -> Callable[[], None]:
    """What boto3's client tells a sampler about one request."""
    emitter, model = of.meta.events, of.meta.service_model.operation_model(name)
    params, parsed = REQUESTED[name], ANSWERS[name]

    def tell() -> None:
        context: dict[str, Any] = {}
        emitter.emit(
            f"before-parameter-build.dynamodb.{name}", params=params, model=model, context=context
        )
        emitter.emit(
            f"after-call.dynamodb.{name}",
            http_response=None,
            parsed=parsed,
            model=model,
            context=context,
        )

    return tell


def overheads(share: float = SHARE) -> dict[str, dict[str, float]]:
    """By request: microseconds of CPU without the sampler, those that it adds to a request that it
    leaves out and to one that it looks at, and the hundredths that both come to with `share`.
    """
    plain, left_out, looked_at = client(), client(), client()
    for one, chance in ((left_out, 1.0), (looked_at, 0.0)):
        _sampler(one, chance)
    found = {}
    for name in REQUESTED:
        ways = [
            lambda name=name: getattr(plain, METHODS[name])(**REQUESTED[name]),
            *(events(one, name) for one in (plain, left_out, looked_at)),
        ]
        least = [float("inf")] * len(ways)
        for _ in range(ROUNDS):
            for at, way in enumerate(ways):
                times = REQUESTS * (EVENTS if at else 1)
                least[at] = min(least[at], _microseconds(way, times))
        request, none, out, at_all = least
        percent = 100 * ((1 - share) * (out - none) + share * (at_all - none)) / request
        found[name] = {
            "request_us": round(request, 1),
            "left_out_us": round(out - none, 2),
            "looked_at_us": round(at_all - none, 2),
            "percent": round(percent, 2),
        }
    return found


def _sampler(of: Any, chance: float) -> None:
    """One that has seen an index being read, so that it remembers writes."""
    drawn, moment = [0.0], [0.0]
    sampler = Sampler(
        lambda line: None,
        share=0.5,
        keys={"Orders": ("pk", "sk")},
        chance=lambda: drawn[0],
        now=lambda: moment[0] + time.monotonic(),
    )
    sampler.listen(of.meta.events)
    events(of, "Query")()
    drawn[0], moment[0] = chance, 2 * SOON


def _microseconds(way: Callable[[], Any], times: int) -> float:
    began = time.thread_time_ns()
    for _ in range(times):
        way()
    return (time.thread_time_ns() - began) / times / 1_000


def main() -> None:
    """Prints it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=SHARE)
    print(json.dumps(overheads(parser.parse_args().share), indent=2))


if __name__ == "__main__":
    main()
