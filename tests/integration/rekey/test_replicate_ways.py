"""Both directions of the stream's worker: who writes when, what is watched, what a change costs."""

from typing import Any

import pytest
from keyhop.dynamodb.values import Key
from keyhop.errors import GaveUp
from keyhop.rekey.control import Control

from tests.integration.rekey.worlds import World


def cut_over(world: World) -> None:
    """As the state machine does it, with nobody else about."""
    now = world.side.control()
    for change in (Control.closed, Control.froze, Control.fenced, Control.turned, Control.opened):
        then = change(now)
        assert world.side.swap(now, then)
        now = then


def put_there(world: World, pk: str, id_: str, data: str) -> None:
    item = {"pk": {"S": pk}, "id": {"S": id_}, "data": {"S": data}}
    world.client.put_item(TableName=world.pair.destination, Item=item)


def test_before_the_cutover_the_other_direction_writes_and_watches_nothing(world: World) -> None:
    world.put("s", "d")
    world.replicator().work(world.records())
    reverse = world.replicator("reverse")
    assert reverse.work(world.records("reverse")).share == "pass"
    assert reverse.expects_pass, "so the next batch looks at the control item, and notes nothing"
    world.put("t", "e")
    world.replicator().work(world.records())
    reverse.take_usage()
    records = world.records("reverse")
    reverse.work(records)
    usage = reverse.take_usage()
    assert (usage.write_units, usage.read_units) == (0, 2)
    world.side.begin("reverse", records[0]["eventID"], records[0]["dynamodb"]["SequenceNumber"])
    reverse.work(records)
    assert world.side.open_batches("reverse") == [], "nor is one left of who was killed before"
    assert world.side.stragglers() == []


def test_after_the_cutover_what_changes_in_the_destination_changes_in_the_source(
    world: World,
) -> None:
    world.put("s", "d", data="before")
    world.put("gone", "e")
    world.replicator().work(world.records())
    world.records("reverse")
    cut_over(world)
    put_there(world, "d", "s", "after")
    put_there(world, "new", "n", "after")
    world.client.delete_item(TableName=world.pair.destination, Key={"pk": {"S": "e"}})
    assert world.replicator("reverse").work(world.records("reverse")).share == "work"
    assert world.there == world.here
    assert len(world.here) == 2
    worked = world.replicator().work(world.records())
    assert (worked.share, worked.stragglers) == ("pass", 0), "its own writes are nobody's"


def test_who_bypasses_the_router_after_the_cutover_is_listed(world: World) -> None:
    world.put("s", "d")
    world.put("kept", "e")
    world.replicator().work(world.records())
    cut_over(world)
    world.put("s", "d", data="by an old writer")
    world.delete("kept")
    worked = world.replicator().work(world.records())
    assert worked.stragglers == 2
    assert {one.key["id"]["S"] for one in world.side.stragglers()} == {"s", "kept"}
    assert sum(world.moments.waits) == pytest.approx(5), "nobody is accused at first sight"


def test_a_batch_that_is_fenced_writes_nothing_and_waits_for_what_comes(world: World) -> None:
    world.put("s", "d")
    records = world.records()
    fenced = Control(stage="fenced", revision=5, replicating=True)
    world.side.swap(world.side.control(), fenced)
    replicator = world.replicator()
    replicator.end_at(world.moments.now + 10)
    with pytest.raises(GaveUp):
        replicator.work(records)
    assert world.there == []
    assert world.side.open_batches("forward") == [], "whoever fences does not wait for it"
    world.moments.on_wait = lambda seconds: world.side.swap(fenced, fenced.aborted())
    worked = world.replicator().work(records)
    assert worked.share == "work"
    assert world.there == world.here


def test_a_batch_that_was_killed_is_under_way_until_it_is_worked(world: World) -> None:
    """Else the table would turn while it has written what it has not looked at."""
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
    assert world.side.begin("forward", *note) == 2, "its looks at the control item are no tries"
    world.side.swap(fenced, fenced.aborted())
    assert world.replicator().work(records).share == "work"
    assert world.there == world.here
    assert world.side.open_batches("forward") == []


def test_what_moves_on_after_a_record_is_no_straggler_s(world: World) -> None:
    """The other worker's own writes: the record of the second comes in a later batch."""
    world.put("s", "d")
    world.replicator().work(world.records())
    world.records("reverse")
    cut_over(world)
    reverse, moved = world.replicator("reverse"), []
    for before, after in (("d", "e"), ("e", "f")):
        put_there(world, after, "s", "moved")
        world.client.delete_item(TableName=world.pair.destination, Key={"pk": {"S": before}})
        reverse.work(world.records("reverse"))
        moved.append(world.records())
    assert world.there == world.here
    worked = [world.replicator().work(records).stragglers for records in moved]
    assert worked == [0, 0]


def test_nobody_is_accused_before_the_other_worker_must_have_come_to_it(world: World) -> None:
    world.put("s", "d")
    world.replicator().work(world.records())
    cut_over(world)
    world.side.tell_lag("reverse", 20.0)
    world.put("s", "d", data="by an old writer")
    assert world.replicator().work(world.records()).stragglers == 1
    assert sum(world.moments.waits) == pytest.approx(21)


def test_behind_a_busy_lane_a_batch_comes_again_and_accuses_nobody(world: World) -> None:
    """The other worker is a minute behind: the old table's items differ for that long."""
    world.put("s", "d")
    world.put("t", "u")
    world.replicator().work(world.records())
    world.records("reverse")
    cut_over(world)
    reverse = world.replicator("reverse")
    put_there(world, "d", "s", "first")
    reverse.work(world.records("reverse"))
    delayed = world.records()
    put_there(world, "d", "s", "second")
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


def test_who_writes_after_the_way_back_is_no_straggler_and_what_he_wrote_is_followed(
    world: World,
) -> None:
    """The batch had been passed, and was still looking whose its writes are, when it turned."""
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
    assert world.there == world.here
    assert world.side.open_batches("forward") == []


def test_what_cannot_go_back_is_listed(world: World) -> None:
    cut_over(world)
    item = {"pk": {"S": "d"}, "data": {"S": "written by new code, which knows no id"}}
    world.client.put_item(TableName=world.pair.destination, Item=item)
    assert world.replicator("reverse").work(world.records("reverse")).unmapped == 1
    (one,) = world.side.all_unmapped("reverse")
    assert one.reason == "attribute 'id' is missing"


def test_what_time_to_live_removes_is_removed_there(world: World) -> None:
    """A REMOVE by the service is one like any other; other tools wait for an event DELETE."""
    world.put("s", "d")
    world.replicator().work(world.records())
    world.delete("s")
    (record,) = world.records()
    service = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
    world.replicator().work([{**record, "userIdentity": service}])
    assert world.there == []


def test_sentinels_and_markers_are_not_copied_and_a_marker_is_seen(world: World) -> None:
    world.side.put_marker("m1", {})
    for id_, more in (
        ("sentinel", {"keyhop": {"N": "1"}}),
        ("marker", {"keyhop-rekey-marker": {"S": "m1"}}),
    ):
        world.client.put_item(TableName=world.pair.source, Item={"id": {"S": id_}, **more})
    worked = world.replicator().work(world.records())
    assert (worked.records, worked.keys) == (2, 0)
    assert world.there == []
    assert "record" in world.side.markers()["m1"]["seen"]


@pytest.mark.parametrize("of_theirs", [{"N": "1"}, {"S": "m1"}])
def test_an_item_that_only_has_an_attribute_as_a_marker_has_is_copied(
    world: World, of_theirs: dict[str, str]
) -> None:
    """Whoever writes such items must neither lose them nor stop the worker."""
    world.put("s", "d")
    more = {"id": {"S": "s"}, "to": {"S": "d"}, "keyhop-rekey-marker": of_theirs}
    world.client.put_item(TableName=world.pair.source, Item=more)
    world.replicator().work(world.records())
    assert world.there == world.here
    world.delete("s")
    world.replicator().work(world.records())
    assert world.there == []


def test_settle_repairs_what_verify_has_found(world: World) -> None:
    world.put("s", "d", data="right")
    world.records()
    put_there(world, "d", "s", "changed")
    put_there(world, "surplus", "gone", "x")
    replicator = world.replicator()
    assert replicator.settle({"id": {"S": "s"}}, [{"pk": {"S": "d"}}])
    assert replicator.settle({"id": {"S": "gone"}}, [{"pk": {"S": "surplus"}}])
    assert world.there == world.here
    assert world.side.claims("forward") == []


def test_what_is_to_be_settled_while_the_other_direction_works_stays_a_claim(world: World) -> None:
    world.put("s", "d")
    cut_over(world)
    assert not world.replicator().settle({"id": {"S": "s"}}, [{"pk": {"S": "d"}}])
    assert world.there == []
    assert len(world.side.claims("forward")) == 1


def test_old_records_are_not_believed(world: World) -> None:
    """After a minute a look is cheaper than a write of what is gone."""
    world.put("s", "d", data="old")
    records = world.records()
    world.put("s", "d", data="new")
    world.moments.now += 120
    replicator = world.replicator()
    replicator.work(records)
    assert world.there == world.here
    assert replicator.take_usage().write_units == 1 + 2 + 1, "one write, a note, and the lag"


@pytest.mark.prove
def test_a_change_costs_one_write_and_one_look(world: World) -> None:
    """The bar: at most 1.02 WRU and 1.1 RRU for each key of the destination, of 1 KB, in batches of
    100; the passive direction's share is in it."""
    replicator, reverse = world.replicator(), world.replicator("reverse")

    def change(filling: str) -> Any:
        for n in range(100):
            world.put(f"s{n}", f"d{n}", data=filling * 980)
        replicator.work(world.records())
        assert reverse.work(world.records("reverse")).share == "pass"
        usage = replicator.take_usage()
        usage.add(reverse.take_usage())
        return usage

    change("x")  # the first batch of a process tells its lag as well, and does not expect to pass
    usage = change("y")
    assert usage.write_units / 100 <= 1.02
    assert usage.read_units / 100 <= 1.1
    assert world.there == world.here


def test_lag_is_told_at_most_once_in_ten_seconds(world: World) -> None:
    replicator = world.replicator()
    world.epoch = 5_000.0
    for n in range(3):
        world.put(f"s{n}", f"d{n}")
        records = world.records()
        world.epoch += 7
        replicator.work(records)
    told = world.side.told("lag.forward")
    assert told == {"seconds": 7.0, "at": 5_021.0}


def test_what_was_given_up_is_worked_again_wherever_it_was(world: World) -> None:
    """I1: of all places that it had in its batch, not only of the one where it lies now."""
    world.put("s", "d")
    world.replicator().work(world.records())
    world.put("s", "e")
    world.records()  # given up, and forgotten by the stream
    places: list[Key] = [{"pk": {"S": place}} for place in ("d", "e")]
    assert world.replicator().again({"id": {"S": "s"}}, places)
    assert world.there == world.here
    assert world.replicator().again({"id": {"S": "gone"}}, [])
