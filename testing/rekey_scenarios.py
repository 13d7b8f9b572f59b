"""What is explored of re-keying, in families; of a share it is every n-th scenario."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

from testing import rekey_cutover_explorer as cutover
from testing.rekey_explored import Image, Known, Scenario
from testing.rekey_explorer import Explorer
from testing.rekey_joint_explorer import JointExplorer

Script = tuple[tuple[int, Image | None], ...]
Before = tuple[Image | None, ...]

EMPTY: Before = (None, None)
ONE: Before = ((0, 9), None)
BOTH: Before = ((0, 9), (1, 8))

OPERATIONS = tuple((key, place) for key in (0, 1) for place in (0, 1, None))


def scripts(length: int, contents: int = 9) -> Iterator[Script]:
    """All of this length: each operation puts one of two keys at one of two places, or deletes it.

    contents: how many there are; the n-th operation has the n-th, over and over.
    """
    for operations in itertools.product(OPERATIONS, repeat=length):
        yield tuple(
            (key, None if place is None else (place, number % contents + 1))
            for number, (key, place) in enumerate(operations)
        )


def first_of_alike(script: Script) -> bool:
    """Whether it is the least of those that are the same, but for the keys' and places' numbers.

    Nothing tells two keys or two places apart but what is in the tables, and from empty tables it
    is enough to explore one script of four. (Verify reads in an order, so there it would not do.)
    """

    def turned(keys: int, places: int) -> list[tuple[int, int]]:
        return [(key ^ keys, 2 if image is None else image[0] ^ places) for key, image in script]

    mine = turned(0, 0)
    return all(mine <= turned(keys, places) for keys in (0, 1) for places in (0, 1))


def live() -> Iterator[Scenario]:
    """Any order of records, copies, merged batches, kills, and requests without an answer."""
    for script in scripts(3):
        if first_of_alike(script):
            yield Scenario(script, copies=1, crashes=1, merges=True)
    for script in scripts(3):
        yield Scenario(script, before=ONE, copies=1, crashes=1)
    for script in scripts(3, contents=1):
        yield Scenario(script, before=BOTH, copies=1)
    for script in scripts(4):
        if first_of_alike(script):
            yield Scenario(script, copies=1)


def swept() -> Iterator[Scenario]:
    """Claims are settled while others work, and while those who settle are killed."""
    for script in scripts(3):
        if first_of_alike(script):
            yield Scenario(script, sweepers=1, copies=1, crashes=1)
        yield Scenario(script, before=ONE, sweepers=1, crashes=1)
        yield Scenario(script, before=BOTH, workers=1, sweepers=2)
    for script in scripts(2):
        yield Scenario(script, before=ONE, workers=1, sweepers=2, crashes=1)
        yield Scenario(script, before=ONE, sweepers=1, crashes=2)


def filled() -> Iterator[Scenario]:
    """A backfill, and a verification, while users write; with records, or before any.

    A verification repairs, or only says whether all is well. Without one, and if the backfill is
    not killed and no record is lost, all is well by the second look of the backfill alone.
    """
    for at in itertools.product((None, 0, 1), repeat=2):
        before = tuple(None if d is None else (d, 9 - s) for s, d in enumerate(at))
        whole = Scenario((), before=before, backfill=True, verify=True)
        for script in scripts(2):
            yield replace(whole, script=script, loses=True, sweepers=1)
            yield replace(whole, script=script, workers=1, crashes=1, places_first=True)
            alone = replace(whole, script=script, verify=False, copy_dies=False)
            yield replace(alone, merges=True, copies=1)
            yield replace(alone, workers=1, crashes=1)
        for script in moving_on():
            lost = replace(whole, script=script, workers=1, loses=True, merges=True)
            yield lost
            yield replace(lost, repairs=False)


def moving_on() -> Iterator[Script]:
    """One item moves and then goes on changing; or another comes to its place, and leaves it."""
    for key, place in itertools.product((0, 1), repeat=2):
        moved = (key, (place, 1))
        yield (moved, (key, (place, 2)), (key, (place, 3)))
        yield (moved, (1 - key, (1 - place, 2)), (1 - key, None))


def repaired() -> Iterator[Scenario]:
    """A destination that is wrong in some way, and verify, while users write."""
    for whole in planted():
        for script in scripts(1):
            yield replace(whole, script=script, sweepers=1, crashes=1)
            yield replace(whole, script=script, repairs=False, crashes=1)


def shared() -> Iterator[Scenario]:
    """The same, and the claims of verify share a row; with a kill, or with writes.

    Both together have too many worlds.
    """
    for whole in planted():
        joint = replace(whole, joint=True, workers=1, sweepers=1)
        yield replace(joint, crashes=1)
        for script in scripts(1):
            yield replace(joint, script=script)


def planted() -> Iterator[Scenario]:
    """A verification of a destination that is wrong in some way."""
    there = (None, (0, (0, 5)), (1, (0, 5)), (0, (0, 9)))
    for one, two in itertools.product(there, (None, (0, (1, 5)), (1, (1, 8)))):
        yield Scenario((), before=BOTH, destination=(one, two), verify=True)


def turned() -> Iterator[cutover.Scenario]:
    """There, and back, with clients, copies, kills; called off, and once more."""
    for script in ((1,), (1, 2), (1, None), (1, 2, 3), (1, 2, 1)):
        short = len(script) < 3
        yield cutover.Scenario(script, turns=2, copies=int(short))
        yield cutover.Scenario(script, turns=2, aborts=1)
        yield cutover.Scenario(script, turns=2, crashes=int(short))
        yield cutover.Scenario(script, turns=3, aborts=2, clients=1)
        yield cutover.Scenario(script, turns=3, clients=1)
        yield cutover.Scenario(script, workers=2, copies=int(short), clients=1)
        if short:
            yield cutover.Scenario(script, copies=1, crashes=1, clients=1)
            yield cutover.Scenario(script, turns=2, aborts=1, copies=1, clients=1)
            yield cutover.Scenario(script, turns=2, aborts=1, crashes=1, clients=1)
            yield cutover.Scenario(script, turns=2, aborts=2, bypassed=True, clients=1)
            yield cutover.Scenario(script, turns=3, pauses=1, clients=1)
            yield cutover.Scenario(script, turns=2, pauses=1, crashes=1, clients=1)


FAMILIES = {family.__name__: family for family in (live, swept, filled, repaired, shared, turned)}


def explore(family: str, one_in: int = 1) -> int:
    """How many worlds there are in this share of a family; AssertionError if one is wrong."""
    worlds, known = 0, Known()
    for scenario in itertools.islice(FAMILIES[family](), one_in // 2, None, one_in):
        more, wrong = explored(scenario, known)
        assert wrong is None, (scenario, wrong)
        worlds += more
    return worlds


def explored(scenario: Scenario | cutover.Scenario, known: Known) -> tuple[int, object]:
    if isinstance(scenario, cutover.Scenario):
        return cutover.CutoverExplorer(scenario).explore()
    explorer = JointExplorer if scenario.joint else Explorer
    return explorer(scenario, known=known).explore()
