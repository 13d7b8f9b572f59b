"""A run's directory in which the process ends at a chosen operation."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keyhop.clock import now
from keyhop.dynamodb.tables import Source
from keyhop.jobs.journal import RunPlan
from keyhop.storage.local import Directory


class Crash(BaseException):
    """The simulated end of a process."""


class CrashingStore(Directory):
    """A directory that crashes before, or after, its n-th operation that changes something."""

    def __init__(self, path: Path, crash_at: int = 0, after: bool = False) -> None:
        super().__init__(path)
        self.remaining = crash_at
        self.after = after

    def _step(self, operation: Callable[[], object]) -> object:
        self.remaining -= 1
        if self.remaining == 0 and not self.after:
            raise Crash
        result = operation()
        if self.remaining == 0:
            raise Crash
        return result

    def within(self, folder):
        store = type(self)(self.path / folder)
        store._step = self._step  # the operations of both are counted together
        return store

    def create(self, name, content):
        return self._step(lambda: super(CrashingStore, self).create(name, content))

    def replace(self, name, content):
        return self._step(lambda: super(CrashingStore, self).replace(name, content))

    def open_part(self, name):
        return self._step(lambda: super(CrashingStore, self).open_part(name))


def new_plan(source: Source, segments: int, **options: Any) -> RunPlan:
    """Return the plan of a run, made without reading the table."""
    return RunPlan(
        uuid.uuid4().hex,
        source.name,
        None,
        source.identity,
        source.space,
        "skip",
        "test",
        segments,
        groups=1,
        format="jsonl",
        started=now(),
        task="keys",
        options=options,
    )
