"""The tasks of a re-key and the looks of its verification, of which none waits."""

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


def at_once(**more: Any) -> Tasks:
    """As tasks_of, but a verification waits neither for a copy to settle nor between its looks."""
    return {**tasks_of(**more), **verifying(more.get("journal_of", no_runs))}


def verifying(
    journal_of: Callable[[str], Journal],
    transform_of: TransformOf = transform_of,
    now: Callable[[], float] = time.time,
    wait: Callable[[float], None] = lambda seconds: None,
    pauses: tuple[float, float] = (0.0, 0.0),
) -> Tasks:
    """Both tasks of a verification; wait, pauses: of the first, and of the second."""

    def digests(connection: Connection, options: TaskOptions) -> Task:
        return DigestsTask(connection, options, transform_of, now=now, wait=wait)

    def verify(connection: Connection, options: TaskOptions) -> Task:
        return VerifyTask(connection, options, transform_of, journal_of, now=now, pauses=pauses)

    return {DIGESTS: digests, VERIFY: verify}


def looked_at(
    looks: Looks, candidates: Sequence[Candidate], pause: Callable[[float], None]
) -> list[Candidate]:
    """Look at the first of these candidates until they are equal or really differ."""
    found = looks.look(candidates)
    for seconds in looks.look_again(found):
        pause(seconds)
    return found
