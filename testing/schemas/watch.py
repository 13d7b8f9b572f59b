"""Holds what tests send and get against the schemas: the one hook, put in by tests/conftest.py.

Calls over the wire are seen where botocore makes them, so all end-to-end tests are; handlers that
a test calls itself are wrapped; tests/machine.py, which walks the state machines in this process,
calls `exchanged`.
"""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

from botocore.client import BaseClient
from botocore.response import StreamingBody
from handlers import sharding
from jsonschema import Draft202012Validator
from keyhop.errors import InvalidInput

from testing.schemas.catalogue import EXCHANGES

BEYOND_SCHEMAS = (
    "tables of this deployment",
    "is ambiguous in this deployment",
    "has no keyIndex in this deployment",
    "between is wrong",
    "key must be",
)
"""Refusals that need the deployment, or the meaning of a typed value."""

HANDLERS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "write_sharded": ("WriteSharded", lambda event: event),
    "query_sharded": ("QuerySharded", lambda event: event),
    "propose_drains": ("ProposeDrains", lambda event: event),
    "move_shards": ("DrainShards", lambda event: event["request"]),
}
"""By function of handlers.sharding: what it is, and what of its event is the input."""


class AgainstTheSchema(AssertionError):
    """What was sent or put out is not as published."""


@cache
def input_of(name: str) -> Draft202012Validator:
    return Draft202012Validator(EXCHANGES[name].input())


@cache
def output_of(name: str) -> Draft202012Validator:
    """Strict: a field that is not in the schema is one that nobody was told of."""
    return Draft202012Validator(EXCHANGES[name].output(strict=True))


def faults(validator: Draft202012Validator, value: Any) -> list[str]:
    """What is wrong; empty if nothing is."""
    errors = sorted(validator.iter_errors(value), key=lambda error: [*map(str, error.path)])
    return [f"{error.json_path}: {error.message}" for error in errors]


def exchanged(name: str, given: Any, output: Any) -> None:
    """An input was taken, and this came of it; raises AgainstTheSchema."""
    for what, validator, value in (
        ("takes an input", input_of(name), given),
        ("has an output", output_of(name), output),
    ):
        if wrong := faults(validator, json.loads(json.dumps(value))):
            raise AgainstTheSchema(f"{name} {what} that its schema refuses: {wrong}: {value}")


def refused(name: str, given: Any, error: InvalidInput) -> None:
    """An input was refused; raises AgainstTheSchema if the schema could have done it, and did not.

    Who gives no JSON has no schema to ask."""
    if any(reason in str(error) for reason in BEYOND_SCHEMAS):
        return
    if not faults(input_of(name), given):
        raise AgainstTheSchema(f"{name} refuses what its schema takes: {given}") from error


def watched(name: str, call: Callable[[], Any], given: Any) -> Any:
    """What `call` returns, held against the schemas as its input is."""
    try:
        output = call()
    except InvalidInput as error:
        refused(name, given, error)
        raise
    exchanged(name, given, output)
    return output


@contextmanager
def watching_handlers() -> Iterator[None]:
    """Those of HANDLERS, when they are called in this process."""
    with ExitStack() as stack:
        for function, (name, input_) in HANDLERS.items():
            around = _around(getattr(sharding, function), name, input_)
            stack.enter_context(patch.object(sharding, function, around))
        yield


def _around(
    handler: Callable[..., Any], name: str, input_: Callable[[Any], Any]
) -> Callable[..., Any]:
    def around(event: Any, context: Any) -> Any:
        return watched(name, lambda: handler(event, context), input_(event))

    return around


@contextmanager
def watching_calls() -> Iterator[None]:
    """Executions and invocations of this process, whatever client asks for them."""
    make = BaseClient._make_api_call
    begun: dict[str, Any] = {}

    def call(client: Any, operation: str, given: Any) -> Any:
        answer = make(client, operation, given)
        if operation == "StartExecution":
            begun[answer["executionArn"]] = json.loads(given.get("input", "{}"))
        elif operation == "DescribeExecution" and answer["status"] == "SUCCEEDED":
            arn = given["executionArn"]
            name = _known(arn.split(":")[6])
            if name and arn in begun:
                exchanged(name, begun[arn], json.loads(answer["output"]))
        elif operation == "Invoke" and (name := _known(given["FunctionName"])):
            answer["Payload"] = _read(answer, name, json.loads(given.get("Payload") or "null"))
        return answer

    with patch.object(BaseClient, "_make_api_call", call):
        yield


def _read(answer: Mapping[str, Any], name: str, event: Any) -> StreamingBody:
    content = answer["Payload"].read()
    if "FunctionError" not in answer:
        exchanged(name, event, json.loads(content))
    return StreamingBody(io.BytesIO(content), len(content))


def _known(deployed: str) -> str | None:
    """What a function or a state machine of any stack is, by the end of its name."""
    name = deployed.rpartition("-")[2]
    return name if name in EXCHANGES else None
