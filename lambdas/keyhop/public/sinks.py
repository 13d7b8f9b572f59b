"""What becomes of listed keys: bytes in a stream, or batches for an iterating thread."""

import shutil
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from tempfile import SpooledTemporaryFile
from threading import Condition, Event
from typing import IO, Any

from keyhop.dynamodb.values import Key
from keyhop.errors import Stopped
from keyhop.jobs.formats import Encoder
from keyhop.jobs.journal import Journal, Part, RunPlan
from keyhop.jobs.pages import KEYS_AT_ONCE
from keyhop.jobs.worker import KnownKeys
from keyhop.keys.task import Fold

FORMATS: Mapping[str, Any] = {
    "text": "text",
    "json": "json",
    "typed-json": "jsonl",
    "csv": "csv",
}
"""The formats of a run's files by their public names."""

MOST_HELD_BYTES = 8 << 20
"""In memory; more is held on disk."""

MOST_WAITING = 8
"""The batches of keys, each of a page or more, that wait for the iterating thread."""


class KeySink:
    """Receives the keys of a listing, folds them, and passes each on once (jobs.worker.Output).

    The subclasses say to where; this class only counts the keys.
    """

    def __init__(self, encoder: Encoder, fold: Fold | None = None) -> None:
        self.physical = self.folded = self.passed = 0
        self._encoder = encoder
        self._fold = fold
        self._known = KnownKeys() if fold is not None else None
        self._held: SpooledTemporaryFile[bytes] | None = None

    def write(self, segment: int, keys: Sequence[Key]) -> int:
        """Pass on those keys that were not passed on before."""
        if self._fold is not None:
            logical = self._fold(keys)
            self.physical += len(keys)
            self.folded += sum(key != folded for key, folded in zip(keys, logical, strict=True))
            keys = logical
        if self._known is not None:
            keys = self._known.new_among(keys)
        if self._held is not None:
            self._held.write(self._encoder.encode(keys))
        else:
            self.put(keys)
        self.passed += len(keys)
        return len(keys)

    def show(self, journal: Journal, plan: RunPlan, parts: Iterable[Part]) -> None:
        """Pass on the keys of parts."""
        for part in parts:
            keys = (key for _, key in journal.keys(plan, part))
            while batch := [*islice(keys, KEYS_AT_ONCE)]:
                self.write(0, batch)

    def hold(self, held: SpooledTemporaryFile[bytes]) -> None:
        """Hold keys back in a file until `release`."""
        self._held = held

    def release(self) -> None:
        """Pass on the keys that were held back."""
        if self._held is not None:
            self._held.seek(0)
            self.put_held(self._held)

    def close(self) -> tuple[Part, ...]:
        return ()

    def begin(self) -> None:
        """Pass on what precedes the first key."""

    def put(self, keys: Sequence[Key]) -> None:
        """Pass keys on."""

    def put_held(self, held: SpooledTemporaryFile[bytes]) -> None:
        """Pass on the encoded keys in a file."""


class ByteSink(KeySink):
    """Writes keys to a stream."""

    def __init__(self, out: IO[bytes], encoder: Encoder, fold: Fold | None = None) -> None:
        super().__init__(encoder, fold)
        self._out = out

    def begin(self) -> None:
        self._out.write(self._encoder.header())

    def put(self, keys: Sequence[Key]) -> None:
        self._out.write(self._encoder.encode(keys))
        self._out.flush()

    def put_held(self, held: SpooledTemporaryFile[bytes]) -> None:
        self.begin()
        shutil.copyfileobj(held, self._out)
        self._out.flush()

    def show(self, journal: Journal, plan: RunPlan, parts: Iterable[Part]) -> None:
        """Write the content of parts unchanged, unless keys are folded."""
        if self._fold is not None:
            super().show(journal, plan, parts)
            return
        for part in parts:
            header = part.header
            for chunk in journal.content(part):
                self._out.write(chunk[header:])
                header = max(0, header - len(chunk))
            self._out.flush()
            self.passed += part.keys


class Feed:
    """Hands batches of keys from the reading threads to the iterating one.

    Args:
        stop: Is set when enough keys were read.
        limit: The number of keys that are enough; None for all.
    """

    def __init__(self, stop: Event, limit: int | None) -> None:
        self._stop = stop
        self._remaining = limit
        self._batches: deque[Sequence[Key]] = deque()
        self._changed = Condition()
        self._is_over = self._is_closed = False
        self._error: BaseException | None = None

    def fill(self, work: Callable[[], None]) -> None:
        """Do the work that puts keys, to its end; `take` raises its error."""
        try:
            work()
        except BaseException as error:  # The iterating thread raises it, whatever it is.
            self._error = error
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def put(self, keys: Sequence[Key]) -> None:
        """Wait for room, and add keys; raise Stopped if nobody takes them any more."""
        with self._changed:
            while len(self._batches) >= MOST_WAITING and not self._is_closed:
                self._changed.wait()
            if self._is_closed or self._remaining == 0:
                raise Stopped
            if self._remaining is not None:
                keys = keys[: self._remaining]
                self._remaining -= len(keys)
                if not self._remaining:
                    self._stop.set()
            self._batches.append(keys)
            self._changed.notify_all()

    def take(self) -> Sequence[Key] | None:
        """Wait for keys; return None after the last ones, or raise the error of the listing."""
        with self._changed:
            while not self._batches and not self._is_over and not self._is_closed:
                self._changed.wait()
            if self._batches:
                self._changed.notify_all()
                return self._batches.popleft()
            if self._error is not None:
                raise self._error
            return None

    def close(self) -> None:
        """Refuse further keys."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()


class FeedSink(KeySink):
    """Passes keys to a feed."""

    def __init__(self, feed: "Feed", encoder: Encoder, fold: Fold | None = None) -> None:
        super().__init__(encoder, fold)
        self._feed = feed

    def put(self, keys: Sequence[Key]) -> None:
        if keys:
            self._feed.put(keys)

    def put_held(self, held: SpooledTemporaryFile[bytes]) -> None:
        while lines := b"".join(islice(held, KEYS_AT_ONCE)):
            self.put([*self._encoder.decode(lines)])
