"""errors.md tells of each error that a user can meet, and of none that there is not."""

import re
from collections.abc import Iterator

import handlers.sharding  # OutOfTime
from handlers.sharding_requests import InvalidItem
from keyhop.errors import KeyhopError, StaleIndex

from testing.servers import ROOT

WITHIN = {KeyhopError, StaleIndex}
"""Nobody meets these: the root of the tree, and what makes a run begin anew."""


def _below(error: type[Exception]) -> Iterator[type[Exception]]:
    for child in error.__subclasses__():
        yield child
        yield from _below(child)


def _of_the_code() -> set[str]:
    of_ours = {error for error in _below(KeyhopError) if error.__module__.startswith("keyhop.")}
    others = {handlers.sharding.OutOfTime, InvalidItem}
    machines = "".join(path.read_text() for path in (ROOT / "statemachines").glob("*.json"))
    return {error.__name__ for error in (of_ours | others) - WITHIN} | set(
        re.findall(r'"Error": "(\w+)"', machines)
    )


def _of_the_page() -> list[str]:
    page = (ROOT / "docs" / "reference" / "errors.md").read_text()
    table = page.partition("\n| error |")[2].partition("\n\n")[0]
    return re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)


def test_each_error_has_its_row() -> None:
    rows = _of_the_page()
    assert set(rows) == _of_the_code()
    assert len(rows) == len(set(rows))
