"""Claims, settled: by the batch that has put them or comes across them, by verify, or when asked.

Who settles a claim takes it first, and reads the control item then: so who turns that waits until
no claim is left. He who was overtaken writes nothing more (protocol.py).
"""

from collections.abc import Callable, Sequence
from typing import Any

from keyhop.rekey.control import Direction, Share
from keyhop.rekey.side.layout import Claim
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.transform import KeyNames
from keyhop.rekey.worker.drive import Driver, Task
from keyhop.rekey.worker.images import frozen
from keyhop.rekey.worker.protocol import Claim as Taken

SWEEP_SECONDS = 10.0
"""A claim that has stood so long is tried again by whatever batch comes across it."""

MOST_CLAIMS = 100
"""That a batch looks at, or settles. Which, goes round: none is left out for good."""


class Sweeper:
    """Of one direction. names: of the origin's key. share: from the control item as it is now."""

    def __init__(
        self,
        direction: Direction,
        names: KeyNames,
        side: SideTable,
        share: Callable[[], Share],
        now: Callable[[], float],
    ) -> None:
        self._direction = direction
        self._names = names
        self._side = side
        self._share = share
        self._now = now
        self._last: Claim | None = None

    def due(self, touched: set[Any], fresh: Sequence[Claim]) -> list[Claim]:
        """Those just put, those at places where something has changed, and those that are old."""
        page = self._side.claims(self._direction, MOST_CLAIMS, self._last)
        self._last = page[-1] if len(page) >= MOST_CLAIMS else None
        old = self._now() - SWEEP_SECONDS
        due = [one for one in page if one.at <= old or self._is_touched(one, touched)]
        tokens = {one.token for one in fresh}
        return [*fresh, *(one for one in due if one.token not in tokens)][:MOST_CLAIMS]

    def _is_touched(self, claim: Claim, touched: set[Any]) -> bool:
        """Whether a claim that waits for its place is to be tried; a shared one is being tried."""
        return not claim.joint and frozen(claim.place) in touched

    def sweep(self, claims: Sequence[Claim], driver: Driver) -> int:
        """Take claims, and settle them; return how many are settled."""
        alone = [claim for claim in claims if not claim.joint]
        taken = [one for claim in alone if (one := self._side.take_claim(claim)) is not None]
        for claim in {one.joint: one for one in claims if one.joint}.values():
            taken += self._side.take_joint(claim)
        return sum(self.settle(taken, driver))

    def settle(self, taken: Sequence[Claim], driver: Driver) -> list[bool]:
        """Work claims that have tokens of our own, drop those that are done, and return which.

        Of the others it is noted whether DynamoDB refused the item. If they share a row, each gets
        a row of its own before that one is dropped.
        """
        if not taken or self._share() != "work":
            return [False] * len(taken)
        tasks = []
        for claim in taken:
            owner = frozen({name: claim.owner[name] for name in self._names.all})
            fenced = Taken(frozen(claim.place), owner, self._side.fence(claim))
            tasks.append(Task(driver.protocol.settle(fenced)))
        driver.run(tasks)
        done, rows = [], {}
        for claim, task in zip(taken, tasks, strict=True):
            done.append(not task.is_left and not (claim.joint and task.is_claimed))
            if task.is_left and claim.joint:
                place, refusal = claim.place, task.refusal
                self._side.claim(self._direction, place, claim.owner, refusal=refusal)
            elif task.is_left and task.refusal != claim.refusal:
                self._side.note_refusal(claim, task.refusal)
            if claim.joint or not task.is_left:
                rows[self._side.fence(claim)] = claim
        dropped = dict(zip(rows, driver.map(self._side.drop_claim, [*rows.values()]), strict=True))
        return [
            is_done and dropped[self._side.fence(claim)]
            for claim, is_done in zip(taken, done, strict=True)
        ]
