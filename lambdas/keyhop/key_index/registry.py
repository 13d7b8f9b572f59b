"""The registry of a table's key index: its state, stored outside the table, and its lease.

    entry.json    what the table was like before, where its sentinels are, the last verification,
                  and the lease, which says who is building, verifying or removing the index

It is one object, and each change of it is conditional on the version that was read. So the holder
of the lease can change it only while it holds the lease, and a reader sees a consistent state.

A deployment stores it in its bucket, below key-index/<table>-<hash>/, where the command finds it
with --stack. Without a deployment it is below the user's state folder (`$XDG_STATE_HOME/keyhop`, or
~/.local/state/keyhop). It contains no keys of the table: examples of drift are in reports, which
expire.

Because of the lease, builds, verifications and removals exclude each other. The holder is an
execution, which is alive while Step Functions says so, or a command, which writes the entry every
few seconds (`Heartbeat`). A command is dead when it has stopped doing so, by the clock of the
store, or at once if its process on this machine has ended.

Requests of a dead holder may still arrive: its walkers are functions that continue for a while, and
its process may have been suspended. So a walker writes only within `FENCE_SECONDS / 4` after it has
seen that it still has the lease (`Fence`), and the next holder waits for `FENCE_SECONDS` before its
first step. The difference is the time that a request can take.
"""

import getpass
import hashlib
import json
import os
import re
import socket
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Literal

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.clock import SystemClock, now
from keyhop.dynamodb.refusals import error_code
from keyhop.dynamodb.tables import Source, Table
from keyhop.errors import BrokenPromise, CannotStart, IndexBusy, KeyhopError
from keyhop.jobs.journal import Record
from keyhop.key_index.sentinel import Sentinel
from keyhop.storage.local import Directory
from keyhop.storage.store import Store

ENTRY = "entry.json"
VERSION = 2
"""The version of the format of entry.json."""

MOST_SWAPS = 20
"""The maximum attempts of one change: more are needed if others change the entry all the time."""

LOST = "The lease on the key index is somebody else's: it seemed to have ended; start again."
OCCUPIED = "an item of yours is in the place of a sentinel, so its collection is not in the index"
DISCARDED = "a message about unprocessed records was deleted from the keeper's failure queue"

Action = Literal["build", "verify", "remove"]


@dataclass(frozen=True, slots=True)
class Lease(Record):
    """The lease on the index.

    Attributes:
        holder: The ARN of an execution, or the name of the process of a command.
        since: When the holder took the lease.
        inherited: Whether the holder before it had died. Its last requests may still arrive.
        withdrawals: The number of withdrawals in the entry when the lease was taken. A verification
            under this lease proves nothing about the reasons of later withdrawals.
    """

    holder: str
    action: Action
    since: str
    inherited: bool = False
    withdrawals: int = 0


@dataclass(frozen=True, slots=True)
class Entry(Record):
    """The state of the key index of a table. Default values mean that nothing is known.

    Attributes:
        identity: Distinguishes the table from another table with the same name.
        begun: The number of builds and removals that have begun.
        withdrawals: The number of times that trust in the index was withdrawn.
        withdrawn: When and why trust was last withdrawn.
        before: What the table was like before the index was built.
        sentinel: The place of the sentinels.
        turns_stream_on: Whether Keyhop has turned on the stream of the table, or is about to do so.
        stream: The ARN of that stream, once it is known.
        emptied: Whether all sentinels have been deleted.
        elsewhere: The number of rows that the index still had then, which are at other sort keys.
        units: The capacity that the index will get when the build that raised it ends.
        refused: What the service refused at that change.
        verification: The last verification that counts.
        ended: The holder and the last state of the action that ended last, for a step that is
            repeated after its end.
    """

    identity: str
    changes: int = 0
    begun: int = 0
    withdrawals: int = 0
    withdrawn: Mapping[str, Any] | None = None
    before: Mapping[str, Any] | None = None
    sentinel: Mapping[str, Any] | None = None
    turns_stream_on: bool = False
    stream: str | None = None
    emptied: bool = False
    elsewhere: int = 0
    units: Mapping[str, int] | None = None
    refused: str | None = None
    verification: Mapping[str, Any] | None = None
    lease: Lease | None = None
    ended: Mapping[str, Any] | None = None

    @property
    def place(self) -> Sentinel | None:
        return None if self.sentinel is None else Sentinel.from_json(self.sentinel)

    @property
    def is_withdrawn(self) -> bool:
        """Return whether trust was withdrawn after the last verification began, or none ended."""
        last = self.verification
        return last is None or last.get("withdrawals", -1) != self.withdrawals

    @property
    def epoch(self) -> int:
        """Return a number that grows with each build, removal and withdrawal."""
        return self.begun + self.withdrawals

    def our_stream(self, present: str | None) -> str | None:
        """Return the stream that Keyhop turned on; one that was turned on later is not ours."""
        # Of a build that was stopped before it could note which, it is the present one.
        return present if self.turns_stream_on and self.stream is None else self.stream


IsAlive = Callable[[Lease, float], bool]
"""Returns whether the holder of a lease is alive, from the lease and the seconds since the entry
was written. A holder counts as alive if that is unknown."""


@dataclass(frozen=True, slots=True)
class Registry:
    """The registry of one table, with the `identity` of its entry."""

    store: Store
    identity: str
    now: Callable[[], str] = now

    def entry(self) -> Entry:
        """Return the entry; an empty one, which is not trusted, if it cannot be read."""
        try:
            return self._look()[0]
        except (OSError, KeyhopError):
            return Entry(self.identity)

    def load(self) -> Entry:
        """Return the entry for a caller that acts on it.

        Raise BrokenPromise if it is damaged, or has another version of the format.
        """
        version = self.store.look(ENTRY)
        if version is None:
            return Entry(self.identity)
        entry = self._read(version.content)
        if entry is None:
            raise BrokenPromise(
                f"{self.store.url(ENTRY)} is not an entry of this table: delete it if another "
                f"program has written it."
            )
        return entry

    def take(self, holder: str, action: Action, is_alive: IsAlive) -> Entry:
        """Take the lease, or find that `holder` has it; raise IndexBusy if another one lives."""

        def with_lease(entry: Entry, age: float) -> Entry:
            lease = entry.lease
            if lease is not None and lease.holder == holder:
                return entry
            if lease is not None and is_alive(lease, age):
                raise IndexBusy(
                    f"The key index is in use: {lease.action} by {lease.holder}, since "
                    f"{lease.since}; wait for it, or stop it."
                )
            following = Lease(holder, action, self.now(), lease is not None, entry.withdrawals)
            builds = entry.begun + (action != "verify")
            return replace(entry, lease=following, ended=None, begun=builds)

        return self._swapped(with_lease)

    def change(self, holder: str, **fields: Any) -> Entry:
        """Change the entry under the lease; raise IndexBusy if `holder` has lost it.

        Without fields, this only shows that the holder is alive.
        """

        def changed(entry: Entry, age: float) -> Entry:
            _check_lease(entry, holder)
            return replace(entry, **fields)

        return self._swapped(changed)

    def withdraw(self, why: str) -> None:
        """Record that the index must not be trusted until a later verification has finished.

        Only a verification that begins later counts. Nobody needs a lease for this. Nothing is
        written if neither the last verification nor the action under way counts any more, so a
        keeper may call it for each record. The reason is printed, so it must not contain a key.
        """

        def withdrawn(entry: Entry, age: float) -> Entry:
            lease = entry.lease
            action_counts = lease is not None and lease.withdrawals == entry.withdrawals
            if entry.is_withdrawn and not action_counts:
                return entry
            reason = {"when": self.now(), "why": why}
            return replace(entry, withdrawals=entry.withdrawals + 1, withdrawn=reason)

        self._swapped(withdrawn)

    def check_lease(self, holder: str) -> None:
        """Raise IndexBusy if `holder` has lost the lease."""
        _check_lease(self._look()[0], holder)

    def check_writable(self) -> None:
        """Raise CannotStart, before a long walk, if the entry cannot be written."""
        if isinstance(self.store, Directory):
            self.store.make()
            if not os.access(self.store.path, os.W_OK):
                raise CannotStart(
                    f"{self.store.path} cannot be written: set XDG_STATE_HOME to a folder of yours."
                )

    def _look(self) -> tuple[Entry, str | None, float]:
        """Return the entry, the tag of its version (None without one), and its age in seconds."""
        version = self.store.look(ENTRY)
        if version is None:
            return Entry(self.identity), None, 0.0
        entry = self._read(version.content)
        return entry or Entry(self.identity), version.tag, version.age

    def _read(self, content: bytes) -> Entry | None:
        """Return the entry of this table, if it is one; raise BrokenPromise for another version."""
        state = _json(content)
        if state.get("identity") != self.identity:
            return None
        if state.get("version") != VERSION:
            raise BrokenPromise(
                f"{self.store.url(ENTRY)} was written by another version of Keyhop, in format "
                f"{state.get('version', 1)}; this one reads format {VERSION}. Remove the key index "
                f"with that version, and build it again with this one."
            )
        try:
            return Entry.from_json(state)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def _swapped(self, changed: Callable[[Entry, float], Entry]) -> Entry:
        """Replace the entry by what `changed` makes of it and of its age; return the new entry.

        If that is the same entry, nothing is written. Raise IndexBusy if others change it all the
        time.
        """
        for _ in range(MOST_SWAPS):
            entry, tag, age = self._look()
            following = changed(entry, age)
            if following is entry:
                return entry
            following = replace(following, changes=entry.changes + 1)
            state = {"version": VERSION, **following.to_json()}
            content = (json.dumps(state, ensure_ascii=False) + "\n").encode()
            # A lost answer looks like a lost race, but then the stored entry is this one.
            if self.store.swap(ENTRY, content, tag) or self.store.read(ENTRY) == content:
                return following
        raise IndexBusy("The key index is in use: its entry in the registry is changing too often.")


def _check_lease(entry: Entry, holder: str) -> None:
    if entry.lease is None or entry.lease.holder != holder:
        raise IndexBusy(LOST)


def _json(content: bytes) -> dict[str, Any]:
    try:
        state = json.loads(content)
    except ValueError:
        return {}
    return state if isinstance(state, dict) else {}


def folder_of(table: Table | Source) -> str:
    """Name the folder of a registry; equal names in two accounts have two folders."""
    bare_name = table.name.rpartition("/")[2]  # a table may be named by its ARN
    name = re.sub(r"[^A-Za-z0-9_-]", "_", bare_name)  # and no name leads anywhere else
    return f"{name}-{hashlib.sha256(table.identity.encode()).hexdigest()[:12]}"


def bucket_registry(s3: Any, bucket: str, table: Table | Source) -> Registry:
    """Return the registry in the bucket of a deployment."""
    from keyhop.storage.s3 import Bucket  # not on a laptop: boto3's transfers take long to import

    return Registry(Bucket(s3, bucket, f"key-index/{folder_of(table)}/"), table.identity)


def built_indexes(s3: Any, bucket: str) -> list[tuple[str, str]]:
    """Return the tables with a key index, maybe half built, and the places of their entries."""
    from keyhop.storage.s3 import Bucket

    store = Bucket(s3, bucket, "")
    try:
        names = set(store.sizes("key-index"))
    except CannotStart:  # the bucket does not exist
        return []
    indexes = []
    for folder in sorted({name.rpartition("/")[0] for name in names}):
        name = f"{folder}/{ENTRY}"
        state = _json(store.read(name) or b"null")
        if state.get("sentinel"):
            table = str(state.get("identity")).partition("#")[0].rpartition("/")[2]
            indexes.append((table, store.url(name)))
    return indexes


def local_registry(table: Table | Source) -> Registry:
    """Return the registry on this machine, for this user."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    path = Path(base) / "keyhop" / "key-index" / folder_of(table)
    return Registry(Directory(path), table.identity)


HEARTBEAT_SECONDS = 15.0
COMMAND_IS_DEAD_SECONDS = 120.0
FENCE_SECONDS = 65
"""The time after which nothing of a dead holder can arrive; the keeper's timeout is a minute."""


def command_name() -> str:
    """Return the name of this process as a holder: user, machine and process."""
    return f"{getpass.getuser()}@{socket.gethostname()} {os.getpid()} {uuid.uuid4().hex[:8]}"


def _has_ended_here(holder: str) -> bool:
    """Return whether the command was a process of this machine that has ended."""
    try:
        name, process, _token = holder.rsplit(" ", 2)
        if name.partition("@")[2] != socket.gethostname():
            return False
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError):
        return False
    return False


def is_alive(states: Callable[[], Any], lease: Lease, age: float) -> bool:
    """Return whether the holder of a lease is alive (IsAlive); `states` makes a client."""
    if not lease.holder.startswith("arn:"):
        return age < COMMAND_IS_DEAD_SECONDS and not _has_ended_here(lease.holder)
    try:
        execution = states().describe_execution(executionArn=lease.holder)
    except (BotoCoreError, ClientError) as error:
        return error_code(error) != "ExecutionDoesNotExist"
    return execution["status"] in ("RUNNING", "PENDING_REDRIVE")


@dataclass(slots=True)
class Fence:
    """Lets a walker write while the lease is known to be its execution's; for many threads.

    Attributes:
        settle_seconds: How long the next holder waits before its first step. The fence looks at the
            lease again after a quarter of it, also while the machine is suspended.
    """

    registry: Registry
    holder: str
    settle_seconds: float = FENCE_SECONDS
    clock: Callable[[], float] = SystemClock.monotonic
    _looked: float | None = None
    _lock: Lock = field(default_factory=Lock)

    def check(self) -> None:
        """Raise IndexBusy if the holder has lost the lease."""
        with self._lock:
            began = self.clock()
            if self._looked is None or began - self._looked > self.settle_seconds / 4:
                self.registry.check_lease(self.holder)
                self._looked = began


@dataclass(slots=True)
class Heartbeat:
    """Keeps the lease of a command alive, in a thread; calls `lost` if it cannot."""

    registry: Registry
    holder: str
    lost: Callable[[], None]
    seconds: float = HEARTBEAT_SECONDS
    _over: Event = field(default_factory=Event)

    def __enter__(self) -> "Heartbeat":
        Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _beat(self) -> None:
        while not self._over.wait(self.seconds):
            try:
                self.registry.change(self.holder)
            except (KeyhopError, OSError):
                if not self._over.is_set():
                    self.lost()
                return
