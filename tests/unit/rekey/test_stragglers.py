"""Writes that bypass the routers: what a change of the serving table makes of them."""

import pytest
from keyhop.errors import WriteUncertain

from testing.simulation.schedule import Process
from tests.unit.rekey.pair import GATES, Pair, acted, item


@acted
def test_a_router_that_is_paused_through_a_cutover_overwrites_nothing_after_a_rollback(
    pair: Pair,
) -> None:
    paused, released = [True], list[str]()

    def paused_put() -> None:
        pair.world.schedule.sleep_while(lambda: paused[0], 0.1)
        pair.put_old(item("s", 1))

    def stale_writer() -> None:
        try:
            pair.router().write(old=paused_put, new=lambda: pytest.fail("it chose before"))
        except WriteUncertain:
            released.append("uncertain")

    pair.write(item("s", 0))
    pair.world.schedule.spawn(stale_writer, Process("stale writer"))
    pair.world.sleep(1)
    assert pair.change("destination").action == "done"
    pair.write(item("s", 2))
    pair.world.sleep(5)
    assert pair.old["s"] == item("s", 2), "the old table follows"
    paused[0] = False
    refused = pair.change("source")  # at once: nobody has examined that write yet
    assert released == ["uncertain"]
    assert pair.old["s"] == item("s", 1), "the write of before has arrived"
    assert refused.action == "refused"
    (gate,) = [one for one in refused.gates if one.name == "stragglers"]
    assert "1 write bypassed the routers" in gate.says
    assert "overwrites" in gate.says
    found = pair.change("source", accept=("stragglers",))
    assert found.action == "done"
    assert (pair.old, pair.new) == ({"s": item("s", 2)},) * 2, "v2 was acknowledged"
    assert pair.side.unsettled() == []


@acted
def test_all_that_writers_past_the_router_have_done_is_taken_back_if_that_is_accepted(
    pair: Pair,
) -> None:
    for key in ("over", "gone", "moved", "kept"):
        pair.write(item(key, 0))
    assert pair.change("destination").action == "done"
    pair.put_old(item("over", 1))
    pair.delete_old("gone")
    pair.put_old(item("moved", 1, to="elsewhere"))
    pair.put_old(item("made", 1))
    pair.write(item("kept", 2))
    pair.world.sleep(60)
    assert {one.key["id"]["S"] for one in pair.side.unsettled()} == {
        "over",
        "gone",
        "moved",
        "made",
    }
    assert pair.change("source").action == "refused"
    assert pair.side.control().serving == "destination"
    assert pair.change("source", accept=("stragglers",)).action == "done"
    assert pair.old == pair.new
    assert pair.old == {k: item(k, 2 if k == "kept" else 0) for k in pair.new}
    assert set(pair.old) == {"over", "gone", "moved", "kept"}
    assert pair.side.claims("reverse") == []


@acted
def test_a_writer_that_never_stops_is_found_though_its_item_changes_at_each_look(
    pair: Pair,
) -> None:
    pair.write(item("s", 0))
    assert pair.change("destination").action == "done"
    for number in range(1, 30):
        pair.put_old(item("s", number))
        pair.put_old(item("made", number))
        pair.world.sleep(1)
    noted = {one.key["id"]["S"] for one in pair.side.unsettled()}
    assert noted == {"s", "made"}, "while they go on"


@acted
def test_an_item_that_both_tables_come_to_agree_about_is_no_straggler_any_more(pair: Pair) -> None:
    pair.write(item("s", 0))
    assert pair.change("destination").action == "done"
    pair.put_old(item("s", 1))
    pair.world.sleep(30)
    assert len(pair.side.unsettled()) == 1
    pair.write(item("s", 2))
    pair.world.sleep(30)
    assert pair.side.unsettled() == []
    assert len(pair.side.stragglers()) == 1, "it is still listed"
    assert pair.change("source").action == "done"
    assert pair.old["s"] == item("s", 2)


def write_past_the_router_after_a_rollback(pair: Pair) -> None:
    pair.write(item("s", 0))
    assert pair.change("destination").action == "done"
    assert pair.change("source").action == "done"
    pair.write(item("s", 2))
    pair.world.sleep(5)
    pair.put_new(item("s", 1))
    pair.world.sleep(30)


@acted
def test_a_write_past_the_router_into_the_new_table_is_found_after_a_rollback(pair: Pair) -> None:
    write_past_the_router_after_a_rollback(pair)
    (straggler,) = pair.side.unsettled()
    assert straggler.side == "destination"
    refused = pair.change("destination")
    assert refused.action == "refused"
    found = pair.change("destination", accept=("stragglers",))
    assert found.action == "done", found
    assert (pair.old, pair.new) == ({"s": item("s", 2)},) * 2


@acted
def test_stragglers_that_keep_each_verify_from_being_clean_are_settled_before_the_next_one(
    pair: Pair,
) -> None:
    """A verification does not touch their items, so it cannot be clean before they are settled."""
    gates = GATES | {"verified"}

    def compare(left: int) -> None:
        now = pair.world.time()
        told = {"finished": True, "share": 1.0, "left": left, "began": now, "at": now, "turns": 2}
        pair.side.tell("verify", told)

    write_past_the_router_after_a_rollback(pair)
    compare(left=1)
    refused = pair.change("destination", gates=gates)
    assert [gate.name for gate in refused.gates if not gate.is_open] == [
        "verified",
        "stragglers",
    ]
    assert len(pair.side.unsettled()) == 1
    refused = pair.change("destination", accept=("stragglers",), gates=gates)
    assert [gate.name for gate in refused.gates if not gate.is_open] == ["verified"]
    assert pair.side.control().stage == "open"
    assert (pair.side.unsettled(), pair.side.claims("forward")) == ([], [])
    assert (pair.old, pair.new) == ({"s": item("s", 2)},) * 2
    compare(left=0)
    assert pair.change("destination", gates=gates).action == "done"


@acted
def test_a_straggler_that_was_settled_after_the_last_verify_invalidates_it(pair: Pair) -> None:
    pair.write(item("s", 0))
    pair.world.sleep(5)
    now = pair.world.time()
    told = {"finished": True, "share": 1.0, "left": 0, "began": now, "at": now, "turns": 2}
    assert pair.change("destination").action == "done"
    assert pair.change("source").action == "done"
    pair.side.tell("verify", told)
    assert pair.verified() == ""
    pair.put_new(item("s", 1))
    pair.world.sleep(30)
    assert len(pair.side.unsettled()) == 1
    found = pair.change("destination", accept=("stragglers",), gates=GATES | {"verified"})
    assert found.action == "refused"
    assert pair.side.unsettled() == []
    assert "bypassed the routers" in pair.verified()


@acted
def test_a_verify_of_before_a_change_of_the_serving_table_opens_no_gate(pair: Pair) -> None:
    pair.write(item("s", 0))
    now = pair.world.time()
    told = {"finished": True, "share": 1.0, "left": 0, "began": now, "at": now, "turns": 0}
    pair.side.tell("verify", told)
    assert pair.verified() == ""
    assert pair.change("destination").action == "done"
    assert pair.change("source").action == "done"
    assert "another table served" in pair.verified()
    pair.side.tell("verify", {**told, "turns": 2})
    assert pair.verified() == ""


@acted
def test_a_claim_whose_item_is_no_longer_refused_says_so(pair: Pair) -> None:
    """It collides now, which is another thing to do."""
    claim = pair.side.claim("forward", {"pk": {"S": "p"}}, {"id": {"S": "s"}})
    pair.side.note_refusal(claim, "too large")
    (noted,) = pair.side.claims("forward")
    assert (noted.refusal, noted.token) == ("too large", claim.token)
    taken = pair.side.take_claim(noted)
    assert taken is not None
    assert taken.refusal == "too large"
    pair.side.note_refusal(noted, "somebody who was overtaken")
    pair.side.note_refusal(taken, "")
    assert [one.refusal for one in pair.side.claims("forward")] == [""]
    assert pair.side.drop_claim(taken)
