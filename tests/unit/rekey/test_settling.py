"""The settling of many stragglers, of stragglers without an image, and of late stragglers."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from keyhop.rekey.compare.looks import (
    BYPASSED,
    PAUSES,
    REPAIRED,
    REPAIRS_AT_ONCE,
    Looks,
    Reads,
    Settle,
)
from keyhop.rekey.compare.rows import Candidate
from keyhop.rekey.control import Control
from keyhop.rekey.cutover.change import Change
from keyhop.rekey.side.table import MOST_JOINT
from keyhop.rekey.transform import key_text

from testing.rekey_owned import Owned
from testing.rekey_tasks import looked_at
from testing.simulation.schedule import Process
from tests.unit.rekey.chaos_world import ChaosWorld
from tests.unit.rekey.pair import Pair, item, with_workers


@with_workers
def test_each_of_many_stragglers_is_marked_when_both_tables_agree(pair: Pair) -> None:
    for number in range(130):
        pair.put_old(item(f"k{number:03}", 1))
    pair.world.sleep(8.0)
    assert pair.change("destination").action == "done"
    for number in range(130):
        pair.put_old(item(f"k{number:03}", 2))
    pair.world.sleep(120.0)
    assert len(pair.side.unsettled()) == 130
    pair.put_new(item("k129", 3))
    pair.put_new(item("k128", 2))  # as the straggler: the old table does not change
    pair.world.sleep(10.0)
    for number in range(6):
        pair.put_old(item("other", number))
        pair.world.sleep(20.0)
    unsettled = {straggler.key["id"]["S"] for straggler in pair.side.unsettled()}
    assert "k000" in unsettled
    assert unsettled.isdisjoint({"k128", "k129"})


@with_workers
def test_a_straggler_without_an_image_is_settled_only_after_its_item_is_deleted(pair: Pair) -> None:
    pair.write(item("a", 1))
    pair.write(item("b", 1))
    pair.world.sleep(8.0)
    assert pair.change("destination").action == "done"
    pair.put_old(item("a", 2, to="-"))
    pair.put_old(item("b", 2, to="-"))
    pair.put_old(item("c", 2, to="-"))
    pair.send("delete_item", TableName=pair.world.pair.destination, Key={"pk": {"S": "at a"}})
    pair.world.sleep(20.0)
    refused = pair.change("source", accept=("stragglers",))
    assert refused.action == "refused"
    assert "stragglers" in refused.why
    assert not pair.side.claims("reverse")
    for key in "abc":
        pair.delete_old(key)
    pair.world.sleep(20.0)
    assert pair.change("source", accept=("stragglers",)).action == "done"
    assert {key: old["n"] for key, old in pair.old.items()} == {"b": {"N": "1"}}


def test_nothing_turns_if_a_straggler_is_settled_while_the_evidence_is_collected() -> None:
    """Another process settles it between two reads of the side table."""
    claims: list[str] = []
    stragglers = ["one"]

    class Side:
        def open_batches(self, direction: str) -> list[Any]:
            return []

        def claims(self, direction: str, most: int) -> list[str]:
            current = list(claims)
            settle()
            return current

        def unsettled(self, most: int) -> list[str]:
            current = list(stragglers)
            settle()
            return current

    def settle() -> None:
        claims[:] = ["of one"]
        stragglers.clear()

    control = Control("destination", "fenced", 7, turns=1, replicating=True)
    change: Any = Change("source", Side(), None, None, lambda control: [])  # type: ignore[arg-type]
    evidence, _ = change._evidence(control, control.settle, [])
    assert control.following(evidence)[0] is None


def test_a_repair_leaves_a_straggler_alone_that_is_recorded_during_it() -> None:
    count = 3 * REPAIRS_AT_ONCE
    places: list[Any] = [{"pk": {"S": f"p{number}"}} for number in range(count)]
    settled: list[str] = []

    class Empty:
        def items(self, keys: Any) -> dict[str, Any]:
            return {}

    class Wrong:
        def items(self, keys: Any) -> dict[str, Any]:
            items = {place["pk"]["S"]: {**place, "id": {"S": place["pk"]["S"]}} for place in places}
            return {key_text(k): items[k["pk"]["S"]] for k in keys if k["pk"]["S"] not in settled}

    def may_settle(candidates: Sequence[Candidate]) -> list[Candidate]:
        """Leave out the last place after the first ones are settled."""
        return [each for each in candidates if not settled or each.place != places[-1]]

    def settle(pairs: Any) -> list[bool]:
        settled.extend(place["pk"]["S"] for _, place in pairs)
        return [True] * len(pairs)

    source, destination = Empty(), Wrong()
    looks = Looks(Owned(), source, destination, settle, may_settle=may_settle)  # type: ignore[arg-type]
    candidates = [Candidate(place, []) for place in places]
    counts, _ = looks.settled(looked_at(looks, candidates, lambda seconds: None))
    assert f"p{count - 1}" not in settled
    assert counts[BYPASSED] == 1
    assert counts[REPAIRED] == count - 1


@with_workers
def test_nothing_is_settled_if_another_table_serves_after_the_examination(pair: Pair) -> None:
    """A coordinator is paused while it examines the new table's stragglers."""
    pair.write(item("a", 1))
    pair.world.sleep(8.0)
    assert pair.change("destination").action == "done"
    change = pair.ungated_change("source", accept=("stragglers",))

    def paused() -> None:
        assert pair.change("source").action == "done"
        pair.put_new(item("a", 2))
        pair.world.sleep(20.0)

    change.examine = paused
    assert change.run().action == "called off"
    assert [straggler.side for straggler in pair.side.unsettled()] == ["destination"]
    assert not pair.side.claims("reverse")


class Differing:
    """A source, and an empty destination that the repairs of a verification fill.

    Attributes:
        sent: The number of requests of each operation.
        peak: The largest number of repairs that were in flight at the same time.
    """

    def __init__(self, count: int) -> None:
        self.world = ChaosWorld(random.Random(1))
        self.peak, self.sent = 0, Counter[str]()
        self._in_flight = 0
        self.world.put_first([item(f"k{number:05}", 1) for number in range(count)])
        self.world.begin()

    def repaired(self, settle: Settle | None = None) -> tuple[Counter[str], float, list[float]]:
        """Verify and repair; return the counts, the seconds that it took, and its pauses."""
        world, pauses = self.world, list[float]()
        connection = world.connection(lambda operation, request: "well")
        network, call = connection.client, connection.client.call

        def counted(operation: str, **parameters: Any) -> Any:
            is_repair = operation == "transact_write_items"
            self._in_flight += is_repair
            self.peak = max(self.peak, self._in_flight)
            self.sent[operation] += 1
            try:
                return call(operation, **parameters)
            finally:
                self._in_flight -= is_repair

        network.call = counted
        worker = world.replicator("forward", connection, lambda key, places: None)
        source, destination = (
            Reads(connection, name, stop=world.stop)
            for name in (world.pair.source, world.pair.destination)
        )
        looks = Looks(
            world.transform,
            source,
            destination,
            settle or worker.settle_all,
            clock=world.monotonic,
            pool=world.pool,
        )
        candidates = [
            Candidate(world.transform.destination.of(image), [world.transform.source.of(original)])
            for original in world.items(world.pair.source)
            if (image := world.transform.forward(original)) is not None
        ]

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            world.sleep(seconds)

        results: list[Counter[str]] = []

        def act() -> None:
            results.append(looks.settled(looked_at(looks, candidates, pause))[0])

        world.schedule.spawn(act, Process("verify"))
        world.schedule.run()
        return results[0], world.monotonic(), pauses


def test_repairs_run_in_parallel_and_share_the_pauses() -> None:
    differing = Differing(2_000)
    counts, seconds, pauses = differing.repaired()
    assert counts == {"missing": 2_000, REPAIRED: 2_000}
    assert pauses == [*PAUSES]
    assert differing.peak > 1
    assert differing.sent["transact_write_items"] == 2_000 / MOST_JOINT
    assert not differing.world.side().claims("forward")
    single_counts, single_seconds, _ = Differing(1).repaired()
    assert single_counts == {"missing": 1, REPAIRED: 1}
    assert seconds - sum(PAUSES) < 2_000 / 10 * (single_seconds - sum(PAUSES))


def test_the_owners_of_one_place_are_settled_one_after_the_other() -> None:
    """When one owner takes the place over, it becomes a claim of the other owner."""
    differing = Differing(3 * REPAIRS_AT_ONCE)
    groups: list[list[str]] = []

    def settle(pairs: Sequence[tuple[Any, Any]]) -> list[bool]:
        groups.append([key_text(place) for _, place in pairs])
        return [True] * len(pairs)

    place = {"pk": {"S": "at k00000"}}
    image = differing.world.transform.forward(item("k00001", 1, to="at k00000"))
    assert image is not None
    differing.world.tables[differing.world.pair.destination].put(image)
    assert differing.world.transform.destination.of(image) == place
    differing.repaired(settle)
    assert all(len(group) == len(set(group)) for group in groups)
    assert sum(group.count(key_text(place)) for group in groups) >= 2
