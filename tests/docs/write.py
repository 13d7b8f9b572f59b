"""Writes what commands print now into the documents, and permissions.md: `make sessions`.

With --stack also those that need the deployed stack, on a laptop cloud; else these stay.
"""

import sys
import tempfile
from collections.abc import Set
from pathlib import Path

from local.cloud import Cloud, laptop_cloud
from testing.databases import Database
from testing.iam.simulator import Call
from testing.servers import dynamodb_local
from tests.docs import permissions
from tests.docs.deployed import STAND_INS, at_work, printed
from tests.docs.pages import PAGES
from tests.docs.sessions import COMMANDS, SESSION, STACK, blocks, lines, play, rewritten
from tests.docs.world import Alone, at_home, named, tables, use_library
from tests.infra import recorded


def main() -> None:
    permissions.write_calls("calls.json", here())
    if "--stack" in sys.argv:
        permissions.write_calls("calls_of_stacks.json", on_a_stack())
    permissions.write()


def _with(*kinds: str) -> list[Path]:
    return [
        page for page in PAGES if any(block.kind in kinds for block in blocks(page.read_text()))
    ]


def here() -> Set[Call]:
    """What is asked for."""
    people = Alone()
    with dynamodb_local() as url, people.seen(url) as front:
        database = Database("dynamodb_local", url)
        for page in _with(SESSION, COMMANDS):
            _rewrite(page, database, front)
        with tables(database, {"Audit"}):
            use_library(front)
    return people.calls


def _rewrite(page: Path, database: Database, url: str) -> None:
    text = page.read_text()
    with (
        tempfile.TemporaryDirectory() as name,
        tables(database, named(text)),
        at_home(Path(name), AWS_ENDPOINT_URL=url) as keyhop,
    ):
        folder = Path(name)
        page.write_text(
            rewritten(text, SESSION, COMMANDS, lambda one: lines(play(one, folder, keyhop), folder))
        )


def on_a_stack() -> Set[Call]:
    """What is asked for."""
    with laptop_cloud() as cloud, tempfile.TemporaryDirectory() as name:
        _fill(cloud)
        with at_work(cloud, Path(name)) as (people, keyhop):
            for page in _with(STACK):
                new = rewritten(
                    page.read_text(), STACK, STACK, lambda one: printed(one, Path(name), keyhop)
                )
                page.write_text(new)
    return people.calls


def _fill(cloud: Cloud) -> None:
    Database("dynamodb_local", cloud.dynamodb).collections(
        STAND_INS["Orders"], [1, 6, 1, 25, 2] * 60, filling=300
    )
    kept = {"table": "Kept", "keyIndex": True}
    cloud.deploy([*STAND_INS.values(), kept, recorded.SHARDED], workerTimeoutSeconds="30")


if __name__ == "__main__":
    main()
