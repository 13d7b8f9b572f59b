"""The report of many tables of the corpus, in one DynamoDB Local and one stand-in."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import repeat

from testing.report_corpus.case import Case
from testing.report_corpus.live import World, findings_of
from testing.report_corpus.matrix import Matrix, Verdict, verdicts
from testing.servers import dynamodb_local
from testing.standin.server import running

THREADS = 3
"""Tables at once; two cores, and the database has one."""
TABLES_OF_A_WORLD = 24
"""Then both databases start anew: the items of hundreds of tables do not fit into the memory."""


@dataclass(slots=True)
class Result:
    """failures: of tables whose report raised, by name."""

    matrix: Matrix
    verdicts: list[Verdict] = field(default_factory=list)
    failures: dict[str, Exception] = field(default_factory=dict)


@contextmanager
def world() -> Iterator[World]:
    """Both databases, empty."""
    with dynamodb_local() as local, running() as stand_in:
        yield World(local, stand_in.url, stand_in.service)


def run(cases: Sequence[Case]) -> Result:
    found: list[list[Verdict] | Exception] = []
    for first in range(0, len(cases), TABLES_OF_A_WORLD):
        some = cases[first : first + TABLES_OF_A_WORLD]
        with world() as where, ThreadPoolExecutor(THREADS) as pool:
            found += pool.map(_one, some, repeat(where))
    told = [one for one in found if not isinstance(one, Exception)]
    return Result(
        Matrix.of(told),
        [verdict for table in told for verdict in table],
        {
            case.name: one
            for case, one in zip(cases, found, strict=True)
            if isinstance(one, Exception)
        },
    )


def _one(case: Case, where: World) -> list[Verdict] | Exception:
    try:
        return verdicts(case, findings_of(case, where))
    except Exception as error:
        return error
