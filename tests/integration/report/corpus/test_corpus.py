"""Tests of reports on the tables of the corpus: a few in `make test`, the others in `make prove`.

Chance decides which items of a large table are sampled, so a rule may stay unknown or report a
minor problem that does not exist. docs/internals/report-corpus.md counts how often. A planted
problem is never reported as clear.
"""

from collections.abc import Iterator

import pytest

from testing.marks import prove, prove_long
from testing.report_corpus.live import World, findings_of
from testing.report_corpus.matrix import Matrix, verdicts
from testing.report_corpus.tables.all import every
from testing.standin.server import running

USUAL = (
    "shop, tagged and typed",
    "keys with a shard's number behind a hash sign",
    "invoices numbered from 1",
    "log lines by day",
    "a log that is written at its end",
    "throttled by what is provisioned",
)
SLOW = (
    *("half a million invoices by number", "polls of ten shards each"),
    "one document in fifty of 150 KB",
)
BY_NAME = {case.name: case for case in every()}


@pytest.fixture(scope="module")
def world(dynamodb_local_url: str) -> Iterator[World]:
    with running() as stand_in:
        yield World(dynamodb_local_url, stand_in.url, stand_in.service)


@pytest.mark.parametrize(
    "name",
    [
        name if name in USUAL else prove_long(name) if name in SLOW else prove(name)
        for name in BY_NAME
    ],
)
def test_a_report_finds_the_planted_problems_and_no_others(name: str, world: World) -> None:
    case = BY_NAME[name]
    results = verdicts(case, findings_of(case, world))
    is_sampled = case.virtual is not None
    allowed = {"found", "allowed"} | ({"unknown"} if is_sampled else set())
    by_chance = {"low", "info"} if is_sampled else set()
    wrong = [
        str(verdict)
        for verdict in results
        if verdict.outcome not in allowed
        and not (verdict.outcome == "false" and verdict.severity in by_chance)
    ]
    assert (wrong, Matrix.of([results]).loud) == ([], [])
