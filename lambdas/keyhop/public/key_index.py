"""The key index of a table: `KeyIndex`."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from threading import Event
from typing import Any, NoReturn

from keyhop.checks import Must, check_arguments, number, shown, some_of
from keyhop.dynamodb.client import Connection, aws_client
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.units import DEFAULT_WRITE_RATE
from keyhop.errors import CannotStart, IndexBusy, KeyhopError, RunConflict, Stopped
from keyhop.jobs.journal import Journal
from keyhop.jobs.local import check_is_begun
from keyhop.jobs.task import TaskOptions, noted_examples
from keyhop.key_index.index import check_has_one, check_place, check_shape, table_with_index
from keyhop.key_index.keeper import Collections, keep
from keyhop.key_index.life_cycle import LifeCycle, all_steps
from keyhop.key_index.protocol import GRACE_SECONDS, UNSEEN_KEEPER
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
    estimate_facts,
    estimate_text,
    report_of,
    report_text,
    status_report,
    with_earlier_round,
)
from keyhop.key_index.request import Build, Order, Remove, Verify, WalkInput
from keyhop.key_index.sentinel import INDEX, MARKER, Sentinel
from keyhop.key_index.task import LONGEST_GRACE_SECONDS, WalkTask
from keyhop.key_index.trust import Keeper
from keyhop.public.deployment import BUCKET, FAILURE_QUEUE, find_outputs
from keyhop.public.runs import OwnStop, Progress, check_estimate, complete, opened_job, waiting
from keyhop.public.tables import IndexRecord, OpenTable, open_table
from keyhop.retries import DEFAULT_PATIENCE_SECONDS
from keyhop.storage.local import Directory
from keyhop.streams.dead_letters import DeadLetters, Reworked
from keyhop.wording import counted

ACTIVITIES = {
    "check": "checking",
    "build": "building",
    "verify": "verifying",
    "remove": "removing",
}
"""The activity of each kind of walk."""

LOCAL_SETTLE_SECONDS = 1

ACTION, ACTION_VERSION = "action.json", 1
"""The file that says to which action the walks in a directory belong, and its format."""

_ABOVE_ZERO = Must(number(5e-324), "a number above 0")
_ACCEPT = Must(some_of(UNSEEN_KEEPER), f"a list of {UNSEEN_KEEPER!r}")
_ARGUMENTS = {
    "max_write_rate": _ABOVE_ZERO,
    "max_read_rate": _ABOVE_ZERO,
    "max_cost": _ABOVE_ZERO,
    "grace_seconds": Must(
        number(0, LONGEST_GRACE_SECONDS), f"a number from 0 to {LONGEST_GRACE_SECONDS:g}"
    ),
}


@dataclass(frozen=True, slots=True)
class IndexResult:
    """The result of a call of KeyIndex; after a dry run, its estimate. `repr` shows no keys.

    Attributes:
        action: "build", "verify" or "remove".
        dry_run: Whether nothing was done; the figures are then expected ones, by a sample.
        collections: The number of partition keys.
        missing, surplus, occupied: The drift that a verification found: keys without a sentinel,
            sentinels without a key, and items of yours in the place of a sentinel.
        repaired: How much of it was repaired.
        read_units, write_units, dollars: The costs of the requests of DynamoDB.
        notes: Sentences for a person, such as what the service refused.
    """

    table: str
    action: str
    dry_run: bool
    collections: int
    missing: int
    surplus: int
    occupied: int
    repaired: int
    read_units: float
    write_units: float
    dollars: float
    notes: tuple[str, ...] = ()
    _report: Mapping[str, Any] = field(default_factory=dict, repr=False)
    _reports: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    _texts: Sequence[str] = field(default=(), repr=False)

    @property
    def drift(self) -> int:
        """The number of differences that the verification found, repaired or not."""
        return self.missing + self.surplus + self.occupied

    @property
    def reports(self) -> Sequence[Mapping[str, Any]]:
        """The figures of each walk over the table."""
        return self._reports

    def to_json(self) -> dict[str, Any]:
        """Return all figures, as `keyhop index ... --format json` prints them.

        They name up to ten keys of each kind of drift.
        """
        return dict(self._report)

    @property
    def facts(self) -> Sequence[tuple[str, str]]:
        """The names and values of an estimate, for a person; only after a dry run."""
        return tuple(estimate_facts(self._report))

    def to_text(self) -> str:
        """Return the result for a person. It names up to ten keys of each kind of drift."""
        return "\n".join(self._texts)


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """The state of a key index.

    Attributes:
        status: The status of the index, such as "ACTIVE"; None if there is none.
        is_trusted: Whether `list_keys` with method "auto" reads it.
        why_not: Why it does not.
    """

    table: str
    status: str | None
    is_trusted: bool
    why_not: str | None
    _report: Mapping[str, Any] = field(repr=False)
    _text: str = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return all that is known, as `keyhop index status --format json` prints it."""
        return dict(self._report)

    def to_text(self) -> str:
        """Return the state for a person."""
        return self._text


Approve = Callable[[str, Callable[[], IndexResult | None]], None]
"""Is called with an action, and what estimates it (None if nothing would be done)."""


class KeyIndex:
    """The key index of one table, which lists its partition keys and is always there.

    Its record and the lease on it are those of a deployment, or of this machine. The lease makes
    builds, verifications and removals exclude each other, also those of other processes.

    Several threads may share an object. A fork of the process cannot go on with a call; make
    another object there. An interrupted call can be repeated.

        index = keyhop.KeyIndex("Orders")
        index.build()
        assert index.verify(repair=False).drift == 0
    """

    def __init__(
        self,
        table: Any,
        *,
        session: Any = None,
        endpoint_url: str | None = None,
        stack: str | None = None,
        sentinel: str | None = None,
        patience: float = DEFAULT_PATIENCE_SECONDS,
        progress: Callable[[Progress], None] | None = None,
        approve: Approve | None = None,
        say: Callable[[str], None] | None = None,
        stop: Event | None = None,
    ) -> None:
        """Describe the table.

        Args:
            table, session, endpoint_url: See `list_keys`.
            stack: The name of the deployment whose record of the index counts. By default that of
                this machine counts.
            sentinel: The sort key of sentinels, a binary one as base64; by default that of the
                build, or else the least one.
            patience: Raise GaveUp when nothing but throttling and failures came for so many
                seconds.
            progress: Is called a few times a second during a walk over the table, in the calling
                thread.
            approve: Is called before anything is written, with the action and a function that
                estimates it. An exception that it raises ends the call.
            say: Is called with messages for a person, such as the reason of a wait.
            stop: An event that ends calls, with the exception Stopped, when it is set. Several
                objects may share it: a call never sets it.

        Raises:
            TableNotFound: The table does not exist.
            CannotStart: Another index has the name of the key index, or the stack does not exist.
        """
        self._opened = opened = open_table(table, session, endpoint_url, 0, patience)
        check_shape(opened.table)
        self._outputs = {} if stack is None else find_outputs(stack, opened.connection.endpoint)[0]
        self.stack = stack
        self._record = IndexRecord(opened.connection, self._outputs.get(BUCKET))
        self._registry = self._record.registry(opened.table)
        self._sentinel = sentinel
        self._patience = patience
        self._progress = progress or (lambda progress: None)
        self._approve = approve or (lambda action, estimate: None)
        self._say = say or (lambda text: None)
        self._stop = stop
        self.blocking: Mapping[str, Any] = {}
        """The report of what prevented the last build; `examples` has the keys, by kind."""

    def __repr__(self) -> str:
        where = "this machine" if self.stack is None else f"stack {self.stack}"
        return f"<keyhop.KeyIndex of {self._opened.table.bare_name}, by the record of {where}>"

    def status(self) -> IndexStatus:
        """Return the state of the index, and what the last verification found."""
        table, where = self._table_now(), self._registry.store.url("")
        if not self._record.is_shared:
            where += " (of this machine alone; that of a deployment: name its stack)"
        report, text = status_report(table, self._record.evidence(table), where)
        why_not = report["why_not"]
        return IndexStatus(table.bare_name, report["index"], why_not is None, why_not, report, text)

    def build(
        self,
        *,
        dry_run: bool = False,
        max_write_rate: float = DEFAULT_WRITE_RATE,
        max_read_rate: float | None = None,
        output: str | Path | None = None,
        resume: bool = False,
        max_cost: float | None = None,
    ) -> IndexResult:
        """Add the index, put a sentinel for each partition key, and verify.

        If items of yours are in the places of sentinels, the build is refused before it writes, and
        `blocking` reports their keys.

        Args:
            dry_run: Only estimate the cost, by a sample.
            max_write_rate: The maximum write units a second.
            max_read_rate: The maximum read units a second.
            output: A directory for the walks, which can then be resumed.
            resume: Continue the unfinished walks in `output`.
            max_cost: Raise BudgetSpent before anything is written if the lower end of the estimate
                is more dollars of reads and writes, and otherwise when it has cost so many.
                Requests that are in flight then are paid, too.

        Raises:
            IndexBusy: Another call or execution has the lease.
            CannotStart: The table cannot have a key index, or a sentinel's place is taken.
            KeyhopError: See keyhop.errors.
        """
        action = self._action(
            Build, max_write_rate, max_read_rate, output, resume, dry_run, max_cost=max_cost
        )
        if dry_run:
            return action.estimate()
        try:
            state = action.run()
        except CannotStart:
            self.blocking = action.blocking()
            raise
        result, notes = state["result"], []
        if result["capacity"] and result["capacity"]["refused"]:
            notes.append(result["capacity"]["refused"])
        if not result["verification"]["keeper"]:
            notes.append(
                "No keeper that can be seen from here follows the table's stream, so the index is "
                "true as of now: deploy one with keyIndex, or verify before you read it."
            )
        reports = dict(action.reports)
        reports["verification"] = reports.pop("verify")
        reports["verification"]["keeper"] = result["verification"]["keeper"]
        return action.result(reports, ("build", "verify"), notes)

    def verify(
        self,
        *,
        repair: bool = True,
        dry_run: bool = False,
        grace_seconds: float = GRACE_SECONDS,
        max_write_rate: float = DEFAULT_WRITE_RATE,
        max_read_rate: float | None = None,
        output: str | Path | None = None,
        resume: bool = False,
        max_cost: float | None = None,
    ) -> IndexResult:
        """Compare the index with the table, and repair the differences.

        Args:
            repair: Put missing sentinels, and delete surplus ones; otherwise only look.
            grace_seconds: How long a keeper may be behind before that counts as drift.
            dry_run, max_write_rate, max_read_rate, output, resume, max_cost: See `build`.

        Raises:
            IndexNotFound: The table has no key index.
            IndexBusy: Another call or execution has the lease.
            KeyhopError: See keyhop.errors.
        """
        more = {"repair": repair, "grace_seconds": grace_seconds, "max_cost": max_cost}
        action = self._action(
            Verify, max_write_rate, max_read_rate, output, resume, dry_run, **more
        )
        if dry_run:
            return action.estimate()
        result = action.run()["result"]
        report = action.reports["verify"]
        report["keeper"] = result["verification"]["keeper"]
        return action.result(report, ("verify",))

    def remove(
        self,
        *,
        sweep: bool = False,
        accept: Sequence[str] = (),
        dry_run: bool = False,
        max_write_rate: float = DEFAULT_WRITE_RATE,
        max_read_rate: float | None = None,
        output: str | Path | None = None,
        resume: bool = False,
    ) -> IndexResult:
        """Delete the sentinels, then the index.

        Args:
            sweep: Look for sentinels even if no index is known, by one strongly consistent read for
                each partition key.
            accept: "unseen-keeper": remove the index also if it cannot be seen whether a keeper
                follows the table, which would put the sentinels back.
            dry_run, max_write_rate, max_read_rate, output, resume: See `build`.

        Raises:
            CannotStart: There is nothing to remove, or a keeper follows the table.
            IndexBusy: Another call or execution has the lease.
            KeyhopError: See keyhop.errors.
        """
        if not _ACCEPT.check(accept):
            raise CannotStart(f"accept must be {_ACCEPT.be}, not {shown(accept)}.")
        action = self._action(
            Remove, max_write_rate, max_read_rate, output, resume, dry_run, sweep=sweep
        )
        action.accepts_unseen = UNSEEN_KEEPER in accept
        if dry_run:
            return action.estimate()
        result = action.run()["result"]
        if "skipped" in result:
            action.refuse()
        walked = action.reports.get("remove")
        sentence = "no sentinel remains"
        if count := result.get("elsewhere"):
            sentence = (
                f"{counted(count, 'item')} of yours with the attribute {MARKER!r} "
                f"{'is' if count == 1 else 'are'} left"
            )
        report = {**(walked or {"kind": "remove", **result}), "as_before": result["as_before"]}
        return action.result(
            report,
            ("remove",) if walked else (),
            [result["refused"]] if result["refused"] else (),
            f"The index {INDEX} is gone, and {sentence}.",
        )

    def redrive(
        self, *, queue: str | None = None, discard_old: bool = False, dry_run: bool = False
    ) -> Reworked:
        """Repair what the messages in the keeper's failure queue point to, and delete them.

        Args:
            queue: The URL of the queue; by default that of the stack.
            discard_old: Delete messages whose records the stream has forgotten, too. The index is
                then not trusted until the next verification.
            dry_run: Only count the messages in the queue, approximately, and those of other tables
                with them.

        Returns:
            The numbers of messages and keys; `is_clear` says whether none remains to be worked.

        Raises:
            IndexNotFound: The table has no key index.
            CannotStart: No queue is known, or trust cannot be withdrawn without the stack's record.
            KeyhopError: See keyhop.errors.
        """
        connection, table = self._opened.connection, self._table_now()
        check_has_one(table)
        url = queue or self._outputs.get(FAILURE_QUEUE)
        if not url:
            raise CannotStart(self._no_queue())
        letters = DeadLetters(
            aws_client("sqs", connection.endpoint),
            aws_client("dynamodbstreams", connection.endpoint),
            url,
            table.bare_name,
        )
        if dry_run:
            return Reworked(messages=letters.waiting())
        self._approve("redrive", lambda: None)
        place = self._registry.entry().place
        sentinel = self._place(table)
        check_place(connection, table, sentinel, place)
        collections = Collections(connection, table.name, sentinel, stop=self._stop or Event())
        return letters.work(
            lambda records, on_failure: keep(
                records, collections, on_failure, withdraw=partial(self._withdraw, OCCUPIED)
            ),
            partial(self._withdraw, DISCARDED) if discard_old else None,
        )

    def _table_now(self) -> Table:
        """Describe the table again: others, and earlier calls, may have changed it."""
        return table_with_index(self._opened.connection, self._opened.table.name)

    def _no_queue(self) -> str:
        if self.stack is None:
            return "No queue is known: give stack= with the name of the keeper's stack, or queue=."
        return (
            f"Stack {self.stack} has no output {FAILURE_QUEUE}: give queue=, or stack= with the "
            "name of the keeper's stack."
        )

    def _place(self, table: Table) -> Sentinel:
        """Return the place of the sentinels."""
        recorded = self._registry.entry().place if self._sentinel is None else None
        return recorded or Sentinel.of(table.space, self._sentinel)

    def _withdraw(self, why: str) -> None:
        """Withdraw the trust in the index; raise CannotStart without its record."""
        if not self._record.is_shared:
            raise CannotStart(
                "Only the record of the deployment can mark the index as unusable: give stack= "
                "with the name of the keeper's stack."
            )
        if self._registry.load().sentinel is None:
            raise CannotStart(
                f"Stack {self.stack} has no record of the key index of "
                f"{self._opened.table.bare_name!r}: give stack= with the name of the keeper's "
                "stack."
            )
        self._registry.withdraw(why)

    def _action(
        self,
        order_type: type[Order],
        max_write_rate: float,
        max_read_rate: float | None,
        output: str | Path | None,
        resume: bool,
        dry_run: bool,
        **more: Any,
    ) -> "_Action":
        """Return an action with checked arguments."""
        arguments = {"max_write_rate": max_write_rate, "max_read_rate": max_read_rate, **more}
        check_arguments(arguments, _ARGUMENTS)
        if resume and output is None:
            raise CannotStart("resume needs output: only walks in a directory can be resumed.")
        path = None if output is None else Path(output)
        if path is not None and resume:
            check_is_begun(path)
        order = order_type(table=self._opened.table.name, dry_run=dry_run, **arguments)
        return _Action(self, self._opened, order, path, resume)


class _Action:
    """One action on a key index, with its lease and its walks.

    Attributes:
        reports: The report of each walk that is done, by its kind.
        accepts_unseen: Whether the caller accepts that a keeper may be unseen.
    """

    def __init__(
        self, index: KeyIndex, opened: OpenTable, order: Order, output: Path | None, resume: bool
    ) -> None:
        self._index = index
        self._connection = opened.connection
        self._table = opened.table
        self._order = order
        self._output = output
        self._resume = resume
        self._name = command_name()
        self._journals: dict[str, Journal] = {}
        self._expected: int | None = None  # Collections, as counted last.
        self._is_lost = False
        self._stop = OwnStop(index._stop, self._connection.prices, order.max_cost)
        self._estimate = cache(self._look_ahead)
        self._wait = waiting(self._stop, index._say, self._connection.endpoint.is_loopback)
        self.reports: dict[str, dict[str, Any]] = {}
        self.accepts_unseen = False

    def run(self) -> Mapping[str, Any]:
        """Do all steps of the action, and return the state of the last one."""
        index, order = self._index, self._order
        self._check_can_resume()
        self._check_is_ours()
        if last := index._registry.entry().verification:
            self._expected = last["collections"]
        if order.max_cost is not None and not self._resume:
            self._refuse_if_too_expensive()
        if order.action != "verify" or order.repair:
            index._approve(order.action, self._estimate)
        with Heartbeat(index._registry, self._name, self._lease_is_lost):
            try:
                state = all_steps(self._life_cycle, self._walk, self._wait)
                self._write_action(has_ended=True)
                return state
            except CannotStart:
                if self.blocking():
                    self._write_action(has_ended=True)
                raise
            except Stopped:
                if self._is_lost:
                    raise IndexBusy(LOST) from None
                self._stop.check_spent()
                raise
            finally:
                # The next holder need not wait until the lease is stale.
                with suppress(KeyhopError, OSError):
                    index._registry.change(self._name, lease=None)

    def _check_can_resume(self) -> None:
        """Raise RunConflict if the walks in the directory are not those of this action."""
        if not self._resume or self._output is None:
            return
        action, order = Journal(Directory(self._output)).load(ACTION), self._order
        if action is None:
            return
        if (version := action.get("version")) != ACTION_VERSION:
            why = f"was written in format {version}; this Keyhop reads {ACTION_VERSION}"
        elif action["action"] != order.action:
            why = f"holds a {action['action']} of a key index, and no {order.action}"
        elif action["has_ended"]:
            why = f"holds a {order.action} of a key index that has ended"
        elif action["repair"] != order.repair:
            how = "repairs" if action["repair"] else "does not repair"
            why = f"holds a verification that {how}"
        else:
            return
        raise RunConflict(f"{self._output} {why}: begin another one, in another directory.")

    def _write_action(self, has_ended: bool) -> None:
        """Write down to which action the walks in the directory belong, if there is one."""
        if self._output is not None:
            order = self._order
            action = {"action": order.action, "repair": order.repair, "has_ended": has_ended}
            journal = Journal(Directory(self._output))
            journal.keep(ACTION, {"version": ACTION_VERSION, **action})

    def estimate(self) -> IndexResult:
        """Return the estimate of the action; raise CannotStart if there is nothing to do."""
        estimate = self._estimate()
        if estimate is None:
            self.refuse()
        return estimate

    def refuse(self) -> NoReturn:
        """Raise CannotStart: there is nothing to remove."""
        raise CannotStart(
            f"Table {self._table.bare_name!r} has no key index, and none is on record here. If "
            f"sentinels may be left in it, give sweep=True: that reads each collection, for about "
            "1.5 RRU a key."
        )

    def _refuse_if_too_expensive(self) -> None:
        """Raise BudgetSpent if the action costs more than its maximum for sure."""
        if (estimate := self._estimate()) is not None:
            check_estimate(estimate.to_json()["dollars_low"], self._order.max_cost)

    def _look_ahead(self) -> IndexResult | None:
        expected = self._life_cycle().expected()
        if expected is None:
            return None
        report = {name: value for name, value in expected.items() if name != "spent"}
        if "secondsOfWriting" in report:
            report["seconds_of_writing"] = report.pop("secondsOfWriting")
        return IndexResult(
            self._table.bare_name,
            self._order.action,
            True,
            expected["keys"]["estimate"],
            *(0, 0, 0, 0),
            expected["read_units"],
            expected["write_units"],
            expected["dollars"],
            _report=report,
            _reports=[report],
            _texts=[estimate_text(self._table.name, self._order.action, expected)],
        )

    def result(
        self,
        report: Mapping[str, Any],
        walks: Sequence[str],
        notes: Sequence[str] = (),
        sentence: str = "",
    ) -> IndexResult:
        """Return the result of the action, with the sums over these walks."""
        reports = [self.reports[walk] for walk in walks]
        last = reports[-1] if reports else {}
        is_verified = "verify" in walks
        missing, surplus, occupied = (
            last[name] if is_verified else 0 for name in ("missing", "surplus", "occupied")
        )
        read_units, write_units, dollars = (
            sum(row[name] for row in self.reports.values())
            for name in ("read_units", "write_units", "dollars")
        )
        return IndexResult(
            self._table.bare_name,
            self._order.action,
            False,
            last.get("collections", 0),
            missing,
            surplus,
            occupied,
            last.get("repaired", 0),
            read_units,
            write_units,
            dollars,
            notes=tuple(notes),
            _report=report,
            _reports=reports if is_verified else [report],
            _texts=[
                *(report_text(self._table.name, row) for row in reports),
                *([sentence] if sentence else ()),
            ],
        )

    def blocking(self) -> Mapping[str, Any]:
        """Return the report of what prevents a build, with the keys that somebody must correct."""
        named = noted_examples(self._journals["check"]) if "check" in self._journals else {}
        return {**self.reports["check"], "examples": named} if named else {}

    def _check_is_ours(self) -> None:
        """Raise CannotStart if a deployment keeps the index whose record is not used."""
        watch, stream, order = self._index._record.watch, self._table.stream, self._order
        reads_only = order.action == "verify" and not order.repair
        if self._index._record.is_shared or watch is None or stream is None or reads_only:
            return
        if keepers := watch.followers(stream):
            raise CannotStart(
                f"The key index of {self._table.bare_name!r} is kept by {keepers[0].function}: "
                "give stack= with the name of its stack, which has its record and its lease."
            )

    def _lease_is_lost(self) -> None:
        self._is_lost = True
        self._stop.set()

    def _life_cycle(self) -> LifeCycle:
        """Return the life cycle of the table in its current state."""
        index = self._index
        self._table = table_with_index(self._connection, self._order.table)
        return LifeCycle(
            self._order,
            self._connection,
            self._table,
            index._place,
            index._registry,
            Keeper(index._record.watch, self.accepts_unseen),
            self._journals.__getitem__,
            self._name,
            index._record.is_alive,
            LOCAL_SETTLE_SECONDS if self._connection.endpoint.is_loopback else FENCE_SECONDS,
            scaling=index._record.scaling,
        )

    def _walk(self, life_cycle: LifeCycle, values: Mapping[str, Any]) -> str:
        """Run a walk with progress; in a separate directory it can be resumed."""
        index, kind = self._index, values["walk"]["kind"]
        rounds = sum(name.startswith(kind) for name in self._journals)
        name = f"{kind}-{rounds + 1}" if rounds else kind
        fence_of = partial(Fence, index._registry, self._name, life_cycle.settle_seconds)

        def task_of(connection: Connection, options: TaskOptions) -> WalkTask:
            """Apply the limits of this call, even if another one has begun the walk."""
            return WalkTask(
                connection,
                {**options, "walk": values["walk"]},
                sentinel_of=lambda table: life_cycle.sentinel,
                fence_of=lambda *_: fence_of(),
            )

        with opened_job(
            self._connection,
            WalkInput.parse(values),
            {"key_index": task_of},
            self._output and self._output / name,
            resume=self._resume,
            stop=self._stop,
            patience=index._patience,
        ) as job:
            job.prepare(may_be_finished=self._resume)
            self._write_action(has_ended=False)
            complete(job, ACTIVITIES[kind], index._progress, index._say, self._expected)
        report = report_of(kind, life_cycle.order, job.journal)
        self._expected = report["collections"]
        self._journals[name] = job.journal
        self.reports[kind] = with_earlier_round(report, self.reports.get(kind))
        return name
