"""What `keyhop index` does: build, audit, remove, status, reconcile."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from keyhop.cli.exit_status import DONE, DRIFT_FOUND, FAILED
from keyhop.cli.options import Options
from keyhop.cli.output import check_report_path, put_out, write_report
from keyhop.cli.session import Facts, Session, Stop, stop_on_signals
from keyhop.dynamodb.client import aws_client
from keyhop.dynamodb.requester import Stopped
from keyhop.dynamodb.tables import Table
from keyhop.errors import CannotStart, IndexBusy, KeyhopError
from keyhop.jobs.journal import Journal
from keyhop.jobs.local import check_is_begun
from keyhop.jobs.task import noted_examples
from keyhop.key_index.index import check_has_one, check_place, table_with_index
from keyhop.key_index.keeper import Collections, keep
from keyhop.key_index.life_cycle import LifeCycle, all_steps
from keyhop.key_index.registry import (
    DISCARDED,
    FENCE_SECONDS,
    LOST,
    OCCUPIED,
    Fence,
    Heartbeat,
    command_name,
)
from keyhop.key_index.report import (
    EXAMPLES,
    estimate_facts,
    estimate_text,
    report_of,
    report_text,
    status_report,
    with_earlier_round,
)
from keyhop.key_index.request import Audit, Build, Order, Remove, WalkInput
from keyhop.key_index.sentinel import INDEX, Sentinel
from keyhop.key_index.task import WalkTask
from keyhop.key_index.trust import OthersKeeper
from keyhop.streams.dead_letters import DeadLetters
from keyhop.wording import counted

WRITES = {
    "build": "build the key index of ",
    "audit": "audit, and repair, the key index of ",
    "remove": "remove the key index of ",
}
STATES = {
    "check": "checking",
    "build": "building",
    "audit": "auditing",
    "remove": "removing",
}
"""The activity of each kind of walk."""

LOCAL_SETTLE_SECONDS = 1


def run(options: Options) -> int:
    """Run one action on the key index of a table, and return its exit status."""
    check_report_path(options.report)
    if getattr(options, "resume", False) and options.output:
        check_is_begun(Path(options.output))
    with stop_on_signals("Start the same command again.") as stop:
        return int(getattr(IndexCommand(options, stop), options.action)())
    return stop.status


class IndexCommand(Session):
    """The key index of a table; build, audit, remove, reconcile and status are the actions."""

    def __init__(self, options: Options, stop: Stop) -> None:
        super().__init__(options, stop, table_with_index)
        self.registry = self.key_index.registry(self.table)
        self.name = command_name()
        self._reports: dict[str, dict[str, Any]] = {}  # By kind of walk, once it is done.
        self._journals: dict[str, Journal] = {}
        self._expected: int | None = None  # Collections, as counted last.
        self._is_lost = False

    def build(self) -> int:
        try:
            state = self._run(Build, dry_run=self.options.dry_run)
        except CannotStart:
            self._tell_what_stands_in_its_way()
            raise
        if self.options.dry_run:
            estimate = state["estimate"]
            text = estimate_text(self.table.name, estimate)
            del estimate["spent"]
            estimate["seconds_of_writing"] = estimate.pop("secondsOfWriting")
            write_report(self.options.report, estimate)
            put_out(self.options.format, estimate, lambda: text)
            return DONE
        status = self._audited(state["result"], self._reports, "build", "audit")
        capacity = state["result"]["capacity"]
        if capacity and capacity["refused"]:
            self.say(capacity["refused"])
        if not state["result"]["audit"]["keeper"]:
            self.say(
                "No keeper that can be seen from here follows the table's stream, so the index is "
                "true as of now: deploy one with keyIndex, or audit before you read it."
            )
        return status

    def _tell_what_stands_in_its_way(self) -> None:
        """Name the collections that prevent a build, because somebody must correct them."""
        if "check" not in self._journals:
            return
        named = noted_examples(self._journals["check"])
        for kind, keys in named.items():
            self.say(f"  {kind:9} {'; '.join(map(str, keys[:EXAMPLES]))}")
            if len(keys) > EXAMPLES and not self.options.report:
                self.say(f"            and {len(keys) - EXAMPLES:,} more, which --report names")
        if named:
            write_report(self.options.report, {**self._reports["check"], "examples": named})

    def audit(self) -> int:
        options = self.options
        state = self._run(Audit, grace_seconds=options.grace, repair=not options.no_repair)
        return self._audited(state["result"], self._reports["audit"], "audit")

    def _audited(self, result: Mapping[str, Any], report: Mapping[str, Any], *walks: str) -> int:
        """Report the result, to a person by the reports of these walks; return the status."""
        audit = self._reports["audit"]
        audit["keeper"] = result["audit"]["keeper"]
        rows = [self._reports[walk] for walk in walks]
        texts = [report_text(self.table.name, row) for row in rows]
        self.put_out(report, lambda: "\n".join(texts), rows)
        return DRIFT_FOUND if audit["drift"] else DONE

    def remove(self) -> int:
        result = self._run(Remove, sweep=self.options.sweep)["result"]
        if "skipped" in result:
            raise CannotStart(
                f"Table {self.table.bare_name!r} has no key index, and none is on record here. If "
                f"sentinels may be left in it, give --sweep: that reads each collection, for about "
                "1.5 RRU a key."
            )
        walked = self._reports.get("remove")
        removed = {**(walked or {"kind": "remove", **result})}
        texts = [report_text(self.table.name, walked)] if walked else []
        sentence = "no sentinel is left"
        if count := result.get("elsewhere"):
            sentence = (
                f"{counted(count, 'item')} with the marker "
                f"{'is' if count == 1 else 'are'} left, at other sort keys"
            )
        texts.append(f"The index {INDEX} is gone, and {sentence}.")
        removed["as_before"] = result["as_before"]
        self.put_out(removed, lambda: "\n".join(texts))
        if result["refused"]:
            self.say(result["refused"])
        return DONE

    def reconcile(self) -> int:
        options, table, connection = self.options, self.table, self.connection
        check_has_one(table)
        self.confirm(f"put and delete sentinels of {table.name} as the queue's records call for")
        sentinel = self._sentinel(table)
        check_place(connection, table, sentinel, self.registry.entry().place)
        collections = Collections(connection, table.name, sentinel, stop=self.stop.event)
        letters = DeadLetters(
            aws_client("sqs", connection.endpoint),
            aws_client("dynamodbstreams", connection.endpoint),
            options.queue,
            table.bare_name,
        )
        outcome = letters.work(
            lambda records, on_failure: keep(
                records, collections, on_failure, withdraw=partial(self._withdraw, OCCUPIED)
            ),
            partial(self._withdraw, DISCARDED) if options.discard_old else None,
        )
        audit = f"keyhop index audit {table.name}"
        self.put_out(outcome.to_json(), lambda: outcome.text(table.name, audit))
        return DONE if outcome.is_clear else FAILED

    def _withdraw(self, why: str) -> None:
        """Withdraw the trust in the index; raise CannotStart without its record."""
        if not self.key_index.is_shared:
            raise CannotStart(
                "The index must not be trusted from now on, which only the record of the "
                "deployment can say: give --stack with the name of the keeper's stack."
            )
        if self.registry.load().sentinel is None:
            raise CannotStart(
                f"Stack {self.options.stack} has no record of the key index of "
                f"{self.table.bare_name!r}: give --stack with the name of the keeper's stack."
            )
        self.registry.withdraw(why)

    def status(self) -> int:
        where = self.registry.store.url("")
        if not self.key_index.is_shared:
            where += " (this machine alone; of a deployment: give --stack)"
        report, text = status_report(self.table, self.key_index.evidence(self.table), where)
        write_report(self.options.report, report)
        put_out(self.options.format, report, lambda: text)
        return DONE

    def _sentinel(self, table: Table) -> Sentinel:
        """Return the place of the sentinels."""
        place = getattr(self.options, "sentinel", None)
        recorded = self.registry.entry().place if place is None else None
        return recorded or Sentinel.of(table.space, place)

    def _run(self, order_type: type[Order], **more: Any) -> Mapping[str, Any]:
        """Do all steps of an action, and return the state of the last one."""
        options = self.options
        order = order_type(
            table=options.table,
            max_write_rate=options.max_write_rate,
            max_read_rate=options.max_read_rate,
            **more,
        )
        steps = partial(all_steps, partial(self._life_cycle, order), self._walk, self.wait_for)
        if order.dry_run:
            return steps()
        self._check_is_ours(order)
        if audit := self.registry.entry().audit:
            self._expected = audit["collections"]
        if order.action != "audit" or order.repair:
            self.confirm(WRITES[order.action] + self.table.name, partial(self._facts, order))
        with Heartbeat(self.registry, self.name, self._lease_is_lost):
            try:
                return steps()
            except Stopped:
                if self._is_lost:
                    raise IndexBusy(LOST) from None
                raise
            finally:
                self._give_back()

    def _facts(self, order: Order) -> Facts:
        """Estimate an action that writes."""
        expected = self._life_cycle(order).expected()
        return () if expected is None else estimate_facts(expected)

    def _check_is_ours(self, order: Order) -> None:
        """Raise CannotStart if a deployment keeps the index, but --stack does not name it."""
        watch, stream = self.key_index.watch, self.table.stream
        reads_only = order.action == "audit" and not order.repair
        if self.key_index.is_shared or watch is None or stream is None or reads_only:
            return
        if keepers := watch.followers(stream):
            raise CannotStart(
                f"The key index of {self.table.bare_name!r} is kept by {keepers[0].function}: give "
                f"--stack with the name of its stack, where its record and its lease are."
            )

    def _lease_is_lost(self) -> None:
        self._is_lost = True
        self.stop.event.set()

    def _give_back(self) -> None:
        """Release the lease, so that the next holder need not wait until it is stale."""
        with suppress(KeyhopError, OSError):
            self.registry.change(self.name, lease=None)

    def _life_cycle(self, order: Order) -> LifeCycle:
        """Return the life cycle of the table in its current state."""
        self.table = table_with_index(self.connection, self.options.table)
        return LifeCycle(
            order,
            self.connection,
            self.table,
            self._sentinel,
            self.registry,
            OthersKeeper(self.key_index.watch, getattr(self.options, "no_keeper", False)),
            self._journals.__getitem__,
            self.name,
            self.key_index.is_alive,
            LOCAL_SETTLE_SECONDS if self.connection.endpoint.is_loopback else FENCE_SECONDS,
            scaling=self.key_index.scaling,
        )

    def _walk(self, life_cycle: LifeCycle, values: Mapping[str, Any]) -> str:
        """Run a walk with progress; in a separate directory it can be resumed."""
        options, kind = self.options, values["walk"]["kind"]
        rounds = sum(name.startswith(kind) for name in self._journals)
        name = f"{kind}-{rounds + 1}" if rounds else kind
        path = Path(options.output) / name if options.output else None
        fence_of = partial(Fence, self.registry, self.name, life_cycle.settle_seconds)
        tasks = {
            "key_index": partial(
                WalkTask,
                sentinel_of=lambda table: life_cycle.sentinel,
                fence_of=lambda *_: fence_of(),
            )
        }
        request = WalkInput.parse(values)
        job = self.run_job(path, request, tasks, STATES[kind], self._expected)
        report = report_of(life_cycle.order.walk(kind), job.journal)
        self._expected = report["collections"]
        self._journals[name] = job.journal
        self._reports[kind] = with_earlier_round(report, self._reports.get(kind))
        return name
