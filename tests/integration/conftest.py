"""What the stand-in has charged."""

import time

import pytest

from testing.standin.server import StandIn

Scans = list[tuple[float, float]]


@pytest.fixture
def charged(stand_in: StandIn) -> Scans:
    """When the stand-in answered a Scan, and what it charged."""
    scans: Scans = []
    answer = stand_in.answer

    def noting(operation: str, request):
        status, body = answer(operation, request)
        if operation == "Scan":
            scans.append((time.monotonic(), body["ConsumedCapacity"]["CapacityUnits"]))
        return status, body

    stand_in.answer = noting  # type: ignore[method-assign]
    return scans
