"""Exit statuses of the `keyhop` command, and Ctrl-C before a command begins and after it has ended.

This module imports as little as possible, because Python loads it before everything else of Keyhop.
"""

import os
import signal
from contextlib import suppress
from types import FrameType

DONE = 0
FAILED = 2  # the command failed, or did not finish
KEYS_MISSING = 3  # the check found keys that the run did not report
DRIFT_FOUND = 3  # the verification of a key index found errors, repaired or not
BUDGET_SPENT = 4  # the run stopped before it would have exceeded its limit
# 5, 6: a report has findings, or unknown rules (report/pages/baseline.py)
INTERRUPTED = 130  # 128 + SIGINT: Ctrl-C
OUTPUT_CLOSED = 141  # 128 + SIGPIPE: the reader of the output has ended, as for other commands
TERMINATED = 143  # 128 + SIGTERM

SENTENCE = "keyhop: Interrupted."


def end_at_once(_number: int, _frame: FrameType | None) -> None:
    """Print the sentence and end this process without waiting for anything."""
    with suppress(OSError):  # Standard error may be closed, and then there is no way to report it.
        os.write(2, f"{SENTENCE}\n".encode())
    os._exit(INTERRUPTED)


def end_at_interrupt() -> None:
    """Have Ctrl-C end this process at once.

    A KeyboardInterrupt would be a traceback here, and Python ignores it in some places of an
    import. A process whose caller ignores Ctrl-C, such as one under `nohup`, goes on ignoring it.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end_at_once)


def raise_at_interrupt() -> None:
    """Have Ctrl-C raise KeyboardInterrupt, so that a command can clean up."""
    if signal.getsignal(signal.SIGINT) is end_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)
