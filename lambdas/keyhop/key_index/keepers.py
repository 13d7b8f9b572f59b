"""Who keeps the index of a table true, as an action of its life cycle sees and changes it."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

from keyhop.dynamodb.tables import Table
from keyhop.errors import CannotStart
from keyhop.key_index.belief import kept_by
from keyhop.key_index.sentinel import Sentinel
from keyhop.streams.event_source import Follower, Mappings, Watch, modified_at


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
