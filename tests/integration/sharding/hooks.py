"""Hooks that delay or refuse the requests of a sharded table, or delay their responses."""

from collections.abc import Callable
from threading import Barrier, Lock, Thread
from typing import Any

from botocore.exceptions import ClientError
from keyhop.sharding.table import ShardedTable

from tests.integration.sharding.single import Place

Hook = Callable[[str, dict[str, Any], Callable[[], Any]], Any]
"""A function of an operation, its parameters and a function that sends it. It responds."""


def hook(table: ShardedTable, act: Hook) -> None:
    """Pass each request of the table to `act` from now on."""
    client = table.requests.client

    class Hooked:
        def call(self, operation: str, **parameters: Any) -> Any:
            if operation == "describe_table":
                return client.call(operation, **parameters)
            return act(operation, parameters, lambda: client.call(operation, **parameters))

    table.requests.client = Hooked()


def once(
    table: ShardedTable,
    matches: Callable[[str, dict[str, Any]], bool],
    action: Callable[[], object],
    *,
    after: bool = False,
) -> list[str]:
    """Call `action` before the first matching request is sent, or after it took effect.

    Return a list that is empty until then, and then contains the operation of the request.
    """
    operations: list[str] = []
    lock = Lock()

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        with lock:
            is_first = not operations and matches(operation, parameters)
            operations.extend([operation] * is_first)
        if is_first and not after:
            action()
        response = send()
        if is_first and after:
            action()
        return response

    hook(table, act)
    return operations


def is_operation(operation: str, table: str = "") -> Callable[[str, dict[str, Any]], bool]:
    """Return a condition that a request is of this operation, on this table or on any."""
    return lambda name, request: name == operation and table in ("", request.get("TableName"))


def run_together(*calls: Callable[[], Any]) -> list[Exception]:
    """Make all calls at the same moment, each in a separate thread, and return their exceptions."""
    barrier = Barrier(len(calls))
    errors: list[Exception] = []

    def run(call: Callable[[], Any]) -> None:
        barrier.wait()
        try:
            call()
        except Exception as error:
            errors.append(error)

    threads = [Thread(target=run, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return errors


def client_error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}}, "PutItem")


def shard_of_write(place: Place, operation: str, parameters: dict[str, Any]) -> int | None:
    """Return the shard to which a request writes an item of the table. None for others."""
    writes = ("put_item", "update_item", "delete_item")
    if parameters.get("TableName") != place.name or operation not in writes:
        return None
    key = (parameters.get("Item") or parameters["Key"])["path"]
    parsed = place.names.parsed(key)
    return None if parsed is None else parsed[1]
