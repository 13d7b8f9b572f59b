"""Settle claims: by the batch that has recorded or found them, by verify, or on request.

A worker takes a claim before it settles it, and reads the control item after that. So a change of
the serving table waits until no claim remains.
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
"""The age at which any batch that finds a claim tries it again."""

MOST_CLAIMS = 100
"""The claims that a batch reads, or settles. They rotate, so each claim is tried in time."""


class Sweeper:
    """Settles one direction's claims, by the names of the origin's key and the current share."""

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
        """Return the new claims, those at places with a change, and old ones."""
        page = self._side.claims(self._direction, MOST_CLAIMS, self._last)
        self._last = page[-1] if len(page) >= MOST_CLAIMS else None
        old = self._now() - SWEEP_SECONDS
        due = [claim for claim in page if claim.at <= old or self._is_touched(claim, touched)]
        tokens = {claim.token for claim in fresh}
        return [*fresh, *(claim for claim in due if claim.token not in tokens)][:MOST_CLAIMS]

    def _is_touched(self, claim: Claim, touched: set[Any]) -> bool:
        """Return whether to try a claim that waits for its place; a shared one is being tried."""
        return not claim.joint and frozen(claim.place) in touched

    def sweep(self, claims: Sequence[Claim], driver: Driver) -> int:
        """Take claims and settle them; return how many are settled."""
        alone = [claim for claim in claims if not claim.joint]
        taken_claims = [
            taken_claim
            for claim in alone
            if (taken_claim := self._side.take_claim(claim)) is not None
        ]
        for claim in {
            joint_claim.joint: joint_claim for joint_claim in claims if joint_claim.joint
        }.values():
            taken_claims += self._side.take_joint(claim)
        return sum(self.settle(taken_claims, driver))

    def settle(self, claims: Sequence[Claim], driver: Driver) -> list[bool]:
        """Settle claims with our tokens, remove the settled ones, and return which these are.
        Record the refusals of others, which get separate rows before a shared row is removed.
        """
        if not claims or self._share() != "work":
            return [False] * len(claims)
        tasks = []
        for claim in claims:
            owner = frozen({name: claim.owner[name] for name in self._names.all})
            fenced = Taken(frozen(claim.place), owner, self._side.fence(claim))
            tasks.append(Task(driver.protocol.settle(fenced)))
        driver.run(tasks)
        settled, rows = [], {}
        for claim, task in zip(claims, tasks, strict=True):
            settled.append(not task.is_left and not (claim.joint and task.is_claimed))
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
            for claim, is_done in zip(claims, settled, strict=True)
        ]
