"""Capture the current behaviour of Keyhop as JSON. Only this package of the golden tests uses it.

    python -m tests.golden.capture --write [NAME ...]    writes all golden files, or the named ones

Captures use public interfaces, and are normalised (normal.py).
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
"""The depth of the lines of each golden file, and the function that captures its content."""


def captured(name: str) -> str:
    """Return the current content of a golden file."""
    depth, capture = CAPTURES[name]
    return dump(capture(), depth) + "\n"
