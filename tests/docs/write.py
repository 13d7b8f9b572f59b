"""Write the current output of commands into the documents, and permissions.md: `make sessions`.

With --stack, also play the sessions that need the deployed stack, on a laptop cloud.
"""

import sys
import tempfile
from collections.abc import Set
from functools import partial
from pathlib import Path

from local.cloud import Cloud, laptop_cloud
from testing.databases import Database
from testing.iam.simulator import Call
from testing.servers import dynamodb_local
from tests.docs import permissions
from tests.docs.deployed import STAND_INS, at_work, printed
from tests.docs.pages import PAGES
from tests.docs.sessions import COMMANDS, SESSION, STACK, blocks, lines, play, rewritten
from tests.docs.world import LocalRecorder, command_in, tables, tables_of, use_library
from tests.infra import recorded


def main() -> None:
    permissions.write_calls("calls.json", play_local_pages())
    if "--stack" in sys.argv:
        permissions.write_calls("calls_of_stacks.json", play_stack_pages())
    permissions.write()


def _pages_with(*kinds: str) -> list[Path]:
    return [
        page for page in PAGES if any(block.kind in kinds for block in blocks(page.read_text()))
    ]


def play_local_pages() -> Set[Call]:
    """Renew the pages that need no stack, and return the recorded calls."""
    recorder = LocalRecorder()
    with dynamodb_local() as url, recorder.seen(url) as proxy_url:
        database = Database("dynamodb_local", url)
        for page in _pages_with(SESSION, COMMANDS):
            _rewrite(page, database, proxy_url)
        with tables(database, {"Audit"}):
            use_library(proxy_url)
    return recorder.calls


def _rewrite(page: Path, database: Database, url: str) -> None:
    text = page.read_text()
    with (
        tempfile.TemporaryDirectory() as name,
        tables(database, tables_of(text)),
        command_in(Path(name), AWS_ENDPOINT_URL=url) as keyhop,
    ):
        folder = Path(name)
        page.write_text(
            rewritten(text, SESSION, COMMANDS, lambda c: lines(play(c, folder, keyhop), folder))
        )


def play_stack_pages() -> Set[Call]:
    """Renew the pages that need a stack, and return the recorded calls."""
    with laptop_cloud() as cloud, tempfile.TemporaryDirectory() as name:
        _fill(cloud)
        with at_work(cloud, Path(name)) as (recorder, keyhop):
            for page in _pages_with(STACK):
                text = page.read_text()
                run = partial(printed, folder=Path(name), keyhop=keyhop)
                page.write_text(rewritten(text, STACK, STACK, run))
    return recorder.calls


def _fill(cloud: Cloud) -> None:
    Database("dynamodb_local", cloud.dynamodb).collections(
        STAND_INS["Orders"], [1, 6, 1, 25, 2] * 60, filling=300
    )
    indexed = {"table": "Kept", "keyIndex": True}
    cloud.deploy([*STAND_INS.values(), indexed, recorded.SHARDED], workerTimeoutSeconds="30")


if __name__ == "__main__":
    main()
