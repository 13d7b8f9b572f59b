"""A network that delays, loses and throttles the requests of sharded tables."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from testing.simulation.network import WRITES, drawn
from testing.simulation.network import Network as AnyNetwork
from testing.simulation.schedule import Schedule
from testing.simulation.service import Service


@dataclass(frozen=True, slots=True)
class Trouble:
    """The share of requests with each fault (simulation/network.py).

    hot: of the writes while the keys are hot. conflict: of single writes. too_late: of writes of
    items.
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
    """A call of an actor. repeats: how many of its writes took effect but reported an error."""

    repeats = 0


class Network(AnyNetwork):
    """The network. It never throttles `metadata`. changed: the time of the last write to that."""

    def __init__(
        self,
        schedule: Schedule,
        service: Service,
        trouble: Trouble,
        chance: random.Random,
        metadata: str,
        promised: float,
    ) -> None:
        super().__init__(
            schedule, service, chance, promised, self._draw_fault, lost=self._count_repeat
        )
        self._trouble = trouble
        self._metadata = metadata
        self.is_hot = self.is_calm = False
        self.changed = 0.0

    def _draw_fault(self, operation: str, request: Mapping[str, Any]) -> str:
        is_item_request = request.get("TableName") != self._metadata
        if operation in WRITES and not is_item_request:
            self.changed = self._schedule.now
        if self.is_calm or operation == "describe_table":
            return "well"
        trouble, dice = self._trouble, self._chance.random()
        is_single_write = operation in WRITES and operation != "batch_write_item"
        if (
            self.is_hot
            and is_single_write
            and is_item_request
            and self._chance.random() < trouble.hot
        ):
            return "throttled"
        shares = {
            "late": trouble.late,
            "told late": trouble.told_late,
            "lost": trouble.lost,
            "refused": trouble.refused,
            "conflict": trouble.conflict if is_single_write and is_item_request else 0.0,
            "killed": trouble.killed,
            "too late": trouble.too_late if operation in WRITES and is_item_request else 0.0,
        }
        return drawn(dice, shares)

    def _count_repeat(self, operation: str) -> None:
        call = self._schedule.running.call
        if operation in WRITES and isinstance(call, Call):
            call.repeats += 1
