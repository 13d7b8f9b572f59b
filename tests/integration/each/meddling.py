"""A client that calls functions of a test before and after its requests."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

Params = Mapping[str, Any]


def error(code: str, status: int = 400, **more: Any) -> ClientError:
    response = {
        "Error": {"Code": code, "Message": "m"},
        "ResponseMetadata": {"HTTPStatusCode": status},
        **more,
    }
    return ClientError(response, "PutItem")


class Meddling:
    """A client that calls `before` before it sends a request, and `after` when it was served."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.before: Callable[[str, Params], None] = lambda operation, parameters: None
        self.after: Callable[[str, Params], None] = lambda operation, parameters: None
        self.calls: Counter[str] = Counter()

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        self.before(operation, parameters)
        self.calls[operation] += 1
        try:
            return self.client.call(operation, **parameters)
        finally:
            self.after(operation, parameters)


def once(on: str, action: Callable[[], Any]) -> Callable[[str, Params], None]:
    """Return a function that performs an action at the first call of an operation."""
    remaining = [action]

    def act(operation: str, parameters: Params) -> None:
        if operation == on and remaining:
            remaining.pop()()

    return act
