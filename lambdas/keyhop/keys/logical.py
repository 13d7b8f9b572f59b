"""The last step of a run that lists logical keys: what its parts hold, folded, each key once.

Several physical keys may stand for one listed key (`/f.txt_1`, `/f.txt_2`: `/f.txt`), and they lie
in any segments, slices and groups. So such a run reads and commits physical keys, as any other.
When all its groups are finished, its parts are read once more, by one process that remembers all
keys (jobs/worker.py): that is a run within the run, in the folder `logical`. Which keys are folded
is for others to say: they hand in a function.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.values import Key
from keyhop.errors import CannotStart, NoProgress
from keyhop.jobs.journal import Journal
from keyhop.jobs.model import RunPlan
from keyhop.jobs.pages import KEYS_AT_ONCE, PartPages
from keyhop.jobs.task import Ended, Options, Summary
from keyhop.jobs.worker import begun_within, work_within

FOLDER = "logical"

Fold = Callable[[Sequence[Key]], Sequence[Key]]
"""From physical keys to the keys to be listed, in the same order."""


def check_can_fold(space: KeySpace) -> None:
    """Raises CannotStart for a key space whose keys cannot be physical ones."""
    if len(space.partition) != 1 or space.partition[0].type == "N":
        raise CannotStart(
            "Logical keys cannot be listed here: the partition key is a number (N), which cannot "
            "carry a shard's suffix; list the keys as they are."
        )


def too_slow(done: int) -> str:
    """What to tell a person if one call did not suffice to go on with a fold."""
    return (
        f"There was no time left after {done:,} physical keys were folded, in one place: list "
        f"the keys without logical, or with keyhop keys --logical, which has no deadline."
    )


def folded(ended: Ended, fold_of: Callable[[], Fold], options: Options) -> Summary | None:
    """The manifest of a run whose keys are folded; None if there was no time for all of it.

    fold_of: called once all parts are known. options: what the manifest says of the fold. Raises
    NoProgress if there was no time for anything, and BrokenPromise if a part is not as it was
    committed.
    """
    parts = ended.totals.parts
    journal = ended.journal.within(FOLDER)
    plan = begun_within(
        journal,
        ended.plan,
        task="fold",
        method="parts",
        reason="to list logical keys",
        segments=max(1, len(parts)),
    )
    totals, has_moved = work_within(
        journal,
        plan,
        lambda: PartPages(ended.journal, ended.plan, parts, fold_of(), ended.stop),
        1,
        ended.over_at,
        too_slow,
    )
    if not totals.finished:
        if not has_moved and not ended.stop.is_set():
            raise NoProgress(too_slow(totals.usage.items))
        return None
    journal.sweep(totals.parts)
    *_, last = journal.commits(0)
    assert last.checkpoint.ledger is not None
    counts = {"physical_keys": ended.totals.keys, "folded": last.checkpoint.ledger["changed"]}
    listed = [part.summary() for part in totals.parts]
    return {
        **ended.summary,
        "keys": totals.keys,
        "logical": {**options, **counts},
        "parts": [{**part, "name": f"{FOLDER}/{part['name']}"} for part in listed],
    }


def listed(journal: Journal, plan: RunPlan) -> Iterator[list[Key]]:
    """The logical keys of a run that is folded, in batches."""
    within = journal.within(FOLDER)
    for commit in within.commits(0):
        for part in commit.parts:
            keys = (key for _, key in within.keys(plan, part))
            while batch := list(islice(keys, KEYS_AT_ONCE)):
                yield batch
