"""What happens to the requests of sharded tables, and when their keys are hot."""

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
    """Shares of the requests to which this happens (simulation/network.py); hot: of the writes
    while the keys are hot, conflict: of single ones, too_late: of writes of items.
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


class Network(AnyNetwork):
    """metadata: is never throttled. changed: when another was written last."""

    def __init__(
        self,
        schedule: Schedule,
        service: Service,
        trouble: Trouble,
        chance: random.Random,
        metadata: str,
        promised: float,
    ) -> None:
        super().__init__(schedule, service, chance, promised, self._drawn, lost=self._repeated)
        self._trouble = trouble
        self._metadata = metadata
        self.is_hot = self.is_calm = False
        self.changed = 0.0

    def _drawn(self, operation: str, request: Mapping[str, Any]) -> str:
        of_items = request.get("TableName") != self._metadata
        if operation in WRITES and not of_items:
            self.changed = self._schedule.now
        if self.is_calm or operation == "describe_table":
            return "well"
        trouble, dice = self._trouble, self._chance.random()
        single = operation in WRITES and operation != "batch_write_item"
        if self.is_hot and single and of_items and self._chance.random() < trouble.hot:
            return "throttled"
        shares = {
            "late": trouble.late,
            "told late": trouble.told_late,
            "lost": trouble.lost,
            "refused": trouble.refused,
            "conflict": trouble.conflict if single and of_items else 0.0,
            "killed": trouble.killed,
            "too late": trouble.too_late if operation in WRITES and of_items else 0.0,
        }
        return drawn(dice, shares)

    def _repeated(self, operation: str) -> None:
        call = self._schedule.running.call
        if operation in WRITES and isinstance(call, Call):
            call.repeats += 1
