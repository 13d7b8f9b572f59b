"""How the worker follows a stream: the settings of its event source mappings. Pure."""

from collections.abc import Mapping
from typing import Any

WORKER = "Replicate"
"""The worker's function's name ends so."""

SETTINGS: Mapping[str, Any] = {
    # Both are made at `start`: the destination's stream is empty then, the source's has a day.
    "StartingPosition": "TRIM_HORIZON",
    # A second's work of a core, so that what is behind catches up with few notes and looks at the
    # control item, and a marker is seen a second after it came; 15 s while the other table
    # takes 33 writes a second only, of the 45 s that a batch has, so it ends all the same.
    "BatchSize": 500,
    "MaximumBatchingWindowInSeconds": 0,
    # A shard's records come from one partition, which takes 1,000 writes a second: that is what
    # one function does. Of several at once a repeat might begin with another record than
    # the batch that was killed, and would not find its note (protocol.py).
    "ParallelizationFactor": 1,
    # Half a batch begins with another record, too; and so does one that is done in part.
    "BisectBatchOnFunctionError": False,
    "FunctionResponseTypes": [],
    # The worker gives up by itself what kills it again and again (Replicator.work); all else, as a
    # table that takes no writes, passes, and then nothing must have been given up.
    "MaximumRetryAttempts": -1,
    "MaximumRecordAgeInSeconds": -1,
}
