"""The kinds of job, put together: the one place where capabilities meet, for command and functions.

No capability imports another: what one needs of another is handed to it here. They are imported
when a job of theirs is made, so that a command begins with what it needs.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.values import Key
from keyhop.errors import CannotStart, RunConflict
from keyhop.jobs.journal import Journal
from keyhop.jobs.request import Request
from keyhop.jobs.task import Options, Task, Tasks
from keyhop.key_index.index import sentinels_of
from keyhop.keys.logical import Fold
from keyhop.keys.request import keys_request
from keyhop.keys.task import Believe, KeysTask, SentinelsOf, no_index

if TYPE_CHECKING:
    from keyhop.each.task import Permit
    from keyhop.rekey.opening import TransformOf
    from keyhop.rekey.pair import Pair
    from keyhop.rekey.transform import Transform


def no_runs(name: str) -> Journal:
    """Where no other run can be seen."""
    raise CannotStart(f"The files of the run {name!r} cannot be seen from here.")


def index_walk(connection: Connection, options: Options) -> Task:
    """A walk over a key index."""
    from keyhop.key_index.task import WalkTask

    return WalkTask(connection, options)


def fold_of(connection: Connection, space: KeySpace, options: Options, started: str) -> Fold:
    """What folds keys (keys/task.FoldOf)."""
    from keyhop.sharding.logical_keys import fold_of

    return fold_of(connection, space, options, started)


def transform_of(
    pair: "Pair", source: Table, destination: Table, trusted: str | None = None
) -> "Transform":
    """What the template of a re-key comes to (rekey.opening.TransformOf). trusted: see `load`."""
    from keyhop.rekey.template.load import load

    return load(pair.template, source.space, destination.space, pair.code, trusted)


def list_of(request: Request, first: Sequence[str]) -> Request:
    """The run that lists the keys for one that does something for each; first: see KeysTask."""
    return keys_request(
        False,
        None,
        None,
        first=first,
        table=request.table,
        method=request.method,
        max_concurrency=request.max_concurrency,
        max_read_rate=request.max_read_rate,
        max_read_units=request.max_read_units,
        max_cost=request.max_cost,
        given=request.given,
        format="jsonl",
        resume=request.resume,
    )


def tasks_of(
    believe: Believe = no_index,
    walks: Callable[[Connection, Options], Task] = index_walk,
    folds: bool = True,
    sentinels_of: SentinelsOf = sentinels_of,
    journal_of: Callable[[str], Journal] = no_runs,
    permit: "Permit" = lambda table, effect, space: None,
    is_sharded: Callable[[Table], bool] = lambda table: False,
    transform_of: "TransformOf" = transform_of,
) -> Tasks:
    """All tasks. believe: whether keys are listed from the key index. walks: makes its walks.
    sentinels_of: what tells sentinels, which are no collections' keys by themselves. journal_of:
    from the name of a run to its files, for what works through a list. permit: see EachTask.
    is_sharded: whether a table is, as far as is known. transform_of: loads templates of re-keys.

    folds: whether logical keys are folded when all keys are read, or by whoever takes them.
    """
    keys = partial(
        KeysTask, fold_of=fold_of, believe=believe, folds=folds, sentinels_of=sentinels_of
    )

    def of_layout_2(connection: Connection, options: Options) -> KeysTask:
        """Runs of that layout do not name their task."""
        if options.get("walk") is not None:
            raise RunConflict("The run is a walk over a key index by an older version: begin anew.")
        return keys(connection, options)

    def each(connection: Connection, options: Options) -> Task:
        from keyhop.each.effects import effect_of
        from keyhop.each.task import EachTask

        return EachTask(
            connection,
            options,
            journal_of=journal_of,
            effect_of=effect_of,
            sentinels_of=sentinels_of,
            list_of=list_of,
            permit=permit,
        )

    def report(connection: Connection, options: Options) -> Task:
        from keyhop.report.task import ReportTask

        return ReportTask(
            connection, options, lambda table: [one] if (one := ours_of(table)) else []
        )

    def ours_of(table: Table) -> Key | None:
        sentinels = sentinels_of(table)
        return None if sentinels is None else sentinels.item

    def backfill(connection: Connection, options: Options) -> Task:
        from keyhop.rekey.backfill import BackfillTask

        return BackfillTask(connection, options, transform_of, ours_of, is_sharded)

    def digests(connection: Connection, options: Options) -> Task:
        from keyhop.rekey.compare.digests import DigestsTask

        return DigestsTask(connection, options, transform_of, ours_of)

    def verify(connection: Connection, options: Options) -> Task:
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
        "": of_layout_2,
    }
