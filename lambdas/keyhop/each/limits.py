"""Limits and defaults of the options of the task `each`."""

DEFAULT_BATCH = 100
MOST_BATCH = 1_000
LIMITS = ("max_write_rate", "max_write_units")
"""The options that are counted from zero at each start of a run."""

GUARDS = ("none", "look", "transaction")
