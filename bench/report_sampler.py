"""Measure the CPU time that the request sampler adds to a request of boto3's client.

    python -m bench.report_sampler [--share 0.05]

A hook answers each request before it is sent, so the network takes no time. In addition, the two
events that the sampler receives are emitted: without a sampler, with one that skips the request,
and with one that samples it. These take turns, and the minimum of some rounds counts, because other
programs can only add to the time.
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
"""The number of requests in a round."""
EVENTS = 10
"""How many times as many events a round has."""
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
"""The query reads an index, so the sampler remembers writes. It returns 20 items."""
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
    """Return a client whose requests are answered immediately."""
    boto3_client = boto3.Session().client("dynamodb", **CREDENTIALS)
    bodies = {name: json.dumps(answer).encode() for name, answer in ANSWERS.items()}

    def answer(request: Any, event_name: str, **_: Any) -> AWSResponse:
        body = bodies[event_name.rpartition(".")[2]]
        return AWSResponse(request.url, 200, {"x-amzn-requestid": "1"}, _Raw(body))

    boto3_client.meta.events.register("before-send.dynamodb", answer)
    return boto3_client


def events(boto3_client: Any, name: str) -> Callable[[], None]:
    """Return a function that emits the events of one request, as boto3's client does."""
    emitter = boto3_client.meta.events
    model = boto3_client.meta.service_model.operation_model(name)
    params, parsed = REQUESTED[name], ANSWERS[name]

    def emit() -> None:
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

    return emit


def overheads(share: float = SHARE) -> dict[str, dict[str, float]]:
    """Return for each request the CPU microseconds without a sampler, and what the sampler adds.

    The figures are the microseconds that it adds to a request that it skips, and to one that it
    samples, and the percentage that it adds on average if it samples this share of requests.
    """
    plain, left_out, looked_at = client(), client(), client()
    for sampled_client, chance in ((left_out, 1.0), (looked_at, 0.0)):
        _attach_sampler(sampled_client, chance)
    figures = {}
    for name in REQUESTED:
        ways = [
            lambda name=name: getattr(plain, METHODS[name])(**REQUESTED[name]),
            *(events(boto3_client, name) for boto3_client in (plain, left_out, looked_at)),
        ]
        fastest = [float("inf")] * len(ways)
        for _ in range(ROUNDS):
            for at, way in enumerate(ways):
                times = REQUESTS * (EVENTS if at else 1)
                fastest[at] = min(fastest[at], _microseconds(way, times))
        request, none, skipped, sampled = fastest
        percent = 100 * ((1 - share) * (skipped - none) + share * (sampled - none)) / request
        figures[name] = {
            "request_us": round(request, 1),
            "left_out_us": round(skipped - none, 2),
            "looked_at_us": round(sampled - none, 2),
            "percent": round(percent, 2),
        }
    return figures


def _attach_sampler(boto3_client: Any, chance: float) -> None:
    """Attach a sampler that has seen a read of an index, so it remembers writes."""
    number, moment = [0.0], [0.0]
    sampler = Sampler(
        lambda line: None,
        share=0.5,
        keys={"Orders": ("pk", "sk")},
        chance=lambda: number[0],
        now=lambda: moment[0] + time.monotonic(),
    )
    sampler.listen(boto3_client.meta.events)
    events(boto3_client, "Query")()
    number[0], moment[0] = chance, 2 * SOON


def _microseconds(way: Callable[[], Any], times: int) -> float:
    began = time.thread_time_ns()
    for _ in range(times):
        way()
    return (time.thread_time_ns() - began) / times / 1_000


def main() -> None:
    """Measure, and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=SHARE)
    print(json.dumps(overheads(parser.parse_args().share), indent=2))


if __name__ == "__main__":
    main()
