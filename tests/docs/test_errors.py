"""A test that errors.md describes each error that a user can see, and no others."""

import re
from collections.abc import Iterator

import handlers.sharding  # OutOfTime
from handlers.sharding_requests import InvalidItem
from keyhop.errors import KeyhopError, StaleIndex

from testing.servers import ROOT

UNDOCUMENTED = {KeyhopError, StaleIndex}
"""Errors that no user sees: the root of the tree, and the one that restarts a run."""


def _below(error: type[Exception]) -> Iterator[type[Exception]]:
    for child in error.__subclasses__():
        yield child
        yield from _below(child)


def _errors_in_code() -> set[str]:
    library_errors = {
        error for error in _below(KeyhopError) if error.__module__.startswith("keyhop.")
    }
    handler_errors = {handlers.sharding.OutOfTime, InvalidItem}
    machines = "".join(path.read_text() for path in (ROOT / "statemachines").glob("*.json"))
    return {error.__name__ for error in (library_errors | handler_errors) - UNDOCUMENTED} | set(
        re.findall(r'"Error": "(\w+)"', machines)
    )


def _errors_in_page() -> list[str]:
    page = (ROOT / "docs" / "reference" / "errors.md").read_text()
    table = page.partition("\n| error |")[2].partition("\n\n")[0]
    return re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)


def test_each_error_has_one_row() -> None:
    rows = _errors_in_page()
    assert set(rows) == _errors_in_code()
    assert len(rows) == len(set(rows))
