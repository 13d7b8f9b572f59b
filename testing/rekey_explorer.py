"""Every interleaving of users, workers, sweeps, a backfill and a verify, over a few keys.

What is explored is `keyhop.rekey.worker.protocol.Protocol` itself. A world is a tuple; whatever is
not a number in it stands there by its number (`Numbers`), so that worlds are small and equal
quickly, and each step of a work is computed once. Worlds that differ only in which of two alike
workers does what are one world: workers have no names, and share nothing but what lies in the
tables.

Time is not in it. What rests on time is stated as order: a wait ends when the requests that it is
for have taken effect, or never will.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from keyhop.rekey.worker.protocol import Claim, Kind, Outcome, Protocol, Work, claims_of

Image = tuple[int, int]
"""Of an item: its place in the destination, and its content."""

World = tuple[Any, ...]
"""(source, destination, script, records, slots, late, claims, copies, crashes, fill, verify)

source: an image or None for each key; destination: (owner, image) or None for each place; script:
how far; records, slots, late: numbers, sorted; slots holds busy ones only; claims: (place, owner,
token), sorted; fill: of each source key TO_DO, DONE, or the number of what is in hand; verify: the
same, once.
"""

TO_DO, DONE = -2, -1
PUT_IF_ABSENT = "backfill's write"
NEW = 0
"""The token of a claim that nobody has taken: no fence is equal to it."""


def place_of(image: Image) -> int:
    return image[0]


class Numbers:
    """A number for each value, and back."""

    def __init__(self) -> None:
        self.of: dict[Hashable, int] = {}
        self.values: list[Any] = []

    def __call__(self, value: Hashable) -> int:
        number = self.of.get(value)
        if number is None:
            number = self.of[value] = len(self.values)
            self.values.append(value)
        return number


@dataclass(frozen=True, slots=True)
class Record:
    """What a batch has of one source key. again: its batch was killed: a note of it is there.

    sweep: none, but a claim that was taken with this token.
    """

    source: int
    places: tuple[int, ...]
    image: Image | None
    again: bool = False
    sweep: int = NEW


@dataclass(frozen=True, slots=True)
class Scenario:
    """script: (source key, its new image or None) one after the other. crashes: how many workers
    may be killed, or get no answer, with a request under way. copies: records that come twice.
    merges: whether two records of a key may come in one batch. loses: records may be lost as long
    as the backfill runs. destination: as it is at the beginning; default: as the source is."""

    script: tuple[tuple[int, Image | None], ...]
    before: tuple[Image | None, ...] = (None, None)
    places: int = 2
    workers: int = 2
    sweepers: int = 0
    copies: int = 0
    crashes: int = 0
    merges: bool = False
    backfill: bool = False
    loses: bool = False
    verify: bool = False
    places_first: bool = False
    destination: tuple[tuple[int, Image] | None, ...] | None = None

    def first(self) -> World:
        there = self.destination
        if there is None:
            held = {image[0]: (s, image) for s, image in enumerate(self.before) if image}
            there = tuple(None if self.backfill else held.get(d) for d in range(self.places))
        fill = (TO_DO if self.backfill else DONE,) * len(self.before)
        verify = TO_DO if self.verify else DONE
        return (self.before, there, 0, (), (), (), (), self.copies, self.crashes, fill, verify)


class Known:
    """What is known of a protocol's steps already; explorers of the same protocol may share it."""

    def __init__(self) -> None:
        self.records, self.works, self.slots = Numbers(), Numbers(), Numbers()
        self.lates, self.hands = Numbers(), Numbers()
        self.calls: dict[int, Any] = {}
        self.after: dict[tuple[int, Any], int] = {}
        self.begun: dict[int, int] = {}
        self.judged: dict[Any, bool] = {}


@dataclass
class Explorer:
    """protocol: what is explored. effect: what its requests do. Others than the defaults are
    mutants, to show what each part is for."""

    scenario: Scenario
    protocol: Protocol = field(default_factory=lambda: Protocol(place_of))
    effect: Callable[..., tuple[Any, Any, Any]] = field(default_factory=lambda: effect)

    known: Known = field(default_factory=Known)

    def __post_init__(self) -> None:
        known = self.known
        self.records, self.works, self.slots = known.records, known.works, known.slots
        self.lates, self.hands = known.lates, known.hands
        self.calls, self.after, self.judged = known.calls, known.after, known.judged

    def explore(self, most: int = 5_000_000) -> tuple[int, World | None]:
        """How many worlds there are, and the first that is at rest and wrong; None if none is."""
        first = self.scenario.first()
        seen = {first}
        waiting = [first]
        while waiting:
            here = waiting.pop()
            if self.is_quiet(here) and not self.is_right(here):
                return len(seen), here
            for there in self.nexts(here):
                if there not in seen:
                    seen.add(there)
                    waiting.append(there)
            assert len(seen) <= most
        return len(seen), None

    def is_quiet(self, world: World) -> bool:
        """Nothing is left to be done but sweeping."""
        _, _, at, records, slots, late, _, _, _, fill, verify = world
        if records or slots or late or verify != DONE or at < len(self.scenario.script):
            return False
        return all(state == DONE for state in fill)

    def is_right(self, world: World) -> bool:
        """After the claims are swept, the destination is as the source says, or is claimed."""
        source, there, claims = world[0], world[1], world[6]
        key = (source, there, claims)
        if key not in self.judged:
            self.judged[key] = self._judge(source, there, claims)
        return self.judged[key]

    def _judge(self, source: Any, there: Any, claims: Any) -> bool:
        for _ in range(4):
            for place, owner, _token in claims:
                there, claims = self.swept(source, there, claims, place, owner)
        claimed = {claim[:2] for claim in claims}
        for place, held in enumerate(there):
            wanting = {s for s, image in enumerate(source) if image and image[0] == place}
            holder = held[0] if held else None
            if held is not None and holder == Outcome.FOREIGN:
                wrong = wanting - {s for d, s in claimed if d == place}
            elif held is None or holder not in wanting or held[1] != source[holder]:
                wrong = wanting or ({holder} if held else set())
            else:
                wrong = {s for s in wanting - {holder} if (place, s) not in claimed}
                if len(wanting) == 1 and any(d == place for d, _ in claimed):
                    return False
            if wrong:
                return False
        return True

    def swept(self, source: Any, there: Any, claims: Any, place: int, owner: int) -> Any:
        """One claim, with nobody else at work."""
        claims = _claimed(claims, place, owner, 1)
        work = self.protocol.settle(Claim(place, owner, 1))
        while (call := self.protocol.call(work)) is not None:
            step = (call.kind, call.source, call.place, call.image, call.owner, call.fence)
            there, claims, answer = self.effect(step, source, there, claims)
            work = self.protocol.answered(work, answer)
        return there, tuple(claim for claim in claims if claim != (place, owner, 1))

    def nexts(self, world: World) -> Iterator[World]:
        """All worlds that are one step away."""
        source, there, at, records, slots, late, claims, copies, crashes, fill, verify = world
        script = self.scenario.script
        rest = (copies, crashes, fill, verify)
        if at < len(script):
            key, image = script[at]
            old = source[key]
            more = records
            if old != image:
                places = tuple(sorted({it[0] for it in (old, image) if it is not None}))
                more = _with(records, self.records(Record(key, places, image)))
            now = (*source[:key], image, *source[key + 1 :])
            yield (now, there, at + 1, more, slots, late, claims, *rest)
        for place in range(len(slots)):
            if place and slots[place] == slots[place - 1]:
                continue
            others = slots[:place] + slots[place + 1 :]
            yield from self._worked(world, slots[place], others)
        sweeping = 0
        if self.scenario.sweepers:
            sweeping = sum(self.slots.values[slot][2] for slot in slots)
        if records and len(slots) - sweeping < self.scenario.workers:
            yield from self._delivered(world)
        if claims and sweeping < self.scenario.sweepers:
            for place, owner, _ in claims:
                token = self._token(slots, late)
                swept = self.records(Record(owner, (place,), None, sweep=token))
                work = self.works(self.protocol.settle(Claim(place, owner, token)))
                busy = _with(slots, self.slots((swept, work, True)))
                taken = _claimed(claims, place, owner, token)
                yield (source, there, at, records, busy, late, taken, *rest)
        for place, request in enumerate(late):
            left = late[:place] + late[place + 1 :]
            yield (source, there, at, records, slots, left, claims, *rest)
            now, put, _ = self.effect(self.lates.values[request][1], source, there, claims)
            if now != there or put != claims:
                yield (source, now, at, records, slots, left, put, *rest)
        if any(state != DONE for state in fill):
            yield from self._filled(world)
        elif verify != DONE:
            yield from self._verified(world)

    def _token(self, slots: Any, late: Any) -> int:
        """One that nobody has."""
        used = {self.records.values[self.slots.values[slot][0]].sweep for slot in slots}
        used |= {self.lates.values[request][1][5] for request in late}
        return next(token for token in range(1, 9) if token not in used)

    def _step(self, work: int) -> Any:
        """What a work asks next, as a tuple; None: done."""
        if work not in self.calls:
            call = self.protocol.call(self.works.values[work])
            self.calls[work] = call and (
                *(call.kind, call.source, call.place, call.image, call.owner, call.fence),
            )
        return self.calls[work]

    def _answered(self, work: int, answer: Any) -> int:
        key = (work, answer)
        if key not in self.after:
            now: Work = self.works.values[work]
            lost = answer == "lost"
            then = self.protocol.unanswered(now) if lost else self.protocol.answered(now, answer)
            self.after[key] = self.works(then)
        return self.after[key]

    def _worked(self, world: World, slot: int, others: Any) -> Iterator[World]:
        """One call of a worker; or it is killed; or it gets no answer."""
        source, there, at, records, _, late, claims, copies, crashes, fill, verify = world
        number, work, sweeps = self.slots.values[slot]
        rest = (copies, crashes, fill, verify)
        step = self._step(work)
        if step is None:
            record = self.records.values[number]
            mine = (record.places[0], record.source, record.sweep)
            left = tuple(claim for claim in claims if claim != mine)
            yield (source, there, at, records, others, late, left, *rest)
            return
        kind = step[0]
        if kind is not Kind.WAIT or all(self.lates.values[it][0] != number for it in late):
            now, put, answer = self.effect(step, source, there, claims)
            work_then = self._answered(work, answer)
            over = self._step(work_then) is None and not sweeps
            busy = others if over else _with(others, self.slots((number, work_then, sweeps)))
            yield (source, now, at, records, busy, late, put, *rest)
        if crashes:
            rest = (copies, crashes - 1, fill, verify)
            under_way = kind not in (Kind.LOOK, Kind.LOOK_AT_OWNER, Kind.WAIT)
            again = number if sweeps else self._again(number)
            more = _with(late, self.lates((again, step))) if under_way else late
            back = records if sweeps else _with(records, again)
            yield (source, there, at, back, others, more, claims, *rest)
            if under_way:
                work_then = self._answered(work, "lost")
                busy = _with(others, self.slots((again, work_then, sweeps)))
                yield (source, there, at, records, busy, more, claims, *rest)

    def _again(self, number: int) -> int:
        record = self.records.values[number]
        return self.records(Record(record.source, record.places, record.image, again=True))

    def _delivered(self, world: World) -> Iterator[World]:
        """Any waiting record may come next, or two of a key; and each may come once more later."""
        source, there, at, records, slots, late, claims, copies, crashes, fill, verify = world
        for place, number in enumerate(records):
            if place and records[place - 1] == number:
                continue
            left = records[:place] + records[place + 1 :]
            busy = _with(slots, self._begun(number))
            yield (source, there, at, left, busy, late, claims, copies, crashes, fill, verify)
            if copies:
                rest = (copies - 1, crashes, fill, verify)
                yield (source, there, at, records, busy, late, claims, *rest)
            if self.scenario.loses and any(state != DONE for state in fill):
                rest = (copies, crashes, fill, verify)
                yield (source, there, at, left, slots, late, claims, *rest)
            for second, other in enumerate(left) if self.scenario.merges else ():
                both = self._merged(number, other)
                if both is not None:
                    busy = _with(slots, self._begun(both))
                    less = left[:second] + left[second + 1 :]
                    rest = (copies, crashes, fill, verify)
                    yield (source, there, at, less, busy, late, claims, *rest)

    def _begun(self, number: int) -> int:
        if number not in self.known.begun:
            it = self.records.values[number]
            begun = self.protocol.begin(it.source, it.places, it.image, it.again, waits=it.again)
            self.known.begun[number] = self.slots((number, self.works(begun), False))
        return self.known.begun[number]

    def _merged(self, number: int, other: int) -> int | None:
        one, two = self.records.values[number], self.records.values[other]
        if one.source != two.source or one.again or two.again:
            return None
        places = tuple(sorted({*one.places, *two.places}))
        return self.records(Record(one.source, places, two.image))

    def _filled(self, world: World) -> Iterator[World]:
        """The backfill: read, put if nothing is there, claim if another's is; killed, or not."""
        source, there, at, records, slots, late, claims, copies, crashes, fill, verify = world
        for key, state in enumerate(fill):
            if state == DONE:
                continue
            now, put, then = there, claims, DONE
            if state == TO_DO:
                then = DONE if source[key] is None else self.hands((PUT_IF_ABSENT, source[key]))
            else:
                what, image = self.hands.values[state]
                step = (what, key, image[0], image, None, None)
                now, put, answer = self.effect(step, source, there, claims)
                if answer not in (None, key):
                    then = self.hands((Kind.CLAIM, image))
                if crashes:
                    more = _with(late, self.lates((DONE, step)))
                    todo = (*fill[:key], TO_DO, *fill[key + 1 :])
                    rest = (copies, crashes - 1, todo, verify)
                    yield (source, there, at, records, slots, more, claims, *rest)
            done = (*fill[:key], then, *fill[key + 1 :])
            yield (source, now, at, records, slots, late, put, copies, crashes, done, verify)

    def may_verify(self, late: tuple[int, ...]) -> bool:
        """Whether no write of the backfill may take effect any more."""
        return all(self.lates.values[it][0] != DONE for it in late)

    def _verified(self, world: World) -> Iterator[World]:
        """Verify: a read of each key and each place, in turn; then a claim for each difference."""
        source, there, at, records, slots, late, claims, copies, crashes, fill, verify = world
        if verify == TO_DO and not self.may_verify(late):
            return
        seen = () if verify == TO_DO else self.hands.values[verify]
        put, then = claims, DONE
        if seen and seen[0] == "claims":
            claim = seen[1]
            put = _claimed(claims, claim.place, claim.owner, NEW)
            then = self.hands(("claims", *seen[2:])) if seen[2:] else DONE
        else:
            first, last = (there, source) if self.scenario.places_first else (source, there)
            seen = (*seen, (*first, *last)[len(seen)])
            if len(seen) < len(source) + len(there):
                then = self.hands(seen)
            elif found := differences(seen, len(first), self.scenario.places_first):
                then = self.hands(("claims", *found))
        yield (source, there, at, records, slots, late, put, copies, crashes, fill, then)


def differences(seen: Any, cut: int, places_first: bool) -> tuple[Claim, ...]:
    """What verify claims: seen are all keys and all places, the first `cut` of them at first."""
    source, there = (seen[cut:], seen[:cut]) if places_first else (seen[:cut], seen[cut:])
    found: dict[Claim, None] = {}
    for place, held in enumerate(there):
        wanting = [s for s, image in enumerate(source) if image and image[0] == place]
        right = held is None and not wanting
        if right or (len(wanting) == 1 and held == (wanting[0], source[wanting[0]])):
            continue
        for key in wanting or [None]:
            found.update(dict.fromkeys(claims_of(place, key, held and held[0])))
    return tuple(found)


def effect(step: Any, source: Any, there: Any, claims: Any) -> tuple[Any, Any, Any]:
    """A request, at one instant: the destination and the claims after it, and the answer."""
    kind, key, place, image, owner, fence = step
    if kind is Kind.LOOK:
        return there, claims, source[key]
    if kind is Kind.LOOK_AT_OWNER:
        return there, claims, source[owner]
    if kind is Kind.WAIT:
        return there, claims, None
    if kind is Kind.CLAIM:
        return there, _claimed(claims, place, key, NEW), None
    if fence is not None and (place, key, fence) not in claims:
        return there, claims, Outcome.OVERTAKEN
    held = there[place]
    holder = held[0] if held else None
    if kind is Kind.TAKE_OVER:
        if holder != owner:
            return there, claims, Outcome.REFUSED
        claims = _claimed(claims, place, owner, NEW)
    elif kind is Kind.REMOVE:
        if holder != key:
            return there, claims, None
        return (*there[:place], None, *there[place + 1 :]), claims, None
    elif holder is not None and (holder != key or kind is PUT_IF_ABSENT):
        return there, claims, holder
    return (*there[:place], (key, image), *there[place + 1 :]), claims, None


def _claimed(claims: Any, place: int, owner: int, token: int) -> Any:
    others = [claim for claim in claims if claim[:2] != (place, owner)]
    return tuple(sorted([*others, (place, owner, token)]))


def _with(values: tuple[int, ...], more: int) -> tuple[int, ...]:
    return tuple(sorted((*values, more)))
