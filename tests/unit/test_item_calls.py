"""Check writes of single items under a limit of write units."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.rate_limit import Budget
from keyhop.dynamodb.requester import ItemCalls
from keyhop.errors import BudgetSpent

SECONDS = 60
COST = 10.0


class Writes(ItemCalls):
    def write(self) -> float:
        """Make a write that is expected to cost one unit."""
        return self._write("put_item", 1.0).units


class Service:
    """A service that answers the first write when another one was sent or waits for its turn."""

    def __init__(self) -> None:
        self.sent = 0
        self.checks = 0
        self.is_second_known = Event()
        self.is_first_sent = Event()

    def check(self) -> None:
        """Count the checks before and during calls; at the third one, the second call waits."""
        self.checks += self.is_first_sent.is_set()
        if self.checks == 3:
            self.is_second_known.set()

    def put_item(self, **_: Any) -> dict[str, Any]:
        self.sent += 1
        if self.sent == 1:
            self.is_first_sent.set()
            assert self.is_second_known.wait(SECONDS)
        else:
            self.is_second_known.set()
        return {"ConsumedCapacity": {"CapacityUnits": COST}}


@pytest.mark.parametrize("is_allowed_later", [False, True])
def test_the_first_write_under_a_total_limit_runs_alone(is_allowed_later: bool) -> None:
    """Two writes of ten units each do not fit into twelve, though each is expected to cost one."""
    service = Service()
    budget = Budget(max_units=None if is_allowed_later else 12.0)
    calls = Writes(Connection(service), "table", writes=budget, check=service.check)
    if is_allowed_later:
        calls.allow_writes(12.0)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(calls.write)
        assert service.is_first_sent.wait(SECONDS)
        second = threads.submit(calls.write)
        assert first.result(SECONDS) == COST
        with pytest.raises(BudgetSpent, match="Of 12 write units 10 are spent"):
            second.result(SECONDS)
    assert service.sent == 1


def test_without_a_total_limit_writes_do_not_wait_for_the_first() -> None:
    service = Service()
    calls = Writes(Connection(service), "table", writes=Budget(max_rate=100.0), check=service.check)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(calls.write)
        assert service.is_first_sent.wait(SECONDS)
        assert threads.submit(calls.write).result(SECONDS) == COST
        assert first.result(SECONDS) == COST
    assert service.sent == 2
