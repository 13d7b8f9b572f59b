"""The kinds of job, put together: the one place where capabilities meet, for command and functions.

No capability imports another: what one needs of another is handed to it here.
"""

from collections.abc import Callable

from keyhop.dynamodb.client import Connection
from keyhop.errors import RunConflict
from keyhop.jobs.task import Options, Task, Tasks
from keyhop.key_index.task import WalkTask
from keyhop.keys.task import Believe, KeysTask, no_index
from keyhop.sharding.logical_keys import fold_of

Walks = Callable[[Connection, Options], Task]


def tasks_of(believe: Believe = no_index, walks: Walks = WalkTask, folds: bool = True) -> Tasks:
    """All tasks. believe: whether keys are listed from the key index. walks: makes its walks.

    folds: whether logical keys are folded when all keys are read, or by whoever takes them.
    """

    def keys(connection: Connection, options: Options) -> KeysTask:
        return KeysTask(connection, options, fold_of, believe, folds)

    def of_layout_2(connection: Connection, options: Options) -> KeysTask:
        """Runs of that layout do not name their task."""
        if options.get("walk") is not None:
            raise RunConflict("The run is a walk over a key index by an older version: begin anew.")
        return keys(connection, options)

    return {"keys": keys, "key_index": walks, "": of_layout_2}
