"""The guard of a router refuses requests of boto3's clients, in virtual time.

All of boto3 runs. A request counts as sent when it reaches the wire that replaces the network.
"""

import asyncio
import contextvars
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import botocore.endpoint
import pytest
from botocore.client import BaseClient
from botocore.retries.adaptive import ClientRateLimiter
from keyhop.errors import CannotStart, Unreachable, WriteUncertain
from keyhop.rekey import Router

from testing.boto_in_process import Refused, Wire
from testing.rekey_side import SideInMemory
from testing.virtual_time import VirtualClock

ITEM = {"id": {"S": "late"}}
CHANGES = ("closed", "froze", "fenced", "turned", "opened")


class World:
    """A side table, a wire in place of the network, and a clock."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.side = SideInMemory()
        self.wire = Wire()

    def router(self, *clients: Any, side: SideInMemory | None = None) -> Router:
        return Router(side or self.side, clients=clients, clock=self.clock, chance=random.Random(1))

    def cut_over(self, side: SideInMemory | None = None) -> None:
        """Pause this thread for an hour; the other table serves at its end."""
        self.clock.sleep(3_600)
        changed = side or self.side
        for change in CHANGES:
            changed.item = getattr(changed.item, change)()

    def paused(self, act: Callable[[], object]) -> Callable[[], Any]:
        """Return a function that pauses through a cutover and then acts."""

        def go() -> object:
            self.cut_over()
            return act()

        return go

    def write(self, router: Router, old: Any, new: Any = lambda: None) -> Any:
        """Write with a router, in virtual time."""
        return self.clock.run([lambda: router.write(old=old, new=new)])[0]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def client(world: World) -> Any:
    return world.wire.client()


@pytest.fixture
def router(world: World, client: Any) -> Router:
    """A router that guards the client."""
    return world.router(client)


def put(client: Any, table: str) -> None:
    client.put_item(TableName=table, Item=ITEM)


# --- the clients that a router guards ---


def use_client(wire: Wire) -> tuple[list[Any], list[Callable[[str], object]]]:
    client = wire.client()
    return [client], [partial(put, client)]


def use_resource(wire: Wire) -> tuple[list[Any], list[Callable[[str], object]]]:
    resource = wire.resource()
    return [resource], [
        lambda table: resource.Table(table).put_item(Item={"id": "late"}),
        partial(put, resource.meta.client),
    ]


def use_table(wire: Wire) -> tuple[list[Any], list[Callable[[str], object]]]:
    table = wire.resource().Table("old")
    return [table], [lambda name: table.put_item(Item={"id": "late"})]


def use_several(wire: Wire) -> tuple[list[Any], list[Callable[[str], object]]]:
    clients = [wire.client(), wire.resource(), wire.client(retries={"mode": "adaptive"})]
    return clients, [
        partial(put, clients[0]),
        lambda table: clients[1].Table(table).put_item(Item={"id": "late"}),
        partial(put, clients[2]),
    ]


KINDS = (use_client, use_resource, use_table, use_several)


@pytest.mark.parametrize("kind", KINDS)
def test_a_write_that_was_paused_through_a_cutover_is_not_sent_to_the_old_table(
    world: World, kind: Any
) -> None:
    clients, writes = kind(world.wire)
    router = world.router(*clients)

    def use() -> None:
        for write in writes:
            world.side.item = replace(world.side.item, serving="source")
            world.clock.sleep(60)
            old = world.paused(partial(write, "old"))
            assert router.write(old=old, new=lambda: "new") == "new"

    world.clock.run([use])
    assert world.wire.sent == []
    assert router.usage.counters["writes_sent_anew"] == len(writes)


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_write_goes_on_while_nothing_changes(world: World, kind: Any) -> None:
    clients, writes = kind(world.wire)
    router = world.router(*clients)

    def old() -> None:
        for write in writes:
            world.clock.sleep(3_600)
            write("old")

    world.write(router, old)
    assert world.wire.tables() == ["old"] * len(writes)


def test_without_a_guard_a_paused_write_is_sent_and_not_acknowledged(
    world: World, client: Any
) -> None:
    with pytest.raises(WriteUncertain):
        world.write(world.router(), world.paused(partial(put, client, "old")))
    assert world.wire.tables() == ["old"]


def unreachable(world: World, seconds: float, act: Callable[[], object]) -> Callable[[], None]:
    """Return a function that acts after a pause that makes the side table unreachable."""

    def refuse(request: str) -> None:
        raise Unreachable("no")

    def go() -> None:
        world.clock.sleep(seconds)
        world.side.before = refuse
        act()

    return go


def test_a_client_that_is_passed_twice_and_with_its_tables_is_guarded_once(world: World) -> None:
    """With two guards, a client would read the control item twice."""
    resource = world.wire.resource()
    table, client = resource.Table("old"), resource.meta.client
    router = world.router(resource, resource, table, resource.Table("new"), client)

    with pytest.raises(Unreachable):
        world.write(router, unreachable(world, 20, partial(put, client, "old")))
    assert world.wire.sent == []
    hooks = client.meta.events._emitter._handlers.prefix_search("before-send.dynamodb.PutItem")
    assert len([hook for hook in hooks if "Guard" in getattr(hook, "__qualname__", "")]) == 1


class AsyncClient(BaseClient):
    """A client whose calls are coroutines, like those of aiobotocore."""

    def __init__(self, client: Any) -> None:
        self.meta = client.meta

    async def _make_api_call(self, operation_name: str, api_params: Any) -> Any:
        raise AssertionError


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda wire: "Orders", "builtins.str is none of these"),
        (lambda wire: None, "builtins.NoneType is none of these"),
        (lambda wire: wire.client("s3"), "S3 is none of these"),
        (lambda wire: wire.client("dynamodbstreams"), "DynamoDBStreams is none of these"),
        (lambda wire: SimpleNamespace(meta=SimpleNamespace(events=None)), "none of these"),
        (lambda wire: AsyncClient(wire.client()), "asynchronous client .*AsyncClient"),
        (
            lambda wire: SimpleNamespace(meta=SimpleNamespace(client=AsyncClient(wire.client()))),
            "asynchronous client",
        ),
    ],
)
def test_a_list_with_an_object_that_is_no_client_of_dynamodb_guards_no_client(
    world: World, client: Any, make: Any, says: str
) -> None:
    before = len(client.meta.events._emitter._handlers.prefix_search("before-send"))
    with pytest.raises(TypeError, match=says):
        world.router(client, make(world.wire))
    after = client.meta.events._emitter._handlers.prefix_search("before-send")
    assert len(after) == before


@pytest.mark.parametrize("argument", ["a client", "text"])
def test_a_client_that_is_not_in_a_sequence_is_refused(world: World, argument: str) -> None:
    clients = world.wire.client() if argument == "a client" else "text"
    with pytest.raises(TypeError, match="clients must be a sequence"):
        Router(world.side, clients=clients)


def test_clients_must_be_named() -> None:
    with pytest.raises(TypeError, match="clients"):
        Router(SideInMemory())  # type: ignore[call-arg]


@pytest.mark.parametrize("config", [{"read_timeout": 1}, {"retries": {"mode": "legacy"}}])
def test_a_client_with_another_configuration_is_guarded(world: World, config: Any) -> None:
    client = world.wire.client(**config)
    old = world.paused(partial(put, client, "old"))
    world.write(world.router(client), old, partial(put, client, "new"))
    assert world.wire.tables() == ["new"]


# --- the requests that a guard refuses ---


def write_in_transaction(client: Any, table: str) -> None:
    client.transact_write_items(TransactItems=[{"Put": {"TableName": table, "Item": ITEM}}])


def write_in_batch(client: Any, table: str) -> None:
    client.batch_write_item(RequestItems={table: [{"PutRequest": {"Item": ITEM}}]})


def write_by_statement(client: Any, table: str) -> None:
    client.execute_statement(Statement=f'DELETE FROM "{table}" WHERE id = 1')


WRITES = (put, write_in_transaction, write_in_batch, write_by_statement)


@pytest.mark.parametrize("write", WRITES)
def test_each_way_to_write_is_guarded(
    world: World, client: Any, router: Router, write: Any
) -> None:
    old = world.paused(partial(write, client, "old"))
    world.write(router, old, partial(write, client, "new"))
    assert len(world.wire.sent) == 1
    assert "new" in str(world.wire.sent)


@pytest.mark.parametrize("write", WRITES)
def test_a_write_that_a_cutover_interrupts_after_its_first_request_is_uncertain(
    world: World, client: Any, router: Router, write: Any
) -> None:
    def old() -> None:
        write(client, "old")
        world.cut_over()
        put(client, "old")

    with pytest.raises(WriteUncertain):
        world.write(router, old, partial(put, client, "new"))
    assert len(world.wire.sent) == 1
    assert router.usage.counters["writes_uncertain"] == 1


def test_a_write_that_has_only_read_is_repeated_and_not_uncertain(
    world: World, client: Any, router: Router
) -> None:
    """An example is a function that gets an item, changes it and puts it."""

    def change(table: str, pause: Callable[[], None] = lambda: None) -> None:
        client.get_item(TableName=table, Key=ITEM)
        client.query(TableName=table, KeyConditionExpression="id = :id")
        pause()
        put(client, table)

    world.write(router, partial(change, "old", world.cut_over), partial(change, "new"))
    assert world.wire.tables() == ["old", "old", "new", "new", "new"]


def test_a_write_that_has_only_searched_vectors_is_repeated(
    world: World, client: Any, router: Router
) -> None:
    search = {"IndexName": "by-meaning", "SearchVector": [{"N": "1"}], "TopK": 1}

    def old() -> None:
        client.search_vectors(TableName="old", **search)
        world.cut_over()
        put(client, "old")

    world.write(router, old, partial(put, client, "new"))
    assert world.wire.tables() == ["old", "new"]


def test_a_bulk_put_is_refused_in_a_write_because_it_continues_after_it(
    world: World, client: Any, router: Router
) -> None:
    def load(table: str) -> None:
        client.start_bulk_put_items(
            TableName=table,
            InputS3Configuration={"S3Bucket": "items", "InputFormat": "DYNAMODB_JSON"},
            OutputS3Configuration={"S3Bucket": "items", "OutputType": ["ERROR"]},
        )

    with pytest.raises(CannotStart, match="bulk put"):
        world.write(router, partial(load, "old"), partial(load, "new"))
    assert not world.wire.sent


@pytest.mark.parametrize("mode", ["legacy", "standard", "adaptive"])
def test_a_retry_of_boto3_that_was_paused_is_not_sent(
    world: World, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt may have succeeded, so the write is uncertain."""
    client = world.wire.client(retries={"mode": mode, "max_attempts": 4})
    router = world.router(client)

    def fail(operation: str, parameters: Any) -> Any:
        raise Refused(500, "InternalServerError")

    world.wire.answer = fail
    monkeypatch.setattr(
        botocore.endpoint, "time", SimpleNamespace(sleep=lambda seconds: world.cut_over())
    )
    with pytest.raises(WriteUncertain):
        world.write(router, partial(put, client, "old"))
    assert world.wire.tables() == ["old"]


def test_the_guard_looks_after_the_rate_limiter_of_boto3_has_waited(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the retry mode "adaptive", boto3 sleeps in a hook like that of the guard."""
    waits: list[str] = []

    def wait(self: Any, request: Any, **_: Any) -> None:
        waits.append("wait")
        world.cut_over()

    monkeypatch.setattr(ClientRateLimiter, "on_sending_request", wait)
    client = world.wire.client(retries={"mode": "adaptive"})
    router = world.router(client)
    world.write(router, partial(put, client, "old"), lambda: "new")
    assert waits == ["wait"]
    assert world.wire.sent == []


def test_a_batch_writer_that_was_paused_half_way_is_uncertain(world: World) -> None:
    table = world.wire.resource().Table("old")
    router = world.router(table)
    world.wire.answer = lambda operation, parameters: {"UnprocessedItems": {}}

    def old() -> None:
        with table.batch_writer() as batch:
            for number in range(30):
                batch.put_item(Item={"id": str(number)})
            world.cut_over()

    with pytest.raises(WriteUncertain):
        world.write(router, old)
    assert len(world.wire.sent) == 1


def test_a_client_outside_of_a_write_is_not_touched(
    world: World, client: Any, router: Router
) -> None:
    router.write(old=partial(put, client, "old"), new=lambda: None)

    def use() -> None:
        world.cut_over()
        looks = router.usage.counters["looks"]
        put(client, "old")
        assert router.usage.counters["looks"] == looks

    world.clock.run([use])
    router.read(old=partial(put, client, "a read"), new=partial(put, client, "a read"))
    assert world.wire.tables() == ["old", "old", "a read"]


# --- the application's function and the refusal ---


class Wrapped(Exception):
    """An error of the application."""


@pytest.mark.parametrize("swallows", [True, False])
def test_a_refusal_that_the_function_catches_does_not_acknowledge_the_write(
    world: World, client: Any, router: Router, swallows: bool
) -> None:
    def old() -> str:
        world.cut_over()
        try:
            put(client, "old")
        except Exception as error:
            if not swallows:
                raise Wrapped from error
        return "old"

    assert world.write(router, old, lambda: "new") == "new"


def test_an_error_of_the_function_is_passed_on(client: Any, router: Router) -> None:
    def old() -> None:
        put(client, "old")
        raise Wrapped

    with pytest.raises(Wrapped):
        router.write(old=old, new=lambda: None)


def test_nothing_is_sent_if_the_control_item_cannot_be_read(
    world: World, client: Any, router: Router
) -> None:
    with pytest.raises(Unreachable):
        world.write(router, unreachable(world, 60, partial(put, client, "old")))
    assert world.wire.sent == []


# --- several routers, several threads ---


def test_each_router_guards_only_its_own_writes(world: World, client: Any, router: Router) -> None:
    """Two re-keys share one client; the cutover of one does not stop writes of the other."""
    other_side = SideInMemory()
    other_router = world.router(client, side=other_side)

    def old() -> None:
        world.cut_over(other_side)
        put(client, "old")

    other_router.write(old=lambda: None, new=lambda: None)
    world.write(router, old, lambda: pytest.fail("it did not turn"))
    assert world.wire.tables() == ["old"]

    def paused() -> None:
        world.cut_over(other_side)
        put(client, "other's")

    assert other_router.serving == "destination"
    world.write(other_router, partial(put, client, "back"), paused)
    assert world.wire.tables() == ["old", "back"]


@pytest.mark.parametrize("same", [True, False])
def test_a_write_within_a_write_is_refused_for_the_outer_one_too(
    world: World, client: Any, router: Router, same: bool
) -> None:
    """The outer router's table has changed, so the outer write is repeated, not the inner one."""
    inner = router if same else world.router(client, side=SideInMemory())
    calls: list[str] = []

    def old() -> None:
        calls.append("outer old")
        assert len(calls) < 5
        world.cut_over()
        inner.write(old=partial(put, client, "inner old"), new=partial(put, client, "inner new"))

    def new() -> str:
        calls.append("outer new")
        inner.write(old=partial(put, client, "inner old"), new=partial(put, client, "inner new"))
        return "new"

    assert world.write(router, old, new) == "new"
    assert calls == ["outer old", "outer new"]
    assert world.wire.tables() == ["inner new" if same else "inner old"]


def test_a_write_within_a_write_that_has_sent_something_makes_the_outer_one_uncertain(
    world: World, client: Any, router: Router
) -> None:
    def old() -> None:
        router.write(old=partial(put, client, "old"), new=lambda: None)
        world.cut_over()
        put(client, "old")

    with pytest.raises(WriteUncertain):
        world.write(router, old)
    assert world.wire.tables() == ["old"]


def test_each_thread_that_shares_a_client_is_guarded_for_its_own_write(
    world: World, client: Any, router: Router
) -> None:
    """Half of the threads are paused through the cutover, and the other half start after it."""

    def paused() -> None:
        world.clock.sleep(3_600)
        put(client, "old")

    def change() -> None:
        world.clock.sleep(1_800)
        for name in CHANGES:
            world.side.item = getattr(world.side.item, name)()

    def later() -> None:
        world.clock.sleep(2_700)
        router.write(old=partial(put, client, "old"), new=partial(put, client, "new"))

    early = [lambda: router.write(old=paused, new=partial(put, client, "new"))] * 8
    world.clock.run([*early, change, *[later] * 8])
    assert world.wire.tables() == ["new"] * 16


def run_in_thread(work: Callable[[], None]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def run_with_context(work: Callable[[], None]) -> None:
    context = contextvars.copy_context()
    run_in_thread(lambda: context.run(work))


def run_in_asyncio(work: Callable[[], None]) -> None:
    asyncio.run(asyncio.to_thread(work))


def test_a_request_in_another_thread_of_the_function_is_counted_but_not_guarded(
    world: World, client: Any, router: Router
) -> None:
    """The hook cannot know to which write it belongs."""
    old = world.paused(lambda: run_in_thread(partial(put, client, "old")))
    router.write(old=lambda: None, new=lambda: None)
    assert router.usage.counters["writes_unseen"] == 1, "nothing was sent"
    with pytest.raises(WriteUncertain):
        world.write(router, old)
    assert world.wire.tables() == ["old"]
    router.write(old=lambda: None, new=lambda: run_in_thread(partial(put, client, "new")))
    assert router.usage.counters["writes_unseen"] == 2
    router.write(old=lambda: None, new=partial(put, client, "new"))
    assert router.usage.counters["writes_unseen"] == 2


@pytest.mark.parametrize("run", [run_with_context, run_in_asyncio])
def test_a_thread_that_has_the_context_of_the_write_is_guarded(
    world: World, client: Any, router: Router, run: Any
) -> None:
    old = world.paused(partial(run, partial(put, client, "old")))
    world.write(router, old, partial(run, partial(put, client, "new")))
    assert world.wire.tables() == ["new"]
    assert router.usage.counters["writes_unseen"] == 0


def test_a_thread_that_outlives_its_write_is_no_longer_guarded_by_it(
    world: World, client: Any, router: Router
) -> None:
    """An example is a worker thread that the first write starts, and that others use."""
    contexts: list[contextvars.Context] = []

    def old() -> None:
        contexts.append(contextvars.copy_context())
        put(client, "old")

    def later() -> None:
        world.cut_over()
        contexts[0].run(put, client, "outside")
        contexts[0].run(router.write, old=old, new=partial(put, client, "new"))

    router.write(old=old, new=lambda: None)
    world.clock.run([later])
    assert world.wire.tables() == ["old", "outside", "new"]


# --- reports ---


@pytest.mark.parametrize("guarded", [True, False])
def test_a_router_reports_whether_it_has_a_guard(world: World, guarded: bool) -> None:
    router = world.router(*[world.wire.client()] * guarded)
    router.read(old=lambda: None, new=lambda: None)
    (report,) = world.side.reports.values()
    assert report["guarded"] is guarded
