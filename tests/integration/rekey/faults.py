"""Faults of requests and of the processes that send them; each test chooses them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

Fate = str | None
"""A request succeeds (None), is throttled, or takes effect without an answer, at once (lost) or at
`land` (late); or its process is killed and sends no more requests."""

WRITES = {"put_item", "delete_item", "transact_write_items", "update_item"}


CHANGES = ("put", "update", "create", "delete", "transact", "batch_write")


class Killed(BaseException):
    """The process was killed."""


@dataclass
class Doom:
    """Kills a process before, or after, its step number `at`; 0 means never."""

    at: int = 0
    after: bool = False
    steps: int = 0
    is_over: bool = False
    _lock: Lock = field(default_factory=Lock)

    def step(self, act: Callable[[], Any], counts: bool = True) -> Any:
        with self._lock:
            if self.is_over:
                raise Killed
            self.steps += counts
            is_last = counts and self.steps == self.at
            self.is_over = is_last
        if is_last and not self.after:
            raise Killed
        result = act()
        if is_last:
            raise Killed
        return result


@dataclass
class Faulty:
    """A client whose requests, which `calls` records, have the fates that a function chooses."""

    client: Any
    fate: Callable[[str, Mapping[str, Any]], Fate] = lambda operation, parameters: None
    calls: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    is_dead: bool = False
    _late: list[Callable[[], Any]] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        if self.is_dead:
            raise Killed
        with self._lock:
            self.calls.append((operation, parameters))
            fate = self.fate(operation, parameters)
        if fate == "killed":
            self.is_dead = True
            raise Killed
        if fate == "throttled":
            response = {"Error": {"Code": "ProvisionedThroughputExceededException", "Message": ""}}
            raise ClientError(response, operation)  # type: ignore[arg-type]
        if fate == "late":
            self._late.append(lambda: self.client.call(operation, **parameters))
            raise ReadTimeoutError(endpoint_url="")
        result: dict[str, Any] = self.client.call(operation, **parameters)
        if fate == "lost":
            raise ReadTimeoutError(endpoint_url="")
        return result

    def land(self) -> None:
        """Let the late requests take effect, if their conditions hold."""
        with self._lock:
            late, self._late = self._late, []
        for request in late:
            try:
                request()
            except ClientError:
                continue
