"""The environment of sessions that need the deployed stack (```console stack)."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local.cloud import Cloud
from tests.docs.sessions import Run, lines, play
from tests.docs.world import CommandRecorder, command_in

STAND_INS = {"Orders": "Small"}
"""The tables of the end-to-end tests that replace those of the documents."""


@contextmanager
def at_work(cloud: Cloud, folder: Path) -> Iterator[tuple[CommandRecorder, Run]]:
    """Yield a recorder of calls, and a runner of `keyhop` for a user of the deployment."""
    recorder = CommandRecorder()
    with recorder.seen(cloud.url) as services, recorder.seen(cloud.dynamodb) as dynamodb:
        endpoints = {"AWS_ENDPOINT_URL": services, "AWS_ENDPOINT_URL_DYNAMODB": dynamodb}
        with command_in(folder, **{**cloud.exports, **endpoints}) as keyhop:
            yield recorder, keyhop


def printed(command: str, folder: Path, keyhop: Run) -> list[str]:
    """Return the lines that a command of a document prints."""
    for name, stand_in in STAND_INS.items():
        command = command.replace(name, stand_in)
    text = "\n".join(lines(play(command, folder, keyhop), folder))
    for name, stand_in in STAND_INS.items():
        text = text.replace(stand_in, name)
    return text.splitlines()
