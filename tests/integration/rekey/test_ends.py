"""`complete` and `cancel` on DynamoDB Local remove everything of Keyhop's, killed or not."""

from dataclasses import replace
from itertools import count
from typing import Any, cast

import keyhop
import pytest
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.values import to_json
from keyhop.errors import CannotStart, RunConflict
from keyhop.rekey.life_cycle.end import How, settle_expiry
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.layout import MARKER_ATTRIBUTE

from testing.databases import Database
from testing.simulation.service import failure
from tests.integration.rekey.lives import (
    DAY,
    SETS_TTL,
    Dying,
    Life,
    client_at,
    is_killed,
    until_done,
)

STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


@pytest.fixture
def life(dynamodb: Database, table_name: str) -> Life:
    return new_life(dynamodb, table_name)


def new_life(dynamodb: Database, name: str, **more: Any) -> Life:
    dynamodb.create(name, **more)
    dynamodb.client.update_time_to_live(TableName=name, TimeToLiveSpecification=SETS_TTL)
    dynamodb.fill(name, [{"pk": {"S": "a"}, "sk": {"S": str(number)}} for number in range(3)])
    return Life(dynamodb, Pair(name, f"{name}-new", {"items": []}))


def tables_of(life: Life) -> list[str]:
    return [name for name in life.database.tables() if name.startswith(life.pair.source)]


def test_a_cancel_restores_everything(life: Life) -> None:
    before = life.snapshot(life.pair.source)
    life.begin()
    until_done(life.ending("cancel", delete=life.pair.destination).step)
    assert life.snapshot(life.pair.source) == before
    assert tables_of(life) == [life.pair.source]
    assert life.followers.streams == {}


def test_a_stream_that_was_on_stays_on(dynamodb: Database, table_name: str) -> None:
    life = new_life(dynamodb, table_name, StreamSpecification=STREAM)
    before = life.described(table_name)["LatestStreamArn"]
    life.begin()
    until_done(life.ending("cancel", delete=life.pair.destination).step)
    assert life.described(table_name)["LatestStreamArn"] == before
    assert life.described(table_name)["StreamSpecification"] == STREAM


def test_a_stream_that_another_function_reads_stays_on(life: Life) -> None:
    life.begin()
    stream = life.described(life.pair.source)["LatestStreamArn"]
    life.followers.functions[stream] = ["Search"]
    until_done(life.ending("cancel").step)
    assert life.described(life.pair.source)["StreamSpecification"] == STREAM


def test_the_stream_that_another_re_key_follows_stays_on(life: Life) -> None:
    life.begin()
    second_life = replace(life, pair=replace(life.pair, destination=f"{life.pair.source}-other"))
    second_life.begin()
    until_done(life.ending("cancel", delete=life.pair.destination).step)
    assert life.described(life.pair.source)["StreamSpecification"] == STREAM


class WithoutLists:
    """A client that may not list tables."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def call(self, operation: str, **parameters: Any) -> Any:
        if operation == "list_tables":
            raise failure("AccessDeniedException", "not authorized to perform: ListTables")
        return self._client.call(operation, **parameters)


def test_the_stream_stays_on_if_other_re_keys_cannot_be_seen(life: Life) -> None:
    life.begin()
    client = WithoutLists(client_at(life.database.url))
    until_done(life.ending("cancel", client=client, delete=life.pair.destination).step)
    assert tables_of(life) == [life.pair.source]
    assert life.described(life.pair.source)["StreamSpecification"] == STREAM


def test_a_table_that_create_did_not_make_is_not_deleted(life: Life) -> None:
    life.database.create(
        life.pair.destination, ("tenant", "S"), ("order", "N"), StreamSpecification=STREAM
    )
    until_done(life.creation(adopt=True).step)
    with pytest.raises(CannotStart, match="was not made by create"):
        until_done(life.ending("cancel", delete=life.pair.destination).step)
    until_done(life.ending("cancel").step)
    assert tables_of(life) == [life.pair.source, life.pair.destination]


@pytest.mark.parametrize("is_replaced", [False, True])
def test_the_destination_is_not_deleted_when_the_source_was(life: Life, is_replaced: bool) -> None:
    """The destination may hold the only copy."""
    life.begin()
    client, source = life.database.client, life.pair.source
    client.delete_table(TableName=source)
    if is_replaced:
        life.database.create(source)
    cancel = life.ending("cancel", delete=life.pair.destination)
    with pytest.raises(CannotStart, match="may hold the only copy"):
        cancel.check()
    with pytest.raises(CannotStart, match="may hold the only copy"):
        until_done(cancel.step)
    until_done(life.ending("cancel").step)
    assert tables_of(life) == [*[source] * is_replaced, life.pair.destination]


def test_another_name_deletes_nothing(life: Life) -> None:
    life.begin()
    with pytest.raises(CannotStart, match="give that name"):
        life.ending("cancel", delete=life.pair.source).step()
    assert life.pair.source in life.database.tables()


def test_after_the_cutover_nothing_is_cancelled(life: Life) -> None:
    life.begin()
    life.cut_over()
    with pytest.raises(CannotStart, match="roll back"):
        life.ending("cancel").step()
    assert life.side.control().replicating


def test_a_completed_destination_has_nothing_of_keyhop_and_its_items_expire(life: Life) -> None:
    life.begin()
    life.database.fill(
        life.pair.destination, [{"tenant": {"S": "t"}, "order": {"N": "1"}, "sk": {"S": "1"}}]
    )
    items = life.snapshot(life.pair.destination)["items"]
    life.cut_over()
    until_done(life.ending("complete").step)
    after = life.snapshot(life.pair.destination)
    assert (after["items"], after["ttl"]) == (items, "expires")
    assert "StreamSpecification" not in after["table"]  # the source had none
    assert life.ttl_attribute(life.pair.source) is None
    assert tables_of(life) == [life.pair.source, life.pair.destination]
    assert life.followers.streams == {}


def test_after_the_cutover_items_expire_in_the_serving_table(life: Life) -> None:
    life.begin()
    assert settle_expiry(Connection(life.database.client), life.side) == []
    life.cut_over()
    assert len(settle_expiry(Connection(life.database.client), life.side)) == 2
    assert life.ttl_attribute(life.pair.source) is None
    assert life.ttl_attribute(life.pair.destination) == "expires"
    control = life.side.control()
    life.side.swap(control, control.changed(serving="source"))  # a rollback
    settle_expiry(Connection(life.database.client), life.side)
    until_done(life.ending("cancel").step)
    assert life.ttl_attribute(life.pair.source) == "expires"
    assert life.ttl_attribute(life.pair.destination) is None


def test_a_time_to_live_that_is_still_changing_does_not_delay_that_of_the_other_table(
    life: Life,
) -> None:
    """The time to live takes an hour to be on; until then, the old table must expire no items."""

    class Slow:
        def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
            response: dict[str, Any] = client.call(operation, **parameters)
            ttl = response.get("TimeToLiveDescription", {})
            if ttl.get("TimeToLiveStatus") == "ENABLED" and name in parameters["TableName"]:
                ttl["TimeToLiveStatus"] = "ENABLING"
            return response

    life.begin()
    life.cut_over()
    name, client = life.pair.destination, client_at(life.database.url)
    messages = settle_expiry(Connection(cast(Any, Slow())), life.side)
    assert life.ttl_attribute(life.pair.source) is None
    assert "which is changing" in messages[-1]


def test_a_cutover_by_the_command_moves_expiry_and_ignores_a_refusal(life: Life) -> None:
    life.begin()
    life.cut_over()
    messages: list[str] = []
    pair, url = life.pair, life.database.url
    rekey = keyhop.Rekey(pair.source, pair.destination, endpoint_url=url, say=messages.append)
    rekey.move_expiry()
    assert life.ttl_attribute(life.pair.destination) == "expires"
    other_attribute = {**SETS_TTL, "AttributeName": "until"}
    life.database.client.update_time_to_live(
        TableName=life.pair.source, TimeToLiveSpecification=other_attribute
    )
    rekey.move_expiry()
    assert "items expire as before" in messages[-1]


def test_a_complete_with_the_name_of_the_source_deletes_it(life: Life) -> None:
    life.begin()
    life.cut_over()
    until_done(life.ending("complete", delete=life.pair.source).step)
    assert tables_of(life) == [life.pair.destination]


def test_a_protected_source_is_not_deleted_and_nothing_is_started(
    dynamodb: Database, table_name: str
) -> None:
    # The stream is on, since DynamoDB Local removes the protection at any other UpdateTable.
    settings = {"DeletionProtectionEnabled": True, "StreamSpecification": STREAM}
    life = new_life(dynamodb, table_name, **settings)
    life.begin()
    life.cut_over()
    with pytest.raises(CannotStart, match="has deletion protection"):
        life.ending("complete", delete=life.pair.source).step()
    assert life.side.control().replicating
    until_done(life.ending("complete").step)
    assert tables_of(life) == [life.pair.source, life.pair.destination]


def test_a_protected_destination_that_create_made_is_deleted(
    dynamodb: Database, table_name: str
) -> None:
    life = new_life(dynamodb, table_name, DeletionProtectionEnabled=True)
    life.begin()
    until_done(life.ending("cancel", delete=life.pair.destination).step)
    assert tables_of(life) == [life.pair.source]


def test_a_complete_with_a_short_window_continues_with_the_default_one(life: Life) -> None:
    """The next command that the status names does not include the window."""
    life.begin()
    life.cut_over()
    life.side.tell("turned", {"at": life.now - 2 * DAY, "serving": "destination"})
    with pytest.raises(CannotStart, match="complete comes"):
        life.ending("complete").check()
    life.ending("complete", window_days=1.0).step()
    assert not life.side.control().replicating
    life.ending("complete").check()
    until_done(life.ending("complete").step)
    assert tables_of(life) == [life.pair.source, life.pair.destination]


def test_complete_of_a_cutover_that_was_not_recorded_begins_the_window(life: Life) -> None:
    life.begin()
    life.cut_over()
    life.side.tell("turned", {"at": 0.0, "serving": "source"})  # an earlier rollback
    with pytest.raises(CannotStart, match="It was not noted when the cutover was"):
        life.ending("complete").check()
    with pytest.raises(CannotStart, match="there is a way back"):
        life.ending("complete").check(dry_run=False)
    life.now += 8 * DAY
    life.ending("complete").check()


def test_complete_is_refused_before_the_window_and_a_day_without_writes(life: Life) -> None:
    life.begin()
    with pytest.raises(CannotStart, match="The source serves"):
        life.ending("complete").step()
    life.cut_over()
    with pytest.raises(CannotStart, match="there is a way back"):
        life.ending("complete", window_days=30).step()
    life.side.straggler("source", {"pk": {"S": "a"}}, {})
    with pytest.raises(CannotStart, match="past the router"):
        life.ending("complete").step()
    life.now += 2 * DAY
    life.side.report_client("shop-7-ab", {"revision": 1, "until": life.now + 50})
    for act in (life.ending("complete").step, life.ending("complete").check):
        with pytest.raises(CannotStart, match="1 router goes by this re-key still: shop-7-ab"):
            act()
    assert life.side.told("ending") is None
    assert life.ending("complete").routers_of_last_day() == {"shop-7-ab": 10.0}
    life.now += 60
    until_done(life.ending("complete").step)


@pytest.mark.parametrize("how", ["complete", "cancel"])
def test_the_marker_of_a_killed_cutover_is_removed(life: Life, how: How) -> None:
    """Nothing else is removed: an item of an application stays, even if a note names its key."""
    life.begin()
    before = life.snapshot(life.pair.source)["items"]
    client, key_left = life.database.client, {"pk": {"S": "left"}, "sk": {"S": "left"}}
    theirs = {"pk": {"S": "theirs"}, "sk": {"S": "theirs"}}
    client.put_item(TableName=life.pair.source, Item={**key_left, MARKER_ATTRIBUTE: {"S": "one"}})
    client.put_item(TableName=life.pair.source, Item={**theirs, "x": {"S": "y"}})
    for marker, table, key in (
        ("one", life.pair.source, key_left),
        ("two", life.pair.source, theirs),
        ("three", life.pair.destination, {"tenant": {"S": "t"}, "order": {"N": "1"}}),
        ("four", "a-table-that-is-gone", key_left),
    ):
        life.side.put_marker(marker, {"table": table, "key": to_json(key), "at": life.now})
    if how == "complete":
        life.cut_over()
    until_done(life.ending(how).step)
    after = client.scan(TableName=life.pair.source)["Items"]
    assert [item for item in after if item not in before] == [{**theirs, "x": {"S": "y"}}]
    assert len(after) == len(before) + 1
    assert client.scan(TableName=life.pair.destination)["Items"] == []


def test_no_end_starts_while_the_serving_table_changes(life: Life) -> None:
    life.begin()
    control = life.side.control()
    life.side.swap(control, control.closed())
    with pytest.raises(CannotStart, match="closing"):
        life.ending("cancel").step()


def test_one_end_excludes_the_other_and_a_new_start(life: Life) -> None:
    life.begin()
    cancel = life.ending("cancel")
    while life.side.told("ending") is None:
        cancel.step()
    with pytest.raises(RunConflict, match="cancel has begun"):
        life.ending("complete").step()
    with pytest.raises(CannotStart, match="wait until cancel has ended"):
        life.starting().step()
    with pytest.raises(RunConflict, match="is being ended"):
        life.creation().step()


def test_an_end_waits_for_a_batch_in_flight(life: Life) -> None:
    life.begin()
    life.side.begin("forward", "shard", "1")
    cancel = life.ending("cancel")
    while "under way" not in (step := cancel.step()).says:
        assert not step.done
    life.side.end("forward", "shard", "1")
    until_done(cancel.step)


@pytest.mark.prove
@pytest.mark.parametrize("how", ["cancel", "complete"])
@pytest.mark.parametrize("after", [False, True])
def test_an_end_that_is_killed_at_each_change_still_removes_everything(
    dynamodb: Database, table_name: str, how: Any, after: bool
) -> None:
    for dies_at in count(1):
        life = new_life(dynamodb, f"{table_name}-{dies_at}")
        life.begin()
        if how == "complete":
            life.cut_over()
        delete = life.pair.destination if how == "cancel" else life.pair.source
        dying = Dying(client_at(dynamodb.url), dies_at, after)
        if not is_killed(life.ending(how, dying, delete=delete).step):
            break
        until_done(life.ending(how, delete=delete).step)
        remaining = life.pair.source if how == "cancel" else life.pair.destination
        assert tables_of(life) == [remaining]
        assert life.ttl_attribute(remaining) == "expires"
        assert life.followers.streams == {}
    assert dies_at > 4


@pytest.mark.prove
@pytest.mark.parametrize("after", [False, True])
def test_a_cancel_removes_everything_of_a_killed_create(
    dynamodb: Database, table_name: str, after: bool
) -> None:
    for dies_at in count(1):
        life = new_life(dynamodb, f"{table_name}-{dies_at}")
        before = life.snapshot(life.pair.source)
        if not is_killed(life.creation(Dying(client_at(dynamodb.url), dies_at, after)).step):
            break
        until_done(life.ending("cancel", delete=life.pair.destination).step)
        assert tables_of(life) == [life.pair.source]
        assert life.snapshot(life.pair.source) == before
