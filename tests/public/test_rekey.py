"""`keyhop.Rekey`, as a Python program calls it."""

import json
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import keyhop
import pytest
from keyhop.dynamodb.client import connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.tables import look_up
from keyhop.dynamodb.units import US_EAST_1
from keyhop.errors import Stopped
from keyhop.rekey.backfill import BackfillTask
from keyhop.rekey.request import BackfillInput
from keyhop.tasks import transform_of

from testing.rekey_tasks import at_once
from tests.integration.rekey.conftest import pairs, states, template
from tests.integration.rekey.pairs import REGION, Pairs, States, in_order, items_of, orders

__all__ = ["pairs", "states", "template"]

DAY = {"partition_key": "day"}


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.setattr(keyhop.Rekey, "_tasks", staticmethod(at_once))


def rekey_of(pairs: Pairs, **arguments: Any) -> keyhop.Rekey:
    return keyhop.Rekey(
        pairs.source, pairs.destination, endpoint_url=pairs.database.url, **arguments
    )


def test_a_re_key_by_this_process_from_the_plan_to_the_cancellation(
    pairs: Pairs, template: Path
) -> None:
    items = orders(pairs)
    approvals: list[tuple[str, Any]] = []
    reports: list[keyhop.Progress] = []
    rekey = rekey_of(
        pairs,
        progress=reports.append,
        approve=lambda action, look: approvals.append((action, look())),
    )
    plan = rekey.plan(template, accept=["unseen"], **DAY)
    content = plan.to_json()
    assert (content["class"], content["items"], [*plan.blocks]) == ("bijective", 30, [])
    assert "2026-11-01" in plan.to_text(show_keys=True)
    assert "2026-11-01" not in plan.to_text() + json.dumps(plan.to_json()) + repr(plan)
    with pytest.raises(keyhop.errors.CannotStart, match="begin with plan"):
        rekey.status()
    design = {**DAY, "accept": ["unseen"]}
    assert rekey.create(template, dry_run=True, **design).dry_run
    assert rekey.create(template, **design).is_done
    assert rekey.status().phase == "created"
    expected = rekey.start(dry_run=True)
    assert (expected.is_done, expected.write_units) == (False, 30.0)
    planned = content["costs"]["backfill"]["read_units"]  # of both looks
    assert expected.read_units == pytest.approx(planned, abs=0.1)
    copied = rekey.start()
    assert (copied.is_done, copied.run, copied.obstacles) == (True, None, ())
    assert copied.to_json()["counts"] == {"copied": 30}
    assert copied.write_units >= 30
    paid = US_EAST_1.dollars(copied.read_units, copied.write_units)
    assert copied.to_json()["dollars"] == copied.dollars == pytest.approx(paid, abs=1e-9)
    assert "No function follows" in copied.notes[0]
    pairs.database.client.put_item(TableName=pairs.source, Item={**items[0], "x": {"S": "new"}})
    assert rekey.verify(dry_run=True).read_units > 0
    verification = rekey.verify(repair=False)
    assert (verification.is_done, verification.obstacles) == (True, ("changed",))
    repaired = rekey.verify()
    assert repaired.to_json()["counts"]["repaired"] == 1
    assert repaired.write_units >= 1
    paid = US_EAST_1.dollars(repaired.read_units, repaired.write_units)
    assert repaired.to_json()["dollars"] == repaired.dollars == pytest.approx(paid, abs=1e-9)
    assert rekey.verify(repair=False).obstacles == ()
    assert rekey.shadow(10, dry_run=True).control.shadow == 0
    assert rekey.shadow(10).control.shadow == 0.1
    status = rekey.status()
    assert (status.phase, status.troubles) == ("shadowing", [])
    assert rekey.cutover(dry_run=True).obstacles == ("streams",)
    assert rekey.cutover().obstacles == ("streams",), "it asks for no approval"
    assert "reads" not in repr(rekey.cancel(dry_run=True))
    cancelled = rekey.cancel()
    assert (cancelled.action, cancelled.is_done) == ("cancel", True)
    assert pairs.destination not in pairs.database.tables()
    assert len(items_of(pairs, pairs.source)) == 30
    actions = ["create", "start", "verify", "verify", "verify", "shadow", "cancel"]
    assert [action for action, _ in approvals] == actions
    assert approvals[1][1] == expected
    activities = {progress.activity for progress in reports}
    assert activities == {"copying", "reading both", "comparing"}
    last = [progress for progress in reports if progress.activity == "copying"][-1]
    assert (last.keys, last.expected, last.share, last.is_over) == (30, 30, 1.0, True)
    assert reports[-1].is_over


def test_estimates_count_the_writes_of_local_indexes(pairs: Pairs, template: Path) -> None:
    keys = [("customer", "HASH"), ("state", "RANGE")]
    schema = [{"AttributeName": name, "KeyType": type_} for name, type_ in keys]
    index = {"IndexName": "by-state", "KeySchema": schema, "Projection": {"ProjectionType": "ALL"}}
    defined = [{"AttributeName": "state", "AttributeType": "S"}]
    items = orders(pairs, AttributeDefinitions=defined, LocalSecondaryIndexes=[index])
    pairs.database.fill(pairs.source, [{**item, "state": {"S": "new"}} for item in items])
    rekey = rekey_of(pairs)
    design = {**DAY, "accept": ["unseen", "keep-local-indexes"]}
    plan = rekey.plan(template, **design).to_json()
    assert plan["costs"]["backfill"]["write_units"] == 60
    assert plan["indexes"] == {"by-state": {"before": 1, "after": 1}}
    rekey.create(template, **design)
    assert rekey.start(dry_run=True).write_units == 60
    rekey.start()
    connection = connect(Endpoint(url=pairs.database.url, region=REGION))
    task = BackfillTask(connection, {"rekey": pairs.destination}, transform_of)
    table = look_up(connection, pairs.source)
    task.plan(table, BackfillInput.parse({"rekey": pairs.destination}))
    assert task.units_per_key(table.source())[0] == 2


def test_the_time_of_a_copy_depends_on_the_capacity(pairs: Pairs, template: Path) -> None:
    units = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 3}
    orders(pairs, BillingMode="PROVISIONED", ProvisionedThroughput=units)
    rekey = rekey_of(pairs)
    assert rekey.plan(template, **DAY).to_json()["costs"]["backfill"]["seconds"] == 10
    rekey.create(template, accept=["unseen"], **DAY)
    assert rekey.start(dry_run=True).to_json()["seconds_of_writing"] == 10
    assert rekey.start(dry_run=True, max_write_rate=2).to_json()["seconds_of_writing"] == 15


def test_later_calls_use_the_deployment_that_start_recorded(
    pairs: Pairs, template: Path, states: States
) -> None:
    orders(pairs)
    rekey = rekey_of(pairs, stack="Keyhop")
    rekey.create(template, accept=["unseen"], **DAY)
    assert rekey.deployment() is None
    started = rekey.start(remote=True, max_write_rate=500)
    assert started.run is not None
    assert (started.is_done, started.run.status) == (False, "RUNNING")
    assert items_of(pairs, pairs.destination) == []
    later = rekey_of(pairs)
    deployment = later.deployment()
    assert deployment is not None
    assert repr(deployment) == "<keyhop.Deployment Keyhop>"
    assert later.verify(repair=False, share=0.5).run is not None
    rekey_input = {"rekey": pairs.destination}
    assert states.started == [
        ("RekeyBackfill", {**rekey_input, "maxWriteRate": 500}),
        ("RekeyVerify", {**rekey_input, "repair": False, "share": 0.5}),
    ]
    assert later.status().failed == 2
    assert later.redrive(dry_run=True).left == 2
    with pytest.raises(keyhop.errors.CannotStart, match="'Keyhop' follows the tables"):
        rekey_of(pairs, stack="Another").start(remote=True)
    with pytest.raises(keyhop.errors.CannotStart, match="leave out output="):
        later.verify(output="verified")
    assert later.verify(output="verify-1", resume=True).run is not None
    assert later.start(output="copy-1", resume=True).run is not None
    assert [values.get("resume") for _, values in states.started[2:]] == ["verify-1", "copy-1"]


def test_without_a_deployment_remote_calls_are_refused(pairs: Pairs) -> None:
    rekey = rekey_of(pairs.begun())
    with pytest.raises(keyhop.errors.CannotStart, match="No deployment is known"):
        rekey.redrive(dry_run=True)
    with pytest.raises(keyhop.errors.CannotStart, match="remote needs the name of a deployment"):
        rekey.start(remote=True)


WRONG_ARGUMENTS: list[tuple[str, Callable[[keyhop.Rekey], Any]]] = [
    ("rate must be a number of write units", lambda rekey: rekey.throttle(-1)),
    ("percent must be a percentage from 0 to 100", lambda rekey: rekey.shadow(101)),
    ("max_write_rate must be", lambda rekey: rekey.start(max_write_rate=0)),
    ("share must be", lambda rekey: rekey.verify(share=2)),
    ("resume needs output", lambda rekey: rekey.verify(resume=True)),
    ("freeze_limit must be", lambda rekey: rekey.cutover(freeze_limit=60)),
    ("window_days must be", lambda rekey: rekey.complete(window_days=-1)),
    ("lease must be", lambda rekey: rekey.create("t.yaml", lease=5)),
    ("'t:X' has the type 'X'", lambda rekey: rekey.plan("by-day.yaml", partition_key="t:X")),
]


@pytest.mark.parametrize(
    ("message", "call"), WRONG_ARGUMENTS, ids=[message for message, _ in WRONG_ARGUMENTS]
)
def test_a_wrong_argument_is_refused_by_its_name(
    pairs: Pairs, template: Path, monkeypatch: pytest.MonkeyPatch, message: str, call: Any
) -> None:
    monkeypatch.chdir(template.parent)
    with pytest.raises(keyhop.errors.CannotStart, match=message):
        call(rekey_of(pairs.begun()))


def test_the_new_table_needs_another_name(pairs: Pairs) -> None:
    pairs.begun()
    for name, message in ((pairs.source, "another table"), ("a b", "cannot be the name")):
        with pytest.raises(keyhop.errors.CannotStart, match=message):
            keyhop.Rekey(pairs.source, name, endpoint_url=pairs.database.url)


def test_an_exception_in_approve_ends_a_call_before_it_writes(pairs: Pairs, template: Path) -> None:
    items = orders(pairs)
    answers = {"create"}

    def approve(action: str, look: Any) -> None:
        if action not in answers:
            raise PermissionError(action)

    rekey = rekey_of(pairs, approve=approve)
    rekey.create(template, accept=["unseen"], **DAY)
    for call in (rekey.start, rekey.verify, rekey.cancel, lambda: rekey.shadow(5)):
        with pytest.raises(PermissionError):
            call()
    assert rekey.status().phase == "created"
    assert not pairs.side.control().replicating
    assert items_of(pairs, pairs.source) == in_order(items)
    assert rekey.throttle(5).figures["throttle"]["rate"] == 5.0, "this needs no approval"


def test_a_stopped_copy_can_be_resumed(pairs: Pairs, template: Path, tmp_path: Path) -> None:
    orders(pairs)
    stop, output = Event(), tmp_path / "copy"
    rekey = rekey_of(pairs, stop=stop, progress=lambda progress: stop.set())
    rekey.create(template, accept=["unseen"], **DAY)
    with pytest.raises(Stopped):
        rekey.start(output=output)
    assert rekey_of(pairs).start(output=output, resume=True).is_done
    assert len(items_of(pairs, pairs.destination)) == 30
