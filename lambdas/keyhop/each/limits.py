"""What may be asked of the task `each`, and what it does if it is not asked."""

DEFAULT_BATCH = 100
MOST_BATCH = 1_000
LIMITS = ("max_write_rate", "max_write_units")
"""Of a run's options, what counts anew at each start."""

GUARDS = ("none", "look", "transaction")
