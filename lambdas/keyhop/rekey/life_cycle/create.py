"""`create`: the side table with plan and control, the destination, the source's stream.

Each step does the one thing that can be done next. Before a table is made, that is noted; so who
was killed, or is not alone, goes on where the other was, and nobody takes for his own a table that
was there before.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.refusals import error_code
from keyhop.dynamodb.schema import KeySpace
from keyhop.dynamodb.tables import BUSY, StepResult, Table, ask, look_up, request, update
from keyhop.errors import CannotStart, RunConflict, TableNotFound
from keyhop.rekey.control import LEASE_SECONDS, Control
from keyhop.rekey.life_cycle.copying import Copying
from keyhop.rekey.life_cycle.features import ClientOf, Features, gather, ttl_of
from keyhop.rekey.life_cycle.likeness import VIEW, Likeness, encryption_of, likeness
from keyhop.rekey.pair import Pair
from keyhop.rekey.side.figures import COPIED, DESTINATION, ENDING, STREAM, TTL, TURNED
from keyhop.rekey.side.layout import KEYS
from keyhop.rekey.side.table import SideTable, table_request

NONE_WAS_MADE: Mapping[str, Any] = {"identity": "", "adopted": False}


@dataclass(frozen=True, slots=True)
class Creation:
    """keys: the destination's. accepted: words of likeness.ACCEPTS. adopt: a destination that is
    there already is taken, if it is empty and has these keys. lease: see Control.long_lease.
    """

    connection: Connection
    pair: Pair
    keys: KeySpace
    client_of: ClientOf | None = None
    accepted: Collection[str] = ()
    adopt: bool = False
    lease: float = LEASE_SECONDS

    def look(self) -> Likeness:
        """What would be made; nothing is."""
        return self._likeness(self._source())[1]

    def step(self) -> StepResult:
        """Raises CannotStart, RunConflict and others; then nothing more than before was done."""
        source = self._source()
        # Before its note is read: a note comes before the table.
        destination = found(self.connection, self.pair.destination)
        table = found(self.connection, self.pair.side)
        if table is None:
            self._check_all(destination)
            self._make(self._side_request(source))
            return StepResult(False, f"making the side table {self.pair.side}")
        if table.status != "ACTIVE":
            return waiting(table)
        side = SideTable(self.connection, self.pair.side)
        self._write_plan(side, table)
        made = side.told(DESTINATION)
        if made is None:
            made = self._begin(side, destination)
        if destination is None:
            if made["identity"]:
                raise RunConflict(
                    f"The destination {self.pair.destination!r} was made, and is gone: cancel this "
                    "re-key, and create it anew."
                )
            self._make(self._unrefused().request)
            return StepResult(False, f"making {self.pair.destination}")
        if destination.status != "ACTIVE":
            return waiting(destination)
        if not made["identity"]:
            self._check_keys(destination)
            side.tell(DESTINATION, {**made, "identity": destination.identity})
        elif made["identity"] != destination.identity:
            raise RunConflict(
                f"Table {self.pair.destination!r} is another one than was made for this re-key: "
                "cancel it, and create it with another name."
            )
        self._write_control(side)
        if side.told(COPIED) is None and not self._copied(side, source, destination, made):
            return StepResult(False, "waiting until the destination takes its settings")
        return self._stream_step(side, source)

    def _likeness(self, source: Table) -> tuple[Features, Likeness]:
        features = gather(self.connection, source, self.client_of)
        return features, likeness(features, self.pair.destination, self.keys, self.accepted)

    def _source(self) -> Table:
        table = look_up(self.connection, self.pair.source)
        table.source()
        check_stream_view(table)
        return table

    def _check_all(self, destination: Table | None) -> None:
        """What can be refused, before anything is made."""
        if self.pair.source == self.pair.destination:
            raise CannotStart("The destination must be another table than the source.")
        if destination is None:
            self._unrefused()
        else:
            self._check_adopted(destination)

    def _unrefused(self) -> Likeness:
        looked = self.look()
        if refused := looked.refused:
            told = "; ".join(row.refusal for row in refused)
            raise CannotStart(f"The destination would not be as the source is: {told}.")
        return looked

    def _check_adopted(self, destination: Table) -> None:
        if not self.adopt:
            raise RunConflict(
                f"Table {self.pair.destination!r} exists, and was not made for this re-key: name "
                "another one, or let it be adopted, if it is empty."
            )
        self._check_keys(destination)
        if destination.stream_view != VIEW:
            raise CannotStart(
                f"Turn the stream of {self.pair.destination!r} on, with {VIEW}: the way back reads "
                "it."
            )
        if ttl_of(self.connection, self.pair.destination) is not None:
            raise CannotStart(
                f"Turn the time to live of {self.pair.destination!r} off until the cutover: items "
                "must expire where they are served only."
            )
        if has_items(self.connection, self.pair.destination):
            raise RunConflict(f"Table {self.pair.destination!r} is not empty.")

    def _check_keys(self, destination: Table) -> None:
        if destination.space != self.keys:
            raise RunConflict(
                f"Table {self.pair.destination!r} has other keys than the plan: "
                f"{shown_keys(destination.space)} and not {shown_keys(self.keys)}."
            )

    def _write_control(self, side: SideTable) -> None:
        """Once. Raises CannotStart if it is gone after a change: the other table may serve."""
        if side.told(TURNED) is None:
            side.swap(None, Control(long_lease=self.lease))
        side.control()

    def _write_plan(self, side: SideTable, table: Table) -> None:
        """Into a table that is a side table, and has this plan or none."""
        names = [entry["AttributeName"] for entry in table.description["KeySchema"]]
        if names != list(KEYS):
            raise RunConflict(
                f"Table {self.pair.side!r} exists, and is none of Keyhop's: the side table must be "
                "called so. Choose another destination."
            )
        # Nor is it somebody's that has the same keys: into a new one the plan is written first.
        if has_items(self.connection, self.pair.side) and not side.has_plan():
            raise RunConflict(f"Table {self.pair.side!r} is not empty, and has no plan.")
        if not side.put_plan(self.pair):
            raise RunConflict(
                f"Table {self.pair.side!r} holds another plan: go on with that one, or cancel it."
            )
        plan = side.plan()
        if (plan.source, plan.destination) != (self.pair.source, self.pair.destination):
            raise RunConflict(f"Table {self.pair.side!r} is that of a re-key of {plan.source!r}.")
        if side.told(ENDING) is not None:
            raise RunConflict("This re-key is being ended: let cancel or complete come to its end.")

    def _begin(self, side: SideTable, destination: Table | None) -> dict[str, Any]:
        """Note that the destination is going to be made, or adopted."""
        self._check_all(destination)
        made = {**NONE_WAS_MADE, "adopted": destination is not None}
        side.tell(DESTINATION, made)
        return made

    def _copied(
        self, side: SideTable, source: Table, destination: Table, made: Mapping[str, Any]
    ) -> bool:
        features, alike = self._likeness(source)
        if not made["adopted"]:
            indexes = alike.indexes
            if not Copying(self.connection, features, destination, indexes, self.client_of).all():
                return False
        side.tell(TTL, features.ttl and {"attribute": features.ttl})
        side.tell(COPIED, [row.to_json() for row in alike.rows])
        return True

    def _stream_step(self, side: SideTable, source: Table) -> StepResult:
        turned_on = side.told(STREAM)
        if source.stream is None:
            if source.status != "ACTIVE":
                return waiting(source)
            side.tell(STREAM, {"turned_on": True, "arn": ""})
            stream = {"StreamEnabled": True, "StreamViewType": VIEW}
            try:
                update(self.connection, self.pair.source, StreamSpecification=stream)
            except CannotStart:
                if self._source().stream is None:  # else somebody was quicker
                    raise
            return StepResult(False, "turning the source's stream on")
        if turned_on and not turned_on["arn"]:
            side.tell(STREAM, {"turned_on": True, "arn": source.stream})
        return StepResult(True, "the destination is there")

    def _side_request(self, source: Table) -> dict[str, Any]:
        """It holds keys of items: encrypted as they are; and found by the same tags."""
        features, alike = self._likeness(source)
        own = {"SSESpecification": encryption_of(features), "Tags": alike.request.get("Tags")}
        return {**table_request(self.pair.side), **{k: v for k, v in own.items() if v}}

    def _make(self, asked: Mapping[str, Any]) -> None:
        """CreateTable; somebody may have been quicker."""
        try:
            ask(self.connection, asked["TableName"], "create_table", asked)
        except ClientError as error:
            if error_code(error) != BUSY:
                raise


def found(connection: Connection, name: str) -> Table | None:
    """The table; None if there is none."""
    try:
        return look_up(connection, name)
    except TableNotFound:
        return None


def taken(connection: Connection, pair: Pair) -> str:
    """Why the destination's name is not free for this plan; empty if it is."""
    if found(connection, pair.side) is not None:
        side = SideTable(connection, pair.side)
        if side.has_plan() and side.plan() != pair:
            return f"table {pair.side} holds another plan: cancel that, or name another new table"
    elif found(connection, pair.destination) is not None:
        return (
            f"table {pair.destination} exists: name another new table, or have create adopt it, "
            "if it is empty"
        )
    return ""


def has_items(connection: Connection, table: str) -> bool:
    """Whether there is any item now."""
    return bool(request(connection, table, "scan", Limit=1, ConsistentRead=True)["Items"])


def waiting(table: Table) -> StepResult:
    """For a table to be ACTIVE."""
    return StepResult(False, f"waiting for {table.bare_name}, which is {table.status}")


def check_stream_view(source: Table) -> None:
    """Raises CannotStart if the stream is on without the images that a re-key needs."""
    if source.stream_view not in (None, VIEW):
        raise CannotStart(
            f"The stream of {source.bare_name!r} is on with {source.stream_view}, which DynamoDB "
            f"changes of no stream, and a re-key needs {VIEW}. Let its readers come to its end, "
            "turn it off and on again, and attach them to the new stream (another ARN); what is "
            "written meanwhile they do not see."
        )


def shown_keys(keys: KeySpace) -> str:
    """For messages."""
    return ", ".join(f"{name} ({type_})" for name, type_ in keys.types.items())
