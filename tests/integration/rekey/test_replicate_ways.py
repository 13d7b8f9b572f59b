"""Both directions of the stream's worker: when each writes, what it watches, and what it costs."""

from typing import Any

import pytest
from keyhop.dynamodb.values import Key
from keyhop.errors import GaveUp
from keyhop.rekey.control import Control

from tests.integration.rekey.worlds import World


def cut_over(world: World) -> None:
    """Pass through all stages of a cutover, as the state machine does."""
    control = world.side.control()
    for change in (Control.closed, Control.froze, Control.fenced, Control.turned, Control.opened):
        changed = change(control)
        assert world.side.swap(control, changed)
        control = changed


def put_image(world: World, pk: str, id_: str, data: str) -> None:
    item = {"pk": {"S": pk}, "id": {"S": id_}, "data": {"S": data}}
    world.client.put_item(TableName=world.pair.destination, Item=item)


def test_before_the_cutover_the_other_direction_writes_and_watches_nothing(world: World) -> None:
    world.put("s", "d")
    world.replicator().work(world.records())
    reverse = world.replicator("reverse")
    assert reverse.work(world.records("reverse")).share == "pass"
    assert reverse.expects_pass, "so the next batch reads the control item, and writes no note"
    world.put("t", "e")
    world.replicator().work(world.records())
    reverse.take_usage()
    records = world.records("reverse")
    reverse.work(records)
    usage = reverse.take_usage()
    assert (usage.write_units, usage.read_units) == (0, 2)
    world.side.begin("reverse", records[0]["eventID"], records[0]["dynamodb"]["SequenceNumber"])
    reverse.work(records)
    assert world.side.open_batches("reverse") == [], "nor does the note of a killed batch remain"
    assert world.side.stragglers() == []


def test_after_the_cutover_what_changes_in_the_destination_changes_in_the_source(
    world: World,
) -> None:
    world.put("s", "d", data="before")
    world.put("gone", "e")
    world.replicator().work(world.records())
    world.records("reverse")
    cut_over(world)
    put_image(world, "d", "s", "after")
    put_image(world, "new", "n", "after")
    world.client.delete_item(TableName=world.pair.destination, Key={"pk": {"S": "e"}})
    assert world.replicator("reverse").work(world.records("reverse")).share == "work"
    assert world.actual == world.expected
    assert len(world.expected) == 2
    worked = world.replicator().work(world.records())
    assert (worked.share, worked.stragglers) == ("pass", 0), "its own writes are no stragglers"


def test_who_bypasses_the_router_after_the_cutover_is_listed(world: World) -> None:
    world.put("s", "d")
    world.put("kept", "e")
    world.replicator().work(world.records())
    cut_over(world)
    world.put("s", "d", data="by an old writer")
    world.delete("kept")
    worked = world.replicator().work(world.records())
    assert worked.stragglers == 2
    assert {each.key["id"]["S"] for each in world.side.stragglers()} == {"s", "kept"}
    assert sum(world.moments.waits) == pytest.approx(5), "it waits before it reports a straggler"


def test_a_fenced_batch_writes_nothing_and_waits_for_the_next_stage(world: World) -> None:
    world.put("s", "d")
    records = world.records()
    fenced = Control(stage="fenced", revision=5, replicating=True)
    world.side.swap(world.side.control(), fenced)
    replicator = world.replicator()
    replicator.end_at(world.moments.now + 10)
    with pytest.raises(GaveUp):
        replicator.work(records)
    assert world.actual == []
    assert world.side.open_batches("forward") == [], "the cutover does not wait for it"
    world.moments.on_wait = lambda seconds: world.side.swap(fenced, fenced.aborted())
    worked = world.replicator().work(records)
    assert worked.share == "work"
    assert world.actual == world.expected


def test_a_killed_batch_is_open_until_it_is_processed_again(world: World) -> None:
    """Otherwise the table would turn although the batch has not read again what it wrote."""
    world.put("s", "d")
    records = world.records()
    note = (records[0]["eventID"], records[0]["dynamodb"]["SequenceNumber"])
    world.side.begin("forward", *note)
    fenced = Control(stage="fenced", revision=5, replicating=True)
    world.side.swap(world.side.control(), fenced)
    replicator = world.replicator()
    replicator.end_at(world.moments.now + 10)
    with pytest.raises(GaveUp):
        replicator.work(records)
    assert len(world.side.open_batches("forward")) == 1
    assert world.side.begin("forward", *note) == 2, "reads of the control item are no tries"
    world.side.swap(fenced, fenced.aborted())
    assert world.replicator().work(records).share == "work"
    assert world.actual == world.expected
    assert world.side.open_batches("forward") == []


def test_an_item_that_moves_again_after_its_record_is_no_straggler(world: World) -> None:
    """The other worker writes both moves, and the record of the second is in a later batch."""
    world.put("s", "d")
    world.replicator().work(world.records())
    world.records("reverse")
    cut_over(world)
    reverse, batches = world.replicator("reverse"), []
    for before, after in (("d", "e"), ("e", "f")):
        put_image(world, after, "s", "moved")
        world.client.delete_item(TableName=world.pair.destination, Key={"pk": {"S": before}})
        reverse.work(world.records("reverse"))
        batches.append(world.records())
    assert world.actual == world.expected
    worked = [world.replicator().work(records).stragglers for records in batches]
    assert worked == [0, 0]


def test_no_straggler_is_reported_before_the_other_worker_must_have_seen_it(world: World) -> None:
    world.put("s", "d")
    world.replicator().work(world.records())
    cut_over(world)
    world.side.tell_lag("reverse", 20.0)
    world.put("s", "d", data="by an old writer")
    assert world.replicator().work(world.records()).stragglers == 1
    assert sum(world.moments.waits) == pytest.approx(21)


def test_a_batch_is_repeated_without_stragglers_while_the_other_worker_lags(world: World) -> None:
    """The other worker is a minute behind, so the old table's items differ for that long."""
    world.put("s", "d")
    world.put("t", "u")
    world.replicator().work(world.records())
    world.records("reverse")
    cut_over(world)
    reverse = world.replicator("reverse")
    put_image(world, "d", "s", "first")
    reverse.work(world.records("reverse"))
    delayed = world.records()
    put_image(world, "d", "s", "second")
    world.side.tell_lag("reverse", 60.0)
    with pytest.raises(GaveUp, match="60 seconds behind"):
        world.replicator().work(delayed)
    assert world.side.stragglers() == []
    reverse.work(world.records("reverse"))
    assert world.replicator().work(delayed).stragglers == 0
    world.put("t", "u", data="by an old writer")
    world.moments.now += 60
    world.side.tell_lag("reverse", 1.0)
    assert world.replicator().work(world.records()).stragglers == 1


def test_a_write_after_a_rollback_is_replicated_and_no_straggler(world: World) -> None:
    """The batch was passed on, and was looking for stragglers when the serving table changed."""
    world.put("s", "d", data="before")
    replicator = world.replicator()
    replicator.work(world.records())
    cut_over(world)
    world.put("s", "d", data="written here")
    records = world.records()

    def turned_back(seconds: float) -> None:
        control = world.side.control()
        if control.serving == "destination":
            world.side.swap(control, control.changed(serving="source"))

    world.moments.on_wait = turned_back
    worked = replicator.work(records)
    assert (worked.share, worked.stragglers, world.side.stragglers()) == ("work", 0, [])
    assert world.actual == world.expected
    assert world.side.open_batches("forward") == []


def test_an_item_that_cannot_be_mapped_back_is_listed(world: World) -> None:
    cut_over(world)
    item = {"pk": {"S": "d"}, "data": {"S": "written by new code, which knows no id"}}
    world.client.put_item(TableName=world.pair.destination, Item=item)
    assert world.replicator("reverse").work(world.records("reverse")).unmapped == 1
    (unmapped,) = world.side.all_unmapped("reverse")
    assert unmapped.reason == "attribute 'id' is missing"


def test_what_time_to_live_removes_is_removed_there(world: World) -> None:
    """A REMOVE by the service is processed like any other; other tools wait for a DELETE event."""
    world.put("s", "d")
    world.replicator().work(world.records())
    world.delete("s")
    (record,) = world.records()
    service = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
    world.replicator().work([{**record, "userIdentity": service}])
    assert world.actual == []


def test_sentinels_and_markers_are_not_copied_and_a_marker_is_seen(world: World) -> None:
    world.side.put_marker("m1", {})
    for id_, more in (
        ("sentinel", {"keyhop": {"N": "1"}}),
        ("marker", {"keyhop-rekey-marker": {"S": "m1"}}),
    ):
        world.client.put_item(TableName=world.pair.source, Item={"id": {"S": id_}, **more})
    worked = world.replicator().work(world.records())
    assert (worked.records, worked.keys) == (2, 0)
    assert world.actual == []
    assert "record" in world.side.markers()["m1"]["seen"]


@pytest.mark.parametrize("value", [{"N": "1"}, {"S": "m1"}])
def test_an_item_with_the_attribute_of_a_marker_is_copied(
    world: World, value: dict[str, str]
) -> None:
    """Such items of an application must neither be lost nor stop the worker."""
    world.put("s", "d")
    more = {"id": {"S": "s"}, "to": {"S": "d"}, "keyhop-rekey-marker": value}
    world.client.put_item(TableName=world.pair.source, Item=more)
    world.replicator().work(world.records())
    assert world.actual == world.expected
    world.delete("s")
    world.replicator().work(world.records())
    assert world.actual == []


def test_settle_repairs_the_differences_of_a_verification(world: World) -> None:
    world.put("s", "d", data="right")
    world.records()
    put_image(world, "d", "s", "changed")
    put_image(world, "surplus", "gone", "x")
    replicator = world.replicator()
    assert replicator.settle({"id": {"S": "s"}}, [{"pk": {"S": "d"}}])
    assert replicator.settle({"id": {"S": "gone"}}, [{"pk": {"S": "surplus"}}])
    assert world.actual == world.expected
    assert world.side.claims("forward") == []


def test_an_unsettled_place_stays_a_claim_while_the_other_direction_works(world: World) -> None:
    world.put("s", "d")
    cut_over(world)
    assert not world.replicator().settle({"id": {"S": "s"}}, [{"pk": {"S": "d"}}])
    assert world.actual == []
    assert len(world.side.claims("forward")) == 1


def test_an_old_record_causes_a_read_first(world: World) -> None:
    """After a minute, a read is cheaper than a write of an outdated item."""
    world.put("s", "d", data="old")
    records = world.records()
    world.put("s", "d", data="new")
    world.moments.now += 120
    replicator = world.replicator()
    replicator.work(records)
    assert world.actual == world.expected
    assert replicator.take_usage().write_units == 1 + 2 + 1, "one write, a note, and the lag"


@pytest.mark.prove
def test_a_change_costs_one_write_and_one_read(world: World) -> None:
    """A key of 1 KB costs at most 1.02 WRU and 1.1 RRU in batches of 100, in both directions."""
    replicator, reverse = world.replicator(), world.replicator("reverse")

    def change(filling: str) -> Any:
        for n in range(100):
            world.put(f"s{n}", f"d{n}", data=filling * 980)
        replicator.work(world.records())
        assert reverse.work(world.records("reverse")).share == "pass"
        usage = replicator.take_usage()
        usage.add(reverse.take_usage())
        return usage

    change("x")  # the first batch of a process also reports its lag, and does not expect to pass
    usage = change("y")
    assert usage.write_units / 100 <= 1.02
    assert usage.read_units / 100 <= 1.1
    assert world.actual == world.expected


def test_a_lag_is_reported_at_most_once_in_ten_seconds(world: World) -> None:
    replicator = world.replicator()
    world.epoch = 5_000.0
    for n in range(3):
        world.put(f"s{n}", f"d{n}")
        records = world.records()
        world.epoch += 7
        replicator.work(records)
    assert world.side.told("lag.forward") == {"seconds": 7.0, "at": 5_021.0}


def test_a_key_that_was_given_up_is_settled_at_all_its_places(world: World) -> None:
    """Invariant I1 needs all places that the item had in its batch, not only the present one."""
    world.put("s", "d")
    world.replicator().work(world.records())
    world.put("s", "e")
    world.records()  # these were given up, and the stream no longer has them
    places: list[Key] = [{"pk": {"S": place}} for place in ("d", "e")]
    assert world.replicator().again({"id": {"S": "s"}}, places)
    assert world.actual == world.expected
    assert world.replicator().again({"id": {"S": "gone"}}, [])
