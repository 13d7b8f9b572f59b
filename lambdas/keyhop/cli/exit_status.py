"""Exit statuses of the `keyhop` command."""

from keyhop.cli.interrupts import INTERRUPTED as INTERRUPTED  # Ctrl-C

DONE = 0
FAILED = 2  # what was asked for could not be done, or could not be finished
KEYS_MISSING = 3  # the check found keys that the run did not report
DRIFT_FOUND = 3  # the audit of a key index found something wrong, whether or not it was put right
BUDGET_SPENT = 4  # the run stopped before it would have spent more than it may
# 5, 6: a report has findings, or leaves something open (report/pages/baseline.py)
OUTPUT_CLOSED = 141  # whoever read the output has gone: 128 + SIGPIPE, as other commands end
TERMINATED = 143  # 128 + SIGTERM
