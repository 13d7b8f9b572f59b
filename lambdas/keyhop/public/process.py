"""`python -m keyhop.public.process LINK`: a process that works a group of another process's run.

LINK is the number of the descriptor on which jobs/processes.py sends the work.
"""

import os
import sys
from contextlib import suppress
from multiprocessing.connection import Connection as Link

from keyhop.dynamodb.client import connect
from keyhop.jobs.processes import work
from keyhop.tasks import tasks_of

if __name__ == "__main__":
    # Otherwise the other process has ended, and nobody needs a message.
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        work(Link(int(sys.argv[1])), tasks_of(), connect)
    os._exit(0)  # does not wait for threads that are still running
