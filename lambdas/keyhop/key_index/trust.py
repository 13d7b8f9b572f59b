"""Whether the key index is trusted, by evidence that is checked just before the index is read.

`why_not` is the only decision: `auto` and `status` print its reason. Where evidence is unknown, the
index is not trusted, and the keys are found by hopping, which is always correct.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from keyhop.dynamodb.tables import Source, Table
from keyhop.errors import CannotStart
from keyhop.key_index.index import check_has_one, is_anothers, status_of
from keyhop.key_index.protocol import UNSEEN_KEEPER
from keyhop.key_index.registry import Entry
from keyhop.key_index.sentinel import INDEX, Sentinel
from keyhop.streams.event_source import MOST_OUTAGE, Follower, Mappings, Watch, modified_at
from keyhop.wording import counted

VERIFICATION_COUNTS_DAYS = 13
"""The time for which a verification counts, from its beginning.

The failure queue deletes a message after 14 days, and with it the evidence that records were lost.
A verification that began before the records were written must not count any more by then.
"""

MOST_LAG_SECONDS = 60.0
"""The lag that is accepted: a list that takes a minute to read may lack as much anyway."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence about an index at one moment. None means unknown.

    Attributes:
        entry: The entry in the registry: the last verification, and whether trust was withdrawn.
        sentinel: The configured place of sentinels, or None if any place is accepted.
        is_listed: Whether the deployment still lists the table as one with a key index.
        stream: The ARN of the table's stream, if the stream is on.
        keepers: The keepers that follow the stream.
        lag_seconds: The recent lag of the keepers.
        longest_lag_seconds: Their longest lag since the last verification began.
        failures: The number of messages about records on which they gave up.
    """

    index: str | None
    entry: Entry
    sentinel: Sentinel | None
    is_listed: bool
    stream: str | None
    keepers: tuple[Follower, ...] | None
    lag_seconds: float | None
    longest_lag_seconds: float | None
    failures: int | None


@dataclass(frozen=True, slots=True)
class Trust:
    """The decision that follows from the evidence.

    Attributes:
        source: The index, if it is read; None if it is not.
        why: The reason; empty if no index exists.
        doubt: Why an index is not trusted that is read nevertheless.
        token: A value that must be unchanged at the end, if the index is trusted.
    """

    source: Source | None
    why: str
    doubt: str | None = None
    token: int | None = None


def choose_source(
    table: Table, method: str, accepts_stale: bool, evidence: Callable[[], Evidence]
) -> Trust:
    """Decide whether the key index is read, by the method "index" or "auto".

    Args:
        accepts_stale: Whether the caller accepts an index that is not trusted.
        evidence: Collects the evidence.

    Raises:
        IndexNotFound: The method is "index", and the table has no key index.
        CannotStart: The method is "index", and the index is not trusted.
    """
    if method == "index":
        check_has_one(table)
    elif table.index(INDEX) is None:
        return Trust(None, "")
    elif is_anothers(table):
        return Trust(None, f"the index {INDEX} has another shape, so it is not Keyhop's")
    collected = evidence()
    doubt = why_not(collected)
    if method == "auto" and doubt is not None:
        return Trust(None, doubt)
    if doubt is not None and not accepts_stale:
        raise CannotStart(
            f"The key index of {table.bare_name!r} may be out of date: {doubt}. Method auto finds "
            "the keys without it. To read it anyway, accept stale-index."
        )
    sentinel = collected.entry.place or collected.sentinel or Sentinel.of(table.space)
    source = replace(table.source(INDEX), only=sentinel.item_of({}))
    if doubt is not None or collected.entry.verification is None:
        return Trust(source, f"accepted, although {doubt}", doubt)
    last = collected.entry.verification
    result = "found no drift"
    if drift := last["drift"]:
        result = f"found drift ({drift:,}), of which a second look at the end found nothing left"
    why = f"the key index is kept, and its verification of {last['ended']} {result}"
    return Trust(source, why, token=collected.entry.epoch)


def gather(
    table: Table,
    entry: Entry,
    watch: Watch | None,
    sentinel: Sentinel | None = None,
    is_listed: bool = True,
) -> Evidence:
    """Collect the evidence. `watch` is None where a table cannot have a keeper."""
    keepers: tuple[Follower, ...] | None = ()
    lags: list[float | None] = []
    longest: list[float | None] = []
    failures: list[int | None] = []
    if table.stream is not None and watch is not None:
        keepers = watch.followers(table.stream)
        for keeper in keepers or ():
            lags.append(watch.lag_seconds(keeper.function))
            if entry.verification is not None:
                began = datetime.fromisoformat(entry.verification["began"])
                lag = watch.longest_lag_seconds(keeper.function, table.bare_name, began)
                longest.append(lag)
            failures.append(watch.failures(keeper.queue))
    return Evidence(
        status_of(table),
        entry,
        sentinel,
        is_listed,
        table.stream,
        keepers,
        _greatest(lags),
        _greatest(longest),
        None if None in failures else sum(count for count in failures if count is not None),
    )


def _greatest(lags: list[float | None]) -> float | None:
    """Return the greatest of several lags; None if one of them cannot be seen."""
    visible = [lag for lag in lags if lag is not None]
    return max(visible, default=0.0) if len(visible) == len(lags) else None


def why_not(evidence: Evidence, now: datetime | None = None) -> str | None:
    """Return why the index is not trusted, or None if it is."""
    entry, last = evidence.entry, evidence.entry.verification
    if evidence.index != "ACTIVE":
        return "there is none" if evidence.index is None else f"it is {evidence.index}"
    if not evidence.is_listed:
        return "the table is not among those with keyIndex any more"
    if entry.lease is not None and entry.lease.action != "verify":
        return (
            f"its {entry.lease.action}, begun {entry.lease.since} by {entry.lease.holder}, has not "
            f"come to its end"
        )
    if last is None:
        return "no verification of it is on record here"
    if evidence.sentinel is not None and evidence.sentinel != entry.place:
        return "its sentinels have another sort key than is configured now"
    if entry.is_withdrawn:
        withdrawal = entry.withdrawn or {
            "when": "an unknown time",
            "why": "the reason is not on record",
        }
        return (
            f"trust in it was withdrawn at {withdrawal['when']}, and no verification began since: "
            f"{withdrawal['why']}"
        )
    if last.get("resumed"):
        began = last["began"]
        return f"its last verification, begun {began}, was resumed: start one from the beginning"
    return _why_not_verified(last, now or datetime.now(UTC)) or _why_not_kept(evidence, last)


def _why_not_verified(last: Mapping[str, Any], now: datetime) -> str | None:
    when = last["ended"]
    if not last.get("keeper"):
        return f"no keeper followed the table at its last verification, of {when}"
    if last.get("remaining", last["drift"]):
        return f"its last verification, of {when}, found drift"
    began = last["began"]
    if now - datetime.fromisoformat(began) > timedelta(days=VERIFICATION_COUNTS_DAYS):
        days = VERIFICATION_COUNTS_DAYS
        return f"its last verification, begun {began}, is more than {days} days old"
    return None


def _why_not_kept(evidence: Evidence, last: Mapping[str, Any]) -> str | None:
    """Return why the keeper of the last verification may not have followed the table ever since."""
    if evidence.stream is None:
        return "the table's stream is off, so no keeper can follow it"
    if evidence.stream != last.get("stream"):
        return f"the table has another stream than at its last verification, of {last['ended']}"
    if evidence.keepers is None:
        return "it cannot be seen whether a keeper follows the table"
    if not evidence.keepers:
        return "no keeper follows the table's stream"
    for keeper in evidence.keepers:
        if keeper.state != "Enabled":
            return f"the keeper's event source mapping is {keeper.state}"
        if keeper.problem:
            return f"the keeper cannot follow the stream: {keeper.problem}"
    if kept_by(evidence.keepers) != last.get("kept_by"):
        return f"the keeper's mapping was changed since its last verification, of {last['ended']}"
    if evidence.lag_seconds is None:
        return "it cannot be seen how far the keeper is behind"
    if evidence.lag_seconds > MOST_LAG_SECONDS:
        return f"the keeper is {counted(round(evidence.lag_seconds), 'second')} behind"
    if evidence.longest_lag_seconds is None:
        return (
            "it cannot be seen whether the keeper worked since its last verification, of "
            f"{last['ended']}"
        )
    if evidence.longest_lag_seconds > MOST_OUTAGE.total_seconds():
        return (
            f"the keeper was {evidence.longest_lag_seconds / 3600:.0f} hours behind since its last "
            f"verification, of {last['ended']}, and a stream keeps records for 24 hours"
        )
    if evidence.failures is None:
        return "it cannot be seen whether records wait in the keeper's failure queue"
    if evidence.failures:
        return (
            f"{counted(evidence.failures, 'message')} "
            f"{'waits' if evidence.failures == 1 else 'wait'} in the keeper's failure queue"
        )
    return None


def kept_by(keepers: tuple[Follower, ...]) -> dict[str, str]:
    """Return when each mapping was last changed. One that was disabled may have lost records."""
    return {keeper.uuid: keeper.modified for keeper in keepers}


class Keeper:
    """The function that maintains an index, as the command sees it, which does not change it.

    Args:
        watch: Finds the functions that follow a stream; None where there can be none.
        accepts_unseen: Whether the user accepts that it is unknown whether there is a keeper.

    Attributes:
        turns_stream_on: Whether a table without a stream gets one, which is turned off with the
            index.
    """

    turns_stream_on = False

    def __init__(self, watch: Watch | None, accepts_unseen: bool = False) -> None:
        self._watch = watch
        self._accepts_unseen = accepts_unseen

    def attach(self, table: Table, sentinel: Sentinel) -> bool:
        """Attach the keeper to the table; return False if it must be called again."""
        return True

    def check_may_detach(self, table: Table) -> None:
        """Raise CannotStart if a function follows the table that must not be stopped here."""
        keepers = self._keepers(table)
        if keepers:
            names = ", ".join(sorted({keeper.function for keeper in keepers}))
            raise CannotStart(
                f"A keeper follows the table's stream and would put the sentinels back: {names}. "
                f"Start the state machine RemoveKeyIndex of its deployment."
            )
        if keepers is None and not self._accepts_unseen:
            raise CannotStart(
                "It is unknown whether a keeper follows the table's stream. It would put the "
                "sentinels back. Allow lambda:ListEventSourceMappings, or, if you know that "
                f'there is no keeper, give accept="{UNSEEN_KEEPER}".'
            )

    def detach(self, table: Table) -> bool:
        """Detach the keeper from the table; return False if it must be called again."""
        return True

    def mappings(self, table: Table) -> int:
        """Return the number of event source mappings of the keeper."""
        return len(self._keepers(table) or ())

    def shares_stream(self, table: Table) -> bool:
        """Return whether another function reads the stream of the table."""
        return True

    def kept_now(self, table: Table) -> dict[str, str]:
        """Return the mappings of the keepers now (see `kept_by`); none if they are unknown."""
        return kept_by(self._keepers(table) or ())

    def _keepers(self, table: Table) -> tuple[Follower, ...] | None:
        if self._watch is None or table.stream is None:
            return ()
        return self._watch.followers(table.stream)


class MappedKeeper(Keeper):
    """The keeper function of a deployment, which is changed by its event source mappings."""

    turns_stream_on = True

    def __init__(self, mappings: Mappings, watch: Watch | None) -> None:
        super().__init__(watch)
        self._mappings = mappings

    def attach(self, table: Table, sentinel: Sentinel) -> bool:
        if table.stream is None:
            return False
        place = modified_at(sentinel.sort.name, sentinel.place)
        return self._mappings.attach(table.stream, place)

    def check_may_detach(self, table: Table) -> None:
        return

    def detach(self, table: Table) -> bool:
        return self._mappings.detach(_stream_of(table))

    def shares_stream(self, table: Table) -> bool:
        return table.stream is not None and bool(self._mappings.other_functions(table.stream))

    def mappings(self, table: Table) -> int:
        return len(self._mappings.of_table(_stream_of(table)))


def _stream_of(table: Table) -> str:
    """Return the ARN of the table's stream, or one like it, to find mappings to deleted ones."""
    return table.stream or f"{table.arn}/stream/none"
