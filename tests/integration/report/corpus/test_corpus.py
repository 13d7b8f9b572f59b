"""The report of the tables of the corpus: a few in `make test`, most in `make prove`."""

from collections.abc import Iterator

import pytest

from testing.marks import prove, prove_long
from testing.report_corpus.live import World, findings_of
from testing.report_corpus.matrix import Matrix, verdicts
from testing.report_corpus.tables.all import every
from testing.standin.server import running

USUAL = (
    "shop, tagged and typed",
    "a busy shop, seen from everywhere",
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
def test_a_report_finds_what_is_there_and_nothing_else(name: str, world: World) -> None:
    """Large tables are sampled: chance may leave a rule open, or find a little that is not there,
    and docs/internals/report-corpus.md counts how often. None is called clear of what is planted.
    """
    case = BY_NAME[name]
    told = verdicts(case, findings_of(case, world))
    fine = {"found", "allowed"}
    if case.virtual is not None:
        fine |= {"unknown"}
    by_chance = {"low", "info"} if case.virtual is not None else set()
    wrong = [
        str(one)
        for one in told
        if one.outcome not in fine and not (one.outcome == "false" and one.severity in by_chance)
    ]
    assert (wrong, Matrix.of([told]).loud) == ([], [])
