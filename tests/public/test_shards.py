"""`keyhop.Shards`, as a Python program calls it. Time passes only when it waits."""

import json
import math
from threading import Event
from typing import Any

import keyhop
import pytest
from keyhop.errors import Stopped
from keyhop.public import deployment
from keyhop.public.shards import MOST_LOOKS
from keyhop.sharding.drain import Drain
from keyhop.sharding.key.shards import Phase

from testing.databases import Database
from testing.simulation.service import failure
from testing.standin.server import StandIn
from tests.integration.sharding_command.test_shards import JumpingClock, Place, clock, spread_items
from tests.public.conftest import boto3s_table

__all__ = ["clock"]


@pytest.fixture
def place(dynamodb: Database, table_name: str) -> Place:
    return Place(dynamodb, table_name)


def shards_of(place: Place, **arguments: Any) -> keyhop.Shards:
    return keyhop.Shards(place.name, endpoint_url=place.database.url, **arguments)


def test_add_list_show_and_drain(place: Place) -> None:
    place.write("/f", 40)
    spread_items(place, "/g", 2)
    reports: list[keyhop.Progress] = []
    messages: list[str] = []
    approvals: list[tuple[str, Any]] = []
    shards = shards_of(
        place,
        progress=reports.append,
        say=messages.append,
        approve=lambda action, estimate: approvals.append((action, estimate())),
    )
    plan = shards.add("/f", 3, dry_run=True)
    assert (plan.dry_run, plan.before, plan.after, approvals) == (True, 1, 4, [])
    assert shards.show("/f").shards.number == 1
    added = shards.add("/f", 3)
    assert (added.action, added.dry_run, added.before, added.after) == ("add", False, 1, 4)
    assert (approvals, reports) == ([("add", plan)], [])
    assert 0 < added.write_units <= plan.write_units
    assert "Writers use 4 shards of /f now." in messages
    assert shards.show("/f").shards.writable == 4
    assert [key.key for key in shards.list()] == ["/f", "/g"]
    place.write("/f", 80)
    plan = shards.drain("/f", 2, dry_run=True)
    assert (plan.after, plan.is_least, plan.items > 0) == (2, False, True)
    assert plan.write_units >= 4 * plan.items
    drained = shards.drain("/f", 2)
    assert (drained.before, drained.after, drained.items > 0) == (4, 2, True)
    assert approvals[1:] == [("drain", plan)]
    assert drained.dollars > 0
    assert drained.seconds >= 20
    assert {"closing", "fenced", "moved"} <= {progress.activity for progress in reports}
    assert max(progress.seconds for progress in reports) == pytest.approx(5)
    assert (reports[-1].is_over, reports[-1].moved) == (True, drained.items)
    assert shards.drain("/f", 2).items == 0
    assert len(approvals) == 2
    items = place.table().query("/f", consistent=True)
    assert [int(item["n"]) for item in items] == list(range(80))


def test_a_drain_is_estimated_by_all_shards_that_it_empties(place: Place) -> None:
    """Shards that were added later may have few items or none."""
    spread_items(place, "/f", 4, 60)
    place.set("/f", number=6, writable=6, readable=6)
    shards = shards_of(place)
    plan = shards.drain("/f", 2, dry_run=True)
    items = sum(min(shards) > 2 for shards in place.shards_of_items("/f").values())
    assert (plan.before, plan.items, plan.is_least) == (6, items, False)
    assert plan.write_units == 4 * items
    assert shards.drain("/f", 2).items == items > 0


def test_an_estimate_from_a_sample_of_shards_is_a_minimum(place: Place) -> None:
    spread_items(place, "/f", 1 + MOST_LOOKS, 80)
    shards = shards_of(place)
    assert not shards.drain("/f", 1, dry_run=True).is_least
    place.set("/f", number=MOST_LOOKS + 2, writable=MOST_LOOKS + 2, readable=MOST_LOOKS + 2)
    place.put_physical(f"/f_{MOST_LOOKS + 2}", "last")
    plan = shards.drain("/f", 1, dry_run=True)
    items = sum(min(shards) > 1 for shards in place.shards_of_items("/f").values())
    assert (plan.items, plan.is_least) == (items - 1, True)


def test_results_show_keys_to_programs_but_not_in_repr(place: Place) -> None:
    spread_items(place, "/secret", 3)
    shards = shards_of(place)
    place.lose("/secret")
    (lost,) = shards.recover(dry_run=True)
    shards.recover()
    plan = shards.drain("/secret", 1, dry_run=True)
    for result in (shards, shards.show("/secret"), lost, plan):
        assert "secret" not in repr(result)
    for content in (shards.show("/secret").to_json(), lost.to_json(), plan.to_json()):
        assert json.loads(json.dumps(content))["key"] == {"S": "/secret"}
    assert shards.show("/secret").to_text().startswith("/secret: 3 shards\n")


def test_binary_keys_are_bytes(dynamodb: Database, table_name: str) -> None:
    place = Place(dynamodb, table_name, "B")
    place.write(b"\xff\x00", 1)
    shards = shards_of(place)
    shards.add(b"\xff\x00")
    (key,) = shards.list()
    assert (type(key.key), key.key) == (bytes, b"\xff\x00")
    assert key.to_json()["key"] == {"B": "/wA="}


def test_boto3s_table_sends_the_requests(place: Place) -> None:
    spread_items(place, "/f", 2)
    shards = keyhop.Shards(boto3s_table(place.database, place.name))
    assert shards.add("/f").after == 3
    assert shards.drain("/f", 1).after == 1
    place.lose("/f")
    assert shards.recover() == ()


def test_a_drain_is_called_off(place: Place, clock: JumpingClock) -> None:
    spread_items(place, "/f", 4)
    drain = Drain(place.table())
    while drain.step("/f", shards=1).shards.phase is not Phase.CLOSING:
        clock.sleep(5.0)
    shards = shards_of(place, approve=lambda action, estimate: pytest.fail("it asks"))
    for dry_run in (True, False):
        with pytest.raises(keyhop.errors.CannotStart, match="is being drained"):
            shards.add("/f", dry_run=dry_run)
    with pytest.raises(keyhop.errors.CannotStart, match="is being drained to 1 shard"):
        shards.drain("/f", 2)
    assert shards.call_off("/f").after == 4
    with pytest.raises(keyhop.errors.CannotStart, match="No drain"):
        shards.call_off("/f")


def test_recover(place: Place) -> None:
    spread_items(place, "/a", 2)
    place.lose("/a")
    item = {"path": {"S": "/photo_3"}, "at": {"S": "a"}}
    place.database.client.put_item(TableName=place.name, Item=item)
    approvals: list[str] = []
    reports: list[keyhop.Progress] = []
    shards = shards_of(
        place, approve=lambda action, estimate: approvals.append(action), progress=reports.append
    )
    plans = shards.recover(dry_run=True)
    assert [(lost.key, lost.shards, lost.has_gaps) for lost in plans] == [
        ("/a", 2, False),
        ("/photo", 3, True),
    ]
    assert not any(lost.recovered for lost in plans)
    assert approvals == []
    assert reports[-1].is_over
    assert [lost.recovered for lost in shards.recover()] == [True, False]
    assert [lost.key for lost in shards.recover()] == ["/photo"]
    assert approvals == ["recover"], "nothing is written for skipped keys"
    assert [lost.recovered for lost in shards.recover("/photo")] == [True]
    assert shards.recover(with_gaps=True) == ()


@pytest.mark.parametrize("action", ["add", "drain", "recover"])
def test_an_exception_in_approve_ends_a_call_before_it_writes(place: Place, action: str) -> None:
    spread_items(place, "/f", 3)
    spread_items(place, "/lost", 3)
    place.lose("/lost")
    before = place.database.client.scan(TableName=place.metadata)["Items"]

    class Refusal(Exception):
        pass

    def refuse(action: str, estimate: Any) -> None:
        raise Refusal

    shards = shards_of(place, approve=refuse)
    arguments = {"add": ("/f", 1), "drain": ("/f", 1), "recover": ()}[action]
    with pytest.raises(Refusal):
        getattr(shards, action)(*arguments)
    assert place.database.client.scan(TableName=place.metadata)["Items"] == before


def test_a_stopped_addition_has_added_its_shards(place: Place, clock: JumpingClock) -> None:
    """A stop ends the wait only: the shards exist, and the next writer ends the phase."""
    spread_items(place, "/f", 2)
    stop = Event()

    def say(text: str) -> None:
        if text.endswith("until writers use them"):
            stop.set()

    with pytest.raises(Stopped):
        shards_of(place, stop=stop, say=say).add("/f")
    assert place.shards("/f").phase is Phase.ANNOUNCED
    assert shards_of(place).add("/f").after == 4


def test_the_metadata_table_is_explicit_or_has_its_default_name(place: Place) -> None:
    place.write("/f", 1)
    default = shards_of(place)
    assert (default.metadata, default.metadata_reason) == (place.metadata, "its usual name")
    other_name = f"{place.name}-other"
    place.database.create(other_name, ("path", "S"), None)
    explicit = shards_of(place, metadata=other_name)
    assert (explicit.metadata, explicit.metadata_reason) == (other_name, "as given")
    assert (len(default.list(all=True)), explicit.list(all=True)) == (1, ())
    place.database.client.delete_table(TableName=place.metadata)
    with pytest.raises(keyhop.errors.TableNotFound, match=r"its usual name\): give metadata="):
        shards_of(place)


class FakeCloudFormation:
    """A CloudFormation client with the stacks K and Old. Old has no outputs for metadata."""

    def __init__(self, outputs: dict[str, str]) -> None:
        self._outputs = {"K": {"ResultsBucketName": "results", **outputs}}
        self._outputs["Old"] = {"ResultsBucketName": "results"}

    def describe_stacks(self, StackName: str) -> dict[str, Any]:  # noqa: N803
        outputs = self._outputs[StackName].items()
        return {
            "Stacks": [
                {"Outputs": [{"OutputKey": key, "OutputValue": value} for key, value in outputs]}
            ]
        }


def test_the_outputs_of_a_stack_name_the_metadata_table(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_name = f"{place.name}-other"
    place.database.create(other_name, ("path", "S"), None)
    outputs = {"ShardMetadata1": "Another Meta", "ShardMetadata2": f"{place.name} {other_name}"}
    monkeypatch.setattr(deployment, "aws_client", lambda *_, **__: FakeCloudFormation(outputs))
    shards = shards_of(place, stack="K")
    assert (shards.metadata, shards.metadata_reason) == (other_name, "by the outputs of stack K")
    assert shards_of(place, stack="K", metadata=place.metadata).metadata == place.metadata
    shards = shards_of(place, stack="Old")
    assert shards.metadata == place.metadata
    assert "because stack Old names none" in shards.metadata_reason


def test_a_metadata_table_without_permission_is_an_error(
    strict: Database, stand_in: StandIn, table_name: str
) -> None:
    place = Place(strict, table_name)

    def fault(operation: str, request: Any) -> None:
        if operation == "DescribeTable" and request["TableName"] == place.metadata:
            raise failure("AccessDeniedException", "no way")

    stand_in.fault = fault
    allow = f"allow dynamodb:DescribeTable on table '{place.metadata}'"
    with pytest.raises(keyhop.errors.NotPermitted, match=allow):
        shards_of(place)


@pytest.mark.parametrize(
    ("key", "count", "message"),
    [
        ("/f", 0, "count must be a whole number from 1 to 999, not 0"),
        ("/f", 1.5, "count must be"),
        ("/f", 2.0, r"count must be a whole number from 1 to 999, not 2\.0"),
        ("/f", 999, "The key has 2 shards, and 1,000 are the maximum"),
        ("", 1, "must have 1 to"),
        ("x" * 2048, 1, "must have 1 to"),
        (b"/f", 1, "must be a text"),
        ("!keyhop-total", 1, "is for all keys"),
        ("!keyhop-claim x", 1, "No logical key can start with '!keyhop-claim '"),
    ],
)
def test_wrong_arguments_are_refused(place: Place, key: Any, count: Any, message: str) -> None:
    spread_items(place, "/f", 2)
    with pytest.raises(keyhop.errors.CannotStart, match=message):
        shards_of(place).add(key, count, dry_run=True)


@pytest.mark.parametrize("cost", [math.nan, math.inf, 0, -1, "1", True])
def test_a_limit_of_dollars_is_a_number_above_zero(
    place: Place, clock: JumpingClock, cost: Any
) -> None:
    """An invalid limit is refused before the metadata is read."""
    shards, began = shards_of(place), clock.monotonic()
    place.database.client.delete_table(TableName=place.metadata)
    with pytest.raises(keyhop.errors.CannotStart, match="max_cost must be a number above 0, not"):
        shards.recover(max_cost=cost)
    assert clock.monotonic() == began


def test_a_placement_of_a_later_version_is_refused(place: Place) -> None:
    spread_items(place, "/f", 2)
    place.set("/f", placement="by moonlight _")
    with pytest.raises(keyhop.errors.CannotStart, match="this version does not know"):
        shards_of(place).add("/f")
