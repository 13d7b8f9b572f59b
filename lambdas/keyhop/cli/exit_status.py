"""Exit statuses of the `keyhop` command."""

DONE = 0
FAILED = 2
"""What was asked for could not be done, or could not be finished."""

KEYS_MISSING = 3
"""The check found keys that the run did not report."""

DRIFT_FOUND = 3
"""The audit of a key index found something wrong, whether or not it was put right."""

BUDGET_SPENT = 4
"""The run stopped before it would have spent more than it may."""

INTERRUPTED = 130
"""Ctrl-C: 128 + SIGINT."""

TERMINATED = 143
"""128 + SIGTERM."""

OUTPUT_CLOSED = 141
"""Whoever read the output has gone: 128 + SIGPIPE, as other commands end."""
