"""The registry of a table's key index: what is noted about it outside the table, and its lease.

    entry.json    what the table was like before, where its sentinels are, the last audit, and the
                  lease: who builds, audits or removes the index now

It is one object, and each change of it is conditional on the version that was read. So what a
holder of the lease notes is noted only while the lease is held, and a reader sees all of it at one
moment.

A deployment keeps it in its bucket, below key-index/<table>-<hash>/, where the command finds it
with --stack. Without a deployment it is below the user's state folder (`$XDG_STATE_HOME/keyhop`,
else ~/.local/state/keyhop). It holds no keys of the table: examples of drift are in reports, which
expire.

By the lease, builds, audits and removals exclude each other. Its holder is an execution, which is
alive while Step Functions says so, or a command, which writes the entry every few seconds
(`Heartbeat`) and counts as dead when it has stopped doing so, by the clock of the store alone.

A dead holder's requests may still arrive: its walkers are functions that run on for a while, and
its process may have been suspended. So a walker writes only within `fence_seconds / 4` of having
seen that the lease is still its own (`Fence`), and the next holder waits for `fence_seconds`
before its first step. The time between the two is what a request can take.
"""

import getpass
import hashlib
import json
import os
import re
import socket
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Literal

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.clock import now
from keyhop.dynamodb.refusals import error_code
from keyhop.dynamodb.tables import Source, Table
from keyhop.errors import BrokenPromise, CannotStart, IndexBusy, KeyhopError
from keyhop.jobs.model import Record
from keyhop.key_index.sentinel import Sentinel
from keyhop.storage.local import Directory
from keyhop.storage.store import Store

ENTRY = "entry.json"
VERSION = 1
"""The version of the format of entry.json."""
"""Of the layout before, beside an audit that says too little to be believed now."""

MOST_SWAPS = 20
"""Of one change: more only if somebody else changes the entry all the time."""

LOST = "The lease on the key index is somebody else's: it seemed to have ended; start again."
OCCUPIED = "an item of yours is in the place of a sentinel, so its collection is not in the index"
DISCARDED = "a message about unprocessed records was deleted from the keeper's failure queue"

CONTENDED = "The key index is in use: its entry in the registry changes all the time."

Action = Literal["build", "audit", "remove"]


@dataclass(frozen=True, slots=True)
class Lease(Record):
    """Who is at work on the index. holder: an execution's ARN, or the name of a command's process.

    inherited: from a holder that had ended, whose last requests may still be on their way.
    withdrawals: the entry's count of withdrawals when the lease was taken. An audit under this
    lease proves nothing about what made somebody withdraw trust after that moment.
    """

    holder: str
    action: Action
    since: str
    inherited: bool = False
    withdrawals: int = 0


@dataclass(frozen=True, slots=True)
class Entry(Record):
    """What is known; all empty if nothing is.

    before: what the table was like. sentinel: where its sentinels are. turns_stream_on: Keyhop
    turned its stream on, or is about to; stream: then, once it is known, that stream's ARN.
    emptied: all sentinels are deleted; elsewhere: rows that the index still had then, which are at
    other sort keys. units: the capacity that the index is to have when the build ends that gave
    it more. refused: what the service refused when that was done. audit: the last one that counts.
    ended: holder and last state of the action that ended last, for a step that is repeated after
    it. begun: how many builds and removals have begun. withdrawals: how many times somebody
    withdrew the trust in the index, and withdrawn: when and why that was done last.
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
    audit: Mapping[str, Any] | None = None
    lease: Lease | None = None
    ended: Mapping[str, Any] | None = None

    @property
    def place(self) -> Sentinel | None:
        """The sentinels, if their place is known."""
        return None if self.sentinel is None else Sentinel.from_json(self.sentinel)

    @property
    def is_withdrawn(self) -> bool:
        """Tell whether trust was withdrawn after the last audit had begun, or there is no audit."""
        return self.audit is None or self.audit.get("withdrawals", -1) != self.withdrawals

    @property
    def epoch(self) -> int:
        """A number that grows with each build, removal and withdrawal."""
        return self.begun + self.withdrawals

    def our_stream(self, present: str | None) -> str | None:
        """The stream that Keyhop turned on; one of a later time is somebody else's."""
        # Of a build that was stopped before it could note which, it is the present one.
        return present if self.turns_stream_on and self.stream is None else self.stream


IsAlive = Callable[[Lease, float], bool]
"""Whether a lease's holder is still at work; with the lease come the seconds since it was written.
What cannot be told is taken for alive."""


@dataclass(frozen=True, slots=True)
class Registry:
    """What is known of one table; identity: tells it from another table of the same name."""

    store: Store
    identity: str
    now: Callable[[], str] = now

    def entry(self) -> Entry:
        """What is known. What cannot be read says nothing: then the index is not believed."""
        try:
            return self._look()[0]
        except (OSError, KeyhopError):
            return Entry(self.identity)

    def known(self) -> Entry:
        """What is known, for who acts upon it: raises what reading can raise, and BrokenPromise."""
        version = self.store.look(ENTRY)
        if version is None:
            return Entry(self.identity)
        entry = self._read(version.content)
        if entry is None:
            raise BrokenPromise(
                f"{self.store.url(ENTRY)} is no entry of this table: delete it, if another program "
                f"has written it."
            )
        return entry

    def take(self, holder: str, action: Action, is_alive: IsAlive) -> Entry:
        """Take the lease, or find that `holder` has it.

        Raises IndexBusy if another holder has it and is still at work.
        """
        for _ in range(MOST_SWAPS):
            entry, tag, age = self._look()
            lease = entry.lease
            if lease is not None and lease.holder == holder:
                return entry
            if lease is not None and is_alive(lease, age):
                raise IndexBusy(
                    f"The key index is in use: {lease.action} by {lease.holder}, since "
                    f"{lease.since}; wait for it, or stop it."
                )
            mine = Lease(holder, action, self.now(), lease is not None, entry.withdrawals)
            begun = entry.begun + (action != "audit")
            if taken := self._swapped(replace(entry, lease=mine, ended=None, begun=begun), tag):
                return taken
        raise IndexBusy(CONTENDED)

    def change(self, holder: str, **fields: Any) -> Entry:
        """Note something under the lease; without fields, only that the holder is alive.

        Raises IndexBusy if `holder` has it no more.
        """
        for _ in range(MOST_SWAPS):
            entry, tag, _age = self._look()
            if entry.lease is None or entry.lease.holder != holder:
                raise IndexBusy(LOST)
            if changed := self._swapped(replace(entry, **fields), tag):
                return changed
        raise IndexBusy(CONTENDED)

    def withdraw(self, why: str) -> None:
        """Record that the index must not be trusted until an audit that begins later has finished.

        Nobody needs a lease for this. Nothing is written if the last audit and the action that is
        under way do not count any more for the same reason, so a keeper may call it for each
        record.

        Args:
            why: the reason, which `auto` and `status` print. It must not contain a key.

        Raises:
            IndexBusy: others changed the entry all the time; call it again.
        """
        for _ in range(MOST_SWAPS):
            entry, tag, _age = self._look()
            lease = entry.lease
            action_counts = lease is not None and lease.withdrawals == entry.withdrawals
            if entry.is_withdrawn and not action_counts:
                return
            withdrawn = {"when": self.now(), "why": why}
            changed = replace(entry, withdrawals=entry.withdrawals + 1, withdrawn=withdrawn)
            if self._swapped(changed, tag):
                return
        raise IndexBusy(CONTENDED)

    def check_lease(self, holder: str) -> None:
        """Raises IndexBusy if `holder` has the lease no more."""
        lease = self._look()[0].lease
        if lease is None or lease.holder != holder:
            raise IndexBusy(LOST)

    def check_writable(self) -> None:
        """Raises CannotStart if nothing can be noted: better before a long walk than after it."""
        if isinstance(self.store, Directory):
            self.store.make()
            if not os.access(self.store.path, os.W_OK):
                raise CannotStart(
                    f"{self.store.path} cannot be written: set XDG_STATE_HOME to a folder of yours."
                )

    def _look(self) -> tuple[Entry, str | None, float]:
        """The entry, its version's tag (None: there is none), and its age in seconds."""
        version = self.store.look(ENTRY)
        if version is None:
            return Entry(self.identity), None, 0.0
        entry = self._read(version.content)
        return entry or Entry(self.identity), version.tag, version.age

    def _read(self, content: bytes) -> Entry | None:
        """Return the entry of this table, or None if the content is none.

        Raises:
            BrokenPromise: The entry has another version of the format.
        """
        state = _json(content)
        if state.get("identity") != self.identity:
            return None
        if state.get("version") != VERSION:
            raise BrokenPromise(
                f"{self.store.url(ENTRY)} was written in version {state.get('version')} of its "
                f"format, and this Keyhop reads version {VERSION}: use the Keyhop that wrote it."
            )
        try:
            return Entry.from_json(state)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def _swapped(self, entry: Entry, tag: str | None) -> Entry | None:
        """The entry as it was written down; None if it is another one than was seen."""
        numbered = replace(entry, changes=entry.changes + 1)
        told = {"version": VERSION, **numbered.to_json()}
        content = (json.dumps(told, ensure_ascii=False) + "\n").encode()
        # An answer that was lost looks like a lost race, but what stands there is this.
        is_written = self.store.swap(ENTRY, content, tag) or self.store.read(ENTRY) == content
        return numbered if is_written else None


def _json(content: bytes) -> dict[str, Any]:
    try:
        state = json.loads(content)
    except ValueError:
        return {}
    return state if isinstance(state, dict) else {}


def without_examples(report: Mapping[str, Any]) -> dict[str, Any]:
    """A report that holds no keys."""
    return {name: value for name, value in report.items() if name != "examples"}


def folder_of(table: Table | Source) -> str:
    """The name of a registry's folder; it tells apart tables of one name in two accounts."""
    bare_name = table.name.rpartition("/")[2]  # a table may be named by its ARN
    name = re.sub(r"[^A-Za-z0-9_-]", "_", bare_name)  # and no name leads anywhere else
    return f"{name}-{hashlib.sha256(table.identity.encode()).hexdigest()[:12]}"


def bucket_registry(s3: Any, bucket: str, table: Table | Source) -> Registry:
    """The registry of a table in the bucket of a deployment."""
    from keyhop.storage.s3 import Bucket  # not on a laptop: boto3's transfers take long to import

    return Registry(Bucket(s3, bucket, f"key-index/{folder_of(table)}/"), table.identity)


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """A key index that is built, or half of it is. table: its name. record: where its entry is."""

    table: str
    record: str


def built_indexes(s3: Any, bucket: str) -> list[BuiltIndex]:
    """The key indexes that stand, by the registry of a deployment; none if the bucket is gone."""
    from keyhop.storage.s3 import Bucket

    store = Bucket(s3, bucket, "")
    try:
        names = set(store.sizes("key-index"))
    except CannotStart:  # there is no such bucket
        return []
    found = []
    for folder in sorted({name.rpartition("/")[0] for name in names}):
        name = f"{folder}/{ENTRY}"
        state = _json(store.read(name) or b"null")
        if state.get("sentinel"):
            table = str(state.get("identity")).partition("#")[0].rpartition("/")[2]
            found.append(BuiltIndex(table, store.url(name)))
    return found


def local_registry(table: Table | Source) -> Registry:
    """The registry of a table on this machine, for this user."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    path = Path(base) / "keyhop" / "key-index" / folder_of(table)
    return Registry(Directory(path), table.identity)


HEARTBEAT_SECONDS = 15.0
COMMAND_IS_DEAD_SECONDS = 120.0
FENCE_SECONDS = 65
"""Longer than the timeout of the keeper, which is a minute."""


def command_name() -> str:
    """This process, as a holder: user, machine and process."""
    return f"{getpass.getuser()}@{socket.gethostname()} {os.getpid()} {uuid.uuid4().hex[:8]}"


def _has_ended_here(holder: str) -> bool:
    """Whether the command was a process of this machine that is no more."""
    name, process, _token = holder.rsplit(" ", 2)
    if name.partition("@")[2] != socket.gethostname():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError):
        return False
    return False


_AT_WORK = ("RUNNING", "PENDING_REDRIVE")


def uptime() -> float:
    """Seconds of a clock that goes on while the machine is suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(frozen=True, slots=True)
class Holders:
    """Whether holders of leases are alive (IsAlive). states: makes Step Functions' client."""

    states: Callable[[], Any]

    def __call__(self, lease: Lease, age: float) -> bool:
        if not lease.holder.startswith("arn:"):
            return age < COMMAND_IS_DEAD_SECONDS and not _has_ended_here(lease.holder)
        try:
            told = self.states().describe_execution(executionArn=lease.holder)
        except (BotoCoreError, ClientError) as error:
            return error_code(error) != "ExecutionDoesNotExist"
        return told["status"] in _AT_WORK


@dataclass(slots=True)
class Fence:
    """Lets a walker write while the lease is known to be its execution's; for many threads.

    seconds: how long it may go without looking.
    """

    registry: Registry
    holder: str
    seconds: float
    clock: Callable[[], float] = uptime
    _looked: float | None = None
    _lock: Lock = field(default_factory=Lock)

    def check(self) -> None:
        """Raises IndexBusy if the lease is not the holder's any more."""
        with self._lock:
            began = self.clock()
            if self._looked is None or began - self._looked > self.seconds:
                self.registry.check_lease(self.holder)
                self._looked = began


@dataclass(slots=True)
class Heartbeat:
    """Keeps a command's lease alive, from a thread of its own.

    lost: set when the lease is not the command's any more, or cannot be kept alive.
    """

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
