"""Jobs of the command line: where their files are, and progress while they are at work."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from keyhop.cli.options import Options
from keyhop.cli.progress import Display
from keyhop.cli.session import Stop
from keyhop.dynamodb.client import Connection
from keyhop.jobs.local import LocalJob, nowhere, opened
from keyhop.jobs.plan import Place
from keyhop.jobs.request import Request
from keyhop.jobs.task import Tasks
from keyhop.storage.local import Directory


@contextmanager
def job_in(
    path: Path | None,
    request: Request,
    tasks: Tasks,
    connection: Connection,
    options: Options,
    stop: Stop,
) -> Iterator[LocalJob]:
    """A job whose files are in a directory of its own, locked meanwhile; without one, nowhere."""
    journal = opened(path, options.resume) if path else nowhere()
    place = Place(str(path), f"The run in {path}", "--")
    try:
        yield LocalJob(
            request, tasks, connection, journal, stop.event, options.give_up_after, place
        )
    finally:
        if isinstance(journal.store, Directory):
            journal.store.unlock()


def work(job: LocalJob, options: Options, **how: Any) -> bool:
    """Go on until all is read (see LocalJob.work), and show how far that is."""
    with Display(job.reader, job.progress, options.quiet) as display:
        return job.work(display.update, **how)
