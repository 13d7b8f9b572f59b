"""Run a sample in this process: the task `report`, executed at once."""

from collections.abc import Callable, Mapping, Sequence
from threading import Event
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.usage import Usage
from keyhop.dynamodb.values import Key
from keyhop.errors import Stopped
from keyhop.jobs.journal import Journal
from keyhop.jobs.local import LocalJob
from keyhop.jobs.request import Request
from keyhop.report.facts import SampleFacts
from keyhop.report.second_look import look_again
from keyhop.report.task import OursOf, ReportTask
from keyhop.storage.store import Memory


def sample(
    connection: Connection,
    table: Table,
    request: Request,
    *,
    candidates: Mapping[str, Sequence[Key]] = {},
    ours_of: OursOf = lambda table: (),
    journal: Journal | None = None,
    stop: Event | None = None,
    usage: Usage | None = None,
    idle: Callable[[], None] = lambda: None,
) -> SampleFacts:
    """Return the facts from a sample of a table.

    Args:
        request: The request of report/request.py.
        candidates: See `look_again`.
        ours_of: Returns the attributes that identify items of Keyhop in a table.
        journal: The journal from which a stopped run can resume; None to leave nothing behind.
        stop: Set to stop the sample.
        usage: Receives the use of capacity.
        idle: Called while threads work.

    Raises:
        Stopped: `stop` was set.
        KeyhopError: Any error of a job.
    """

    def task(connection: Connection, options: Any) -> ReportTask:
        return ReportTask(connection, options, ours_of)

    job = LocalJob(
        request,
        {request.task: task},
        connection,
        journal or Journal(Memory()),
        stop=stop or Event(),
        patience=connection.patience,
        usage=usage or Usage(),
    )
    job.prepare(table)
    job.begin()
    is_kept = journal is not None
    job.work(idle, output=None if is_kept else job.journal.new_part(job.plan, 0, 0))
    if not job.finish()[1]["finished"]:
        raise Stopped
    return look_again(
        connection,
        job.journal,
        candidates,
        max_read_rate=request.max_read_rate,
        stop=job.stop,
        usage=job.usage,
    )
