"""Damaged metadata: its key has an error, and the other keys work."""

from typing import Any

import pytest
from keyhop.errors import BrokenPromise
from keyhop.sharding.drain import Drain
from keyhop.sharding.manage import add_shards, list_keys, proposals

from tests.integration.sharding.single import Place

BAD_TRAFFIC: list[dict[str, Any]] = [
    {"M": {"yesterday": {"N": "1"}}},
    {"M": {"495000": {"S": "many"}}},
    {"M": {"495000": {"L": []}}},
    {"S": "none"},
    {"L": []},
]


@pytest.mark.parametrize("traffic", BAD_TRAFFIC, ids=str)
def test_a_malformed_traffic_map_is_unknown_and_causes_no_drain(
    place: Place, traffic: dict[str, Any]
) -> None:
    table = place.table()
    place.register("/bad", 8, traffic=traffic)
    minute = int(place.clock.time() // 60) + 30 * 60
    place.register("/good", 8, traffic={"M": {str(minute): {"N": "1"}}})
    place.clock.sleep(30 * 3600)
    listed = {key.key: (key.shards.number, key.traffic) for key in list_keys(table)}
    assert listed == {"/bad": (8, None), "/good": (8, {minute: 1.0})}
    assert [(key.key, key.would_do) for key in proposals(table)] == [("/good", 1)]


@pytest.mark.parametrize("traffic", BAD_TRAFFIC, ids=str)
def test_a_malformed_traffic_map_fails_no_write(place: Place, traffic: dict[str, Any]) -> None:
    table = place.table()
    place.register("/f", 4, traffic=traffic)
    for n in range(3):
        table.put_item(Item={"path": "/f", "at": str(n)})
        place.clock.sleep(61)
    table.close()
    assert len(list(table.query("/f"))) == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"phase": {"S": "reopening"}},
        {"phase": {"S": "halted"}},
        {"phase": {"S": "announced"}},
        {"phase": {"S": "fenced"}},
        {"phase": {"S": "closing"}},
        {"writable": {"N": "2"}},
        {"readable": {"N": "9"}},
        {"placed_by": {"NS": ["0", "4"]}},
        {"placed_by": {"NS": ["4", "5000"]}},
        {"shards_before": {"N": "0"}, "phase": {"S": "opened"}},
    ],
    ids=str,
)
def test_contradictory_metadata_is_an_error_and_never_used(
    place: Place, wrong: dict[str, Any]
) -> None:
    """With modulo, a shard count of 0 would be a division by zero. Others failed assertions."""
    table = place.table(hash="modulo")
    place.register("/f", 4, **wrong)
    place.clock.sleep(600)
    for call in (
        lambda: table.put_item(Item={"path": "/f", "at": "a"}),
        lambda: list(table.query("/f", consistent=True)),
        lambda: add_shards(table, "/f"),
        lambda: Drain(table).step("/f", 1),
        lambda: Drain(table).call_off("/f"),
    ):
        with pytest.raises(BrokenPromise, match="contradicts itself"):
            call()
    result = table.batch_write([{"path": "/f", "at": "a"}, {"path": "/g", "at": "a"}])
    assert [(at, type(error)) for at, _, error in result.failed] == [(0, BrokenPromise)]
