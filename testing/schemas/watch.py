"""Validation of the inputs and outputs of tests against the schemas; tests/conftest.py installs it.

Calls to services are validated where botocore makes them, in all end-to-end tests. Handlers that a
test calls directly are wrapped. tests/machine.py, which runs the state machines in this process,
calls `watched`.
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
"""The texts of refusals that depend on the deployment, or on the meaning of a typed value."""

HANDLERS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "write_sharded": ("WriteSharded", lambda event: event),
    "query_sharded": ("QuerySharded", lambda event: event),
    "propose_drains": ("ProposeDrains", lambda event: event),
    "move_shards": ("DrainShards", lambda event: event["request"]),
}
"""The functions of handlers.sharding, each with its exchange and the input in its event."""


class AgainstTheSchema(AssertionError):
    """An input or an output contradicts its published schema."""


@cache
def input_of(name: str) -> Draft202012Validator:
    return Draft202012Validator(EXCHANGES[name].input())


@cache
def output_of(name: str) -> Draft202012Validator:
    """Return a strict validator, because an output must not have an unpublished field."""
    return Draft202012Validator(EXCHANGES[name].output(strict=True))


def faults(validator: Draft202012Validator, value: Any) -> list[str]:
    """Return the errors in a value."""
    errors = sorted(validator.iter_errors(value), key=lambda error: [*map(str, error.path)])
    return [f"{error.json_path}: {error.message}" for error in errors]


def exchanged(name: str, value: Any, output: Any) -> None:
    """Validate an accepted input and its output; raise AgainstTheSchema if one is invalid."""
    for what, validator, content in (
        ("takes an input", input_of(name), value),
        ("has an output", output_of(name), output),
    ):
        if errors := faults(validator, json.loads(json.dumps(content))):
            raise AgainstTheSchema(f"{name} {what} that its schema refuses: {errors}: {content}")


def refused(name: str, value: Any, error: InvalidInput) -> None:
    """Raise AgainstTheSchema if an input was refused that is valid by the schema."""
    if any(reason in str(error) for reason in BEYOND_SCHEMAS):
        return
    if not faults(input_of(name), value):
        raise AgainstTheSchema(f"{name} refuses what its schema takes: {value}") from error


def watched(name: str, call: Callable[[], Any], value: Any) -> Any:
    """Return what `call` returns, after validation of its input and its output."""
    try:
        output = call()
    except InvalidInput as error:
        refused(name, value, error)
        raise
    exchanged(name, value, output)
    return output


@contextmanager
def watching_handlers() -> Iterator[None]:
    """Validate the calls of HANDLERS in this process."""
    with ExitStack() as stack:
        for function, (name, input_) in HANDLERS.items():
            wrapper = _wrapped(getattr(sharding, function), name, input_)
            stack.enter_context(patch.object(sharding, function, wrapper))
        yield


def _wrapped(
    handler: Callable[..., Any], name: str, input_: Callable[[Any], Any]
) -> Callable[..., Any]:
    def wrapper(event: Any, context: Any) -> Any:
        return watched(name, lambda: handler(event, context), input_(event))

    return wrapper


@contextmanager
def watching_calls() -> Iterator[None]:
    """Validate the executions and invocations of all clients in this process."""
    make = BaseClient._make_api_call
    inputs: dict[str, Any] = {}

    def call(client: Any, operation: str, request: Any) -> Any:
        answer = make(client, operation, request)
        if operation == "StartExecution":
            inputs[answer["executionArn"]] = json.loads(request.get("input", "{}"))
        elif operation == "DescribeExecution" and answer["status"] == "SUCCEEDED":
            arn = request["executionArn"]
            name = _exchange_of(arn.split(":")[6])
            if name and arn in inputs:
                exchanged(name, inputs[arn], json.loads(answer["output"]))
        elif operation == "Invoke" and (name := _exchange_of(request["FunctionName"])):
            answer["Payload"] = _read(answer, name, json.loads(request.get("Payload") or "null"))
        return answer

    with patch.object(BaseClient, "_make_api_call", call):
        yield


def _read(answer: Mapping[str, Any], name: str, event: Any) -> StreamingBody:
    content = answer["Payload"].read()
    if "FunctionError" not in answer:
        exchanged(name, event, json.loads(content))
    return StreamingBody(io.BytesIO(content), len(content))


def _exchange_of(deployed: str) -> str | None:
    """Return the exchange of a function or a state machine of any stack, from its name's end."""
    name = deployed.rpartition("-")[2]
    return name if name in EXCHANGES else None
