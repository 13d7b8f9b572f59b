"""The session of `keyhop rekey`: a pair of tables, its side table, and its deployment."""

import time
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING

from keyhop.cli.exit_status import DONE
from keyhop.cli.options import Options
from keyhop.cli.rekey_view import standing_json, standing_lines
from keyhop.cli.session import Facts, Session, Stop
from keyhop.dynamodb.client import aws_client
from keyhop.dynamodb.tables import StepResult, Table, look_up
from keyhop.errors import CannotStart, NotPermitted, RunConflict, TableNotFound
from keyhop.rekey.control import Control, direction_from
from keyhop.rekey.life_cycle.create import Followers
from keyhop.rekey.life_cycle.features import ClientOf
from keyhop.rekey.pair import SIDE_SUFFIX
from keyhop.rekey.side.layout import DEPLOYMENT, FAILED
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.standing import Standing
from keyhop.sharding.key.names import metadata_of
from keyhop.tasks import tasks_of

if TYPE_CHECKING:
    from keyhop.cli.rekey_stack import RekeyStack

TRIES = 10
"""Attempts to change the control item, which other processes change, too."""

MOST_LISTED = 1_000
"""The maximum number of claims that are counted."""


class PairCommand(Session):
    """One action on a pair, whose source is `table`; `tasks` are those of its runs."""

    tasks = staticmethod(tasks_of)

    def __init__(self, options: Options, stop: Stop) -> None:
        super().__init__(options, stop)
        self.to: str = options.to
        endpoint = self.connection.endpoint
        self.client_of: ClientOf | None = None
        if not endpoint.is_loopback:
            self.client_of = partial(aws_client, endpoint=endpoint)

    def side(self) -> SideTable:
        """Return the side table of this pair; raise CannotStart or RunConflict without one."""
        side = SideTable(self.connection, self.to + SIDE_SUFFIX, stop=self.stop.event)
        try:
            pair = side.plan()
        except TableNotFound as error:
            raise CannotStart(
                f"There is no re-key of {self.table.bare_name} to {self.to}: begin with keyhop "
                "rekey plan, then create."
            ) from error
        if pair.source != self.table.bare_name:
            raise RunConflict(
                f"{pair.destination} is being made of {pair.source}, and not of "
                f"{self.table.bare_name}: give --to another table."
            )
        return side

    @cached_property
    def stack(self) -> "RekeyStack | None":
        """The stack that --stack names, or that `start` has recorded; None without one."""
        name = self.options.stack
        if name is None:
            name = (self.side().told(DEPLOYMENT) or {}).get("stack")
        if name is None:
            return None
        from keyhop.cli.rekey_stack import RekeyStack  # with boto3's transfers

        return RekeyStack(name, self.connection.endpoint, self.options)

    @property
    def by_deployment(self) -> "RekeyStack | None":
        """The stack whose state machines do the work, if --stack names one."""
        return None if self.options.stack is None else self.stack

    def shards_of(self, stack: str | None) -> Callable[[Table], bool]:
        """Return a test for sharded tables, by the metadata tables of the deployment of this name.

        PlanRun knows other metadata tables, too.
        """

        def is_sharded(table: Table) -> bool:
            try:
                look_up(self.connection, metadata_of(table.bare_name, stack or ""))
            except (TableNotFound, NotPermitted):
                return False
            return True

        return is_sharded if stack else lambda table: False

    def followers(self) -> Followers | None:
        """Return the event source mappings of the stack's function; None without a stack."""
        return None if self.stack is None else self.stack.followers()

    def change(self, side: SideTable, change: Callable[[Control], Control]) -> Control:
        """Change the control item, and return it."""
        for _ in range(TRIES):
            control = side.control()
            after = change(control)
            if after == control or side.swap(control, after):
                return after
        raise CannotStart("The control item changes all the time: try again in a minute.")

    def standing(self, side: SideTable) -> Standing:
        control = side.control()
        figures = side.all_told()
        if self.stack is not None:
            failed = self.stack.deployed(self.connection, side.plan()).failed()
            figures |= {} if failed is None else {FAILED: {"count": failed}}
        direction = direction_from(control.serving)
        return Standing(
            pair=side.plan(),
            control=control,
            now=time.time(),
            claims=side.claims(direction, MOST_LISTED),
            open_batches=[batch.at for batch in side.open_batches(direction)],
            clients=side.clients(),
            stragglers=side.stragglers(),
            figures=figures,
            unmapped=side.all_unmapped(direction),
        )

    def put_out_status(self, side: SideTable) -> int:
        standing, with_keys = (
            self.standing(side),
            getattr(self.options, "show_keys", None) == "full",
        )
        self.put_out(
            standing_json(standing, with_keys),
            lambda: "\n".join(standing_lines(standing, with_keys)),
        )
        return DONE

    def confirm(self, act: str, facts: Callable[[], Facts] = tuple) -> None:
        super().confirm(act, lambda: [("to", self.to), *facts()])

    def all_steps(self, step: Callable[[], StepResult]) -> StepResult:
        """Do step after step until the last one. Raise Stopped."""
        while not (result := step()).done:
            self.wait_for(result.says)
        return result
