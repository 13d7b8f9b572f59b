"""The tasks of a re-key, of which none waits."""

from typing import Any

from keyhop.dynamodb.client import Connection
from keyhop.jobs.task import Options, Tasks
from keyhop.rekey.compare.task import VerifyTask
from keyhop.tasks import tasks_of, transform_of


def at_once(**more: Any) -> Tasks:
    """As tasks_of, but verify waits neither for a copy to settle nor between its looks."""

    def verify(connection: Connection, options: Options) -> VerifyTask:
        return VerifyTask(
            connection, options, transform_of, wait=lambda seconds: None, pauses=(0.0, 0.0)
        )

    return {**tasks_of(**more), "rekey_verify": verify}
