"""Requests of a sharded table on their way: held up, refused, or answered late."""

from collections.abc import Callable
from threading import Barrier, Lock, Thread
from typing import Any

from botocore.exceptions import ClientError
from keyhop.sharding.table import ShardedTable

from tests.integration.sharding.single import Place

Hook = Callable[[str, dict[str, Any], Callable[[], Any]], Any]
"""Of the operation, its parameters and what sends it: the answer."""


def hook(table: ShardedTable, act: Hook) -> None:
    """From now on, each request goes through `act`, which may let it pass."""
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
    happens: Callable[[], object],
    *,
    answered: bool = False,
) -> list[str]:
    """Something happens before the first such request is sent, or after it took effect (answered).

    Returns its operation, in a list that is empty until then.
    """
    done: list[str] = []
    lock = Lock()

    def act(operation: str, parameters: dict[str, Any], send: Callable[[], Any]) -> Any:
        with lock:
            is_it = not done and matches(operation, parameters)
            done.extend([operation] * is_it)
        if is_it and not answered:
            happens()
        answer = send()
        if is_it and answered:
            happens()
        return answer

    hook(table, act)
    return done


def is_a(operation: str, table: str = "") -> Callable[[str, dict[str, Any]], bool]:
    """Requests of an operation, to one table or to any."""
    return lambda name, words: name == operation and table in ("", words.get("TableName"))


def at_once(*works: Callable[[], Any]) -> list[Exception]:
    """Begin all at the same moment, each in a thread of its own; what they have raised."""
    begun = Barrier(len(works))
    raised: list[Exception] = []

    def act(work: Callable[[], Any]) -> None:
        begun.wait()
        try:
            work()
        except Exception as error:
            raised.append(error)

    threads = [Thread(target=act, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return raised


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code}}, "PutItem")


def physical(place: Place, operation: str, parameters: dict[str, Any]) -> int | None:
    """The shard that a write of an item of the table goes to."""
    writes = ("put_item", "update_item", "delete_item")
    if parameters.get("TableName") != place.name or operation not in writes:
        return None
    key = (parameters.get("Item") or parameters["Key"])["path"]
    parsed = place.names.parsed(key)
    return None if parsed is None else parsed[1]
