"""Sessions that need the deployed stack: ```console stack."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local.cloud import Cloud
from tests.docs.sessions import Run, lines, play
from tests.docs.world import People, at_home

STAND_INS = {"Orders": "Small"}
"""By tables of the documents those of the end-to-end tests."""


@contextmanager
def at_work(cloud: Cloud, folder: Path) -> Iterator[tuple[People, Run]]:
    """Who takes down what is asked for, and `keyhop` as somebody has it who uses the deployment."""
    people = People()
    with people.seen(cloud.url) as services, people.seen(cloud.dynamodb) as dynamodb:
        seen = {"AWS_ENDPOINT_URL": services, "AWS_ENDPOINT_URL_DYNAMODB": dynamodb}
        with at_home(folder, **{**cloud.exports, **seen}) as keyhop:
            yield people, keyhop


def printed(command: str, folder: Path, keyhop: Run) -> list[str]:
    """The lines that a command of a document prints."""
    for name, other in STAND_INS.items():
        command = command.replace(name, other)
    text = "\n".join(lines(play(command, folder, keyhop), folder))
    for name, other in STAND_INS.items():
        text = text.replace(other, name)
    return text.splitlines()
