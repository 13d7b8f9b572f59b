"""Check when the key index is trusted, and who may work on it: the decisions and their evidence."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from threading import Event
from typing import Any

import pytest
from botocore.exceptions import ClientError
from keyhop.dynamodb.tables import Table
from keyhop.errors import BrokenPromise, IndexBusy, NotPermitted
from keyhop.key_index.registry import (
    COMMAND_IS_DEAD_SECONDS,
    ENTRY,
    Entry,
    Fence,
    Heartbeat,
    Lease,
    Registry,
    command_name,
    is_alive,
)
from keyhop.key_index.sentinel import Sentinel
from keyhop.key_index.trust import (
    VERIFICATION_COUNTS_DAYS,
    Evidence,
    choose_source,
    kept_by,
    why_not,
)
from keyhop.storage.store import Memory
from keyhop.streams.event_source import Follower

from infra.followers import FAILURE_DAYS
from testing.life_cycle_explorer import TABLE, World, described

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
STREAM = "arn:aws:dynamodb:us-east-1:111122223333:table/Orders/stream/2026-11-01"
PLACE = {"partition": {"name": "pk", "type": "S"}, "place": {"sk": {"S": "!keyhop"}}}
KEEPER = Follower("m1", "Keyhop-KeepIndex", "Enabled", "2026-11-01", "", "arn:queue")
VERIFICATION = {
    "began": (NOW - timedelta(days=1)).isoformat(),
    "ended": (NOW - timedelta(days=1)).isoformat(),
    "withdrawals": 0,
    "drift": 0,
    "keeper": True,
    "stream": STREAM,
    "kept_by": kept_by((KEEPER,)),
}
KEPT_ENTRY = Entry("table#1", sentinel=PLACE, verification=VERIFICATION)
SENTINEL = Sentinel.from_json(PLACE)
KEPT = Evidence("ACTIVE", KEPT_ENTRY, SENTINEL, True, STREAM, (KEEPER,), 0.5, 3600.0, 0)


def lease(action: Any, holder: str = "arn:e") -> Lease:
    return Lease(holder, action, "2026-11-22T11:00:00+00:00")


def with_entry(**fields: Any) -> Evidence:
    return replace(KEPT, entry=replace(KEPT_ENTRY, **fields))


def with_verification(**fields: Any) -> Evidence:
    return with_entry(verification={**VERIFICATION, **fields})


def test_an_index_is_trusted_on_all_the_evidence() -> None:
    assert why_not(KEPT, NOW) is None
    assert why_not(replace(KEPT, sentinel=None), NOW) is None
    assert why_not(with_entry(lease=lease("verify")), NOW) is None


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (replace(KEPT, index=None), "there is none"),
        (replace(KEPT, index="DELETING"), "it is DELETING"),
        (replace(KEPT, is_listed=False), "not among those with keyIndex"),
        (with_entry(lease=lease("remove")), "its remove, begun"),
        (with_entry(lease=lease("build")), "its build, begun"),
        (with_entry(verification=None), "no verification"),
        (with_entry(sentinel=None), "another sort key"),
        (replace(KEPT, sentinel=replace(SENTINEL, place={"S": "#"})), "another sort key"),
        (with_verification(resumed=True), "was resumed: start one from the beginning"),
        (with_verification(keeper=False), "no keeper followed the table at its last verification"),
        (with_verification(drift=2), "found drift"),
        (
            with_verification(began=(NOW - timedelta(days=13, hours=1)).isoformat()),
            "more than 13 days old",
        ),
        (with_entry(withdrawals=1), "trust in it was withdrawn"),
        (
            with_entry(withdrawals=1, withdrawn={"when": "today", "why": "a message was deleted"}),
            "withdrawn at today, and no verification began since: a message was deleted",
        ),
        (replace(KEPT, stream=None), "stream is off"),
        (replace(KEPT, stream=f"{STREAM}x"), "another stream"),
        (with_verification(stream=None), "another stream"),
        (replace(KEPT, keepers=None), "cannot be seen whether a keeper"),
        (replace(KEPT, keepers=()), "no keeper follows"),
        (replace(KEPT, keepers=(replace(KEEPER, state="Disabled"),)), "mapping is Disabled"),
        (replace(KEPT, keepers=(replace(KEEPER, problem="PROBLEM: x"),)), "PROBLEM: x"),
        (replace(KEPT, keepers=(replace(KEEPER, modified="later"),)), "mapping was changed"),
        (replace(KEPT, keepers=(replace(KEEPER, uuid="m2"),)), "mapping was changed"),
        (replace(KEPT, keepers=(KEEPER, replace(KEEPER, uuid="m2"))), "mapping was changed"),
        (replace(KEPT, lag_seconds=None), "how far the keeper is behind"),
        (replace(KEPT, lag_seconds=61.0), "61 seconds behind"),
        (
            replace(KEPT, longest_lag_seconds=None),
            "whether the keeper worked since its last verification",
        ),
        (
            replace(KEPT, longest_lag_seconds=23.9 * 3600),
            "was 24 hours behind since its last verification",
        ),
        (replace(KEPT, failures=None), "failure queue"),
        (replace(KEPT, failures=3), "3 messages wait"),
    ],
)
def test_each_doubt_has_its_reason(evidence: Evidence, reason: str) -> None:
    assert reason in (why_not(evidence, NOW) or "")


def test_drift_that_was_repaired_and_verified_again_does_not_count() -> None:
    assert why_not(with_verification(drift=2, remaining=0), NOW) is None
    assert "found drift" in (why_not(with_verification(drift=2, remaining=1), NOW) or "")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "found no drift"),
        ({"drift": 1_200, "remaining": 0}, "found drift (1,200), of which a second look"),
    ],
)
def test_auto_says_what_the_verification_has_found(fields: dict[str, Any], words: str) -> None:
    table = Table(TABLE, described(World((), index=True)))
    today = with_verification(began=datetime.now(UTC).isoformat(), **fields)
    trust = choose_source(table, "auto", False, lambda: today)
    assert trust.source is not None
    assert words in trust.why
    assert ("no drift" in trust.why) is not bool(fields)


def test_the_change_of_a_mapping_is_the_same_moment_in_all_time_zones() -> None:
    """A function records the time, and a command reads it on a laptop in another time zone."""
    mapping = {
        "UUID": "m1",
        "FunctionArn": "arn:aws:lambda:eu:1:function:KeepIndex",
        "State": "Enabled",
    }
    utc = Follower.of({**mapping, "LastModified": NOW})
    tokyo = Follower.of({**mapping, "LastModified": NOW.astimezone(timezone(timedelta(hours=9)))})
    assert utc == tokyo
    assert Follower.of({**mapping, "LastModified": NOW + timedelta(seconds=1)}) != utc


@pytest.fixture
def registry() -> Registry:
    """Return a registry in memory, which keeps the promises of all stores (test_stores.py)."""
    return Registry(Memory(), "table#1")


def alive(lease: Lease, age: float) -> bool:
    return True


def dead(lease: Lease, age: float) -> bool:
    return False


def test_a_lease_has_one_holder_until_it_is_returned(registry: Registry) -> None:
    assert registry.entry() == Entry("table#1")
    entry = registry.take("arn:one", "build", alive)
    assert registry.take("arn:one", "build", dead) == entry
    with pytest.raises(IndexBusy, match="build by arn:one"):
        registry.take("arn:two", "remove", alive)
    assert registry.change("arn:one", emptied=True).emptied
    with pytest.raises(IndexBusy, match="somebody else"):
        registry.change("arn:two", emptied=False)
    registry.change("arn:one", lease=None)
    with pytest.raises(IndexBusy):
        registry.check_lease("arn:one")
    second = registry.take("arn:two", "remove", alive).lease
    assert (second.holder, second.inherited) == ("arn:two", False)
    assert registry.entry().emptied


def verified_entry(registry: Registry, holder: str) -> Entry:
    """Return the entry after a verification without drift."""
    lease = registry.take(holder, "verify", alive).lease
    verification = {**VERIFICATION, "began": lease.since, "withdrawals": lease.withdrawals}
    return registry.change(holder, verification=verification, lease=None)


def test_a_withdrawal_lasts_until_a_verification_that_began_later_has_finished(
    registry: Registry,
) -> None:
    assert not verified_entry(registry, "arn:one").is_withdrawn
    registry.withdraw("a reason")
    assert registry.entry().is_withdrawn
    assert not verified_entry(registry, "arn:two").is_withdrawn


def test_a_verification_that_began_before_a_withdrawal_does_not_count(registry: Registry) -> None:
    lease = registry.take("arn:one", "verify", alive).lease
    registry.withdraw("a reason")
    verification = {**VERIFICATION, "withdrawals": lease.withdrawals}
    assert registry.change("arn:one", verification=verification, lease=None).is_withdrawn


def test_a_withdrawal_that_changes_nothing_writes_nothing(registry: Registry) -> None:
    """A collection whose sentinel's place is occupied may get a thousand writes a second."""
    registry.withdraw("a reason")
    assert registry.store.read(ENTRY) is None, "nothing was trusted"
    verified_entry(registry, "arn:one")
    registry.withdraw("a reason")
    changes = registry.entry().changes
    registry.withdraw("a reason")
    assert registry.entry().changes == changes
    registry.take("arn:two", "verify", alive)
    registry.withdraw("a reason")
    registry.withdraw("a reason")
    assert registry.entry().changes == changes + 2, "the lease, and one withdrawal"


def test_a_verification_after_a_withdrawal_starts_a_new_epoch(
    registry: Registry,
) -> None:
    epoch = verified_entry(registry, "arn:one").epoch
    registry.withdraw("a reason")
    assert verified_entry(registry, "arn:two").epoch != epoch


def test_a_verification_counts_for_less_time_than_the_failure_queue_keeps_a_message() -> None:
    assert VERIFICATION_COUNTS_DAYS < FAILURE_DAYS


def test_the_lease_of_a_dead_holder_is_inherited(registry: Registry) -> None:
    registry.take("arn:one", "remove", alive)
    lease = registry.take("arn:two", "verify", dead).lease
    assert (lease.holder, lease.inherited) == ("arn:two", True)
    for attempt in (registry.change, registry.check_lease):
        with pytest.raises(IndexBusy, match="somebody else's"):
            attempt("arn:one")


def test_one_of_many_callers_gets_a_free_lease(registry: Registry) -> None:
    class Slow(Registry):
        """Another holder takes the lease between the look and the swap."""

        def _look(self) -> Any:
            result = super()._look()
            if result[0].lease is None:
                registry.take("arn:quick", "build", alive)
            return result

    with pytest.raises(IndexBusy, match="arn:quick"):
        Slow(registry.store, "table#1").take("arn:slow", "remove", alive)


def test_a_lost_answer_is_not_a_lost_race(registry: Registry) -> None:
    class Lossy:
        def __getattr__(self, name: str) -> Any:
            return getattr(registry.store, name)

        def swap(self, name: str, content: bytes, tag: str | None) -> bool:
            assert registry.store.swap(name, content, tag)
            return False

    entry = Registry(Lossy(), "table#1").take("arn:one", "build", alive)
    assert registry.entry() == entry


def test_a_damaged_entry_is_not_loaded_as_an_empty_one(registry: Registry) -> None:
    assert registry.load() == Entry("table#1")
    entry = registry.take("arn:one", "build", alive)
    assert registry.load() == entry
    registry.store.replace(ENTRY, b"{")
    with pytest.raises(BrokenPromise, match=r"entry\.json"):
        registry.load()


def test_an_entry_that_may_not_be_read_is_not_trusted() -> None:
    """PlanRun has no access to the registry where no table has keyIndex any more, for example."""

    class Forbidden(Memory):
        def look(self, name: str) -> Any:
            raise NotPermitted("Permission is missing for the results.")

    registry = Registry(Forbidden(), "table#1")
    assert registry.entry() == Entry("table#1")
    with pytest.raises(NotPermitted):
        registry.load()


def test_the_entry_of_another_table_and_a_damaged_one_count_as_empty(registry: Registry) -> None:
    Registry(registry.store, "table#0").take("arn:one", "build", alive)
    assert registry.entry() == Entry("table#1")
    registry.store.replace(ENTRY, b"{")
    assert registry.entry() == Entry("table#1")
    assert registry.take("arn:two", "build", alive).lease is not None


@pytest.mark.parametrize("version", [1, 3])
def test_an_entry_of_another_version_is_refused_and_not_trusted(
    registry: Registry, version: int
) -> None:
    registry.take("arn:one", "build", alive)
    state = json.loads(registry.store.read(ENTRY) or b"")
    assert state["version"] == 2
    content = json.dumps({**state, "version": version}).encode()
    registry.store.replace(ENTRY, content)
    calls = (
        registry.load,
        lambda: registry.take("arn:two", "build", dead),
        lambda: registry.change("arn:one", emptied=True),
        lambda: registry.withdraw("why"),
        lambda: registry.check_lease("arn:one"),
    )
    for call in calls:
        with pytest.raises(BrokenPromise, match=rf"entry\.json .* in format {version}; .* Remove"):
            call()
    assert registry.entry() == Entry("table#1")
    assert registry.store.read(ENTRY) == content


def test_a_fence_checks_again_after_a_while(registry: Registry) -> None:
    registry.take("arn:one", "build", alive)
    now = 100.0
    fence = Fence(registry, "arn:one", 60.0, clock=lambda: now)
    fence.check()
    registry.take("arn:two", "remove", dead)
    now += 14
    fence.check()
    now += 2
    with pytest.raises(IndexBusy):
        fence.check()


class States:
    def __init__(self, answer: str) -> None:
        self.answer = answer

    def describe_execution(self, executionArn: str) -> dict[str, str]:  # noqa: N803
        if self.answer.isupper():
            return {"status": self.answer}
        raise ClientError({"Error": {"Code": self.answer}}, "DescribeExecution")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("RUNNING", True),
        ("PENDING_REDRIVE", True),
        ("FAILED", False),
        ("ABORTED", False),
        ("TIMED_OUT", False),
        ("SUCCEEDED", False),
        ("ExecutionDoesNotExist", False),
        ("AccessDeniedException", True),
    ],
)
def test_an_execution_is_alive_while_step_functions_says_so(answer: str, expected: bool) -> None:
    assert is_alive(lambda: States(answer), lease("build", "arn:aws:states:e"), 1e9) is expected


def test_a_command_is_alive_while_it_writes() -> None:
    is_holder_alive = partial(is_alive, lambda: States("RUNNING"))
    own_lease = lease("build", command_name())
    assert is_holder_alive(own_lease, COMMAND_IS_DEAD_SECONDS - 1)
    assert not is_holder_alive(own_lease, COMMAND_IS_DEAD_SECONDS + 1)
    user_and_machine, _process, token = own_lease.holder.rsplit(" ", 2)
    assert not is_holder_alive(lease("build", f"{user_and_machine} 99999999 {token}"), 1.0)
    assert is_holder_alive(lease("build", "somebody@elsewhere 99999999 abc"), 1.0)


def test_a_heartbeat_reports_a_lost_lease(registry: Registry) -> None:
    lost = Event()
    registry.take("me", "build", alive)
    with Heartbeat(registry, "me", lost.set, seconds=0.01):
        first = registry.entry().changes
        while registry.entry().changes == first:
            pass
        while not lost.is_set():
            registry.take("another", "build", dead)
    assert registry.entry().lease is not None
