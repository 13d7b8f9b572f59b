"""Ctrl-C before a command begins and after it has ended: one sentence, and status 130.

This module imports as little as possible, because Python loads it before everything else of Keyhop.
"""

import os
import signal
from contextlib import suppress
from types import FrameType

INTERRUPTED = 130
"""The exit status after Ctrl-C: 128 + SIGINT."""

SENTENCE = "keyhop: Interrupted."


def end_at_once(_number: int, _frame: FrameType | None) -> None:
    """Print the sentence and end this process without waiting for anything."""
    with suppress(OSError):  # Standard error may be closed, so that nobody can be told.
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
