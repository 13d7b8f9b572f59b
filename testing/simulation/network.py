"""The way from a client to the service and back: slow, unreliable, and to machines that die.

A request takes effect at some moment after it was sent, as late as the protocol allows; its answer
comes when it likes, or never.
"""

import random
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ReadTimeoutError
from keyhop.dynamodb.refusals import error_code

from testing.simulation.schedule import Killed, Schedule
from testing.simulation.service import HOT, Service, failure

WRITES = ("put_item", "update_item", "delete_item", "batch_write_item", "transact_write_items")

Fate = Callable[[str, Mapping[str, Any]], str]
"""Of a request, by its operation and parameters. late: it takes effect as late as it may, a batch's
parts at any moment until then; told late: it is answered after that; answered late: only its answer
is; too late: it takes effect later than is promised; lost: no answer, or an error, though it took
effect; refused, conflict, throttled: an error, and it did not; killed: the process ends there. Any
other: it goes well."""


class Refused(BaseException):
    """The code under test has sent what the service refuses with a ValidationException.

    That is a mistake of the code, whatever it does about the error. So this is not an Exception,
    and no code under test can go on after it.
    """


class Network:
    """A client: all that its users send goes through `call`.

    promised: within so many seconds requests take effect. timeout: seconds after which a client
    waits no longer for an answer. lost: is told of each operation that took effect in secret.
    """

    def __init__(
        self,
        schedule: Schedule,
        service: Service,
        chance: random.Random,
        promised: float,
        fate: Fate,
        *,
        timeout: float = float("inf"),
        lost: Callable[[str], None] = lambda operation: None,
    ) -> None:
        self._schedule = schedule
        self._service = service
        self._chance = chance
        self._promised = promised
        self._fate = fate
        self._timeout = timeout
        self._lost = lost
        self.requests = 0

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        """One request. Raises as a client does, and Killed."""
        schedule, chance = self._schedule, self._chance
        task = schedule.running
        if not task.process.is_alive:
            raise Killed
        self.requests += 1
        fate = self._fate(operation, request)
        if fate == "killed":
            task.process.is_alive = False
        travel, back = chance.uniform(0.001, 0.03), chance.uniform(0.001, 0.03)
        if fate == "late":
            travel = chance.choice([0.2, 0.6, 1.0]) * self._promised
        if fate == "too late":
            travel = chance.uniform(1.0, 16.0) * self._promised
        if fate == "told late":
            travel = chance.choice([travel, self._promised])
            back = chance.uniform(0.0, 16 * self._promised)
        if fate == "answered late":
            back = chance.uniform(0.0, self._promised)
        answer: dict[str, Any] = {}
        errors: list[BaseException] = []
        if fate in _INSTEAD:
            errors.append(_INSTEAD[fate](operation, request))
        elif fate != "killed" or chance.random() < 0.5:
            self._send(operation, request, travel, answer, errors)
        schedule.after(min(travel + back, self._timeout), task)
        schedule.wait()
        if travel + back > self._timeout:
            raise _unanswered()
        for error in errors:
            if error_code(error) == "ValidationException":
                raise Refused(f"{operation} {request}") from error
            raise error
        if fate == "lost":
            self._lost(operation)
            raise chance.choice([failure("InternalServerError", status=500), _unanswered()])
        return answer

    def _send(
        self,
        operation: str,
        request: Mapping[str, Any],
        travel: float,
        answer: dict[str, Any],
        errors: list[BaseException],
    ) -> None:
        def effect(piece: Callable[[], None]) -> None:
            try:
                piece()
            except BaseException as error:
                errors.append(error)

        pieces = self._service.pieces(operation, request, answer)
        for piece in pieces:
            seconds = travel if len(pieces) == 1 else self._chance.uniform(0.0, travel)
            self._schedule.after(seconds, lambda piece=piece: effect(piece))


def drawn(dice: float, shares: Mapping[str, float]) -> str:
    """A fate, by the shares of requests that it meets. dice: between 0 and 1."""
    for fate, share in shares.items():
        if dice < share:
            return fate
        dice -= share
    return "well"


def _unanswered() -> BaseException:
    return ReadTimeoutError(endpoint_url="https://d")


def _conflict(operation: str, request: Mapping[str, Any]) -> BaseException:
    if operation != "transact_write_items":
        return failure("TransactionConflictException")
    reasons = [{"Code": "None"} for _ in request["TransactItems"]]
    reasons[0] = {"Code": "TransactionConflict"}
    return failure("TransactionCanceledException", CancellationReasons=reasons)


_INSTEAD: dict[str, Callable[[str, Mapping[str, Any]], BaseException]] = {
    "throttled": lambda *_: failure("ThrottlingException", ThrottlingReasons=HOT),
    "refused": lambda *_: failure("InternalServerError", status=500),
    "conflict": _conflict,
}
"""Nothing takes effect."""
