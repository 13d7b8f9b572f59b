"""Repairs of many places by one row of claims, and by few transactions."""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError
from keyhop.dynamodb.values import Key
from keyhop.rekey.side.layout import Claim
from keyhop.rekey.worker.drive import MOST_CLAIMS, SWEEP_SECONDS, Driver

from testing.rekey_owned import Owned
from testing.simulation.network import Fate
from testing.simulation.schedule import Killed, Process
from tests.unit.rekey.chaos_world import PROMISED_SECONDS, ChaosWorld
from tests.unit.rekey.pair import Item, item

COUNT = 60
"""More than one row of claims has."""


class Repair:
    """A source whose items are missing in the destination, and a worker that settles them.

    Attributes:
        before: Is called with each request of the worker before it is sent.
        fate: What becomes of each request (testing.simulation.network.Fate).
        sent: How many requests of each operation were sent.
    """

    def __init__(self) -> None:
        self.world = ChaosWorld(random.Random(1))
        self.side = self.world.side()
        self.sources = [item(f"k{number:02}", 1) for number in range(COUNT)]
        self.world.put_first(self.sources)
        self.world.begin()
        self.before: Callable[[str, dict[str, Any]], None] = lambda operation, request: None
        self.fate: Fate = lambda operation, request: "well"
        self.sent = Counter[str]()
        connection = self.world.connection(lambda *request: self.fate(*request))
        network, call = connection.client, connection.client.call

        def seen(operation: str, **request: Any) -> Any:
            self.sent[operation] += 1
            self.before(operation, request)
            return call(operation, **request)

        network.call = seen
        self.worker = self.world.replicator("forward", connection, lambda key, places: None)

    @property
    def pairs(self) -> list[tuple[Key, Key]]:
        return [({"id": one["id"]}, {"pk": one["to"]}) for one in self.sources]

    @property
    def there(self) -> list[Item]:
        return sorted(self.world.items(self.world.pair.destination), key=str)

    @property
    def wanted(self) -> list[Item | None]:
        return sorted((Owned().forward(one) for one in self.sources), key=str)

    def run(self, act: Callable[[], None]) -> None:
        self.world.schedule.spawn(act, Process("test"))
        self.world.schedule.run()

    def settled(self) -> list[bool]:
        found: list[bool] = []
        self.run(lambda: found.extend(self.worker.settle_all(self.pairs)))
        return found

    def claims(self) -> list[Claim]:
        return self.side.claims("forward")


def test_many_places_are_written_by_few_requests() -> None:
    repair = Repair()
    assert repair.settled() == [True] * COUNT
    assert repair.there == repair.wanted
    assert repair.claims() == []
    assert repair.sent["transact_write_items"] == 2
    assert repair.sent["put_item"] == 2
    assert repair.sent["delete_item"] == 2


def test_whoever_has_lost_the_row_of_its_claims_writes_nothing() -> None:
    repair = Repair()

    def take(operation: str, request: dict[str, Any]) -> None:
        if operation == "transact_write_items":
            for claim in {one.joint: one for one in repair.claims() if one.joint}.values():
                repair.side.take_joint(claim)

    repair.before = take
    assert repair.settled() == [False] * COUNT
    assert repair.there == []
    assert len(repair.claims()) == COUNT
    assert not any(claim.joint for claim in repair.claims())


def test_a_place_of_another_item_does_not_hold_up_the_others() -> None:
    """The place belongs to an item that has moved away, so its owner has to be looked at."""
    repair = Repair()
    moved = item("moved", 7, to="elsewhere")
    repair.world.put_first([moved])
    repair.world.tables["to"].put({"pk": {"S": "at k00"}, "id": {"S": "moved"}, "n": {"N": "6"}})
    settled = repair.settled()
    assert settled[1:] == [True] * (COUNT - 1)
    assert repair.there == repair.wanted
    owners = {claim.owner["id"]["S"] for claim in repair.claims()}
    assert owners <= {"moved"}, "what was taken over is a claim of its earlier owner"
    assert repair.sent["transact_write_items"] <= 5


def test_a_place_of_an_item_that_lies_there_rightly_is_left_alone() -> None:
    repair = Repair()
    for number, changed in ((0, "at k00"), (1, "elsewhere")):
        repair.world.put_first([item(f"other{number}", 7, to=f"at k0{number}")])
        held = {"pk": {"S": f"at k0{number}"}, "id": {"S": f"other{number}"}, "n": {"N": "7"}}
        repair.world.tables["to"].put(held)
        repair.world.put_first([item(f"k0{number}", 1, to=changed)])
    settled = repair.settled()
    assert settled == [False] + [True] * (COUNT - 1), "a claim of the first one stays"
    there = {one["pk"]["S"]: one["id"]["S"] for one in repair.there}
    assert (there["at k00"], there["at k01"]) == ("other0", "other1")
    assert ({"S": "k00"}, {"S": "at k00"}) in [
        (one.owner["id"], one.place["pk"]) for one in repair.claims()
    ], "two items want this place"


def test_what_is_written_although_the_answer_was_lost_is_settled_after_a_look() -> None:
    repair = Repair()
    fates = iter(["lost", "lost"])
    repair.fate = lambda operation, request: (
        next(fates, "well") if operation == "transact_write_items" else "well"
    )
    began = repair.world.monotonic()
    assert repair.settled() == [True] * COUNT
    assert repair.world.monotonic() - began > PROMISED_SECONDS
    assert (repair.there, repair.claims()) == (repair.wanted, [])


@pytest.mark.parametrize("pairs_in_a_row", [1, 2])
def test_claims_beyond_the_first_page_get_their_turn(pairs_in_a_row: int) -> None:
    """All claims of the first page may be refused for ever, so the next turn reads the next page.

    Then the turns begin again, with the first page.
    """
    world = ChaosWorld(random.Random(1))
    side = world.side()
    for row in range(MOST_CLAIMS + 1):
        owners = [{"id": {"S": f"k{row}-{number}"}} for number in range(pairs_in_a_row)]
        side.claim_together("forward", [(owner, {"pk": owner["id"]}) for owner in owners])
    no_table: Any = None  # none is needed to choose claims
    driver = Driver(
        "forward",
        Owned(),
        no_table,
        no_table,
        side,
        lambda: "work",
        world.monotonic,
        lambda: world.time() + SWEEP_SECONDS,
    )
    first, second, third = (driver.due(set()) for _ in range(3))
    assert len(first) == MOST_CLAIMS
    assert len(second) == pairs_in_a_row
    assert not {str(claim.owner) for claim in first} & {str(claim.owner) for claim in second}
    assert third == first


@pytest.mark.parametrize("refused", [{"k03"}, {f"k{number:02}" for number in range(COUNT)}])
def test_an_item_that_dynamodb_refuses_gets_a_claim_of_its_own(refused: set[str]) -> None:
    repair = Repair()

    def refuse(operation: str, request: dict[str, Any]) -> None:
        parts = request.get("TransactItems", [])
        puts = [part["Put"]["Item"] for part in parts if "Put" in part]
        codes = ["ValidationError" if one["id"]["S"] in refused else "None" for one in puts]
        if "ValidationError" in codes:
            reasons = [{"Code": code} for code in (*codes, "None")]
            told = {"Error": {"Code": "TransactionCanceledException"}}
            raise ClientError({**told, "CancellationReasons": reasons}, "TransactWriteItems")

    repair.before = refuse
    settled = repair.settled()
    names = [one["id"]["S"] for one in repair.sources]
    assert [name in refused for name in names] == [not is_settled for is_settled in settled]
    assert {one.owner["id"]["S"] for one in repair.claims()} == refused
    assert all(one.refusal and not one.joint for one in repair.claims())
    assert len(repair.there) == COUNT - len(refused)


@pytest.mark.parametrize("killed_at", range(1, 7))
def test_whoever_comes_after_a_killed_repair_settles_all_its_claims(killed_at: int) -> None:
    repair = Repair()
    process = Process("killed")
    writes = Counter[str]()

    def kill(operation: str, request: dict[str, Any]) -> None:
        if operation in ("put_item", "transact_write_items", "delete_item"):
            writes["all"] += 1
            if writes["all"] == killed_at:
                process.is_alive = False
                raise Killed

    def act() -> None:
        repair.worker.settle_all(repair.pairs)

    repair.before = kill
    repair.world.schedule.spawn(act, process)
    repair.world.schedule.run()
    noted = len(repair.claims())
    assert noted == {1: 0, 2: 50}.get(killed_at, COUNT) or killed_at > 4
    connection = repair.world.connection(lambda operation, request: "well")
    successor = repair.world.replicator("forward", connection, lambda key, places: None)

    def follow() -> None:
        repair.world.sleep(30.0)
        for _ in range(4):
            successor.sweep()

    repair.run(follow)
    assert repair.claims() == []
    assert len(repair.there) >= noted
