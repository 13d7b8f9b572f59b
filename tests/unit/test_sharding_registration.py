"""Check the registration of keys, and the loss of metadata, in all interleavings."""

import json
from typing import Any

import pytest
from keyhop.sharding.store.metadata import Metadata
from keyhop.sharding.store.table_item import TOTAL_KEY

from testing.marks import prove
from testing.registration_explorer import (
    Program,
    Rules,
    World,
    counts,
    grows,
    loses,
    reads,
    recovers,
    registers,
    writes,
)


class WithoutLook(Metadata):
    """Metadata that registers a key without a look for its shards."""

    def holds(self, logical: Any, shards: range) -> bool:
        return False


def scenarios_without_loss(how: dict[str, Any]) -> dict[str, dict[str, Program]]:
    """Return scenarios without a loss, in which reporting one is wrong."""
    return {
        "one grows it at once": {"a": grows(**how), "b": writes(**how), "reader": reads(**how)},
        "both grow it at once": {"a": grows(**how), "b": grows(**how), "reader": reads(**how)},
        "one begins with two shards": {
            "a": writes(first_count=2, **how),
            "b": writes(2, **how),
            "reader": reads(2, **how),
        },
        "three at once": {
            "a": grows(**how),
            "b": writes(first_count=2, **how),
            "c": writes(**how),
            "reader": reads(**how),
        },
    }


SCENARIOS = [prove(name) if "three" in name else name for name in scenarios_without_loss({})]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_new_key_is_registered_once_and_no_loss_is_reported(scenario: str) -> None:
    worlds, wrong = Rules(scenarios_without_loss({})[scenario]).explore()
    assert wrong == []
    assert worlds > 100


def scenarios_with_loss(how: dict[str, Any]) -> dict[str, dict[str, Program]]:
    return {
        "grown": {
            "grower": grows(**how),
            "writer": writes(2, **how),
            "reader": reads(**how),
            "somebody": loses,
        },
        "begun with two": {
            "first": writes(first_count=2, **how),
            "writer": writes(2, **how),
            "reader": reads(**how),
            "somebody": loses,
        },
        "of one shard": {
            "first": writes(**how),
            "second": writes(first_count=2, **how),
            "reader": reads(**how),
            "somebody": loses,
        },
    }


@pytest.mark.parametrize("scenario", scenarios_with_loss({}))
def test_lost_metadata_is_reported_or_all_items_are_read(scenario: str) -> None:
    worlds, wrong = Rules(scenarios_with_loss({})[scenario]).explore()
    assert wrong == []
    assert worlds > 500


def scenarios_with_recovery(how: dict[str, Any]) -> dict[str, dict[str, Program]]:
    return {
        "while it is written": {
            "grower": grows(**how),
            "somebody": loses,
            "recovery": recovers(),
            "reader": reads(**how),
        },
        "twice at once": {
            "first": writes(first_count=2, **how),
            "somebody": loses,
            "recovery": recovers(),
            "another": recovers(),
            "reader": reads(**how),
        },
        "that has three shards": {
            "writer": writes(into=(2, 3), first_count=3, **how),
            "somebody": loses,
            "recovery": recovers(),
            "reader": reads(**how),
        },
    }


@pytest.mark.parametrize("scenario", scenarios_with_recovery({}))
def test_metadata_is_recovered_while_others_read_and_write(scenario: str) -> None:
    worlds, wrong = Rules(scenarios_with_recovery({})[scenario]).explore()
    assert wrong == []
    assert worlds > 200


def agreeing() -> dict[str, Program]:
    return {
        "first": registers("a"),
        "other": registers("b", placement="random"),
        "third": registers("c"),
        "counter": counts,
    }


def is_agreed(world: World) -> None:
    """Check that registered keys have the placement of the table, which never changes."""
    items = {key: json.loads(item) for key, item in world.metadata}
    expected = items.get(TOTAL_KEY, {}).get("placement")
    placements = [item["placement"] for key, item in items.items() if key in "abc"]
    assert placements == [expected] * len(placements), f"{placements}, and not {expected}"


@pytest.mark.prove
def test_a_placement_is_agreed_upon_once_while_others_write_and_count() -> None:
    worlds, wrong = Rules(agreeing(), check=is_agreed).explore()
    assert wrong == []
    assert worlds > 300


def test_the_agreement_needs_a_condition() -> None:
    assert Rules(agreeing(), check=is_agreed, conditional=False).explore()[1]


WITHOUT = {
    "a look before a key is registered or read": (
        scenarios_with_loss({"kind": WithoutLook})["grown"],
        {},
    ),
    "the condition that a key is registered once": (
        scenarios_without_loss({})["one grows it at once"],
        {"conditional": False},
    ),
    "time until the loss is visible to all": (scenarios_with_loss({})["grown"], {"settled": False}),
    "time until a reader looks again at a key that was new": (
        {**scenarios_with_loss({})["begun with two"], "reader": reads(2)},
        {},
    ),
    "time between the loss and the recovery": (
        scenarios_with_recovery({})["that has three shards"],
        {"settled": False},
    ),
}


@pytest.mark.prove
@pytest.mark.parametrize("left_out", WITHOUT)
def test_each_part_of_the_registration_is_needed(left_out: str) -> None:
    programs, changes = WITHOUT[left_out]
    assert Rules(programs, **changes).explore()[1], "nothing goes wrong without it"
