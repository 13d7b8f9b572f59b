"""The last step of a run that lists logical keys: it folds the physical keys of the parts.

Several physical keys may belong to one logical key (`/f.txt_1` and `/f.txt_2` to `/f.txt`), and
they may be in any segments, slices and groups. So such a run reads and commits physical keys like
any other run. When all groups are finished, one process reads the parts again and lists each
logical key once (jobs/worker.py). That is a run within the run, in the folder `logical`. The caller
passes the function that folds keys.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.values import Key
from keyhop.errors import CannotStart, NoProgress
from keyhop.jobs.journal import Journal
from keyhop.jobs.model import RunPlan
from keyhop.jobs.pages import KEYS_AT_ONCE, PartPages
from keyhop.jobs.task import Ended, Summary, TaskOptions
from keyhop.jobs.worker import begun_within, work_within

FOLDER = "logical"

Fold = Callable[[Sequence[Key]], Sequence[Key]]
"""A function that maps physical keys to the keys to list, in the same order."""


def check_can_fold(space: KeySpace) -> None:
    """Raise CannotStart for a key space whose keys cannot have a shard's suffix."""
    if len(space.partition) != 1 or space.partition[0].type == "N":
        raise CannotStart(
            "Logical keys cannot be listed here: the partition key is a number (N), which cannot "
            "carry a shard's suffix; list the keys as they are."
        )


def too_slow(done: int) -> str:
    """Return the message for a fold that could not continue in the time of one call."""
    return (
        f"There was no time left after {done:,} physical keys were folded, in one place: list "
        f"the keys without logical, or with keyhop keys --logical, which has no deadline."
    )


def folded(ended: Ended, fold_of: Callable[[], Fold], options: TaskOptions) -> Summary | None:
    """Fold the keys of a run and return its manifest; None if there was no time to finish.

    Args:
        ended: The run.
        fold_of: Returns the function that folds. It is called when all parts are known.
        options: The fields of the manifest that describe the fold.

    Raises:
        NoProgress: There was no time to commit anything.
        BrokenPromise: A part differs from what was committed.
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
    """Yield the logical keys of a run in batches."""
    within = journal.within(FOLDER)
    for commit in within.commits(0):
        for part in commit.parts:
            keys = (key for _, key in within.keys(plan, part))
            while batch := list(islice(keys, KEYS_AT_ONCE)):
                yield batch
