"""The shards of the keys of a sharded table: `Shards`."""

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event
from typing import Any, Literal, TypeVar

from keyhop.checks import Must, check_arguments, number, whole
from keyhop.checks import shown as value_shown
from keyhop.clock import Clock, SystemClock
from keyhop.dynamodb.client import NamedTable
from keyhop.dynamodb.tables import Table
from keyhop.dynamodb.units import BLOCK_BYTES
from keyhop.dynamodb.values import TypedValue
from keyhop.errors import BrokenPromise, CannotStart, GaveUp, Stopped, TableNotFound
from keyhop.jobs.estimate import PredictUnits
from keyhop.jobs.local import LocalJob
from keyhop.keys.request import keys_request
from keyhop.public.deployment import SHARD_METADATA, explaining, find_outputs
from keyhop.public.runs import (
    LOOK_SECONDS,
    OwnStop,
    Progress,
    check_estimate,
    opened_job,
    progress_of,
)
from keyhop.public.tables import open_table
from keyhop.retries import DEFAULT_PATIENCE_SECONDS
from keyhop.sharding.drain import Drain, Next
from keyhop.sharding.io.items import typed
from keyhop.sharding.key.placement import Hash, Placement
from keyhop.sharding.key.policy import Policy
from keyhop.sharding.key.schema import DEFAULT_SEPARATOR, schema_of
from keyhop.sharding.key.shards import DRAINING, MOST_SHARDS, Phase, from_item
from keyhop.sharding.key.shards import Shards as Metadata
from keyhop.sharding.key.texts import escaped, phase_text, shards_text, shown, typed_json
from keyhop.sharding.logical_keys import KnownShards, check_is_metadata
from keyhop.sharding.manage import (
    KeyShards,
    TooEarly,
    add_shards,
    check_maximum,
    list_keys,
    look_at_shard,
)
from keyhop.sharding.recover import LostKey, LostKeys, has_gaps, look_at_all_shards, recover
from keyhop.sharding.store.listing import all_keys
from keyhop.sharding.store.metadata import MetadataChanged
from keyhop.sharding.store.table_item import CLAIM_KEY, TOTAL_KEY, is_claim, total_key
from keyhop.sharding.store.traffic import traffic_of
from keyhop.sharding.table import ShardedTable
from keyhop.tasks import tasks_of
from keyhop.wording import counted

T = TypeVar("T")

STEP_SECONDS = 1.0
"""A drain moves items for so long before it checks whether it is to stop."""

LEAST_WAIT_SECONDS = 0.05

ADD_UNITS = 3.0
"""Write units of an addition: the metadata of the key is written up to three times."""

RECOVERY_UNITS = 2.0
"""Write units of the metadata of a key that is recovered."""

MOVE_UNITS = 4
"""Write units for each KB of an item that is moved: a put and a delete, in a transaction."""


MOST_LOOKS = 16
"""The maximum number of shards of which an estimate reads a page, up to 1 MB."""

_ARGUMENTS = {"max_cost": Must(number(5e-324), "a number above 0")}


@dataclass(frozen=True, slots=True)
class ShardChange:
    """The result of `add`, `drain` or `call_off`; after a dry run, its estimate.

    `repr` does not show the key.

    Attributes:
        action: "add", "drain" or "call off".
        key: A str or bytes.
        dry_run: Whether nothing was changed; the figures are then expected ones.
        before, after: The number of shards.
        items: The number of items that were moved.
        is_least: Whether the figures are lower bounds, because a shard is larger than the page of
            it that was read for the estimate, or not all shards were looked at.
        read_units, write_units, dollars: The costs.
        seconds: The duration of the change.
    """

    action: str
    key: Any = field(repr=False)
    dry_run: bool
    before: int
    after: int
    items: int = 0
    is_least: bool = False
    read_units: float = 0.0
    write_units: float = 0.0
    dollars: float = 0.0
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return all figures, as `keyhop shards ... --format typed-json` prints them."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {**values, "key": typed_json(self.key)}


Approve = Callable[[str, Callable[[], Any]], None]
"""Is called with an action, and what returns its estimate: a ShardChange, or lost keys."""


class Shards:
    """The shards of the keys of one table, which `ShardedTable` writes and reads.

    Its metadata table is given, or is what the stack names for the table, or is called
    TABLE-shards; `metadata` and `metadata_reason` say which one and why.

    Several threads and processes may share a table, and several threads an object. A fork of the
    process cannot go on with a call; make another object there. An interrupted call can be
    repeated: it continues with what the metadata says.

        shards = keyhop.Shards("Audit")
        shards.add("/f.txt", 3)
        assert shards.show("/f.txt").shards.number == 4
    """

    _clock: Clock = SystemClock()

    def __init__(
        self,
        table: Any,
        *,
        session: Any = None,
        endpoint_url: str | None = None,
        stack: str | None = None,
        metadata: str | None = None,
        placement: Literal["random", "calculated"] | None = None,
        hash: Hash = "jump",
        append_only: bool = False,
        separator: str = DEFAULT_SEPARATOR,
        patience: float = DEFAULT_PATIENCE_SECONDS,
        progress: Callable[[Progress], None] | None = None,
        approve: Approve | None = None,
        approve_reads: Callable[[PredictUnits, float | None], None] | None = None,
        say: Callable[[str], None] | None = None,
        stop: Event | None = None,
    ) -> None:
        """Describe the table and its metadata table.

        Args:
            table, session, endpoint_url: See `list_keys`.
            stack: The name of the deployment that names the metadata table in its outputs.
            metadata: The name of the metadata table, if it is another one.
            placement, hash, append_only, separator: How writers choose shards (see ShardedTable),
                for a table to which nothing was written yet; otherwise the metadata says it.
            patience: Give up when nothing but throttling and failures came for so many seconds.
            progress: Is called a few times a second during a drain, and while keys are read.
            approve: Is called before anything is written, except by `call_off`, with the action and
                a function that estimates it. An exception that it raises ends the call.
            approve_reads: Is called before `recover` lists the keys; see `approve` of `list_keys`.
            say: Is called with messages for a person, such as the reason of a wait.
            stop: An event that ends calls, with the exception Stopped, when it is set. Several
                objects may share it: a call never sets it.

        Raises:
            TableNotFound: The table or its metadata table does not exist.
            NotPermitted: One of them may not be read.
            CannotStart: The table cannot be sharded, or this is not its metadata table.
        """
        if placement not in (None, "random", "calculated"):
            raise CannotStart(f"placement is {placement!r}; it must be 'random' or 'calculated'.")
        opened = open_table(table, session, endpoint_url, 0, patience)
        self._connection, self._described = connection, described = opened.connection, opened.table
        self._schema = schema_of(described.space, described.name, separator)
        outputs = {} if stack is None else find_outputs(stack, connection.endpoint)[0]
        self.metadata, self.metadata_reason = _metadata_of(described, metadata, stack, outputs)
        try:
            check_is_metadata(connection, self.metadata, described.space)
        except TableNotFound as error:
            if metadata is not None:
                raise
            raise TableNotFound(
                f"{error} It would be the shard-metadata table ({self.metadata_reason}): give "
                "metadata= with its name, or stack= with the name of the deployment that has it."
            ) from error
        self._placement = placement and Placement(placement == "calculated", hash, append_only)
        self._patience = patience
        self._progress = progress or (lambda progress: None)
        self._approve = approve or (lambda action, estimate: None)
        self._approve_reads = approve_reads
        self._say = say or (lambda text: None)
        self._stop = stop or Event()

    def __repr__(self) -> str:
        return f"<keyhop.Shards of {self._described.bare_name}, by the table {self.metadata}>"

    def list(self, *, all: bool = False) -> tuple[KeyShards, ...]:
        """Return the keys with more than one shard, those with the most shards first.

        This reads the whole metadata table: a read unit for each 4 KB.

        Args:
            all: Return all keys.
        """
        with self._explaining():
            keys = []
            for key in list_keys(self._table_to_read()):
                self._check_stop()
                is_steady = key.shards.phase is Phase.STEADY
                if all or not is_steady or max(key.shards.number, key.shards.readable) > 1:
                    keys.append(key)
        return tuple(sorted(keys, key=lambda key: (-key.shards.number, shown(key.key))))

    def show(self, key: str | bytes) -> KeyShards:
        """Return the shards of a logical key, by a strongly consistent read.

        Raises:
            CannotStart: The key has no metadata.
        """
        with self._explaining():
            return self._get(key)

    def add(
        self, key: str | bytes, count: int = 1, *, wait: bool = True, dry_run: bool = False
    ) -> ShardChange:
        """Add shards to a key. A key that was never written to is registered.

        Readers read the new shards at once. Writers use them when every reader knows.

        Args:
            count: How many to add; each query of the key reads all of its shards.
            wait: Wait until writers use the new shards.
            dry_run: Only estimate the cost.

        Raises:
            CannotStart: The key is being drained, or would have too many shards, or it is not known
                how writers choose shards.
            KeyhopError: See keyhop.errors.
        """
        _check("count", count)
        with self._explaining():
            stored = self._find(self._logical(key))
            before, number = (None, 1) if stored is None else (stored.shards, stored.shards.number)
            if before is not None:
                _check_is_not_drained(key, before)
            check_maximum(number, count, MOST_SHARDS)
            table = self._agreed(before)
            cost = self._cost(0.0, ADD_UNITS)
            plan = ShardChange("add", key, True, number, number + count, **cost)
            if dry_run:
                return plan
            self._approve("add", lambda: plan)
            began = self._clock.monotonic()
            shards = self._grown(table, key, plan.after)
            self._say(
                f"{shown(key)}: {shards_text(shards.number)} from now on. Readers read them at "
                f"once; writers use them after {shards.settle:g} s, when all readers know."
            )
            if wait:
                self._wait_for_writers(table, key, plan.after)
                self._say(f"Writers use {shards_text(plan.after)} of {shown(key)} now.")
            return self._done(plan, table, began, shards.number)

    def drain(self, key: str | bytes, shards: int, *, dry_run: bool = False) -> ShardChange:
        """Move the items off a key's last shards, and stop reading those.

        A drain takes at least four times the `settle` of the key. While it is under way the key
        gets no new shards; if it becomes hot, its writers call the drain off.

        Args:
            shards: How many the key keeps.
            dry_run: Only estimate the cost, by the first page of each shard that would be emptied,
                of up to 16.

        Raises:
            CannotStart: The key has no metadata, or a drain to another number is under way.
            GaveUp: The drain was called off.
            KeyhopError: See keyhop.errors.
        """
        _check("shards", shards)
        with self._explaining():
            before = self._get(key).shards
            table = self._agreed(before)
            if before.phase not in DRAINING and before.number <= shards:
                count = shards_text(before.number)
                self._say(f"{shown(key)} has {count}: there is nothing to drain.")
                return ShardChange("drain", key, dry_run, before.number, before.number)
            if before.phase in DRAINING and before.number != shards:
                raise CannotStart(
                    f"{shown(key)} is being drained to {shards_text(before.number)}: go on with "
                    f"shards={before.number}, or call it off."
                )
            estimate = partial(self._estimate_moves, table, key, before, shards)
            if dry_run:
                return estimate()
            self._approve("drain", estimate)
            return self._drained(table, key, before, shards)

    def call_off(self, key: str | bytes) -> ShardChange:
        """End a drain that is under way, and use all shards again. Moved items stay where they are.

        Raises:
            CannotStart: No drain of the key is under way.
            GaveUp: The drain has ended before it could be called off.
            KeyhopError: See keyhop.errors.
        """
        with self._explaining():
            began, before = self._clock.monotonic(), self._get(key).shards
            table = self._agreed(before)
            if before.phase not in DRAINING:
                raise CannotStart(f"No drain of {shown(key)} is under way ({before.phase}).")
            while (step := Drain(table).call_off(key)).action is not Next.DONE:
                self._wait_until(step.seconds, "the last step has settled")
            shards = self._get(key).shards
            if shards.phase is Phase.STEADY and shards.number == before.number:
                raise GaveUp(
                    f"Too late: the drain of {shown(key)} has ended, with "
                    f"{shards_text(before.number)}; add gives it more."
                )
            self._say(f"{shown(key)}: {shards.phase}: {phase_text(shards)}.")
            change = ShardChange("call off", key, False, before.number, shards.number)
            return self._done(change, table, began, shards.number)

    def recover(
        self,
        key: str | bytes | None = None,
        *,
        with_gaps: bool = False,
        max_cost: float | None = None,
        dry_run: bool = False,
    ) -> tuple[LostKey, ...]:
        """Restore shard metadata that was deleted, from the keys of the table.

        It lists the table's keys, as `list_keys` does and for that price. A key whose metadata is
        gone, or has fewer shards than have items, gets as many as the greatest number that one of
        its physical keys ends in. Writers and readers continue in the meantime. Do not recover keys
        that the application wrote without Keyhop: their items would then be overwritten. Use a
        `separator` that they do not have, and a new metadata table.

        Args:
            key: Only this logical key: each of 1,000 possible shards is looked at.
            with_gaps: Recover also keys of which some shards hold nothing, as ordinary keys look
                that end in a number.
            max_cost: The maximum dollars of listing the keys; see `list_keys`.
            dry_run: Only find the lost keys.

        Returns:
            All lost keys, with what became of each. Those with gaps come last.

        Raises:
            CannotStart: It is not known how writers choose shards, or an argument is wrong.
            KeyhopError: See keyhop.errors.
        """
        check_arguments({"max_cost": max_cost}, _ARGUMENTS)
        with self._explaining():
            table = self._agreed(None)
            if key is None:
                lost_keys = self._find_lost_keys(table, max_cost)
            else:
                self._logical(key)
                lost = look_at_all_shards(table, key)
                lost_keys = () if lost is None or lost.shards <= lost.known else (lost,)
            if not dry_run and any(with_gaps or not lost.has_gaps for lost in lost_keys):
                self._approve("recover", lambda: lost_keys)
                lost_keys = tuple(
                    self._recovered(table, lost) if with_gaps or not lost.has_gaps else lost
                    for lost in lost_keys
                )
            return lost_keys

    def _find_lost_keys(self, table: ShardedTable, max_cost: float | None) -> tuple[LostKey, ...]:
        """List all partition keys in a run that keeps no files, and return those that are lost."""
        known, began = KnownShards(), self._clock.time()
        known.learn(all_keys(table.requests, self.metadata, self._schema.partition), began)
        # By then no writer uses metadata any more that was lost before.
        self._wait_until(table.metadata.settle, "no process uses the lost metadata")
        lost_keys = LostKeys(table.schema, known)
        prices = self._connection.prices
        maximum = None if max_cost is None else prices.units_for(max_cost)
        with opened_job(
            self._connection,
            keys_request(self._described.name, max_read_units=maximum),
            tasks_of(),
            None,
            resume=False,
            stop=OwnStop(self._stop),
            patience=self._patience,
        ) as job:

            def approve(job: LocalJob, predicted_units: PredictUnits) -> None:
                if max_cost is not None:
                    check_estimate(
                        prices.dollars(predicted_units(lambda units: True).low), max_cost
                    )
                if self._approve_reads is not None:
                    self._approve_reads(predicted_units, job.request.max_read_units)

            job.approve = approve
            job.prepare(self._described)
            job.begin()
            progress = partial(progress_of, job)
            self._progress(progress())
            try:
                if not job.work(lambda: self._progress(progress()), self._say, lost_keys):
                    raise Stopped
            finally:
                self._progress(progress(is_over=True))
        units = job.reader.usage.read_units
        self._say(
            f"{counted(job.group.keys, 'physical key')} read, for {units:,.1f} RRU: "
            f"${prices.dollars(units):,.6f} ({prices.on_demand})"
        )
        looked_at = (replace(lost, has_gaps=has_gaps(table, lost)) for lost in lost_keys.all())
        return tuple(sorted(looked_at, key=lambda lost: lost.has_gaps))

    def _recovered(self, table: ShardedTable, lost: LostKey) -> LostKey:
        """Recover the metadata of a key, or note why that is not possible."""
        try:
            self._settled(partial(recover, table, typed(lost.key), lost.shards))
        except (CannotStart, BrokenPromise) as error:
            return replace(lost, error=str(error))
        return replace(lost, recovered=True)

    def _grown(self, table: ShardedTable, key: str | bytes, count: int) -> Metadata:
        """Return the metadata once it has `count` shards; other processes may have added them."""

        def grow() -> Metadata:
            stored = table.metadata.of(typed(key), register=True, fresh=True)
            if stored.shards.number >= count:
                return stored.shards
            try:
                return add_shards(table, key, count - stored.shards.number).shards
            except TooEarly:
                _check_is_not_drained(key, stored.shards)
                raise

        return self._settled(grow)

    def _settled(self, change: Callable[[], T]) -> T:
        """Try a change of the metadata until the last one has settled, and nobody interferes."""
        while True:
            try:
                return change()
            except TooEarly as early:
                self._wait_until(early.seconds, "the last change has settled")
            except MetadataChanged:
                self._wait(0)

    def _wait_for_writers(self, table: ShardedTable, key: str | bytes, count: int) -> None:
        while True:
            stored = table.metadata.of(typed(key), fresh=True)
            stored = table.writer.throttle_tracker.pass_on(typed(key), stored)
            if stored.shards.writable >= count or stored.shards.number < count:
                return
            seconds = stored.shards.settle - table.metadata.known_for(stored)
            self._wait_until(max(0.0, seconds), "writers use them")

    def _estimate_moves(
        self, table: ShardedTable, key: str | bytes, before: Metadata, shards: int
    ) -> ShardChange:
        """Estimate a drain by the first page of each shard that it empties. If these are many, of
        the oldest, which may have the most items.
        """
        last = max(before.number, before.readable)
        emptied = range(shards + 1, last + 1)
        looked_at = emptied[:MOST_LOOKS]
        items, read_units, write_units, is_least = 0, 0.0, 0.0, len(looked_at) < len(emptied)
        for shard in looked_at:
            count, size, is_whole = look_at_shard(table, typed(key), shard)
            items += count
            read_units += size / BLOCK_BYTES
            write_units += count * MOVE_UNITS * math.ceil(size / max(1, count) / 1024)
            is_least = is_least or not is_whole
        cost = self._cost(read_units, write_units)
        return ShardChange("drain", key, True, last, shards, items, is_least, **cost)

    def _drained(
        self, table: ShardedTable, key: str | bytes, before: Metadata, shards: int
    ) -> ShardChange:
        """Take all steps of a drain."""
        self._say(
            f"Draining {shown(key)} to {shards_text(shards)}, with {before.settle:g} s for each of "
            "four steps and more. Readers and writers go on."
        )
        work, began = Drain(table), self._clock.monotonic()
        moves, phase, has_begun = 0, Phase.STEADY, False

        def show(seconds: float = 0.0, is_over: bool = False) -> None:
            usage = table.usage
            spent = usage.read_units, usage.write_units, usage.throttles.total()
            self._progress(
                Progress(0, None, 0.0, 0, 0, *spent, 0, is_over, phase.value, moves, seconds)
            )

        try:
            while True:
                step = work.step(key, shards, STEP_SECONDS, begun=has_begun)
                has_begun = step.begun
                moves += step.moved
                if step.action is Next.DONE:
                    break
                if step.action is Next.CALLED_OFF:
                    raise GaveUp(
                        f"The drain of {shown(key)} was called off, or the key became hot: it has "
                        f"{shards_text(step.shards.number)} again."
                    )
                if step.shards.phase is not phase:
                    phase = step.shards.phase
                    self._say(f"  {phase}: {phase_text(step.shards)}")
                self._wait(step.seconds if step.action is Next.WAIT else 0.0, show)
        finally:
            show(is_over=True)
        last = max(before.number, before.readable)
        change = ShardChange("drain", key, False, last, shards, moves)
        return self._done(change, table, began, step.shards.number)

    def _cost(self, read_units: float, write_units: float) -> dict[str, Any]:
        dollars = self._connection.prices.dollars(read_units, write_units)
        return {"read_units": read_units, "write_units": write_units, "dollars": dollars}

    def _done(
        self, change: ShardChange, table: ShardedTable, began: float, after: int
    ) -> ShardChange:
        """Return a change that was made, with what it has cost."""
        cost = self._cost(table.usage.read_units, table.usage.write_units)
        seconds = self._clock.monotonic() - began
        return replace(change, dry_run=False, after=after, seconds=seconds, **cost)

    def _wait_until(self, seconds: float, what: str) -> None:
        self._say(f"waiting {seconds:.1f} s until {what}")
        self._wait(seconds)

    def _wait(self, seconds: float, show: Callable[[float], None] = lambda seconds: None) -> None:
        """Wait, and show how long this will take; raise Stopped."""
        until = self._clock.monotonic() + max(LEAST_WAIT_SECONDS, seconds)
        while (left := until - self._clock.monotonic()) > 0:
            self._check_stop()
            show(left)
            self._clock.sleep(min(left, LOOK_SECONDS))
        self._check_stop()

    def _check_stop(self) -> None:
        if self._stop.is_set():
            raise Stopped

    def _explaining(self) -> AbstractContextManager[None]:
        return explaining(self._connection.endpoint, "DynamoDB", self.metadata)

    def _table(self, placement: Placement, separator: str) -> ShardedTable:
        """Return the table with a placement that all its users share."""
        return ShardedTable(
            NamedTable(self._connection, self._described.name),
            metadata=self.metadata,
            placement="calculated" if placement.calculated else "random",
            hash=placement.hash,
            append_only=placement.append_only,
            separator=separator,
            policy=Policy(most=MOST_SHARDS),  # what a person asks for is not the policy's to refuse
            patience=self._patience,
            clock=self._clock,
        )

    def _table_to_read(self) -> ShardedTable:
        """Return the table for reads of the metadata only."""
        return self._table(Placement(True), self._schema.names.separator)

    def _logical(self, key: str | bytes) -> TypedValue:
        """Return a logical key as DynamoDB has it; raise CannotStart."""
        logical, names = typed(key), self._schema.names
        names.physical(logical, 1)
        if logical == total_key(names.type):
            raise CannotStart(
                f"{TOTAL_KEY} is not a key of the table: this metadata item is for all keys."
            )
        if is_claim(logical):
            raise CannotStart(f"No logical key can start with {CLAIM_KEY!r}: Keyhop uses it.")
        return logical

    def _find(self, logical: TypedValue) -> KeyShards | None:
        """Return the shards of a key; None if it has no metadata."""
        request = {"TableName": self.metadata, "Key": {self._schema.partition.name: logical}}
        answer = self._table_to_read().requests.call("get_item", ConsistentRead=True, **request)
        item = answer.get("Item")
        if item is None:
            return None
        return KeyShards.judged(logical, from_item(item), traffic_of(item), self._clock.time())

    def _get(self, key: str | bytes) -> KeyShards:
        """Return the metadata of a key, or raise CannotStart if it has none."""
        logical = self._logical(key)
        metadata = self._find(logical)
        if metadata is not None:
            return metadata
        hint = ""
        parsed = self._schema.names.parsed(logical)
        if parsed is not None and (spread := self._find(parsed[0])) is not None:
            hint = f" It is shard {parsed[1]} of {shown(spread.key)}: give that, the logical key."
        raise CannotStart(
            f"{escaped(self.metadata)} has no shard metadata of {shown(key)}: nothing was written "
            f"to it through the library.{hint}"
        )

    def _agreed(self, shards: Metadata | None) -> ShardedTable:
        """Return the table with the placement of the key's writers, or of all writers.

        Raises:
            CannotStart: Neither the metadata nor the caller says what the placement is.
        """
        text = shards.placement if shards is not None else None
        if text is None:
            text = self._table_to_read().metadata.item.placement()
        if text is None:
            placements = (key.shards.placement for key in list_keys(self._table_to_read()))
            text = next(filter(None, placements), None)
        if text is not None:
            try:
                return self._table(*Placement.parse(text))
            except ValueError as error:
                raise CannotStart(
                    f"The metadata has the placement {escaped(text)!r}, which this version does "
                    "not know."
                ) from error
        if self._placement is None:
            raise CannotStart(
                "The metadata does not record yet how writers choose shards: give placement=, "
                "and hash=, append_only= and separator= if writers have them."
            )
        return self._table(self._placement, self._schema.names.separator)


def _metadata_of(
    table: Table, metadata: str | None, stack: str | None, outputs: Mapping[str, str]
) -> tuple[str, str]:
    """Return the name of a table's metadata table, and why it is that."""
    if metadata is not None:
        return metadata, "as given"
    for name, value in outputs.items():
        sharded, _, metadata_name = value.partition(" ")
        if name.startswith(SHARD_METADATA) and sharded == table.bare_name:
            return metadata_name, f"by the outputs of stack {stack}"
    why = "" if stack is None else f", because stack {stack} names none for this table"
    return f"{table.name}-shards", f"its usual name{why}"


def _check(name: str, count: int) -> None:
    maximum = MOST_SHARDS - 1
    if not isinstance(count, int) or not whole(1, maximum)(count):
        raise CannotStart(
            f"{name} must be a whole number from 1 to {maximum}, not {value_shown(count)}."
        )


def _check_is_not_drained(key: str | bytes, shards: Metadata) -> None:
    if shards.phase in DRAINING:
        raise CannotStart(
            f"{shown(key)} is being drained ({shards.phase}): wait until the drain has ended, or "
            "cancel it."
        )
