"""`complete` and `cancel`: the two ends of a re-key. Either removes everything of Keyhop's.

They leave time to live enabled on the serving table only, as do a cutover and a rollback
(`settle_expiry`): the deletes of the other table would be writes that bypass the router.

Each step does the next possible thing. The side table, which holds the progress, is deleted last.
The first step turns `replicating` off by a swap of the control item. If it competes with a cutover,
only one of the two succeeds, and without replication no cutover is possible.
"""

import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from botocore.exceptions import BotoCoreError, ClientError

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.own_table import OwnTable
from keyhop.dynamodb.tables import StepResult, Table, ask, request, table_names, update
from keyhop.dynamodb.values import from_json
from keyhop.errors import AwsRefused, CannotStart, KeyhopError, RunConflict, TableNotFound
from keyhop.rekey.control import Control, Side, other_side
from keyhop.rekey.cutover.deployed import NotDeployed
from keyhop.rekey.life_cycle.create import find_table, has_items, waiting
from keyhop.rekey.life_cycle.features import ClientOf, cause_code, forget_scaling
from keyhop.rekey.pair import SIDE_SUFFIX, Pair
from keyhop.rekey.side.layout import (
    DESTINATION,
    END,
    ENDING,
    EXPORT,
    KEYS,
    MARKER_ATTRIBUTE,
    STREAM,
    TTL,
    TURNED,
)
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.standing import WINDOW_DAYS, RekeyStatus
from keyhop.streams.event_source import Mappings

How = Literal["complete", "cancel"]

TOO_SOON = "multiple times within a fixed interval"
"""A part of the error for a second change within an hour (API Reference, UpdateTimeToLive)."""

NO_RECOVERY = "PointInTimeRecoveryUnavailableException"


@dataclass(frozen=True, slots=True)
class Ending:
    """One end of a re-key, by the name of its destination; `now` returns the seconds since 1970.

    Attributes:
        window_days: The days from the cutover to `complete`.
        delete: The table to delete: the source for `complete`, the destination for `cancel`, or
            empty.
        export: The bucket of a last export of the source, or empty.
    """

    connection: Connection
    destination: str
    how: How
    followers: Mappings | None = None
    client_of: ClientOf | None = None
    window_days: float = WINDOW_DAYS
    delete: str = ""
    export: str = ""
    now: Callable[[], float] = time.time

    def step(self) -> StepResult:
        """Make the next step; raise CannotStart if it is too early or too late for this end."""
        name = self.destination + SIDE_SUFFIX
        table = find_table(self.connection, name)
        if table is None:
            deleted = find_table(self.connection, self.delete) if self.delete else None
            if deleted is not None and deleted.status == "DELETING":
                return StepResult(False, waiting(deleted))
            return StepResult(True, f"nothing is left of a re-key to {self.destination}")
        if table.status != "ACTIVE":
            return StepResult(False, waiting(table))
        self._check_is_ours(table)
        side = SideTable(self.connection, name)
        if side.has_plan():
            pair = side.plan()
            steps = (
                self._fence,
                self._detach,
                self._await_batches,
                self._remove_markers,
                self._settle_expiry,
                self._export,
                self._turn_streams_off,
                self._delete_table,
            )
            for step in steps:
                if waits_for := step(side, pair):
                    return StepResult(False, waits_for)
        request(self.connection, name, "delete_table")
        return StepResult(False, "deleting the side table")

    def check(self, dry_run: bool = True) -> None:
        """Raise CannotStart if it is too early or too late for this end."""
        side = SideTable(self.connection, self.destination + SIDE_SUFFIX)
        pair = side.plan()
        self._check_name(pair)
        if not dry_run:
            self._note_turned(side)
        self._check_may_begin(side)
        table = find_table(self.connection, self.destination)
        if self.how == "cancel" and self.delete and table is not None:
            self._check_made(side, table)
            self._check_source_exists(side, pair)

    def _check_is_ours(self, table: Table) -> None:
        names = [entry["AttributeName"] for entry in table.description["KeySchema"]]
        side = SideTable(self.connection, table.name)
        is_ours = names == list(KEYS)
        if is_ours and not side.has_plan() and has_items(self.connection, table.name):
            is_ours = False
        if not is_ours:
            raise RunConflict(f"Table {table.bare_name!r} is not Keyhop's: nothing was done.")

    def _check_name(self, pair: Pair) -> None:
        whose = pair.source if self.how == "complete" else pair.destination
        if self.delete not in ("", whose):
            raise CannotStart(
                f"{self.how} can delete only {whose!r}: to have it deleted, give that name."
            )
        if self.delete and self.how == "complete":
            table = find_table(self.connection, self.delete)
            if table is not None and table.description.get("DeletionProtectionEnabled"):
                raise CannotStart(
                    f"Table {whose!r} has deletion protection: turn it off, or complete without "
                    "its name."
                )

    def _check_may_begin(self, side: SideTable) -> None:
        if why_not := self._status(side).why_not_end(self.how, self.window_days):
            raise CannotStart(why_not)

    def _status(self, side: SideTable) -> RekeyStatus:
        return RekeyStatus.of(side, NotDeployed(), self.now())

    def routers_of_last_day(self) -> dict[str, float]:
        """Return how many seconds ago each router reported (RekeyStatus.routers_of_last_day)."""
        side = SideTable(self.connection, self.destination + SIDE_SUFFIX)
        return self._status(side).routers_of_last_day

    def _note_turned(self, side: SideTable) -> None:
        """Begin the window of `complete` if the process that cut over was killed before that."""
        control, turned = side.control(), side.told(TURNED) or {}
        is_over = (control.serving, control.stage) == ("destination", "open")
        if self.how == "complete" and is_over and turned.get("serving") != "destination":
            side.tell(TURNED, {"at": self.now(), "serving": "destination"})

    def _fence(self, side: SideTable, pair: Pair) -> str:
        """End the replication permanently. Like each step, return what it has done or waits for, or
        an empty text if nothing remains to be done.
        """
        ending = side.told(ENDING)
        if ending is not None and ending["how"] != self.how:
            raise RunConflict(f"{ending['how']} has begun: wait until it has ended.")
        if ending is None:
            self._check_name(pair)
            created = side.told(DESTINATION) is not None
            if created and side.swap(None, Control()):
                return "writing the control item, which create had not come to"
            if created:
                control = side.control()
                self._note_turned(side)
                self._check_may_begin(side)
                end = {"how": self.how, "delete": self.delete, "export": self.export}
                side.tell(END, end)
                if control.replicating:
                    side.swap(control, control.changed(replicating=False))
                    return "ending the replication"
            side.tell(ENDING, {"how": self.how, "at": self.now()})
        return ""

    def _detach(self, side: SideTable, pair: Pair) -> str:
        for name in (pair.source, pair.destination):
            table = find_table(self.connection, name)
            if self.followers is None or table is None:
                continue
            if not self.followers.detach(f"{table.arn}/stream/"):
                return f"detaching the function from the stream of {name}"
        return ""

    def _await_batches(self, side: SideTable, pair: Pair) -> str:
        """Wait for batches, because one that has read the control item earlier may still write."""
        if side.open_batches("forward") or side.open_batches("reverse"):
            return "waiting for batches that are under way"
        return ""

    def _remove_markers(self, side: SideTable, pair: Pair) -> str:
        """Remove the markers of a killed drain, but keep other items with such a key."""
        for marker, details in side.markers().items():
            with suppress(TableNotFound):
                items = OwnTable(self.connection, details["table"])
                items.delete_if(from_json(details["key"]), {MARKER_ATTRIBUTE: {"S": marker}})
            side.drop_marker(marker)
        return ""

    def _settle_expiry(self, side: SideTable, pair: Pair) -> str:
        attribute = (side.told(TTL) or {}).get("attribute")
        tables = [find_table(self.connection, name) for name in (pair.source, pair.destination)]
        if attribute is None or None in tables or side.told(TURNED) is None:
            return ""
        serving = side.control().serving
        return _step_expiry(self.connection, pair, attribute, serving)

    def _export(self, side: SideTable, pair: Pair) -> str:
        """Request the export once, and wait for it."""
        source = find_table(self.connection, pair.source)
        if not self.export or source is None:
            return ""
        progress = side.told(EXPORT)
        if progress is None:
            side.tell(EXPORT, {"arn": "", "token": uuid.uuid4().hex})
            return "asking for an export of the source"
        if not progress["arn"]:
            parameters = {
                "TableArn": source.arn,
                "S3Bucket": self.export,
                "S3Prefix": source.bare_name,
                "ExportFormat": "DYNAMODB_JSON",
                # A second request within eight hours is the same export (API Reference).
                "ClientToken": progress["token"],
            }
            answer = self._ask_for_export(source, parameters)
            side.tell(EXPORT, {**progress, "arn": answer["ExportDescription"]["ExportArn"]})
            return "exporting the source"
        which = {"ExportArn": progress["arn"]}
        described = ask(self.connection, source.name, "describe_export", which)["ExportDescription"]
        status = described["ExportStatus"]
        if status == "FAILED":
            side.tell(EXPORT, None)
            why = described.get("FailureMessage", "")
            raise AwsRefused(f"The export of {source.bare_name!r} has failed: {why}")
        return "" if status == "COMPLETED" else f"the export of the source is {status}"

    def _ask_for_export(self, source: Table, parameters: dict[str, Any]) -> dict[str, Any]:
        try:
            return ask(
                self.connection, source.bare_name, "export_table_to_point_in_time", parameters
            )
        except AwsRefused as error:
            if cause_code(error) == NO_RECOVERY:
                raise CannotStart(
                    f"Table {source.bare_name!r} has no point-in-time recovery, which an export is "
                    "made from: turn it on, or complete without an export."
                ) from error
            raise

    def _turn_streams_off(self, side: SideTable, pair: Pair) -> str:
        """Turn off the streams that `create` turned on, if no other function or re-key uses one."""
        stream_figure = side.told(STREAM)
        if stream_figure is None:
            return ""
        creation = side.told(DESTINATION) or {}
        names = [pair.source]
        if self.how == "complete" and not creation.get("adopted"):
            names.append(pair.destination)  # the source had none
        for name in names:
            table = find_table(self.connection, name)
            if table is None or table.stream is None or self._is_followed(table.stream):
                continue
            if name == pair.source and stream_figure["arn"] not in ("", table.stream):
                continue  # it was turned off and on in between
            if name == pair.source and self._has_another_rekey(pair):
                continue
            if table.status != "ACTIVE":
                return waiting(table)
            update(self.connection, name, StreamSpecification={"StreamEnabled": False})
            return f"turning the stream of {name} off"
        return ""

    def _is_followed(self, stream: str) -> bool:
        return self.followers is not None and bool(self.followers.other_functions(stream))

    def _has_another_rekey(self, pair: Pair) -> bool:
        """Return whether the source is in another re-key, or may be, as its tables are unreadable.

        A stream that stays on costs nothing.
        """
        try:
            for name in table_names(self.connection.client):
                if not name.endswith(SIDE_SUFFIX) or name == pair.side:
                    continue
                side = SideTable(self.connection, name)
                if side.has_plan() and side.plan().source == pair.source:
                    return True
        except (BotoCoreError, ClientError, KeyhopError):
            return True
        return False

    def _delete_table(self, side: SideTable, pair: Pair) -> str:
        """Delete the table that is no longer needed, if the caller has named it. The side table is
        deleted at once after that: once the source is gone, no command can open the re-key.
        """
        name = self.delete
        table = find_table(self.connection, name) if name else None
        if table is None or table.status == "DELETING":
            return ""
        self._check_name(pair)
        if self.how == "cancel":
            self._check_made(side, table)
            self._check_source_exists(side, pair)
        if table.description.get("DeletionProtectionEnabled"):  # of a destination that create made
            update(self.connection, name, DeletionProtectionEnabled=False)
            return f"taking the protection against deletion off {name}"
        if table.status != "ACTIVE":
            return waiting(table)
        forget_scaling(self.client_of, table)
        request(self.connection, name, "delete_table")
        return f"deleting {name}"

    def _check_made(self, side: SideTable, table: Table) -> None:
        """Raise CannotStart unless `create` made the destination."""
        creation = side.told(DESTINATION) or {}
        is_recorded = creation.get("identity") == table.identity
        unnoted = creation.get("identity") == "" and not has_items(self.connection, table.name)
        if creation.get("adopted") or not (is_recorded or unnoted):
            raise CannotStart(
                f"Table {table.bare_name!r} was not made by create: delete it by hand, and cancel "
                "without its name."
            )

    def _check_source_exists(self, side: SideTable, pair: Pair) -> None:
        """Raise CannotStart if the destination may be the only copy of the source's items."""
        table = find_table(self.connection, pair.source)
        recorded = (side.told(DESTINATION) or {}).get("source")
        if table is None or (recorded and table.identity != recorded):
            raise CannotStart(
                f"The table {pair.source!r} of this re-key was deleted, so {pair.destination!r} "
                "may hold the only copy of its items: cancel with keep_new=True, which keeps it."
            )


def settle_expiry(connection: Connection, side: SideTable) -> list[str]:
    """Make the changes after a cutover or a rollback, and return a sentence for each. Do not wait,
    because that can take an hour: `complete` makes the remaining changes.
    """
    pair, attribute = side.plan(), (side.told(TTL) or {}).get("attribute")
    serving = side.control().serving
    sentences: list[str] = []
    while says := _step_expiry(connection, pair, attribute, serving):
        if says in sentences or says.startswith("waiting"):
            return [*sentences, says]
        sentences.append(says)
    return sentences


def _step_expiry(connection: Connection, pair: Pair, attribute: str | None, serving: Side) -> str:
    """Make one change, or report a wait for one, which may take an hour but does not delay a change
    of the other table; return an empty text if nothing remains to be done. `attribute` is the one
    by which items expire; None if they do not.
    """
    if attribute is None:
        return ""
    waits = []
    for side, should_be_on in ((serving, True), (other_side(serving), False)):
        table = pair.table(side)
        state = _expiry_of(connection, table, attribute)
        if state == "changing":
            waits.append(f"waiting for the time to live of {table}, which is changing")
        elif (state == "on") != should_be_on:
            says = _change_expiry(connection, table, attribute, should_be_on)
            if not says.startswith("waiting"):
                return says
            waits.append(says)
    return waits[0] if waits else ""


def _expiry_of(
    connection: Connection, table: str, attribute: str
) -> Literal["on", "off", "changing"]:
    """Return the state of a table's time to live; raise CannotStart if it has another attribute."""
    description = request(connection, table, "describe_time_to_live")["TimeToLiveDescription"]
    status = description.get("TimeToLiveStatus", "DISABLED")
    if status in ("ENABLING", "DISABLING"):
        return "changing"
    if status == "DISABLED":
        return "off"
    if description.get("AttributeName") != attribute:
        raise CannotStart(
            f"Items of {table!r} expire by another attribute than {attribute!r}, which the source "
            "had when the re-key was made: turn that TTL off first."
        )
    return "on"


def _change_expiry(connection: Connection, table: str, attribute: str, on: bool) -> str:
    word = "on" if on else "off"
    specification = {"Enabled": on, "AttributeName": attribute}
    try:
        request(connection, table, "update_time_to_live", TimeToLiveSpecification=specification)
    except CannotStart as error:
        if TOO_SOON not in str(error):
            raise
        return f"waiting to turn the time to live of {table} {word}: once an hour"
    return f"turning the time to live of {table} {word}"
