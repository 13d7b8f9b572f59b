"""Whether the key index may be believed, by evidence that is looked at when it is to be read.

`why_not` is the one decision: `auto` and `status` print its reason. What is unknown is no evidence:
then the keys are found by hopping, which is always right.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Protocol

from keyhop.dynamodb.tables import Source, Table
from keyhop.errors import CannotStart
from keyhop.key_index.index import check_has_one, is_anothers, status_of
from keyhop.key_index.registry import Entry
from keyhop.key_index.sentinel import INDEX, Sentinel
from keyhop.streams.event_source import MOST_OUTAGE, Follower, Mappings, Watch, modified_at
from keyhop.wording import counted

AUDIT_COUNTS_DAYS = 13
"""How long an audit counts, from the moment at which it began.

The failure queue deletes a message after 14 days, and with it the evidence that records were lost.
An audit that began before the records were written must not count any more by then.
"""

MOST_LAG_SECONDS = 60.0
"""What a list that took a minute to read may lack anyway."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What can be seen of an index at one moment; None: it cannot be seen.

    Attributes:
        index: Its status.
        entry: Its record: the last audit, and whether trust was withdrawn.
        sentinel: Where sentinels are to be, as configured (None: wherever they are).
        is_listed: Whether the deployment still knows the table as one with a key index.
        stream: The ARN of the table's stream, if that is on.
        keepers: Those that follow it.
        lag_seconds: How far they were behind lately.
        longest_lag_seconds: How far they were behind since the last audit began.
        failures: How many messages about records that they gave up on there are.
    """

    index: str | None
    entry: Entry
    sentinel: Mapping[str, Any] | None
    is_listed: bool
    stream: str | None
    keepers: tuple[Follower, ...] | None
    lag_seconds: float | None
    longest_lag_seconds: float | None
    failures: int | None


@dataclass(frozen=True, slots=True)
class Belief:
    """What follows from the evidence. source: the index to be read; None: it is not to be read.

    why: why so; empty where there is no index. doubt: why an index that is read all the same is not
    to be believed. token: of an index that is believed, what has to be the same at the end.
    """

    source: Source | None
    why: str
    doubt: str | None = None
    token: int | None = None


def choose_source(
    table: Table, method: str, anyway: bool, evidence: Callable[[], Evidence]
) -> Belief:
    """Whether the key index is read for `method`, "index" or "auto".

    anyway: also if it is not to be believed. Raises IndexNotFound, CannotStart if the index is
    asked for, and is not to be read.
    """
    if method == "index":
        check_has_one(table)
    elif table.index(INDEX) is None:
        return Belief(None, "")
    elif is_anothers(table):
        return Belief(None, f"what is called {INDEX} has another shape, so it is not Keyhop's")
    seen = evidence()
    doubt = why_not(seen)
    if method == "auto" and doubt is not None:
        return Belief(None, doubt)
    if doubt is not None and not anyway:
        raise CannotStart(
            f"The key index of {table.bare_name!r} is not to be believed: {doubt}. Method auto "
            f'finds the keys without it; --anyway, or "anyway": true, reads it all the same.'
        )
    sentinel = seen.entry.place
    if sentinel is None:
        configured = seen.sentinel
        sentinel = (
            Sentinel.of(table.space) if configured is None else Sentinel.from_json(configured)
        )
    source = replace(table.source(INDEX), only=sentinel.item_of({}))
    if doubt is not None or seen.entry.audit is None:
        return Belief(source, f"asked for anyway, though {doubt}", doubt)
    audit = seen.entry.audit
    found = "found no drift"
    if drift := audit["drift"]:
        found = f"found drift ({drift:,}), of which a second look at the end found nothing left"
    why = f"the key index is kept, and its audit of {audit['ended']} {found}"
    return Belief(source, why, token=seen.entry.epoch)


def gather(
    table: Table,
    entry: Entry,
    watch: Watch | None,
    sentinel: Mapping[str, Any] | None = None,
    is_listed: bool = True,
) -> Evidence:
    """Look at all that counts. watch: None where there can be no keeper."""
    stream = table.stream
    keepers: tuple[Follower, ...] | None = ()
    lags: list[float | None] = []
    longest: list[float | None] = []
    failures: list[int | None] = []
    if stream is not None and watch is not None:
        keepers = watch.followers(stream)
        for keeper in keepers or ():
            lags.append(watch.lag_seconds(keeper.function))
            if entry.audit is not None:
                began = datetime.fromisoformat(entry.audit["began"])
                name = table.bare_name
                longest.append(watch.longest_lag_seconds(keeper.function, name, began))
            failures.append(watch.failures(keeper.queue))
    return Evidence(
        status_of(table),
        entry,
        sentinel,
        is_listed,
        stream,
        keepers,
        _greatest(lags),
        _greatest(longest),
        None if None in failures else sum(count for count in failures if count is not None),
    )


def _greatest(lags: list[float | None]) -> float | None:
    """Return the greatest of several lags; None if one of them cannot be seen."""
    seen = [lag for lag in lags if lag is not None]
    return max(seen, default=0.0) if len(seen) == len(lags) else None


def why_not(seen: Evidence, now: datetime | None = None) -> str | None:
    """Why the index is not to be read; None if it may be believed."""
    entry, audit = seen.entry, seen.entry.audit
    if seen.index != "ACTIVE":
        return "there is none" if seen.index is None else f"it is {seen.index}"
    if not seen.is_listed:
        return "the table is not among those with keyIndex any more"
    if entry.lease is not None and entry.lease.action != "audit":
        return (
            f"its {entry.lease.action}, begun {entry.lease.since} by {entry.lease.holder}, has not "
            f"come to its end"
        )
    if audit is None:
        return "no audit of it is on record here"
    if seen.sentinel is not None and Sentinel.from_json(seen.sentinel) != entry.place:
        return "its sentinels have another sort key than is configured now"
    if entry.is_withdrawn:
        said = entry.withdrawn or {"when": "an unknown time", "why": "the reason is not on record"}
        return (
            f"trust in it was withdrawn at {said['when']}, and no audit began since: {said['why']}"
        )
    if audit.get("resumed"):
        return f"its last audit, begun {audit['began']}, was resumed: start one from the beginning"
    return _why_not_audit(audit, now or datetime.now(UTC)) or _why_not_kept(seen, audit)


def _why_not_audit(audit: Mapping[str, Any], now: datetime) -> str | None:
    when = audit["ended"]
    if not audit.get("keeper"):
        return f"no keeper followed the table at its last audit, of {when}"
    if audit.get("remaining", audit["drift"]):
        return f"its last audit, of {when}, found drift"
    began = audit["began"]
    if now - datetime.fromisoformat(began) > timedelta(days=AUDIT_COUNTS_DAYS):
        return f"its last audit, begun {began}, is more than {AUDIT_COUNTS_DAYS} days old"
    return None


def _why_not_kept(seen: Evidence, audit: Mapping[str, Any]) -> str | None:
    """Whether the keeper that followed the table at the audit has followed it ever since."""
    if seen.stream is None:
        return "the table's stream is off, so no keeper can follow it"
    if seen.stream != audit.get("stream"):
        return f"the table has another stream than at its last audit, of {audit['ended']}"
    if seen.keepers is None:
        return "it cannot be seen whether a keeper follows the table"
    if not seen.keepers:
        return "no keeper follows the table's stream"
    for keeper in seen.keepers:
        if keeper.state != "Enabled":
            return f"the keeper's event source mapping is {keeper.state}"
        if keeper.problem:
            return f"the keeper cannot follow the stream: {keeper.problem}"
    if kept_by(seen.keepers) != audit.get("kept_by"):
        return f"the keeper's mapping was changed since its last audit, of {audit['ended']}"
    if seen.lag_seconds is None:
        return "it cannot be seen how far the keeper is behind"
    if seen.lag_seconds > MOST_LAG_SECONDS:
        return f"the keeper is {counted(round(seen.lag_seconds), 'second')} behind"
    if seen.longest_lag_seconds is None:
        return (
            f"it cannot be seen whether the keeper worked since its last audit, of {audit['ended']}"
        )
    if seen.longest_lag_seconds > MOST_OUTAGE.total_seconds():
        return (
            f"the keeper was {seen.longest_lag_seconds / 3600:.0f} hours behind since its last "
            f"audit, of {audit['ended']}, and a stream keeps records for 24 hours"
        )
    if seen.failures is None:
        return "it cannot be seen whether records wait in the keeper's failure queue"
    if seen.failures:
        return (
            f"{counted(seen.failures, 'message')} "
            f"{'waits' if seen.failures == 1 else 'wait'} in the keeper's failure queue"
        )
    return None


def kept_by(keepers: tuple[Follower, ...]) -> dict[str, str]:
    """The keepers' mappings as an audit notes them: when each was changed last.

    One that was disabled for a while has lost what the stream forgot meanwhile.
    """
    return {keeper.uuid: keeper.modified for keeper in keepers}


class Keeper(Protocol):
    """Who keeps the index of a table true, as far as it is ours to say.

    watch: sees who follows a stream; None where there can be nobody.
    """

    @property
    def watch(self) -> Watch | None: ...

    @property
    def turns_stream_on(self) -> bool:
        """Whether a table without a stream gets one, which goes with the index."""

    def attach(self, table: Table, sentinel: Sentinel) -> bool:
        """Make sure that the table is followed; False: not yet, so this is called again."""

    def check_may_detach(self, table: Table) -> None:
        """Raises CannotStart if somebody follows the table whom it is not ours to stop."""

    def detach(self, table: Table) -> bool:
        """Make sure that it is not followed; False: not yet, so this is called again."""

    def mappings(self, table: Table) -> int:
        """How many mappings of the keeper there are: with none, nobody follows the table."""

    def shares_stream(self, table: Table) -> bool:
        """Whether somebody else reads the table's stream."""


def kept_now(keeper: Keeper, table: Table) -> dict[str, str]:
    """The keepers' mappings, as they are now; none if they cannot be seen."""
    watch, stream = keeper.watch, table.stream
    if watch is None or stream is None:
        return {}
    return kept_by(watch.followers(stream) or ())


@dataclass(frozen=True, slots=True)
class MappedKeeper:
    """The keeper function of a deployment, by its event source mappings (Keeper)."""

    turns_stream_on: ClassVar[bool] = True
    mappings_of: Mappings
    watch: Watch | None

    def attach(self, table: Table, sentinel: Sentinel) -> bool:
        if table.stream is None:
            return False
        place = modified_at(sentinel.sort.name, sentinel.place)
        return self.mappings_of.attach(table.stream, place)

    def check_may_detach(self, table: Table) -> None:
        """Keeper.check_may_detach: its mappings are ours."""

    def detach(self, table: Table) -> bool:
        return self.mappings_of.detach(_stream_of(table))

    def shares_stream(self, table: Table) -> bool:
        return table.stream is not None and bool(self.mappings_of.others(table.stream))

    def mappings(self, table: Table) -> int:
        return len(self.mappings_of.of_table(_stream_of(table)))


def _stream_of(table: Table) -> str:
    """The table's stream, or an ARN like it: mappings to streams of yesterday go as well."""
    return table.stream or f"{table.arn}/stream/none"


@dataclass(frozen=True, slots=True)
class OthersKeeper:
    """A keeper of some deployment, which the command only looks at (Keeper).

    believes_none: the user knows of none, where it cannot be seen whether one follows the table.
    """

    turns_stream_on: ClassVar[bool] = False
    watch: Watch | None
    believes_none: bool

    def attach(self, table: Table, sentinel: Sentinel) -> bool:
        return True

    def check_may_detach(self, table: Table) -> None:
        keepers = self._keepers(table)
        if keepers:
            names = ", ".join(sorted({keeper.function for keeper in keepers}))
            raise CannotStart(
                f"A keeper follows the table's stream and would put the sentinels back: {names}. "
                f"Start the state machine RemoveKeyIndex of its deployment."
            )
        if keepers is None and not self.believes_none:
            raise CannotStart(
                "It cannot be seen from here whether a keeper follows the table's stream, which "
                "would put the sentinels back: allow lambda:ListEventSourceMappings, or, if you "
                "know of none, give --no-keeper."
            )

    def detach(self, table: Table) -> bool:
        return True

    def mappings(self, table: Table) -> int:
        return len(self._keepers(table) or ())

    def shares_stream(self, table: Table) -> bool:
        return True

    def _keepers(self, table: Table) -> tuple[Follower, ...] | None:
        if self.watch is None or table.stream is None:
            return ()
        return self.watch.followers(table.stream)
