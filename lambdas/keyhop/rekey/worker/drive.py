"""Drive the works of the protocol: several threads write, and one request reads many items.

Works are driven in waves, so at most the images of one answer of BatchGetItem are in memory.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import Any, TypeVar, cast

from keyhop.dynamodb.requester import Unanswered, is_of_the_item
from keyhop.dynamodb.units import MOST_KEYS_AT_ONCE
from keyhop.errors import KeyhopError
from keyhop.rekey.control import Direction
from keyhop.rekey.side.layout import Claim
from keyhop.rekey.side.table import SideTable
from keyhop.rekey.transform import Transform
from keyhop.rekey.worker.images import FrozenKey, Image, Values, frozen, place_of, thawed
from keyhop.rekey.worker.protocol import WAIT_SECONDS, Call, Kind, Outcome, Protocol, Work
from keyhop.rekey.worker.target import Target

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
    """Drives the works of one direction; `origin` is the table that is replicated, for reads.
    `left` receives the error of each work that is given up because DynamoDB refuses its item.
    """

    def __init__(
        self,
        direction: Direction,
        transform: Transform,
        origin: Target,
        target: Target,
        side: SideTable,
        clock: Callable[[], float],
        left: Callable[[Exception], None] = lambda error: None,
        pool: Callable[[int], Executor] = ThreadPoolExecutor,
    ) -> None:
        self.protocol = Protocol(place_of)
        self.claims: list[Claim] = []
        self._direction = direction
        self._transform = transform
        self._origin = origin
        self._target = target
        self._side = side
        self._clock = clock
        self._left = left
        self._pool = pool

    def run(self, tasks: Sequence[Task]) -> None:
        """Drive tasks until each is done or has become claims; an error ends the batch."""
        with self._pool(THREADS) as pool:
            for wave in _waves(tasks):
                self._wave(wave, pool)
        self.claims += self._target.claims
        self._target.claims.clear()

    def map(self, function: Callable[[V], W], values: Sequence[V]) -> list[W]:
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
                self._left(error)
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
