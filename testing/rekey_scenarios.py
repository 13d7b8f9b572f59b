"""The scenarios of re-keying that are explored, in families. A share is every n-th scenario."""

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
    """Yield all scripts of this length. Each operation moves a key to a place, or deletes it.

    There are two keys and two places. The n-th operation writes the n-th of `contents` contents,
    and starts over after the last.
    """
    for operations in itertools.product(OPERATIONS, repeat=length):
        yield tuple(
            (key, None if place is None else (place, number % contents + 1))
            for number, (key, place) in enumerate(operations)
        )


def is_representative(script: Script) -> bool:
    """Return whether a script is the least of the four that differ in the numbering only.

    Keys and places differ only in the contents of the tables. So if the tables are empty, it is
    enough to explore one script of four. This does not hold for verify, which reads in an order.
    """

    def renumbered(keys: int, places: int) -> list[tuple[int, int]]:
        return [(key ^ keys, 2 if image is None else image[0] ^ places) for key, image in script]

    original = renumbered(0, 0)
    return all(original <= renumbered(keys, places) for keys in (0, 1) for places in (0, 1))


def live() -> Iterator[Scenario]:
    """Yield scenarios with copies of records, merged batches, kills, and lost answers."""
    for script in scripts(3):
        if is_representative(script):
            yield Scenario(script, copies=1, crashes=1, merges=True)
    for script in scripts(3):
        yield Scenario(script, before=ONE, copies=1, crashes=1)
    for script in scripts(3, contents=1):
        yield Scenario(script, before=BOTH, copies=1)
    for script in scripts(4):
        if is_representative(script):
            yield Scenario(script, copies=1)


def swept() -> Iterator[Scenario]:
    """Yield scenarios in which claims are settled during writes, and sweepers are killed."""
    for script in scripts(3):
        if is_representative(script):
            yield Scenario(script, sweepers=1, copies=1, crashes=1)
        yield Scenario(script, before=ONE, sweepers=1, crashes=1)
        yield Scenario(script, before=BOTH, workers=1, sweepers=2)
    for script in scripts(2):
        yield Scenario(script, before=ONE, workers=1, sweepers=2, crashes=1)
        yield Scenario(script, before=ONE, sweepers=1, crashes=2)


def filled() -> Iterator[Scenario]:
    """Yield scenarios with a backfill, and a verification, while users write.

    A verification repairs differences, or only reports them. If the backfill is not killed and no
    record is lost, its second look suffices, and there is no verification.
    """
    for at in itertools.product((None, 0, 1), repeat=2):
        before = tuple(None if d is None else (d, 9 - s) for s, d in enumerate(at))
        verified = Scenario((), before=before, backfill=True, verify=True)
        for script in scripts(2):
            yield replace(verified, script=script, loses=True, sweepers=1)
            yield replace(verified, script=script, workers=1, crashes=1, places_first=True)
            alone = replace(verified, script=script, verify=False, copy_dies=False)
            yield replace(alone, merges=True, copies=1)
            yield replace(alone, workers=1, crashes=1)
        for script in moving_on():
            lost = replace(verified, script=script, workers=1, loses=True, merges=True)
            yield lost
            yield replace(lost, repairs=False)


def moving_on() -> Iterator[Script]:
    """Yield scripts in which an item moves and changes, or another takes its place and leaves."""
    for key, place in itertools.product((0, 1), repeat=2):
        move = (key, (place, 1))
        yield (move, (key, (place, 2)), (key, (place, 3)))
        yield (move, (1 - key, (1 - place, 2)), (1 - key, None))


def repaired() -> Iterator[Scenario]:
    """Yield scenarios in which verify repairs or reports a wrong destination while users write."""
    for verified in planted():
        for script in scripts(1):
            yield replace(verified, script=script, sweepers=1, crashes=1)
            yield replace(verified, script=script, repairs=False, crashes=1)


def shared() -> Iterator[Scenario]:
    """Yield scenarios in which the claims of verify share a row, with a kill or with writes.

    A kill and writes together would have too many worlds.
    """
    for verified in planted():
        joint = replace(verified, joint=True, workers=1, sweepers=1)
        yield replace(joint, crashes=1)
        for script in scripts(1):
            yield replace(joint, script=script)


def planted() -> Iterator[Scenario]:
    """Yield verifications of a destination that is wrong in some way."""
    items = (None, (0, (0, 5)), (1, (0, 5)), (0, (0, 9)))
    for destination in itertools.product(items, (None, (0, (1, 5)), (1, (1, 8)))):
        yield Scenario((), before=BOTH, destination=destination, verify=True)


def turned() -> Iterator[cutover.Scenario]:
    """Yield cutovers, rollbacks and aborts, with clients, copies of records and kills."""
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
    """Return the number of worlds in this share of a family, and assert that none is wrong."""
    worlds, known = 0, Known()
    for scenario in itertools.islice(FAMILIES[family](), one_in // 2, None, one_in):
        count, wrong = explored(scenario, known)
        assert wrong is None, (scenario, wrong)
        worlds += count
    return worlds


def explored(scenario: Scenario | cutover.Scenario, cache: Known) -> tuple[int, object]:
    if isinstance(scenario, cutover.Scenario):
        return cutover.CutoverExplorer(scenario).explore()
    explorer = JointExplorer if scenario.joint else Explorer
    return explorer(scenario, known=cache).explore()
