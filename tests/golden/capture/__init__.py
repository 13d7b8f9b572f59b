"""What Keyhop does today, as JSON: the only place of the golden tests that knows project code.

    python -m tests.golden.capture --write [NAME ...]    renews files/, or the files so named

A file is captured through public interfaces, and normalised (normal.py).
"""

from collections.abc import Callable
from typing import Any

from tests.golden.capture.command_line import exit_statuses, options
from tests.golden.capture.contexts import CONTEXTS
from tests.golden.capture.deployment import definitions, identities, templates
from tests.golden.capture.index_runs import key_indexes
from tests.golden.capture.runs import command_runs, fleet_runs
from tests.golden.capture.sentences import errors
from tests.golden.normal import dump

CAPTURES: dict[str, tuple[int, Callable[[], Any]]] = {
    "definitions.json": (4, definitions),
    **{
        f"templates/{context}.json": (2, lambda context=context: templates(context))
        for context in CONTEXTS
    },
    "identities.json": (2, identities),
    "options.json": (2, options),
    "errors.json": (1, errors),
    "exit_statuses.json": (1, exit_statuses),
    "runs/command.json": (2, command_runs),
    "runs/fleet.json": (2, fleet_runs),
    "runs/key_index.json": (2, key_indexes),
}
"""By file: how deep it is opened into lines, and what is in it."""


def captured(name: str) -> str:
    """A file as it would be written now."""
    depth, capture = CAPTURES[name]
    return dump(capture(), depth) + "\n"
