"""The kinds of job, for the command and the functions. Here, capabilities are connected.

This module passes to each capability what it needs of others, so that few of them import another
one (docs/architecture.md). A capability is imported when one of its jobs is made, so that a
command starts fast.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.values import Key
from keyhop.errors import CannotStart
from keyhop.jobs.journal import Journal
from keyhop.jobs.request import Request
from keyhop.jobs.task import Task, TaskOptions, Tasks
from keyhop.key_index.index import SentinelsOf, sentinels_of
from keyhop.keys.request import keys_request
from keyhop.keys.task import DecideTrust, KeysTask

if TYPE_CHECKING:
    from keyhop.each.task import Permit
    from keyhop.rekey.pair import Pair
    from keyhop.rekey.task import TransformOf
    from keyhop.rekey.transform import Transform


def no_runs(name: str) -> Journal:
    """Raise CannotStart, where the files of other runs are not accessible."""
    raise CannotStart(f"The files of the run {name!r} cannot be seen from here.")


def index_walk(connection: Connection, options: TaskOptions) -> Task:
    """Make the task that walks over a key index."""
    from keyhop.key_index.task import WalkTask

    return WalkTask(connection, options)


def transform_of(
    pair: "Pair", source: Table, destination: Table, trusted: str | None = None
) -> "Transform":
    """Load the template of a re-key (rekey.task.TransformOf); for `trusted`, see `load`."""
    from keyhop.rekey.template.load import load

    return load(pair.template, source.space, destination.space, pair.code, trusted)


def list_of(request: Request, first: Sequence[str]) -> Request:
    """Return the request of the list of keys for a run of `each`.

    first: The attributes of the first item of each key that the run needs, as KeysTask has them.
    """
    return keys_request(
        request.table,
        first=first,
        method=request.method,
        max_concurrency=request.max_concurrency,
        max_read_rate=request.max_read_rate,
        max_read_units=request.max_read_units,
        max_cost=request.max_cost,
        job_input=request.job_input,
        format="jsonl",
        resume=request.resume,
    )


def tasks_of(
    decide_trust: DecideTrust | None = None,
    walks: Callable[[Connection, TaskOptions], Task] = index_walk,
    folds: bool = True,
    sentinels_of: SentinelsOf = sentinels_of,
    journal_of: Callable[[str], Journal] = no_runs,
    permit: "Permit" = lambda table, effect, space: None,
    is_sharded: Callable[[Table], bool] = lambda table: False,
    transform_of: "TransformOf" = transform_of,
) -> Tasks:
    """Return all kinds of tasks.

    Args:
        decide_trust: Decides whether keys are listed from the key index; None for no key index.
        walks: Makes the walks over a key index.
        folds: Whether logical keys are folded when all keys have been read; else the caller folds.
        sentinels_of: Returns how to recognize sentinels: a sentinel alone is not a collection.
        journal_of: Returns the files of a run by its name, for tasks that work through a list.
        permit: See EachTask.
        is_sharded: Returns whether a table is known to be sharded.
        transform_of: Loads the template of a re-key.
    """
    keys = partial(KeysTask, decide_trust=decide_trust, folds=folds, sentinels_of=sentinels_of)

    def each(connection: Connection, options: TaskOptions) -> Task:
        from keyhop.each.task import EachTask

        return EachTask(
            connection,
            options,
            journal_of=journal_of,
            sentinels_of=sentinels_of,
            list_of=list_of,
            permit=permit,
        )

    def report(connection: Connection, options: TaskOptions) -> Task:
        from keyhop.report.task import ReportTask

        return ReportTask(
            connection, options, lambda table: [sentinel] if (sentinel := ours_of(table)) else []
        )

    def ours_of(table: Table) -> Key | None:
        sentinels = sentinels_of(table)
        return None if sentinels is None else sentinels.item

    def backfill(connection: Connection, options: TaskOptions) -> Task:
        from keyhop.rekey.backfill import BackfillTask

        return BackfillTask(connection, options, transform_of, ours_of, is_sharded)

    def digests(connection: Connection, options: TaskOptions) -> Task:
        from keyhop.rekey.compare.digests import DigestsTask

        return DigestsTask(connection, options, transform_of, ours_of)

    def verify(connection: Connection, options: TaskOptions) -> Task:
        from keyhop.rekey.compare.task import VerifyTask

        return VerifyTask(connection, options, transform_of, journal_of)

    return {
        "keys": keys,
        "key_index": walks,
        "each": each,
        "report": report,
        "rekey_backfill": backfill,
        "rekey_digests": digests,
        "rekey_verify": verify,
    }
