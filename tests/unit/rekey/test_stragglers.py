"""Writes that bypass the routers: what a change of the serving table makes of them.

All that is deployed runs here, over the simulated service and in virtual time: routers, both
workers, the coordinator with its gates. Only the gates that a deployment answers are left out.
"""

import random
from collections.abc import Callable, Collection, Set
from functools import partial
from typing import Any

import pytest
from keyhop.errors import WriteUncertain
from keyhop.rekey.control import Control, Side
from keyhop.rekey.cutover.change import Next, change_of
from keyhop.rekey.cutover.deployed import NotDeployed
from keyhop.rekey.routing.router import Router
from keyhop.rekey.standing import RekeyStatus

from testing.simulation.schedule import Process
from tests.unit.rekey.chaos import Chaos
from tests.unit.rekey.chaos_world import ChaosWorld

Item = dict[str, Any]
GATES = {"stage", "claims", "stragglers"}


def item(key: str, number: int, to: str = "") -> Item:
    return {"id": {"S": key}, "to": {"S": to or f"at {key}"}, "n": {"N": str(number)}}


class NoChance(random.Random):
    def random(self) -> float:
        return 1.0


class Pair:
    """Both tables with their workers, and an application."""

    def __init__(self, seed: int = 1) -> None:
        random.seed(seed)
        self.world = ChaosWorld(random.Random(seed))
        self.chaos = Chaos(self.world, keys=1, operations=0, changes=0, in_peace=True)
        self.chaos.chance = NoChance()  # no batch comes twice
        self.side = self.world.side()
        self.application = self.world.connection(lambda *request: "well", timeout=float("inf"))

    def run(self, act: Callable[[], None]) -> None:
        """Do this while the workers follow both streams."""
        world, chaos = self.world, self.chaos
        world.begin()

        def acting() -> None:
            try:
                act()
            finally:
                chaos.over = True

        actors = [partial(chaos._shard, way, n) for way in ("forward", "reverse") for n in range(3)]
        for actor in (acting, *actors):
            world.schedule.spawn(actor, Process("test"))
        world.schedule.run()

    def router(self) -> Router:
        return Router(self.world.side(), clients=(), clock=self.world, chance=self.world.chance)

    def change(self, to: Side, accept: Collection[str] = (), gates: Set[str] = GATES) -> Next:
        def look(control: Control) -> Any:
            status = RekeyStatus.of(self.side, NotDeployed(), self.world.time(), control)
            return [gate for gate in status.gates(to, accept) if gate.name in gates]

        change = change_of(
            self.world.connection(lambda *request: "well"),
            self.world.pair.destination,
            to,
            self.world.streams,
            accept=accept,
            clock=self.world,
            chance=self.world.chance,
            pool=self.world.pool,
            stop=self.world.stop,
        )
        change.look = look
        return change.run()

    def verified(self, to: Side = "destination") -> str:
        """What the gate says of the last verification; empty if it is open."""
        status = RekeyStatus.of(self.side, NotDeployed(), self.world.time())
        (gate,) = [one for one in status.gates(to) if one.name == "verified"]
        return "" if gate.is_open else gate.says

    def put_old(self, value: Item) -> None:
        self.send("put_item", TableName=self.world.pair.source, Item=value)

    def put_new(self, value: Item) -> None:
        there = self.world.transform.forward(value)
        self.send("put_item", TableName=self.world.pair.destination, Item=there)

    def delete_old(self, key: str) -> None:
        table = self.world.pair.source
        self.send("delete_item", TableName=table, Key={"id": {"S": key}})

    def send(self, operation: str, **parameters: Any) -> None:
        self.application.client.call(operation, **parameters)

    def write(self, value: Item) -> None:
        self.router().write(old=lambda: self.put_old(value), new=lambda: self.put_new(value))

    @property
    def old(self) -> dict[str, Item]:
        return {one["id"]["S"]: one for one in self.world.items(self.world.pair.source)}

    @property
    def new(self) -> dict[str, Item]:
        """The new table's items, as the old one should have them."""
        back = self.world.transform.back
        made = [back(one) for one in self.world.items(self.world.pair.destination)]
        return {one["id"]["S"]: dict(one) for one in made if one is not None}


def test_a_router_that_is_paused_through_a_cutover_overwrites_nothing_after_a_rollback() -> None:
    pair = Pair()
    paused, released = [True], list[str]()

    def paused_put() -> None:
        pair.world.schedule.sleep_while(lambda: paused[0], 0.1)
        pair.put_old(item("s", 1))

    def stale_writer() -> None:
        try:
            pair.router().write(old=paused_put, new=lambda: pytest.fail("it chose before"))
        except WriteUncertain:
            released.append("uncertain")

    def act() -> None:
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

    pair.run(act)


def test_all_that_writers_past_the_router_have_done_is_taken_back_if_that_is_accepted() -> None:
    pair = Pair()

    def act() -> None:
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

    pair.run(act)


def test_a_writer_that_never_stops_is_found_though_its_item_changes_at_each_look() -> None:
    pair = Pair()

    def act() -> None:
        pair.write(item("s", 0))
        assert pair.change("destination").action == "done"
        for number in range(1, 30):
            pair.put_old(item("s", number))
            pair.put_old(item("made", number))
            pair.world.sleep(1)
        noted = {one.key["id"]["S"] for one in pair.side.unsettled()}
        assert noted == {"s", "made"}, "while they go on"

    pair.run(act)


def test_an_item_that_both_tables_come_to_agree_about_is_no_straggler_any_more() -> None:
    pair = Pair()

    def act() -> None:
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

    pair.run(act)


def test_a_write_past_the_router_into_the_new_table_is_found_after_a_rollback() -> None:
    pair = Pair()

    def act() -> None:
        pair.write(item("s", 0))
        assert pair.change("destination").action == "done"
        assert pair.change("source").action == "done"
        pair.write(item("s", 2))
        pair.world.sleep(5)
        pair.put_new(item("s", 1))
        pair.world.sleep(30)
        (straggler,) = pair.side.unsettled()
        assert straggler.side == "destination"
        refused = pair.change("destination")
        assert refused.action == "refused"
        found = pair.change("destination", accept=("stragglers",))
        assert found.action == "done", found
        assert (pair.old, pair.new) == ({"s": item("s", 2)},) * 2

    pair.run(act)


def test_stragglers_that_keep_each_verify_from_being_clean_are_settled_before_the_next_one() -> (
    None
):
    """A verification does not touch their items, so it cannot be clean before they are settled."""
    pair = Pair()
    gates = GATES | {"verified"}

    def compare(left: int) -> None:
        now = pair.world.time()
        told = {"finished": True, "share": 1.0, "left": left, "began": now, "at": now, "turns": 2}
        pair.side.tell("verify", told)

    def act() -> None:
        pair.write(item("s", 0))
        assert pair.change("destination").action == "done"
        assert pair.change("source").action == "done"
        pair.write(item("s", 2))
        pair.world.sleep(5)
        pair.put_new(item("s", 1))
        pair.world.sleep(30)
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

    pair.run(act)


def test_a_straggler_that_was_settled_after_the_last_verify_invalidates_it() -> None:
    pair = Pair()

    def act() -> None:
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

    pair.run(act)


def test_a_verify_of_before_a_change_of_the_serving_table_opens_no_gate() -> None:
    pair = Pair()

    def act() -> None:
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

    pair.run(act)


def test_a_claim_whose_item_is_no_longer_refused_says_so() -> None:
    """It collides now, which is another thing to do."""
    pair = Pair()

    def act() -> None:
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

    pair.run(act)
