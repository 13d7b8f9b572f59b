"""The guard of a router's writes: a look at the lease immediately before boto3 sends a request.

A process can be paused between the choice of a table and the request, for longer than a whole
cutover. The guard is a hook in the application's boto3 clients that runs before each attempt to
send, retries included, and refuses a request if another table may serve by then. Only a pause after
the hook remains: while the connection is opened, or in the network.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any

from botocore.client import BaseClient

from keyhop.clock import Clock
from keyhop.errors import CannotStart
from keyhop.rekey.routing.follower import FAILURES, Follower, moment
from keyhop.rekey.routing.lease import View, held_for_writes

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
    """Guards the requests that boto3 clients send for the writes of one router."""

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
                "A router cannot guard a bulk put: DynamoDB goes on writing its items after the "
                "request, also when another table serves. Write the items one by one by the "
                "router, or make the bulk put before the re-key starts or after it is complete."
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
            f"A router guards boto3 clients, resources and tables of DynamoDB. {_type_name(value)} "
            "is none of these: leave it out of clients. Its writes are then not guarded."
        )
    if iscoroutinefunction(type(client)._make_api_call):  # as aiobotocore's
        raise TypeError(
            f"A router cannot guard an asynchronous client ({_type_name(value)}): leave it out of "
            "clients. Its writes are then not guarded."
        )
    return client


def _type_name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
