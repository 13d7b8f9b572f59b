"""A re-key of a table: `Rekey`."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from time import time
from typing import Any, get_type_hints

from keyhop.checks import Must, camel, number, shown
from keyhop.dynamodb.client import Connection, aws_client, connect
from keyhop.dynamodb.endpoint import Endpoint
from keyhop.dynamodb.schema import KeyAttribute, KeySpace, indexes_of
from keyhop.dynamodb.tables import StepResult, Table, look_up
from keyhop.dynamodb.units import BLOCK_BYTES, DEFAULT_WRITE_RATE, write_units
from keyhop.errors import (
    AwsRefused,
    CannotStart,
    KeyhopError,
    NotPermitted,
    RunConflict,
    Stopped,
    TableNotFound,
)
from keyhop.jobs.journal import Journal
from keyhop.jobs.local import check_is_begun
from keyhop.jobs.request import A_READ_RATE, READ_UNITS, TABLE_NAME, Request
from keyhop.public.deployment import BUCKET, Deployment, Run, find_outputs, open_stack
from keyhop.public.runs import (
    PREFIX,
    OwnStop,
    Progress,
    check_estimate,
    complete,
    opened_job,
    waiting,
)
from keyhop.public.tables import IndexRecord, open_table
from keyhop.rekey.backfill import check_unsharded
from keyhop.rekey.compare.digests import check_comparable, comparing_seconds
from keyhop.rekey.compare.looks import NOT_EQUAL
from keyhop.rekey.control import LEASE_SECONDS, NO_LIMIT, Side
from keyhop.rekey.cutover.change import (
    CONNECTIONS,
    REQUEST_SECONDS,
    SHUT_BY_STRAGGLERS,
    Change,
    Next,
    change_of,
)
from keyhop.rekey.cutover.deployed import Deployed, NotDeployed, Redriven
from keyhop.rekey.life_cycle.create import Creation, Starting, find_table, why_taken
from keyhop.rekey.life_cycle.end import Ending, How, settle_expiry
from keyhop.rekey.life_cycle.likeness import export_command
from keyhop.rekey.pair import SIDE_SUFFIX, Pair
from keyhop.rekey.plan.planning import DEFAULT_READ_UNITS, RekeyPlan, make_plan
from keyhop.rekey.plan.trial import possible_rate
from keyhop.rekey.request import (
    SHARDS,
    STRAGGLERS,
    BackfillInput,
    CutOverInput,
    VerifyInput,
    digests_of,
    key_attribute,
    with_digests,
)
from keyhop.rekey.side.layout import DEPLOYMENT, THROTTLE, TURNED
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.standing import (
    ACCEPTABLE,
    MOST_NAMED,
    WINDOW_DAYS,
    RekeyStatus,
)
from keyhop.rekey.template.load import load, read, text_of
from keyhop.rekey.transform import Transform
from keyhop.rekey.worker.images import SETTINGS
from keyhop.retries import DEFAULT_PATIENCE_SECONDS
from keyhop.sharding.key.schema import metadata_of
from keyhop.storage.local import DIGESTS, Directory
from keyhop.streams.event_source import Mappings
from keyhop.tasks import tasks_of, transform_of
from keyhop.wording import counted, duration

TRIES = 10
"""Attempts to change the control item, which other processes change, too."""

FUNCTION, QUEUE = "ReplicateArn", "RekeyFailureQueueArn"
"""Outputs of a stack that re-keys tables."""

ALONE = (
    "No function follows {} here: writes since the beginning of the copy are missing in {}, "
    "until verify finds and repairs them while no program writes."
)
NOBODY = "no deployment is known to follow it (start with remote=True)"

_LEASE = Must(number(10, 60), "a number of seconds from 10 to 60")
_DAYS = Must(number(0), "a number of days, 0 or more")
_PERCENT = Must(number(0, 100), "a percentage from 0 to 100")
_RATE = Must(number(0), "a number of write units a second, 0 or more")


@dataclass(frozen=True, slots=True)
class RekeyResult:
    """The result of a call of Rekey; after a dry run, what the call would do. `repr` shows no keys.

    Attributes:
        action: The name of the method.
        dry_run: Whether nothing was changed; the costs are then estimates.
        is_done: Whether this call has done the action to its end.
        obstacles: What prevents the action: settings that the new table could not have, shut gates,
            or the kinds of differences that a verification found, repaired or not.
        run: The run of a deployment that has just begun to do it; None if this process did it.
        read_units, write_units, dollars: The costs of the requests of this process.
        notes: Sentences for a person.
    """

    action: str
    dry_run: bool = False
    is_done: bool = False
    obstacles: tuple[str, ...] = ()
    run: Run | None = None
    read_units: float = 0.0
    write_units: float = 0.0
    dollars: float = 0.0
    notes: tuple[str, ...] = ()
    _report: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def acceptable(self) -> frozenset[str]:
        """The words of `accept` with which a change would go on; empty if none is enough."""
        if not ACCEPTABLE.keys() >= set(self.obstacles):
            return frozenset()
        return frozenset(ACCEPTABLE[gate] for gate in self.obstacles)

    def to_json(self) -> dict[str, Any]:
        """Return all that is known, as `keyhop rekey ... --format typed-json` prints it."""
        return dict(self._report)


Approve = Callable[[str, Callable[[], RekeyResult | None]], None]
"""Is called with an action, and what returns its dry run, or None if it has none."""


class Rekey:
    """A re-key of a live table: another table with the same items under another primary key.

    The methods are the steps of a re-key, in this order, and each can be repeated. The state is in
    a table beside the new one, which is named as that with the suffix .rekey. `start(remote=True)`
    records a deployment there, and later calls let that do the work: `verify`, `cutover` and
    `rollback` then return when a run has started. Otherwise this process does the work.

    Several threads and processes may share a re-key, and several threads an object. A fork of the
    process cannot go on with a call; make another object there.

        rekey = keyhop.Rekey("Orders", to="OrdersByDay")
        print(rekey.plan("by-day.yaml", partition_key="day").to_text())
        rekey.create("by-day.yaml", partition_key="day")
        rekey.start()
        assert not rekey.verify().obstacles
    """

    _tasks = staticmethod(tasks_of)

    def __init__(
        self,
        table: Any,
        to: str,
        *,
        session: Any = None,
        endpoint_url: str | None = None,
        stack: str | None = None,
        patience: float = DEFAULT_PATIENCE_SECONDS,
        progress: Callable[[Progress], None] | None = None,
        approve: Approve | None = None,
        say: Callable[[str], None] | None = None,
        stop: Event | None = None,
    ) -> None:
        """Describe the table.

        Args:
            table, session, endpoint_url: See `list_keys`. A cutover and other services need the
                credentials of the session, or of the environment, also if boto3's Table is given.
            to: The name of the table with the other primary key.
            stack: The name of the deployment that `start(remote=True)` records, and whose sharded
                tables and record of the key index count.
            patience: Raise GaveUp when nothing but throttling and failures came for so many
                seconds.
            progress: Is called a few times a second while items are copied or compared, in the
                calling thread.
            approve: Is called before anything is changed, and before `plan` or `verify` reads whole
                tables, with the action and a function that returns its dry run. An exception that
                it raises ends the call. `throttle`, `pause` and `resume` do not call it.
            say: Is called with messages for a person, such as the reason of a wait.
            stop: An event that ends calls, with the exception Stopped, when it is set. Several
                objects may share it: a call never sets it.

        Raises:
            TableNotFound: The table does not exist.
            CannotStart: The new table cannot have this name.
        """
        opened = open_table(table, session, endpoint_url, 0, patience)
        self._connection, self._table = opened.connection, opened.table
        self._source = self._table.bare_name
        _check_name(self._source, to)
        self.to = to
        self.pair = Pair(self._source, to, {})
        self.stack = stack
        endpoint = self._connection.endpoint
        self._client_of = None if endpoint.is_loopback else partial(aws_client, endpoint=endpoint)
        self._patience = patience
        self._progress = progress or (lambda progress: None)
        self._approve = approve or (lambda action, look: None)
        self._say = say or (lambda text: None)
        self._stop = stop
        self._deployment = cache(partial(_Deployment, endpoint=endpoint))

    def __repr__(self) -> str:
        return f"<keyhop.Rekey of {self._source} to {self.to}>"

    def plan(
        self,
        template: str | Path,
        *,
        partition_key: str | None = None,
        sort_key: str | None = None,
        accept: Iterable[str] = (),
        full: bool = False,
        max_read_units: float = DEFAULT_READ_UNITS,
        max_read_rate: float | None = None,
    ) -> RekeyPlan:
        """Try a template on a sample: the new keys, the costs, and whether an index would do.

        Args:
            template: The file that says how items are mapped, as YAML or JSON.
            partition_key: The name of the new partition key, or NAME:TYPE with the type S, N or B.
                By default as in the table.
            sort_key: The same for the sort key; "" for none.
            accept: What may differ in the new table, in the words of the plan.
            full: Read the whole table, and count all collisions.
            max_read_units: The maximum read units of the sample.
            max_read_rate: The maximum read units a second.

        Returns:
            The plan. Its `blocks` are what prevents the re-key.

        Raises:
            CannotStart: The template or an argument is wrong.
            KeyhopError: See keyhop.errors.
        """
        _check("max_read_units", READ_UNITS, max_read_units)
        _check("max_read_rate", A_READ_RATE, max_read_rate)
        pair, keys, transform = self._designed(template, partition_key, sort_key)
        sentinels = self._record.sentinels_of(self._table)
        if full:
            self._approve("plan", partial(self._estimate, "plan"))
        plan = make_plan(
            self._connection,
            pair.source,
            pair.destination,
            keys,
            transform,
            client_of=self._client_of,
            ours=None if sentinels is None else sentinels.item,
            is_sharded=self._shards_of(self.stack)(self._table),
            accepted=tuple(accept),
            max_read_units=max_read_units,
            max_read_rate=max_read_rate,
            full=full,
        )
        why = why_taken(self._connection, pair)
        return replace(plan, blocks=[*plan.blocks, why]) if why else plan

    def create(
        self,
        template: str | Path,
        *,
        partition_key: str | None = None,
        sort_key: str | None = None,
        accept: Iterable[str] = (),
        adopt: bool = False,
        lease: float = LEASE_SECONDS,
        dry_run: bool = False,
    ) -> RekeyResult:
        """Create the new table with the settings of the old one, and the table of the state.

        Args:
            template, partition_key, sort_key, accept: See `plan`.
            adopt: Use the existing table, which must be empty, with these keys and a stream.
            lease: How many seconds before the writes wait a cutover begins, from 10 to 60.
            dry_run: Only say how the new table would be made.

        Raises:
            CannotStart: The template is wrong, or the new table would lack something.
            RunConflict: The new table exists, and is not of this re-key.
            KeyhopError: See keyhop.errors.
        """
        _check("lease", _LEASE, lease)
        pair, keys, transform = self._designed(template, partition_key, sort_key)
        creation = Creation(
            self._connection,
            pair,
            keys,
            client_of=self._client_of,
            accepted=tuple(accept),
            adopt=adopt,
            lease=lease,
        )

        def look() -> RekeyResult:
            likeness = creation.look()
            refused = tuple(row.what for row in likeness.refused)
            report = {
                "source": pair.source,
                "destination": pair.destination,
                "class": transform.kind,
                "rows": [row.to_json() for row in likeness.rows],
                "refused": list(refused),
                "request": likeness.request,
            }
            return RekeyResult("create", True, obstacles=refused, _report=report)

        if dry_run:
            return look()
        self._approve("create", look)
        self._all_steps(creation.step)
        return RekeyResult("create", is_done=True, _report=self.status().to_json())

    def start(
        self,
        *,
        remote: bool = False,
        accept: Iterable[str] = (),
        max_write_rate: float = DEFAULT_WRITE_RATE,
        max_read_rate: float | None = None,
        max_cost: float | None = None,
        functions: str | Path | None = None,
        output: str | Path | None = None,
        resume: bool = False,
        dry_run: bool = False,
    ) -> RekeyResult:
        """Begin to follow the writes to the old table, and copy its items.

        Args:
            remote: Record the deployment `stack`, whose function follows the tables, and let it do
                the work of this and of later calls. Otherwise nothing follows, and writes to the
                old table are missing in the new one until `verify`.
            accept: ["shards"]: the table is a sharded one, and the template handles the suffixes.
            max_write_rate: The maximum write units a second.
            max_read_rate: The maximum read units a second.
            max_cost: Raise BudgetSpent before anything is read or written if the estimate is more
                dollars of reads and writes, and otherwise when it has cost so many. This estimate
                has no interval: it is made of the size and the number of items that DynamoDB
                reports, which are up to six hours old. Requests that are in flight at the maximum
                are paid, too. A deployment refuses by the upper end of its
                estimate, of all services.
            functions: The file of the template's functions, if it has any: only this text runs.
            output: A directory for the run, which can then be resumed.
            resume: Continue the unfinished run in `output`; with a deployment, `output` is the name
                of that run.
            dry_run: Only estimate the cost and the time.

        Raises:
            CannotStart: There is nothing to copy, or an argument is wrong.
            KeyhopError: See keyhop.errors.
        """
        accept = sorted(accept)
        limits = {"max_write_rate": max_write_rate, "max_read_rate": max_read_rate}
        limits["max_cost"] = max_cost
        values = {"rekey": self.to, **_fields(BackfillInput, **limits, accept=accept)}
        side = self._side()
        control = side.control()
        if control.serving != "source" or control.stage != "open":
            raise CannotStart(
                f"{self.to} serves already, or is about to: there is nothing to copy. See the "
                "status."
            )
        deployment = self._deployment_to_record(side) if remote else self._recorded(side)
        is_sharded = self._shards_of(self.stack if deployment is None else deployment.stack.name)
        if SHARDS not in accept:
            check_unsharded(self._table, is_sharded)
        estimate = partial(self._estimate, "start", max_write_rate)
        if dry_run:
            return estimate()
        path = _directory(deployment, functions, output, resume)
        stop = OwnStop(self._stop, self._connection.prices, max_cost)
        if not resume:
            self._refuse_if_too_expensive(max_cost, deployment, estimate)
            self._approve("start", estimate)
        followers = None
        if deployment is not None:
            side.tell(DEPLOYMENT, {"stack": deployment.stack.name})
            followers = deployment.followers()
        self._all_steps(Starting(self._connection, side.plan(), followers).step)
        if deployment is not None:
            return self._start_run("start", deployment, "RekeyBackfill", values, resume and output)
        items = self._table.source().item_count
        request = BackfillInput.parse(values)
        manifest = self._run_job(
            path, request, "copying", items, stop, resume, functions, is_sharded=is_sharded
        )
        notes = (ALONE.format(self._source, self.to),)
        return self._result("start", manifest, notes=notes)

    def throttle(self, rate: float | None) -> RekeyStatus:
        """Hold the copy under so many write units a second from now on; None for no limit.

        A rate of 0 is a pause. The copy of live writes is never slowed.
        """
        _check("rate", _RATE, rate)
        if rate == 0:
            return self.pause()
        return self._change_pace(rate=NO_LIMIT if rate is None else float(rate), paused=False)

    def pause(self) -> RekeyStatus:
        """Stop the copy for a while; live writes are followed on."""
        return self._change_pace(paused=True)

    def resume(self) -> RekeyStatus:
        """Continue the copy after a pause, at the last rate."""
        return self._change_pace(paused=False)

    def verify(
        self,
        *,
        repair: bool = True,
        share: float | None = None,
        max_read_rate: float | None = None,
        max_cost: float | None = None,
        functions: str | Path | None = None,
        output: str | Path | None = None,
        resume: bool = False,
        dry_run: bool = False,
    ) -> RekeyResult:
        """Compare the two tables item by item, and repair the differences.

        Args:
            repair: Repair what differs; otherwise only look. A repair deletes items of the new
                table that should not be there, but none from which no key of the old one follows.
            share: Compare only this share of the items, up to 1. That opens no gate of a cutover.
            max_read_rate, max_cost, functions, output, resume, dry_run: See `start`.

        Returns:
            The result. Its `obstacles` are the kinds of differences that were found.

        Raises:
            CannotStart: The re-key does not exist, or an argument is wrong.
            KeyhopError: See keyhop.errors.
        """
        more = {"repair": repair, "share": share, "max_read_rate": max_read_rate}
        more["max_cost"] = max_cost
        values = {"rekey": self.to, **_fields(VerifyInput, **more)}
        side = self._side()
        deployment = self._recorded(side)
        path = _directory(deployment, functions, output, resume)
        estimate = partial(self._estimate, "verify", share=share, read_rate=max_read_rate)
        if dry_run:
            check_comparable(side, repair)
            return estimate()
        stop = OwnStop(self._stop, self._connection.prices, max_cost)
        if not resume:
            self._refuse_if_too_expensive(max_cost, deployment, estimate)
            self._approve("verify", estimate)
        if deployment is not None:
            return self._start_run("verify", deployment, "RekeyVerify", values, resume and output)
        request = VerifyInput.parse(values)
        knowing: dict[str, Any] = {
            "stop": stop,
            "resume": resume,
            "functions": functions,
            "journal_of": lambda path: Journal(Directory(Path(path))),
        }
        items = 2 * self._table.source().item_count
        with ExitStack() as cleaning:
            path = path or Path(cleaning.enter_context(TemporaryDirectory(prefix=PREFIX)))
            beside = path / DIGESTS
            digests = self._run_job(beside, digests_of(request), "reading both", items, **knowing)
            request = with_digests(request, str(beside))
            manifest = self._run_job(path, request, "comparing", 0, **knowing)
        units = {
            name: round(digests.get(name, 0.0) + manifest.get(name, 0.0), 3)
            for name in ("read_units", "write_units")
        }
        return self._result("verify", {**manifest, **units})

    def shadow(self, percent: float, *, dry_run: bool = False) -> RekeyStatus:
        """Let routers make this percentage of their reads on both tables, and compare.

        Args:
            percent: From 0 to 100.
            dry_run: Only check whether the share may be changed.

        Raises:
            CannotStart: Shadow reads have found a real difference, which forbids a larger share.
            KeyhopError: See keyhop.errors.
        """
        _check("percent", _PERCENT, percent)
        side, share = self._side(), percent / 100
        status = self._status(side)
        real = status.shadowed["real"]
        if real and share > status.control.shadow:
            raise CannotStart(
                f"Shadow reads have found {counted(real, 'real difference')}: verify. The share "
                "can be raised when the routers that found them have ended or were restarted."
            )
        if dry_run:
            return status
        self._approve("shadow", lambda: None)
        for _ in range(TRIES):
            control = side.control()
            changed = control.changed(shadow=share)
            if changed == control or side.swap(control, changed):
                return self._status(side)
        raise CannotStart("The control item is changing too often: try again in a minute.")

    def cutover(
        self,
        *,
        accept: Iterable[str] = (),
        expect: int | None = None,
        freeze_limit: float | None = None,
        dry_run: bool = False,
    ) -> RekeyResult:
        """Let the new table serve. Writes wait for a few seconds, reads never do.

        If a step fails before the turn, the old table goes on serving.

        Args:
            accept: A list of "unmapped" (lose the items that cannot be mapped back) and
                "stragglers" (overwrite the items of writes that bypassed the routers).
            expect: How many routers must have reported. By default as it is recorded.
            freeze_limit: Go back if writes would wait for more seconds, from 6 to 20. By default as
                the last time, at first 10.
            dry_run: Only look at the gates.

        Returns:
            The result. Its `obstacles` are the gates that are shut.

        Raises:
            CannotStart: The new table serves already.
            KeyhopError: See keyhop.errors.
        """
        return self._change("cutover", "destination", accept, expect, freeze_limit, dry_run)

    def rollback(
        self,
        *,
        accept: Iterable[str] = (),
        freeze_limit: float | None = None,
        dry_run: bool = False,
    ) -> RekeyResult:
        """Let the old table serve again, by the steps of a cutover.

        Args:
            accept, freeze_limit, dry_run: See `cutover`, as its result and its errors.
        """
        return self._change("rollback", "source", accept, None, freeze_limit, dry_run)

    def redrive(self, *, dry_run: bool = False) -> Redriven:
        """Retry the records in the failure queue of the deployment's function.

        Args:
            dry_run: Only count the messages in the queue, approximately, as `left`.

        Returns:
            The numbers of messages that were settled, that remain, and of other re-keys.

        Raises:
            CannotStart: No deployment is known.
            KeyhopError: See keyhop.errors.
        """
        side = self._side()
        deployment = self._recorded(side)
        if deployment is None and self.stack is not None:
            deployment = self._deployment(self.stack)
        if deployment is None:
            raise CannotStart("No deployment is known to follow the tables: give stack=.")
        queue = deployment.deployed(self._connection, side.plan())
        if dry_run:
            count = queue.failed()
            if count is None:
                raise AwsRefused("The failure queue does not respond.")
            return Redriven(left=count)
        self._approve("redrive", lambda: None)
        return queue.redrive()

    def complete(
        self,
        *,
        window_days: float = WINDOW_DAYS,
        export: str | None = None,
        delete_source: str | None = None,
        dry_run: bool = False,
    ) -> RekeyResult:
        """End the re-key permanently after a cutover, and remove everything that Keyhop made.

        Args:
            window_days: How many days after the cutover a rollback must remain possible.
            export: A bucket to which the old table is exported first.
            delete_source: The name of the old table, to delete it. By default it is kept.
            dry_run: Only say what would be removed.

        Raises:
            CannotStart: It is too early, or the old table serves.
            KeyhopError: See keyhop.errors.
        """
        _check("window_days", _DAYS, window_days)
        report = {
            "serves": self.to,
            self._source: "is deleted" if delete_source else "is kept, and no longer kept true",
            "export": export or f"none; by hand: {export_command(self._table.arn)}",
            "way back": "none after this, but another re-key",
        }
        more = {"window_days": window_days, "export": export or "", "delete": delete_source or ""}
        return self._end("complete", report, dry_run, **more)

    def cancel(self, *, keep_new: bool = False, dry_run: bool = False) -> RekeyResult:
        """End the re-key before a cutover, and leave everything as it was before `create`.

        Args:
            keep_new: Do not delete the new table.
            dry_run: Only say what would be removed.

        Raises:
            CannotStart: The new table serves, or may be the only copy, because the old one does not
                exist any more; with keep_new, only the first.
            KeyhopError: See keyhop.errors.
        """
        fate = "is kept" if keep_new else "is deleted, with all that was copied"
        report = {"serves": self._source, self.to: fate}
        return self._end("cancel", report, dry_run, delete="" if keep_new else self.to)

    def status(self, *, counts: bool = True) -> RekeyStatus:
        """Return the progress of the re-key, its problems (`troubles`), and what to do next.

        Args:
            counts: Read all that `troubles` and `next` depend on; otherwise only the progress, for
                calls that are often repeated.

        Raises:
            CannotStart: No re-key to this table exists.
            RunConflict: It is a re-key of another table.
            KeyhopError: See keyhop.errors.
        """
        return self._status(self._side(), counts)

    def deployment(self) -> Deployment | None:
        """Return the deployment that does the work; None if this machine does it.

        Its method `follow` waits for the end of the `run` of a result.
        """
        return self._recorded(self._side())

    def move_expiry(self) -> None:
        """Let items expire in the table that serves only, if DynamoDB allows it now.

        A cutover and a rollback by this process do it themselves. Repeat it after one that a
        deployment made. `complete` does what then remains.
        """
        try:
            sentences = settle_expiry(self._connection, self._side())
        except KeyhopError as error:
            sentences = [f"items expire as before: {error}"]
        for sentence in sentences:
            self._say(f"  {sentence}")

    # --- the tables ---

    def _side(self) -> SideTable:
        """Return the side table of this pair; raise CannotStart or RunConflict without one."""
        side = SideTable(self._connection, self.to + SIDE_SUFFIX, stop=OwnStop(self._stop))
        try:
            pair = side.plan()
        except TableNotFound as error:
            raise CannotStart(
                f"There is no re-key of {self._source} to {self.to}: begin with plan, then create."
            ) from error
        if pair.source != self._source:
            raise RunConflict(
                f"{pair.destination} is being made of {pair.source}, and not of {self._source}: "
                "name another table as to=."
            )
        return side

    def _status(self, side: SideTable, counts: bool = True) -> RekeyStatus:
        pair = side.plan()
        if not counts:
            return RekeyStatus(pair, side.control(), time(), figures=side.all_told())
        table_of = partial(find_table, self._connection)
        return RekeyStatus.of(side, self._deployed(side, pair), time(), table_of=table_of)

    def _deployed(self, side: SideTable, pair: Pair) -> Deployed | NotDeployed:
        """Return the recorded deployment, or a placeholder if no deployment follows the streams."""
        deployment = self._recorded(side)
        if deployment is None:
            return NotDeployed(NOBODY)
        return deployment.deployed(self._connection, pair)

    def _change_pace(self, **more: Any) -> RekeyStatus:
        side = self._side()
        side.tell(THROTTLE, {"rate": None, "paused": False, **(side.told(THROTTLE) or {}), **more})
        return self._status(side)

    def _designed(
        self, template: str | Path, partition_key: str | None, sort_key: str | None
    ) -> tuple[Pair, KeySpace, Transform]:
        """Return the pair, the keys of the new table, and how items are mapped."""
        content, code = read(Path(template))
        keys = self._keys(partition_key, sort_key)
        pair = Pair(self._source, self.to, content, code)
        return pair, keys, load(content, self._table.space, keys, code, trusted=code)

    def _keys(self, partition_key: str | None, sort_key: str | None) -> KeySpace:
        """Return the given keys, those of the new table if it exists, or those of the old one."""
        source = self._table.space
        if not partition_key and not sort_key:
            table = find_table(self._connection, self.to)
            if table is not None and sort_key is None:
                return table.space
        partition = _attribute(partition_key, source) or source.partition[0]
        sort = source.sort if sort_key is None else _attribute(sort_key, source)
        if sort is not None and sort.name == partition.name:
            raise CannotStart(
                f"{sort.name!r} cannot be both keys of the new table: give another name as "
                "sort_key=, or an empty one for none."
            )
        return KeySpace((partition,), sort)

    def _shards_of(self, stack: str | None) -> Callable[[Table], bool]:
        """Return a test for sharded tables, by the metadata tables of this deployment.

        PlanRun knows other metadata tables, too.
        """

        def is_sharded(table: Table) -> bool:
            try:
                look_up(self._connection, metadata_of(table.bare_name, stack or ""))
            except (TableNotFound, NotPermitted):
                return False
            return True

        return is_sharded if stack else lambda table: False

    def _estimate(
        self,
        action: str,
        write_rate: float | None = None,
        share: float | None = None,
        read_rate: float | None = None,
    ) -> RekeyResult:
        """Estimate a copy or a comparison by the size of the table that DynamoDB reports."""
        source, prices = self._table.source(), self._connection.prices
        destination = find_table(self._connection, self.to) or self._table
        reads, writes = source.size_bytes / (2 * BLOCK_BYTES), 0.0
        if action == "verify":
            reads *= 4 * (share or 1.0)  # two tables, strongly consistent
        else:  # the second look at each page is strongly consistent
            reads *= 3
        if share is not None:  # each item of the share is looked up in the other table
            reads += 4 * source.item_count * share
        if write_rate is not None:
            each = write_units(int(source.mean_item_bytes or 0.0) or 1)
            writes = source.item_count * each * (1.0 + len(indexes_of(destination.description)))
        dollars = prices.dollars(reads, writes)
        report = {"items": source.item_count, "read_units": reads, "write_units": writes}
        report["dollars"] = dollars
        if write_rate is not None:
            report["seconds_of_writing"] = writes / possible_rate(
                write_rate, destination.throughput
            )
        if action == "verify":
            rows, size = 2 * source.item_count, 2.0 * source.size_bytes * (share or 1.0)
            seconds = comparing_seconds(rows * (share or 1.0), size)
            report["seconds_of_reading"] = max(seconds, reads / read_rate if read_rate else 0.0)
        return RekeyResult(
            action,
            dry_run=True,
            read_units=reads,
            write_units=writes,
            dollars=dollars,
            _report=report,
        )

    def _refuse_if_too_expensive(
        self,
        max_cost: float | None,
        deployment: "_Deployment | None",
        estimate: Callable[[], RekeyResult],
    ) -> None:
        """Raise BudgetSpent if this process would spend too much; a deployment does this too."""
        if deployment is None and max_cost is not None:
            check_estimate(estimate().dollars, max_cost)

    # --- a deployment ---

    def _recorded(self, side: SideTable) -> "_Deployment | None":
        """Return the deployment that `start` has recorded; None for this machine."""
        name = (side.told(DEPLOYMENT) or {}).get("stack")
        return None if name is None else self._deployment(name)

    def _deployment_to_record(self, side: SideTable) -> "_Deployment":
        name = (side.told(DEPLOYMENT) or {}).get("stack")
        if self.stack is None:
            raise CannotStart("remote needs the name of a deployment: give stack=.")
        if name not in (None, self.stack):
            raise CannotStart(
                f"The stack {name!r} follows the tables of this re-key: give stack={name}, or "
                "cancel the re-key first."
            )
        return self._deployment(self.stack)

    @cached_property
    def _record(self) -> IndexRecord:
        """The record of the key index: that of the deployment `stack`, or of this machine."""
        endpoint = self._connection.endpoint
        bucket = None if self.stack is None else find_outputs(self.stack, endpoint)[0][BUCKET]
        return IndexRecord(self._connection, bucket)

    def _start_run(
        self,
        action: str,
        deployment: "_Deployment",
        machine: str,
        values: Mapping[str, Any],
        resumed: str | Path | bool | None = None,
    ) -> RekeyResult:
        """Start a run of the deployment, or continue the run named `resumed`."""
        resume = {"resume": str(resumed)} if resumed else {}
        run = deployment.start({**values, **resume}, machine=machine)
        report = {"run": run.name, "execution": run.execution}
        return RekeyResult(action, run=run, _report=report)

    # --- this process ---

    def _run_job(
        self,
        path: Path | None,
        request: Request,
        activity: str,
        items: int,
        stop: OwnStop,
        resume: bool,
        functions: str | Path | None,
        **knowing: Any,
    ) -> Mapping[str, Any]:
        """Run a job in this process, and return its manifest. Raise Stopped.

        Args:
            items: About how many items will be read; 0 if that is unknown.
            knowing: Arguments of tasks_of.
        """
        if functions is not None:
            knowing["transform_of"] = partial(transform_of, trusted=text_of(Path(functions)))
        with opened_job(
            self._connection,
            request,
            self._tasks(sentinels_of=self._record.sentinels_of, **knowing),
            path,
            resume=resume,
            stop=stop,
            patience=self._patience,
        ) as job:
            job.prepare(may_be_finished=resume)
            try:
                complete(job, activity, self._progress, self._say, float(items) or None)
            except Stopped:
                stop.check_spent()
                raise
        return job.journal.manifest() or {}

    def _result(
        self, action: str, manifest: Mapping[str, Any], notes: tuple[str, ...] = ()
    ) -> RekeyResult:
        """Return the result of a job in this process."""
        reads, writes = manifest.get("read_units", 0.0), manifest.get("write_units", 0.0)
        counts = manifest.get("counts", {})
        dollars = round(self._connection.prices.dollars(reads, writes), 9)
        return RekeyResult(
            action,
            is_done=True,
            obstacles=tuple(name for name in NOT_EQUAL if counts.get(name)),
            read_units=reads,
            write_units=writes,
            dollars=dollars,
            notes=notes,
            _report={**manifest, "dollars": dollars},
        )

    def _all_steps(self, step: Callable[[], StepResult]) -> StepResult:
        """Do step after step until the last one. Raise Stopped."""
        is_local = self._connection.endpoint.is_loopback
        wait = waiting(OwnStop(self._stop), self._say, is_local)
        while not (result := step()).done:
            wait(result.says)
        return result

    def _check_stop(self) -> None:
        if self._stop is not None and self._stop.is_set():
            raise Stopped

    # --- the table that serves ---

    def _change(
        self,
        action: str,
        to: Side,
        accept: Iterable[str],
        expect: int | None,
        freeze_limit: float | None,
        dry_run: bool,
    ) -> RekeyResult:
        accept = sorted(accept)
        more = {"accept": accept, "expect": expect, "freeze_limit": freeze_limit}
        values = {"rekey": self.to, "to": to, **_fields(CutOverInput, **more)}
        side = self._side()
        control = side.control()
        if control.stage == "open" and control.serving == to:
            if not dry_run and side.told(TURNED) is not None:
                self.move_expiry()  # which a state machine does not do
            raise CannotStart(f"The {to} already serves: see the status.")
        deployment = self._recorded(side)
        change = partial(self._change_from_here, side, to, more)
        plan = _result_of_change(action, change().dry_run())
        if dry_run:
            return plan
        settles = STRAGGLERS in accept and bool(side.unsettled(1))
        only_settles = settles and set(plan.obstacles) <= SHUT_BY_STRAGGLERS
        if control.stage == "open" and plan.obstacles and not only_settles:
            return replace(plan, dry_run=False)
        self._approve(action, lambda: plan)
        if deployment is not None:
            return self._start_run(action, deployment, "RekeyCutOver", values)
        result = _result_of_change(action, change().run())
        if result.is_done:
            self.move_expiry()
        return result

    def _change_from_here(
        self,
        side: SideTable,
        to: Side,
        more: Mapping[str, Any],
    ) -> Change:
        """Return the change as made by this process, whatever follows the streams."""
        endpoint = self._connection.endpoint
        return change_of(
            connect(endpoint, CONNECTIONS, patience=REQUEST_SECONDS),
            self.to,
            to,
            aws_client("dynamodbstreams", endpoint),
            deployed=self._deployed(side, side.plan()),
            report=lambda step: self._say(f"  {step}"),
            check=self._check_stop,
            **more,
        )

    def _end(self, how: How, report: dict[str, str], dry_run: bool, **more: Any) -> RekeyResult:
        deployment = self._recorded(self._side())
        ending = Ending(
            self._connection,
            self.to,
            how,
            followers=None if deployment is None else deployment.followers(),
            client_of=self._client_of,
            **more,
        )
        ending.check(dry_run)
        if routers := ending.routers_of_last_day():
            named = [f"{name} ({duration(age)} ago)" for name, age in routers.items()]
            unnamed = f" and {len(named) - MOST_NAMED:,} more" if len(named) > MOST_NAMED else ""
            report["routers"] = (
                f"of the last day, with their last reports: {', '.join(named[:MOST_NAMED])}"
                f"{unnamed}; a router that is used again after this fails: take it out of the "
                "application first"
            )
        plan = RekeyResult(how, True, _report=report)
        if dry_run:
            return plan
        self._approve(how, lambda: plan)
        says = self._all_steps(ending.step).says
        return RekeyResult(how, is_done=True, _report={**report, "done": says})


class _Deployment(Deployment):
    """A deployment: a function follows the streams, and state machines do the rest."""

    def __init__(self, name: str, endpoint: Endpoint) -> None:
        super().__init__(open_stack(name, endpoint))
        if FUNCTION not in self.stack.outputs:
            raise CannotStart(
                f"The stack {name!r} re-keys no tables: name the pair in the field rekey of its "
                "keyhop.json, and deploy it again."
            )
        self._lambda = self.stack.client("lambda")
        self._function, self._queue = self.stack.outputs[FUNCTION], self.stack.outputs[QUEUE]

    def followers(self) -> Mappings:
        """Return the event source mappings of the function that follows the streams."""
        return Mappings(self._lambda, self._function, self._queue, settings=SETTINGS)

    def deployed(self, connection: Connection, pair: Pair) -> Deployed:
        """Return the deployment as a cutover of this pair sees it."""
        sqs = self.stack.client("sqs")
        return Deployed(
            self._lambda,
            sqs,
            self._function,
            self._queue,
            pair,
            lambda name: None if (table := find_table(connection, name)) is None else table.stream,
        )


def _result_of_change(action: str, result: Next) -> RekeyResult:
    is_refused = result.action in ("looked", "refused")
    return RekeyResult(
        action,
        dry_run=result.action == "looked",
        is_done=result.action == "done",
        obstacles=tuple(gate.name for gate in result.gates if is_refused and not gate.is_open),
        _report=result.to_json(),
    )


def _directory(
    deployment: _Deployment | None,
    functions: str | Path | None,
    output: str | Path | None,
    resume: bool,
) -> Path | None:
    """Return the directory of a run here; raise CannotStart or RunConflict for wrong arguments."""
    if resume and output is None:
        raise CannotStart(
            "resume needs output: a directory, or with a deployment the name of a run."
        )
    if deployment is not None:
        flags = {"functions=": functions, "output=": None if resume else output}
        if names := [name for name, value in flags.items() if value]:
            raise CannotStart(
                f"The deployment {deployment.stack.name!r} does the work of this re-key: leave out "
                f"{' and '.join(names)}."
            )
        return None
    path = None if output is None else Path(output)
    if resume:
        check_is_begun(Path(output or ""))
    return path


def _attribute(text: str | None, source: KeySpace) -> KeyAttribute | None:
    """Return the key attribute in NAME or NAME:TYPE; None if the text is empty."""
    if not text:
        return None
    name, type_ = key_attribute(text)
    return KeyAttribute(name, type_ or source.types.get(name, "S"))


def _check_name(source: str, new: str) -> None:
    if new == source:
        raise CannotStart("to= must name another table than the one that is re-keyed.")
    if not (TABLE_NAME.fullmatch(new) and TABLE_NAME.fullmatch(new + SIDE_SUFFIX)):
        raise CannotStart(
            f"{new!r} cannot be the name of the new table: it must have 3 to 249 of a-z A-Z 0-9 _ "
            f". -, because the side table has the same name, with {SIDE_SUFFIX} at its end."
        )


def _check(name: str, must: Must, value: Any) -> None:
    if value is not None and not must.check(value):
        raise CannotStart(f"{name} must be {must.be}, not {shown(value)}.")


def _fields(shape: type, **arguments: Any) -> dict[str, Any]:
    """Return arguments that are not left out as fields of an input; raise CannotStart."""
    hints = get_type_hints(shape, include_extras=True)
    for name, value in arguments.items():
        _check(name, hints[name].__metadata__[0], value)
    return {camel(name): value for name, value in arguments.items() if value not in (None, [])}
