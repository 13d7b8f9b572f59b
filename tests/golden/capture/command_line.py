"""Options of the command, and how it ends."""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click
from keyhop.cli.main import command

from testing.databases import Database, keyhop
from tests.golden.capture.contexts import COMMANDS
from tests.golden.capture.places import somewhere, stand_in
from tests.golden.normal import text


def options() -> dict[str, Any]:
    """Each command's options and arguments, whatever library parses them."""
    return {name: dict(sorted(found)) for name, found in options_of(command, "keyhop")}


def options_of(group: click.Command, name: str) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """The adapter: all that knows click."""
    found = []
    for parameter in group.params:
        info = parameter.to_info_dict()
        names = parameter.opts if isinstance(parameter, click.Option) else []
        description = {
            "options": sorted(names),
            "default": info["default"],
            "choices": info["type"].get("choices"),
            "required": parameter.required,
            "is_flag": info.get("is_flag", False),
        }
        found.append((max(names, key=len, default=parameter.name), description))
    yield name, found
    for child, sub in getattr(group, "commands", {}).items():
        yield from options_of(sub, f"{name} {child}")


def exit_statuses() -> dict[str, Any]:
    """For each command line: the exit status, and what our own checks say."""
    found: dict[str, Any] = {}
    with somewhere() as (folder, _), stand_in() as database:
        (folder / "file").touch()
        how = ("--segments", "4", "--threads", "1")
        database.keys("Orders", "--output", f"{folder}/done", *how)
        database.keys("Orders", "--output", f"{folder}/begun", "--max-read-units", "13", *how)
        places = {"{url}": database.url, "{place}": str(folder)}
        for kind, cases in COMMANDS.items():
            for name, arguments in cases.items():
                given = [
                    re.sub(r"\{\w+\}", lambda place: places[place[0]], one) for one in arguments
                ]
                found[f"{kind}: {name}"] = ended(kind, given, places)
        found["told: stdout is closed"] = closed(database)
    return found


def ended(kind: str, given: list[str], places: Mapping[str, str]) -> dict[str, Any]:
    """One command line; what its parser says is the library's own."""
    result = keyhop(*given)
    told: dict[str, Any] = {"status": result.status}
    if kind == "told":
        lines = [line for line in result.err.splitlines() if line.startswith("keyhop: ")]
        said = "\n".join(lines).replace(places["{place}"], "<place>")
        told["says"] = text(said.replace(places["{url}"], "<endpoint>"))
    if kind == "done":
        told["prints"] = bool(result.out)
    return told


def closed(database: Database) -> dict[str, Any]:
    """The command with a closed standard output."""
    command = f"'{sys.executable}' -m keyhop keys Orders --endpoint-url {database.url} >&-"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    return {"status": result.returncode, "says": result.stderr.strip()}
