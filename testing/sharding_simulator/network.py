"""The way from a client to the service and back: slow, unreliable, and to machines that die.

A request takes effect at some moment after it was sent, as late as the protocol allows; its answer
comes when it likes, or never.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ReadTimeoutError

from testing.sharding_simulator.schedule import Killed, Schedule
from testing.sharding_simulator.service import HOT, Service, failure

_WRITES = ("put_item", "update_item", "delete_item", "batch_write_item", "transact_write_items")


@dataclass(frozen=True, slots=True)
class Trouble:
    """Shares of the requests to which this happens; hot: of the writes while the keys are hot.

    late: they take effect as late as they may, a batch's parts at any moment until then. told_late:
    they are answered after that. lost: no answer, or an error, though they took effect. refused: an
    error, and they did not. conflict: with a transaction. killed: the process ends there.
    too_late: writes that take effect later than is promised.
    """

    late: float = 0.05
    told_late: float = 0.02
    lost: float = 0.005
    refused: float = 0.005
    conflict: float = 0.005
    killed: float = 0.002
    hot: float = 0.4
    too_late: float = 0.0


class Call:
    """What an actor is doing. repeats: writes that took effect though they were told to fail."""

    repeats = 0


class Network:
    """A client: all that its users send goes through `call`.

    metadata: the table whose writes are not throttled. promised: within so many seconds requests
    take effect. changed: when a write of the metadata was sent last.
    """

    def __init__(
        self,
        schedule: Schedule,
        service: Service,
        trouble: Trouble,
        chance: random.Random,
        metadata: str,
        promised: float,
    ) -> None:
        self._schedule = schedule
        self._service = service
        self._trouble = trouble
        self._chance = chance
        self._metadata = metadata
        self._promised = promised
        self.is_hot = self.is_calm = False
        self.requests = 0
        self.changed = 0.0

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        """One request. Raises as a client does, and Killed."""
        schedule, chance = self._schedule, self._chance
        task = schedule.running
        if not task.process.is_alive:
            raise Killed
        self.requests += 1
        of_items = request.get("TableName") != self._metadata
        if operation in _WRITES and not of_items:
            self.changed = schedule.now
        fate = self._fate(operation, of_items)
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
        answer: dict[str, Any] = {}
        errors: list[BaseException] = []
        if fate in _INSTEAD:
            errors.append(_INSTEAD[fate](operation, request))
        elif fate != "killed" or chance.random() < 0.5:
            self._send(operation, request, travel, answer, errors)
        schedule.after(travel + back, task)
        schedule.wait()
        if errors:
            raise errors[0]
        if fate == "lost":
            if operation in _WRITES and isinstance(task.call, Call):
                task.call.repeats += 1
            raise chance.choice(
                [failure("InternalServerError", 500), ReadTimeoutError(endpoint_url="https://d")]
            )
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

    def _fate(self, operation: str, of_items: bool) -> str:
        if self.is_calm or operation == "describe_table":
            return "well"
        trouble, dice = self._trouble, self._chance.random()
        single = operation in _WRITES and operation != "batch_write_item"
        if self.is_hot and single and of_items and self._chance.random() < trouble.hot:
            return "throttled"
        shares = {
            "late": trouble.late,
            "told late": trouble.told_late,
            "lost": trouble.lost,
            "refused": trouble.refused,
            "conflict": trouble.conflict if single and of_items else 0.0,
            "killed": trouble.killed,
            "too late": trouble.too_late if operation in _WRITES and of_items else 0.0,
        }
        for fate, share in shares.items():
            if dice < share:
                return fate
            dice -= share
        return "well"


def _conflict(operation: str, request: Mapping[str, Any]) -> BaseException:
    if operation != "transact_write_items":
        return failure("TransactionConflictException")
    reasons = [{"Code": "None"} for _ in request["TransactItems"]]
    reasons[0] = {"Code": "TransactionConflict"}
    return failure("TransactionCanceledException", CancellationReasons=reasons)


_INSTEAD: dict[str, Callable[[str, Mapping[str, Any]], BaseException]] = {
    "throttled": lambda *_: failure("ThrottlingException", ThrottlingReasons=HOT),
    "refused": lambda *_: failure("InternalServerError", 500),
    "conflict": _conflict,
}
"""Nothing takes effect."""
