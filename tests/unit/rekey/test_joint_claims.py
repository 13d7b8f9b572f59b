"""Repairs of many places with one row of claims and few transactions."""

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
"""The number of items; one row of claims has fewer."""


class Repair:
    """A source whose items are missing in the destination, and a worker that settles them.

    Attributes:
        before: A function that is called with each request of the worker before it is sent.
        fate: A function that decides about each request (testing.simulation.network.Fate).
        sent: The number of requests of each operation.
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

        def recorded_call(operation: str, **request: Any) -> Any:
            self.sent[operation] += 1
            self.before(operation, request)
            return call(operation, **request)

        network.call = recorded_call
        self.worker = self.world.replicator("forward", connection, lambda key, places: None)

    @property
    def pairs(self) -> list[tuple[Key, Key]]:
        return [({"id": source["id"]}, {"pk": source["to"]}) for source in self.sources]

    @property
    def actual(self) -> list[Item]:
        return sorted(self.world.items(self.world.pair.destination), key=str)

    @property
    def expected(self) -> list[Item | None]:
        return sorted((Owned().forward(source) for source in self.sources), key=str)

    def run(self, act: Callable[[], None]) -> None:
        self.world.schedule.spawn(act, Process("test"))
        self.world.schedule.run()

    def settled(self) -> list[bool]:
        results: list[bool] = []
        self.run(lambda: results.extend(self.worker.settle_all(self.pairs)))
        return results

    def claims(self) -> list[Claim]:
        return self.side.claims("forward")


def test_many_places_are_written_by_few_requests() -> None:
    repair = Repair()
    assert repair.settled() == [True] * COUNT
    assert repair.actual == repair.expected
    assert repair.claims() == []
    assert repair.sent["transact_write_items"] == 2
    assert repair.sent["put_item"] == 2
    assert repair.sent["delete_item"] == 2


def test_a_worker_that_lost_its_row_of_claims_writes_nothing() -> None:
    repair = Repair()

    def take(operation: str, request: dict[str, Any]) -> None:
        if operation == "transact_write_items":
            for claim in {claim.joint: claim for claim in repair.claims() if claim.joint}.values():
                repair.side.take_joint(claim)

    repair.before = take
    assert repair.settled() == [False] * COUNT
    assert repair.actual == []
    assert len(repair.claims()) == COUNT
    assert not any(claim.joint for claim in repair.claims())


def test_a_place_of_another_item_does_not_hold_up_the_others() -> None:
    """The place belongs to an item that has moved away, so the worker must read its owner."""
    repair = Repair()
    moved = item("moved", 7, to="elsewhere")
    repair.world.put_first([moved])
    repair.world.tables["to"].put({"pk": {"S": "at k00"}, "id": {"S": "moved"}, "n": {"N": "6"}})
    settled = repair.settled()
    assert settled[1:] == [True] * (COUNT - 1)
    assert repair.actual == repair.expected
    owners = {claim.owner["id"]["S"] for claim in repair.claims()}
    assert owners <= {"moved"}, "a place that was taken over is a claim of its earlier owner"
    assert repair.sent["transact_write_items"] <= 5


def test_a_repair_leaves_the_place_of_its_rightful_owner_alone() -> None:
    repair = Repair()
    for number, changed in ((0, "at k00"), (1, "elsewhere")):
        repair.world.put_first([item(f"other{number}", 7, to=f"at k0{number}")])
        image = {"pk": {"S": f"at k0{number}"}, "id": {"S": f"other{number}"}, "n": {"N": "7"}}
        repair.world.tables["to"].put(image)
        repair.world.put_first([item(f"k0{number}", 1, to=changed)])
    settled = repair.settled()
    assert settled == [False] + [True] * (COUNT - 1), "a claim of the first one stays"
    owners = {image["pk"]["S"]: image["id"]["S"] for image in repair.actual}
    assert (owners["at k00"], owners["at k01"]) == ("other0", "other1")
    assert ({"S": "k00"}, {"S": "at k00"}) in [
        (claim.owner["id"], claim.place["pk"]) for claim in repair.claims()
    ], "two items want this place"


def test_a_write_whose_answer_was_lost_is_settled_after_a_read() -> None:
    repair = Repair()
    fates = iter(["lost", "lost"])
    repair.fate = lambda operation, request: (
        next(fates, "well") if operation == "transact_write_items" else "well"
    )
    started = repair.world.monotonic()
    assert repair.settled() == [True] * COUNT
    assert repair.world.monotonic() - started > PROMISED_SECONDS
    assert (repair.actual, repair.claims()) == (repair.expected, [])


@pytest.mark.parametrize("pairs_in_a_row", [1, 2])
def test_claims_beyond_the_first_page_get_their_turn(pairs_in_a_row: int) -> None:
    """Each turn reads the next page, since all claims of one page may be refused for ever.

    After the last page, the first one follows again.
    """
    world = ChaosWorld(random.Random(1))
    side = world.side()
    for row in range(MOST_CLAIMS + 1):
        owners = [{"id": {"S": f"k{row}-{number}"}} for number in range(pairs_in_a_row)]
        side.claim_together("forward", [(owner, {"pk": owner["id"]}) for owner in owners])
    no_table: Any = None  # the choice of claims needs no table
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
def test_an_item_that_dynamodb_refuses_gets_a_separate_claim(refused: set[str]) -> None:
    repair = Repair()

    def refuse(operation: str, request: dict[str, Any]) -> None:
        parts = request.get("TransactItems", [])
        puts = [part["Put"]["Item"] for part in parts if "Put" in part]
        codes = ["ValidationError" if put["id"]["S"] in refused else "None" for put in puts]
        if "ValidationError" in codes:
            reasons = [{"Code": code} for code in (*codes, "None")]
            response: Any = {"Error": {"Code": "TransactionCanceledException"}}
            raise ClientError({**response, "CancellationReasons": reasons}, "TransactWriteItems")

    repair.before = refuse
    settled = repair.settled()
    names = [source["id"]["S"] for source in repair.sources]
    assert [name in refused for name in names] == [not is_settled for is_settled in settled]
    assert {claim.owner["id"]["S"] for claim in repair.claims()} == refused
    assert all(claim.refusal and not claim.joint for claim in repair.claims())
    assert len(repair.actual) == COUNT - len(refused)


@pytest.mark.parametrize("killed_at", range(1, 7))
def test_the_successor_of_a_killed_repair_settles_all_its_claims(killed_at: int) -> None:
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
    claim_count = len(repair.claims())
    assert claim_count == {1: 0, 2: 50}.get(killed_at, COUNT) or killed_at > 4
    connection = repair.world.connection(lambda operation, request: "well")
    successor = repair.world.replicator("forward", connection, lambda key, places: None)

    def follow() -> None:
        repair.world.sleep(30.0)
        for _ in range(4):
            successor.sweep()

    repair.run(follow)
    assert repair.claims() == []
    assert len(repair.actual) >= claim_count
