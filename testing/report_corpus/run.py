"""The reports on many tables of the corpus, in one DynamoDB Local and one stand-in."""

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
"""The number of tables at the same time, on two cores, of which the database uses one."""
TABLES_OF_A_WORLD = 24
"""The number of tables until both databases restart, because the memory is limited."""


@dataclass(slots=True)
class Result:
    """The verdicts on all tables, and the errors of reports by the names of their tables."""

    matrix: Matrix
    verdicts: list[Verdict] = field(default_factory=list)
    failures: dict[str, Exception] = field(default_factory=dict)


@contextmanager
def world() -> Iterator[World]:
    """Start both databases."""
    with dynamodb_local() as local, running() as stand_in:
        yield World(local, stand_in.url, stand_in.service)


def run(cases: Sequence[Case]) -> Result:
    tables: list[list[Verdict]] = []
    failures: dict[str, Exception] = {}
    for first in range(0, len(cases), TABLES_OF_A_WORLD):
        batch = cases[first : first + TABLES_OF_A_WORLD]
        with world() as databases, ThreadPoolExecutor(THREADS) as pool:
            for case, result in zip(
                batch, pool.map(_judged, batch, repeat(databases)), strict=True
            ):
                if isinstance(result, Exception):
                    failures[case.name] = result
                else:
                    tables.append(result)
    return Result(Matrix.of(tables), [verdict for table in tables for verdict in table], failures)


def _judged(case: Case, databases: World) -> list[Verdict] | Exception:
    try:
        return verdicts(case, findings_of(case, databases))
    except Exception as error:
        return error
