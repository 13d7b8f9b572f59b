"""Forked children of a process that uses a sharded table, as in web servers."""

import json
import os
import select
import signal
from collections.abc import Callable
from typing import Any

from keyhop.sharding.manage import list_keys

from tests.integration.sharding.single import Place

LONGEST_SECONDS = 60.0


def in_a_child(work: Callable[[], Any]) -> Any:
    """Return the result of `work` in a fork of this process. It must be JSON."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writing, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    try:
        with os.fdopen(reading) as answer:
            if not select.select([reading], [], [], LONGEST_SECONDS)[0]:
                os.kill(child, signal.SIGKILL)
                raise AssertionError("the child hangs")
            return json.loads(answer.read())
    finally:
        os.waitpid(child, 0)


def test_children_choose_shards_independently_and_can_read(place: Place) -> None:
    """They do not have their parent's threads or its random numbers."""
    table = place.table(placement="random", append_only=True, chance=None)
    place.register("/f", 64)
    table.put_item(Item={"path": "/f", "at": "parent"})
    assert len(list(table.query("/f", consistent=True))) == 1

    def work(child: str) -> Any:
        for n in range(12):
            table.put_item(Item={"path": "/f", "at": f"{child}{n:02}"})
        return len(list(table.query("/f", consistent=True)))

    assert in_a_child(lambda: work("a")) == 1 + 12
    assert in_a_child(lambda: work("b")) == 1 + 12 + 12
    shards = place.shards_of_items("/f")
    assert [shards[f"a{n:02}"] for n in range(12)] != [shards[f"b{n:02}"] for n in range(12)]


def test_traffic_before_a_fork_is_reported_once(place: Place) -> None:
    table = place.table()
    place.register("/f", 4)
    for n in range(10):
        table.put_item(Item={"path": "/f", "at": str(n)})

    def work() -> int:
        table.put_item(Item={"path": "/f", "at": "child"})
        table.close()
        return table.usage.counters["looks"]

    assert in_a_child(table.close) is None
    assert in_a_child(work) == 1
    table.close()
    (key,) = list_keys(place.table())
    assert [*key.traffic.values()] == [11]


def test_a_child_catches_its_errors_by_their_class(place: Place) -> None:
    """The child has another client, which has other classes of errors."""
    table = place.table()
    item = {"path": "/f", "at": "a"}
    table.put_item(Item=item)

    def work() -> str:
        try:
            table.put_item(Item=item, ConditionExpression="attribute_exists(v)")
        except table.meta.client.exceptions.ConditionalCheckFailedException:
            return "caught"
        return "written"

    assert in_a_child(work) == "caught"
    assert work() == "caught"
    table.close()
