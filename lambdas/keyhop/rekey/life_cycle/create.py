"""`create` and `start`: make the tables of a re-key, and begin to replicate.

`create` makes the side table with plan and control, the destination, and the source's stream. Each
step does the next possible thing. It records its intention before it makes a table. So a process
that was killed, or that runs in parallel with another, continues where the other stopped, and no
process uses a table that existed before as the one it made. `start` attaches the replicating
function to the streams. Both can be repeated.
"""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.refusals import error_code
from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.tables import BUSY, StepResult, Table, ask, look_up, request, update
from keyhop.errors import CannotStart, RunConflict, TableNotFound
from keyhop.rekey.control import LEASE_SECONDS, Control
from keyhop.rekey.life_cycle.features import (
    ClientOf,
    Features,
    copy_settings,
    gather,
    ttl_of,
)
from keyhop.rekey.life_cycle.likeness import VIEW, Likeness, encryption_of
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.layout import (
    COPIED,
    DESTINATION,
    ENDING,
    KEYS,
    STARTED,
    STREAM,
    TTL,
    TURNED,
)
from keyhop.rekey.side.table import SideTable, table_request
from keyhop.streams.event_source import Mappings

STREAM_ON = {"StreamEnabled": True, "StreamViewType": VIEW}


@dataclass(frozen=True, slots=True)
class Creation:
    """The creation of the tables; `adopt` uses an existing destination, if it is empty and has
    these keys. See likeness.ACCEPTS for `accepted`, and Control.long_lease for `lease`.
    """

    connection: Connection
    pair: Pair
    keys: KeySpace
    client_of: ClientOf | None = None
    accepted: Collection[str] = ()
    adopt: bool = False
    lease: float = LEASE_SECONDS

    def look(self) -> Likeness:
        """Return the destination that would be made, without making it."""
        return self._likeness(self._source())[1]

    def step(self) -> StepResult:
        """Make the next step; an error, such as CannotStart or RunConflict, changes nothing."""
        source = self._source()
        # The table is read before its record, because the record is written before the table.
        destination = find_table(self.connection, self.pair.destination)
        table = find_table(self.connection, self.pair.side)
        if table is None:
            self._check_all(destination)
            self._make(self._side_request(source))
            return StepResult(False, f"making the side table {self.pair.side}")
        if table.status != "ACTIVE":
            return StepResult(False, waiting(table))
        side = SideTable(self.connection, self.pair.side)
        self._write_plan(side, table)
        creation = side.told(DESTINATION)
        if creation is None:
            creation = self._begin(side, source, destination)
        if destination is None and creation["identity"]:  # perhaps made since, by somebody else
            destination = find_table(self.connection, self.pair.destination)
        if destination is None:
            if creation["identity"]:
                raise RunConflict(
                    f"The destination {self.pair.destination!r} was made, but does not exist any "
                    "more: cancel this re-key, and begin with create again."
                )
            self._make(self._unrefused().request)
            return StepResult(False, f"making {self.pair.destination}")
        if destination.status != "ACTIVE":
            return StepResult(False, waiting(destination))
        if creation["identity"] not in ("", destination.identity):
            raise RunConflict(
                f"Table {self.pair.destination!r} is not the table that was made for this re-key: "
                "cancel the re-key, and create it with another name."
            )
        self._check_keys(destination)
        if not creation["identity"]:
            side.tell(DESTINATION, {**creation, "identity": destination.identity})
        self._write_control(side)
        if says := self._turn_stream_on(side, source):
            return StepResult(False, says)
        if destination.stream is None:  # somebody has turned it off since it was made
            update(self.connection, self.pair.destination, StreamSpecification=STREAM_ON)
            return StepResult(False, "turning the destination's stream on")
        if side.told(COPIED) is None and not self._copied(side, source, destination, creation):
            return StepResult(False, "waiting until the destination takes its settings")
        return StepResult(True, "the destination is there")

    def _likeness(self, source: Table) -> tuple[Features, Likeness]:
        features = gather(self.connection, source, self.client_of)
        return features, Likeness(features, self.pair.destination, self.keys, self.accepted)

    def _source(self) -> Table:
        table = look_up(self.connection, self.pair.source)
        table.source()
        check_stream_view(table)
        return table

    def _check_all(self, destination: Table | None) -> None:
        """Check everything that may be refused, before anything is made."""
        if self.pair.source == self.pair.destination:
            raise CannotStart("The destination must be another table than the source.")
        if destination is None:
            self._unrefused()
        else:
            self._check_adopted(destination)

    def _unrefused(self) -> Likeness:
        looked = self.look()
        if refused := looked.refused:
            reasons = "; ".join(row.refusal for row in refused)
            raise CannotStart(f"The destination would not be as the source is: {reasons}.")
        return looked

    def _check_adopted(self, destination: Table) -> None:
        if not self.adopt:
            raise RunConflict(
                f"Table {self.pair.destination!r} exists, and was not made for this re-key: name "
                "another table, or adopt it if it is empty."
            )
        self._check_keys(destination)
        if destination.stream_view != VIEW:
            raise CannotStart(
                f"Turn the stream of {self.pair.destination!r} on, with {VIEW}: a rollback needs "
                "it."
            )
        if ttl_of(self.connection, self.pair.destination) is not None:
            raise CannotStart(
                f"Turn the time to live of {self.pair.destination!r} off until the cutover: items "
                "must expire only in the table that serves."
            )
        if has_items(self.connection, self.pair.destination):
            raise RunConflict(f"Table {self.pair.destination!r} is not empty.")

    def _check_keys(self, destination: Table) -> None:
        if destination.space != self.keys:
            raise RunConflict(
                f"Table {self.pair.destination!r} has different keys from the plan: "
                f"{shown_keys(destination.space)} and not {shown_keys(self.keys)}."
            )

    def _write_control(self, side: SideTable) -> None:
        """Write the control item, or raise RunConflict if it has another lease; raise CannotStart
        if it was lost, as another table may serve.
        """
        if side.told(TURNED) is None:
            side.swap(None, Control(long_lease=self.lease))
        lease = side.control().long_lease
        if lease != self.lease:
            raise RunConflict(
                f"This re-key has a lease of {lease:g} seconds, and not {self.lease:g}: give "
                f"lease={lease:g}, or cancel the re-key."
            )

    def _write_plan(self, side: SideTable, table: Table) -> None:
        """Write the plan to a table that is a side table, and has this plan or none."""
        names = [entry["AttributeName"] for entry in table.description["KeySchema"]]
        if names != list(KEYS):
            raise RunConflict(
                f"Table {self.pair.side!r} exists, but is not Keyhop's. The side table needs this "
                "name: choose another destination."
            )
        # A table of other people may have the same keys, but into a new one the plan comes first.
        if has_items(self.connection, self.pair.side) and not side.has_plan():
            raise RunConflict(f"Table {self.pair.side!r} is not empty, and has no plan.")
        if not side.put_plan(self.pair):
            raise RunConflict(
                f"Table {self.pair.side!r} holds another plan: continue with that plan, or cancel "
                "it."
            )
        plan = side.plan()
        if (plan.source, plan.destination) != (self.pair.source, self.pair.destination):
            raise RunConflict(f"Table {self.pair.side!r} belongs to a re-key of {plan.source!r}.")
        if side.told(ENDING) is not None:
            raise RunConflict(
                "This re-key is being ended: wait until cancel or complete has ended."
            )

    def _begin(self, side: SideTable, source: Table, destination: Table | None) -> dict[str, Any]:
        """Record that the destination will be made or adopted, and of which source."""
        self._check_all(destination)
        is_adopted = destination is not None
        creation = {"identity": "", "adopted": is_adopted, "source": source.identity}
        side.tell(DESTINATION, creation)
        return creation

    def _copied(
        self, side: SideTable, source: Table, destination: Table, creation: Mapping[str, Any]
    ) -> bool:
        features, alike = self._likeness(source)
        if not creation["adopted"]:
            indexes, client_of = alike.indexes, self.client_of
            if not copy_settings(self.connection, features, destination, indexes, client_of):
                return False
        side.tell(TTL, features.ttl and {"attribute": features.ttl})
        side.tell(COPIED, [row.to_json() for row in alike.rows])
        return True

    def _turn_stream_on(self, side: SideTable, source: Table) -> str:
        """Turn the source's stream on. Return what was done or is waited for, or an empty text."""
        turned_on = side.told(STREAM)
        if source.stream is None:
            if source.status != "ACTIVE":
                return waiting(source)
            side.tell(STREAM, {"turned_on": True, "arn": ""})
            try:
                update(self.connection, self.pair.source, StreamSpecification=STREAM_ON)
            except CannotStart:
                if self._source().stream is None:  # otherwise another process was faster
                    raise
            return "turning the source's stream on"
        if turned_on and not turned_on["arn"]:
            side.tell(STREAM, {"turned_on": True, "arn": source.stream})
        return ""

    def _side_request(self, source: Table) -> dict[str, Any]:
        """Return the request for the side table, with the source's encryption and tags."""
        features, alike = self._likeness(source)
        additions = {"SSESpecification": encryption_of(features), "Tags": alike.request.get("Tags")}
        return {**table_request(self.pair.side), **{k: v for k, v in additions.items() if v}}

    def _make(self, parameters: Mapping[str, Any]) -> None:
        """Create a table, unless another process was faster."""
        try:
            ask(self.connection, parameters["TableName"], "create_table", parameters)
        except ClientError as error:
            if error_code(error) != BUSY:
                raise


@dataclass(frozen=True, slots=True)
class Starting:
    """Starts the replication; `followers` is None without functions, as on a laptop.

    The function follows both streams from here until the end; the control item says in which
    direction it may write. The reverse direction begins while the destination is empty.
    """

    connection: Connection
    pair: Pair
    followers: Mappings | None
    now: Callable[[], float] = time.time

    def step(self) -> StepResult:
        """Make the next step; raise CannotStart if `create` has not finished."""
        side = SideTable(self.connection, self.pair.side)
        self._check_goes_on(side)
        if side.told(COPIED) is None:
            raise CannotStart(
                "The destination is not complete yet: run create again, until it has ended."
            )
        for name in (self.pair.destination, self.pair.source):
            table = look_up(self.connection, name)
            stream = _stream_of(table)
            if self.followers is not None and not self.followers.attach(stream):
                return StepResult(False, f"attaching the function to the stream of {name}")
        if side.told(STARTED) is None:
            side.tell(STARTED, {"at": self.now()})
        return self._replicate(side)

    def _check_goes_on(self, side: SideTable) -> None:
        """Raise CannotStart for another plan, or if `cancel` or `complete` has begun."""
        if side.plan().digest != self.pair.digest:
            raise CannotStart(f"The side table {self.pair.side!r} holds another plan.")
        if ending := side.told(ENDING):
            raise CannotStart(f"This re-key is being ended: wait until {ending['how']} has ended.")

    def _replicate(self, side: SideTable) -> StepResult:
        """Let batches write, without disturbing a change of the serving table."""
        control = side.control()
        if control.replicating:
            return StepResult(True, "replicating")
        if control.stage != "open":
            return StepResult(False, f"waiting for the cutover, which is {control.stage}")
        # If another process changed the item first, the next step reads it again.
        side.swap(control, control.changed(replicating=True))
        return StepResult(False, "beginning to replicate")


def find_table(connection: Connection, name: str) -> Table | None:
    """Return the table, or None if it does not exist."""
    try:
        return look_up(connection, name)
    except TableNotFound:
        return None


def why_taken(connection: Connection, pair: Pair) -> str:
    """Return why the destination's name is not free for this plan; empty if it is."""
    if find_table(connection, pair.side) is not None:
        side = SideTable(connection, pair.side)
        if side.has_plan() and side.plan() != pair:
            return f"table {pair.side} holds another plan: cancel that, or name another new table"
    elif find_table(connection, pair.destination) is not None:
        return (
            f"table {pair.destination} exists: name another new table, or have create adopt it, "
            "if it is empty"
        )
    return ""


def has_items(connection: Connection, table: str) -> bool:
    """Return whether the table has an item now."""
    return bool(request(connection, table, "scan", Limit=1, ConsistentRead=True)["Items"])


def waiting(table: Table) -> str:
    """Return what a step says that waits for a table to be ACTIVE."""
    return f"waiting for {table.bare_name}, which is {table.status}"


def check_stream_view(source: Table) -> None:
    """Raise CannotStart if the stream is enabled without the images that a re-key needs."""
    if source.stream_view not in (None, VIEW):
        raise CannotStart(
            f"The stream of {source.bare_name!r} is on with {source.stream_view}, which cannot be "
            f"changed while the stream is on, and a re-key needs {VIEW}. Let its readers come to "
            "its end, turn it off and on again, and attach them to the new stream, which has "
            "another ARN. They do not see the writes of that time."
        )


def _stream_of(table: Table) -> str:
    """Return the ARN of the table's stream; raise CannotStart if it is disabled or lacks images."""
    check_stream_view(table)
    if table.stream is None:
        raise CannotStart(
            f"The stream of {table.bare_name!r} is off: run create again, which turns it on. "
            "Then verify, which finds the writes that were missed."
        )
    return table.stream


def shown_keys(keys: KeySpace) -> str:
    """Return the keys as text for messages."""
    return ", ".join(f"{name} ({type_})" for name, type_ in keys.types.items())
