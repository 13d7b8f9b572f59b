"""Requests to a real database in virtual time: one at a time, with delays before and after."""

import random
from functools import partial
from typing import Any

from keyhop.dynamodb.requester import send

from testing.simulation.schedule import Schedule


class Turns:
    """A client of Keyhop or boto3 whose callers are tasks of the schedule."""

    def __init__(self, client: Any, schedule: Schedule, chance: random.Random) -> None:
        self._client = client
        self._schedule = schedule
        self._chance = chance

    def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        self._schedule.sleep(self._chance.uniform(0.001, 0.03))
        try:
            return send(self._client, operation, parameters)
        finally:
            self._schedule.sleep(self._chance.uniform(0.001, 0.03))

    def __getattr__(self, operation: str) -> Any:
        return partial(self.call, operation)
