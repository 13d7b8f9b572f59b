"""The tasks of a re-key and the looks of its verification, without waits."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.jobs.journal import Journal
from keyhop.jobs.task import Task, TaskOptions, Tasks
from keyhop.rekey.compare.digests import DigestsTask
from keyhop.rekey.compare.looks import Looks
from keyhop.rekey.compare.rows import Candidate
from keyhop.rekey.compare.task import VerifyTask
from keyhop.rekey.request import DIGESTS, VERIFY
from keyhop.rekey.task import TransformOf
from keyhop.tasks import no_runs, tasks_of, transform_of


def at_once(**arguments: Any) -> Tasks:
    """Return the tasks of `tasks_of`, with a verification that does not wait at all."""
    return {**tasks_of(**arguments), **verifying(arguments.get("journal_of", no_runs))}


def verifying(
    journal_of: Callable[[str], Journal],
    transform_of: TransformOf = transform_of,
    now: Callable[[], float] = time.time,
    wait: Callable[[float], None] = lambda seconds: None,
    pauses: tuple[float, float] = (0.0, 0.0),
) -> Tasks:
    """Return both tasks of a verification: the first uses `wait`, the second `pauses`."""

    def digests(connection: Connection, options: TaskOptions) -> Task:
        return DigestsTask(connection, options, transform_of, now=now, wait=wait)

    def verify(connection: Connection, options: TaskOptions) -> Task:
        return VerifyTask(connection, options, transform_of, journal_of, now=now, pauses=pauses)

    return {DIGESTS: digests, VERIFY: verify}


def looked_at(
    looks: Looks, candidates: Sequence[Candidate], pause: Callable[[float], None]
) -> list[Candidate]:
    """Look at the first of these candidates until they are equal or really differ."""
    differing = looks.look(candidates)
    for seconds in looks.look_again(differing):
        pause(seconds)
    return differing
