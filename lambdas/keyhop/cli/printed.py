"""Keys on standard output: as pages bring them, or from the parts of a run."""

import sys
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import IO

from keyhop.dynamodb.values import Key
from keyhop.jobs.formats import Encoder
from keyhop.jobs.journal import Journal, Part, RunPlan
from keyhop.jobs.pages import KEYS_AT_ONCE
from keyhop.jobs.worker import KnownKeys
from keyhop.keys.task import Fold


class Printed:
    """Keys on standard output, a page at a time (jobs.worker.Output)."""

    def __init__(
        self, encoder: Encoder, fold: Fold | None = None, out: IO[bytes] | None = None
    ) -> None:
        """out: where they go, if not to standard output."""
        self.physical = 0
        self.folded = 0
        self.printed = 0
        self._encoder = encoder
        self._fold = fold
        self._printed = KnownKeys() if fold is not None else None
        self._out = out or sys.stdout.buffer
        self._out.write(encoder.header())

    def write(self, segment: int, keys: Sequence[Key]) -> int:
        """Print those keys that were not printed before; raises BrokenPipeError."""
        if self._fold is not None:
            logical = self._fold(keys)
            self.physical += len(keys)
            self.folded += sum(key != other for key, other in zip(keys, logical, strict=True))
            keys = logical
        if self._printed is not None:
            keys = self._printed.new_among(keys)
        self._out.write(self._encoder.encode(keys))
        self._out.flush()
        self.printed += len(keys)
        return len(keys)

    def show(self, journal: Journal, plan: RunPlan, parts: Iterable[Part]) -> None:
        """Print what parts hold; as it stands, unless keys are folded."""
        for part in parts:
            if self._fold is None:
                header = part.header
                for chunk in journal.content(part):
                    self._out.write(chunk[header:])
                    header = max(0, header - len(chunk))
                self._out.flush()
                self.printed += part.keys
                continue
            keys = (key for _, key in journal.keys(plan, part))
            while batch := [*islice(keys, KEYS_AT_ONCE)]:
                self.write(0, batch)

    def close(self) -> tuple[Part, ...]:
        return ()
