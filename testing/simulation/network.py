"""The network between clients and the service: it is slow and unreliable, and clients may die.

A request takes effect some time after it was sent, as late as the protocol allows. Its answer
arrives at any time, or never.
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
"""A function that returns the fate of a request, given its operation and parameters:

- late: it takes effect as late as is promised, and the parts of a batch at any time until then;
- told late: it takes effect late, and its answer arrives even later;
- answered late: only its answer is late;
- too late: it takes effect later than is promised;
- lost: it takes effect, but its answer is an error or does not arrive;
- refused, conflict, throttled: it does not take effect, and its answer is an error;
- killed: the process ends there;
- any other fate: it succeeds.
"""


class Refused(BaseException):
    """The service has refused a request of the code under test with a ValidationException.

    This is a bug of the code, even if it handles the error. So this is not an Exception, and the
    code under test cannot continue after it.
    """


class Network:
    """A client of the service, with the network between them."""

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
        """Create a client.

        Args:
            promised: The seconds within which a request takes effect.
            timeout: The seconds for which a client waits for an answer.
            lost: Called with each operation that took effect and whose answer was lost.
        """
        self._schedule = schedule
        self._service = service
        self._chance = chance
        self._promised = promised
        self._fate = fate
        self._timeout = timeout
        self._lost = lost
        self.requests = 0

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        """Send a request. Raise Killed, or any error of a client."""
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
        if fate in _ERRORS:
            errors.append(_ERRORS[fate](operation, request))
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
    """Return a fate, given the share of requests of each fate, and dice between 0 and 1."""
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


_ERRORS: dict[str, Callable[[str, Mapping[str, Any]], BaseException]] = {
    "throttled": lambda *_: failure("ThrottlingException", ThrottlingReasons=HOT),
    "refused": lambda *_: failure("InternalServerError", status=500),
    "conflict": _conflict,
}
"""The errors of requests that do not take effect, by fate."""
