"""Changes of the serving table while writes bypass the routers."""

import pytest
from keyhop.errors import WriteUncertain

from testing.simulation.schedule import Process
from tests.unit.rekey.pair import GATES, Pair, item, with_workers


def unsettled_ids(pair: Pair) -> set[str]:
    return {straggler.key["id"]["S"] for straggler in pair.side.unsettled()}


@with_workers
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
    refused = pair.change("source")  # no worker has examined that write yet
    assert released == ["uncertain"]
    assert pair.old["s"] == item("s", 1), "the stale write has arrived"
    assert refused.action == "refused"
    (gate,) = [gate for gate in refused.gates if gate.name == "stragglers"]
    assert "1 write bypassed the routers" in gate.says
    assert "overwrites" in gate.says
    result = pair.change("source", accept=("stragglers",))
    assert result.action == "done"
    assert (pair.old, pair.new) == ({"s": item("s", 2)},) * 2, "v2 was acknowledged"
    assert pair.side.unsettled() == []


@with_workers
def test_accepted_writes_that_bypassed_the_router_are_undone(pair: Pair) -> None:
    for key in ("over", "gone", "moved", "kept"):
        pair.write(item(key, 0))
    assert pair.change("destination").action == "done"
    pair.put_old(item("over", 1))
    pair.delete_old("gone")
    pair.put_old(item("moved", 1, to="elsewhere"))
    pair.put_old(item("made", 1))
    pair.write(item("kept", 2))
    pair.world.sleep(60)
    assert unsettled_ids(pair) == {"over", "gone", "moved", "made"}
    assert pair.change("source").action == "refused"
    assert pair.side.control().serving == "destination"
    assert pair.change("source", accept=("stragglers",)).action == "done"
    assert pair.old == pair.new
    assert pair.old == {k: item(k, 2 if k == "kept" else 0) for k in pair.new}
    assert set(pair.old) == {"over", "gone", "moved", "kept"}
    assert pair.side.claims("reverse") == []


@with_workers
def test_a_writer_that_never_stops_is_detected_though_its_item_keeps_changing(pair: Pair) -> None:
    pair.write(item("s", 0))
    assert pair.change("destination").action == "done"
    for number in range(1, 30):
        pair.put_old(item("s", number))
        pair.put_old(item("made", number))
        pair.world.sleep(1)
    assert unsettled_ids(pair) == {"s", "made"}, "while the writes go on"


@with_workers
def test_a_straggler_on_which_both_tables_agree_again_is_settled(pair: Pair) -> None:
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


def bypass_the_router_after_a_rollback(pair: Pair) -> None:
    pair.write(item("s", 0))
    assert pair.change("destination").action == "done"
    assert pair.change("source").action == "done"
    pair.write(item("s", 2))
    pair.world.sleep(5)
    pair.put_new(item("s", 1))
    pair.world.sleep(30)


@with_workers
def test_a_write_that_bypasses_the_router_is_detected_after_a_rollback(pair: Pair) -> None:
    bypass_the_router_after_a_rollback(pair)
    (straggler,) = pair.side.unsettled()
    assert straggler.side == "destination"
    refused = pair.change("destination")
    assert refused.action == "refused"
    result = pair.change("destination", accept=("stragglers",))
    assert result.action == "done", result
    assert (pair.old, pair.new) == ({"s": item("s", 2)},) * 2


def verification(pair: Pair, left: int, turns: int) -> dict[str, object]:
    """Return the report of a verification that ends now."""
    times = dict.fromkeys(("began", "at"), pair.world.time())
    return {"finished": True, "share": 1.0, "left": left, "turns": turns, **times}


@with_workers
def test_stragglers_that_keep_a_verification_from_being_clean_are_settled_before_the_next_one(
    pair: Pair,
) -> None:
    """A verification does not touch their items, so it cannot be clean before they are settled."""
    gates = GATES | {"verified"}

    def compare(left: int) -> None:
        pair.side.tell("verify", verification(pair, left=left, turns=2))

    bypass_the_router_after_a_rollback(pair)
    compare(left=1)
    refused = pair.change("destination", gates=gates)
    assert [gate.name for gate in refused.gates if not gate.is_open] == ["verified", "stragglers"]
    assert len(pair.side.unsettled()) == 1
    refused = pair.change("destination", accept=("stragglers",), gates=gates)
    assert [gate.name for gate in refused.gates if not gate.is_open] == ["verified"]
    assert pair.side.control().stage == "open"
    assert (pair.side.unsettled(), pair.side.claims("forward")) == ([], [])
    assert (pair.old, pair.new) == ({"s": item("s", 2)},) * 2
    compare(left=0)
    assert pair.change("destination", gates=gates).action == "done"


@with_workers
def test_a_straggler_that_was_settled_after_the_last_verify_invalidates_it(pair: Pair) -> None:
    pair.write(item("s", 0))
    pair.world.sleep(5)
    report = verification(pair, left=0, turns=2)
    assert pair.change("destination").action == "done"
    assert pair.change("source").action == "done"
    pair.side.tell("verify", report)
    assert pair.verified() == ""
    pair.put_new(item("s", 1))
    pair.world.sleep(30)
    assert len(pair.side.unsettled()) == 1
    result = pair.change("destination", accept=("stragglers",), gates=GATES | {"verified"})
    assert result.action == "refused"
    assert pair.side.unsettled() == []
    assert "bypassed the routers" in pair.verified()


@with_workers
def test_a_verification_before_a_change_of_the_serving_table_opens_no_gate(pair: Pair) -> None:
    pair.write(item("s", 0))
    report = verification(pair, left=0, turns=0)
    pair.side.tell("verify", report)
    assert pair.verified() == ""
    assert pair.change("destination").action == "done"
    assert pair.change("source").action == "done"
    assert "another table served" in pair.verified()
    pair.side.tell("verify", {**report, "turns": 2})
    assert pair.verified() == ""


@with_workers
def test_a_claim_whose_item_is_no_longer_refused_says_so(pair: Pair) -> None:
    """The item now collides with another one instead."""
    claim = pair.side.claim("forward", {"pk": {"S": "p"}}, {"id": {"S": "s"}})
    pair.side.note_refusal(claim, "too large")
    (refused,) = pair.side.claims("forward")
    assert (refused.refusal, refused.token) == ("too large", claim.token)
    current = pair.side.take_claim(refused)
    assert current is not None
    assert current.refusal == "too large"
    pair.side.note_refusal(refused, "somebody who was overtaken")
    pair.side.note_refusal(current, "")
    assert [claim.refusal for claim in pair.side.claims("forward")] == [""]
    assert pair.side.drop_claim(current)
