"""The application's way to a table that is re-keyed: each read and write goes where it counts now.

    router = Router("OrdersByTenant.rekey", clients=[dynamodb])
    item = router.read(old=lambda: orders.get_item(...), new=lambda: by_tenant.get_item(...))
    router.write(old=lambda: orders.put_item(...), new=lambda: by_tenant.put_item(...))

Both ways are the application's own; the router chooses by the control item (control.py). Promised
to all who go by routers: no acknowledged write is lost, and strong reads never go back.
"""

import os
import random
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from keyhop.clock import Clock, SystemClock
from keyhop.dynamodb.client import Endpoint, connect
from keyhop.dynamodb.usage import Usage
from keyhop.errors import GaveUp, KeyhopError
from keyhop.rekey.control import Control, Side
from keyhop.rekey.pair import SIDE_SUFFIX
from keyhop.rekey.routing.follower import FAILURES, ControlTable, Follower, moment
from keyhop.rekey.routing.lease import View, held_for_reads, held_for_writes
from keyhop.rekey.routing.shadow import Difference, Shadow, same_answers
from keyhop.rekey.side.table import SideTable

T = TypeVar("T")

SIDES = ("source", "destination")
PATIENCE_SECONDS = 25.0
ABOVE_THE_FREEZE = 3.0
"""Seconds beyond the freeze limit within which a freeze has ended, also one that nobody ends but
the routers; no wait is given up before."""

MOST_JITTER_SECONDS = 0.1
"""So that the waiting threads and processes do not look all at once."""

REQUEST_SECONDS = 1.0
"""For an answer about the control item: half of the short lease."""
LOOK_PATIENCE_SECONDS = 3.0


class WritesFrozen(GaveUp):
    """A write has waited as long as it may; it has not been made."""


class WriteUncertain(KeyhopError):
    """A write may have been made, or not."""


class LeaseEnded(Exception):
    """A guarded client was about to send a write by a view of the control item that has ended."""


@dataclass(slots=True)
class _Writing:
    """A write of this thread. sent: whether a guarded client has sent a request for it."""

    view: View
    sent: bool = False


class Router:
    """Sends each read and write of the application to the table where it counts now.

    It serves any number of threads. Make one for a process, after a fork. It requests nothing
    before the first call, and starts no thread.

    Args:
        side: The name of the side table: the new table's name with `.rekey` at the end.
        clients: The boto3 clients, resources or tables with which `write` is made. The router
            guards them: they send no request for a write by a view of the control item that has
            ended, as when a function was frozen between the choice of a table and the request. An
            empty sequence says that no client is guarded; then such a write is made, in the table
            that does not serve any more, and is reported as a straggler.
        name: The application's name, for `keyhop rekey status`.
        patience: Seconds for which a write waits while writes are frozen; at least 3 more than
            the freeze limit.
        on_change: Called with the control item when another one is seen.
        on_difference: Called with each real difference of shadow reads.

    Raises:
        TypeError: One of the clients is no DynamoDB client, resource or table of boto3.
        ValueError: `side` is not the name of a side table.
    """

    def __init__(
        self,
        side: str | ControlTable,
        *,
        clients: Sequence[Any],
        name: str = "",
        patience: float = PATIENCE_SECONDS,
        endpoint: Endpoint | None = None,
        on_change: Callable[[Control], None] = lambda control: None,
        on_difference: Callable[[Difference], None] = lambda difference: None,
        clock: Clock | None = None,
        chance: random.Random | None = None,
    ) -> None:
        if isinstance(side, str) and not side.endswith(SIDE_SUFFIX):
            raise ValueError(
                f"{side!r} is no side table: that is called as the new table, and .rekey"
            )
        self.usage = Usage()
        self.name = f"{name or 'router'}-{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self._clock = clock or SystemClock()
        self._patience = patience
        self._chance = chance or random.SystemRandom()
        if isinstance(side, str):
            connection = connect(endpoint or Endpoint(), patience=REQUEST_SECONDS)
            side = SideTable(connection, side, patience=LOOK_PATIENCE_SECONDS)
        told = {"guarded": bool(clients)}
        self._follower = Follower(side, self.name, self._clock, self.usage, on_change, told)
        self._shadow = Shadow(self._clock, self.usage, on_difference, self._chance)
        self._here = threading.local()
        for client in clients:
            self._guard(client)

    def read(
        self,
        *,
        old: Callable[[], T],
        new: Callable[[], T],
        strong_old: Callable[[], T] | None = None,
        strong_new: Callable[[], T] | None = None,
        same: Callable[[T, T], bool] = same_answers,
        key: object = None,
    ) -> T:
        """What the one of them returns, or raises, whose table serves.

        Of shadow reads: both are called, strong_old and strong_new (else the same again) if they
        differ; same: whether they agree; key: what is read, for logs, where it is hashed.
        """
        began = self._clock.monotonic()
        again = (strong_old or old, strong_new or new)
        while True:
            view = self._sendable(began)
            try:
                found = self._read(view.control, (old, new), again, same, key)
            except Exception:  # as KeyError for an item that was not there
                if self._counts_for_reads(view):
                    raise
            else:
                if self._counts_for_reads(view):
                    return found
            self.usage.count(reads_made_again=1)

    def _read(
        self,
        control: Control,
        ways: tuple[Callable[[], T], Callable[[], T]],
        strong: tuple[Callable[[], T], Callable[[], T]],
        same: Callable[[T, T], bool],
        key: object,
    ) -> T:
        sides: dict[str, Callable[[], T]] = dict(zip(SIDES, ways, strict=True))
        if control.stage != "open" or not control.shadow:
            return sides[control.serving]()
        self._shadow.look_again(control.revision)
        if not self._shadow.is_drawn(control.shadow):
            return sides[control.serving]()
        again: dict[str, Callable[[], T]] = dict(zip(SIDES, strong, strict=True))
        found: T = self._shadow.read(
            sides, control.serving, control.revision, key=key, same=same, again=again
        )
        return found

    def write(self, *, old: Callable[[], T], new: Callable[[], T]) -> T:
        """What the one of them returns, or raises, whose table takes writes.

        While writes are frozen it waits. Raises WritesFrozen if that lasts too long: nothing has
        been written. Raises WriteUncertain for a write that was answered, or refused, when another
        table may have served: it may or may not be there.
        """
        began = self._clock.monotonic()
        while True:
            view = self._sendable(began)
            if not view.control.takes_writes:
                self._wait(began, view)
                continue
            chosen = old if view.control.serving == "source" else new
            with self._writing(view) as about:
                try:
                    answer = chosen()
                except LeaseEnded:
                    if about.sent:
                        raise _uncertain() from None
                    self.usage.count(writes_sent_anew=1)
                    continue
                except Exception:  # as of a condition that has failed
                    if not about.view.holds(moment(self._clock)):
                        self._look_back(about.view.control)
                    raise
            if not about.view.holds(moment(self._clock)):
                self._look_back(about.view.control)
            return answer

    @property
    def serving(self) -> Side:
        """The table that reads go to now."""
        return self._sendable(self._clock.monotonic()).control.serving

    def _guard(self, client: Any) -> None:
        """Look at the lease before each attempt of a boto3 client to send a request."""
        client = getattr(getattr(client, "meta", None), "client", client)  # of a resource or table
        meta: Any = getattr(client, "meta", None)
        model = getattr(meta, "service_model", None)
        if not hasattr(meta, "events") or getattr(model, "service_name", "") != "dynamodb":
            raise TypeError(
                f"clients takes DynamoDB clients, resources and tables of boto3, and not "
                f"{type(client).__name__}"
            )
        name = f"keyhop-rekey-{id(self)}"
        meta.events.register("before-send.dynamodb", self._before_send, unique_id=name)

    def _before_send(self, **_: Any) -> None:
        """Serve as botocore's hook, which is called before each attempt to send."""
        about: _Writing | None = getattr(self._here, "writing", None)
        if about is None:
            return
        if not about.view.may_send(moment(self._clock)):
            try:
                now = self._follower.view(anew=True)
            except FAILURES as error:
                raise LeaseEnded from error
            if not held_for_writes(about.view.control, now.control):
                raise LeaseEnded
            if not now.may_send(moment(self._clock)):
                raise LeaseEnded
            about.view = now
        about.sent = True

    @contextmanager
    def _writing(self, view: View) -> Iterator["_Writing"]:
        outer = getattr(self._here, "writing", None)
        about = self._here.writing = _Writing(view)
        try:
            yield about
        finally:
            self._here.writing = outer

    def _sendable(self, began: float) -> View:
        """A view by which a request may be sent at this moment."""
        while True:
            view = self._follower.view()
            if view.may_send(moment(self._clock)):
                return view
            if self._clock.monotonic() - began >= self._patience:
                raise GaveUp(
                    f"Reading the control item takes longer than {view.control.lease / 2:g} "
                    "seconds, for which it may be gone by: look at the side table's throttles."
                )

    def _wait(self, began: float, view: View) -> None:
        """Until it is time to look again. No longer than the patience from the beginning."""
        control, now = view.control, moment(self._clock)
        patience = max(self._patience, control.freeze_limit + ABOVE_THE_FREEZE)
        left = began + patience - now.monotonic
        if left <= 0:
            self.usage.count(writes_given_up=1)
            raise WritesFrozen(
                f"Writes have been frozen ({control.stage}, revision {control.revision}) for "
                f"{patience:g} seconds, as long as this router waits; nothing was written."
            )
        self.usage.count(waits=1)
        until_old = max(0.0, control.lease / 4 - view.asked.until(now))
        self._clock.sleep(min(left, until_old + self._chance.random() * MOST_JITTER_SECONDS))

    def _counts_for_reads(self, view: View) -> bool:
        """Whether the other table cannot have been written before a read was answered."""
        if view.holds(moment(self._clock)):
            return True
        try:
            return held_for_reads(view.control, self._follower.view(anew=True).control)
        except FAILURES:
            return False

    def _look_back(self, before: Control) -> None:
        """A write was answered late: whether it counts."""
        self.usage.count(late_answers=1)
        try:
            after = self._follower.view(anew=True).control
        except FAILURES as error:
            raise _uncertain() from error
        if not held_for_writes(before, after):
            self.usage.count(writes_uncertain=1)
            raise _uncertain()


def _uncertain() -> WriteUncertain:
    return WriteUncertain(
        "A write was answered so late that another table may have served by then: it may be there "
        "or not; read, and write again."
    )
