"""`python -m keyhop.cli.process LINK`: a process that works a group of another one's run.

LINK: the number of the descriptor by which jobs/processes.py tells it what to do.
"""

import os
import sys
from contextlib import suppress
from multiprocessing.connection import Connection as Link

from keyhop.dynamodb.client import connect
from keyhop.jobs.processes import work
from keyhop.tasks import tasks_of

if __name__ == "__main__":
    # Else nobody is left who could be told.
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        work(Link(int(sys.argv[1])), tasks_of(), connect)
    os._exit(0)  # waits for no thread that is left behind
