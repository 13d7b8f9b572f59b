"""Drives works of the protocol: their writes by threads, their looks many at once.

Works are driven in waves, so no more images are held than one answer of BatchGetItem brings.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import Any, TypeVar, cast

from keyhop.dynamodb.item_calls import MOST_KEYS_AT_ONCE, Unanswered, is_of_the_item
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
"""At 5 ms a write they keep a core busy, and it is Python's one core that limits (bench/rekey.py).
"""

WAVE_BYTES = 12 * 1024 * 1024
"""Of the images of a wave, as they were; an answer of BatchGetItem brings 16 MB at most."""

MOST_TOGETHER_BYTES = 3 * 1024 * 1024
"""Of the images that are written in one transaction, which may have 4 MB."""

MOST_ROUNDS = 20
"""Of one work. An item that changes quicker than it can be written is left as a claim, so that it
does not hold up its batch; it is settled when it rests, or when its place is looked at again."""


@dataclass(slots=True, eq=False)
class Task:
    """A work, and what is known of it beside. values: what tells the owner at its places.

    quiet_at: from when on no request of before takes effect any more, by the clock. size: of its
    image, in bytes.
    """

    work: Work
    values: Mapping[FrozenKey, Values] = field(default_factory=dict)
    size: int = 0
    quiet_at: float = 0.0
    rounds: int = 0
    refusal: str = ""
    """Why DynamoDB refused the item; empty if it did not."""
    is_claimed: bool = False
    """Whether somebody else has taken the claim that this work was for, or this work has put it."""

    @property
    def is_left(self) -> bool:
        """As claims, or as the claim that it was for."""
        return self.work.is_left


class Driver:
    """origin: the table that is replicated, for looks. left: is told of each work that is left
    undone as DynamoDB does not take its item. pool: makes one of so many threads.

    claims: those that were put.
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
        """Until each is done, or left. Raises what ends a batch: it comes again."""
        with self._pool(THREADS) as pool:
            for wave in _waves(tasks):
                self._wave(wave, pool)
        self.claims += self._target.claims
        self._target.claims.clear()

    def map(self, function: Callable[[V], W], values: Sequence[V]) -> list[W]:
        """Call the function for each value, by all threads, and return the results in order.

        Raises:
            Exception: What a call raises; then no further call begins.
        """
        results: dict[int, W] = {}

        def call(number: int) -> None:
            results[number] = function(values[number])

        with self._pool(THREADS) as pool:
            self._each(pool, call, range(len(values)))
        return [results[number] for number in range(len(values))]

    def wait_until(self, moment: float) -> None:
        """By the clock; raises GaveUp if there is no time left."""
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
        """Work all values by all threads; when one fails, the others begin nothing more."""
        over = Event()
        rest = iter(values)

        def some() -> None:
            try:
                for value in rest:  # a sequence's iterator hands each out once, to any thread
                    if over.is_set():
                        return
                    work(value)
            except BaseException:
                over.set()
                raise

        running = [pool.submit(some) for _ in range(min(THREADS, len(values)))]
        errors = [error for one in running if (error := one.exception()) is not None]
        if errors:
            raise errors[0]

    def _write(self, tasks: Sequence[Task]) -> None:
        """Make the writes of works, until each looks at its source.

        Works whose claims share a row write together. Where that is refused, one writes after the
        other, as transactions that check the same row conflict.
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
            return  # it is not told of which item
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
        """Strong looks; those that are there."""
        found = {}
        wanted = [thawed(source) for source in sources]
        for at in range(0, len(wanted), MOST_KEYS_AT_ONCE):
            for item in self._origin.get_many(wanted[at : at + MOST_KEYS_AT_ONCE]):
                found[frozen(self._transform.source.of(item))] = Image(item, self._transform)
        return found


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
    """Of as many as one BatchGetItem looks at."""
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
