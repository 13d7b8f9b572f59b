"""A walk in one process: the command line's build, audit and remove."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from keyhop.dynamodb.client import DynamoDB, Endpoint
from keyhop.dynamodb.tables import Target, describe
from keyhop.dynamodb.values import Key
from keyhop.jobs.first_look import prepare
from keyhop.jobs.layout import Method, Wishes
from keyhop.jobs.worker import Progress, now, stream
from keyhop.key_index.collections import Collections
from keyhop.key_index.report import walk_report
from keyhop.key_index.sentinel import INDEX, Sentinel
from keyhop.key_index.task import Walk, Walker
from keyhop.scan.rate_limit import Budget
from keyhop.scan.reader import PageReader, Stopped


class Nowhere:
    """A sink for keys that nobody wants."""

    def write(self, segment: int, keys: Sequence[Key]) -> int:
        """Count them."""
        return len(keys)


@dataclass(slots=True)
class Pass:
    """One walk by this process. reader: for progress, made by the caller from `target_of_walk`."""

    walk: Walk
    reader: PageReader
    collections: Collections
    wishes: Wishes

    def run(
        self, follow: Callable[[Progress], Callable[[], None]] = lambda progress: lambda: None
    ) -> dict[str, Any]:
        """Walk, and report; follow: gets the progress, returns what is called now and then."""
        began = time.monotonic()
        method: Method = "skip" if self.reader.target.index is None else "index"
        start = prepare(self.reader, method, self.wishes)
        walker = Walker(self.walk, self.reader, self.collections)
        progress = Progress(start.layout.segments)
        whole = stream(
            self.reader, start, method, Nowhere(), progress, follow(progress), visitor=walker
        )
        if not whole:
            raise Stopped
        seconds = time.monotonic() - began
        return walk_report(self.walk, self.reader.tally, seconds, now(), walker.examples)


def target_of_walk(
    client: DynamoDB, endpoint: Endpoint, table: str, sentinel: Sentinel, walk: Walk
) -> Target:
    """What to walk over: the table, or for a removal its key index, if that is still there."""
    target = describe(client, endpoint, table)
    if walk.kind == "remove" and target.has_key_index:
        target = describe(client, endpoint, table, INDEX)
    return replace(target, sentinel=sentinel)


def writes_of(walk: Walk) -> Budget:
    """The write budget of one process that walks alone."""
    rate = walk.max_write_rate
    return Budget(None if rate is None or math.isinf(rate) else rate)
