"""A router: it sends each read and write of an application to the table that serves now.

    router = Router("OrdersByTenant.rekey", clients=[dynamodb])
    item = router.read(old=lambda: orders.get_item(...), new=lambda: by_tenant.get_item(...))
    router.write(old=lambda: orders.put_item(...), new=lambda: by_tenant.put_item(...))

The application supplies a function for each table, and the router calls one of them, depending on
the control item (control.py). If all readers and writers use routers, no acknowledged write is lost
and strongly consistent reads never go back in time. A write that is sent without the guard, or that
is held up after the guard has looked, can reach the table that no longer serves (Guard).
"""

import os
import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, TypeVar

from botocore.client import BaseClient

from keyhop.clock import Clock, SystemClock
from keyhop.dynamodb.client import connect, endpoint_from
from keyhop.dynamodb.usage import Usage
from keyhop.errors import CannotStart, GaveUp, WritesFrozen, WriteUncertain
from keyhop.rekey.control import Control, Side
from keyhop.rekey.pair import SIDE_SUFFIX
from keyhop.rekey.routing.follower import (
    FAILURES,
    Follower,
    View,
    held_for_reads,
    held_for_writes,
    moment,
)
from keyhop.rekey.routing.shadow import Difference, Shadow, same_answers
from keyhop.rekey.side.table import SideTable

READS = frozenset({"GetItem", "BatchGetItem", "TransactGetItems", "Query", "Scan", "SearchVectors"})
BULK_PUT = "StartBulkPutItems"


class LeaseEnded(Exception):
    """A guarded client did not send a request, because the lease of its write has ended."""


@dataclass(slots=True, eq=False)
class Attempt:
    """One call of the application's function for a write, which may send requests by `view`.
    `has_requested` is about guarded clients, and `may_have_written` means that one of these
    requests was not a read. The call is over when the function has returned or raised.
    """

    guard: "Guard"
    view: View
    has_requested: bool = False
    may_have_written: bool = False
    was_refused: bool = False
    is_over: bool = False


_attempts: ContextVar[tuple[Attempt, ...]] = ContextVar("keyhop_rekey_attempts", default=())
"""The attempts that the current code runs in, of all routers; the innermost is the last. There can
be several, as a function for a write may itself write by a router.
"""


class Guard:
    """Guards the requests that boto3 clients send for the writes of one router.

    A process can be paused between the choice of a table and the request, for longer than a whole
    cutover. The guard is a hook in the application's boto3 clients that runs before each attempt to
    send, retries included, and refuses a request if another table may serve by then. Only a pause
    after the hook remains: while the connection is opened, or in the network.
    """

    def __init__(
        self, clients: Sequence[Any], router: str, follower: Follower, clock: Clock
    ) -> None:
        """Put the hook into boto3 clients, resources or tables of DynamoDB. Two that share a
        client, such as a resource and its table, are guarded once. Raise TypeError, and guard no
        client, if `clients` is not a sequence, or contains something else.
        """
        self._follower = follower
        self._clock = clock
        if not isinstance(clients, Sequence) or isinstance(clients, str):
            raise TypeError(
                "clients must be a sequence of boto3 clients, resources or tables, such as "
                f"[boto3.client('dynamodb')], and not {_type_name(clients)}."
            )
        boto_clients = [_client_of(client) for client in clients]
        for client in boto_clients:
            # The last of the general hooks, as botocore's rate limiter (retry mode "adaptive")
            # sleeps in such a hook. Hooks for one service or one operation run before all of these.
            client.meta.events.register_last(
                "before-send", self._check, unique_id=f"keyhop-guard-{router}"
            )
        self.is_on = bool(boto_clients)

    @contextmanager
    def attempt(self, view: View) -> Iterator[Attempt]:
        """Guard the requests that are sent in the block, which makes a write by this view."""
        outer = _attempts.get()
        attempt = Attempt(self, view)
        token = _attempts.set((*outer, attempt))
        try:
            yield attempt
        finally:
            attempt.is_over = True
            _attempts.reset(token)

    def missed(self, attempt: Attempt) -> bool:
        """Return whether an attempt has sent nothing through a guarded client: it had nothing to
        write, or used another client, or a thread without the context of the attempt.
        """
        return self.is_on and not attempt.has_requested

    def _check(self, event_name: str, **_: Any) -> None:
        """Raise LeaseEnded if this request must not be sent; botocore calls it for each attempt."""
        running = [
            attempt for attempt in _attempts.get() if attempt.guard is self and not attempt.is_over
        ]
        operation = event_name.rpartition(".")[2]
        if running and operation == BULK_PUT:
            raise CannotStart(
                "A router cannot guard a bulk put: DynamoDB continues to write its items after "
                "the request, also when another table serves. Write each item with the router, "
                "or make the bulk put before the re-key starts or after it is complete."
            )
        for attempt in running:
            if not self._may_send(attempt):
                attempt.was_refused = True
                raise LeaseEnded
        is_read = operation in READS
        for attempt in running:
            attempt.has_requested = True
            attempt.may_have_written |= not is_read

    def _may_send(self, attempt: Attempt) -> bool:
        """Return whether the lease holds, after another read of the control item if necessary."""
        if attempt.view.may_send(moment(self._clock)):
            return True
        try:
            now = self._follower.view(anew=True)
        except FAILURES:
            return False
        if not held_for_writes(attempt.view.control, now.control):
            return False
        attempt.view = now
        return now.may_send(moment(self._clock))


def _client_of(value: Any) -> BaseClient:
    """Return the client of a boto3 client, resource or table. Raise TypeError for anything else."""
    client = value
    if not isinstance(value, BaseClient):
        client = getattr(getattr(value, "meta", None), "client", None)
    if not isinstance(client, BaseClient) or client.meta.service_model.service_name != "dynamodb":
        raise TypeError(
            "A router guards boto3 clients, resources and tables of DynamoDB. "
            f"{_type_name(value)} is none of these: leave it out of clients. The router then does "
            "not guard its writes."
        )
    if iscoroutinefunction(type(client)._make_api_call):  # as aiobotocore's
        raise TypeError(
            f"A router cannot guard an asynchronous client ({_type_name(value)}): leave it out of "
            "clients. The router then does not guard its writes."
        )
    return client


def _type_name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


T = TypeVar("T")

SIDES = ("source", "destination")
PATIENCE_SECONDS = 25.0
ABOVE_THE_FREEZE = 3.0
"""Seconds beyond the freeze limit that a router waits: the routers alone end a freeze by then."""

MOST_JITTER_SECONDS = 0.1
"""A random delay, so that the waiting threads and processes do not all read at the same time."""

REQUEST_SECONDS = 1.0
"""The timeout of a read of the control item: half of the short lease."""
LOOK_PATIENCE_SECONDS = 3.0


class Router:
    """A router for all threads of a process; make one for each process, after a fork. It starts no
    thread, and sends no request before its first call.
    """

    def __init__(
        self,
        side: str | SideTable,
        *,
        clients: Sequence[Any],
        name: str = "",
        patience: float = PATIENCE_SECONDS,
        session: Any = None,
        endpoint_url: str | None = None,
        on_change: Callable[[Control], None] = lambda control: None,
        on_difference: Callable[[Difference], None] = lambda difference: None,
        clock: Clock | None = None,
        chance: random.Random | None = None,
    ) -> None:
        """Make a router, and guard the clients.

        Args:
            side: The name of the side table, which is the new table's name followed by .rekey.
            clients: The boto3 clients, resources or tables that the functions for writes use. Their
                requests are guarded: a write that was paused before it was sent is not sent to a
                table that no longer serves. Requests outside of `write` are not affected. An empty
                sequence means that no client is guarded, which `keyhop rekey status` reports.
            name: The name of the application, for `keyhop rekey status`.
            patience: Seconds for which a write waits while writes are frozen; at least 3 more than
                the freeze limit.
            session: The boto3 session whose credentials and region are used for the side table. By
                default they are those of the environment.
            endpoint_url: The address of the side table's DynamoDB, such as that of DynamoDB Local.
            on_change: Called with the control item whenever it differs from the last one read.
            on_difference: Called with each real difference of shadow reads.
            clock, chance: For tests: the time, and the random numbers.

        Raises:
            TypeError: `clients` contains something other than boto3's clients, resources and tables
                of DynamoDB.
            ValueError: `side` is not the name of a side table.
        """
        if isinstance(side, str) and not side.endswith(SIDE_SUFFIX):
            raise ValueError(
                f"{side!r} is not a side table: its name is that of the new table with .rekey"
            )
        self.usage = Usage()
        self.name = f"{name or 'router'}-{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self._clock = clock or SystemClock()
        self._patience = patience
        self._chance = chance or random.SystemRandom()
        if isinstance(side, str):
            connection = connect(endpoint_from(session, endpoint_url), patience=REQUEST_SECONDS)
            side = SideTable(connection, side, patience=LOOK_PATIENCE_SECONDS)
        self._follower = Follower(side, self.name, self._clock, self.usage, on_change)
        self._guard = Guard(clients, self.name, self._follower, self._clock)
        self._follower.guarded = self._guard.is_on
        self._shadow = Shadow(self._clock, self.usage, on_difference, self._chance)

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
        """Call the function of the serving table, `old` for the source or `new` for the
        destination, and return or raise what it does.

        A shadow read calls both functions.

        Args:
            old, new: The functions that read the source and the destination.
            strong_old, strong_new: The same reads, strongly consistent, for results of a shadow
                read that differ; by default `old` and `new` again.
            same: Returns whether two results are equal.
            key: The name of the read for logs, where it is hashed.
        """
        began = self._clock.monotonic()
        strong_reads = (strong_old or old, strong_new or new)
        while True:
            view = self._sendable(began)
            try:
                answer = self._read(view.control, (old, new), strong_reads, same, key)
            except Exception:  # such as KeyError for a missing item
                if self._counts_for_reads(view):
                    raise
            else:
                if self._counts_for_reads(view):
                    return answer
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
        strong_sides: dict[str, Callable[[], T]] = dict(zip(SIDES, strong, strict=True))
        answer: T = self._shadow.read(
            sides, control.serving, control.revision, key=key, same=same, again=strong_sides
        )
        return answer

    def write(self, *, old: Callable[[], T], new: Callable[[], T]) -> T:
        """Call the function of the table that takes writes, and return or raise what it does.

        While writes are frozen it waits. The function is called again, for the table that serves
        by then, if the guard has refused a request before any other write was sent.

        Args:
            old, new: The functions that write to the source and to the destination.

        Raises:
            WritesFrozen: writes were frozen for longer than the patience. Nothing was written.
            WriteUncertain: another table may have served when the write was answered, or the guard
                has refused a request after others were sent. The write may have been made or not.
        """
        began = self._clock.monotonic()
        while True:
            view = self._sendable(began)
            if not view.control.takes_writes:
                self._wait(began, view)
                continue
            chosen = old if view.control.serving == "source" else new
            with self._guard.attempt(view) as attempt:
                try:
                    answer = chosen()
                except Exception:  # such as that of a failed condition
                    if not attempt.was_refused:
                        self._look_back(attempt.view)
                        raise
                if not attempt.was_refused:  # even if the function has caught the error
                    self._look_back(attempt.view)
                    self.usage.count(writes_unseen=int(self._guard.missed(attempt)))
                    return answer
            if attempt.may_have_written:
                raise self._uncertain()
            self.usage.count(writes_sent_anew=1)

    @property
    def serving(self) -> Side:
        """Return the table that reads go to now."""
        return self._sendable(self._clock.monotonic()).control.serving

    def _sendable(self, began: float) -> View:
        """Return a view that allows sending a request at this moment."""
        while True:
            view = self._follower.view()
            if view.may_send(moment(self._clock)):
                return view
            if self._clock.monotonic() - began >= self._patience:
                raise GaveUp(
                    f"Reading the control item takes longer than {view.control.lease / 2:g} "
                    "seconds, after which it may be out of date. Check whether the side table is "
                    "throttled."
                )

    def _wait(self, began: float, view: View) -> None:
        """Wait until the next read of the control item, but not beyond the patience."""
        control, now = view.control, moment(self._clock)
        patience = max(self._patience, control.freeze_limit + ABOVE_THE_FREEZE)
        remaining = began + patience - now.monotonic
        if remaining <= 0:
            self.usage.count(writes_given_up=1)
            raise WritesFrozen(
                f"Writes have been frozen ({control.stage}, revision {control.revision}) for "
                f"{patience:g} seconds, the maximum wait of this router; nothing was written."
            )
        self.usage.count(waits=1)
        until_old = max(0.0, control.lease / 4 - view.requested_at.until(now))
        self._clock.sleep(min(remaining, until_old + self._chance.random() * MOST_JITTER_SECONDS))

    def _counts_for_reads(self, view: View) -> bool:
        """Return whether the other table cannot have been written before a read was answered."""
        if view.holds(moment(self._clock)):
            return True
        try:
            return held_for_reads(view.control, self._follower.view(anew=True).control)
        except FAILURES:
            return False

    def _look_back(self, view: View) -> None:
        """Raise WriteUncertain if another table may have served before a write was answered."""
        if view.holds(moment(self._clock)):
            return
        self.usage.count(late_answers=1)
        try:
            after = self._follower.view(anew=True).control
        except FAILURES as error:
            raise self._uncertain() from error
        if not held_for_writes(view.control, after):
            raise self._uncertain()

    def _uncertain(self) -> WriteUncertain:
        self.usage.count(writes_uncertain=1)
        return WriteUncertain(
            "A write was delayed for so long that another table may have been serving by then. "
            "The write may or may not have been executed: read the item, and write again if "
            "needed."
        )
