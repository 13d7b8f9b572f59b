"""The lease on the key index of a table: builds, audits and removals exclude each other.

Who has it is in the registry's entry. A holder is an execution, which is alive while Step Functions
says so; or a command, which writes the entry anew every few seconds (`Heartbeat`), and is dead when
it has not done so for a while, by the clock of the store alone.

A dead holder's requests may still be on their way: its walkers are functions that run on for a
while, its process may have been suspended. So a walker writes only within `fence_seconds / 4` of
having seen that the lease is still its own (`Fence`), and whoever inherits a lease waits for
`fence_seconds` before the first step. In between lies the time that a request can take.
"""

import getpass
import os
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.requester import error_code
from keyhop.errors import KeyhopError
from keyhop.key_index.registry import Lease, Registry

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
