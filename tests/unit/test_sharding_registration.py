"""Who registers a key, and what becomes of it when its metadata is lost: in every order."""

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
    """Registers what it does not find, and reads one shard of it."""

    def holds(self, logical: Any, shards: range) -> bool:
        return False


def nobody_loses(how: dict[str, Any]) -> dict[str, dict[str, Program]]:
    """With a kind of metadata; wrong is also a loss that is reported though there is none."""
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


SCENARIOS = [prove(name) if "three" in name else name for name in nobody_loses({})]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_new_key_is_registered_once_and_no_loss_is_reported(scenario: str) -> None:
    worlds, wrong = Rules(nobody_loses({})[scenario]).explore()
    assert wrong == []
    assert worlds > 100


def loses_with(how: dict[str, Any]) -> dict[str, dict[str, Program]]:
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


@pytest.mark.parametrize("scenario", loses_with({}))
def test_when_metadata_is_lost_all_is_told_or_that_it_is_lost(scenario: str) -> None:
    worlds, wrong = Rules(loses_with({})[scenario]).explore()
    assert wrong == []
    assert worlds > 500


def recovered(how: dict[str, Any]) -> dict[str, dict[str, Program]]:
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


@pytest.mark.parametrize("scenario", recovered({}))
def test_metadata_is_recovered_while_others_read_and_write(scenario: str) -> None:
    worlds, wrong = Rules(recovered({})[scenario]).explore()
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
    """Registered keys are as the table says, and that never changes."""
    items = {key: json.loads(item) for key, item in world.metadata}
    agreed = items.get(TOTAL_KEY, {}).get("placement")
    placed = [item["placement"] for key, item in items.items() if key in "abc"]
    assert all(one == agreed for one in placed), f"{placed}, and not {agreed}"


@pytest.mark.prove
def test_a_table_is_agreed_upon_once_while_others_write_and_count() -> None:
    worlds, wrong = Rules(agreeing(), check=is_agreed).explore()
    assert wrong == []
    assert worlds > 300


def test_it_is_agreed_upon_by_a_condition() -> None:
    assert Rules(agreeing(), check=is_agreed, conditional=False).explore()[1]


WITHOUT = {
    "a look before a key is registered or read": (
        loses_with({"kind": WithoutLook})["grown"],
        {},
    ),
    "the condition that a key is registered once": (
        nobody_loses({})["one grows it at once"],
        {"conditional": False},
    ),
    "time until the loss is visible to all": (loses_with({})["grown"], {"settled": False}),
    "time until a reader looks again at a key that was new": (
        {**loses_with({})["begun with two"], "reader": reads(2)},
        {},
    ),
    "time between what is lost and what is recovered": (
        recovered({})["that has three shards"],
        {"settled": False},
    ),
}


@pytest.mark.prove
@pytest.mark.parametrize("left_out", WITHOUT)
def test_each_part_is_needed(left_out: str) -> None:
    programs, changed = WITHOUT[left_out]
    assert Rules(programs, **changed).explore()[1], "nothing goes wrong without it"
