"""The settings of the worker's event source mappings, by which it follows a stream. Pure."""

from collections.abc import Mapping
from typing import Any

SETTINGS: Mapping[str, Any] = {
    # Both are made at `start`, when the destination's stream is empty and the source's has a day.
    "StartingPosition": "TRIM_HORIZON",
    # This is a second's work of a core, so a worker that is behind catches up with few records of
    # batches and few reads of the control item, and it sees a marker after a second. It is 15 s
    # while the other table takes only 33 writes a second; a batch has 45 s, so it ends in time.
    "BatchSize": 500,
    "MaximumBatchingWindowInSeconds": 0,
    # A shard's records come from one partition, which takes 1,000 writes a second, and one function
    # can do as much. With several at once, a retry might begin with another record than the batch
    # that was killed, and would not find its record (protocol.py).
    "ParallelizationFactor": 1,
    # Half a batch also begins with another record, and so does one that is done in part.
    "BisectBatchOnFunctionError": False,
    "FunctionResponseTypes": [],
    # The worker itself gives up an item that kills it repeatedly (Replicator.work). Other errors,
    # such as a table that refuses writes, are temporary, and then no item may have been given up.
    "MaximumRetryAttempts": -1,
    "MaximumRecordAgeInSeconds": -1,
}
