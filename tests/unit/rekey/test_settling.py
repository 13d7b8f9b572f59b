"""Stragglers that are many, that have no form in the other table, and that are noted meanwhile."""

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
from tests.unit.rekey.pair import Pair, acted, item


@acted
def test_of_many_stragglers_each_is_marked_when_both_tables_agree(pair: Pair) -> None:
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
    left = {one.key["id"]["S"] for one in pair.side.unsettled()}
    assert "k000" in left
    assert left.isdisjoint({"k128", "k129"})


@acted
def test_a_straggler_without_a_form_in_the_other_table_is_not_settled_in_name_only(
    pair: Pair,
) -> None:
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
    assert {key: one["n"] for key, one in pair.old.items()} == {"b": {"N": "1"}}


def test_nothing_turns_if_a_straggler_is_settled_while_the_evidence_is_collected() -> None:
    """Another process settles it, between two looks at the side table."""
    claims: list[str] = []
    stragglers = ["one"]

    class Side:
        def open_batches(self, direction: str) -> list[Any]:
            return []

        def claims(self, direction: str, most: int) -> list[str]:
            found = list(claims)
            settle()
            return found

        def unsettled(self, most: int) -> list[str]:
            found = list(stragglers)
            settle()
            return found

    def settle() -> None:
        claims[:] = ["of one"]
        stragglers.clear()

    control = Control("destination", "fenced", 7, turns=1, replicating=True)
    change: Any = Change("source", Side(), None, None, lambda control: [])  # type: ignore[arg-type]
    evidence, _ = change._evidence(control, control.settle, [])
    assert control.following(evidence)[0] is None


def test_a_straggler_that_is_noted_while_a_verify_repairs_is_left_alone() -> None:
    count = 3 * REPAIRS_AT_ONCE
    places: list[Any] = [{"pk": {"S": f"p{number}"}} for number in range(count)]
    settled: list[str] = []

    class Empty:
        def items(self, keys: Any) -> dict[str, Any]:
            return {}

    class Wrong:
        def items(self, keys: Any) -> dict[str, Any]:
            there = {place["pk"]["S"]: {**place, "id": {"S": place["pk"]["S"]}} for place in places}
            return {key_text(k): there[k["pk"]["S"]] for k in keys if k["pk"]["S"] not in settled}

    def may_settle(candidates: Sequence[Candidate]) -> list[Candidate]:
        """The last place is noted when the first ones are settled."""
        return [one for one in candidates if not settled or one.place != places[-1]]

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


@acted
def test_nothing_is_settled_if_another_table_serves_by_then(pair: Pair) -> None:
    """A coordinator that was paused while it had the new table's stragglers examined."""
    pair.write(item("a", 1))
    pair.world.sleep(8.0)
    assert pair.change("destination").action == "done"
    change = pair.made("source", accept=("stragglers",))

    def paused() -> None:
        assert pair.change("source").action == "done"
        pair.put_new(item("a", 2))
        pair.world.sleep(20.0)

    change.examine = paused
    assert change.run().action == "called off"
    assert [one.side for one in pair.side.unsettled()] == ["destination"]
    assert not pair.side.claims("reverse")


class Differing:
    """A source, and an empty destination that the repairs of a verification fill, in virtual time.

    Attributes:
        sent: How many requests of each operation were sent.
        most: The largest number of repairs that were in flight at the same time.
    """

    def __init__(self, count: int) -> None:
        self.world = ChaosWorld(random.Random(1))
        self.count, self.most, self.sent = count, 0, Counter[str]()
        self._in_flight = 0
        self.world.put_first([item(f"k{number:05}", 1) for number in range(count)])
        self.world.begin()

    def repaired(self, settle: Settle | None = None) -> tuple[Counter[str], float, list[float]]:
        """Return the counts of a verification that repairs, its seconds, and its quiet times."""
        world, waited = self.world, list[float]()
        connection = world.connection(lambda operation, request: "well")
        network, call = connection.client, connection.client.call

        def counted(operation: str, **parameters: Any) -> Any:
            is_repair = operation == "transact_write_items"
            self._in_flight += is_repair
            self.most = max(self.most, self._in_flight)
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
            Candidate(world.transform.destination.of(there), [world.transform.source.of(one)])
            for one in world.items(world.pair.source)
            if (there := world.transform.forward(one)) is not None
        ]

        def pause(seconds: float) -> None:
            waited.append(seconds)
            world.sleep(seconds)

        results: list[Counter[str]] = []

        def act() -> None:
            results.append(looks.settled(looked_at(looks, candidates, pause))[0])

        world.schedule.spawn(act, Process("verify"))
        world.schedule.run()
        return results[0], world.monotonic(), waited


def test_repairs_are_made_many_at_once_and_quiet_times_are_waited_once_for_all() -> None:
    differing = Differing(2_000)
    counts, seconds, waited = differing.repaired()
    assert counts == {"missing": 2_000, REPAIRED: 2_000}
    assert waited == [*PAUSES]
    assert differing.most > 1
    assert differing.sent["transact_write_items"] == 2_000 / MOST_JOINT
    assert not differing.world.side().claims("forward")
    one, alone, _ = Differing(1).repaired()
    assert one == {"missing": 1, REPAIRED: 1}
    assert seconds - sum(PAUSES) < 2_000 / 10 * (alone - sum(PAUSES))


def test_the_owners_of_one_place_are_settled_one_after_the_other() -> None:
    """A place that one owner takes over becomes a claim of the other, whose work is overtaken."""
    differing = Differing(3 * REPAIRS_AT_ONCE)
    groups: list[list[str]] = []

    def settle(pairs: Sequence[tuple[Any, Any]]) -> list[bool]:
        groups.append([key_text(place) for _, place in pairs])
        return [True] * len(pairs)

    place = {"pk": {"S": "at k00000"}}
    there = differing.world.transform.forward(item("k00001", 1, to="at k00000"))
    assert there is not None
    differing.world.tables[differing.world.pair.destination].put(there)
    assert differing.world.transform.destination.of(there) == place
    differing.repaired(settle)
    assert all(len(group) == len(set(group)) for group in groups)
    assert sum(group.count(key_text(place)) for group in groups) >= 2
