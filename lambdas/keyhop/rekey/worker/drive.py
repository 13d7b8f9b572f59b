"""Drive the works of the protocol: several threads write, and one request reads many items.

Works are driven in waves, so at most the images of one answer of BatchGetItem are in memory. Each
write has a condition about the owner of the existing item. A write whose answer was lost is not
repeated (requester.Unanswered): the protocol waits, and reads.

A claim is settled by the batch that has recorded or found it, by verify, or on request. A worker
takes a claim before it settles it, and reads the control item after that. So a change of the
serving table waits until no claim remains.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import Any, TypeVar, cast

from botocore.exceptions import ClientError

from keyhop.dynamodb.client import Connection
from keyhop.dynamodb.own_table import OwnTable
from keyhop.dynamodb.refusals import CHECK_FAILED, cancellations
from keyhop.dynamodb.requester import Unanswered, is_of_the_item
from keyhop.dynamodb.units import MOST_KEYS_AT_ONCE, write_units
from keyhop.dynamodb.values import Item, Key, size_of
from keyhop.errors import GaveUp, KeyhopError
from keyhop.rekey.control import Direction, Share
from keyhop.rekey.side.layout import Claim
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.transform import Transform
from keyhop.rekey.worker.images import (
    FrozenKey,
    Image,
    Values,
    frozen,
    owner_values,
    place_of,
    thawed,
)
from keyhop.rekey.worker.protocol import WAIT_SECONDS, Call, Kind, Outcome, Protocol, Work
from keyhop.rekey.worker.protocol import Claim as Taken

MOST_TRIES = 50
"""The tries of one write, each of which was refused because its owner has changed the item."""

Answer = FrozenKey | Outcome | None


class Target(OwnTable):
    """Makes the requests of one direction's protocol, for any number of threads, with the arguments
    of ItemCalls. `claims` has the claims that were recorded when places were taken over.
    """

    def __init__(
        self,
        connection: Connection,
        table: str,
        transform: Transform,
        direction: Direction,
        side: SideTable,
        **more: Any,
    ) -> None:
        # A slow target slows the backfill, and never the stream.
        super().__init__(connection, table, slows=False, **more)
        self.claims: list[Claim] = []
        self._transform = transform
        self._direction = direction
        self._side = side
        self._is_bijective = transform.kind == "bijective"
        self._absent = "attribute_not_exists(#p)"
        self._seen: dict[tuple[Any, Any], Values] = {}

    def write(self, call: Call) -> Answer:
        """Put an image at an empty place or over its own item; else return the owner."""
        image = call.image
        assert isinstance(image, Image)
        assert image.there is not None
        item = image.there
        if self._is_bijective:
            return self._sent(call, item)[0]
        values = image.owner_values
        for _ in range(MOST_TRIES):
            answer, old = self._sent(call, item, values, or_absent=True)
            if answer is not Outcome.REFUSED:
                return answer
            if old is None:
                continue
            owner, values = self._owner_of(old), owner_values(old, self._transform)
            if owner is None:
                return Outcome.FOREIGN
            if owner != call.source:
                self._seen[call.source, call.place] = values
                return owner
        raise GaveUp(f"An item of table {self._table!r} is changing too often.")

    def remove(self, call: Call, values: Values | None) -> Answer:
        """Delete the item at a place if it is of the source, as its `values` show."""
        if self._is_bijective:
            return self._sent(call)[0]
        for _ in range(MOST_TRIES):
            if values is None:
                old = self.get(thawed(call.place))
            else:
                answer, old = self._sent(call, None, values)
                if answer is not Outcome.REFUSED:
                    return answer
            if old is None or self._owner_of(old) != call.source:
                return None
            values = owner_values(old, self._transform)
        raise GaveUp(f"An item of table {self._table!r} is changing too often.")

    def take_over(self, call: Call) -> Answer:
        """Put an image in the place of another owner's item, and record a claim of that owner."""
        image = call.image
        assert isinstance(image, Image)
        claim = self._side.new_claim(self._direction, thawed(call.place), thawed(call.owner))
        values = self._seen[call.source, call.place]
        answer, _ = self._sent(call, image.there, values, claim=claim)
        if answer is None:
            self.claims.append(claim)
        return answer

    def write_together(self, calls: Sequence[Call]) -> list[Outcome | None]:
        """Write and remove at distinct places in one transaction, by claims that share a row. Try
        the others again if some are refused. Return for each call None if it is done, OVERTAKEN
        (then for all) if the fence does not hold any more, and REFUSED if it must be tried alone.
        """
        answers: list[Outcome | None] = [None] * len(calls)
        parts = {number: part for number, part in enumerate(self._parts(calls)) if part is not None}
        while parts:
            fence = self._side.holds(self._direction, cast(tuple[str, str], calls[0].fence))
            units = 2 * (sum(units for _, units in parts.values()) + 1)
            actions = [*(part for part, _ in parts.values()), fence]
            written = self._write(
                "transact_write_items", units, units, once=True, TransactItems=actions
            )
            if written.refused is None:
                break
            *reasons, of_fence = cancellations(written.refused)
            if of_fence == CHECK_FAILED:
                return [Outcome.OVERTAKEN] * len(calls)
            for number, reason in zip([*parts], reasons, strict=True):
                if reason == CHECK_FAILED:
                    answers[number] = Outcome.REFUSED
                    del parts[number]
        return answers

    def _parts(self, calls: Sequence[Call]) -> Iterator[tuple[dict[str, Any], float] | None]:
        """Yield the part of a transaction for each call; None if it has nothing to remove."""
        items_there: dict[FrozenKey, Item] = {}
        removed = [thawed(call.place) for call in calls if call.kind is Kind.REMOVE]
        if removed and not self._is_bijective:
            names = self._transform.destination
            items_there = {frozen(names.of(old)): old for old in self.get_many(removed)}
        for call in calls:
            if call.kind is Kind.WRITE:
                image = call.image
                assert isinstance(image, Image)
                assert image.there is not None
                values = None if self._is_bijective else image.owner_values
                yield self._part(call, image.there, values, or_absent=True)
            elif self._is_bijective:
                yield self._part(call)
            else:
                old = items_there.get(cast(FrozenKey, call.place))
                is_its_own = old is not None and self._owner_of(old) == call.source
                values = owner_values(old, self._transform) if old and is_its_own else None
                yield self._part(call, None, values) if is_its_own else None

    def get_many(self, keys: Sequence[Key]) -> list[Key]:
        """Read up to MOST_KEYS_AT_ONCE items, strongly consistent; return those that exist."""
        return self._read_batch(keys, {})

    def _owner_of(self, old: Item) -> FrozenKey | None:
        try:
            owner = self._transform.owner_of(old)
        except Exception:  # a user's function
            return None
        return None if owner is None else frozen(owner)

    def _part(
        self,
        call: Call,
        item: Item | None = None,
        values: Values | None = None,
        or_absent: bool = False,
    ) -> tuple[dict[str, Any], float]:
        """Return the part of a transaction for a Put or a Delete, and its write units."""
        place = thawed(call.place)
        write: dict[str, Any] = {"TableName": self._table}
        write |= {"Key": place} if item is None else {"Item": item}
        if values is not None:
            write |= self._condition(values, next(iter(place)), or_absent)
        kind = "Delete" if item is None else "Put"
        return {kind: write}, write_units(0 if item is None else size_of(item))

    def _sent(
        self,
        call: Call,
        item: Item | None = None,
        values: Values | None = None,
        or_absent: bool = False,
        claim: Claim | None = None,
    ) -> tuple[Answer, Item | None]:
        """Send a Put or a Delete; return the answer, and the item that refused it."""
        part, units = self._part(call, item, values, or_absent)
        ((kind, write),) = part.items()
        beside = [] if claim is None else [self._side.claiming(claim)]
        if call.fence is not None:
            fence = cast(tuple[str, str], call.fence)
            beside.append(self._side.holds(self._direction, fence))
        if not beside:
            written = self._write(f"{kind.lower()}_item", units, once=True, **write)
            if written.refused is None:
                return None, None
            return Outcome.REFUSED, written.old
        actions = [part, *beside]
        units = 2 * (units + len(beside))
        written = self._write(
            "transact_write_items", units, units, once=True, TransactItems=actions
        )
        if written.refused is None:
            return None, None
        return _cancelled(written.refused)

    def _condition(self, values: Values, partition: str, or_absent: bool) -> dict[str, Any]:
        """Return the condition that an item's owner attributes have these values."""
        names, content, clauses = {}, {}, []
        for number, (name, value) in enumerate(values.items()):
            names[f"#o{number}"] = name
            if value is None:
                clauses.append(f"attribute_not_exists(#o{number})")
            else:
                content[f":o{number}"] = value
                clauses.append(f"#o{number} = :o{number}")
        if or_absent or None in values.values() or not clauses:
            names["#p"] = partition
        owned = " AND ".join(clauses) or "attribute_exists(#p)"
        if not or_absent and "#p" in names and clauses:
            owned += " AND attribute_exists(#p)"  # a missing item lacks all attributes too
        condition = f"{self._absent} OR ({owned})" if or_absent else owned
        more: Mapping[str, Any] = {"ExpressionAttributeValues": content} if content else {}
        return {
            "ConditionExpression": condition,
            "ExpressionAttributeNames": names,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            **more,
        }


def _cancelled(error: ClientError) -> tuple[Answer, Item | None]:
    """Return the answer of a cancelled transaction: its first part is the write."""
    first, *rest = cancellations(error)
    if CHECK_FAILED in rest:
        return Outcome.OVERTAKEN, None
    assert first == CHECK_FAILED
    item: Item | None = error.response["CancellationReasons"][0].get("Item")
    return Outcome.REFUSED, item


V = TypeVar("V")
W = TypeVar("W")

THREADS = 24
"""With 5 ms a write, they keep one core busy, which is the limit of Python (bench/rekey.py)."""

WAVE_BYTES = 12 * 1024 * 1024
"""The maximum bytes of a wave's images before the reads; BatchGetItem returns at most 16 MB."""

MOST_TOGETHER_BYTES = 3 * 1024 * 1024
"""The maximum bytes of the images in one transaction, which may have 4 MB."""

MOST_ROUNDS = 20
"""The maximum rounds of one work. An item that changes faster than it can be written becomes a
claim, so that it does not delay its batch, until it stops changing or its place is read again.
"""


SWEEP_SECONDS = 10.0
"""The age at which any batch that finds a claim tries it again."""

MOST_CLAIMS = 100
"""The claims that a batch reads, or settles. They rotate, so each claim is tried in time."""


@dataclass(slots=True, eq=False)
class Task:
    """A work, with the values that identify the owner at each of its places, and the size of its
    image in bytes. After `quiet_at` on the clock no earlier request can take effect.
    """

    work: Work
    values: Mapping[FrozenKey, Values] = field(default_factory=dict)
    size: int = 0
    quiet_at: float = 0.0
    rounds: int = 0
    refusal: str = ""
    """The reason why DynamoDB refused the item; empty if it did not."""
    is_claimed: bool = False
    """Whether another process has taken the claim of this work, or this work has recorded it."""

    @property
    def is_left(self) -> bool:
        """Return whether the work has become claims, or remains the claim that it was for."""
        return self.work.is_left


class Driver:
    """Drives the works of one direction, and settles its claims, for one batch at a time.

    `origin` is the table that is replicated, for reads. `share` reads the control item.

    Attributes:
        claims: The claims that this batch has recorded.
        failures: The error of each work that is given up because DynamoDB refuses its item.
    """

    def __init__(
        self,
        direction: Direction,
        transform: Transform,
        origin: Target,
        target: Target,
        side: SideTable,
        share: Callable[[], Share],
        clock: Callable[[], float],
        now: Callable[[], float],
        pool: Callable[[int], Executor] = ThreadPoolExecutor,
    ) -> None:
        self.protocol = Protocol(place_of)
        self.claims: list[Claim] = []
        self.failures: list[Exception] = []
        self._direction = direction
        self._transform = transform
        self._origin = origin
        self._target = target
        self._side = side
        self._share = share
        self._clock = clock
        self._now = now
        self._pool = pool
        self._last: Claim | None = None

    def begin(self) -> None:
        """Begin a batch, without claims and failures."""
        self.claims, self.failures = [], []

    def run(self, tasks: Sequence[Task]) -> None:
        """Drive tasks until each is done or has become claims; an error ends the batch."""
        with self._pool(THREADS) as pool:
            for wave in _waves(tasks):
                self._wave(wave, pool)
        self.claims += self._target.claims
        self._target.claims.clear()

    def _map(self, function: Callable[[V], W], values: Sequence[V]) -> list[W]:
        """Return the results for all values, in order, by all threads; the first error ends it."""
        results: dict[int, W] = {}

        def call(number: int) -> None:
            results[number] = function(values[number])

        with self._pool(THREADS) as pool:
            self._each(pool, call, range(len(values)))
        return [results[number] for number in range(len(values))]

    def wait_until(self, moment: float) -> None:
        """Wait until this moment of the clock; raise GaveUp if there is not enough time."""
        if (seconds := moment - self._clock()) > 0:
            self._target.pause(seconds)

    def _wave(self, wave: Sequence[Task], pool: Executor) -> None:
        active = wave
        while active := [task for task in active if task.work.step is not None]:
            looking = [task for task in active if task.work.step is Kind.LOOK]
            images = self.look(dict.fromkeys(task.work.source for task in looking))
            for task in looking:
                task.work = self.protocol.answered(task.work, images.get(task.work.source))
                task.rounds += 1
            writing = [task for task in active if task.work.step is not None]
            for task in [task for task in writing if task.rounds > MOST_ROUNDS]:
                task.work = self.protocol.leave(task.work)
            self._each(pool, self._write, _of_one_row(writing))

    def _each(self, pool: Executor, work: Callable[[V], None], values: Sequence[V]) -> None:
        """Process all values by all threads; when one fails, the others start nothing more."""
        over = Event()
        rest = iter(values)

        def some() -> None:
            try:
                for value in rest:  # the iterator returns each value once, to any thread
                    if over.is_set():
                        return
                    work(value)
            except BaseException:
                over.set()
                raise

        running = [pool.submit(some) for _ in range(min(THREADS, len(values)))]
        errors = [error for future in running if (error := future.exception()) is not None]
        if errors:
            raise errors[0]

    def _write(self, tasks: Sequence[Task]) -> None:
        """Make the writes of works, until each must read its source; those whose claims share a row
        write together or, if refused, in turn, as transactions that check one row conflict.
        """
        for some in _together([task for task in tasks if self._writes_next(task)]):
            self._write_together(some)
        for task in tasks:
            self._until_look(task)

    def _writes_next(self, task: Task) -> bool:
        call = self.protocol.call(task.work)
        return call is not None and call.kind in (Kind.WRITE, Kind.REMOVE)

    def _write_together(self, tasks: Sequence[Task]) -> None:
        """Make the next write of works in one transaction."""
        calls = [call for task in tasks if (call := self.protocol.call(task.work)) is not None]
        try:
            answers = self._target.write_together(calls)
        except Unanswered:
            for task in tasks:
                self._unanswered(task)
            return
        except KeyhopError as error:
            if not is_of_the_item(error):
                raise
            return  # the error does not say for which item
        for task, answer in zip(tasks, answers, strict=True):
            if answer is not Outcome.REFUSED:
                self._answered(task, answer)

    def _unanswered(self, task: Task) -> None:
        task.quiet_at = self._clock() + WAIT_SECONDS
        task.work = self.protocol.unanswered(task.work)

    def _until_look(self, task: Task) -> None:
        while (call := self.protocol.call(task.work)) and call.kind is not Kind.LOOK:
            try:
                answer = self._answer(call, task)
            except Unanswered:
                self._unanswered(task)
                return
            except KeyhopError as error:
                if task.is_left or not is_of_the_item(error):
                    raise
                self.failures.append(error)
                task.refusal = str(error)
                task.work = self.protocol.leave(task.work)
                continue
            self._answered(task, answer)

    def _answered(self, task: Task, answer: Any) -> None:
        task.is_claimed |= answer is Outcome.OVERTAKEN
        task.work = self.protocol.answered(task.work, answer)

    def _answer(self, call: Call, task: Task) -> Any:
        if call.kind is Kind.WRITE:
            return self._target.write(call)
        if call.kind is Kind.REMOVE:
            return self._target.remove(call, task.values.get(cast(FrozenKey, call.place)))
        if call.kind is Kind.TAKE_OVER:
            return self._target.take_over(call)
        if call.kind is Kind.LOOK_AT_OWNER:
            item = self._origin.get(thawed(call.owner))
            return None if item is None else Image(item, self._transform)
        if call.kind is Kind.CLAIM:
            self._claim(call.place, call.source)
            task.is_claimed = True
            return None
        assert call.kind is Kind.WAIT
        self.wait_until(task.quiet_at)
        return None

    def _claim(self, place: Any, owner: Any) -> None:
        self.claims.append(self._side.claim(self._direction, thawed(place), thawed(owner)))

    def look(self, sources: Iterable[Any]) -> dict[Any, Image]:
        """Read source items, strongly consistent, and return the images of those that exist."""
        images = {}
        keys = [thawed(source) for source in sources]
        for at in range(0, len(keys), MOST_KEYS_AT_ONCE):
            for item in self._origin.get_many(keys[at : at + MOST_KEYS_AT_ONCE]):
                images[frozen(self._transform.source.of(item))] = Image(item, self._transform)
        return images

    # --- claims ---

    def due(self, touched: set[Any]) -> list[Claim]:
        """Return the claims of this batch, those at places with a change, and old ones."""
        page = self._side.claims(self._direction, MOST_CLAIMS, self._last)
        self._last = page[-1] if len(page) >= MOST_CLAIMS else None
        old = self._now() - SWEEP_SECONDS
        due = [claim for claim in page if claim.at <= old or self._is_touched(claim, touched)]
        tokens = {claim.token for claim in self.claims}
        return [*self.claims, *(claim for claim in due if claim.token not in tokens)][:MOST_CLAIMS]

    def _is_touched(self, claim: Claim, touched: set[Any]) -> bool:
        """Return whether to try a claim that waits for its place; a shared one is being tried."""
        return not claim.joint and frozen(claim.place) in touched

    def sweep(self, claims: Sequence[Claim]) -> int:
        """Take claims and settle them; return how many are settled."""
        taken_claims = []
        joint = {}
        for claim in claims:
            if claim.joint:
                joint[claim.joint] = claim
            elif (taken_claim := self._side.take_claim(claim)) is not None:
                taken_claims.append(taken_claim)
        for claim in joint.values():
            taken_claims += self._side.take_joint(claim)
        return sum(self.settle(taken_claims))

    def settle(self, claims: Sequence[Claim]) -> list[bool]:
        """Settle claims with our tokens, remove the settled ones, and return which these are.
        Record the refusals of others, which get separate rows before a shared row is removed.
        """
        if not claims or self._share() != "work":
            return [False] * len(claims)
        tasks = []
        for claim in claims:
            owner = frozen({name: claim.owner[name] for name in self._transform.source.all})
            fenced = Taken(frozen(claim.place), owner, self._side.fence(claim))
            tasks.append(Task(self.protocol.settle(fenced)))
        self.run(tasks)
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
        dropped = dict(zip(rows, self._map(self._side.drop_claim, [*rows.values()]), strict=True))
        return [
            is_done and dropped[self._side.fence(claim)]
            for claim, is_done in zip(claims, settled, strict=True)
        ]


def _of_one_row(tasks: Sequence[Task]) -> list[list[Task]]:
    """Return the tasks in groups: those whose claims share a row, and each of the others alone."""
    groups: dict[Hashable, list[Task]] = {}
    for task in tasks:
        fence = task.work.fence
        groups.setdefault(id(task) if fence is None else fence, []).append(task)
    return [*groups.values()]


def _together(tasks: Sequence[Task]) -> Iterator[list[Task]]:
    """Yield the tasks in groups whose writes one transaction takes; none for a single one."""
    some: list[Task] = []
    size = 0
    for task in tasks:
        more = task.work.image.bytes if isinstance(task.work.image, Image) else 0
        if some and size + more > MOST_TOGETHER_BYTES:
            yield some
            some, size = [], 0
        some.append(task)
        size += more
    if len(some) > 1:
        yield some


def _waves(tasks: Sequence[Task]) -> Iterator[list[Task]]:
    """Yield waves of at most as many tasks as one BatchGetItem can read."""
    wave: list[Task] = []
    size = 0
    for task in tasks:
        if wave and (len(wave) == MOST_KEYS_AT_ONCE or size + task.size > WAVE_BYTES):
            yield wave
            wave, size = [], 0
        wave.append(task)
        size += task.size
    if wave:
        yield wave
